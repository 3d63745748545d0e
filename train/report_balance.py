"""The balance of a game as a section of a report."""

from __future__ import annotations

from collections.abc import Sequence

from train.balance import BalanceReport, SettingBalance
from train.balance_figures import GROUPS, PIECE_FIGURES, PIECES, Figure
from train.balance_report import number, range_text
from train.report_page import Picture, Section, figure, folded, grid, paragraph, source_line, text
from train.report_samples import SampleGame

CAPTION = "Results, lengths of games, and what became of the pieces."
HEADLINE = ("white_score", "draws", "plies")


def balance_section(reports: Sequence[tuple[str, BalanceReport]]) -> Section:
    """Return balances of one game each, with the names of what they are of where there are several.

    Args:
        reports: by their names: one of a game, or one of each of its runs.
    """
    body, pictures, tables = "", dict[str, Picture](), dict[str, str]()
    for place, (label, report) in enumerate(reports, 1):
        name = "balance" if len(reports) == 1 else f"balance_{place}"
        pictures[name] = Picture.of_figure(report.picture(), name, report.title)
        tables[name], tables[f"{name}_games"] = report.csv(), report.games_csv()
        body += f"<h3>{text(label)}</h3>" if len(reports) > 1 else ""
        body += "".join(paragraph(f"{words[:1].upper()}{words[1:]}.", "warning") for words in report.warnings)
        body += _words(report.balances[0])
        body += figure(pictures[name], CAPTION, "chart broad")
        body += source_line(f"{name}_games", tables[f"{name}_games"], report.command)
        body += _figures(report.balances[0]) + source_line(name, tables[name], report.command)
        body += "".join(paragraph(f"{line}.", "soft") for line in report.notes)
    results = [(label, _headline(report.balances[0])) for label, report in reports]
    headline = results[0][1] if len(results) == 1 else ". ".join(f"{label}: {result}" for label, result in results)
    return Section("Balance", body, pictures, tables, headline=headline)


def samples_of(report: BalanceReport, most: int) -> list[SampleGame]:
    """Return some of a balance's games, first those that ended differently."""
    games = [game for game in report.balances[0].games if len(game.actions)]
    first = {game.ending: number for number, game in reversed(list(enumerate(games)))}
    order = [*sorted(first.values()), *(number for number in range(len(games)) if number not in first.values())]
    return [
        SampleGame(
            games[number].start_fen, games[number].actions, games[number].white_score,
            games[number].ending.replace("_", " "), f"alpha-beta:{report.plan.depth}", f"game {number + 1}",
        )
        for number in order[:most]
    ]  # fmt: skip


def _headline(balance: SettingBalance) -> str:
    parts = []
    for key in HEADLINE:
        found = balance.estimates.get(key)
        if found is not None:
            named = Figure.of(key)
            ends = range_text(named, found.interval)
            parts.append(f"{named.label} {number(named, found.interval.estimate)} ({ends})")
    return "; ".join(parts)


def _words(balance: SettingBalance) -> str:
    """Return what the games say of the first move, in a sentence."""
    score = balance.estimates.get("white_score")
    if score is None:
        return ""
    low, high = score.interval.low, score.interval.high
    said = "White scores more than Black" if low > 0.5 else "Black scores more than White" if high < 0.5 else ""
    verdict = said or "Whether White or Black scores more is undecided"
    named = Figure.of("white_score")
    numbers = f"{number(named, score.interval.estimate)} for White, {range_text(named, score.interval)} with 95 %"
    return paragraph(f"{verdict}: {numbers}, in {len(balance.games):,} games.", "lead")


def _figures(balance: SettingBalance) -> str:
    """Return the tables: figures by group, then use and fate of the pieces."""
    shown = [one for group in GROUPS if group != PIECES for one in balance.figures if one.group == group]
    rows = []
    for one in shown:
        interval = balance.estimates[one.key].interval
        rows.append((one.label, number(one, interval.estimate), range_text(one, interval)))
    return folded("All figures", grid(("figure", "", "95 %"), rows)) + folded(
        "Use and fate of the pieces", _pieces(balance)
    )


def _pieces(balance: SettingBalance) -> str:
    names = [
        name for name in PIECE_FIGURES if any(f"{name}/{letter}" in balance.estimates for letter in balance.letters)
    ]
    headings = [Figure.of(f"{name}/{balance.letters[0]}").label.partition(": ")[2] for name in names]
    rows = [
        (balance.name_of(letter), *(_share(balance, f"{name}/{letter}") for name in names))
        for letter in balance.letters
    ]
    return grid(("piece", *headings), rows)


def _share(balance: SettingBalance, key: str) -> str:
    found = balance.estimates.get(key)
    if found is None:
        return "–"
    named = Figure.of(key)
    return f"{number(named, found.interval.estimate)} ({range_text(named, found.interval)})".replace(" %", "")

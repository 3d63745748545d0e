"""How balanced a game is, and what a rule changes: figures with intervals from many games.

A game is played by the alpha-beta engine against itself, with an evaluation learned for exactly its rules, on balanced
openings; or its games are the self-play of a run. Two settings play equal numbers of games with equal search on the
same openings as far as these exist in both; each difference has an interval, and is undecided where that holds 0.

Armies that differ also play from the same position with Black to move first, which with the names of the colours
exchanged is the game in which White has Black's army. White's score is 1/2 + army + first move there, and 1/2 + army -
first move here, so that the two are told apart.

Dims: G games of a setting, each one cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from envs.variant import Variant
from train.balance_counts import LINE_PLIES, BalanceGame, Kinds, ReplayedGame, Tally, tally
from train.balance_figures import ARMY, BLACK_FIRST, ENDING, FIRST_MOVE, estimates, has_own_captures
from train.balance_games import BalancePlan, Played, Session, Side, stored_games
from train.balance_intervals import Estimate, combine, difference, share
from train.balance_openings import with_black_first
from train.balance_report import BalanceReport, SettingBalance
from train.balance_settings import Setting, read_setting
from train.balance_store import GameStore
from train.config_errors import ConfigError
from train.evaluation_features import are_sides_alike
from train.evaluation_tables import table_for
from train.progress import Reporter
from train.provenance import provenance
from train.ratings import Interval

__all__ = ["BalancePlan", "BalanceReport", "Setting", "SettingBalance", "measure_balance", "read_setting"]

LEAST_GAMES = 2


def measure_balance(
    settings: Sequence[Setting],
    *,
    plan: BalancePlan,
    folder: Path | None = None,
    reporter: Reporter | None = None,
    command: str = "",
) -> BalanceReport:
    """Play the games of one or two settings as far as they are missing, and measure.

    Ctrl-C ends the playing; what there is is measured, and the report says that it was stopped.

    Args:
        settings: one, or two to be compared.
        plan: how much is played.
        folder: where games are kept; None forgets them.
        reporter: shows progress; stderr by default.
        command: that remakes the report, which its files name.

    Raises:
        ConfigError: a run is compared with a game, or another process uses the folder.
        ValueError: there are too few openings or games.
        KeyboardInterrupt: before there were two games of each setting.
    """
    if not 1 <= len(settings) <= 2:
        raise ValueError(f"expected one or two settings, got {len(settings)}")
    if len({setting.run is None for setting in settings}) > 1:
        labels = " and ".join(setting.label for setting in settings)
        raise ConfigError(f"{labels}: a network and the alpha-beta engine are no equal players, compare two of a kind")
    say = reporter or Reporter()
    if settings[0].run is not None:
        games = tuple(stored_games(setting, plan.games) for setting in settings)
        played, twins = Played(games, 0, stopped=False), dict[int, Played]()
    else:
        played, twins = _play(settings, plan, folder, say)
    if min(len(own) for own in played.games) < LEAST_GAMES:
        if played.stopped:
            raise KeyboardInterrupt
        raise ValueError(
            f"at least {LEAST_GAMES} games from the start position are needed, got {[*map(len, played.games)]}"
        )
    balances = _balances(settings, played, twins, plan.seed)
    gaps = _differences(balances, played.common, twins) if len(balances) > 1 else {}
    stopped = played.stopped or any(twin.stopped for twin in twins.values())
    return BalanceReport(tuple(balances), gaps, played.common, plan, stopped, command)


def _play(
    settings: Sequence[Setting], plan: BalancePlan, folder: Path | None, reporter: Reporter
) -> tuple[Played, dict[int, Played]]:
    """Play the games of the settings, and by a setting's number as many in which the other side begins, for armies."""
    twins = {
        number: twin
        for number, setting in enumerate(settings)
        if not are_sides_alike(setting.variant) and (twin := with_black_first(setting.variant)) is not None
    }
    with GameStore(folder) as store:
        tables = [table_for(setting.rules, reporter=reporter) for setting in settings]
        session = Session(plan, store, reporter)
        sides = [Side(setting.variant, table) for setting, table in zip(settings, tables, strict=True)]
        played = session.play(sides, share=0.5 if twins else 1.0)
        if not twins or played.stopped:
            return played, {}
        others = [Side(twin, tables[number]) for number, twin in twins.items()]
        try:
            both = session.play(others, games=len(played.games[0]))
        except KeyboardInterrupt:
            return replace(played, stopped=True), {}
        found = {number: replace(both, games=(own,)) for number, own in zip(twins, both.games, strict=True)}
        return played, found


def _balances(
    settings: Sequence[Setting], played: Played, twins: Mapping[int, Played], seed: int
) -> list[SettingBalance]:
    """Return what each setting's games say."""
    alike = all(are_sides_alike(setting.variant) for setting in settings)
    counted = [_count(setting.variant, games, alike) for setting, games in zip(settings, played.games, strict=True)]
    endings = {key for tallies, _ in counted for one in tallies for key in one if key.startswith(f"{ENDING}/")}
    own_captures = any(has_own_captures(setting.variant) for setting in settings)
    balances = []
    for number, (setting, (tallies, lines)) in enumerate(zip(settings, counted, strict=True)):
        found = estimates(tallies, lines, endings)
        if not own_captures:
            found.pop("own_captures", None)
        twin = twins[number].games[0] if number in twins else []
        if len(twin) >= LEAST_GAMES and "white_score" in found:
            found |= _army_terms(found["white_score"], twin, begins_black=setting.begins_black)
        basis = provenance(setting.variant, config_hash=_config_hash(setting), seeds={"balance": seed})
        own, is_alike = tuple(played.games[number]), are_sides_alike(setting.variant)
        balances.append(SettingBalance(setting, own, tuple(twin), found, is_alike, basis))
    return balances


def _count(variant: Variant, games: Sequence[BalanceGame], alike: bool) -> tuple[list[Tally], list[tuple[str, ...]]]:
    kinds = Kinds.of(variant, alike=alike)
    tallies, lines = [], []
    for game in games:
        replayed = ReplayedGame.of(variant, game)
        tallies.append(tally(replayed, kinds))
        lines.append(replayed.line(max(LINE_PLIES)))
    return tallies, lines


def _army_terms(own: Estimate, games: Sequence[BalanceGame], *, begins_black: bool) -> dict[str, Estimate]:
    """Return what army and first move add to 1/2, and White's score where Black begins if that is not the game's own.

    Args:
        own: White's score in the game as it is.
        games: those in which the other side begins.
        begins_black: whether Black begins in the game as it is.
    """
    scores = np.array([game.white_score for game in games])
    other = share(np.nan_to_num(scores), ~np.isnan(scores))
    if other is None:
        return {}
    white_first, black_first = (other, own) if begins_black else (own, other)
    both, gap = combine(black_first, white_first, 1.0), combine(black_first, white_first, -1.0)
    army = Interval(*((end - 1) / 2 for end in (both.estimate, both.low, both.high)))
    first = Interval(*(end / 2 for end in (gap.estimate, gap.low, gap.high)))
    trials, clusters = white_first.trials + black_first.trials, white_first.clusters + black_first.clusters
    terms = {ARMY: army, FIRST_MOVE: first}
    named = {key: Estimate(term, np.zeros(0), trials, trials, clusters) for key, term in terms.items()}
    return named if begins_black else {BLACK_FIRST: black_first, **named}


def _differences(balances: Sequence[SettingBalance], common: int, twins: Mapping[int, Played]) -> dict[str, Interval]:
    """Return second less first for every figure that both have."""
    first, second = (balance.estimates for balance in balances)
    shared = {BLACK_FIRST: twins[0].common if len(twins) > 1 else 0}
    return {key: difference(first[key], second[key], shared=shared.get(key, common)) for key in first if key in second}


def _config_hash(setting: Setting) -> str | None:
    config = setting.config
    return None if config is None else config.config_hash()

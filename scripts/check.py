"""Check a game: validate its file, say its rules in words, draw them, and play it at random.

python scripts/check.py path/to/my_game.yaml --option my_option
"""

import sys
from pathlib import Path
from typing import Annotated, Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import typer

from envs import CompiledGame, InvalidVariant, Variant, engine_for, load_variant
from envs.describe import describe, option_changes
from envs.ending_words import move_limit_name
from envs.observation import observation_hash
from envs.random_games import MAX_PLIES, RandomGames, play_random_games
from envs.rule_sheet import rule_sheet
from envs.termination import Termination
from scripts.command_line import FAILED, new_app, print_json, with_exit_codes
from train.progress import Reporter
from train.provenance import provenance

SEED_NAME = "random_games"
app = new_app()


@app.command()
@with_exit_codes
def check(
    variant: Annotated[str, typer.Argument(help="built-in name or path of a variant file")],
    *,
    option: Annotated[list[str] | None, typer.Option(help="option to switch on; may be repeated")] = None,
    games: Annotated[int, typer.Option(min=1, help="random games to play")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="of the random games")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """Validate VARIANT, explain and draw every piece and rule, and play random games.

    A game that cannot be played exactly as written is refused with the place and the reason, and exit code 1.
    """
    try:
        game = engine_for(load_variant(variant, dict.fromkeys(option or [], True)))
    except InvalidVariant as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    if not as_json:
        print(rule_sheet(game.variant), end="\n\n", flush=True)
    played = _play(game.variant, games, seed)
    if as_json:
        told = {
            "game": _title(game.variant),
            "rules": _rules(game.variant),
            "arrays": _arrays(game),
            "random_games": _summary(played),
        }
        print_json({**provenance(game.variant, config_hash=None, seeds={SEED_NAME: seed}), **told})
    else:
        print("\n".join([*_random_play(played, seed), "", *_engine(game)]))


def _play(variant: Variant, games: int, seed: int) -> RandomGames:
    with Reporter().task("random games", games) as show:
        return play_random_games(variant, games, seed=seed, on_progress=show)


def _summary(played: RandomGames) -> dict[str, Any]:
    return {
        "games": len(played.plies),
        "endings": played.endings(),
        "goals": played.goals_reached(),
        **played.results(),
        "cut_short": played.cut_short,
        "ply_cap": MAX_PLIES,
        "mean_plies": float(played.plies.mean()),
        "median_plies": float(np.median(played.plies)),
        "max_plies": int(played.plies.max()),
        "mean_legal_moves": played.mean_legal_moves,
    }


def _arrays(game: CompiledGame) -> dict[str, Any]:
    return {
        "num_squares": game.variant.num_squares,
        "num_actions": game.num_actions,
        "num_action_planes": game.encoding.num_planes,
        "action_hash": game.encoding.hash,
        "observation_shape": list(game.observation_shape),
        "observation_hash": observation_hash(game.variant),
    }


def _title(variant: Variant) -> dict[str, Any]:
    document = variant.document
    credit = {key: document.get(key) for key in ("inventor", "year", "source")}
    readings = document.get("readings") or []
    return {"title": variant.title, **credit, "readings": readings, "start_fens": list(variant.start_fens)}


def _rules(variant: Variant) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    for section in describe(variant):
        entries = sections.setdefault(section.title, {})
        for entry in section.entries:
            entries.setdefault(entry.heading, []).extend(entry.sentences)
    changes = {
        change.name: {"on": change.is_on, "removes": change.removed, "adds": change.added}
        for change in option_changes(variant)
    }
    return {**sections, "Options": changes}


def _random_play(played: RandomGames, seed: int) -> list[str]:
    summary = _summary(played)
    games = summary["games"]
    rows = {
        "White wins": summary["white_wins"],
        "Black wins": summary["black_wins"],
        "draws": summary["draws"],
    }
    cut = {f"cut short at {MAX_PLIES:,} plies": played.cut_short} if played.cut_short else {}
    end = f"to its end by the rules{f' or to {MAX_PLIES:,} plies' if cut else ''} (seed {seed})"
    return [
        "RANDOM PLAY",
        f"  {games} game{'' if games == 1 else 's'} of uniformly random legal moves, each {end};",
        f"  a share is uncertain by up to {98 / games**0.5:.0f} points (95 %).",
        *_shares("Result", {**rows, **cut}, games),
        *_shares("Ending", {**_endings(played), **cut}, games),
        f"  Plies        mean {summary['mean_plies']:.0f}, median {summary['median_plies']:.0f}, longest "
        f"{summary['max_plies']}",
        f"  Legal moves  mean {summary['mean_legal_moves']:.1f} a position",
    ]


def _endings(played: RandomGames) -> dict[str, int]:
    """Count the endings as the rule sheet calls them: goals by their names."""
    names = {Termination.FIFTY_MOVES.name.lower(): move_limit_name(played.variant)}
    by_goal = {Termination.SCEPTER.name.lower(), Termination.GOAL.name.lower()}
    rules = {
        names.get(name, name.replace("_", " ")): count
        for name, count in played.endings().items()
        if name not in by_goal
    }
    return {**{name: count for name, count in played.goals_reached().items() if count}, **rules}


def _shares(title: str, counts: dict[str, int], games: int) -> list[str]:
    width = max(len(name) for name in counts)
    return [
        f"  {title if first else '':<11}  {name:<{width}}  {count:>5}  {100 * count / games:5.1f} %"
        for first, (name, count) in zip([True, *[False] * len(counts)], counts.items())
    ]


def _engine(game: CompiledGame) -> list[str]:
    planes, ranks, files = game.observation_shape
    encoding = game.encoding
    return [
        "FOR A LEARNER",
        f"  Actions      {encoding.num_actions} over {encoding.num_planes} planes; hash {encoding.hash[:16]}",
        f"  Observation  {planes} planes of {ranks} x {files}; hash {observation_hash(game.variant)[:16]}",
        f"  Rules hash   {game.variant.rules_hash}",
    ]


if __name__ == "__main__":
    app()

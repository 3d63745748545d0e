"""Train an agent from a config: self-play, learning, checkpoints, a match and piece values."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

sys.path[0] = str(Path(__file__).resolve().parents[1])

from envs import load_variant
from scripts.command_line import INTERRUPTED, PLUGIN_HELP, new_app, print_json, stdout_console, with_exit_codes
from train.config import ConfigError, RunConfig, load_config
from train.progress import Reporter
from train.provenance import provenance
from train.runs import default_run_dir, plugins_of_run, read_config

SET_HELP = "Change a key, such as search.num_simulations=32. Repeatable; docs/reference/config.md lists the keys."
DRY_RUN_HELP = "Print the resolved config and what the run will need (measured for some 15 seconds), and stop."

app = new_app()


@app.command()
@with_exit_codes
def main(
    config: Annotated[Path | None, typer.Argument(help="A YAML config; not needed with --resume.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help=SET_HELP)] = None,
    run_dir: Annotated[Path | None, typer.Option(help="The run's folder; by default a new one under run_root.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --run-dir.")] = False,
    plugin: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN_HELP)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: one JSON object instead of YAML.")] = False,
) -> None:
    """Train an agent: self-play, learning, checkpoints, a match against a baseline, piece values.

    Presets are in configs/: python scripts/train.py configs/quick.yaml. Ctrl-C saves and stops; --resume goes on.
    """
    cfg, folder = _resolve(config, overrides or [], run_dir, resume=resume)
    if plugin and not resume:
        raise ConfigError(f"--plugin goes with --resume; a new run's config names its own: --set plugins=[{plugin[0]}]")
    if as_json and not dry_run:
        raise ConfigError("--json goes with --dry-run; a run writes its numbers to metrics.jsonl in its folder")
    if dry_run:
        _forecast(cfg, folder, resume=resume, plugins=plugin or [], as_json=as_json)
    else:
        _run(cfg, folder, resume=resume, plugins=plugin or [])


def _resolve(
    config: Path | None, overrides: list[str], run_dir: Path | None, *, resume: bool
) -> tuple[RunConfig, Path]:
    """Find the config and the folder of the run."""
    if resume:
        if run_dir is None or config is not None or overrides:
            raise ConfigError(
                "--resume goes on with the run in --run-dir by its own config: give --run-dir and no other "
                "config or --set"
            )
        return read_config(run_dir), run_dir
    if config is None:
        raise ConfigError("expected a config file, such as configs/quick.yaml")
    if not config.is_file():
        raise ConfigError(f"{config}: no such file; the presets are in configs/")
    cfg = load_config(config, overrides)
    return cfg, run_dir or default_run_dir(cfg)


def _forecast(cfg: RunConfig, folder: Path, *, resume: bool, plugins: list[Path], as_json: bool) -> None:
    """Print the config and the forecast; nothing is written to disk."""
    variant = load_variant(cfg.variant, cfg.options)
    plugins_of_run(cfg, folder, resume=resume, given=plugins)
    from train.forecast import forecast

    Reporter().say("measuring this machine for some 15 seconds ...")
    code = [str(file) for file in plugins] if resume else cfg.plugins
    expected = forecast(cfg.model_copy(update={"plugins": code}))
    if as_json:
        origin = provenance(variant, config_hash=cfg.config_hash(), seeds={"run": cfg.seed})
        print_json({**origin, "config": cfg.to_document(), "forecast": expected.document()})
    else:
        print(cfg.to_yaml(), end="")
        print("\n".join(["#", *(f"# {line}" for line in expected.lines())]))


def _run(cfg: RunConfig, folder: Path, *, resume: bool, plugins: list[Path]) -> None:
    load_variant(cfg.variant, cfg.options)  # before anything is said
    from train.loop import train

    reporter = Reporter()
    length = f"{cfg.iterations} iteration{'s' if cfg.iterations > 1 else ''}"
    reporter.say(f"run {folder}: {cfg.variant}, {length}; watch with: tensorboard --logdir {shlex.quote(str(folder))}")
    try:
        summary = train(cfg, folder, resume=resume, reporter=reporter, plugins=plugins)
    except KeyboardInterrupt:
        summary = None
    if summary is None:
        files = [str(file) for file in (plugins if resume else cfg.plugins)]
        options = [part for file in files for part in ("--plugin", file)]
        command = shlex.join(["python", "scripts/train.py", "--resume", "--run-dir", str(folder), *options])
        reporter.say(f"stopped; finished iterations are saved. Go on with: {command}")
        raise typer.Exit(INTERRUPTED)
    match, score = summary.match, summary.match.score
    print(
        f"{match.players[0]} against {match.players[1]}: {score.estimate:.1%} ({score.low:.1%} to {score.high:.1%}), "
        f"{match.wins} wins {match.draws} draws {match.losses} losses"
        + (f" ({match.cut_games} of the draws cut by the ply cap)" if match.cut_games else "")
    )
    if summary.piece_values is None:
        print(f"no piece values: {summary.refusal}")
    else:
        stdout_console().print(summary.piece_values.table())
    print(f"run: {summary.run_dir}" + (f"  report: {summary.run_dir / 'report'}" if summary.piece_values else ""))


if __name__ == "__main__":
    app()

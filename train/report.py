"""One report of a game, or of training runs of it: a page that is written again after each part that is measured.

A game needs no training run: what its pieces are worth and how balanced it is are measured with alpha-beta players
that go by a learned evaluation, within a budget of minutes. Games are kept in the report's folder, so that the same
command goes on where it was stopped, and a page that was stopped has what there was.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from envs import Variant
from models.checkpoint import FOLDER
from train.balance_settings import OPTION, START, file_or_name, is_folder, read_setting
from train.config import ConfigError
from train.piece_values.positions import InsufficientData
from train.progress import Reporter
from train.provenance import code_version, versions
from train.report_budget import Budget
from train.report_page import Section, paragraph, text, write_files, write_html
from train.report_rules import rules_sections
from train.report_training import Run, read_run

PAGE = "report.html"
GAMES = "games"
"""Folder of the games that are kept, in the report's."""
SEED_KEYS = ("seed", "name", "run_root", "variant", "workers", "ray")
"""In which the configs of one experiment's runs may differ."""


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes:
        minutes: for everything that is played, learning an evaluation included; 0 plays nothing.
        depth: plies that each move of these games is searched.
        games: of each measurement; None leaves it to the minutes.
        seeds: independent repetitions of each measurement of values.
        seed: the first seed.
    """

    minutes: float = 15.0
    depth: int = 3
    games: int | None = None
    seeds: int = 3
    seed: int = 0

    @property
    def plays(self) -> bool:
        """Whether any games are played."""
        return self.minutes > 0 or self.games is not None


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Attributes:
        name: of the report's folder.
        variant: the game.
        targets: as they were named.
        runs: of the game; empty for the game by itself.
    """

    name: str
    variant: Variant
    targets: tuple[str, ...]
    runs: tuple[Run, ...] = ()

    @property
    def title(self) -> str:
        """Heading of the report."""
        on = [name for name, is_on in self.variant.options.items() if is_on]
        return f"{self.variant.title} with {', '.join(on)}" if on else self.variant.title

    @property
    def game(self) -> str:
        """The game as scripts take it."""
        if not self.runs:
            return self.targets[0]
        on = [name for name, is_on in self.variant.options.items() if is_on]
        return OPTION.join([self.runs[0].config.variant, *on])


@dataclass
class Page:
    """A report that grows.

    Attributes:
        path: of the HTML file.
        subject: what it is about.
        command: that makes it.
        sections: so far.
        pending: titles of the parts that are to come.
    """

    path: Path
    subject: Subject
    command: str
    sections: list[Section] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)

    def add(self, sections: Iterable[Section]) -> None:
        """Write more sections."""
        for section in sections:
            write_files(self.path.parent, section)
            self.sections.append(section)
        self.write()

    def write(self, note: str = "") -> None:
        """Write the page as it is.

        Args:
            note: why parts are missing; by default that they are being measured.
        """
        missing = note or f"Still to come: {', '.join(self.pending)}."
        head = f'<p class="warning">{text(missing)}</p>' if self.pending else ""
        write_html(self.path, self.subject.title, head + _facts(self.subject, self.sections), self.sections)


class Stopped(KeyboardInterrupt):
    """A part was stopped, but has something to show.

    Attributes:
        sections: what there is of it.
    """

    def __init__(self, sections: Sequence[Section]) -> None:
        """Make one."""
        super().__init__()
        self.sections = sections


@dataclass(frozen=True)
class Part:
    """A part of a report that takes time.

    Attributes:
        title: of its first section.
        make: returns its sections; may raise InsufficientData.
    """

    title: str
    make: Callable[[], Sequence[Section]]


def find_subjects(targets: Sequence[str]) -> list[Subject]:
    """Return what is to be reported: a game each, and the runs of one experiment together.

    Args:
        targets: each a game as `train.balance_settings.FORM` says, or a run's folder.

    Raises:
        InvalidVariant: a game is refused; says file, line and reason.
        ConfigError: a folder is no run.
        FileNotFoundError, CorruptFile, CheckpointMismatch: a run cannot be read.
    """
    subjects: list[Subject] = []
    for target in targets:
        path = Path(target)
        if not is_folder(target):
            subjects.append(_game(target))
            continue
        if not (path / FOLDER).is_dir():
            raise ConfigError(f"{path}: expected the folder of a run, got one without {FOLDER}/")
        run = read_run(path)
        if any(known.path.resolve() == path.resolve() for one in subjects for known in one.runs):
            raise ConfigError(f"{path}: the run is named twice")
        other = next((number for number, one in enumerate(subjects) if one.runs and _is_same(one.runs[0], run)), None)
        if other is None:
            subjects.append(Subject(run.name, run.variant, (target,), (run,)))
        else:
            one = subjects[other]
            subjects[other] = replace(one, targets=(*one.targets, target), runs=(*one.runs, run))
    names = [f"{one.name}-{len(one.runs)}-seeds" if len(one.runs) > 1 else one.name for one in subjects]
    told = [f"{name}-{count}" if (count := names[:place].count(name) + 1) > 1 else name
            for place, name in enumerate(names)]  # fmt: skip
    return [replace(one, name=name, runs=_told_apart(one.runs)) for one, name in zip(subjects, told, strict=True)]


def write_report(
    subject: Subject, settings: Settings, folder: Path, *, command: str, reporter: Reporter | None = None
) -> Path:
    """Measure what is not known yet, and write the report; returns the path of its page.

    Args:
        subject: what it is about.
        settings: how much is measured.
        folder: of the report; made if missing.
        command: that makes it, for the reader.
        reporter: told what is being done; stderr by default.

    Raises:
        KeyboardInterrupt: it was stopped; the page has what there is, and the same call goes on.
        OSError: the folder cannot be written.
    """
    from train.report_parts import Parts  # which imports what stands here

    reporter = reporter or Reporter()
    page = Page(folder / PAGE, subject, command)
    asked = [subject.variant.rules_hash, [run.name for run in subject.runs], asdict(settings)]
    budget = Budget(settings.minutes, folder / GAMES, asked)
    parts = Parts(subject, settings, folder / GAMES, command, reporter, budget).listed()
    page.pending = [part.title for part in parts]
    try:
        page.add(rules_sections(subject.variant, _check_command(subject)))
        for number, part in enumerate(parts, 1):
            reporter.say(f"{subject.title}, part {number} of {len(parts)}: {part.title.lower()}")
            sections = _made(part)
            page.pending.remove(part.title)
            page.add(sections)
        page.add([_made_by(subject, settings, command)])
    except KeyboardInterrupt as stop:
        page.add(stop.sections if isinstance(stop, Stopped) else [])
        stopped = f"Stopped before {', '.join(page.pending)}. The same command goes on: {command}"
        page.write(stopped)
        reporter.say(f"stopped; {page.path} has what there is, and the same command goes on")
        raise
    return page.path


def _game(target: str) -> Subject:
    variant = read_setting(target).variant
    on = [name for name, is_on in variant.options.items() if is_on]
    start = ["other-start"] if START in target else []
    return Subject("+".join([Path(variant.name).stem, *on, *start]), variant, (target,))


def _is_same(first: Run, second: Run) -> bool:
    """Return whether two runs differ in nothing but chance and place."""
    configs = [run.config.to_document() for run in (first, second)]
    plain = [{key: value for key, value in config.items() if key not in SEED_KEYS} for config in configs]
    return first.variant.rules_hash == second.variant.rules_hash and plain[0] == plain[1]


def _told_apart(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return runs with different names: those whose folders have one name are named by their paths."""
    names = [run.name for run in runs]
    return tuple(replace(run, name=str(run.path)) if names.count(run.name) > 1 else run for run in runs)


def _made(part: Part) -> Sequence[Section]:
    try:
        return part.make()
    except InsufficientData as error:
        return [Section(part.title, paragraph(f"Nothing can be said of this: {error}.", "warning"))]


def _check_command(subject: Subject) -> str:
    options = "".join(f" --option {name}" for name, is_on in subject.variant.options.items() if is_on)
    return f"python scripts/check.py {shlex.quote(file_or_name(subject.game))}{options} --json"


def _facts(subject: Subject, sections: Sequence[Section]) -> str:
    """Return what stands below the title: where the game is from, and the results in a line each."""
    document = subject.variant.document
    credit = ", ".join(str(document[key]) for key in ("inventor", "year") if document.get(key))
    facts = {
        "Game by": credit,
        "Source": document.get("source") or "",
        "Runs": ", ".join(run.name for run in subject.runs),
        **{section.title: section.headline for section in sections},
        "Rules hash": subject.variant.rules_hash,
    }
    lines = (
        f"<dt>{text(name)}</dt><dd{' class=hash' if name == 'Rules hash' else ''}>{text(value)}</dd>"
        for name, value in facts.items()
        if value
    )
    return f'<dl class="facts">{"".join(lines)}</dl>'


def _made_by(subject: Subject, settings: Settings, command: str) -> Section:
    code = code_version()
    facts = {
        "Command": command,
        "Budget": f"{settings.minutes:g} minutes, {settings.seeds} seeds from {settings.seed}, depth {settings.depth}",
        "Code": f"{code['commit'] or 'no checkout'}{' with changes' if code['changed'] else ''}",
        "Versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        "Configs": ", ".join(f"{run.name} {run.config.config_hash()}" for run in subject.runs),
    }
    lines = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items() if value)
    words = (
        "Every figure has its numbers as CSV, in the page and beside it, and as PNG and SVG in the folder figures/. "
        "The same command with the same folder makes the page again from the games that are kept there."
    )
    return Section("How this was made", f'{paragraph(words)}<dl class="facts">{lines}</dl>')

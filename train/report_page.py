"""A report as one HTML file that needs nothing else, and its figures and numbers as files beside it.

A page is a list of sections. A section has HTML of its own making (everything that comes from outside goes through
`text`), pictures (inline SVG) and tables (CSV, in the page as `data:` links). Nothing is loaded from anywhere.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from models.storage import naming_full_disk, write_atomically
from train.report_drawing import PRINT_DPI, Drawing
from train.report_style import CSS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = "figures"
"""Folder of the pictures, beside the page."""
SAFE_NAME = re.compile(r"[a-z0-9_]+")
STROKES = "stroke-linejoin:round;stroke-linecap:butt"
"""What the style sheet in an SVG file of matplotlib says, which would hold for the whole page."""
_LOOSE = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)
_ID = re.compile(r'\sid="([^"]*)"')
_USED = re.compile(r"""(?:url\(#|href="#)([^)"]+)""")
_BOX = re.compile(r'viewBox="[^"]*"')


@dataclass(frozen=True)
class Picture:
    """A picture in a page.

    Attributes:
        svg: one element, for the page.
        file: the content of its SVG file.
        png: makes the content of its PNG file.
    """

    svg: str
    file: str
    png: Callable[[], bytes]

    @classmethod
    def of_drawing(cls, drawing: Drawing, *, scale: float = 1.0) -> Picture:
        """Return a drawing as a picture; `scale` 1 shows a cell at its usual size."""
        return cls(drawing.to_svg(scale=scale), drawing.to_svg(), drawing.to_png)

    @classmethod
    def of_figure(cls, figure: Figure, name: str, title: str) -> Picture:
        """Return a figure of matplotlib as a picture.

        Args:
            figure: the figure.
            name: of the file; the same figure and name give the same bytes.
            title: what it shows, for readers who cannot see it.
        """
        file = _rendered(figure, name)
        return cls(_inline(file, name, title), file, lambda: _as_png(figure))


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        body: its HTML.
        pictures: by the names of their files, without ending.
        tables: CSV by the names of their files, without ending.
        headline: its result in a line of plain text, or "".
    """

    title: str
    body: str
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    headline: str = ""

    @property
    def anchor(self) -> str:
        """Name of the section inside the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def write_files(folder: Path, section: Section) -> None:
    """Write the files of a section's tables and pictures into a folder, made if missing.

    Raises:
        OSError: the folder cannot be written; names the file.
    """
    with naming_full_disk(folder):
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    for name, rows in section.tables.items():
        write_atomically(folder / f"{_safe(name)}.csv", rows.encode())
    for name, picture in section.pictures.items():
        stem = folder / FIGURES / _safe(name)
        write_atomically(stem.with_suffix(".svg"), picture.file.encode())
        write_atomically(stem.with_suffix(".png"), picture.png())


def write_html(path: Path, title: str, head: str, sections: Sequence[Section]) -> None:
    """Write a page; see `page_html`."""
    write_atomically(path, page_html(title, head, sections).encode())


def page_html(title: str, head: str, sections: Sequence[Section]) -> str:
    """Return a page as one HTML document.

    Args:
        title: of the page.
        head: HTML below the title.
        sections: in their order.
    """
    links = "".join(f'<a href="#{section.anchor}">{text(section.title)}</a>' for section in sections)
    parts = "".join(
        f'<section id="{section.anchor}"><h2>{text(section.title)}</h2>{section.body}</section>' for section in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{CSS}</style></head>\n"
        f'<body><header><h1>{text(title)}</h1>{head}<nav aria-label="Contents">{links}</nav></header>\n'
        f"<main>{parts}</main></body></html>\n"
    )


# --- Parts of a section -----------------------------------------------------------------------------------------------


def text(words: object) -> str:
    """Return a text as HTML."""
    return escape(str(words))


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph; `kind` is a class of the style sheet."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def grid(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a table.

    Args:
        headings: of the columns.
        rows: cells in plain text.
        words: so many columns from the left hold words, the others numbers.
    """
    kinds = ["" if number < words else ' class="number"' for number in range(len(headings))]
    top = "".join(f'<th scope="col"{kind}>{text(name)}</th>' for kind, name in zip(kinds, headings))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{text(cell)}</td>" for kind, cell in zip(kinds, row)) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def figure(picture: Picture, caption: str = "", kind: str = "") -> str:
    """Return a picture with its caption in plain text; `kind` is a class of the style sheet."""
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}"><div class="wide">{picture.svg}</div>{below}</figure>'


def source_line(name: str, rows: str, command: str) -> str:
    """Return where the numbers of a figure or a table are, and the command that makes them again.

    Args:
        name: of the CSV file, without ending.
        rows: its content.
        command: one line.
    """
    content = base64.b64encode(rows.encode()).decode()
    link = f'<a download="{_safe(name)}.csv" href="data:text/csv;charset=utf-8;base64,{content}">{name}.csv</a>'
    return f'<p class="source">Numbers: {link}. Made by <code>{text(command)}</code></p>'


def folded(summary: str, body: str, kind: str = "") -> str:
    """Return HTML that a reader opens; `summary` is plain text, `kind` a class of the style sheet."""
    return f'<details class="{kind}"><summary>{text(summary)}</summary>{body}</details>'


# --- Pictures of matplotlib -------------------------------------------------------------------------------------------


def _rendered(figure: Figure, name: str) -> str:
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    return buffer.getvalue()


def _as_png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PRINT_DPI)
    return buffer.getvalue()


def _inline(file: str, name: str, title: str) -> str:
    """Return an SVG file as an element that may stand beside others: its own names, and no style but its own."""
    element = _LOOSE.sub("", file[file.index("<svg") :]).replace("xlink:href", "href")
    used = set(_USED.findall(element))
    element = _ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", element)
    element = _USED.sub(lambda found: found[0].replace(f"#{found[1]}", f"#{name}-{found[1]}"), element)
    box = _BOX.search(element)
    assert box is not None
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} style="{STROKES}" role="img" aria-label="{text(title)}">'
    )
    return f"{opening}<title>{text(title)}</title>{element[element.index('>') + 1 :].strip()}"


def _safe(name: str) -> str:
    if not SAFE_NAME.fullmatch(name):
        raise ValueError(f"file name: expected small letters, digits and _, got {name!r}")
    return name

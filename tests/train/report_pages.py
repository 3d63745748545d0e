"""Reads a report's HTML as strictly as a browser forgives: what every page must fulfil."""

import base64
import csv
import io
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}
LOADING = {"src", "href", "srcset", "data", "poster", "action", "xlink:href"}
NOT_A_NUMBER = re.compile(r"(?<![A-Za-z])(nan|inf)(?![A-Za-z])", re.IGNORECASE)


@dataclass
class ReadPage(HTMLParser):
    """A page that was read.

    Attributes:
        faults: what is wrong with it.
        text: what a reader sees, without style.
        tables: CSV by file name, from its links.
        anchors: ids. targets: ids that links name.
        pictures: how many SVG elements.
    """

    faults: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    anchors: list[str] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    pictures: int = 0
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(tag, dict(attrs))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes {self._open[-1:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.words)

    def _look(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in ("script", "link", "iframe", "object", "embed"):
            self.faults.append(f"<{tag}> at {self.getpos()}")
        for name in LOADING & attributes.keys():
            value = attributes[name] or ""
            if value.startswith("data:text/csv"):
                rows = base64.b64decode(value.partition("base64,")[2], validate=True).decode()
                self.tables[attributes["download"] or ""] = list(csv.reader(io.StringIO(rows)))
            elif value.startswith("#"):
                self.targets.add(value[1:])
            else:
                self.faults.append(f"{name}={value} at {self.getpos()}")
        if "id" in attributes:
            self.anchors.append(attributes["id"] or "")
        if tag == "img" and not attributes.get("alt"):
            self.faults.append(f"img without alt at {self.getpos()}")
        if tag == "svg":
            self.pictures += 1
            if not attributes.get("aria-label"):
                self.faults.append(f"svg without a title at {self.getpos()}")


def read_page(html: str) -> ReadPage:
    """Return a page with all its faults."""
    page = ReadPage()
    page.feed(html)
    page.close()
    page.faults += [f"<{tag}> is not closed" for tag in page._open]
    page.faults += [f"id {name} twice" for name in {*page.anchors} if page.anchors.count(name) > 1]
    page.faults += [f"no id {name}" for name in page.targets - {*page.anchors}]
    page.faults += [f"{found[0]!r} in the text" for found in NOT_A_NUMBER.finditer(page.text)]
    page.faults += [f"{name} has {len({*map(len, rows)})} widths" for name, rows in page.tables.items()
                    if len({*map(len, rows)}) != 1]  # fmt: skip
    style = html.partition("<style>")[2].partition("</style>")[0]
    page.faults += [f"the style loads {found}" for found in re.findall(r"url\(|@import|https?:", style)]
    return page

"""Small pictures as lists of shapes that become SVG for a page and PNG for print: the same shapes, so the same picture.

Units are cells of a board; x runs to the right, y upwards.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL = 40
"""Pixels of a cell in SVG."""
PRINT_INCHES = 0.4
"""Of a cell in PNG."""
PRINT_DPI = 300
POINTS_PER_INCH = 72
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
HALF_CAPITAL = 0.36
"""Half of a capital's height over the font size: so far below its middle is its base line."""


class Shape(Protocol):
    """A part of a drawing."""

    def to_svg(self, top: float) -> str:
        """Return the element; `top` is the y of the picture's upper edge."""

    def draw(self, axes: Axes) -> None:
        """Draw on axes of matplotlib."""


@dataclass(frozen=True)
class Tile:
    """A filled rectangle: its lower left corner, size and colour."""

    x: float
    y: float
    width: float
    height: float
    fill: str

    def to_svg(self, top: float) -> str:
        """See `Shape`."""
        place = f'x="{_px(self.x)}" y="{_px(top - self.y - self.height)}"'
        return f'<rect {place} width="{_px(self.width)}" height="{_px(self.height)}" fill="{self.fill}"/>'

    def draw(self, axes: Axes) -> None:
        """See `Shape`."""
        from matplotlib.patches import Rectangle

        patch = Rectangle((self.x, self.y), self.width, self.height, facecolor=self.fill, linewidth=0)
        axes.add_patch(patch)


@dataclass(frozen=True)
class Disc:
    """A disc: its middle, radius, colour, and the colour and width of its edge; "none" is no colour."""

    x: float
    y: float
    radius: float
    fill: str
    edge: str = "none"
    width: float = 0.04

    def to_svg(self, top: float) -> str:
        """See `Shape`."""
        line = "" if self.edge == "none" else f' stroke="{self.edge}" stroke-width="{_px(self.width)}"'
        place = f'cx="{_px(self.x)}" cy="{_px(top - self.y)}" r="{_px(self.radius)}"'
        return f'<circle {place} fill="{self.fill}"{line}/>'

    def draw(self, axes: Axes) -> None:
        """See `Shape`."""
        from matplotlib.patches import Circle

        width = self.width * PRINT_INCHES * POINTS_PER_INCH
        axes.add_patch(Circle((self.x, self.y), self.radius, facecolor=self.fill, edgecolor=self.edge, linewidth=width))


@dataclass(frozen=True)
class Stroke:
    """A straight line: its ends, colour and width."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float = 0.1

    def to_svg(self, top: float) -> str:
        """See `Shape`."""
        ends = f'x1="{_px(self.x1)}" y1="{_px(top - self.y1)}" x2="{_px(self.x2)}" y2="{_px(top - self.y2)}"'
        return f'<line {ends} stroke="{self.colour}" stroke-width="{_px(self.width)}" stroke-linecap="round"/>'

    def draw(self, axes: Axes) -> None:
        """See `Shape`."""
        width = self.width * PRINT_INCHES * POINTS_PER_INCH
        ends = (self.x1, self.x2), (self.y1, self.y2)
        axes.plot(*ends, color=self.colour, linewidth=width, solid_capstyle="round")


@dataclass(frozen=True)
class Words:
    """A short text about its middle, in capitals' height as a share of a cell."""

    x: float
    y: float
    text: str
    size: float
    fill: str

    def to_svg(self, top: float) -> str:
        """See `Shape`."""
        place = f'x="{_px(self.x)}" y="{_px(top - self.y + HALF_CAPITAL * self.size)}"'
        style = f'font-family="{FONT}" font-size="{_px(self.size)}" text-anchor="middle" fill="{self.fill}"'
        return f"<text {place} {style}>{escape(self.text)}</text>"

    def draw(self, axes: Axes) -> None:
        """See `Shape`."""
        size = self.size * PRINT_INCHES * POINTS_PER_INCH
        axes.text(self.x, self.y, self.text, fontsize=size, color=self.fill, ha="center", va="center_baseline")


@dataclass(frozen=True)
class Drawing:
    """A picture.

    Attributes:
        shapes: the later ones lie above.
        left: x of its left edge.
        bottom: y of its lower edge.
        width: in cells.
        height: in cells.
        title: what it shows, for readers who cannot see it.
    """

    shapes: Sequence[Shape]
    left: float
    bottom: float
    width: float
    height: float
    title: str

    def to_svg(self, *, scale: float = 1.0) -> str:
        """Return the picture as one SVG element; `scale` 1 shows a cell at `CELL` pixels."""
        size = f'width="{_px(self.width * scale)}" height="{_px(self.height * scale)}"'
        box = f'viewBox="{_px(self.left)} 0 {_px(self.width)} {_px(self.height)}"'
        top = self.bottom + self.height
        body = "".join(shape.to_svg(top) for shape in self.shapes)
        title = escape(self.title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" aria-label="{title}">'
            f"<title>{title}</title>{body}</svg>"
        )

    def to_png(self) -> bytes:
        """Return the picture as a PNG file for print."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self.width * PRINT_INCHES, self.height * PRINT_INCHES), dpi=PRINT_DPI)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        for number, shape in enumerate(self.shapes):
            before = set(axes.get_children())
            shape.draw(axes)
            for artist in set(axes.get_children()) - before:
                artist.set_zorder(number + 1)
        axes.set_xlim(self.left, self.left + self.width)
        axes.set_ylim(self.bottom, self.bottom + self.height)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        return buffer.getvalue()


def _px(cells: float) -> str:
    """Return a length in pixels, as short as it can be."""
    return f"{cells * CELL:.1f}".removesuffix(".0")

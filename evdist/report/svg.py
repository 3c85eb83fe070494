"""Drawings as text: SVG that takes its colours from the page, so that they follow light and dark.

A shape says what it is by its class (`sure`, `axis`, ...) and, of which cluster, by `--hue`; the
style sheet of the page does the rest. A shape with a title tells it when it is pointed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.sketch.palette import COLOURS

#: Narrow on purpose: scaled to the width of a phone, the letters stay legible.
WIDTH = 420
#: Height of a row of bars, and letters of a name beside it.
ROW, LETTERS = 19, 22
#: Width of a letter, about.
LETTER = 6.4
#: Steps of a scale of shades.
SHADES = 8


@dataclass(frozen=True)
class Part:
    """A piece of a bar: how long, of which class, in which colour, and what it tells."""

    value: float
    kind: str
    hue: str = ""
    title: str = ""


@dataclass(frozen=True)
class Bar:
    """A row of pieces, what stands before it and behind it; of which cluster, if of one."""

    name: str
    parts: Sequence[Part]
    end: str = ""
    cluster: int | None = None


@dataclass
class Drawing:
    """An SVG element that grows."""

    label: str
    height: float
    parts: list[str] = field(default_factory=list)
    #: Left, top and size of a square image in it, for the script.
    box: str = ""

    def add(self, tag: str, text: str = "", title: str = "", **attributes: Any) -> None:
        """One shape; `kind` is its class, and an underscore in a name a hyphen."""
        said = "".join(
            f' {"class" if name == "kind" else name.replace("_", "-")}="{escape(_short(value))}"'
            for name, value in attributes.items()
            if value not in (None, "")
        )
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(f"<{tag}{said}>{inner}{escape(text)}</{tag}>")

    def text(self, x: float, y: float, text: str, anchor: str = "middle", **more: Any) -> None:
        """Letters whose middle line is at y."""
        # An attribute for the middle line would be less code, but some viewers ignore it.
        self.add("text", text, x=x, y=y + 4, text_anchor=anchor, **more)

    def upright(self, y: float, text: str) -> None:
        """The name of the axis on the left, from below to above."""
        turned = f"translate(12 {y})rotate(-90)"
        self.add("text", text, kind="axis", text_anchor="middle", transform=turned)

    def __html__(self) -> str:
        """What jinja2 writes as it is; every text in it is escaped."""
        box = f"0 0 {WIDTH} {_short(self.height)}"
        inner = "".join(self.parts)
        square = f' data-box="{self.box}"' if self.box else ""
        label = escape(self.label)
        return f'<svg viewBox="{box}" role="img" aria-label="{label}"{square}>{inner}</svg>'


def hue(cluster: int) -> str:
    """The colour of a cluster, as the style of a shape."""
    return f"--hue:var(--c{cluster % len(COLOURS)})"


def bars(rows: Sequence[Bar], label: str, axis: str, *, line: float | None = None) -> Drawing:
    """Rows of pieces side by side, over one axis from 0; a dotted `line` across all."""
    left = 8 + LETTER * min(LETTERS, max(len(row.name) for row in rows))
    right = WIDTH - 10 - LETTER * max(len(row.end) for row in rows)
    top = max([sum(part.value for part in row.parts) for row in rows] + [line or 0.0])
    # When all is sure there is no bar: an axis to 0.05 then, not one that magnifies nothing.
    scale = (right - left) / max(top, 0.05)
    drawing = Drawing(label, ROW * len(rows) + 40)
    foot = ROW * len(rows) + 4
    for value in ticks(0.0, max(top, 0.05), 5):
        drawing.add("path", kind="grid", d=f"M{_short(left + value * scale)} 2V{foot}")
        drawing.text(left + value * scale, foot + 10, f"{value:,.6g}", kind="axis")
    for at, row in enumerate(rows):
        y, x = ROW * at + 4, left
        name = row.name if len(row.name) <= LETTERS else row.name[: LETTERS - 1] + "…"
        drawing.text(left - 6, y + ROW / 2 - 2, name, "end", data_cluster=row.cluster)
        for part in row.parts:
            if part.value > 0:
                drawing.add(
                    "rect", title=part.title, kind=f"bar {part.kind}", style=part.hue,
                    data_cluster=row.cluster, x=x, y=y, width=part.value * scale, height=ROW - 5,
                )  # fmt: skip
                x += part.value * scale
        drawing.text(x + 4, y + ROW / 2 - 2, row.end, "start", kind="axis")
    if line is not None:
        drawing.add("path", kind="line dotted", d=f"M{_short(left + line * scale)} 2V{foot}")
    drawing.text((left + right) / 2, foot + 27, axis, kind="axis")
    return drawing


def curves(
    named: Sequence[tuple[str, NDArray[np.float64]]], label: str, across: str, up: str
) -> Drawing:
    """Values in their order; the axis is logarithmic where they are positive and fall tenfold."""
    every = np.concatenate([values for _, values in named])
    log = bool(every.min() > 0 and every.max() >= 10 * every.min())
    scaled = np.log10(every) if log else every
    low, high = float(scaled.min()), float(scaled.max())
    high = high if high > low else low + 1.0
    longest = max(max(len(values) for _, values in named) - 1, 1)
    left, right, top, foot = 62.0, WIDTH - 12.0, 12.0, 210.0

    def place(x: Any, y: Any) -> tuple[Any, Any]:
        return left + x / longest * (right - left), foot - (y - low) / (high - low) * (foot - top)

    drawing = Drawing(label, foot + 40)
    for value in _powers(low, high) if log else ticks(low, high, 5):
        y = _short(place(0, value)[1])
        drawing.add("path", kind="grid", d=f"M{left} {y}H{right}")
        drawing.text(left - 6, float(y), f"{10**value if log else value:.3g}", "end", kind="axis")
    for value in ticks(0, longest, 6):
        if value == int(value):
            drawing.text(place(value, 0)[0], foot + 12, f"{value:,.0f}", kind="axis")
    for k, (name, values) in enumerate(named):
        x, y = place(np.arange(len(values)), np.log10(values) if log else values)
        told = f"{name}: {values[0]:.4g} to {values[-1]:.4g}"
        drawing.add("path", title=told, kind="line", style=hue(k), d=_path(x, y))
        if len(named) > 1:
            drawing.text(right, top + 16 * k, name, "end", kind="name", style=hue(k))
    drawing.text((left + right) / 2, foot + 30, across, kind="axis")
    drawing.upright(top + 100, up)
    return drawing


def shades(
    drawing: Drawing, values: NDArray[np.float64], box: tuple[float, float, float, float]
) -> None:
    """An image of numbers from 0 to 1, (rows, columns), into (left, top, width, height).

    Cells side by side of one shade are one rectangle, and all rectangles of a shade one shape.
    """
    left, top, width, height = box
    rows, columns = values.shape
    steps = np.ceil(np.clip(values, 0.0, 1.0) * SHADES).astype(int)
    # One cell is one unit: whole numbers are short.
    units = f"translate({left:g} {top:g})scale({width / columns:.4f} {height / rows:.4f})"
    for step in range(1, SHADES + 1):
        inside = np.pad(steps == step, ((0, 0), (1, 1))).astype(np.int8)
        turns = np.diff(inside, axis=1)
        row, first = np.nonzero(turns == 1)
        last = np.nonzero(turns == -1)[1]
        if len(row):
            runs = zip(row.tolist(), first.tolist(), last.tolist(), strict=True)
            path = "".join(f"M{a} {r}H{b}v1H{a}z" for r, a, b in runs)
            drawing.add("path", kind="shade", fill_opacity=step / SHADES, transform=units, d=path)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from low to high, `most` or a few less."""
    step = 10.0 ** np.floor(np.log10((high - low) / most))
    for times in (1, 2, 5, 10):
        first, last = np.ceil(low / (times * step)), np.floor(high / (times * step))
        if last - first < most:
            break
    return [float(f"{value * times * step:.10g}") for value in np.arange(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Logarithms of powers of ten, of 2 and 5 times these where they are few."""
    times = (1, 2, 5) if high - low < 3 else (1,)
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    found = [float(np.log10(t) + p) for p in powers for t in times]
    return [value for value in found if low <= value <= high]


def _path(x: Iterable[float], y: Iterable[float]) -> str:
    return "M" + "L".join(f"{_short(a)} {_short(b)}" for a, b in zip(x, y, strict=True))


def _short(value: Any) -> str:
    """Numbers with two digits behind the point at most; other things as they are."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

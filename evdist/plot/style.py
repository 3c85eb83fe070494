"""What all figures share: fresh axes, a light frame and the way to SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

INK = "#333333"
GRID = "#D9D9D9"
#: Beyond this, points are drawn as pixels even in vector files, which stay small that way.
RASTER_FROM = 2_000


def tint(colour: str, strength: float = 0.35) -> str:
    """The colour mixed with white; ``strength`` 1 leaves it, 0 gives white."""
    red, green, blue = (1.0 - strength * (1.0 - channel) for channel in to_rgb(colour))
    return to_hex((red, green, blue))


def new_axes(ax: Axes | None, width: float = 5.0, height: float = 3.6) -> Axes:
    """``ax`` itself, or the only axes of a fresh figure of that size in inches."""
    if ax is None:
        # Small on purpose: scaled to the width of a phone, 10-point text stays legible.
        ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    return ax


def plain_frame(ax: Axes, grid: Literal["x", "y", "both"] | None = None) -> None:
    """Open frame and, along axis ``grid`` ("x", "y" or "both"), pale lines behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=GRID, linewidth=0.7)


def legend_below(ax: Axes, ncols: int, handles: Sequence[Artist] | None = None) -> None:
    """A legend under the label of the x axis, where it hides no data."""
    inches = root_figure(ax).dpi_scale_trans
    lowered = ax.transAxes + ScaledTranslation(0.0, -0.48, inches)
    legend = ax.legend(
        handles=ax.get_legend_handles_labels()[0] if handles is None else handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=lowered,
        ncols=ncols,
        frameon=False,
        fontsize=8,
        columnspacing=1.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a class named "$5" is not a formula


def to_svg(drawn: Axes | Figure) -> bytes:
    """The whole figure as an SVG document, its letters drawn as shapes (no font is needed).

    Parameters
    ----------
    drawn : Axes or Figure
        What a function of this module gave.

    Examples
    --------
    >>> from evdist import plot
    >>> ax = plot.nonspecificity_curve([2, 3, 4], [0.3, 0.1, 0.2])
    >>> plot.to_svg(ax)[:5]
    b'<?xml'
    """
    return _image(drawn, "svg", dpi=160, metadata={"Date": None, "Creator": None})


def to_png(drawn: Axes | Figure) -> bytes:
    """The whole figure as a PNG image, sharp enough to print.

    Parameters
    ----------
    drawn : Axes or Figure
        What a function of this module gave.

    Examples
    --------
    >>> from evdist import plot
    >>> ax = plot.nonspecificity_curve([2, 3, 4], [0.3, 0.1, 0.2])
    >>> plot.to_png(ax)[1:4]
    b'PNG'
    """
    return _image(drawn, "png", dpi=160, metadata={"Software": None})


def _image(drawn: Axes | Figure, kind: str, *, dpi: int, metadata: dict[str, None]) -> bytes:
    figure = root_figure(drawn)
    buffer = BytesIO()
    with _laid_out(figure):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """The layout is made now: left to savefig, it costs a second drawing of everything."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def root_figure(drawn: Axes | Figure) -> Figure:
    """The figure that holds these axes, however deep they sit in it."""
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    if figure is None:
        raise ValueError(
            "The axes must belong to a figure, got axes that were removed from theirs."
        )
    return figure

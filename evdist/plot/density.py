"""Shepard diagram of any number of pairs, kept as a two-dimensional histogram.

Symbols
-------
delta   transformed dissimilarity of a pair, >= 0 (1: surely apart)
kappa   degree of conflict of the pair's mass functions, in [0, 1]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.patheffects import withStroke
from matplotlib.ticker import StrMethodFormatter
from numpy.typing import ArrayLike

from evdist.plot.style import INK, new_axes, plain_frame, root_figure
from evdist.sketch.pairs import CELLS, PairDensity

#: Its pale end left out: a cell with a single pair must still show on white.
PAIRS = ListedColormap(colormaps["YlGnBu"](np.linspace(0.3, 1.0, 256)))


def shepard(
    delta: ArrayLike | Iterable[tuple[ArrayLike, ArrayLike]] | PairDensity,
    kappa: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Degrees of conflict against dissimilarities, darker where there are more pairs.

    A good fit lies along the diagonal. Memory does not depend on the number of pairs.

    Parameters
    ----------
    delta : array, iterable of blocks ``(delta, kappa)``, or PairDensity
        Transformed dissimilarities of the pairs; blocks and densities bring both axes.
    kappa : array of the same shape, optional
        Degrees of conflict; needed when ``delta`` is an array, and only then.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    density = _gather(delta, kappa)
    if not density.n_pairs:
        raise ValueError("A Shepard diagram needs at least one pair, got none.")
    ax = new_axes(ax, height=4.2)
    edges = np.linspace(0.0, 1.0, CELLS + 1)
    counts = np.ma.masked_equal(density.counts.T, 0)
    mesh = ax.pcolormesh(
        edges * density.top,
        edges,
        counts,
        norm=LogNorm(vmin=1, vmax=max(10, int(counts.max()))),
        cmap=PAIRS,
        rasterized=True,
        gid="pairs",
    )
    light = [withStroke(linewidth=2.6, foreground="white")]
    ax.plot([0, 1], [0, 1], "--", color=INK, lw=1.2, path_effects=light, gid="diagonal")
    used = np.flatnonzero(density.counts.any(axis=1))[-1] + 1
    ax.set(
        xlim=(0.0, max(1.0, edges[used] * density.top)),
        ylim=(0.0, 1.0),
        xlabel="transformed dissimilarity δ",
        ylabel="degree of conflict κ",
    )
    pairs = f"{density.n_pairs:,} pair" + ("s" if density.n_pairs > 1 else "")
    ax.set_title(f"Shepard diagram: {pairs}, stress {density.stress:.3g}", fontsize=11)
    # Plain numbers: formulas such as 10^3 take half of the time of the whole figure.
    bar = root_figure(ax).colorbar(mesh, ax=ax, format=StrMethodFormatter("{x:,.0f}"))
    bar.ax.minorticks_off()
    bar.set_label("pairs per cell")
    plain_frame(ax)
    return ax


def _gather(delta: Any, kappa: Any) -> PairDensity:
    """The density of the pairs in any of the forms :func:`shepard` takes."""
    if isinstance(delta, PairDensity):
        return delta
    density = PairDensity()
    if kappa is not None:
        return density.add(delta, kappa)
    if isinstance(delta, np.ndarray):
        raise ValueError("kappa is missing: a Shepard diagram compares delta with kappa.")
    for block_delta, block_kappa in delta:
        density.add(block_delta, block_kappa)
    return density

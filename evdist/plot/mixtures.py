"""Gaussian mixtures and planes of attributes: ellipses, scatter matrices, BIC curves.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping, figures 11, 16
and 20 (isodensity ellipses), 12 and 17 (approximations by pairs of attributes), 19 (BIC).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from evdist.partition import CredalPartition
from evdist.plot.hulls import approximations
from evdist.plot.style import INK, RASTER_FROM, legend_below, new_axes, plain_frame
from evdist.sketch.palette import cluster_colour, cluster_marker, some_rows

#: Attributes of a scatter matrix that can be read.
MOST_ATTRIBUTES = 6


def ellipses(
    means: ArrayLike,
    covariances: ArrayLike,
    X: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    columns: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Axes:
    """Objects in the plane of two attributes, and a standard deviation around each mean.

    Parameters
    ----------
    means, covariances : (c, d) and (c, d, d) arrays
        ``means_`` and ``covariances_`` of a :class:`evdist.mixture.GaussianMixture`.
    X : (n, d) array
        The objects.
    labels : (n,) integers, optional
        Clusters of the objects, for their colours.
    columns : pair of int
        The attributes to show.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import plot
    >>> from evdist.mixture import GaussianMixture
    >>> X = load_iris().data
    >>> mixture = GaussianMixture(3, random_state=0).fit(X)
    >>> ax = plot.ellipses(mixture.means_, mixture.covariances_, X, labels=mixture.predict(X))
    """
    V, S, X = (np.asarray(values, dtype=float) for values in (means, covariances, X))
    c, d = V.shape
    if S.shape != (c, d, d) or X.ndim != 2 or X.shape[1] != d:
        raise ValueError(
            f"means, covariances and X must be (c, d), (c, d, d) and (n, d), got {V.shape}, "
            f"{S.shape} and {X.shape}."
        )
    at = list(columns)
    ax = new_axes(ax, height=4.2)
    shown = some_rows(len(X), 10 * RASTER_FROM, np.empty(0, dtype=np.intp))
    groups = np.zeros(len(X), int) if labels is None else np.asarray(labels)
    for k in np.unique(groups):
        mine = shown[groups[shown] == k]
        colour = "#999999" if labels is None else cluster_colour(int(k))
        ax.plot(
            *X[mine][:, at].T, cluster_marker(int(k)), ms=3.5, color=colour, alpha=0.6,
            rasterized=len(shown) > RASTER_FROM, gid=f"objects-{k}",
        )  # fmt: skip
    for k in range(c):
        values, axes = np.linalg.eigh(S[k][np.ix_(at, at)])
        angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        width, height = (2 * np.sqrt(np.maximum(values[::-1], 0.0))).tolist()
        ax.add_patch(
            Ellipse(
                (V[k, at[0]], V[k, at[1]]), width, height, angle=angle, fill=False, lw=1.8,
                ec=INK, gid=f"ellipse-{k}",
            )
        )  # fmt: skip
        ax.plot(*V[k, at][:, None], "*", ms=10, color=INK, gid=f"mean-{k}")
    ax.set(xlabel=f"column {at[0]}", ylabel=f"column {at[1]}", title="Covariances of the clusters")
    plain_frame(ax)
    return ax


def scatter_matrix(partition: CredalPartition, X: Any, *, y: ArrayLike | None = None) -> Figure:
    """Lower and upper approximations in the plane of every pair of attributes.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to draw.
    X : (n, d) array or data frame
        At most six attributes: choose the columns to look at.
    y : (n,) array, optional
        Known classes, as in :func:`evdist.plot.approximations`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import ECM, plot
    >>> X = load_iris().data
    >>> figure = plot.scatter_matrix(ECM(3, random_state=0).fit(X).credal_partition_, X)
    >>> len(figure.axes)
    16
    """
    names = [str(name) for name in getattr(X, "columns", ())]
    values = np.asarray(X, dtype=float)
    if values.ndim != 2 or not 2 <= values.shape[1] <= MOST_ATTRIBUTES:
        raise ValueError(
            f"A scatter matrix needs 2 to {MOST_ATTRIBUTES} attributes, got shape {values.shape}. "
            "Choose columns."
        )
    d = values.shape[1]
    names = names or [f"column {a}" for a in range(d)]
    figure = Figure(figsize=(2.1 * d, 2.1 * d), layout="constrained")
    panels = figure.subplots(d, d, squeeze=False)
    for a, b in product(range(d), range(d)):
        ax = panels[a, b]
        if a == b:
            ax.text(
                0.5, 0.5, names[a], ha="center", va="center", fontsize=10, parse_math=False,
                transform=ax.transAxes,
            )  # fmt: skip
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color("#BBBBBB")
            continue
        approximations(partition, values[:, [b, a]], y=y, ax=ax)
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
        for text in list(ax.texts):
            text.remove()
        ax.set(xlabel="", ylabel="", title="")
        for line in ax.lines:
            line.set_markersize(3)
        ax.tick_params(labelsize=7, labelbottom=a == d - 1, labelleft=b == 0)
    figure.suptitle("Lower and upper approximations", fontsize=12)
    return figure


def bic_curves(bics: Any, *, ax: Axes | None = None) -> Axes:
    """BIC of mixtures against the number of components, a curve for each covariance model.

    Parameters
    ----------
    bics : DataFrame
        ``bics_`` of a :class:`evdist.mixture.GaussianMixture`, or those of a `Selection`: numbers
        in rows, models in columns; -inf where a fit has failed. The best is circled.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import plot
    >>> from evdist.mixture import select_mixture
    >>> chosen = select_mixture(load_iris().data, range(1, 5), ["EII", "VVV"], random_state=0)
    >>> plot.bic_curves(chosen.bics).get_xlabel()
    'components'
    """
    values = np.asarray(bics, dtype=float)
    if values.ndim != 2 or not np.isfinite(values).any():
        raise ValueError(
            "bics must be a table of numbers of components and models with a finite value, got "
            f"shape {values.shape}."
        )
    values = np.where(np.isfinite(values), values, np.nan)
    numbers: NDArray[Any] = np.asarray(bics.index)
    ax = new_axes(ax, 6.0, 4.2)
    for k, model in enumerate(bics.columns):
        look: dict[str, Any] = {"color": cluster_colour(k), "marker": cluster_marker(k)}
        ax.plot(numbers, values[:, k], ms=5, lw=1.1, label=str(model), gid=f"bic-{model}", **look)
    row, column = np.unravel_index(np.nanargmax(values), values.shape)
    best = (numbers[row], values[row, column])
    ax.plot(*best, "o", ms=14, mfc="none", mec=INK, gid="best")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    title = f"Best: {bics.columns[column]}, {numbers[row]} components"
    ax.set(xlabel="components", ylabel="BIC (larger is better)", title=title)
    legend_below(ax, 7)
    plain_frame(ax, grid="y")
    return ax

"""Spatial evidential c-means: the pixels around a pixel speak for it too.

Reference: Denoeux, slides "Belief functions and clustering" (2017), "Other variants of ECM", after
Lelandais, Ruan, Denoeux, Vera, Gardin (2014), Medical Image Analysis 18. The spatial term is that
of fuzzy c-means in Ahmed, Yamany, Mohamed, Farag, Moriarty (2002), IEEE TMI 21.

    J(M, V) = sum_i w_i [ sum_j |A_j|^alpha m_ij^beta D_ij^2 + delta^2 m_i0^beta ]
    D_ij^2  = ( |x_i - vbar_j|^2 + eta mean_{r in N(i)} |x_r - vbar_j|^2 ) / (1 + eta)

N(i) are the other pixels of the window of 2 `radius` + 1 pixels a side around pixel i, as far as
the image goes. With z_i the mean of x_i and its neighbours with these weights, and s_i^2 their mean
squared distance from z_i,

    D_ij^2  = |z_i - vbar_j|^2 + s_i^2:

ECM of the rows (z_i, s_i) with prototypes whose last coordinate is 0. A pixel whose window is not
all of one kind (s_i large) is far from every set alike, so that its masses are more even and, where
delta allows, on the empty set.

Differs:

* The slides name SECM and give no equations, and the article of Lelandais et al. was not at hand:
  the term of Ahmed et al., in which pixels with like neighbours are cheap, stands for theirs.
* Ahmed et al. do not divide by 1 + eta; here delta keeps its meaning, whatever eta is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.ecm.base import MeansClusterer, beta_for, checked_model, delta_for
from evdist.ecm.solver import Floats, Model, Sums, prototypes_from
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.checks import integer, non_negative

_FAMILIES = ("simple", "pairs", "full", "select")


def window_rows(X: NDArray[Any], shape: tuple[int, ...], radius: int, eta: float) -> Floats:
    """(z_i, s_i) of each pixel, (n, d + 1); pixels in the order of `image.reshape(-1, d)`."""
    image = np.asarray(X, dtype=float).reshape(*shape, X.shape[1])
    image = image - image.mean(axis=tuple(range(len(shape))))  # squares of small numbers
    sums, squares, count = np.zeros_like(image), np.zeros(shape), np.zeros(shape)
    for shift in product(range(-radius, radius + 1), repeat=len(shape)):
        here = tuple(slice(max(-t, 0), min(m, m - t)) for t, m in zip(shift, shape, strict=True))
        there = tuple(slice(max(t, 0), min(m, m + t)) for t, m in zip(shift, shape, strict=True))
        if any(shift) and image[there].size:
            sums[here] += image[there]
            squares[here] += (image[there] ** 2).sum(axis=-1)
            count[here] += 1
    # A pixel without neighbours (an image of one pixel) speaks for itself.
    share = np.where(count > 0, eta / (1.0 + eta), 0.0)
    many = np.maximum(count, 1)
    z = (1 - share)[..., None] * image + (share / many)[..., None] * sums
    square = (1 - share) * (image**2).sum(axis=-1) + share / many * squares
    spread = np.sqrt(np.maximum(square - (z**2).sum(axis=-1), 0.0))
    moved = z.reshape(len(X), -1) + np.asarray(X, dtype=float).mean(axis=0)
    return np.column_stack([moved, spread.ravel()])


@dataclass(frozen=True, eq=False)
class SpatialModel(Model):
    """As a model of ECM for rows (z_i, s_i): the last coordinate of the prototypes stays 0."""

    def __post_init__(self) -> None:
        flat = np.array(self.prototypes, dtype=float)
        flat[:, -1] = 0.0
        object.__setattr__(self, "prototypes", flat)

    def step(self, sums: Sums, *, move: bool = True) -> Model:
        """The prototypes that minimise J; their coordinates do not depend on each other."""
        return replace(self, prototypes=prototypes_from(self, sums)) if move else self

    def of_pixels(self) -> Model:
        """The model of single pixels, whose neighbours are not known."""
        V = self.prototypes[:, :-1]
        return Model(self.focal_sets, V, self.alpha, self.beta, self.delta)


@dataclass(eq=False, repr=False)
class SECM(MeansClusterer):
    """Spatial evidential c-means: segments an image, using the neighbours of each pixel.

    X has a row for each pixel, in the order of `image.reshape(-1, channels)`; `image_shape`
    gives their arrangement. Without it there are no neighbours, and the result is that of ECM.

    Experimental: a reconstruction. The article of Lelandais, Ruan, Denoeux, Vera and Gardin (2014)
    was not at hand; the spatial term of fuzzy c-means in Ahmed et al. (2002) stands for theirs.

    Parameters
    ----------
    n_clusters : int, default=4
        Number of clusters.
    image_shape : sequence of int or None, default=None
        Height and width of the image, or the sides of a volume; their product is the number of
        rows of X.
    radius : int, default=1
        Neighbours are the pixels of the window of 2 radius + 1 pixels a side.
    spatial_weight : float, default=4
        eta, the total weight of the neighbours, where the pixel itself has weight 1; 0 is ECM.
        With 8 and radius 1, all nine pixels of a 2-D window have the same weight.
    alpha : float, default=1
        Weight |A|^alpha of sets of several clusters: the larger, the more specific the masses.
    beta : float above 1 or "auto", default="auto"
        Fuzzifier: near 1, almost all mass is on one set. "auto" is 2, and less where there are
        many channels; see `ECM`.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of X. "auto" is the root mean square of the
        distances between two pixels.
    focal_sets : {"simple", "pairs", "full", "select"} or FocalSets, default="simple"
        As in `ECM`.
    pair_neighbours : int, default=2
        With "select": two clusters form a pair if each is among this many nearest of the other.
    init : "k-means++" or (n_clusters, d) array of prototypes, default="k-means++"
        Prototypes to start from.
    n_init : int, default=5
        Number of "k-means++" starts, compared on at most 20,000 pixels; the best is continued.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts: an int gives the same result every time.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the pixels.
    labels_ : (n,) int array
        Cluster of maximum plausibility; the image is ``labels_.reshape(image_shape)``.
    prototypes_ : (c, d) array
        Centres of the clusters. `predict` treats pixels separately, without neighbours; for
        another image fit with ``init=prototypes_``.
    beta_, delta_ : float
        The fuzzifier and the distance to the empty set that were used.
    objective_ : float
        The objective at the end.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist import SECM
    >>> image = np.zeros((12, 12))
    >>> image[:, 6:] = 1
    >>> noisy = image + np.random.default_rng(0).normal(0, 0.5, image.shape)
    >>> model = SECM(2, image_shape=(12, 12), random_state=0).fit(noisy.reshape(-1, 1))
    >>> segments = model.labels_.reshape(12, 12)
    >>> bool((segments[:, :5] != segments[:, 7:].max()).all())
    True
    """

    #: Read by the checks and the descent that all prototype-based clusterers share.
    metric = "euclidean"

    n_clusters: int = 4
    _: KW_ONLY
    image_shape: Sequence[int] | None = None
    radius: int = 1
    spatial_weight: float = 4.0
    alpha: float = 1.0
    beta: float | str = "auto"
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "simple"
    pair_neighbours: int = 2
    init: str | ArrayLike = "k-means++"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def _descended(self, X: NDArray[Any]) -> NDArray[Any]:
        eta = non_negative("spatial_weight", self.spatial_weight)
        radius = integer("radius", self.radius, 1)
        if self.image_shape is None:
            return np.column_stack([X, np.zeros(len(X), X.dtype)])
        return window_rows(X, _sides(self.image_shape, len(X)), radius, eta)

    def _start(self, X: NDArray[Any], w: NDArray[np.float64] | None) -> SpatialModel:
        integer("pair_neighbours", self.pair_neighbours, 1)
        delta, beta = delta_for(self.delta, X, w), beta_for(self.beta, *X.shape)
        plain = checked_model(self, *X.shape, beta=beta, families=_FAMILIES, delta=delta)
        (n, d), f = X.shape, len(plain.focal_sets)
        check_memory(
            {"masses": 4 * n * f, "windows": 8 * n * (4 * d + 6)}, "Use fewer focal sets.",
            what=f"SECM of {n:,} pixels with {f} focal sets",
        )  # fmt: skip
        V = np.column_stack([plain.prototypes, np.zeros(len(plain.prototypes))])
        return SpatialModel(plain.focal_sets, V, plain.alpha, plain.beta, plain.delta)

    def _keep(self, model: Model) -> None:
        super()._keep(model.of_pixels() if isinstance(model, SpatialModel) else model)


def _sides(shape: Any, n: int) -> tuple[int, ...]:
    """Sides of an image of n pixels."""
    sides = tuple(integer("image_shape", side, 1) for side in np.ravel(np.asarray(shape)).tolist())
    if int(np.prod(sides, dtype=object)) != n:
        raise ValueError(
            f"image_shape must be the sides of an image of {n} pixels, one for each row of X, got "
            f"{' x '.join(map(str, sides))}. Give X as image.reshape(-1, channels)."
        )
    return sides

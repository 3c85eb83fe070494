"""How many clusters: the modes of the density that stand out of its noise.

Reference: Chazal, Guibas, Oudot, Skraba (2013), persistence-based clustering; the density is that
of K nearest neighbours, in the dimension that these neighbours show (Levina, Bickel 2005).

A cluster is where objects are dense and a sparse zone parts them from others, whatever its shape:
neither a mean nor a variance is asked for, and one cluster is an answer like any other. With K
neighbours the logarithm of the density has a standard deviation of 1 / sqrt(K), so prominences are
measured in that unit, and against the largest that a single cluster of n objects shows by chance
(`noise`, fitted to samples of one Gaussian, uniform squares and rings). The geometric mean over
three K is the *strength* of the c-th mode. What is above SURE is a cluster, what is below POSSIBLE
is none; between the two the largest fall decides. Where that leaves one cluster, two others are
asked, since clusters that touch have no saddle between them: if the best silhouette of k-means is
more than one cluster would have (ROUND), and HDBSCAN finds two clusters or more as well, the number
is that of the silhouette.
Columns of two values, such as the indicators of a category, are left out where there are others:
every combination of levels would be a mode. The two others are asked of all columns as well. What
was measured stands in docs/decisions/number-of-clusters.md.

Symbols
-------
m     objects of the sample;  K neighbours;  d dimension of the data
r     (m, K) distances to the K nearest others, rising
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn import neighbors

from evdist.data.sources import AttributeSource, CallableSource, PairList, Source
from evdist.kernels.distances import METRICS
from evdist.kernels.modes import prominences

#: Objects of the sample; of a function in Python, which is called for every pair, fewer.
SAMPLE, SAMPLE_CALLABLE = 5000, 500
#: K is this times m ** POWER, times each of the three FACTORS.
SCALE, POWER, FACTORS = 1.6, 0.33, (0.7, 1.0, 1.4)
#: Strengths above which a mode is a cluster, and below which it is none.
SURE, POSSIBLE = 1.6, 0.5
#: A strength beyond this tells no more; nor does one below half of POSSIBLE.
ENOUGH = 2.5
#: The mean silhouette of k-means from which one cluster is doubted, by columns, the last for more:
#: halves of one Gaussian have .55 along a line and .36 in a plane.
ROUND = (0.62, 0.42, 0.36, 0.3)
#: Clusters of k-means at most, objects of one on average at least, and objects that are looked at.
MOST_ROUND, OBJECTS_EACH, OBJECTS_ROUND = 8, 10, 1000
#: The smallest cluster that HDBSCAN is asked for.
LEAST_DENSE = 10
#: Strengths are cut off here, so that an infinite one can be written and drawn.
MOST = 100.0


@dataclass(frozen=True, eq=False)
class Modes:
    """The strength of the c-th mode for c = 1, 2, ..., greatest first; the first has MOST."""

    strength: NDArray[np.float64]
    #: Where there is one mode: other numbers to try, the best first, and whether that is to be
    #: taken.
    others: tuple[int, ...] = ()
    touching: bool = False

    def of(self, c: int) -> float:
        """Strength of the c-th mode: 0 where there are fewer."""
        return float(self.strength[c - 1]) if c <= len(self.strength) else 0.0

    def fall(self, c: int) -> float:
        """How many times stronger the c-th mode is than the next."""
        return min(self.of(c), ENOUGH) / max(self.of(c + 1), POSSIBLE / 2)

    @property
    def told_one(self) -> str:
        """That there is one cluster, and what to try all the same."""
        rest = " and ".join(map(str, self.others[:2])) or "2 and 3"
        return (
            "No structure found: the density has one mode, so there is one cluster. If you expect "
            f"more, say how many; the next best numbers are {rest}."
        )

    def choose(self, among: Iterable[int] | None = None) -> int:
        """The number of clusters, one of `among` where given; of equal ones the smallest."""
        sure = max(int((self.strength > SURE).sum()), 1)
        possible = max(int((self.strength > POSSIBLE).sum()), 1)
        numbers = list(range(sure, possible + 1))
        if among is not None:
            given = sorted(among)
            nearest = min(given, key=lambda c: max(sure - c, c - possible))
            numbers = [c for c in given if sure <= c <= possible] or [nearest]
        found = max(numbers, key=lambda c: (self.fall(c), -c))
        if found == 1 and self.touching and (among is None or self.others[0] in given):
            return self.others[0]
        return found


def find_modes(source: Source | PairList) -> Modes:
    """The modes among a sample of the objects: the same for the same objects, whatever the seed."""
    if isinstance(source, PairList):
        raise ValueError(
            'n_clusters="auto" needs the dissimilarity of any two objects, which a list of pairs '
            "does not have. Say how many clusters there are, or pass attributes or a square matrix."
        )
    most = SAMPLE_CALLABLE if isinstance(source, CallableSource) else SAMPLE
    whole, source = source, _without_indicators(source)
    if source.n > most:
        drawn = np.random.default_rng([source.n, 29]).choice(source.n, most, replace=False)
        some = np.sort(drawn).astype(np.uint32)
        whole, source = whole.subset(some), source.subset(some)
    m = source.n
    if m < 6:
        return Modes(np.array([MOST]))
    wanted = [round(SCALE * m**POWER * factor) for factor in FACTORS]
    sizes = [max(min(K, m // 6), min(5, m - 1)) for K in wanted]
    far, near = _nearest(source, max(sizes))
    # Copies have no distance: they are as dense as a twentieth of the usual distance makes them.
    usual = float(np.median(far[:, -1]))
    far = np.maximum(far, 0.05 * usual if usual > 0 else 1.0)
    found = [_strengths(far[:, :K], near[:, :K]) for K in sizes]
    width = max(map(len, found))
    table = np.array([np.pad(row, (0, width - len(row))) for row in found])
    strength = np.exp(np.log(np.maximum(table, 0.05)).mean(axis=0))
    # The largest K sees no cluster of fewer objects; the two others may see it all the better.
    middle = np.median(table, axis=0)
    strength = np.where(middle > 2 * SURE, middle, strength)
    strength[0] = MOST
    modes = Modes(strength[strength > 0.06])
    if modes.choose() > 1 or not _has_squares(source):
        return modes
    others, touching = _touching_clusters(source.rows)
    if not touching and _has_squares(whole) and whole.rows.shape != source.rows.shape:
        others, touching = _touching_clusters(whole.rows)
    return Modes(modes.strength, others, touching)


class StructureWarning(UserWarning):
    """No clusters were found where their number was to be found."""


def _has_squares(source: Source | PairList) -> TypeGuard[AttributeSource]:
    """Whether the metric rises with the Euclidean distance of the rows as they are stored."""
    return isinstance(source, AttributeSource) and METRICS[source.name][0] == "squares"


def _without_indicators(source: Source) -> Source:
    """Without columns of two values, where other columns are left."""
    if not _has_squares(source) or source.metric.whiten is not None:
        return source
    rows = source.rows
    low, high = rows.min(axis=0), rows.max(axis=0)
    two = ((rows == low) | (rows == high)).all(axis=0)
    if not two.any() or two.all():
        return source
    return AttributeSource.of(np.ascontiguousarray(rows[:, ~two]), source.name)


def _touching_clusters(rows: NDArray[np.float32]) -> tuple[tuple[int, ...], bool]:
    """Numbers of clusters, the best first, and whether there are clusters that no saddle parts."""
    others, best = _round_clusters(rows)
    alike = ROUND[min(rows.shape[1], len(ROUND)) - 1]
    return others, best >= alike and _dense_clusters(rows) > 1


def _round_clusters(rows: NDArray[np.float32]) -> tuple[tuple[int, ...], float]:
    """Numbers of clusters by the silhouette of k-means, the best first, and the best of these."""
    from sklearn.cluster import KMeans  # a third of a second, for this alone
    from sklearn.metrics import silhouette_score

    some = rows[:: -(-len(rows) // OBJECTS_ROUND)].astype(float)
    different = len(np.unique(some, axis=0))
    found = {}
    most = min(MOST_ROUND, different - 1, max(2, len(some) // OBJECTS_EACH))
    for c in range(2, most + 1):
        labels = KMeans(c, n_init=3, random_state=0).fit(some).labels_
        found[c] = float(silhouette_score(some, labels))
    order = sorted(found, key=lambda c: (-found[c], c))
    return tuple(order), max(found.values(), default=-1.0)


def _dense_clusters(rows: NDArray[np.float32]) -> int:
    """How many clusters HDBSCAN finds; Campello, Moulavi, Sander (2013)."""
    from sklearn.cluster import HDBSCAN

    least = min(LEAST_DENSE, max(2, len(rows) // 10))
    found = HDBSCAN(min_cluster_size=least, copy=True).fit(rows.astype(float)).labels_
    return int(found.max()) + 1


def clusters_for(n_clusters: Any, data: Source | PairList | NDArray[Any]) -> Any:
    """`n_clusters` as it is given, or for "auto" the number of modes of a source or a table."""
    if not isinstance(n_clusters, str):
        return n_clusters
    if n_clusters != "auto":
        raise ValueError(f'n_clusters must be a number of clusters or "auto", got {n_clusters!r}.')
    if isinstance(data, np.ndarray):
        data = AttributeSource.of(data, "euclidean")
    modes = find_modes(data)
    found = modes.choose()
    if found == 1:
        warnings.warn(modes.told_one, StructureWarning, stacklevel=4)
    return found


def _strengths(r: NDArray[np.float64], near: NDArray[np.integer]) -> NDArray[np.float64]:
    """Prominences in units of what one cluster shows by chance, greatest first."""
    m, K = r.shape
    d = dimension(r)
    found = prominences(-d * np.log(r[:, -1]), near)
    strength = found[found > 0] * np.sqrt(K) / noise(m, K, d)
    return np.minimum(strength, MOST)


def noise(m: int, K: int, d: float) -> float:
    """The largest prominence, times sqrt(K), that one cluster of m objects shows by chance.

    It grows with the number of neighbourhoods, m / K, and is larger along lines, where one sparse
    spot is enough to part the objects.
    """
    return max(0.4 + 0.65 * np.log(m / K), 1.2) * (1.0 + 0.4 * max(0.0, 1.7 - d))


def dimension(r: NDArray[np.float64]) -> float:
    """The dimension that the distances to neighbours show; Levina, Bickel (2005), eq. (8)."""
    steps = np.log(r[:, -1:] / r[:, :-1]).sum(axis=1) / max(r.shape[1] - 2, 1)
    steps = steps[steps > 0]
    return float(1.0 / steps.mean()) if steps.size else 1.0


def _nearest(source: Source, K: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distances to the K nearest others, rising, and these; (m, K) each."""
    if isinstance(source, AttributeSource) and METRICS[source.name][0] == "squares":
        # Every such metric rises with the Euclidean distance of the rows as they are stored, and
        # a mode does not depend on whether distances or their squares are taken.
        rows = source.rows
        found = neighbors.NearestNeighbors(algorithm="brute" if rows.shape[1] > 15 else "auto").fit(
            rows
        )
        far, near = found.kneighbors(n_neighbors=K)
        return far.astype(float), near
    m = source.n
    far, near = np.empty((m, K)), np.empty((m, K), np.int64)
    everyone = np.arange(m, dtype=np.uint32)
    for lo in range(0, m, 256):
        mine = everyone[lo : lo + 256]
        D = source.distances(mine, np.tile(everyone, (len(mine), 1))).astype(float)
        D[np.arange(len(mine)), mine] = np.inf
        some = np.argpartition(D, K - 1, axis=1)[:, :K]
        away = np.take_along_axis(D, some, axis=1)
        order = np.argsort(away, axis=1, kind="stable")
        near[lo : lo + 256] = np.take_along_axis(some, order, axis=1)
        far[lo : lo + 256] = np.take_along_axis(away, order, axis=1)
    return far, near

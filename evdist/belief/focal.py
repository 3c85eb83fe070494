"""Focal sets: the sets of clusters that a mass function may support.

Symbols
-------
c   number of clusters, the size of the frame Omega
f   number of focal sets
F   (f, c) bool, F[q, k] is true when cluster k belongs to focal set q; row 0 is the empty set

Reference: Li, Li, Denoeux (2018), k-CEVCLUS, eqs. (12)-(16).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: 2**16 focal sets make a mass function of half a megabyte per object: a mistake.
MAX_FULL_CLUSTERS = 16


def _frozen(a: NDArray[Any]) -> NDArray[Any]:
    a.setflags(write=False)
    return a


@dataclass(frozen=True)
class FocalSets:
    """An ordered family of focal sets over ``n_clusters`` clusters, the empty set first.

    Build one with :meth:`simple`, :meth:`pairs`, :meth:`full` or :meth:`of`. Instances are
    immutable and hashable; two are equal when they hold the same sets in the same order.

    Parameters
    ----------
    n_clusters : int
        Number of clusters of the frame.
    masks : tuple of int
        One integer per focal set; bit k is set when cluster k belongs to it.

    Examples
    --------
    >>> from evdist import FocalSets
    >>> FocalSets.simple(3).names
    ('∅', '{0}', '{1}', '{2}', 'Ω')
    >>> FocalSets.pairs(3).matrix.astype(int)[4]  # the fifth set, {0,1}
    array([1, 1, 0])
    """

    n_clusters: int
    masks: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.n_clusters < 1:
            raise ValueError(f"n_clusters must be at least 1, got {self.n_clusters}.")
        if not self.masks or self.masks[0] != 0:
            raise ValueError(
                "The first focal set must be the empty set (outliers need it), got "
                f"{self._members(self.masks[0]) if self.masks else 'no set at all'}. "
                "FocalSets.of() puts it there for you."
            )
        for mask in self.masks:
            if not 0 <= mask < 1 << self.n_clusters:
                raise ValueError(
                    f"Focal set {self._members(mask)} names a cluster outside "
                    f"0..{self.n_clusters - 1}."
                )
        if len(set(self.masks)) != len(self.masks):
            twice = next(m for m in self.masks if self.masks.count(m) > 1)
            raise ValueError(f"Focal set {self._members(twice)} is listed twice.")

    # ------------------------------------------------------------------ construction
    @classmethod
    def simple(cls, n_clusters: int, *, omega: bool = True) -> FocalSets:
        """Empty set, singletons and, with ``omega``, the whole frame: f = c + 2.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        omega : bool, default=True
            Whether the set of all clusters is a focal set.
        """
        singletons = [1 << k for k in range(n_clusters)]
        return cls._ordered(n_clusters, [0, *singletons], omega)

    @classmethod
    def pairs(
        cls,
        n_clusters: int,
        pairs: Iterable[Sequence[int]] | None = None,
        *,
        omega: bool = True,
    ) -> FocalSets:
        """Like :meth:`simple`, plus all pairs of clusters or only those given.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        pairs : iterable of (int, int), optional
            Zero-based pairs of clusters, such as :func:`mutual_neighbour_pairs` returns.
        omega : bool, default=True
            Whether the set of all clusters is a focal set.
        """
        chosen = combinations(range(n_clusters), 2) if pairs is None else pairs
        couples = [cls._mask(pair) for pair in chosen]
        if any(mask.bit_count() != 2 for mask in couples):
            bad = next(m for m in couples if m.bit_count() != 2)
            raise ValueError(f"A pair must name two different clusters, got {cls._members(bad)}.")
        singletons = [1 << k for k in range(n_clusters)]
        return cls._ordered(n_clusters, [0, *singletons, *couples], omega)

    @classmethod
    def full(cls, n_clusters: int) -> FocalSets:
        """The whole power set, in the order of binary counting: f = 2**c.

        Parameters
        ----------
        n_clusters : int
            Number of clusters.
        """
        if n_clusters > MAX_FULL_CLUSTERS:
            raise ValueError(
                f"The power set of {n_clusters} clusters has 2**{n_clusters} members; at most "
                f"{MAX_FULL_CLUSTERS} clusters are allowed. Use FocalSets.pairs or .simple."
            )
        return cls(n_clusters, tuple(range(1 << n_clusters)))

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]], n_clusters: int) -> FocalSets:
        """Any list of sets of zero-based clusters; the empty set is put first if missing.

        Parameters
        ----------
        sets : iterable of iterables of int
            The focal sets, as clusters.
        n_clusters : int
            Number of clusters.
        """
        masks = [cls._mask(s) for s in sets]
        return cls(n_clusters, (0, *(m for m in masks if m)))

    @classmethod
    def from_matrix(cls, F: NDArray[Any]) -> FocalSets:
        """From a (f, c) 0/1 matrix whose row 0 is the empty set.

        Parameters
        ----------
        F : (f, c) array of 0 and 1
            Whether a set (row) holds a cluster (column).
        """
        F = np.asarray(F)
        if F.ndim != 2:
            raise ValueError(f"A focal-set matrix has two axes (f, c), got shape {F.shape}.")
        masks = tuple(sum(1 << int(k) for k in np.flatnonzero(row)) for row in F)
        return cls(F.shape[1], masks)

    @classmethod
    def _ordered(cls, n_clusters: int, masks: list[int], omega: bool) -> FocalSets:
        if omega:
            masks = [*masks, (1 << n_clusters) - 1]
        # One cluster: {0} is Omega; two clusters: the only pair is Omega.
        return cls(n_clusters, tuple(dict.fromkeys(masks)))

    @staticmethod
    def _mask(members: Iterable[int]) -> int:
        mask = 0
        for k in members:
            if k < 0:
                raise ValueError(f"Clusters are numbered from 0, got {k}.")
            mask |= 1 << int(k)
        return mask

    @staticmethod
    def _members(mask: int) -> tuple[int, ...]:
        members = []
        while mask:  # as many steps as the set has clusters, however many there are
            lowest = mask & -mask
            members.append(lowest.bit_length() - 1)
            mask ^= lowest
        return tuple(members)

    # ------------------------------------------------------------------ as a sequence
    def __len__(self) -> int:
        return len(self.masks)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.sets)

    def __contains__(self, members: object) -> bool:
        return self._mask(members) in self._position  # type: ignore[arg-type]

    def index(self, members: Iterable[int]) -> int:
        """Column of the focal set with these clusters; a ValueError when it is not one.

        Parameters
        ----------
        members : iterable of int
            The clusters of the set.
        """
        mask = self._mask(members)
        if mask not in self._position:
            raise ValueError(f"{self._members(mask)} is not a focal set.")
        return self._position[mask]

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:8]) + (", ..." if len(self) > 8 else "")
        return f"FocalSets(n_clusters={self.n_clusters}, f={len(self)}: {shown})"

    @cached_property
    def _position(self) -> dict[int, int]:
        return {mask: q for q, mask in enumerate(self.masks)}

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """Members of each focal set, as tuples of zero-based clusters."""
        return tuple(self._members(m) for m in self.masks)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Labels for tables and figures: the empty set, ``{0}``, ``{0,1}``, Omega."""
        whole = (1 << self.n_clusters) - 1
        return tuple(
            "∅"
            if m == 0
            else "Ω"
            if m == whole and self.n_clusters > 1
            else "{" + ",".join(str(k) for k in self._members(m)) + "}"
            for m in self.masks
        )

    # ------------------------------------------------------------------ as matrices
    @cached_property
    def matrix(self) -> NDArray[np.bool_]:
        """F, (f, c) bool."""
        F = np.zeros((len(self), self.n_clusters), dtype=bool)
        for q, members in enumerate(self.sets):
            F[q, list(members)] = True
        return _frozen(F)

    @cached_property
    def cardinality(self) -> NDArray[np.int64]:
        """|A| of each focal set, (f,)."""
        return _frozen(self.matrix.sum(axis=1))

    @cached_property
    def singletons(self) -> NDArray[np.int64]:
        """Column of the singleton {k} for each cluster k, -1 where it is not a focal set; (c,)."""
        return _frozen(np.array([self._position.get(1 << k, -1) for k in range(self.n_clusters)]))

    @cached_property
    def omega(self) -> int | None:
        """Column of the whole frame, None when it is not a focal set."""
        return self._position.get((1 << self.n_clusters) - 1)

    @cached_property
    def is_simple(self) -> bool:
        """Whether the sets are the empty one, the singletons and the frame, in this order."""
        c = self.n_clusters
        ordered = np.array_equal(self.singletons, np.arange(1, c + 1))
        return len(self) == c + 2 and self.omega == c + 1 and ordered

    @cached_property
    def overlap(self) -> NDArray[np.float64]:
        """|A intersected with B| for all pairs of focal sets, (f, f)."""
        F = self.matrix.astype(float)
        return _frozen(F @ F.T)

    @cached_property
    def C(self) -> NDArray[np.float64]:
        """Conflict matrix, 1 where two sets are disjoint; k-CEVCLUS eq. (12), (f, f)."""
        return _frozen((self.overlap == 0).astype(float))

    @cached_property
    def S(self) -> NDArray[np.float64]:
        """Singleton matrix, 1 on the diagonal at singletons; k-CEVCLUS eq. (14), (f, f)."""
        return _frozen(np.diag((self.cardinality == 1).astype(float)))

    @cached_property
    def B(self) -> NDArray[np.float64]:
        """Empty-set matrix, 1 where either set is empty; k-CEVCLUS eq. (13), (f, f)."""
        empty = self.cardinality == 0
        return _frozen((empty[:, None] | empty[None, :]).astype(float))

    @cached_property
    def E(self) -> NDArray[np.float64]:
        """E = 1 1' - B - S, so that m_i' E m_j = Pl(not same cluster); k-CEVCLUS eq. (15)."""
        return _frozen(1.0 - self.B - self.S)

    @cached_property
    def jaccard(self) -> NDArray[np.float64]:
        """|A and B| / |A or B|, 1 for two empty sets: the matrix of Jousselme's distance."""
        size = self.cardinality.astype(float)
        union = size[:, None] + size[None, :] - self.overlap
        return _frozen(np.where(union > 0, self.overlap / np.maximum(union, 1.0), 1.0))


def mutual_neighbour_pairs(plausibility: NDArray[Any], q: int = 1) -> list[tuple[int, int]]:
    """Pairs of clusters that are among each other's ``q`` most similar clusters.

    The similarity of clusters j and l is S(j, l) = sum_i pl_ij pl_il (slides, "Carefully
    selecting the focal sets", step 2). Ties go to the lower cluster number.

    Parameters
    ----------
    plausibility : (n, c) array
        Normalised contour plausibilities of a credal partition.
    q : int, default=1
        How many most similar clusters count.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist.belief import mutual_neighbour_pairs
    >>> pl = np.array([[1, .9, 0], [.9, 1, 0], [0, .1, 1]])
    >>> mutual_neighbour_pairs(pl)
    [(0, 1)]
    """
    pl = np.asarray(plausibility, dtype=float)
    if q < 1:
        raise ValueError(f"q must be at least 1, got {q}.")
    similarity = pl.T @ pl
    np.fill_diagonal(similarity, -np.inf)
    c = similarity.shape[0]
    nearest = np.zeros((c, c), dtype=bool)
    order = np.argsort(-similarity, axis=1, kind="stable")[:, : min(q, c - 1)]
    np.put_along_axis(nearest, order, True, axis=1)
    mutual = nearest & nearest.T
    return [(int(j), int(k)) for j, k in np.argwhere(np.triu(mutual, 1))]

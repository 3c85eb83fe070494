"""The credal partition: masses, focal sets, and everything else derived from them.

References: Li, Li, Denoeux (2018), k-CEVCLUS, section 2.2 and eq. (23); Denoeux, slides "Belief
functions and clustering" (2017).
"""

from __future__ import annotations

import copy
import hashlib
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.kernels.sparse_rows import cluster_slots, mass_slots
from evdist.partition import convert, io, views
from evdist.partition import merge as merging
from evdist.partition.derived import DerivedViews
from evdist.partition.ids import checked_ids, row_of
from evdist.partition.merge import ClusterTree
from evdist.partition.rows import as_table, gather_rows, is_dask, select_rows
from evdist.partition.sparse import SparseMasses
from evdist.partition.validate import check_lists, check_rows, check_shape
from evdist.registry import load


@dataclass(frozen=True, eq=False, repr=False)
class CredalPartition(DerivedViews):
    """One mass function per object over sets of clusters.

    Only ``mass`` and ``focal_sets`` are kept; labels, approximations and scores are computed from
    them on demand, one block of rows at a time. Views of NumPy and zarr masses are NumPy arrays,
    views of Dask masses are lazy Dask arrays, and their values do not depend on the chunks. Single
    numbers and the summary are computed at once. Clusters are numbered from 0
    everywhere: in arrays, tables, figures and names of sets.

    Parameters
    ----------
    mass : (n, f) array
        A NumPy, Dask or zarr array, or anything with ``shape``, ``dtype`` and row slicing.
        Column 0 is the empty set. float32 stays float32; sums are taken in float64. Values must
        be at least 0 and rows sum to 1 within 1e-6 (1e-5 for float32); otherwise a ValueError
        names the row. NumPy masses are checked here; of the others only the shape, and their values
        whenever a block is read, or by :meth:`validate`.
    focal_sets : FocalSets
        The sets of clusters that the columns of `mass` are for.
    ids : (n,) array-like, optional
        Names of the objects, such as the index of the data frame that was clustered. They travel
        with the rows: into parts of the partition, tables, stores and reports.
    """

    mass: Any
    focal_sets: FocalSets
    ids: Any = None

    def __post_init__(self) -> None:
        mass = as_table(self.mass)
        if isinstance(mass, np.ndarray):
            if mass.dtype.kind in "fiub" and mass.dtype not in (np.float32, np.float64):
                mass = mass.astype(np.float64)
            mass = mass.view()
            mass.setflags(write=False)
        check_shape(mass, self.focal_sets)
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "ids", checked_ids(self.ids, int(mass.shape[0])))
        if not self._lazy:
            self.validate()

    # ------------------------------------------------------------------ construction
    @classmethod
    def from_labels(cls, labels: ArrayLike, n_clusters: int | None = None) -> CredalPartition:
        """From a hard partition: (n,) integers, -1 for an outlier (all mass on the empty set).

        Without ``n_clusters`` any labels will do and their clusters are numbered in increasing
        order; with it they must be -1..n_clusters - 1 and are kept.

        Parameters
        ----------
        labels : (n,) integers
            Cluster of each object; -1 is an outlier.
        n_clusters : int, optional
            Number of clusters, empty ones included.
        """
        return cls(*convert.masses_from_labels(labels, n_clusters))

    @classmethod
    def from_fuzzy(cls, membership: Any) -> CredalPartition:
        """From a fuzzy partition (n, c); the empty set gets what a row lacks to sum to 1.

        Parameters
        ----------
        membership : (n, c) array
            Degrees of membership, at least 0, of sum at most 1 in each row.
        """
        return cls(*convert.masses_from_fuzzy(membership))

    @classmethod
    def from_possibilistic(
        cls, possibility: Any, focal_sets: FocalSets | None = None
    ) -> CredalPartition:
        """From degrees of possibility (n, c), as the consonant masses with that contour.

        What the largest degree of a row lacks to one goes to the empty set. The focal sets are
        the singletons and the level sets that occur, or ``focal_sets``; then a level set that is
        not among them gives its mass to the smallest that contains it.

        Parameters
        ----------
        possibility : (n, c) array
            Degrees of possibility, 0 to 1.
        focal_sets : FocalSets, optional
            The sets that may get mass.
        """
        return cls(*convert.masses_from_possibilistic(possibility, focal_sets))

    @classmethod
    def from_rough(cls, lower: Any, upper: Any) -> CredalPartition:
        """From a rough partition: two (n, c) bool tables; objects in no upper one are outliers.

        Parameters
        ----------
        lower, upper : (n, c) bool arrays
            Which objects surely, and which possibly, belong to each cluster.
        """
        return cls(*convert.masses_from_rough(lower, upper))

    @classmethod
    def load(cls, url: str | os.PathLike[str]) -> CredalPartition:
        """Load what :meth:`save` wrote. The masses of a zarr store are not read into memory.

        Parameters
        ----------
        url : path or URL
            Where the partition was saved.
        """
        return cls(*io.read(url))

    def save(self, url: str | os.PathLike[str]) -> None:
        """Write to ``url``, a path or any fsspec URL; nothing may exist there yet.

        The ending says what is written:

        - ``.csv`` or ``.parquet``: the table of :meth:`to_frame`, its ids in the column ``id``;
          for people and other programs, :meth:`load` does not read it
        - ``.npz``: a NumPy archive of masses, focal sets and ids
        - ``.zarr`` or no ending: a zarr store of the same, written block by block

        Parameters
        ----------
        url : path or URL
            Where to write; its ending is the format.
        """
        if io.is_table(url):
            load("evdist.partition.export:write_table")(io.new_place(url), self._answer())
        else:
            io.write(url, self.mass, self.focal_sets, self.ids)

    # ------------------------------------------------------------------ as a container
    @property
    def n_objects(self) -> int:
        """Number of objects, n."""
        return int(self.mass.shape[0])

    def __len__(self) -> int:
        return self.n_objects

    def __getitem__(self, rows: Any) -> CredalPartition:
        """The partition of some objects: a slice, a mask, a list of rows, or one row."""
        if isinstance(rows, tuple):
            raise TypeError("A credal partition is indexed by objects only; use .mass for columns.")
        if hasattr(rows, "__index__") and not isinstance(rows, np.ndarray):
            row = range(self.n_objects)[operator.index(rows)]
            rows = slice(row, row + 1)
        ids = None if self.ids is None else self.ids[rows]
        return CredalPartition(select_rows(self.mass, rows), self.focal_sets, ids)

    def with_ids(self, ids: Any) -> CredalPartition:
        """The same partition with these ids; None removes them.

        Parameters
        ----------
        ids : (n,) array-like or None
            Names of the objects.
        """
        named = copy.copy(self)  # whose masses were checked
        object.__setattr__(named, "ids", checked_ids(ids, self.n_objects))
        return named

    def row(self, id: Any) -> int:
        """Row of the object with this id, or a KeyError; without ids, the row number itself.

        Parameters
        ----------
        id : any
            Id of the object.
        """
        return row_of(self.ids, id, self.n_objects)

    def __eq__(self, other: object) -> bool:
        """Same focal sets in the same order and exactly the same masses, whatever the ids."""
        if not isinstance(other, CredalPartition):
            return NotImplemented
        if self.focal_sets != other.focal_sets or self.mass.shape != other.mass.shape:
            return False
        # Digests of blocks, so that two tables larger than the memory can be compared.
        if isinstance(self.mass, SparseMasses) and isinstance(other.mass, SparseMasses):
            one, two = (gather_rows(_digest_lists, p.mass.rows) for p in (self, other))
            return one == two
        return gather_rows(_digest, self.mass) == gather_rows(_digest, other.mass)

    def __repr__(self) -> str:
        mass = self.mass
        kind = "lists" if isinstance(mass, SparseMasses) else type(mass).__module__.split(".")[0]
        return (
            f"CredalPartition(n_objects={self.n_objects}, n_clusters={self.n_clusters}, "
            f"f={len(self.focal_sets)}, mass={mass.dtype} {kind})"
        )

    def _repr_html_(self) -> str:
        # Showing an object in a notebook must not start a long computation.
        if self._lazy:
            return f"<p>{self!r}, not computed: call <code>summary()</code></p>"
        return self.summary()._repr_html_()

    def validate(self) -> CredalPartition:
        """Check all masses as the constructor does, and return the partition."""
        lists = isinstance(self.mass, SparseMasses)
        check = partial(check_lists if lists else check_rows, names=self.focal_sets.names)
        gather_rows(check, self.mass.rows if lists else self.mass)
        return self

    # ------------------------------------------------------------------ other partitions
    def in_memory(self, at_most: int = 1 << 28) -> CredalPartition:
        """Stored masses of `at_most` bytes read into memory; larger or lazy ones stay as they are.

        For those who look several times: stored rows are read and checked at every look.

        Parameters
        ----------
        at_most : int, default=2**28
            Bytes.
        """
        if isinstance(self.mass, np.ndarray) or is_dask(self.mass) or self.mass.nbytes > at_most:
            return self
        lists = isinstance(self.mass, SparseMasses)
        return replace(self, mass=self.mass.in_memory() if lists else np.asarray(self.mass))

    def relabel(self, order: Sequence[int]) -> CredalPartition:
        """Rename the clusters: the new cluster j is the old cluster ``order[j]``.

        The masses are not touched, only the focal sets get new members, so that this is free for
        any number of objects.

        Parameters
        ----------
        order : sequence of int
            All clusters, in their new order.
        """
        order = [operator.index(k) for k in order]
        if sorted(order) != list(range(self.n_clusters)):
            raise ValueError(
                f"order must name each of the clusters 0..{self.n_clusters - 1} once, got {order}."
            )
        F = self.focal_sets.matrix[:, order]
        return replace(self, focal_sets=FocalSets.from_matrix(F))

    def project(self, focal_sets: FocalSets) -> CredalPartition:
        """The partition on fewer (or other) focal sets over the same clusters.

        The mass of a set goes to the smallest kept set that contains it (itself when it is kept;
        ties to the first), so that no belief grows and no plausibility shrinks. A set that no
        kept set contains is an error.

        Parameters
        ----------
        focal_sets : FocalSets
            The sets to keep.
        """
        mass = convert.project_masses(self.mass, self.focal_sets, focal_sets)
        return CredalPartition(mass, focal_sets, self.ids)

    def tree(self) -> ClusterTree:
        """Which clusters are hard to tell apart: what becomes one, step by step; ``print`` it.

        Two clusters are the more alike the more objects the masses leave in doubt between them,
        for their sizes. See :mod:`evdist.partition.merge`.
        """
        parts = gather_rows(merging.doubt_between, self._view(views.pignistic, self.n_clusters))
        S = np.sum([part[0] for part in parts], axis=0)
        return merging.tree_of(S, np.sum([part[1] for part in parts], axis=0))

    def merge(self, k: int | Sequence[Sequence[int]]) -> CredalPartition:
        """The partition into fewer clusters: those that are hardest to tell apart become one.

        A set of clusters becomes the set of what they are now, so that mass between two clusters
        that become one is mass on that one. Objects between them are then sure.

        Parameters
        ----------
        k : int, or sequence of sequences of int
            The number of clusters that remain, as :meth:`tree` merges them; or the clusters that
            become one, such as ``[[0, 3], [1, 2]]``. Others stay alone. The new clusters are
            numbered by the smallest old number of each.
        """
        groups = (
            self.tree().groups(operator.index(k))
            if hasattr(k, "__index__")
            else merging.checked_groups(k, self.n_clusters)
        )
        focal, to = merging.coarser(self.focal_sets, groups)
        mass = self._view(merging.added, len(focal), self.mass.dtype, to=to, sets=len(focal))
        return CredalPartition(mass, focal, self.ids)


def _digest(block: NDArray[Any], first: int) -> bytes:
    # Adding 0 makes one of 0.0 and -0.0.
    return hashlib.blake2b((block.astype(np.float64) + 0.0).tobytes()).digest()


def _digest_lists(T: NDArray[np.float32], first: int) -> bytes:
    # What free slots hold, and where they are, does not matter.
    mass = mass_slots(T)
    free = np.argsort(mass == 0, axis=1, kind="stable")
    mass = np.take_along_axis(mass, free, axis=1)
    cluster = np.where(mass != 0, np.take_along_axis(cluster_slots(T), free, axis=1), 0)
    parts = (T[:, :2] + 0.0, mass + 0.0, cluster)
    return hashlib.blake2b(b"".join(part.tobytes() for part in parts)).digest()

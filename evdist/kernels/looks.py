"""Labels from masses, and the check of lists, in compiled code: faster than NumPy's calls.

NumPy gives the same bits where the compiler is not loaded: see `evdist.partition.compiled`.

Symbols
-------
mass   (n, f) masses, float32 or float64
T      (n, WORDS) float32, rows as `evdist.kernels.sparse_rows` encodes them
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit
from evdist.kernels.sparse_rows import ID_PLACES, MASS_PLACES, SLOTS, ids_of
from evdist.kernels.threads import thread_count
from evdist.kernels.vector import read_only

#: Rows below which another thread is not worth its start.
_LEAST = 1 << 15


def most_plausible(mass: NDArray[Any]) -> NDArray[np.int64]:
    """The cluster of greatest plausibility of each row, ties to the first; (n,).

    The columns are the empty set, the singletons and Omega.
    """
    out = np.empty(len(mass), np.int64)
    mass = read_only(mass)
    _in_threads(lambda rows: _most_plausible(mass[rows], out[rows]), len(mass))
    return out


@njit
def _most_plausible(mass, out):
    last = mass.shape[1] - 1
    for i in range(len(mass)):
        whole = float(mass[i, last])
        best, most = 1, float(mass[i, 1]) + whole
        for q in range(2, last):
            pl = float(mass[i, q]) + whole
            if pl > most:
                best, most = q, pl
        out[i] = best - 1


def most_mass(T: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Of each row the cluster of the largest mass (ties to the first; 0 for none), and that."""
    cluster, mass = np.empty(len(T), np.int64), np.empty(len(T), np.float32)
    T = read_only(T)
    ids = ids_of(T)
    _in_threads(lambda rows: _most_mass(T[rows], ids[rows], cluster[rows], mass[rows]), len(T))
    return cluster, mass


@njit
def _most_mass(T, ids, cluster, mass):
    for i in range(len(T)):
        slot, most = 0, T[i, MASS_PLACES[0]]
        for q in range(1, SLOTS):
            m = T[i, MASS_PLACES[q]]
            if m > most:
                slot, most = q, m
        mass[i] = most
        cluster[i] = ids[i, ID_PLACES[slot]] if most > 0 else 0


def are_lists(T: NDArray[np.float32], n_clusters: int, tolerance: float) -> bool:
    """Whether all masses are at least 0 and sum to one, and clusters that have mass ascend."""
    T = read_only(T)
    return bool(_are_lists(T, ids_of(T), n_clusters, tolerance))


@njit
def _are_lists(T, ids, n_clusters, tolerance):
    for i in range(len(T)):
        total, before, good = 0.0, np.int64(-1), (T[i, 0] >= 0) and (T[i, 1] >= 0)
        for q in range(SLOTS):
            mass, cluster = T[i, MASS_PLACES[q]], np.int64(ids[i, ID_PLACES[q]])
            good &= mass >= 0
            if mass > 0:
                good &= before < cluster < n_clusters
                before = cluster
            total += mass
        total += float(T[i, 0]) + float(T[i, 1])
        if not (good and abs(total - 1.0) <= tolerance):
            return False
    return True


def _in_threads(work: Callable[[slice], None], n: int) -> None:
    """`work` on all rows 0..n-1, a span for each thread."""
    if n < 2 * _LEAST:  # a block of a larger table: to count the cores would take longer
        work(slice(0, n))
        return
    threads = min(thread_count(None), n // _LEAST)
    spans = [slice(n * t // threads, n * (t + 1) // threads) for t in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, spans))  # the first error is raised

"""Masses of many clusters in few numbers: a row is a list of (cluster, mass).

A row has mass on the empty set, on Omega and on a few clusters: 2 to 8 on average, whatever their
number. It takes two cache lines: mass on the empty set, mass on Omega, SLOTS cluster numbers (two
in a word), SLOTS masses. Clusters ascend; free slots come last and have mass zero.

    words    0  1   2 .. 7          8 .. 15        16 .. 19          20 .. 31
             0  Om  numbers 0..11   masses 0..7    numbers 12..19    masses 8..19

The first line says all of a row with at most eight clusters, and nearly every row is one: who reads
it leaves the second line where it is.

The words are float32, so that rows travel and are stored as masses are. Cluster numbers below
MOST_CLUSTERS never make a NaN of their word.

Symbols
-------
T   (n, WORDS) float32, encoded rows
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Number of the layout above; stores say it.
LAYOUT = 2
#: float32 words of a row: two cache lines.
WORDS = 32
#: Clusters that a row can name: two words hold the empty set and Omega, ten the numbers.
SLOTS = 20
#: Where the slots begin, in halves of words and in words.
FIRST_ID, FIRST_MASS = 4, 8
#: Slots whose numbers, and whose masses, follow these; see :func:`id_at` and :func:`mass_at`.
IDS_AHEAD, MASSES_AHEAD = 12, 8
#: The second line, in halves of words and in words: how far the other slots are moved.
_IDS_LATER, _MASSES_LATER = 16, 4
#: Numbers from here on mark free slots, each slot with its own, so that what is added up for them
#: goes to different places. Above 0x7F7F a word would have the exponent of a NaN.
MOST_CLUSTERS = FREE = 0x7F60


def id_at(q: int) -> int:
    """Where the number of slot q lies, in halves of words."""
    return FIRST_ID + q + (_IDS_LATER if q >= IDS_AHEAD else 0)


def mass_at(q: int) -> int:
    """Where the mass of slot q lies, in words."""
    return FIRST_MASS + q + (_MASSES_LATER if q >= MASSES_AHEAD else 0)


#: Where the number and the mass of each slot lie.
ID_PLACES = np.array([id_at(q) for q in range(SLOTS)])
MASS_PLACES = np.array([mass_at(q) for q in range(SLOTS)])


def ids_of(T: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The halves of all words, (n, 2 WORDS): the same memory."""
    return T.view(np.uint16)


def from_first_layout(T: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows as stores may have them from before LAYOUT 2: all numbers, then all masses."""
    return T[:, [0, 1, *range(2, 8), *range(12, 20), *range(8, 12), *range(20, WORDS)]]


def cluster_slots(T: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Cluster numbers (n, SLOTS)."""
    return np.take(ids_of(T), ID_PLACES, axis=1)


def clusters_at(T: NDArray[np.float32], slot: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cluster number of one slot of each row; (n,)."""
    return ids_of(T)[np.arange(len(T)), ID_PLACES[slot]].astype(np.int64)


def mass_slots(T: NDArray[np.float32]) -> NDArray[np.float32]:
    """Masses (n, SLOTS) of the named clusters."""
    return np.take(T, MASS_PLACES, axis=1)


def labelled(labels: NDArray, own: float) -> NDArray[np.float32]:
    """Rows with mass `own` on the cluster of their label and the rest on Omega."""
    T = _vacant(len(labels))
    T[:, 1] = 1.0 - own
    ids_of(T)[:, FIRST_ID] = labels
    T[:, FIRST_MASS] = own
    return T


def encode(mass: NDArray) -> NDArray[np.float32]:
    """Rows from masses (n, c + 2) on the empty set, the singletons and Omega.

    A row with more than SLOTS clusters keeps the largest, and the largest of all takes what the
    others lose.
    """
    T = _vacant(len(mass))
    T[:, 0], T[:, 1] = mass[:, 0], mass[:, -1]
    inner = mass[:, 1:-1]
    count = min(SLOTS, inner.shape[1])
    top = np.sort(np.argsort(-inner, axis=1, kind="stable")[:, :count], axis=1)
    value = np.take_along_axis(inner, top, axis=1).astype(np.float32)
    lost = inner.sum(axis=1, dtype=float) - value.sum(axis=1, dtype=float)
    value[np.arange(len(mass)), value.argmax(axis=1)] += lost.astype(np.float32)
    last = np.argsort(value <= 0, axis=1, kind="stable")
    top = np.take_along_axis(top, last, axis=1)
    value = np.take_along_axis(value, last, axis=1)
    used = value > 0
    ids_of(T)[:, ID_PLACES[:count]] = np.where(used, top, FREE + np.arange(count))
    T[:, MASS_PLACES[:count]] = np.where(used, value, 0.0)
    return T


def decode(T: NDArray[np.float32], n_clusters: int) -> NDArray[np.float32]:
    """Masses (n, c + 2) of encoded rows."""
    out = np.zeros((len(T), n_clusters + 2), np.float32)
    out[:, 0], out[:, -1] = T[:, 0], T[:, 1]
    value, cluster = mass_slots(T), cluster_slots(T)
    row, slot = np.nonzero(value)
    out[row, 1 + cluster[row, slot].astype(np.int64)] = value[row, slot]
    return out


def most_mass(T: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Of each row the cluster of the largest mass (ties to the first; 0 for none), and that."""
    rows = np.arange(len(T))
    slot = mass_slots(T).argmax(axis=1)
    mass = T[rows, MASS_PLACES[slot]]
    return np.where(mass > 0, ids_of(T)[rows, ID_PLACES[slot]], 0).astype(np.int64), mass


def full_rows(T: NDArray[np.float32]) -> int:
    """Rows without a free slot: these might have named more clusters."""
    return int((T[:, MASS_PLACES[-1]] > 0).sum())


def _vacant(n: int) -> NDArray[np.float32]:
    T = np.zeros((n, WORDS), np.float32)
    ids_of(T)[:, ID_PLACES] = FREE + np.arange(SLOTS)
    return T

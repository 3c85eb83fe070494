"""Dissimilarities of pairs that a user's function has given already: each pair is asked for once.

A fit looks at the same pair several times: when it searches d0, among the landmarks, and among the
pairs that it keeps. A compiled metric is computed anew each time; a Python function takes
microseconds to seconds, so what it gave is kept, in 12 bytes a pair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Pairs kept at most: 1.2 GB. Beyond it the function is called again.
MOST_PAIRS = 100_000_000


class PairCache:
    """Values of pairs of objects, by their numbers; threads may share one."""

    def __init__(self) -> None:
        self._keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._values: NDArray[np.float32] = np.empty(0, np.float32)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def get(
        self,
        i: NDArray[Any],
        j: NDArray[Any],
        compute: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]],
    ) -> NDArray[np.float32]:
        """Values of the pairs (i, j), i < j below 2^32; `compute(i, j)` gives those not there."""
        wanted = i.astype(np.uint64) << np.uint64(32) | j.astype(np.uint64)
        keys, back = np.unique(wanted, return_inverse=True)
        with self._lock:
            at = np.searchsorted(self._keys, keys).reshape(-1)
            there = at < len(self._keys)
            there[there] = self._keys[at[there]] == keys[there]
            new = keys[~there]
            values = np.empty(len(keys), np.float32)
            values[there] = self._values[at[there]]
            if len(new):
                left, right = (new >> np.uint64(32)), new & np.uint64(0xFFFFFFFF)
                values[~there] = compute(left.astype(np.int64), right.astype(np.int64))
                if len(self) + len(new) <= MOST_PAIRS:
                    self._keys = np.insert(self._keys, at[~there], new)
                    self._values = np.insert(self._values, at[~there], values[~there])
        return values[back.ravel()]

    def __reduce__(self) -> tuple[Any, ...]:
        # A process that gets it asks for other pairs than this one.
        return PairCache, ()

"""A random order of n objects as a formula, and the partitions that it is cut into.

Nothing of size n is drawn or kept: the position of an object and the object of a position are both
computed, for any few of them, wherever they are asked for. A Feistel network permutes the numbers
of a power of two that is at least n; a number that falls outside 0..n-1 goes through it again until
it falls inside (cycle walking), so what remains is a permutation of 0..n-1.

Symbols
-------
n, P    objects, partitions
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit

#: Rows of a partition where there are many: small beside the memory of a worker, large beside the
#: price of a task.
PARTITION_ROWS = 1 << 18
#: Fewer objects are cut into this many partitions, so that there is work for many workers, as long
#: as a partition has MIN_ROWS.
_COUNT, _MIN_ROWS = 64, 1 << 12
_ROUNDS = 8


def partition_count(n: int) -> int:
    """P, from n alone: even, at least 2."""
    count = max(n / PARTITION_ROWS, min(_COUNT, n / _MIN_ROWS))
    return max(2, 2 * round(count / 2))


@dataclass(frozen=True)
class Shuffle:
    """A random order of `n` objects, the same for the same n, in `count` partitions.

    A position is a place in the order; partition b has positions bounds[b] .. bounds[b + 1] - 1.
    """

    n: int
    count: int

    @classmethod
    def of(cls, n: int, count: int | None = None) -> Shuffle:
        """The order of n objects in P partitions, as many as n is for unless told."""
        return cls(n, partition_count(n) if count is None else count)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """First position of each partition, and n: (P + 1,). Sizes differ by at most one."""
        base, more = divmod(self.n, self.count)
        return np.concatenate([[0], np.cumsum(base + (np.arange(self.count) < more))])

    @property
    def rows(self) -> int:
        """Rows of the largest partition."""
        return -(-self.n // self.count)

    def size(self, partition: int) -> int:
        return int(self.bounds[partition + 1] - self.bounds[partition])

    def positions(self, lo: int, hi: int) -> NDArray[np.int64]:
        """Positions of the objects lo..hi-1."""
        return _walk(np.arange(lo, hi, dtype=np.int64), self.n, False)

    def objects(self, lo: int, hi: int) -> NDArray[np.int64]:
        """Objects at the positions lo..hi-1."""
        return _walk(np.arange(lo, hi, dtype=np.int64), self.n, True)

    def objects_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return _walk(np.array(positions, dtype=np.int64), self.n, True)


@njit
def _mixed(x):
    """Finalizer of splitmix64: every bit of x moves every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def _walk(values, n, back):
    """Permute numbers of 0..n-1 in place, or take the permutation back."""
    bits = 2
    while (1 << bits) < n:
        bits += 1
    low = np.uint64(bits // 2)
    low_mask = (np.uint64(1) << low) - np.uint64(1)
    high_mask = (np.uint64(1) << np.uint64(bits - bits // 2)) - np.uint64(1)
    for i in range(values.size):
        x = np.uint64(values[i])
        while True:
            a, b = x >> low, x & low_mask
            for step in range(_ROUNDS):
                r = _ROUNDS - 1 - step if back else step
                key = np.uint64(n) + np.uint64(r + 1) * np.uint64(0x9E3779B97F4A7C15)
                # The two parts take turns; each round is its own inverse.
                if r % 2 == 0:
                    a ^= _mixed(b ^ _mixed(key)) & high_mask
                else:
                    b ^= _mixed(a ^ _mixed(key)) & low_mask
            x = (a << low) | b
            if x < np.uint64(n):
                break
        values[i] = np.int64(x)
    return values


def row_sum(X: NDArray, first: int) -> int:
    """A checksum of the rows of X, numbered from `first` on, to be added up over blocks.

    The sum modulo 2^64 over all rows tells whether two tables are the same, however each was cut.
    """
    words = np.ascontiguousarray(X, X.dtype.newbyteorder("<")).view(np.uint8)
    words = words.reshape(len(X), -1).view(np.uint32)
    return int(_row_sum(words, first))


@njit
def _row_sum(words, first):
    total = np.uint64(0)
    for i in range(words.shape[0]):
        x = _mixed(np.uint64(first + i) + np.uint64(0x9E3779B97F4A7C15))
        for j in range(words.shape[1]):
            x = _mixed(x ^ np.uint64(words[i, j])) + np.uint64(j)
        total += x
    return total

"""Objects that lie apart are left out where a preliminary partition is looked for.

Seeds of k-means++ and Ward's method go to what is far: a few outliers, or the tails of heavy-tailed
clusters, take the place of clusters, and these are merged. They are known by what they make: groups
of hardly any objects. So such groups are left out, with all that lies about as singly as they do,
and the rest is grouped again, until groups of a proper size are left. Where there are none to leave
out, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A group is tiny if it has at most this share of the mean, or three objects where the mean is 30
#: or more; a small group, with this share of the mean of small ones, or one object.
TINY, TINY_SMALL = 0.05, 0.2
#: A group is loose if more than this share of it is in tiny small groups.
LOOSE = 0.5
#: Tiny or loose groups that are let be, as a share of all: each costs one cluster and no more.
LET_BE = 0.05
#: How often the sample is grouped again, and what share of it may be left out.
ROUNDS, MOST = 8, 0.2

T = TypeVar("T")


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """One partition: what it is, its small groups (objects and group of each), and that of rows."""

    found: T
    count: NDArray[np.int64]
    group: NDArray[np.int64]
    small_of_rows: Callable[[], NDArray[np.int64]]


def group_again(
    n: int, c: int, attempt: Callable[[NDArray[np.int64]], Attempt[T]]
) -> tuple[T, NDArray[np.int64]]:
    """The partition of those of n rows that do not lie apart, and their numbers.

    `attempt` partitions some rows, whose numbers it is given, into c groups.
    """
    rows = np.arange(n)
    tried = attempt(rows)
    for _ in range(ROUNDS):
        apart = _apart(tried.count, tried.group, c)
        if not apart.any():
            break
        left = rows[~apart[tried.small_of_rows()]]
        if len(left) < (1 - MOST) * n:
            break
        rows, tried = left, attempt(left)
    return tried.found, rows


def _apart(count: NDArray, group: NDArray, c: int) -> NDArray[np.bool_]:
    """Which small groups, of `count` objects each, lie apart."""
    mean = count.sum() / c
    single = count <= max(1.0, TINY_SMALL * count.mean())
    size = np.bincount(group, count)
    few = size <= max(TINY * mean, min(3.0, 0.1 * mean))
    few |= np.bincount(group, count * single) > LOOSE * size
    if few.sum() < max(1.0, LET_BE * c):
        return np.zeros(len(count), bool)
    return few[group] | single

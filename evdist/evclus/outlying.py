"""Outliers are left out of the sample on which a preliminary partition is found.

`groups`, `cells` and `rows/device_groups` all find groups in two steps: many small groups, which
are merged into c groups. Seeds of k-means++ and Ward's method go to what is far, so a few outliers,
or the tails of heavy-tailed clusters, take the place of clusters, and clusters are merged instead.
They show as groups of hardly any objects. Such groups are left out, with all small groups of as few
objects, and the rest is grouped again, until the groups have a proper size. Data without such
groups are grouped once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

#: A group is tiny if it has at most this share of the mean size of a group. Of a small sample that
#: is an object or two: there TINY_OBJECTS are tiny too, or a tenth of the mean if that is less.
TINY, TINY_OBJECTS, TINY_TENTH = 0.05, 3.0, 0.1
#: A small group is tiny if it has one object, or at most this share of the mean of small groups.
TINY_SMALL = 0.2
#: A group is loose if more than this share of it is in tiny small groups.
LOOSE = 0.5
#: Tiny or loose groups that are let be, as a share of all: each costs one cluster and no more.
LET_BE = 0.05
#: How often the sample is grouped again, and what share of it may be left out.
ROUNDS, MOST = 8, 0.2

T = TypeVar("T")


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """A partition of some rows into small groups, which are merged into groups.

    Attributes
    ----------
    found : anything
        What the caller wants of the partition.
    count, group : (q,) int
        Objects of each small group, and the group that it was merged into.
    small_of_rows : callable
        Gives the small group of each row; asked only where something is left out.
    """

    found: T
    count: NDArray[np.int64]
    group: NDArray[np.int64]
    small_of_rows: Callable[[], NDArray[np.int64]]


def group_again(
    n: int, c: int, attempt: Callable[[NDArray[np.int64]], Attempt[T]]
) -> tuple[T, NDArray[np.int64]]:
    """The partition of n rows without outliers, and the numbers of the rows that are left.

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
    """Which small groups are to be left out, (q,); arguments as in :class:`Attempt`."""
    mean = count.sum() / c
    tiny_small = count <= max(1.0, TINY_SMALL * count.mean())
    size = np.bincount(group, count)
    tiny = size <= max(TINY * mean, min(TINY_OBJECTS, TINY_TENTH * mean))
    loose = np.bincount(group, count * tiny_small) > LOOSE * size
    wrong = tiny | loose
    if wrong.sum() < max(1.0, LET_BE * c):
        return np.zeros(len(count), bool)
    return wrong[group] | tiny_small

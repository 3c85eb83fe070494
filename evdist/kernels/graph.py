"""The pair graph in a formula: which k partners each position keeps; colours of a given graph.

Objects are laid out in a random order and cut into B blocks, the colours. A pair of (colour
offset o, shift r) joins position (b, t) with (b + o mod B, t + r mod s), s the block size, and so,
seen from the other side, (b, t) with (b - o, t - r). Drawing k / 2 of them without repetition
gives a graph that is

* symmetric: a row's program holds every term the row appears in;
* coloured: o is never 0, so rows of one colour share no pair and may be updated at once;
* regular, without repeated partners; any row's partners are known without the others';
* kind to memory: the partners of consecutive rows are consecutive, k streams instead of k jumps.

Since the layout is a random permutation, every pair of objects is equally likely to be kept.
With B = n colours the graph is the full matrix, and a sweep visits the rows in order.

Differs from the design's sketch: one shift per offset replaces a stored permutation, which would
cost n integers per draw and scatter the partners over memory.

Where clusters are many, uniform partners hardly ever fall into an object's own cluster. Then the
places of a colour follow a preliminary partition (groups side by side, next groups next), and the
first `near` pairs of the graph are short shifts on these places; the others shift the same places
in a random order, the same for all colours, and are as uniform as before.

Symbols
-------
n, k    objects, partners per object
B, s    colours, positions per colour (the last of some colours is empty when B does not divide n)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit

#: Fewer colours mean fewer synchronisation points per sweep. From 2 to 16 colours the number of
#: sweeps, the objective and the accuracy were the same on four data sets; with 4, three quarters
#: of the objects are possible partners.
MIN_COLOURS = 4


@dataclass(frozen=True)
class PairGraph:
    """A symmetric, coloured graph on positions 0..n-1, given by its (offset, shift) pairs."""

    n: int
    colours: int
    offsets: tuple[int, ...]
    shifts: tuple[int, ...]
    #: The first `near` shifts are along the places, the others along a random order of them, drawn
    #: from `seed`; with none near, all are along the places.
    near: int = 0
    seed: int = 0

    @classmethod
    def draw(cls, n: int, k: int, rng: np.random.Generator) -> Self:
        """Draw a graph with k partners per object, 1 <= k <= n - 1.

        Where n and k are odd no graph is regular of degree k; a tiny one then gets k + 1.
        """
        if not 1 <= k < n:
            raise ValueError(f"Each of {n} objects can keep 1 to {n - 1} partners, got k = {k}.")
        B = _colours(n, k)
        if B is None:
            return cls.draw(n, k + 1, rng)
        s = -(-n // B)
        two_way, _ = _classes(B, s)
        pairs: list[tuple[int, int]] = []
        if k // 2 > two_way // 4:
            # Nearly all are needed: list them and choose.
            every = [(o, r) for o in range(1, B) for r in range(s) if (o, r) < _reverse(o, r, B, s)]
            pairs = [every[i] for i in np.sort(rng.choice(len(every), k // 2, replace=False))]
        seen = set(pairs)
        while len(pairs) < k // 2:
            o, r = int(rng.integers(1, B)), int(rng.integers(0, s))
            back = _reverse(o, r, B, s)
            if (o, r) != back and (o, r) not in seen and back not in seen:
                seen.add((o, r))
                pairs.append((o, r))
        pairs += [_reverse(o, r, B, s) for o, r in pairs]
        if k % 2:
            pairs.append((B // 2, 0))
        pairs.sort()
        return cls(n, B, tuple(o for o, _ in pairs), tuple(r for _, r in pairs))

    @classmethod
    def band(cls, n: int, k: int, width: int, rng: np.random.Generator) -> Self:
        """Draw a graph whose partners lie fewer than `width` places apart in their colours.

        There are MIN_COLOURS of these, and many more places than `width` in each.
        """
        B, s = MIN_COLOURS, -(-n // MIN_COLOURS)
        # Of two-way pairs (o, r) and (B - o, -r) one is listed here: r = 0 leaves only (1, 0).
        listed = [(1, 0), *((o, r) for r in range(1, width) for o in range(1, B))]
        drawn = [listed[i] for i in np.sort(rng.choice(len(listed), k // 2, replace=False))]
        pairs = drawn + [_reverse(o, r, B, s) for o, r in drawn]
        if k % 2:
            pairs.append((B // 2, 0))
        pairs.sort()
        return cls(n, B, tuple(o for o, _ in pairs), tuple(r for _, r in pairs))

    @classmethod
    def draw_near(
        cls, n: int, k: int, near: int, width: int, seed: int, rng: np.random.Generator
    ) -> Self:
        """Draw a graph with k partners (even), `near` of them (even) at most `width` places away.

        A near and a uniform draw may by chance give the same pair, which then counts twice; and
        where there are not so many places that near, all near pairs count several times.
        """
        B, s = MIN_COLOURS, -(-n // MIN_COLOURS)
        close = _draw_two_way(near // 2, min(width, s // 2), B, s, rng)
        far = _draw_two_way((k - near) // 2, s // 2, B, s, rng)
        pairs = close + far
        return cls(n, B, tuple(o for o, _ in pairs), tuple(r for _, r in pairs), near, seed)

    @cached_property
    def mixed(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The random order of the places of a colour, and its inverse; empty with none near."""
        if not self.near:
            return np.zeros(0, np.uint32), np.zeros(0, np.uint32)
        order = np.random.default_rng([self.seed, 23, self.size]).permutation(self.size)
        inverse = np.empty(self.size, np.uint32)
        inverse[order] = np.arange(self.size, dtype=np.uint32)
        return order.astype(np.uint32), inverse

    def _places(self, t: NDArray) -> NDArray[np.int64]:
        """Places (rows, k) that the shifts lead to from places t (rows,), empty ones included."""
        shifts = np.array(self.shifts)
        at = (np.asarray(t)[:, None] + shifts) % self.size
        if self.near:
            order, inverse = self.mixed
            far = order[t].astype(np.int64)[:, None] + shifts[self.near :]
            at[:, self.near :] = inverse[far % self.size]
        return at

    @property
    def k(self) -> int:
        """Partners per row; a few rows have fewer when the colours are of unequal size."""
        return len(self.offsets)

    @property
    def size(self) -> int:
        """s, the size of the largest colour."""
        return -(-self.n // self.colours)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """First position of each colour, and n: (B + 1,). Sizes differ by at most one."""
        base, more = divmod(self.n, self.colours)
        return np.concatenate([[0], np.cumsum(base + (np.arange(self.colours) < more))])

    @property
    def entries(self) -> int:
        """Sum of all degrees: n k, less what the empty places cost on either side."""
        small = np.diff(self.bounds) < self.size
        lost = 2 * self.k * int(small.sum())
        for o, r in zip(self.offsets, self.shifts, strict=True):
            if r % self.size == 0:  # then the empty places of two colours are each other's partner
                lost -= int((small & np.roll(small, -o)).sum())
        return self.colours * self.size * self.k - lost

    def there(self, lo: int, hi: int) -> NDArray[np.bool_]:
        """Which of the k partners of rows lo..hi-1 exist, (rows, k)."""
        rows = np.arange(lo, hi)
        block = np.searchsorted(self.bounds, rows, side="right") - 1
        other = (block[:, None] + np.array(self.offsets)) % self.colours
        at = self._places(rows - self.bounds[block])
        return at < np.diff(self.bounds)[other]

    def partners(self, lo: int, hi: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Partner positions of rows lo..hi-1, (rows, k), and how many each row has, (rows,).

        Unused places at the end of a row hold the row's own position.
        """
        partner = np.empty((hi - lo, self.k), np.uint32)
        degree = np.empty(hi - lo, np.int64)
        offsets, shifts = np.array(self.offsets), np.array(self.shifts)
        fill_partners(
            lo, self.size, self.bounds, offsets, shifts, self.near, *self.mixed, partner, degree
        )
        return partner, degree

    def partners_of(self, rows: NDArray) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Partner positions of any rows, (rows, k), and how many each has, (rows,).

        Unused places at the end of a row hold the row's own position.
        """
        block = np.searchsorted(self.bounds, rows, side="right") - 1
        other = (block[:, None] + np.array(self.offsets)) % self.colours
        position = self.bounds[other] + self._places(rows - self.bounds[block])
        kept = position < self.bounds[other + 1]
        last = np.argsort(~kept, axis=1, kind="stable")
        partner = np.where(kept, position, np.asarray(rows)[:, None])
        return np.take_along_axis(partner, last, axis=1).astype(np.uint32), kept.sum(axis=1)


def draw_graph(n: int, k: int, rng: np.random.Generator) -> PairGraph:
    """Draw a graph with k partners per object, 1 <= k <= n - 1; see `PairGraph.draw`."""
    return PairGraph.draw(n, k, rng)


def _classes(B: int, s: int) -> tuple[int, int]:
    """How many two-way and one-way (their own reverse) offset-shift pairs there are."""
    one_way = (2 if s % 2 == 0 else 1) if B % 2 == 0 else 0
    return ((B - 1) * s - one_way) // 2, one_way


def _colours(n: int, k: int) -> int | None:
    """The smallest number of colours, at least MIN_COLOURS, that offers k partners."""
    for B in range(min(MIN_COLOURS, n), n + 1):
        s = -(-n // B)
        two_way, one_way = _classes(B, s)
        # B s - n places are empty; each costs k partners.
        if 32 * (B * s - n) <= n and k // 2 <= two_way and k % 2 <= one_way and n - s >= k:
            return B
    return None


def _reverse(o: int, r: int, B: int, s: int) -> tuple[int, int]:
    return B - o, -r % s


def _draw_two_way(
    count: int, width: int, B: int, s: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """`count` pairs (o, r) with r at most `width` either way, and their reverses.

    All different, or, where there are not so many, each of them as often as the others or once
    more.
    """
    reach = min(2 * width + 1, s)
    one_way = 1 + (reach == s and s % 2 == 0)  # two colours on, and no or half a round of places
    every = ((B - 1) * reach - one_way) // 2
    if count > every:
        more = _draw_two_way(count - every, width, B, s, rng)
        return sorted(more + _draw_two_way(every, width, B, s, rng))
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < 2 * count:
        o, r = int(rng.integers(1, B)), int(rng.integers(-width, width + 1)) % s
        back = _reverse(o, r, B, s)
        if (o, r) != back and (o, r) not in pairs:
            pairs |= {(o, r): None, back: None}
    return sorted(pairs)


@njit
def fill_partners(lo, s, bounds, offsets, shifts, near, order, inverse, partner, degree):
    """Fill partner positions (rows, k) and degrees of the rows from `lo` on.

    `bounds` are those of blocks of at most s rows; the last place of some is empty.
    """
    B = bounds.size - 1
    b = 0
    for row in range(partner.shape[0]):
        i = lo + row
        while i >= bounds[b + 1]:
            b += 1
        t = i - bounds[b]
        count = 0
        for h in range(offsets.size):
            other = b + offsets[h]
            if other >= B:
                other -= B
            far = near > 0 and h >= near
            at = (np.int64(order[t]) if far else t) + shifts[h]
            if at >= s:
                at -= s
            if far:
                at = np.int64(inverse[at])
            position = bounds[other] + at
            if position < bounds[other + 1]:
                partner[row, count] = position
                count += 1
        degree[row] = count
        for h in range(count, offsets.size):
            partner[row, h] = i


@njit
def fill_near(lo, place, first, order, bounds, block, step, turn, back, far, partner, degree):
    """Partner places (rows, k) of the rows from `lo` on: uniform ones that are there, then near.

    The formula is that of `evdist.evclus.partitions.near`. place (own,) is the inverse of the own
    part of `order` (view,); first (blocks, G + 1) says where the groups of each partition of the
    view begin. `degree` counts the uniform partners, in `far`.
    """
    G = first.shape[1] - 1
    for row in range(partner.shape[0]):
        count = degree[row]
        for h in range(count):
            partner[row, h] = far[row, h]
        p = np.int64(place[lo + row])
        g = np.searchsorted(first[0], p, side="right") - 1
        u, size = p - first[0, g], first[0, g + 1] - first[0, g]
        for h in range(block.size):
            q, other = block[h], (g + step[h]) % G
            theirs = first[q, other + 1] - first[q, other]
            S = max(size, theirs)
            shift = np.int64(turn[h] * S)
            v = (u + (S - shift if back[h] else shift)) % S
            if v < theirs:
                partner[row, count] = bounds[q] + order[bounds[q] + first[q, other] + v]
                count += 1
        degree[row] = count
        for h in range(count, partner.shape[1]):
            partner[row, h] = lo + row


@njit
def greedy_colours(first, other, rows):
    """Colour a graph given in compressed rows so that neighbours differ; visits `rows` in order.

    Only neighbours already coloured count; returns (n,) int64, -1 for rows not visited.
    """
    n = first.size - 1
    colour = np.full(n, -1, np.int64)
    used = np.full(n + 1, -1, np.int64)
    for i in rows:
        for t in range(first[i], first[i + 1]):
            if colour[other[t]] >= 0:
                used[colour[other[t]]] = i
        q = 0
        while used[q] == i:
            q += 1
        colour[i] = q
    return colour

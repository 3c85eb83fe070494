"""Dissimilarities between given pairs of rows, in compiled code.

Every metric is reduced to one of a few sums over coordinates by a transformation of the data made
once (`Metric`): cosine and correlation distances are those of normalised rows, Mahalanobis the
Euclidean distance of whitened data. Rows are padded with zeros to whole cache lines, so that a
difference of two rows is a few vector instructions: d(i, j) = d(j, i) in every bit, whichever side
computes it. Everything is float32: Hamming takes two numbers for equal when they are so in float32.

In many dimensions |x_i - x_j|^2 = signal + noise_i + noise_j, and noise swamps the signal. A metric
with a noise floor takes it off: f_i is half the mean squared distance of i to the nearest of some
reference rows, the root h_i = f_i^(1/2) stands behind the coordinates of row i, and
d'^2 = max(d^2 - h_i^2 - h_j^2, 0). docs/decisions/noise-floor.md has what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import ArrayLike, NDArray

from evdist.kernels.jit import njit
from evdist.kernels.lanes import (
    F32,
    I64,
    LANES,
    V32,
    fma,
    load_lanes,
    pointer,
    prefetch,
    row_offset,
)
from evdist.kernels.vector import aligned_zeros, padded_width, read_only

#: Metric -> (sum over coordinates, what is done to the sum).
METRICS = {
    "euclidean": ("squares", "root"),
    "sqeuclidean": ("squares", "none"),
    "cityblock": ("absolute", "none"),
    "chebyshev": ("largest", "none"),
    "hamming": ("different", "mean"),
    "cosine": ("squares", "half"),
    "correlation": ("squares", "half"),
    "mahalanobis": ("squares", "root"),
}
_SUMS = {"squares": 0, "absolute": 1, "largest": 2, "different": 3}
#: Squares less the noise floors of both rows, whose roots are the last numbers of the rows.
FLOORED = 4
_ENDS = {"none": 0, "root": 1, "half": 2, "mean": 3}
#: Rows transformed at a time.
_ROWS = 65_536
#: Nearest reference rows that a noise floor is the mean of.
FLOOR_NEAREST = 10
#: Rows whose floors a thread finds at a time.
_FLOOR_ROWS = 2048


@dataclass(frozen=True)
class Metric:
    """A metric made ready for some data: what to do to rows before they are compared.

    Attributes
    ----------
    centre : (d,) float64
        Subtracted first: differences do not change, and float32 keeps more of small numbers.
    whiten : (d, d) float64 or None
        Mahalanobis: coordinates in which the distance is Euclidean.
    reference : (m, d) float32 or None
        With noise floors: rows of a table that they are measured against.
    """

    name: str
    centre: NDArray[np.float64]
    whiten: NDArray[np.float64] | None = None
    reference: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, X: NDArray, name: str) -> Metric:
        """Ready `name`, a key of METRICS, for the rows of X (n, d), finite."""
        moves = name not in ("cosine", "correlation", "hamming")
        centre = _column_means(X) if moves else np.zeros(X.shape[1])
        whiten = _whitening(X - centre) if name == "mahalanobis" else None
        return cls(name, centre, whiten)

    @property
    def code(self) -> tuple[int, int, int]:
        """(sum, end, numbers of a row) as `distances` takes them."""
        sums, end = METRICS[self.name]
        return FLOORED if self.floored else _SUMS[sums], _ENDS[end], self.width

    @property
    def width(self) -> int:
        """Numbers of a row of the table: the coordinates, and the root of the noise floor."""
        return len(self.centre) + self.floored

    @property
    def floored(self) -> bool:
        return self.reference is not None

    def table(
        self, X: NDArray, n_threads: int = 1, roots: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Padded float32 rows, (n, D), whose coordinate sums give the metric.

        `roots` (n,) are those of the noise floors, where they have been found before.
        """
        out = aligned_zeros(len(X), padded_width(self.width))

        def fill(lo: int) -> None:
            Z = X[lo : lo + _ROWS] - self.centre
            if self.name in ("cosine", "correlation"):
                Z = self._unit(Z, lo)
            elif self.whiten is not None:
                Z = Z @ self.whiten
            out[lo : lo + _ROWS, : X.shape[1]] = Z

        self._in_blocks(fill, len(X), n_threads)
        if roots is not None:
            out[:, len(self.centre)] = roots
        else:
            self.set_floors(out, n_threads)
        return out

    def set_floors(self, table: NDArray[np.float32], n_threads: int = 1) -> None:
        """Write the roots of the noise floors behind the coordinates of a table's rows."""
        if self.reference is None:
            return
        at = len(self.centre)
        table[:, at] = 0.0
        reference = aligned_zeros(len(self.reference), table.shape[1])
        reference[:, :at] = self.reference

        def fill(lo: int) -> None:
            _set_floors(table[lo : lo + _FLOOR_ROWS], reference, at)

        self._in_blocks(fill, len(table), n_threads, _FLOOR_ROWS)

    @staticmethod
    def _in_blocks(fill: Callable[[int], None], n: int, n_threads: int, size: int = _ROWS) -> None:
        blocks = range(0, n, size)
        if n_threads == 1 or len(blocks) == 1:
            for lo in blocks:
                fill(lo)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(fill, blocks))  # the first error is raised

    def _unit(self, Z: NDArray, lo: int) -> NDArray:
        """Rows of length one: |x - y|^2 / 2 = 1 - x.y."""
        size = np.linalg.norm(Z, axis=1, keepdims=True)
        if self.name == "correlation":
            Z = Z - Z.mean(axis=1, keepdims=True)
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        # The mean of equal numbers need not be that number in its last bit.
        flat = length <= 1e-14 * size
        if flat.any():
            row = lo + int(np.flatnonzero(flat)[0])
            what = "constant" if self.name == "correlation" else "zero"
            raise ValueError(
                f"Row {row} of X is {what}: its {self.name} dissimilarity to others is undefined. "
                "Remove such rows or choose another metric."
            )
        return Z / length


def _column_means(X: NDArray) -> NDArray[np.float64]:
    """As NumPy's mean of rows, to the last bit; that takes three times as long for ten columns."""
    # NumPy adds rows one after the other, too, but for a single column and for other layouts.
    usual = X.dtype in (np.float32, np.float64) and X.flags.c_contiguous and X.shape[1] > 1
    return _column_sums(read_only(X)) / len(X) if usual else X.mean(axis=0, dtype=np.float64)


@njit
def _column_sums(X):
    total = np.zeros(X.shape[1])
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            total[j] += X[i, j]
    return total


def _whitening(Z: NDArray) -> NDArray[np.float64]:
    # In units of each column's spread: whether columns depend on each other is no matter of units.
    spread = np.sqrt((Z * Z).sum(axis=0) / max(len(Z) - 1, 1))
    unit = np.where(spread > 0, spread, 1.0)
    Z = Z / unit
    values, vectors = np.linalg.eigh(Z.T @ Z / max(len(Z) - 1, 1))
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError(
            "The covariance matrix of X is singular, so the Mahalanobis distance is undefined. "
            "Remove constant or linearly dependent columns, or choose another metric."
        )
    return vectors / np.sqrt(values) / unit[:, None]


def _coordinate_sum(kind: str) -> Callable:
    """An intrinsic: out[t - start] = sum over coordinates of |table[index[t]] - x|, by `kind`."""

    @intrinsic
    def coordinate_sum(typing, table, width, index, ahead, start, stop, x, i, out):
        def codegen(context, builder, signature, args):
            tt, _, it, _, _, _, xt, _, ot = signature.args
            table, width, index, ahead, start, stop, x, i, out = args
            table, index, x, out = (
                pointer(context, builder, t, v)
                for t, v in [(tt, table), (it, index), (xt, x), (ot, out)]
            )
            mine = builder.gep(x, [builder.mul(i, width)])
            zero = ir.Constant(V32, [0.0] * LANES)
            one = ir.Constant(V32, [1.0] * LANES)
            acc = cgutils.alloca_once(builder, V32)

            def call(name, operands, result):
                fn = ir.FunctionType(result, [o.type for o in operands])
                fn = cgutils.get_or_insert_function(builder.module, fn, name)
                return builder.call(fn, operands, fastmath=("reassoc",))

            with cgutils.for_range_slice(builder, start, stop, I64(1)) as (t, _):
                base = row_offset(builder, index, t, width)
                fetch = row_offset(builder, index, builder.add(t, ahead), width)
                builder.store(zero, acc)
                with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
                    prefetch(builder, builder.gep(table, [builder.add(fetch, j)]))
                    a = load_lanes(builder, table, builder.add(base, j))
                    b = load_lanes(builder, mine, j)
                    old = builder.load(acc)
                    if kind == "different":
                        new = builder.select(builder.fcmp_unordered("!=", a, b), one, zero)
                        new = builder.fadd(old, new)
                    else:
                        diff = builder.fsub(a, b)
                        if kind == "squares":
                            new = fma(builder, diff, diff, old)
                        else:
                            size = call("llvm.fabs.v16f32", [diff], V32)
                            if kind == "absolute":
                                new = builder.fadd(old, size)
                            else:
                                new = call("llvm.maxnum.v16f32", [old, size], V32)
                    builder.store(new, acc)
                total = builder.load(acc)
                if kind == "largest":
                    value = call("llvm.vector.reduce.fmax.v16f32", [total], F32)
                else:
                    value = call("llvm.vector.reduce.fadd.v16f32", [F32(0.0), total], F32)
                builder.store(value, builder.gep(out, [builder.sub(t, start)]))
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(table, i64, index, i64, i64, i64, x, i64, out), codegen

    return coordinate_sum


_squares, _absolute = _coordinate_sum("squares"), _coordinate_sum("absolute")
_largest, _different = _coordinate_sum("largest"), _coordinate_sum("different")


@njit
def _distances(table, mine_table, mine, others, code, out):
    sums, end, d = code
    width = table.shape[1]
    rows, k = others.shape
    ids = np.empty(2 * k, np.uint32)
    for row in range(rows):
        # This row's partners, then the next row's, to be fetched meanwhile.
        for t in range(k):
            ids[t] = others[row, t]
            ids[k + t] = others[min(row + 1, rows - 1), t]
        i = np.int64(mine[row])
        if sums == 0 or sums == 4:
            _squares(table, width, ids, k, 0, k, mine_table, i, out[row])
        elif sums == 1:
            _absolute(table, width, ids, k, 0, k, mine_table, i, out[row])
        elif sums == 2:
            _largest(table, width, ids, k, 0, k, mine_table, i, out[row])
        else:
            _different(table, width, ids, k, 0, k, mine_table, i, out[row])
        if sums == 4:
            h = mine_table[i, d - 1]
            for t in range(k):
                g = table[ids[t], d - 1]
                floors = (h - g) * (h - g) + (h * h + g * g)
                out[row, t] = max(out[row, t] - floors, np.float32(0.0))
        for t in range(k):
            if end == 1:
                out[row, t] = np.sqrt(out[row, t])
            elif end == 2:
                out[row, t] *= np.float32(0.5)
            elif end == 3:
                out[row, t] /= np.float32(d)


@njit
def _set_floors(table, reference, at):
    """table[i, at] = the root of half the mean squared distance to the nearest of `reference`.

    A row at no distance is the row itself, or its copy, and does not count.
    """
    m, width = reference.shape
    ids = np.zeros(2 * m, np.uint32)
    for t in range(m):
        ids[t] = t
    squares = np.empty(m, np.float32)
    near = np.empty(FLOOR_NEAREST, np.float32)
    for i in range(table.shape[0]):
        _squares(reference, width, ids, m, 0, m, table, i, squares)
        near[:] = np.inf
        for t in range(m):
            value = squares[t]
            if value >= near[FLOOR_NEAREST - 1] or value == 0.0:
                continue
            q = FLOOR_NEAREST - 1
            while q > 0 and near[q - 1] > value:
                near[q] = near[q - 1]
                q -= 1
            near[q] = value
        total, count = 0.0, 0
        for q in range(FLOOR_NEAREST):
            if near[q] < np.inf:
                total += near[q]
                count += 1
        table[i, at] = np.sqrt(0.5 * total / max(count, 1))


def distances(
    metric: Metric,
    table: NDArray[np.float32],
    others: NDArray[np.uint32],
    mine_table: NDArray[np.float32],
    mine: NDArray[np.uint32],
) -> NDArray[np.float32]:
    """Of rows `mine` (rows,) of `mine_table` to rows `others` (rows, k) of `table`: (rows, k)."""
    out = np.empty(others.shape, np.float32)
    _distances(table, mine_table, mine, others, metric.code, out)
    return out


#: Dissimilarities that `transform` holds at a time: a few kilobytes.
_AT_ONCE = 1024


@njit
def transform(D, d0, out):
    """phi(d) = 1 - exp(-gamma d^2), gamma = -log(0.05) / d0^2; k-CEVCLUS eqs. (5)-(6).

    Two objects at least d0 apart are in one cluster with plausibility at most 0.05.

    Differs from a library's expm1 in that the compiler can turn the loop into vectors, and in
    that the bits are the same on every machine: q(x) = exp(-x) - 1 by its series at x / 128,
    then seven times q(2 x) = q(x) (q(x) + 2), which keeps small q as exact as large ones. The
    error is below 1e-10 of the value, far below float32's.
    """
    gamma = -np.log(0.05) / (d0 * d0)
    # Some values at a time, in short loops. Each operation waits for the one before; a processor
    # fills the time with the next values only if their operations are not far ahead.
    x, q = np.empty(_AT_ONCE), np.empty(_AT_ONCE)
    for lo in range(0, D.size, _AT_ONCE):
        some, to = D[lo : lo + _AT_ONCE], out[lo : lo + _AT_ONCE]
        size = some.size
        for i in range(size):
            d = np.float64(some[i])
            # From 32 on the value is one in float32.
            x[i] = -min(gamma * d * d, 32.0) / 128.0
            q[i] = 1.0 + x[i] * (1.0 / 8)
        for i in range(size):
            for j in range(7, 4, -1):
                q[i] = 1.0 + q[i] * x[i] * (1.0 / j)
        for i in range(size):
            for j in range(4, 1, -1):
                q[i] = 1.0 + q[i] * x[i] * (1.0 / j)
            q[i] *= x[i]
        for i in range(size):
            for _ in range(4):
                q[i] *= q[i] + 2.0
        for i in range(size):
            for _ in range(3):
                q[i] *= q[i] + 2.0
            to[i] = np.float32(-q[i])


def pairwise(metric: Callable[[NDArray, NDArray], float], A: ArrayLike, B: ArrayLike) -> NDArray:
    """A user's callable, pair by pair: row i of A against row i of B."""
    return np.array([metric(a, b) for a, b in zip(np.asarray(A), np.asarray(B), strict=True)])

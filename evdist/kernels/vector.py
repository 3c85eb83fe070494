"""Vector instructions for the sweep: dot products and Gram matrices of gathered rows.

A plain loop in numba spends twenty times the cost of the gather on the Gram matrix, because the
compiler cannot keep the accumulators in registers. These intrinsics write the LLVM code for
16-lane vectors instead; LLVM splits them where the machine's registers are narrower.

Every operation is an explicit fused multiply-add in a fixed order, so the bits do not depend on
the machine's vector width. Rows of a table are padded with zeros to a multiple of `LANES`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from evdist.kernels.lanes import (
    F32,
    F64,
    I32,
    I64,
    LANES,
    V32,
    V64,
    fetcher,
    fma,
    for_four_dots,
    last_index,
    listed_row,
    load_lanes,
    pointer,
    prefetch,
    row_offset,
    splat,
    sum_in_chunks,
)

#: Pairs between the one whose row is fetched into the cache and the one that is looked at.
_AHEAD = 24


def padded_width(f: int) -> int:
    """Number of float32 columns of a table for `f` focal sets: whole cache lines."""
    return -(-f // LANES) * LANES


@intrinsic
def gather_rows(typing, table, width, index, start, shift, count, A):
    """A[t] = table[index[start + t] + shift], t < count: partners side by side, in the first cache.

    table (n, width) and A (count, width) float32, index uint32; its sum with `shift` is one, too.
    """

    def codegen(context, builder, signature, args):
        tt, _, it, _, _, _, at = signature.args
        table, width, index, start, shift, count, A = args
        table, index, A = (
            pointer(context, builder, t, v) for t, v in [(tt, table), (it, index), (at, A)]
        )
        index = builder.gep(index, [start])
        with cgutils.for_range(builder, count) as loop:
            t = loop.index
            base = row_offset(builder, index, t, width, shift)
            to = builder.mul(t, width)
            with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
                line = load_lanes(builder, table, builder.add(base, j))
                address = builder.gep(A, [builder.add(to, j)])
                builder.store(line, builder.bitcast(address, V32.as_pointer()), align=4)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(table, i64, index, i64, i64, i64, A), codegen


@intrinsic
def dots(typing, A, width, f, count, m, out, table, index, at, shift):
    """out[t] = A[t, :f] . m[:f] in float64, four rows at a time: count is a multiple of four.

    A (count, width) float32, m (width,) float64, out (count,) float64. On the grid of
    `sweep.quantise` every product and sum here is exact, whatever their order. Meanwhile the rows
    index[at] + shift, index[at + 1] + shift, ... (count / 2 of them) of the table are fetched into
    the cache.
    """

    def codegen(context, builder, signature, args):
        a_t, _, _, _, mt, ot, tt, it, _, _ = signature.args
        A, width, f, count, m, out, table, index, at, shift = args
        last = last_index(context, builder, it, index)
        A, m, out, table, index = (
            pointer(context, builder, t, v)
            for t, v in [(a_t, A), (mt, m), (ot, out), (tt, table), (it, index)]
        )
        following = listed_row(builder, index, at, last, width, shift)
        # Half of the next row's partners here, the other half by `change_of_squares`.
        fetch = fetcher(builder, table, width, following, 2)

        put = partial(_put, builder, out)
        for_four_dots(builder, A, f, count, m, put, fetch, lambda t: builder.mul(t, width))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(A, i64, i64, i64, m, out, table, index, i64, i64), codegen


def _put(builder, out, t, sums):
    address = builder.bitcast(builder.gep(out, [t]), sums.type.as_pointer())
    builder.store(sums, address, align=8)


@intrinsic
def dots_in_table(typing, table, width, f, index, start, shift, count, m, out):
    """out[t] = table[index[start + t] + shift, :f] . m[:f], t < count, a multiple of four: `dots`.

    For one pass over the rows: nothing is copied. Past the end of the index, its last entry counts.
    """

    def codegen(context, builder, signature, args):
        tt, _, _, it, _, _, _, mt, ot = signature.args
        table, width, f, index, start, shift, count, m, out = args
        last = last_index(context, builder, it, index)
        table, index, m, out = (
            pointer(context, builder, t, v)
            for t, v in [(tt, table), (it, index), (mt, m), (ot, out)]
        )
        here, ahead = (
            listed_row(builder, index, builder.add(start, I64(k)), last, width, shift)
            for k in (0, _AHEAD)
        )
        fetch = fetcher(builder, table, width, ahead, 4)
        for_four_dots(builder, table, f, count, m, partial(_put, builder, out), fetch, here)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(table, i64, i64, index, i64, i64, i64, m, out), codegen


@intrinsic
def residuals(typing, kappa, delta, start, count, w, target, r):
    """target[t] = delta[start + t] and r[t] = w[t] (kappa[t] - target[t]) for t < count.

    kappa and target float64, delta, w and r float32. A loop that numba would not vectorise: it
    cannot know that start + t is not negative.
    """

    def codegen(context, builder, signature, args):
        kt, dt, _, _, wt, tt, rt = signature.args
        kappa, delta, start, count, w, target, r = args
        kappa, delta, w, target, r = (
            pointer(context, builder, t, v)
            for t, v in [(kt, kappa), (dt, delta), (wt, w), (tt, target), (rt, r)]
        )
        delta = builder.gep(delta, [start])

        def body(t, lanes):
            def kind(scalar):
                return scalar if lanes == 1 else ir.VectorType(scalar, lanes)

            def at(array, scalar):
                return builder.bitcast(builder.gep(array, [t]), kind(scalar).as_pointer())

            goal = builder.fpext(builder.load(at(delta, F32), align=4), kind(F64))
            builder.store(goal, at(target, F64), align=8)
            gap = builder.fsub(builder.load(at(kappa, F64), align=8), goal)
            weight = builder.load(at(w, F32), align=4)
            small = builder.fmul(builder.fptrunc(gap, kind(F32)), weight)
            builder.store(small, at(r, F32), align=4)

        whole = builder.and_(count, I64(-8))
        with cgutils.for_range_slice(builder, I64(0), whole, I64(8)) as (t, _):
            body(t, 8)
        with cgutils.for_range_slice(builder, whole, count, I64(1)) as (t, _):
            body(t, 1)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(kappa, delta, i64, i64, w, target, r), codegen


@intrinsic
def fetch_row(typing, table, width, i):
    """Fetch row i of the table into the cache; it will be written soon."""

    def codegen(context, builder, signature, args):
        table, width, i = args
        table = pointer(context, builder, signature.args[0], table)
        start = builder.mul(i, width)
        with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
            prefetch(builder, builder.gep(table, [builder.add(start, j)]))
        return context.get_dummy_value()

    return types.void(table, types.int64, types.int64), codegen


@intrinsic
def change_of_squares(typing, A, width, f, count, m, old, target, w, table, index, at, shift):
    """sum_t w_t ((A[t, :f] . m[:f] - target_t)^2 - (old_t - target_t)^2), count a multiple of four.

    Written as (new - old)(new + old - 2 target): no digits are lost when the change is small.
    Rows of A that are zero, with old_t = 0, add nothing. Arrays, and rows that are fetched, as in
    `dots`; w float32.
    """

    def codegen(context, builder, signature, args):
        a_t, _, _, _, mt, ot, gt, wt, tt, it, _, _ = signature.args
        A, width, f, count, m, old, target, w, table, index, at, shift = args
        last = last_index(context, builder, it, index)
        A, m, old, target, w, table, index = (
            pointer(context, builder, t, v)
            for t, v in [(a_t, A), (mt, m), (ot, old), (gt, target), (wt, w), (tt, table),
                         (it, index)]
        )  # fmt: skip
        following = listed_row(builder, index, at, last, width, shift)
        fetch = fetcher(builder, table, width, following, 2)
        quad = ir.VectorType(F64, 4)
        total = cgutils.alloca_once_value(builder, ir.Constant(quad, [0.0] * 4))

        def load(array, t, kind=F64):
            vector = ir.VectorType(kind, 4)
            address = builder.bitcast(builder.gep(array, [t]), vector.as_pointer())
            return builder.load(address, align=4)

        def change(t, new):
            before, goal = load(old, t), load(target, t)
            weight = builder.fpext(load(w, t, F32), quad)
            middle = builder.fsub(builder.fadd(new, before), builder.fadd(goal, goal))
            step = builder.fmul(builder.fmul(weight, builder.fsub(new, before)), middle)
            builder.store(builder.fadd(builder.load(total), step), total)

        for_four_dots(builder, A, f, count, m, change, fetch, lambda t: builder.mul(t, width))
        lanes = [builder.extract_element(builder.load(total), I32(q)) for q in range(4)]
        return builder.fadd(builder.fadd(lanes[0], lanes[1]), builder.fadd(lanes[2], lanes[3]))

    i64 = types.int64
    return types.float64(A, i64, i64, i64, m, old, target, w, table, index, i64, i64), codegen


def _gram_rows(rows: int):
    """An intrinsic for `rows` chosen rows of A' diag(w) A."""

    @intrinsic
    def gram_rows(typing, A, width, count, w, chosen, at, S):
        def codegen(context, builder, signature, args):
            t_A, _, _, t_w, t_c, _, t_S = signature.args
            A, width, count, w, chosen, at, S = args
            A, w, chosen, S = (
                pointer(context, builder, t, v)
                for t, v in [(t_A, A), (t_w, w), (t_c, chosen), (t_S, S)]
            )
            column = [
                builder.load(builder.gep(chosen, [builder.add(at, I64(a))])) for a in range(rows)
            ]
            out = [builder.gep(S, [builder.mul(q, width)]) for q in column]
            acc = [cgutils.alloca_once(builder, V32) for _ in range(rows)]

            def add(t, j):
                base = builder.gep(A, [builder.mul(t, width)])
                weight = splat(builder, builder.load(builder.gep(w, [t])), V32)
                line = builder.fmul(load_lanes(builder, base, j), weight)
                for a in range(rows):
                    head = splat(builder, builder.load(builder.gep(base, [column[a]])), V32)
                    builder.store(fma(builder, head, line, builder.load(acc[a])), acc[a])

            sum_in_chunks(builder, width, count, acc, out, add)
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(A, i64, i64, w, chosen, i64, S), codegen

    gram_rows.__doc__ = (
        f"""S[q, :] = sum_t w_t A[t, q] A[t, :] for q in chosen[at : at + {rows}]."""
    )
    return gram_rows


gram_rows_1, gram_rows_2, gram_rows_3 = _gram_rows(1), _gram_rows(2), _gram_rows(3)
gram_rows_4, gram_rows_5, gram_rows_6 = _gram_rows(4), _gram_rows(5), _gram_rows(6)


@intrinsic
def weighted_sum(typing, A, width, count, r, g):
    """g[:] = sum_t r_t A[t, :]; A (count, width) and r (count,) float32, g (width,) float64."""

    def codegen(context, builder, signature, args):
        at, _, _, rt, gt = signature.args
        A, width, count, r, g = args
        A, r, g = (pointer(context, builder, t, v) for t, v in [(at, A), (rt, r), (gt, g)])
        acc = cgutils.alloca_once(builder, V32)

        def add(t, j):
            r_t = splat(builder, builder.load(builder.gep(r, [t])), V32)
            line = load_lanes(builder, A, builder.add(builder.mul(t, width), j))
            builder.store(fma(builder, line, r_t, builder.load(acc)), acc)

        sum_in_chunks(builder, width, count, [acc], [g], add)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(A, i64, i64, r, g), codegen


@intrinsic
def column_squares(typing, A, width, count, d):
    """d[:] = sum_t A[t, :]^2 in float64, of squares in float32; A (count, width), d (width,)."""

    def codegen(context, builder, signature, args):
        at, _, _, dt = signature.args
        A, width, count, d = args
        A, d = (pointer(context, builder, t, v) for t, v in [(at, A), (dt, d)])
        acc = cgutils.alloca_once(builder, V64)
        with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
            builder.store(ir.Constant(V64, [0.0] * LANES), acc)
            with cgutils.for_range(builder, count) as loop:
                line = load_lanes(builder, A, builder.add(builder.mul(loop.index, width), j))
                square = builder.fpext(builder.fmul(line, line), V64)
                builder.store(builder.fadd(builder.load(acc), square), acc)
            address = builder.bitcast(builder.gep(d, [j]), V64.as_pointer())
            builder.store(builder.load(acc), address, align=8)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(A, i64, i64, d), codegen


@intrinsic
def project_line(typing, m, f, P, q, table, to):
    """table[to, :] = m[:f] P[q]; m (f,) float64, P (v, f, width) and table float32.

    The columns of a line stay in a register from the first component to the last.
    """

    def codegen(context, builder, signature, args):
        mt, _, pt, _, tt, _ = signature.args
        m, f, P, q, table, to = args
        width = builder.extract_value(
            cgutils.create_struct_proxy(pt)(context, builder, value=P).shape, 2
        )
        m, P, table = (pointer(context, builder, t, v) for t, v in [(mt, m), (pt, P), (tt, table)])
        P = builder.gep(P, [builder.mul(builder.mul(q, f), width)])
        row = builder.gep(table, [builder.mul(to, width)])
        acc = cgutils.alloca_once(builder, V32)
        with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
            builder.store(ir.Constant(V32, [0.0] * LANES), acc)
            with cgutils.for_range(builder, f) as loop:
                a = loop.index
                share = builder.fptrunc(builder.load(builder.gep(m, [a])), F32)
                line = load_lanes(builder, P, builder.add(builder.mul(a, width), j))
                total = fma(builder, splat(builder, share, V32), line, builder.load(acc))
                builder.store(total, acc)
            address = builder.bitcast(builder.gep(row, [j]), V32.as_pointer())
            builder.store(builder.load(acc), address, align=4)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(m, i64, P, i64, table, i64), codegen


def aligned_zeros(n: int, width: int) -> np.ndarray:
    """A (n, width) float32 table whose rows start on cache lines."""
    raw = np.zeros(n * width + LANES, np.float32)
    skip = (-raw.ctypes.data // 4) % LANES
    return raw[skip : skip + n * width].reshape(n, width)


def read_only(table: np.ndarray) -> np.ndarray:
    """The same memory. numba compiles for arrays that may be written to and others apart."""
    table = table.view()
    table.setflags(write=False)
    return table

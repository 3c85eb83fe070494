"""Vector instructions for a row program whose columns lie one after another.

The program of a sparse row has few columns, five or six of them: one after another they fill the
vectors, where a row of them for each partner would be mostly padding (`evdist.kernels.vector` does
that, for dense rows). Columns are padded with zeros to a multiple of `LANES` partners.

Sums have a fixed order: the bits do not depend on the machine's vector width.

Symbols
-------
C       (columns, stride) float32; C[p, t] is column p at partner t
count   partners, a multiple of LANES
"""

from __future__ import annotations

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
    fma,
    half,
    last_index,
    listed_row,
    load_lanes,
    pointer,
    prefetch,
    splat,
)
from evdist.kernels.sparse_rows import FIRST_ID, FIRST_MASS, MASSES_AHEAD

_OCTET, _OCTET32 = ir.VectorType(F64, 8), ir.VectorType(F32, 8)
_I16 = ir.IntType(16)
_OCTET16 = ir.VectorType(_I16, 8)


def _address(builder, array, t, kind):
    return builder.bitcast(builder.gep(array, [t]), kind.as_pointer())


def _sum_of_lanes(builder, v):
    """The sum of a vector's lanes, halved again and again."""
    while v.type.count > 2:
        v = builder.fadd(half(builder, v, 0), half(builder, v, 1))
    return builder.fadd(builder.extract_element(v, I32(0)), builder.extract_element(v, I32(1)))


def _pairs_of_lanes(builder, x, y):
    """Sums of neighbouring lanes of two <8 x float>: x, x, y, y, x, x, y, y."""
    even, odd = (
        builder.shuffle_vector(
            x, y, ir.Constant(ir.VectorType(I32, 8), [q + p for p in (0, 2, 8, 10, 4, 6, 12, 14)])
        )
        for q in (0, 1)
    )
    return builder.fadd(even, odd)


def _eight_sums(builder, v):
    """Sums of the lanes of eight <8 x float>, as one: shuffles within 128 bits, but the last."""
    v = [_pairs_of_lanes(builder, v[q], v[q + 1]) for q in range(0, 8, 2)]
    v = [_pairs_of_lanes(builder, v[q], v[q + 1]) for q in range(0, 4, 2)]
    low, high = (
        builder.shuffle_vector(
            *v, ir.Constant(ir.VectorType(I32, 8), [q + p for p in (0, 1, 2, 3, 8, 9, 10, 11)])
        )
        for q in (0, 4)
    )
    return builder.fadd(low, high)


@intrinsic
def cluster_columns(typing, T, index, start, count, ahead, base, cluster, first, last, C, stride):
    """C[p, t] = base[t] - T's mass on cluster[p] in row index[start + t], first <= p < last.

    For t < count, in eights, so that more may be written; past the end of the index, its last entry
    counts. T as in `evdist.kernels.slots`: the eight slots of a row's first line are compared with
    the cluster at once. At most one of them has it, so the sum over them is exact. Returns the bits
    of all last masses of first lines, or-ed: where they are 0, no row has a second line. The lines
    of the rows index[start + ahead + t] are fetched into the cache.
    """

    def codegen(context, builder, signature, args):
        tt, it, _, _, _, bt, lt, _, _, ct, _ = signature.args
        T, index, start, count, ahead, base, cluster, first, last, C, stride = args
        end = last_index(context, builder, it, index)
        T, index, base, cluster, C = (
            pointer(context, builder, t, v)
            for t, v in [(tt, T), (it, index), (bt, base), (lt, cluster), (ct, C)]
        )
        width = I64(LANES)
        here = listed_row(builder, index, start, end, width)
        later = listed_row(builder, index, builder.add(start, ahead), end, width)
        longer = cgutils.alloca_once_value(builder, I32(0))
        with cgutils.for_range_slice(builder, I64(0), count, I64(8)) as (t, _):
            lines = [builder.gep(T, [here(builder.add(t, I64(q)))]) for q in range(8)]
            for q, line in enumerate(lines):
                prefetch(builder, builder.gep(T, [later(builder.add(t, I64(q)))]))
                words = builder.bitcast(line, I32.as_pointer())
                word = builder.load(builder.gep(words, [I64(FIRST_MASS + MASSES_AHEAD - 1)]))
                builder.store(builder.or_(builder.load(longer), word), longer)
            share = builder.load(_address(builder, base, t, _OCTET32), align=4)
            with cgutils.for_range_slice(builder, first, last, I64(1)) as (p, _):
                number = builder.trunc(builder.load(builder.gep(cluster, [p])), _I16)
                number = splat(builder, number, _OCTET16)
                masses = []
                for line in lines:
                    halves = builder.bitcast(line, _I16.as_pointer())
                    ids = builder.load(_address(builder, halves, I64(FIRST_ID), _OCTET16), align=2)
                    mass = builder.load(_address(builder, line, I64(FIRST_MASS), _OCTET32), align=4)
                    named = builder.icmp_unsigned("==", ids, number)
                    masses.append(builder.select(named, mass, ir.Constant(_OCTET32, [0.0] * 8)))
                column = builder.fsub(share, _eight_sums(builder, masses))
                at = builder.add(builder.mul(p, stride), t)
                builder.store(column, _address(builder, C, at, _OCTET32), align=4)
        return builder.load(longer)

    i64 = types.int64
    signature = types.int32(T, index, i64, i64, i64, base, cluster, i64, i64, C, i64)
    return signature, codegen


@intrinsic
def combine_columns(typing, C, stride, columns, count, m, out):
    """out[t] = sum_p m[p] C[p, t]; m and out float64.

    On the grid of `sweep.quantise` every product and sum is exact, whatever their order.
    """

    def codegen(context, builder, signature, args):
        ct, _, _, _, mt, ot = signature.args
        C, stride, columns, count, m, out = args
        C, m, out = (pointer(context, builder, t, v) for t, v in [(ct, C), (mt, m), (ot, out)])
        acc = [cgutils.alloca_once(builder, _OCTET) for _ in range(2)]
        with cgutils.for_range_slice(builder, I64(0), count, I64(LANES)) as (t, _):
            for a in acc:
                builder.store(ir.Constant(_OCTET, [0.0] * 8), a)
            with cgutils.for_range(builder, columns) as loop:
                share = splat(builder, builder.load(builder.gep(m, [loop.index])), _OCTET)
                base = builder.add(builder.mul(loop.index, stride), t)
                for q, a in enumerate(acc):
                    at = _address(builder, C, builder.add(base, I64(8 * q)), _OCTET32)
                    line = builder.fpext(builder.load(at, align=4), _OCTET)
                    builder.store(fma(builder, line, share, builder.load(a)), a)
            for q, a in enumerate(acc):
                at = _address(builder, out, builder.add(t, I64(8 * q)), _OCTET)
                builder.store(builder.load(a), at, align=8)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(C, i64, i64, i64, m, out), codegen


@intrinsic
def column_sums(typing, C, stride, first, last, count, left, at, out, to):
    """out[to + p] = sum_t left[at + t] C[p, t] for p = first, ..., last - 1.

    left float32, out float64, both taken as flat. Each lane sums its partners in float32, and the
    lanes are summed in float64: the error does not grow with the number of pairs.
    """

    def codegen(context, builder, signature, args):
        ct, _, _, _, _, lt, _, ot, _ = signature.args
        C, stride, first, last, count, left, at, out, to = args
        C, left, out = (
            pointer(context, builder, t, v) for t, v in [(ct, C), (lt, left), (ot, out)]
        )
        left, out = builder.gep(left, [at]), builder.gep(out, [to])
        acc = cgutils.alloca_once(builder, V32)
        with cgutils.for_range_slice(builder, first, last, I64(1)) as (p, _):
            column = builder.gep(C, [builder.mul(p, stride)])
            builder.store(ir.Constant(V32, [0.0] * LANES), acc)
            with cgutils.for_range_slice(builder, I64(0), count, I64(LANES)) as (t, _):
                lines = load_lanes(builder, column, t), load_lanes(builder, left, t)
                builder.store(fma(builder, *lines, builder.load(acc)), acc)
            total = _sum_of_lanes(builder, builder.fpext(builder.load(acc), V64))
            builder.store(total, builder.gep(out, [p]))
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(C, i64, i64, i64, i64, left, i64, out, i64), codegen


@intrinsic
def change_between(typing, old, new, target, w, count):
    """sum_t w_t ((new_t - target_t)^2 - (old_t - target_t)^2); w float32, the others float64.

    Written as (new - old)(new + old - 2 target): no digits are lost when the change is small.
    """

    def codegen(context, builder, signature, args):
        *arrays, count = args
        old, new, target, w = (
            pointer(context, builder, t, v) for t, v in zip(signature.args[:4], arrays, strict=True)
        )
        total = cgutils.alloca_once_value(builder, ir.Constant(_OCTET, [0.0] * 8))
        with cgutils.for_range_slice(builder, I64(0), count, I64(8)) as (t, _):
            before, after, goal = (
                builder.load(_address(builder, x, t, _OCTET), align=8) for x in (old, new, target)
            )
            weight = builder.load(_address(builder, w, t, _OCTET32), align=4)
            middle = builder.fsub(builder.fadd(after, before), builder.fadd(goal, goal))
            step = builder.fmul(builder.fpext(weight, _OCTET), builder.fsub(after, before))
            step = builder.fmul(step, middle)
            builder.store(builder.fadd(builder.load(total), step), total)
        return _sum_of_lanes(builder, builder.load(total))

    return types.float64(old, new, target, w, types.int64), codegen


@intrinsic
def residuals_between(typing, new, target, w, base, count, residual, r):
    """residual[t] = w_t (new_t - target_t), in r as float32. Returns sum_t residual_t base_t.

    w, base and r float32, the others float64.
    """

    def codegen(context, builder, signature, args):
        new, target, w, base, count, residual, r = (
            v if t is types.int64 else pointer(context, builder, t, v)
            for t, v in zip(signature.args, args, strict=True)
        )
        total = cgutils.alloca_once_value(builder, ir.Constant(_OCTET, [0.0] * 8))
        with cgutils.for_range_slice(builder, I64(0), count, I64(8)) as (t, _):
            after, goal = (
                builder.load(_address(builder, x, t, _OCTET), align=8) for x in (new, target)
            )
            weight, share = (
                builder.fpext(builder.load(_address(builder, x, t, _OCTET32), align=4), _OCTET)
                for x in (w, base)
            )
            left = builder.fmul(weight, builder.fsub(after, goal))
            builder.store(left, _address(builder, residual, t, _OCTET), align=8)
            single = builder.fptrunc(left, _OCTET32)
            builder.store(single, _address(builder, r, t, _OCTET32), align=4)
            builder.store(fma(builder, left, share, builder.load(total)), total)
        return _sum_of_lanes(builder, builder.load(total))

    signature = types.float64(new, target, w, base, types.int64, residual, r)
    return signature, codegen

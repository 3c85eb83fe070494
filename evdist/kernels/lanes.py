"""Pieces of LLVM code that the intrinsics of `evdist.kernels.vector` are put together from."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

#: float32 numbers in a cache line of 64 bytes.
LANES = 16
#: Terms summed in float32 before they are folded into float64.
CHUNK = 32

I32, I64 = ir.IntType(32), ir.IntType(64)
F32, F64 = ir.FloatType(), ir.DoubleType()
V32, V64 = ir.VectorType(F32, LANES), ir.VectorType(F64, LANES)


def pointer(context, builder, array_type, value):
    if array_type.layout != "C":
        raise TypeError("The kernels read arrays row by row without gaps; pass a contiguous copy.")
    return cgutils.create_struct_proxy(array_type)(context, builder, value=value).data


def last_index(context, builder, array_type, value):
    """Number of the last entry of a one-dimensional array."""
    array = cgutils.create_struct_proxy(array_type)(context, builder, value=value)
    return builder.sub(array.nitems, I64(1))


def splat(builder, scalar, vector_type):
    one = builder.insert_element(ir.Constant(vector_type, ir.Undefined), scalar, I32(0))
    mask = ir.Constant(ir.VectorType(I32, vector_type.count), [0] * vector_type.count)
    return builder.shuffle_vector(one, ir.Constant(vector_type, ir.Undefined), mask)


def fma(builder, a, b, c):
    kind = "f32" if a.type.element == F32 else "f64"
    name = f"llvm.fma.v{a.type.count}{kind}"
    fn = cgutils.get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(fn, [a, b, c])


def load_lanes(builder, table, offset):
    """16 float32 lanes at `table[offset]`; fastest when rows start on cache lines."""
    address = builder.bitcast(builder.gep(table, [offset]), V32.as_pointer())
    return builder.load(address, align=4)


def row_offset(builder, index, t, width, shift=None):
    """Where row index[t] (+ shift, modulo 2^32) of a table begins."""
    row = builder.load(builder.gep(index, [t]))
    if shift is not None:
        row = builder.add(row, builder.trunc(shift, I32))
    return builder.mul(builder.zext(row, I64), width)


def prefetch(builder, address):
    byte = ir.IntType(8).as_pointer()
    fn = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32]), "llvm.prefetch.p0"
    )
    # read, keep in all cache levels, data
    builder.call(fn, [builder.bitcast(address, byte), I32(0), I32(3), I32(1)])


def half(builder, v, which):
    """The lower or upper half of a vector of doubles."""
    width = v.type.count // 2
    mask = ir.Constant(ir.VectorType(I32, width), [which * width + q for q in range(width)])
    return builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), mask)


def four_sums(builder, v):
    """Sums of the lanes of four <8 x double>, as <4 x double>: one tree for all four."""

    def merge(x, y, size):
        # Lanes of x and y by turns in runs of `size`, folded: half as many partial sums of each.
        lanes = [
            [p + q if p // size % 2 == 0 else 8 + p - size + q for p in range(0, 8, size)
             for q in range(size)],
            [p + size + q if p // size % 2 == 0 else 8 + p + q for p in range(0, 8, size)
             for q in range(size)],
        ]  # fmt: skip
        even, odd = (
            builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, 8), m)) for m in lanes
        )
        return builder.fadd(even, odd)

    pairs = merge(merge(v[0], v[1], 1), merge(v[2], v[3], 1), 2)
    return builder.fadd(half(builder, pairs, 0), half(builder, pairs, 1))


def for_four_dots(builder, A, f, count, m, use, fetch, offset):
    """Call `use(t, <A[t] . m, ..., A[t+3] . m>)` for t = 0, 4, ... < count.

    Row t begins at `A[offset(t)]`. Only the first f columns count; half a cache line is enough for
    up to eight. `fetch(t)` is called for each t too: rows wanted later are brought into the cache
    behind the arithmetic.
    """
    octet, octet32 = ir.VectorType(F64, 8), ir.VectorType(F32, 8)
    acc = [cgutils.alloca_once(builder, octet) for _ in range(4)]

    def load(array, at, kind):
        return builder.load(builder.bitcast(builder.gep(array, [at]), kind.as_pointer()), align=4)

    with cgutils.for_range_slice(builder, I64(0), count, I64(4)) as (t, _):
        fetch(t)
        for q in range(4):
            builder.store(ir.Constant(octet, [0.0] * 8), acc[q])
        rows = [offset(builder.add(t, I64(q))) for q in range(4)]
        with cgutils.for_range_slice(builder, I64(0), f, I64(8)) as (j, _):
            mj = load(m, j, octet)
            for q in range(4):
                line = builder.fpext(load(A, builder.add(rows[q], j), octet32), octet)
                total = fma(builder, line, mj, builder.load(acc[q]))
                builder.store(total, acc[q])
        use(t, four_sums(builder, [builder.load(a) for a in acc]))


def listed_row(builder, index, at, last, width, shift=None):
    """offset(t): where row index[at + t] + shift of a table begins; past the end, of the last."""

    def offset(t):
        place = builder.add(at, t)
        place = builder.select(builder.icmp_signed("<", place, last), place, last)
        return row_offset(builder, index, place, width, shift)

    return offset


def fetcher(builder, table, width, offset, rows):
    """fetch(t), for t = 0, 4, ...: bring the next `rows` rows of the table into the cache.

    Row s begins at `table[offset(s)]`. A few rows at a time, between dot products: never more than
    the machine has room for at once.
    """

    def fetch(t):
        first = builder.udiv(builder.mul(t, I64(rows)), I64(4))
        for q in range(rows):
            base = offset(builder.add(first, I64(q)))
            with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
                prefetch(builder, builder.gep(table, [builder.add(base, j)]))

    return fetch


def sum_in_chunks(builder, width, count, acc, out, add):
    """out[q][:] = sum over t < count of what `add(t, j)` adds to acc[q], column block by block.

    Sums of CHUNK terms are made in float32 and folded into float64: fast, and the error does not
    grow with the number of pairs.
    """
    zero32, zero64 = ir.Constant(V32, [0.0] * LANES), ir.Constant(V64, [0.0] * LANES)
    total = [cgutils.alloca_once(builder, V64) for _ in acc]
    with cgutils.for_range_slice(builder, I64(0), width, I64(LANES)) as (j, _):
        for x in total:
            builder.store(zero64, x)
        with cgutils.for_range_slice(builder, I64(0), count, I64(CHUNK)) as (lo, _):
            end = builder.add(lo, I64(CHUNK))
            hi = builder.select(builder.icmp_signed("<", end, count), end, count)
            for a in acc:
                builder.store(zero32, a)
            with cgutils.for_range_slice(builder, lo, hi, I64(1)) as (t, _):
                add(t, j)
            for a, x in zip(acc, total, strict=True):
                wide = builder.fpext(builder.load(a), V64)
                builder.store(builder.fadd(builder.load(x), wide), x)
        for x, array in zip(total, out, strict=True):
            address = builder.bitcast(builder.gep(array, [j]), V64.as_pointer())
            builder.store(builder.load(x), address, align=8)

"""The same bits from NumPy, Dask and zarr masses, however they are chunked."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from evdist import CredalPartition, FocalSets
from evdist.partition import rows as blocks

VIEWS = {
    "plausibility": lambda p: p.plausibility,
    "normalised plausibility": lambda p: p.normalised_plausibility,
    "belief": lambda p: p.belief,
    "pignistic": lambda p: p.pignistic,
    "fuzzy": lambda p: p.fuzzy(),
    "labels": lambda p: p.labels(),
    "labels by belief": lambda p: p.labels("belief"),
    "lower": lambda p: p.lower(),
    "upper": lambda p: p.upper(),
    "lower by dominance": lambda p: p.rough("dominance")[0],
    "upper by dominance": lambda p: p.upper("dominance"),
    "outliers": lambda p: p.outliers(),
    "nonspecificity": lambda p: p.object_nonspecificity(),
    "projected": lambda p: p.project(FocalSets.simple(p.n_clusters)).mass,
}


def masses(n: int, focal: FocalSets, dtype: type = np.float32) -> np.ndarray:
    m = np.random.default_rng(n).dirichlet(np.full(len(focal), 0.3), n)
    m[::7] = np.eye(1, len(focal))
    return m.astype(dtype)


def chunked(m: np.ndarray, chunks: tuple[int, int]) -> zarr.Array:
    table = zarr.create_array(
        zarr.storage.MemoryStore(), shape=m.shape, dtype=m.dtype, chunks=chunks
    )
    table[:] = m
    return table


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16 rows, so that small tables have many."""
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 16)
    monkeypatch.setattr(blocks, "MIN_ROWS", 16)


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=12)
@given(data=st.data(), f=st.sampled_from([FocalSets.simple, FocalSets.pairs, FocalSets.full]))
def test_chunkings_change_no_bit(data, f):
    n, focal = 97, f(4)
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    m = masses(n, focal, dtype)
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=6)))
    heights = tuple(np.diff([0, *cuts, n]).tolist())
    width = data.draw(st.integers(3, len(focal)))
    height = data.draw(st.integers(10, n))
    reference = CredalPartition(m, focal)
    on_dask = CredalPartition(da.from_array(m, chunks=(heights, width)), focal)
    on_zarr = CredalPartition(chunked(m, (height, width)), focal)
    lazy = {name: view(on_dask) for name, view in VIEWS.items()}
    with dask.config.set(scheduler="sync"):
        (lazy,) = dask.compute(lazy)
        summaries = [p.summary() for p in (on_dask, on_zarr)]
        assert on_dask == on_zarr == reference
    for name, view in VIEWS.items():
        expected, from_zarr = view(reference), view(on_zarr)
        assert expected.dtype == lazy[name].dtype == from_zarr.dtype
        np.testing.assert_array_equal(lazy[name], expected, err_msg=name, strict=True)
        np.testing.assert_array_equal(from_zarr, expected, err_msg=name, strict=True)
    for summary in summaries:
        assert summary.nonspecificity == reference.nonspecificity()
        np.testing.assert_array_equal(summary.sizes.expected, reference.sizes().expected)
        assert str(summary) == str(reference.summary())


def test_views_of_a_dask_array_are_lazy_and_computed_once():
    focal = FocalSets.simple(3)
    m = masses(100, focal)
    reads = []

    def load(block_info=None):
        first, last = block_info[None]["array-location"][0]
        reads.append(first)
        return m[first:last]

    table = da.map_blocks(load, chunks=((40, 60), (len(focal),)), dtype=m.dtype, meta=m[:0])
    p = CredalPartition(table, focal)
    results = [view(p) for view in VIEWS.values()]
    assert all(isinstance(result, da.Array) for result in results)
    assert all(result.chunks[0] == (40, 60) for result in results)
    assert reads == []
    with dask.config.set(scheduler="sync"):
        dask.compute(*results)
        assert sorted(reads) == [0, 40]
        p.summary()
        assert sorted(reads) == [0, 0, 40, 40]


def test_a_notebook_does_not_compute_lazy_masses():
    def never(block):
        raise AssertionError("computed")

    focal = FocalSets.simple(3)
    table = da.zeros((9, 5), chunks=3).map_blocks(never, dtype=float, meta=np.empty((0, 0)))
    p = CredalPartition(table, focal)
    assert repr(p) == "CredalPartition(n_objects=9, n_clusters=3, f=5, mass=float64 dask)"
    assert "not computed" in p._repr_html_()


def test_each_chunk_of_a_zarr_array_is_read_once(small_blocks):
    class Counting:
        """Row slices of a NumPy array with the chunks of a zarr array."""

        def __init__(self, m):
            self.m, self.shape, self.dtype, self.chunks = m, m.shape, m.dtype, (32, m.shape[1])
            self.read = []

        def __getitem__(self, rows):
            self.read.append((rows.start, rows.stop))
            return self.m[rows]

    focal = FocalSets.simple(3)
    table = Counting(masses(100, focal))
    CredalPartition(table, focal).labels()
    assert table.read == [(0, 32), (32, 64), (64, 96), (96, 128)]


def test_rows_of_a_zarr_array_are_picked_as_from_numpy():
    focal = FocalSets.simple(3)
    m = masses(50, focal)
    p = CredalPartition(chunked(m, (16, 5)), focal)
    for rows in (slice(5, 20), slice(None, None, -3), [7, 3, -1], m[:, 0] > 0.5):
        np.testing.assert_array_equal(p[rows].mass, m[rows])
    assert p[-1] == CredalPartition(m[-1:], focal)


def test_the_frame_of_a_lazy_partition_is_that_of_its_masses():
    focal = FocalSets.pairs(3)
    m = masses(30, focal)
    lazy = CredalPartition(da.from_array(m, chunks=(11, 2)), focal)
    assert lazy.to_frame().equals(CredalPartition(m, focal).to_frame())


def test_blocks_stay_small_whatever_the_width():
    for width in (1, 3, 12, 57, 1024, 1 << 16):
        rows = blocks.block_rows(width)
        assert rows & (rows - 1) == 0
        assert rows * width <= blocks.BLOCK_SIZE or rows == blocks.MIN_ROWS


def test_stored_masses_are_read_into_memory_where_they_are_small():
    focal = FocalSets.pairs(3)
    m = masses(100, focal)
    stored = CredalPartition(chunked(m, (30, len(focal))), focal)
    held = stored.in_memory()
    assert isinstance(held.mass, np.ndarray) and held == CredalPartition(m, focal)
    assert stored.in_memory(at_most=m.nbytes - 1) is stored
    lazy = CredalPartition(da.from_array(m, chunks=(30, -1)), focal)
    assert lazy.in_memory() is lazy and held.in_memory() is held


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_any_number_of_cores_gives_the_same_bits(small_blocks, monkeypatch, cores):
    focal = FocalSets.pairs(3)
    m = masses(500, focal)
    monkeypatch.setattr(blocks, "thread_count", lambda n_jobs: cores if n_jobs is None else n_jobs)
    found = CredalPartition(chunked(m, (30, len(focal))), focal)
    whole = CredalPartition(m, focal)
    assert found.summary().nonspecificity == whole.summary().nonspecificity
    np.testing.assert_array_equal(found.plausibility, whole.plausibility)
    broken = m.copy()
    broken[[170, 333], 0] = 2.0
    with pytest.raises(ValueError, match="170"):
        CredalPartition(chunked(broken, (30, len(focal))), focal).labels()

"""Lists of clusters on disk: as lists, read when needed, growing, or refused by a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

from evdist import CredalPartition, FocalSets
from evdist.kernels.sparse_rows import LAYOUT, WORDS, encode, ids_of
from evdist.partition import io
from evdist.partition.sparse import SparseMasses
from evdist.stores import encoding
from evdist.stores.encoding import StoreError

C, N = 40, 300
FOCAL = FocalSets.simple(C)


def masses(n: int = N, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    m = np.where(rng.random((n, C + 2)) < 0.1, rng.random((n, C + 2)), 0.0)
    m[:, 0] += 0.01
    return (m / m.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def partition() -> CredalPartition:
    return CredalPartition(SparseMasses(encode(masses()), C), FOCAL)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 37 * 4 * WORDS)


both = pytest.mark.parametrize("name", ["p.npz", "p.zarr"])


@both
@pytest.mark.usefixtures("small_chunks")
def test_lists_come_back_as_lists(partition, tmp_path, name):
    named = partition.with_ids([f"object {i}" for i in range(N)])
    named.save(tmp_path / name)
    again = CredalPartition.load(tmp_path / name)
    assert isinstance(again.mass, SparseMasses)
    assert again.mass.stored == (name == "p.zarr")
    assert again == named == CredalPartition(masses(), FOCAL)
    assert again.ids.tolist() == named.ids.tolist()
    assert repr(again) == repr(named)
    assert "lists" in repr(again)
    dense = CredalPartition(masses(), FOCAL)
    assert np.array_equal(again.labels(), dense.labels())
    assert np.array_equal(again.pignistic, dense.pignistic)
    assert str(again.summary()) == str(dense.summary())
    assert again.decide().open_names() == dense.decide().open_names()
    CredalPartition.load(tmp_path / name).save(tmp_path / f"again-{name}")
    assert CredalPartition.load(tmp_path / f"again-{name}") == partition


@pytest.mark.usefixtures("small_chunks")
def test_rows_of_stored_lists(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    stored, m = CredalPartition.load(tmp_path / "p.zarr"), masses()
    for rows in (
        slice(5, 90), slice(None, None, 7), slice(None, None, -1), slice(0, 0), [3, 299, 3, -1],
        np.arange(N) % 5 == 2, np.array([250, 1]),
    ):  # fmt: skip
        assert stored[rows] == partition[rows] == CredalPartition(m[rows], FOCAL)
        assert np.array_equal(np.asarray(stored.mass[rows]), m[rows])
    assert stored[-1] == partition[-1]
    assert np.array_equal(stored.mass[17], m[17])
    assert stored.mass[17, 3] == m[17, 3]
    assert np.array_equal(stored.mass[10:20, 2:4], m[10:20, 2:4])
    assert np.array_equal(np.asarray(stored.mass), m)
    held = stored.in_memory()
    assert isinstance(held.mass, SparseMasses)
    assert not held.mass.stored
    assert held == stored
    assert stored.in_memory(at_most=10).mass.stored
    assert stored.in_memory(at_most=N * 4 * WORDS).mass.stored is False


def test_a_store_of_lists_is_as_the_design_says(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="r")
    assert {k: v for k, v in group.attrs.items() if k != "focal_sets"} == {
        "evdist": "masses",
        "version": 2,
        "layout": LAYOUT,
        "n_clusters": C,
        "complete": True,
    }
    assert sorted(group.array_keys()) == ["rows"]
    assert group["rows"].shape == (N, WORDS)
    assert group["rows"].dtype == np.float32
    assert np.array_equal(group["rows"][:], partition.mass.rows)
    with np.load(archive(partition, tmp_path)) as found:
        assert sorted(found.files) == ["attributes", "rows"]
        assert json.loads(str(found["attributes"])) == dict(group.attrs)


def archive(partition: CredalPartition, folder: Path) -> Path:
    partition.save(folder / "a.npz")
    return folder / "a.npz"


@both
def test_dense_masses_of_many_clusters_keep_their_version(tmp_path, name):
    dense = CredalPartition(masses(), FOCAL)
    dense.save(tmp_path / name)
    again = CredalPartition.load(tmp_path / name)
    assert not isinstance(again.mass, SparseMasses)
    assert again == dense
    if name == "p.zarr":
        assert zarr.open_group(tmp_path / name, mode="r").attrs["version"] == 1


def test_renamed_clusters_are_stored_as_lists(partition, tmp_path):
    order = np.random.default_rng(1).permutation(C).tolist()
    renamed = partition.relabel(order)
    renamed.save(tmp_path / "p.zarr")
    again = CredalPartition.load(tmp_path / "p.zarr")
    assert isinstance(again.mass, SparseMasses)
    assert again == renamed
    dense = CredalPartition(masses(), FOCAL).relabel(order)
    assert np.array_equal(again.labels(), dense.labels())


@both
def test_no_lists_come_back_too(partition, tmp_path, name):
    partition[:0].save(tmp_path / name)
    again = CredalPartition.load(tmp_path / name)
    assert again == partition[:0]
    assert again.summary().n_objects == 0
    assert len(again.decide()) == 0


# ---------------------------------------------------------------------- growth
@pytest.mark.usefixtures("small_chunks")
def test_a_store_of_lists_grows(partition, tmp_path):
    url, m = tmp_path / "p.zarr", masses(50, seed=1)
    partition.with_ids(np.arange(N)).save(url)
    blocks = [m[:20], SparseMasses.of(m[20:33]), m[33:].astype(np.float64)]
    io.append(url, blocks, np.arange(N + 50))
    grown = CredalPartition.load(url)
    assert isinstance(grown.mass, SparseMasses)
    assert grown.ids.tolist() == list(range(N + 50))
    assert grown[N:] == CredalPartition(m, FOCAL)
    assert grown[:N] == partition


def test_a_dense_store_takes_lists(tmp_path):
    url, m = tmp_path / "p.zarr", masses(50, seed=1)
    CredalPartition(masses(), FOCAL).save(url)
    io.append(url, [SparseMasses.of(m)])
    assert CredalPartition.load(url)[N:] == CredalPartition(m, FOCAL)


def test_bad_blocks_leave_a_store_of_lists_as_it_was(partition, tmp_path):
    url, m = tmp_path / "p.zarr", masses(50, seed=1)
    partition.save(url)
    bad = m.copy()
    bad[7, 0] += 0.5
    damaged = encode(m)
    ids_of(damaged)[5, 4] = C
    for blocks, sentence in (
        ([m, bad], f"Row {N + 57} of mass sums to 1[.]"),
        ([SparseMasses(damaged, C)], f"Row {N + 5} of mass names cluster {C}; there are 0..39"),
        ([m, m[:, 1:]], "New masses must have 42 columns, got 41"),
    ):
        with pytest.raises(ValueError, match=sentence):
            io.append(url, blocks)
        assert CredalPartition.load(url) == partition
    partition.save(tmp_path / "p.npz")
    with pytest.raises(StoreError, match="is a NumPy archive, which cannot grow"):
        io.append(tmp_path / "p.npz", [m])


# ---------------------------------------------------------------------- what is refused
def change(path: Path, **attributes: object) -> None:
    if path.suffix == ".npz":
        with np.load(path) as found:
            rows, attrs = found["rows"], json.loads(str(found["attributes"]))
        attrs = {k: v for k, v in {**attrs, **attributes}.items() if v is not None}
        np.savez(path, rows=rows, attributes=np.array(json.dumps(attrs)))
        return
    group = zarr.open_group(path, mode="a")
    attrs = {k: v for k, v in {**group.attrs, **attributes}.items() if v is not None}
    group.attrs.clear()
    group.attrs.update(attrs)


@both
@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"evdist": "pairs"}, "must hold evdist 'masses', got evdist 'pairs'"),
        ({"version": 3}, "has version 3, this evdist reads versions 1 and 2. Read it with"),
        ({"version": 1}, "has no array 'mass'"),
        ({"layout": 1}, "has lists of layout 1, this evdist reads layout 2. Read it with"),
        ({"layout": None}, "has lists of layout None"),
        ({"complete": False}, "is half written"),
        ({"complete": None}, "is half written"),
        ({"focal_sets": [[], [0], [1]]}, "one column per focal set: got 42 columns for 3"),
        ({"n_clusters": "many"}, "is not as it was written"),
    ],
)
def test_other_stores_are_refused(partition, tmp_path, name, attributes, sentence):
    partition.save(tmp_path / name)
    change(tmp_path / name, **attributes)
    with pytest.raises(ValueError, match=sentence):
        CredalPartition.load(tmp_path / name)


def test_rows_of_another_shape_are_refused(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="a")
    del group["rows"]
    group.create_array("rows", shape=(N, WORDS), dtype=np.float64)
    with pytest.raises(StoreError, match="lists are rows of 32 float32 words, got shape"):
        CredalPartition.load(tmp_path / "p.zarr")
    del group["rows"]
    with pytest.raises(StoreError, match="has no array 'rows'"):
        CredalPartition.load(tmp_path / "p.zarr")


@both
def test_damaged_lists_are_not_written(partition, tmp_path, name):
    rows = partition.mass.rows.copy()
    rows[70, 1] += 1.0
    with pytest.raises(ValueError, match=r"Row 70 of mass sums to 2[.\d]*; each row must sum to 1"):
        CredalPartition(SparseMasses(rows, C), FOCAL).save(tmp_path / name)
    if name == "p.zarr":
        with pytest.raises(ValueError, match=r"p\.zarr is half written"):
            CredalPartition.load(tmp_path / name)


@pytest.mark.usefixtures("small_chunks")
def test_stored_lists_are_checked_when_they_are_read(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="a")
    row = group["rows"][200]
    ids_of(row[None])[0, 4] = 1000
    assert row[8] > 0
    group["rows"][200] = row
    stored = CredalPartition.load(tmp_path / "p.zarr")
    for look in (stored.summary, stored.labels, stored.decide, stored.margin, stored.validate,
                 stored.to_frame, lambda: stored.plausibility):  # fmt: skip
        with pytest.raises(ValueError, match="Row 200 of mass names cluster 1000; there"):
            look()
    with pytest.raises(ValueError, match="A list names cluster 1000; there are"):
        np.asarray(stored.mass)


@pytest.mark.usefixtures("small_chunks")
def test_a_damaged_chunk_is_refused(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    chunk = tmp_path / "p.zarr/rows/c/3/0"
    whole = bytearray(chunk.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    chunk.write_bytes(bytes(whole))
    stored = CredalPartition.load(tmp_path / "p.zarr")
    assert len(stored[:30].labels()) == 30
    with (
        pytest.raises(StoreError, match=r"p\.zarr is damaged"),
        encoding.reading(str(tmp_path / "p.zarr"), "Restore it."),
    ):
        stored.summary()


def test_lazy_dense_masses_are_still_dense(tmp_path):
    lazy = CredalPartition(da.from_array(masses(), chunks=(50, C + 2)), FOCAL)
    lazy.save(tmp_path / "p.zarr")
    assert zarr.open_group(tmp_path / "p.zarr", mode="r").attrs["version"] == 1

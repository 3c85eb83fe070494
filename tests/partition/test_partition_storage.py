"""Partitions on disk: whole, of this kind and of this version, or refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from evdist import CredalPartition, FocalSets
from evdist.stores import encoding

FOCAL = FocalSets.pairs(3, [(0, 2)])


@pytest.fixture
def partition() -> CredalPartition:
    m = np.random.default_rng(0).dirichlet(np.full(len(FOCAL), 0.3), 100).astype(np.float32)
    return CredalPartition(m, FOCAL)


@pytest.mark.parametrize("name", ["p.npz", "p.zarr", "p", "deep/er/p.zarr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_partition_comes_back(partition, tmp_path, name, dtype):
    p = CredalPartition(partition.mass.astype(dtype), FOCAL)
    p.save(tmp_path / name)
    q = CredalPartition.load(tmp_path / name)
    assert q == p
    assert q.mass.dtype == dtype
    assert q.focal_sets == FOCAL


@pytest.mark.parametrize("name", ["p.npz", "p.zarr"])
@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_any_fsspec_url_will_do(partition, tmp_path, scheme, name):
    url = f"{scheme}://{tmp_path}/{name}"
    partition.save(url)
    assert CredalPartition.load(url) == partition


def test_a_zarr_store_is_as_the_design_says_and_stays_on_disk(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="r")
    assert dict(group.attrs) == {
        "evdist": "masses",
        "version": 1,
        "n_clusters": 3,
        "focal_sets": [[], [0], [1], [2], [0, 2], [0, 1, 2]],
        "complete": True,
    }
    assert group.metadata.zarr_format == 3
    assert group["mass"].dtype == np.float32
    loaded = CredalPartition.load(tmp_path / "p.zarr")
    assert isinstance(loaded.mass, zarr.Array)
    np.testing.assert_array_equal(loaded.labels(), partition.labels())


@pytest.mark.parametrize("name", ["p.npz", "p.zarr"])
def test_lazy_masses_are_written_chunk_by_chunk(partition, tmp_path, name, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 17 * 4 * len(FOCAL))
    lazy = CredalPartition(da.from_array(partition.mass, chunks=(13, 4)), FOCAL)
    with dask.config.set(scheduler="sync"):
        lazy.save(tmp_path / name)
    assert CredalPartition.load(tmp_path / name) == partition
    CredalPartition.load(tmp_path / name).save(tmp_path / f"again-{name}")
    again = CredalPartition.load(tmp_path / f"again-{name}")
    assert again == partition
    if name == "p.zarr":
        assert again.mass.chunks == (17, len(FOCAL))


def test_no_objects_come_back_too(partition, tmp_path):
    for name in ("p.npz", "p.zarr"):
        partition[:0].save(tmp_path / name)
        assert CredalPartition.load(tmp_path / name) == partition[:0]


@pytest.mark.parametrize("name", ["p.npz", "p.zarr"])
def test_nothing_is_overwritten(partition, tmp_path, name):
    partition.save(tmp_path / name)
    with pytest.raises(FileExistsError, match=r"exists already\. Remove it"):
        partition[:5].save(tmp_path / name)
    assert CredalPartition.load(tmp_path / name) == partition


@pytest.mark.parametrize("name", ["p.npz", "p.zarr"])
def test_a_missing_store_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"no credal partition at .*{name}"):
        CredalPartition.load(tmp_path / name)


def test_a_run_that_stopped_leaves_a_store_that_is_refused(partition, tmp_path):
    m = partition.mass.copy()
    m[70] = 0.0
    lazy = CredalPartition(da.from_array(m, chunks=(20, 6)), FOCAL)
    with pytest.raises(ValueError, match="Row 70 of mass sums to 0"):
        lazy.save(tmp_path / "p.zarr")
    with pytest.raises(ValueError, match=r"p\.zarr is half written"):
        CredalPartition.load(tmp_path / "p.zarr")


def change(path: Path, **attributes: object) -> None:
    """Other attributes for a stored partition; None takes one away."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            mass, attrs = archive["mass"], json.loads(str(archive["attributes"]))
        attrs = {k: v for k, v in {**attrs, **attributes}.items() if v is not None}
        np.savez(path, mass=mass, attributes=np.array(json.dumps(attrs)))
        return
    group = zarr.open_group(path, mode="a")
    attrs = {k: v for k, v in {**group.attrs, **attributes}.items() if v is not None}
    group.attrs.clear()
    group.attrs.update(attrs)


@pytest.mark.parametrize("name", ["p.npz", "p.zarr"])
@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"evdist": "pairs"}, "must hold evdist 'masses', got evdist 'pairs'"),
        ({"evdist": None}, "must hold evdist 'masses', got something that evdist did not write"),
        ({"version": 2}, "has no array 'rows': it is not a whole credal partition"),
        ({"version": 3}, "has version 3, this evdist reads versions 1 and 2. Read it with"),
        ({"complete": False}, "is half written"),
        ({"complete": None}, "is half written"),
        ({"focal_sets": [[], [0], [1]]}, "one column per focal set: got 6 columns for 3"),
    ],
)
def test_other_stores_are_refused(partition, tmp_path, name, attributes, sentence):
    partition.save(tmp_path / name)
    change(tmp_path / name, **attributes)
    with pytest.raises(ValueError, match=sentence):
        CredalPartition.load(tmp_path / name)


def test_further_attributes_are_left_alone(partition, tmp_path):
    partition.save(tmp_path / "p.zarr")
    change(tmp_path / "p.zarr", objective=0.01, sweep=7)
    assert CredalPartition.load(tmp_path / "p.zarr") == partition


def test_a_cut_off_archive_is_refused(partition, tmp_path):
    partition.save(tmp_path / "p.npz")
    whole = (tmp_path / "p.npz").read_bytes()
    (tmp_path / "p.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="Was it written to the end"):
        CredalPartition.load(tmp_path / "p.npz")


def test_pickles_are_never_read(tmp_path):
    np.savez(tmp_path / "p.npz", mass=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="not a whole NumPy archive"):
        CredalPartition.load(tmp_path / "p.npz")


@pytest.mark.parametrize("value", [0, 0x7F, 0xFF])
def test_an_archive_with_any_byte_of_its_directory_changed_is_refused_or_read(
    partition, tmp_path, value
):
    path = tmp_path / "p.npz"
    partition.save(path)
    whole = path.read_bytes()
    for at in range(whole.index(b"PK\x01\x02"), len(whole)):
        path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        with suppress(encoding.StoreError):
            CredalPartition.load(path)


def test_folders_and_arrays_that_are_no_partition_are_refused(partition, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="not a zarr v3 group"):
        CredalPartition.load(tmp_path / "folder")
    zarr.create_array(tmp_path / "array", shape=(3, 3), dtype=float)
    with pytest.raises(ValueError, match="not a zarr v3 group"):
        CredalPartition.load(tmp_path / "array")
    partition.save(tmp_path / "p.zarr")
    del zarr.open_group(tmp_path / "p.zarr", mode="a")["mass"]
    with pytest.raises(ValueError, match="has no array 'mass'"):
        CredalPartition.load(tmp_path / "p.zarr")

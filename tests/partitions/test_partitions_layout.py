"""Rows of any kind and size are shuffled into partitions once, in bounded memory."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr

from evdist.data import layout as layout_module
from evdist.data.layout import PartitionedData
from evdist.engine.partitioning import lay_out
from evdist.kernels.shuffle import Shuffle
from evdist.stores import encoding
from evdist.stores.encoding import StoreError
from evdist.stores.exchange import Exchange
from evdist.stores.partitioned import PartitionArray
from evdist.stores.shelf import Shelf

N = 2003
ROWS = np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch) -> None:
    """Several blocks, each of which sends rows to every partition."""
    monkeypatch.setattr(layout_module, "BLOCK_BYTES", 300 * 20)


def sources(folder) -> dict:
    np.save(folder / "rows.npy", ROWS)
    zarr.save_array(folder / "rows.zarr", ROWS)
    frame = pd.DataFrame(ROWS, columns=list("abcde"))
    (folder / "many").mkdir()
    for i in range(3):
        part = frame.iloc[i * 700 : (i + 1) * 700]
        part.to_parquet(folder / "many" / f"part-{i}.parquet", row_group_size=256)
    return {
        "array": ROWS,
        "npy": str(folder / "rows.npy"),
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "zarr path": str(folder / "rows.zarr"),
        "zarr array": zarr.open_array(folder / "rows.zarr", mode="r"),
        "parquet folder": str(folder / "many"),
        "frame": frame,
        "dask array": da.from_array(ROWS, chunks=(333, 2)),
        "dask frame": dd.from_pandas(frame, npartitions=4),
    }


def test_all_kinds_of_data_give_the_same_layout(tmp_path):
    found = {
        name: lay_out(X, tmp_path / f"{name}.out", partitions=6)
        for name, X in sources(tmp_path).items()
    }
    assert len({data.fingerprint for data in found.values()}) == 1
    for data in found.values():
        rows = np.concatenate([data.read(b) for b in range(6)])
        assert np.array_equal(rows, ROWS[data.shuffle.objects(0, N)])
        assert np.array_equal(data.sample(500), rows[:500])


def test_a_layout_that_was_stopped_goes_on(tmp_path, monkeypatch):
    sent: list[int] = []
    put = Exchange.put

    def some(self, block, places, rows, note=0):
        if len(sent) == 3:
            raise InterruptedError("stopped")
        sent.append(block)
        put(self, block, places, rows, note)

    with monkeypatch.context() as patch, pytest.raises(InterruptedError, match="stopped"):
        patch.setattr(Exchange, "put", some)
        lay_out(ROWS, tmp_path / "data", partitions=4)
    with pytest.raises(StoreError, match="half written"):
        PartitionedData.open(tmp_path / "data")
    with monkeypatch.context() as patch, pytest.raises(InterruptedError, match="stopped"):
        patch.setattr(PartitionArray, "write", _twice(PartitionArray.write))
        lay_out(ROWS, tmp_path / "data", partitions=4)
    again = lay_out(ROWS, tmp_path / "data", partitions=4)
    whole = lay_out(ROWS, tmp_path / "whole", partitions=4)
    assert again.fingerprint == whole.fingerprint
    assert all(np.array_equal(again.read(b), whole.read(b)) for b in range(4))
    assert not (tmp_path / "data" / "exchange").exists()


def _twice(write):
    count = iter(range(2))

    def some(self, partition, rows):
        if next(count, None) is None:
            raise InterruptedError("stopped")
        write(self, partition, rows)

    return some


def test_a_bad_value_is_named_by_its_row(tmp_path):
    X = ROWS.copy()
    X[1234, 2] = np.nan
    with pytest.raises(ValueError, match="row 1234, column 2 is nan"):
        lay_out(X, tmp_path / "data", partitions=4)


def test_the_layout_of_other_data_is_refused(tmp_path):
    lay_out(ROWS, tmp_path / "data", partitions=4)
    with pytest.raises(StoreError, match="layout of other data: 2003 x 5"):
        lay_out(ROWS[:, :3], tmp_path / "data", partitions=4)


def test_what_cannot_be_read_in_parts_is_told(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="Write it as one of them first"):
        lay_out(str(tmp_path / "rows.csv"), tmp_path / "data")


def test_a_lost_partition_is_refused(tmp_path):
    data = lay_out(ROWS, tmp_path / "data", partitions=4)
    (tmp_path / "data" / "X" / "c" / "2" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="partition 2 is lost"):
        data.read(2)


def test_a_partition_cut_off_in_any_chunk_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 20 * 300)
    array = PartitionArray(str(tmp_path / "a"), Shuffle.of(N, 2), 5, "float32")
    array.create()
    array.write(0, ROWS[: array.shuffle.size(0)])
    assert array.has(0) and not array.has(1)
    for number in range(4):
        chunk = tmp_path / f"a/c/0/{number}/0"
        content = chunk.read_bytes()
        chunk.unlink()  # a process killed just then leaves the folder
        assert not array.has(0)
        with pytest.raises(StoreError, match="partition 0 is lost"):
            array.read(0)
        chunk.write_bytes(content)
    assert array.has(0)


def test_a_block_that_was_cut_off_is_refused(tmp_path):
    exchange = Exchange(str(tmp_path / "x"), np.array([0, 5, 10]), 1, "float32")
    exchange.begin()
    exchange.put("0", np.arange(10)[::-1], np.arange(10.0)[:, None].astype("f4"))
    assert exchange.take(1, ["0"]).ravel().tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(StoreError, match="0 of the 5 rows of range 0"):
        exchange.take(0, [])


def test_a_shelf_keeps_what_has_no_room_in_files(tmp_path):
    shelf = Shelf(100, str(tmp_path))
    small, large = np.arange(10.0), np.arange(50.0)
    shelf.put("small", small)
    shelf.put("large", large)
    assert shelf.get("small") is small and shelf.get("none") is None
    assert np.array_equal(shelf.get("large"), large)
    assert shelf.left == 20 and len(list(tmp_path.iterdir())) == 1
    shelf.put("large", large + 1)
    assert np.array_equal(shelf.get("large"), large + 1)
    shelf.close()
    assert not list(tmp_path.iterdir())

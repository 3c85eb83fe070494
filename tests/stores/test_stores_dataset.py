"""A data set in a store: known by its content, filled chunk by chunk, refused when damaged."""

from __future__ import annotations

import gzip
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import programs
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from s3_bucket import s3_bucket

from evdist.data import pieces
from evdist.data.dataset import (
    Dataset,
    Table,
    is_complete,
    is_dataset,
    read_contents,
    write_dataset,
)
from evdist.stores import encoding
from evdist.stores.encoding import StoreError, StoreNotFoundError

N, D = 500, 3
NAMES = ["a", "b", "c"]
CHUNKS = 16  # with the chunks made small, see `small_chunks`


class KilledError(RuntimeError):
    """Stands for whatever ends a process."""


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, D))


@pytest.fixture(scope="module")
def frame(X) -> pd.DataFrame:
    table = pd.DataFrame(X, columns=NAMES)
    table["kind"] = np.where(X[:, 0] > 0, "plus", "minus")
    table["weight"] = 1.0 + np.arange(N) % 3
    return table


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 32 rows, so that a small table has many."""
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 32 * D * 8)


def stored(source, url, tell=None, **chosen) -> Dataset:
    table = Table(source, **chosen)
    return write_dataset(table, url, read_contents(table), tell)


def mark(source, **chosen) -> str:
    return read_contents(Table(source, **chosen)).fingerprint


class TestFingerprint:
    def test_is_that_of_the_content_whatever_holds_it(self, X, tmp_path):
        np.save(tmp_path / "c.npy", X)
        np.save(tmp_path / "f.npy", np.asfortranarray(X))
        zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(70, 2))
        same = [
            X,
            X.tolist(),
            np.asfortranarray(X),
            X.astype(">f8"),
            np.load(tmp_path / "c.npy", mmap_mode="r"),
            tmp_path / "c.npy",
            str(tmp_path / "f.npy"),
            tmp_path / "x.zarr",
            zarr.open_array(tmp_path / "x.zarr", mode="r"),
            da.from_array(X, chunks=(100, 3)),
            da.from_array(X, chunks=(77, 2)),
        ]
        assert {mark(one) for one in same} == {mark(X)}

    def test_is_the_same_for_all_tables_with_names(self, frame, tmp_path):
        frame.to_csv(tmp_path / "x.csv", index=False)
        frame.to_csv(tmp_path / "x.csv.gz", index=False)
        frame.to_parquet(tmp_path / "x.parquet")
        frame.to_parquet(tmp_path / "rows.parquet", row_group_size=64)
        sources = [tmp_path / name for name in ("x.csv", "x.csv.gz", "x.parquet", "rows.parquet")]
        marks = {mark(s, label="kind", weight="weight") for s in (frame, *sources)}
        assert len(marks) == 1

    @given(cuts=st.lists(st.integers(1, N - 1), max_size=8, unique=True))
    @settings(max_examples=15)
    def test_does_not_depend_on_how_it_is_cut(self, X, cuts):
        sizes = np.diff([0, *sorted(cuts), N])
        assert mark(da.from_array(X, chunks=(tuple(sizes.tolist()), (D,)))) == mark(X)

    def test_nor_on_how_many_rows_are_read_at_a_time(self, frame, tmp_path, monkeypatch):
        frame.to_csv(tmp_path / "x.csv", index=False)
        whole = mark(tmp_path / "x.csv", label="kind", weight="weight")
        monkeypatch.setattr(pieces, "PIECE_ROWS", 16)
        assert mark(tmp_path / "x.csv", label="kind", weight="weight") == whole

    def test_counts_every_bit_the_names_the_classes_and_the_weights(self, X, frame):
        other = X.copy()
        other[-1, -1] = np.nextafter(other[-1, -1], 9.0)
        renamed = frame.rename(columns={"a": "z"})
        lighter = frame.assign(weight=1.0)
        marks = [mark(X), mark(other), mark(X.astype(np.float32)), mark(X[::-1]), mark(X[:-1])]
        marks += [mark(f, label="kind", weight="weight") for f in (frame, renamed, lighter)]
        marks += [mark(frame, drop=("kind", "weight")), mark(frame, columns=("a", "b"))]
        assert len(set(marks)) == len(marks)

    def test_is_not_that_of_columns_left_out(self, frame):
        other = frame.assign(kind="z")
        assert mark(frame, columns=("a", "b")) == mark(other, columns=("a", "b"))


class TestWholeStore:
    def test_gives_back_what_was_put_in(self, X, frame, tmp_path, small_chunks):
        told: list[int] = []
        data = stored(frame, tmp_path / "s", told.append, label="kind", weight="weight")
        np.testing.assert_array_equal(data.rows(), X)
        assert (data.n, data.d, data.columns) == (N, D, NAMES)
        assert [data.classes[k] for k in data.label[:9]] == frame["kind"].tolist()[:9]
        np.testing.assert_array_equal(data.weight, frame["weight"])
        assert told[-1] == N and len(told) == CHUNKS
        assert [lo for lo, _ in data.blocks()] == list(range(0, N, 32))

    def test_keeps_float32_as_it_is(self, X, tmp_path):
        assert stored(X.astype(np.float32), tmp_path / "s").X.dtype == np.float32

    def test_objects_of_no_known_class(self, frame, tmp_path):
        table = frame.assign(kind=frame["kind"].where(np.arange(N) > 4))
        data = stored(table, tmp_path / "s", label="kind", weight="weight")
        assert data.classes == ["minus", "plus"]
        assert (data.label[:5] == -1).all() and (data.label[5:] >= 0).all()

    def test_is_not_written_again(self, X, tmp_path):
        stored(X, tmp_path / "s")
        before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*")}
        stored(X, tmp_path / "s")
        assert {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*")} == before

    def test_is_told_from_other_things(self, X, tmp_path):
        stored(X, tmp_path / "s")
        zarr.create_group(tmp_path / "g")
        assert is_dataset(tmp_path / "s")
        for other in ("g", "none"):
            assert not is_dataset(tmp_path / other)

    def test_other_data_under_the_same_name_are_refused(self, X, tmp_path):
        stored(X, tmp_path / "s")
        with pytest.raises(StoreError, match=r"holds other data: remove it, or store these under"):
            stored(X + 1, tmp_path / "s")
        np.testing.assert_array_equal(Dataset.open(tmp_path / "s").rows(), X)


class TestStoppedWriter:
    @pytest.mark.parametrize("after", [1, 2, 7, CHUNKS - 1, CHUNKS])
    def test_goes_on_after_any_chunk(self, X, after, tmp_path, small_chunks):
        def kill(rows: int) -> None:
            if rows >= min(after * 32, N):
                raise KilledError("killed")

        with pytest.raises(KilledError, match="killed"):
            stored(X, tmp_path / "s", kill)
        with pytest.raises(StoreError, match=r"half written: the upload did not finish"):
            Dataset.open(tmp_path / "s")
        chunks = sorted((tmp_path / "s/X/c").glob("*/*"))
        before = {p: p.stat().st_mtime_ns for p in chunks}
        assert len(chunks) == after
        data = stored(X, tmp_path / "s")
        np.testing.assert_array_equal(data.rows(), X)
        assert {p: p.stat().st_mtime_ns for p in chunks} == before, "what was there stays"

    def test_again_and_again(self, X, frame, tmp_path, small_chunks):
        for after in (40, 41, 200, 499):

            def kill(rows: int, after: int = after) -> None:
                if rows > after:
                    raise KilledError("killed")

            with pytest.raises(KilledError, match="killed"):
                stored(frame, tmp_path / "s", kill, label="kind", weight="weight")
        data = stored(frame, tmp_path / "s", label="kind", weight="weight")
        np.testing.assert_array_equal(data.rows(), X)
        assert len(data.label) == len(data.weight) == N

    @pytest.mark.process
    def test_of_a_process_that_was_killed(self, X, tmp_path):
        np.save(tmp_path / "x.npy", X)
        program = (
            "import os, signal, sys\n"
            "from evdist.stores import encoding\n"
            "from evdist.data.dataset import Table, read_contents, write_dataset\n"
            f"encoding.CHUNK_BYTES = 32 * {D} * 8\n"
            "source, url = sys.argv[1:]\n"
            "kill = lambda n: n > 250 and os.kill(os.getpid(), signal.SIGKILL)\n"
            "table = Table(source)\n"
            "write_dataset(table, url, read_contents(table), kill)\n"
        )
        ended = programs.run(["-c", program, tmp_path / "x.npy", tmp_path / "s"])
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert len(list((tmp_path / "s/X/c").glob("*/*"))) == 8
        np.testing.assert_array_equal(stored(X, tmp_path / "s").rows(), X)

    def test_that_left_a_chunk_cut_off(self, X, tmp_path, small_chunks):
        def kill(rows: int) -> None:
            if rows > 200:
                raise KilledError("killed")

        with pytest.raises(KilledError, match="killed"):
            stored(X, tmp_path / "s", kill)
        chunks = sorted((tmp_path / "s/X/c").glob("*/*"))
        chunks[1].write_bytes(chunks[1].read_bytes()[:20])
        chunks[2].write_bytes(b"")
        chunks[3].write_bytes(chunks[4].read_bytes())  # whole, but of other rows
        np.testing.assert_array_equal(stored(X, tmp_path / "s").rows(), X)

    def test_of_other_data(self, X, tmp_path, small_chunks):
        def kill(rows: int) -> None:
            raise KilledError("killed")

        with pytest.raises(KilledError, match="killed"):
            stored(X, tmp_path / "s", kill)
        with pytest.raises(StoreError, match=r"holds other data"):
            stored(X[:-1], tmp_path / "s")


class TestDamage:
    @pytest.fixture
    def store(self, X, tmp_path, small_chunks) -> Path:
        stored(X, tmp_path / "s")
        return tmp_path / "s"

    def chunk(self, store: Path, number: int = 3) -> Path:
        return store / "X/c" / str(number) / "0"

    @pytest.mark.parametrize("keep", [0, 1, 0.5])
    def test_a_chunk_cut_off_is_found_when_it_is_read(self, store, keep):
        content = self.chunk(store).read_bytes()
        self.chunk(store).write_bytes(content[: int(len(content) * keep) - (keep == 1)])
        with pytest.raises(StoreError, match=r"s is damaged: .* Remove it and load the data again"):
            Dataset.open(store).rows()

    def test_a_bit_that_fell_over(self, store):
        content = bytearray(self.chunk(store).read_bytes())
        content[len(content) // 2] ^= 1
        self.chunk(store).write_bytes(bytes(content))
        with pytest.raises(StoreError, match=r"is damaged"):
            Dataset.open(store).rows()

    def test_lost_chunks(self, store):
        for number in (2, 5):
            self.chunk(store, number).unlink()
        with pytest.raises(StoreError, match=r"damaged: 2 of 16 chunks are lost"):
            Dataset.open(store)

    @pytest.mark.parametrize(
        ("name", "value"),
        [("n", 7), ("d", 2), ("dtype", "float32"), ("columns", ["x"]), ("fingerprint", "0" * 64)],
    )
    def test_attributes_changed_by_hand(self, store, name, value):
        description = json.loads((store / "zarr.json").read_text())
        description["attributes"][name] = value
        (store / "zarr.json").write_text(json.dumps(description))
        with pytest.raises(StoreError, match=r"attributes of .* were changed after it was written"):
            Dataset.open(store)

    def test_another_version(self, store):
        description = json.loads((store / "zarr.json").read_text())
        description["attributes"]["version"] = 2
        (store / "zarr.json").write_text(json.dumps(description))
        with pytest.raises(StoreError, match=r"has version 2, this evdist reads version 1"):
            Dataset.open(store)

    def test_a_description_that_is_none(self, store):
        (store / "zarr.json").write_text("{")
        with pytest.raises(StoreError, match=r"not a zarr v3 group"):
            Dataset.open(store)

    def test_rows_of_another_shape(self, store):
        description = json.loads((store / "X/zarr.json").read_text())
        description["shape"] = [N, D + 1]
        (store / "X/zarr.json").write_text(json.dumps(description))
        with pytest.raises(StoreError, match=r"the rows are lost or were changed"):
            Dataset.open(store)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(StoreNotFoundError, match=r"no data set at"):
            Dataset.open(tmp_path / "none")


class Restless:
    """An array that is another one from some row on, each time that it is read."""

    def __init__(self, X: np.ndarray, *later: np.ndarray):
        self.versions = [X, *later]
        self.shape, self.dtype = X.shape, X.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        now = self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]
        return now[rows]


class TestSourceThatChanges:
    def test_while_it_is_read_is_refused_and_leaves_nothing(self, X, tmp_path):
        with pytest.raises(
            StoreError, match=r"X changed while it was read.*when it no longer changes"
        ):
            stored(Restless(X, X + 1), tmp_path / "s")
        assert not (tmp_path / "s").exists()
        np.testing.assert_array_equal(stored(X, tmp_path / "s").rows(), X)

    @pytest.mark.parametrize("rows", [N - 10, N + 10])
    def test_a_file_that_grows_or_shrinks(self, X, rows, tmp_path):
        path = tmp_path / "x.npy"
        np.save(path, X)
        table = Table(path)
        contents = read_contents(table)
        np.save(path, np.resize(X, (rows, D)))
        with pytest.raises(StoreError, match=r"x.npy changed while it was read"):
            write_dataset(table, tmp_path / "s", contents)

    def test_a_file_cut_off_meanwhile(self, X, tmp_path):
        path = tmp_path / "x.npy"
        np.save(path, X)
        table = Table(path)
        contents = read_contents(table)
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(ValueError, match=r"x.npy: it is cut off after row 0"):
            write_dataset(table, tmp_path / "s", contents)


class TestTablesThatCannotBeRead:
    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("x.csv", b"", r"Cannot read .*x.csv: No columns to parse"),
            ("x.csv", b"a,b\n1,2\n3,4,5\n", "Expected 2 fields in line 3, saw 3"),
            ("x.csv", b"a,b\n1,2\n3,4,\n", "Expected 2 fields in line 3, saw 3"),
            ("x.csv", b"a,b\n1,2,3\n4,5,6\n", "more values than there are columns"),
            ("x.csv", b"a,b\n1,x\n", r"Column 'b' of .*x.csv is not numeric: row 0 holds 'x'"),
            ("x.csv", b"\xff\xfe\x00", "Cannot read .*x.csv: 'utf-8'"),
            ("x.csv", b"a,b\n", "holds no rows"),
            ("x.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "Cannot read .*x.csv.gz"),
            ("x.npy", b"PK", "Cannot read .*x.npy"),
            ("x.npy", b"", "Cannot read .*x.npy"),
            ("x.parquet", b"PAR1", "Cannot read .*x.parquet"),
            ("x.txt", b"1 2", "known endings are .npy, .csv"),
        ],
    )
    def test_are_named_with_the_cause(self, name, content, sentence, tmp_path):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            mark(tmp_path / name)

    def test_no_file_of_objects_is_unpickled(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([[None]], dtype=object), allow_pickle=True)
        with pytest.raises(ValueError, match=r"must hold rows of numbers"):
            mark(tmp_path / "x.npy")

    @pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.parquet", "x.zarr"])
    def test_that_are_not_there(self, name, tmp_path):
        with pytest.raises(FileNotFoundError, match=f"{name}"):
            mark(tmp_path / name)

    @pytest.mark.parametrize(
        ("source", "got"),
        [
            (np.arange(3), r"got shape \(3,\)"),
            (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
            (np.array([["a"]]), "<U1"),
            (np.zeros((0, 3)), "holds no rows"),
            (None, "got NoneType"),
        ],
    )
    def test_arrays_that_are_no_tables(self, source, got):
        with pytest.raises(ValueError, match=got):
            mark(source)

    def test_missing_numbers_of_any_kind_are_nan(self, frame):
        names = frame[NAMES]
        plain = names.copy()
        plain.loc[3, "b"] = np.nan
        nullable = names.convert_dtypes()
        nullable.loc[3, "b"] = pd.NA
        objects = names.astype(object)
        objects.loc[3, "b"] = None
        assert mark(plain) == mark(nullable) == mark(objects)

    @pytest.mark.parametrize(
        ("chosen", "sentence"),
        [
            ({"columns": ("a", "z")}, "has no column 'z'; it has 'a', 'b', 'c', 'kind', 'weight'"),
            ({"label": "klass"}, "has no column 'klass'"),
            ({"drop": ("zz",)}, "has no column 'zz'"),
            ({"columns": ("a", "a")}, "two columns are called 'a'"),
            ({"drop": ("a", "b", "c", "kind", "weight")}, "has no column left to use"),
            ({}, "Column 'kind' of X is not numeric: row 0 holds '(plus|minus)'"),
        ],
    )
    def test_columns(self, frame, chosen, sentence):
        with pytest.raises(ValueError, match=sentence):
            mark(frame, **chosen)

    @pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
    def test_weights(self, frame, bad):
        table = frame.assign(weight=frame["weight"].where(np.arange(N) != 17, bad))
        with pytest.raises(ValueError, match=r"'weight' of weights must be above zero.* row 17 "):
            mark(table, label="kind", weight="weight")

    def test_names_for_an_array_without(self, X):
        with pytest.raises(ValueError, match=r"an array without names of columns; leave out"):
            mark(X, columns=("a",))

    def test_a_label_that_is_an_identifier(self, X, monkeypatch):
        monkeypatch.setattr("evdist.data.contents._MOST_CLASSES", 100)
        table = pd.DataFrame(X, columns=NAMES).assign(name=[f"n{i}" for i in range(N)])
        with pytest.raises(ValueError, match=r"more than 100 different values: an identifier"):
            mark(table, label="name")


# ---------------------------------------------------------------------- several writers
WRITER = """
import sys, numpy as np, pandas as pd
from evdist.data.dataset import Table, read_contents, write_dataset
n = 40_000
frame = pd.DataFrame({"a": np.arange(n) / 7, "w": np.arange(n) % 5 + 1.0})
frame["c"] = np.array(["x", "y"])[np.arange(n) % 2]
table = Table(frame, ("a",), "c", "w")
print(write_dataset(table, sys.argv[1], read_contents(table)).weight.sum())
"""


@pytest.mark.process
@pytest.mark.parametrize("place", ["disk", "s3"])
def test_equal_uploads_at_once_give_every_reader_the_right_data(tmp_path, place):
    """Readers look while three processes write the same store, again and again."""
    with s3_bucket("races") if place == "s3" else nullcontext(str(tmp_path)) as where:
        url = f"{where}/d.zarr"
        with ThreadPoolExecutor(3) as pool:
            writers = [pool.submit(programs.run, ["-c", WRITER, url]) for _ in range(3)]
            sums = set()
            while not all(writer.done() for writer in writers):
                if is_complete(url):
                    data = Dataset.open(url)
                    assert data.weight is not None and data.label is not None
                    sums |= {data.weight.sum(), data.label.sum() * 6.0}
                time.sleep(0.05)
        for writer in writers:
            ended = writer.result()
            assert ended.returncode == 0, ended.stderr
            assert float(ended.stdout) == 120_000.0
        assert sums <= {120_000.0}
        data = Dataset.open(url)
        assert data.weight is not None and data.weight.sum() == 120_000.0


def test_a_complete_store_is_not_opened_for_writing(tmp_path, monkeypatch):
    table = Table(np.arange(12.0).reshape(6, 2))
    contents = read_contents(table)
    write_dataset(table, tmp_path / "d.zarr", contents)
    monkeypatch.setattr("evdist.data.dataset._group", None)
    assert write_dataset(table, tmp_path / "d.zarr", contents).n == 6

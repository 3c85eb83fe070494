"""Files from elsewhere: zarr stores that would run code or claim what they do not hold, and CSV
files as other programs write them."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numcodecs
import numpy as np
import pandas as pd
import pytest
import zarr

from evdist.data.dataset import Dataset, Table, read_contents, write_dataset
from evdist.data.readers import row_reader
from evdist.data.tables import column_names, read_table, table_pieces
from evdist.service.jobs.pipeline import sentence
from evdist.stores.encoding import StoreError


class Harm:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def hostile(folder: Path, filters: list[dict]) -> str:
    """A zarr v2 array whose only chunk is a pickle."""
    (folder / "h.zarr").mkdir()
    chunk = pickle.dumps(np.array([Harm(folder / "harm")], object))
    (folder / "h.zarr/0.0").write_bytes(chunk)
    about = {
        "zarr_format": 2, "shape": [1, 1], "chunks": [1, 1], "dtype": "|O", "compressor": None,
        "fill_value": None, "order": "C", "filters": filters,
    }  # fmt: skip
    (folder / "h.zarr/.zarray").write_text(json.dumps(about))
    return str(folder / "h.zarr")


@pytest.mark.parametrize(
    "filters",
    [
        [{"id": "pickle", "protocol": 5}],
        [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}],
        [{"id": "json2", "encoding": "utf-8"}],
    ],
)
@pytest.mark.parametrize("dtype", ["|O", "<f8"])
def test_a_store_that_would_run_code_is_not_opened(tmp_path, filters, dtype):
    url = hostile(tmp_path, filters)
    about = json.loads((tmp_path / "h.zarr/.zarray").read_text())
    (tmp_path / "h.zarr/.zarray").write_text(json.dumps({**about, "dtype": dtype}))
    with pytest.raises(ValueError, match=r"must hold numbers|is not one of those for plain"):
        read_table(url)
    with pytest.raises(ValueError, match=r"must hold numbers|is not one of those for plain"):
        list(table_pieces(url))
    assert not (tmp_path / "harm").exists()


def test_codecs_inside_of_shards_are_looked_at_too(tmp_path):
    array = zarr.create_array(
        str(tmp_path / "s.zarr"), shape=(8, 2), chunks=(2, 2), shards=(4, 2), dtype="f8"
    )
    array[:] = 1.0
    assert read_table(tmp_path / "s.zarr").sum() == 16
    path = tmp_path / "s.zarr/zarr.json"
    about = json.loads(path.read_text())
    about["codecs"][0]["configuration"]["codecs"].append({"name": "numcodecs.pickle"})
    path.write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"codec 'numcodecs.pickle' is not one of those"):
        read_table(tmp_path / "s.zarr")


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_of_numbers_are_read_in_both_versions(tmp_path, version):
    X = np.arange(12.0).reshape(6, 2)
    more = {"filters": [numcodecs.Delta("f8")]} if version == 2 else {}
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=X.shape, chunks=(4, 2), dtype="f8", zarr_format=version,
        **more,
    )  # fmt: skip
    array[:] = X
    np.testing.assert_array_equal(read_table(tmp_path / "x.zarr"), X)


def test_a_store_that_claims_what_it_does_not_hold_is_refused(tmp_path):
    for name, rows in (("a", 10**10), ("b", 10**8)):
        zarr.create_array(str(tmp_path / f"{name}.zarr"), shape=(rows, 4), chunks=(10**6, 4),
                          dtype="f8")  # fmt: skip
    with pytest.raises(ValueError, match="claims 10,000,000,000 rows; at most"):
        read_table(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match=r"claims 100,000,000 rows, 3.2 GB, but only \d+ bytes"):
        next(table_pieces(tmp_path / "b.zarr"))


@pytest.mark.parametrize("content", ["", "[]", "{", '{"zarr_format": 3}', "null"])
def test_a_damaged_description_is_told(tmp_path, content):
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr/zarr.json").write_text(content)
    with pytest.raises(ValueError, match=r"x\.zarr"):
        read_table(tmp_path / "x.zarr")


def test_a_store_that_is_read_in_parts_is_looked_at_too(tmp_path):
    url = hostile(tmp_path, [{"id": "pickle", "protocol": 5}])
    with pytest.raises(ValueError, match=r"must hold numbers|is not one of those for plain"):
        row_reader(url)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("version", [2, 3])
def test_a_chunk_that_cannot_be_decoded_is_told(tmp_path, version):
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=(4, 2), chunks=(4, 2), dtype="f8", zarr_format=version
    )
    array[:] = 1.0
    chunk = tmp_path / ("x.zarr/0.0" if version == 2 else "x.zarr/c/0/0")
    chunk.write_bytes(b"not compressed")
    with pytest.raises(ValueError, match=r"Cannot read .*x\.zarr: .*Is it whole"):
        read_table(tmp_path / "x.zarr")


def test_a_type_that_is_no_word_is_told(tmp_path):
    zarr.create_array(str(tmp_path / "x.zarr"), shape=(4, 2), dtype="f8")
    path = tmp_path / "x.zarr/zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "data_type": {"name": "f8"}}))
    with pytest.raises(ValueError, match="must hold numbers, got values of type"):
        read_table(tmp_path / "x.zarr")


def test_what_a_file_says_is_repeated_so_that_it_can_be_shown(tmp_path):
    zarr.create_array(str(tmp_path / "x.zarr"), shape=(4, 2), dtype="f8")
    path = tmp_path / "x.zarr/zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "node_type": "\ud800"}))
    with pytest.raises(ValueError, match=r"x\.zarr: its description is damaged") as told:
        read_table(tmp_path / "x.zarr")
    assert "\\ud800" in sentence(told.value)
    sentence(told.value).encode()


def test_a_header_that_breaks_the_parser_is_told(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole.replace(b"}", b"("))
    for read in (read_table, lambda path: list(table_pieces(path)), row_reader):
        with pytest.raises(ValueError, match=r"Cannot read .*x\.npy"):
            read(str(tmp_path / "x.npy"))


def test_the_index_of_a_parquet_file_is_no_attribute(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["p", "q"])
    frame.to_parquet(tmp_path / "x.parquet")
    assert column_names(tmp_path / "x.parquet") == ["a", "b"]
    np.testing.assert_array_equal(rows(tmp_path / "x.parquet"), frame)
    np.testing.assert_array_equal(read_table(tmp_path / "x.parquet"), frame)
    np.testing.assert_array_equal(row_reader(tmp_path / "x.parquet").read(0, 2), frame)
    frame.rename_axis("name").to_parquet(tmp_path / "y.parquet")  # a column, as in a CSV file
    found = next(Table(tmp_path / "y.parquet", id="name").pieces())
    assert list(found.id) == ["p", "q"]


def test_classes_may_be_anything_and_numbers_must_be_computable(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "z": [[1], [2, 3]]})
    frame.to_parquet(tmp_path / "x.parquet")
    assert read_contents(Table(tmp_path / "x.parquet", label="z")).classes == ["[1]", "[2 3]"]
    (tmp_path / "x.csv").write_text(f"a,b\n1,2\n3,{'9' * 400}\n")
    with pytest.raises(
        ValueError, match=r"Column 'b' of .* contains a number that is too large|not numeric"
    ):
        rows(tmp_path / "x.csv")


def test_a_column_may_be_an_attribute_and_the_weight(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for name, write in (("x.csv", frame.to_csv), ("x.parquet", frame.to_parquet)):
        write(tmp_path / name, index=False)
        table = Table(tmp_path / name, columns=("a", "b"), weight="a", label="b")
        found = next(table.pieces())
        np.testing.assert_array_equal(found.X, frame)
        np.testing.assert_array_equal(found.weight, [1, 2])


@pytest.mark.parametrize("name", ["X", "weight"])
def test_a_damaged_array_of_a_data_set_is_told(tmp_path, name):
    frame = pd.DataFrame({"a": [1.0, 2.0], "w": [1.0, 2.0]})
    table = Table(frame, weight="w")
    write_dataset(table, tmp_path / "d.zarr", read_contents(table))
    (tmp_path / f"d.zarr/{name}/zarr.json").write_bytes(b"\xff{")
    with pytest.raises(StoreError, match=r"d\.zarr is damaged"):
        Dataset.open(tmp_path / "d.zarr")


# ---------------------------------------------------------------------- CSV as others write it
def rows(path: Path, **options) -> np.ndarray:
    return np.concatenate([piece.X for piece in Table(path, **options).pieces()])


def test_without_a_header_no_row_is_lost(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n1,5\n")
    np.testing.assert_array_equal(rows(tmp_path / "x.csv"), [[1, 2], [3, 4], [1, 5]])
    assert column_names(tmp_path / "x.csv") == ["column 1", "column 2"]


def test_the_index_that_to_csv_writes_is_no_attribute(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["p", "q"])
    frame.to_csv(tmp_path / "x.csv")
    np.testing.assert_array_equal(rows(tmp_path / "x.csv"), frame)
    frame.to_csv(tmp_path / "y.csv", index=False)
    assert (
        read_contents(Table(tmp_path / "x.csv")).fingerprint
        == read_contents(Table(tmp_path / "y.csv")).fingerprint
    )


def test_two_columns_of_one_name_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ValueError, match=r"two columns are called 'a'. Rename one"):
        rows(tmp_path / "x.csv")
    np.testing.assert_array_equal(rows(tmp_path / "x.csv", columns=("b",)), [[2]])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_other_delimiters_are_found(tmp_path, delimiter):
    (tmp_path / "x.csv").write_text(delimiter.join("ab") + "\n" + delimiter.join("12") + "\n")
    np.testing.assert_array_equal(rows(tmp_path / "x.csv"), [[1, 2]])


def test_a_delimiter_can_be_given(tmp_path):
    (tmp_path / "x.csv").write_text("a b\n1 2\n")
    np.testing.assert_array_equal(rows(tmp_path / "x.csv", delimiter=" "), [[1, 2]])


@pytest.mark.parametrize("name", ["X.CSV", "x.Csv", "x.tsv"])
def test_endings_are_written_either_way(tmp_path, name):
    (tmp_path / name).write_text("a\tb\n1\t2\n")
    np.testing.assert_array_equal(rows(tmp_path / name), [[1, 2]])


def test_numcodecs_is_new_enough():
    """Older ones unpickle what a filter of a v2 store says."""
    told = subprocess.run(
        [sys.executable, "-c", "import importlib.metadata as m; print(m.version('numcodecs'))"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert tuple(map(int, told.split(".")[:2])) >= (0, 16)
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    assert '"numcodecs>=0.16.6' in text

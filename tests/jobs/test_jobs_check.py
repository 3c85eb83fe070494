"""What cannot be clustered is refused with row, column, value and cure; what is odd is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from jobs.jobs_cases import PARAMETERS, blobs, config, data_file, quick

from evdist.data.dataset import Dataset, Table, read_contents, write_dataset
from evdist.service.jobs import JobError, run
from evdist.service.jobs.check import check_data, check_values
from evdist.service.jobs.scale import fit_scale
from evdist.stores import encoding


def stored(X, folder) -> Dataset:
    table = Table(X)
    return write_dataset(table, folder / "data.zarr", read_contents(table))


def check(X, folder, least=2, scaled=False):
    return check_data(stored(X, folder), least=least, scaled=scaled)


class TestRefused:
    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            (np.nan, r"Row 150, column 'b' is missing \(NaN\): nan"),
            (np.inf, "Row 150, column 'b' is infinite: inf"),
            (-np.inf, "Row 150, column 'b' is infinite: -inf"),
        ],
    )
    def test_numbers_that_are_none(self, value, sentence, tmp_path, monkeypatch):
        monkeypatch.setattr(encoding, "CHUNK_BYTES", 1024)
        X = blobs()
        X[150, 1] = value
        X[180, 0] = np.nan  # the first one is told
        frame = pd.DataFrame(X, columns=["a", "b"])
        with pytest.raises(ValueError, match=f"{sentence}. Fill in .* drops nothing by itself"):
            check(frame, tmp_path)
        with pytest.raises(ValueError, match=sentence):
            check_values(Dataset.open(tmp_path / "data.zarr"))

    def test_columns_without_names_are_numbered(self, tmp_path):
        X = blobs()
        X[3, 0] = np.nan
        with pytest.raises(ValueError, match=r"Row 3, column 0 is missing"):
            check(X, tmp_path)

    def test_too_few_objects(self, tmp_path):
        with pytest.raises(ValueError, match=r"There are 5 objects, but 7 are needed .* fewer"):
            check(blobs()[:5], tmp_path, least=7)

    def test_only_one_object_again_and_again(self, tmp_path):
        with pytest.raises(ValueError, match=r"All columns are constant: .*row 0 holds 2 in col"):
            check(np.full((50, 3), 2.0), tmp_path)

    def test_numbers_whose_squares_are_none(self, tmp_path):
        X = blobs()
        X[:, 1] *= 1e200
        with pytest.raises(ValueError, match=r"Column 1 holds numbers too large .*another unit"):
            check(X, tmp_path)


class TestTold:
    def test_nothing_when_nothing_is_odd(self, tmp_path):
        assert check(blobs(), tmp_path).warnings == []

    def test_constant_columns(self, tmp_path):
        X = np.column_stack([blobs(), np.full(200, 7.0)])
        (told,) = check(X, tmp_path).warnings
        assert told.startswith("Constant columns are of no use: column 2 (value 7).")

    def test_objects_that_are_there_twice(self, tmp_path, monkeypatch):
        monkeypatch.setattr(encoding, "CHUNK_BYTES", 1024)
        X = np.concatenate([blobs(), blobs()[10:13]])
        (told,) = check(X, tmp_path).warnings
        assert told.startswith("3 of 203 objects are copies of others (row 200 is row 10 again).")

    def test_zero_and_minus_zero_are_the_same(self, tmp_path):
        X = blobs()
        X[3], X[4] = [0.0, 1.0], [-0.0, 1.0]
        assert "row 4 is row 3 again" in check(X, tmp_path).warnings[0]

    def test_a_column_that_dwarfs_the_others(self, tmp_path):
        X = np.column_stack([blobs(), 1e4 * blobs()[:, 0]])
        (told,) = check(X, tmp_path).warnings
        assert told.startswith("Column 2 varies") and "data.scale: standard" in told

    def test_but_not_when_columns_are_scaled(self, tmp_path):
        X = np.column_stack([blobs(), 1e4 * blobs()[:, 0]])
        assert check(X, tmp_path, scaled=True).warnings == []

    def test_by_the_job_in_its_log_metrics_and_report(self, tmp_path):
        data_file(tmp_path, np.concatenate([blobs(), blobs()[:1]]))
        result = run(config(tmp_path))
        assert "1 of 201 objects are copies" in result.metrics["warnings"][0]
        assert "WARNING" in result.folder.log()
        assert "1 of 201 objects are copies" in open_text(result.report)


def open_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class TestScale:
    def test_mean_and_spread_are_those_of_numpy_however_cut(self, tmp_path, monkeypatch):
        monkeypatch.setattr(encoding, "CHUNK_BYTES", 1024)
        X = 3.0 + blobs()
        found = check(X, tmp_path)
        np.testing.assert_allclose(found.mean, X.mean(axis=0))
        np.testing.assert_allclose(found.spread, X.std(axis=0))

    def test_standard_and_robust(self, tmp_path):
        X = blobs() * [1.0, 50.0]
        data = stored(X, tmp_path)
        found = check_data(data, least=2, scaled=True)
        standard = fit_scale("standard", data, found)(X)
        np.testing.assert_allclose(standard.std(axis=0), 1.0)
        robust = fit_scale("robust", data, found)(X)
        low, middle, high = np.quantile(robust, [0.25, 0.5, 0.75], axis=0)
        np.testing.assert_allclose(high - low, 1.0)
        np.testing.assert_allclose(middle, 0.0, atol=1e-12)
        assert fit_scale(None, data, found) is None

    def test_a_column_without_spread_stays_finite(self, tmp_path):
        X = np.column_stack([blobs(), np.full(200, 7.0)])
        data = stored(X, tmp_path)
        for kind in ("standard", "robust"):
            scaled = fit_scale(kind, data, check_data(data, least=2, scaled=True))(X)
            assert np.isfinite(scaled).all() and (scaled[:, 2] == 0).all()

    def test_keeps_float32(self, tmp_path):
        X = blobs().astype(np.float32)
        data = stored(X, tmp_path)
        assert fit_scale("standard", data, check(X, tmp_path))(X).dtype == np.float32


class TestJob:
    """The same sentences, from the job; nothing of it is lost when the data are mended."""

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("a,b\n1,2\n3,\n5,6\n", r"Row 1, column 'b' is missing"),
            ("a,b\n1,2\n3,oops\n5,6\n", r"Column 'b' of .* is not numeric: row 1 holds 'oops'"),
            ("a,b\n1,2\n3,inf\n5,6\n", r"Row 1, column 'b' is infinite"),
            ("a,b\n1,2\n1,2\n1,2\n", "All columns are constant"),
            ("a,b\n1,2\n3,4\n", "There are 2 objects, but 3 are needed"),
            ("a,b\n", "holds no rows"),
        ],
    )
    def test_refuses(self, content, sentence, tmp_path):
        (tmp_path / "x.csv").write_text(content)
        with pytest.raises(JobError, match=sentence):
            quick(config(tmp_path, data={"url": str(tmp_path / "x.csv")}))

    def test_says_how_many_objects_the_largest_candidate_needs(self, tmp_path):
        data_file(tmp_path, blobs()[:5])
        parameters = {k: v for k, v in PARAMETERS.items() if k != "n_clusters"}
        values = config(tmp_path, task="select", candidates=[2, 6], parameters=parameters)
        with pytest.raises(JobError, match=r"There are 5 objects, but 6 are needed"):
            run(values)

"""ECM of a Dask array, or of a file larger than memory: no process ever has all rows."""

from __future__ import annotations

import os
import signal

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_cluster import workers
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import ECM
from evdist.ecm import lazy
from evdist.ecm.start import sample_numbers

N = 300_000  # above what is small enough to be loaded
X, Y = make_blobs(N, 2, centers=4, random_state=3)
SEEN = sample_numbers(N, np.random.default_rng(0))


def fitted(table, **options):
    parameters = {"n_clusters": 4, "random_state": 0, "delta": 9.0, "n_jobs": 2} | options
    client = parameters.pop("client", None)
    return ECM(**parameters).fit(table, client=client)


@pytest.fixture(scope="module")
def in_memory():
    return fitted(X)


def assert_same(model, other):
    assert model.history_ == other.history_
    np.testing.assert_array_equal(model.prototypes_, other.prototypes_)
    lazily = model.credal_partition_.mass
    np.testing.assert_array_equal(lazily.compute(scheduler="threads"), other.credal_partition_.mass)


@pytest.mark.parametrize("rows", [N, 131_072, 70_001])
def test_any_chunks_give_the_bits_of_an_array(rows, in_memory):
    model = fitted(da.from_array(X, chunks=(rows, 1)))
    assert_same(model, in_memory)
    labels = model.labels_.compute(scheduler="threads")
    np.testing.assert_array_equal(labels, in_memory.labels_)


@pytest.mark.process
def test_workers_give_the_bits_of_an_array(two_workers, in_memory):
    assert_same(fitted(da.from_array(X, chunks=(100_000, 2)), client=two_workers), in_memory)


def test_the_adaptive_metric_too():
    table = da.from_array(X, chunks=(100_000, 2))
    assert_same(fitted(table, metric="adaptive"), fitted(X, metric="adaptive"))


@pytest.mark.process
def test_a_killed_worker_changes_nothing(tmp_path, in_memory):
    with workers(2, tmp_path) as client:
        killed = []

        def kill(progress):
            if not killed and progress.stage == "fit":
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        table = da.from_array(X, chunks=(100_000, 2))
        model = fitted(table, client=client, callbacks=[kill])
        assert killed
    assert_same(model, in_memory)


def test_delta_is_that_of_all_rows():
    """To rounding: sums over blocks, not over all rows at once."""
    model = fitted(da.from_array(X, chunks=(100_000, 2)), delta="auto")
    assert model.delta_ == pytest.approx(fitted(X, delta="auto").delta_, rel=1e-12)
    assert adjusted_rand_score(Y, model.labels_.compute(scheduler="threads")) > 0.8


def test_a_file_larger_than_memory_is_read_again_and_again(tmp_path, monkeypatch, in_memory):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    monkeypatch.setattr(lazy, "available", lambda: 4 * X.nbytes)
    assert isinstance(fitted(path).labels_, np.ndarray)
    monkeypatch.setattr(lazy, "available", lambda: X.nbytes)
    assert_same(fitted(path), in_memory)


def test_few_rows_are_simply_loaded():
    model = fitted(da.from_array(X[:5000], chunks=(1000, 2)))
    assert isinstance(model.labels_, np.ndarray)


def test_new_objects_and_a_saved_model(tmp_path, in_memory):
    model = fitted(da.from_array(X, chunks=(100_000, 2)))
    np.testing.assert_array_equal(model.predict(X[:100]), in_memory.labels_[:100])
    model.save(tmp_path / "model")
    again = ECM.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X[:100]), in_memory.labels_[:100])


@pytest.mark.parametrize("row", [SEEN[7], 222_222])
def test_a_bad_value_is_named_by_its_row(row):
    """Also one of the sample that is looked at first."""
    table = da.from_array(X, chunks=(100_000, 2))
    holed = da.where((da.arange(N, chunks=100_000) == row)[:, None], np.nan, table)
    with pytest.raises(ValueError, match=f"row {row}, column 0 is nan"):
        fitted(holed)


def test_text_is_refused_with_its_column():
    rows = pd.DataFrame({"a": np.arange(N, dtype=float), "kind": ["x", "y"] * (N // 2)})
    with pytest.raises(ValueError, match="Column 'kind' of X is not numeric: row 0 holds 'x'"):
        fitted(dd.from_pandas(rows, npartitions=3))


@pytest.mark.parametrize(
    ("options", "name"),
    [({"scale": "standard"}, "scale"), ({"focal_sets": "select"}, 'focal_sets="select"')],
)
def test_what_needs_all_rows_is_refused(options, name):
    with pytest.raises(ValueError, match=f"{name} needs all rows in memory, and these 300,000"):
        fitted(da.from_array(X, chunks=(100_000, 2)), **options)


def test_weights_are_refused():
    with pytest.raises(ValueError, match="sample_weight needs all rows"):
        ECM(4).fit(da.from_array(X, chunks=(100_000, 2)), sample_weight=np.ones(N))

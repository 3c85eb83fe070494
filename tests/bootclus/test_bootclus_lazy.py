"""Bootclus of a Dask array, or of a file larger than memory: a sample is fitted, all are placed."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import Bootclus
from evdist.bootclus import lazy as sampling
from evdist.ecm import lazy

N = 6000
X, Y = make_blobs(N, 2, centers=[[0, 0], [7, 0], [0, 7]], random_state=3)
TABLE = da.from_array(X, chunks=(2500, 1))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(lazy, "PARTITION_ROWS", 4000)
    monkeypatch.setattr(sampling, "SAMPLE", 600)


def fitted(table, client=None, **options) -> Bootclus:
    how = {"n_bootstrap": 30, "covariance_models": "VVV", "random_state": 0, "n_init": 2}
    with pytest.warns(UserWarning, match="Bootclus is fitted to 600 of these 6,000 rows"):
        return Bootclus(3, **{**how, **options}).fit(table, client=client)


@pytest.fixture(scope="module")
def usual():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy, "PARTITION_ROWS", 4000)
        patch.setattr(sampling, "SAMPLE", 600)
        return fitted(TABLE)


def masses(model: Bootclus) -> np.ndarray:
    return model.credal_partition_.mass.compute(scheduler="sync")


def test_masses_are_those_of_new_objects(usual):
    assert not isinstance(usual.labels_, np.ndarray)
    np.testing.assert_array_equal(masses(usual), usual.predict_mass(X))
    assert adjusted_rand_score(Y, usual.labels_.compute(scheduler="sync")) > 0.98


@pytest.mark.parametrize("rows", [N, 777])
def test_chunks_change_nothing(usual, rows):
    model = fitted(da.from_array(X, chunks=(rows, 2)))
    assert model.history_ == usual.history_
    np.testing.assert_array_equal(masses(model), masses(usual))


@pytest.mark.process
def test_workers_change_nothing(two_workers, usual):
    model = fitted(TABLE, two_workers)
    assert model.history_ == usual.history_
    np.testing.assert_array_equal(masses(model), masses(usual))
    lazily = two_workers.compute(model.credal_partition_.mass).result()
    np.testing.assert_array_equal(lazily, masses(usual))


def test_a_file_larger_than_memory(tmp_path, monkeypatch, usual):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    monkeypatch.setattr(lazy, "available", lambda: X.nbytes)
    np.testing.assert_array_equal(masses(fitted(path)), masses(usual))


def test_intervals_name_the_objects_of_the_table(usual, tmp_path):
    kept = usual.intervals_
    assert kept.i.max() > 600
    together = Y[kept.i] == Y[kept.j]
    assert kept.lower[together].mean() > 0.9 > 0.1 > kept.upper[~together].mean()
    pairs = usual.calibration_pairs()
    assert np.abs(pairs.belief - pairs.lower).mean() < 0.05
    usual.save(tmp_path / "model")
    again = Bootclus.load(tmp_path / "model")
    np.testing.assert_array_equal(again.calibration_pairs().belief, pairs.belief)
    np.testing.assert_array_equal(again.predict_mass(X[:50]), usual.predict_mass(X[:50]))


def test_few_rows_are_simply_loaded():
    model = Bootclus(3, n_bootstrap=10, covariance_models="VVV", random_state=0)
    assert isinstance(model.fit(TABLE[:1500]).labels_, np.ndarray)


def test_a_bad_value_is_named_by_its_row(usual):
    """In the sample at once, elsewhere when its masses are looked at."""
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    drawn = np.sort(np.random.default_rng([seed, 43, N]).choice(N, 600, replace=False))
    rows = da.arange(N, chunks=2500)
    with pytest.raises(ValueError, match=f"row {drawn[9]}, column 0 is nan"):
        Bootclus(3, random_state=0).fit(da.where((rows == drawn[9])[:, None], np.nan, TABLE))
    other = int(np.setdiff1d(np.arange(3000, N), drawn)[0])
    model = fitted(da.where((rows == other)[:, None], np.nan, TABLE))
    with pytest.raises(ValueError, match=f"row {other}, column 0 is nan"):
        model.labels_.compute(scheduler="sync")

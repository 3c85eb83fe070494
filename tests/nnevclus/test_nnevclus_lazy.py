"""NNEVCLUS of a Dask array, or of a file larger than memory: no process ever has all rows."""

from __future__ import annotations

import os
import signal
from functools import cache

import dask.array as da
import numpy as np
import pytest
from dask_cluster import workers
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import NNEVCLUS
from evdist.ecm import lazy
from evdist.nnevclus import objects

N = 12_000
X, Y = make_blobs(N, centers=[[0, 0], [8, 0], [0, 8], [8, 8]], random_state=1)
OPTIONS = {
    "hidden": (12,), "d0": "q0.4", "n_init": 1, "device": "cpu", "random_state": 0, "tol": 0.0,
    "max_iter": 3, "batch_size": 300,
}  # fmt: skip
TABLE = da.from_array(X, chunks=(5000, 1))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Pieces and samples as small as the data; all of this is decided in the client."""
    monkeypatch.setattr(objects, "PARTITION_ROWS", 4000)
    monkeypatch.setattr(objects, "SAMPLE", 1000)
    monkeypatch.setattr(objects, "PER_CLUSTER", 100)
    monkeypatch.setattr(lazy, "PARTITION_ROWS", 4000)


def fitted(table, client=None, given=None, **options) -> NNEVCLUS:
    with pytest.warns(ConvergenceWarning, match="did not converge"):  # tol = 0: all epochs
        return NNEVCLUS(4, **{**OPTIONS, **options}).fit(table, client=client, **(given or {}))


@cache
def in_memory(shards: int = 1, **options) -> NNEVCLUS:
    return fitted(X, n_shards=shards, **options)


def assert_same(model: NNEVCLUS, other: NNEVCLUS) -> None:
    assert model.history_ == other.history_
    assert model.d0_ == other.d0_
    mass = model.credal_partition_.mass
    assert not isinstance(mass, np.ndarray)
    np.testing.assert_array_equal(mass.compute(scheduler="sync"), other.credal_partition_.mass)
    labels = model.labels_.compute(scheduler="sync")
    np.testing.assert_array_equal(labels, other.labels_)


@pytest.mark.parametrize("rows", [N, 5000, 777])
@pytest.mark.parametrize("shards", [1, 2])
def test_any_chunks_give_the_bits_of_an_array(rows, shards):
    model = fitted(da.from_array(X, chunks=(rows, 1)), n_shards=shards)
    assert_same(model, in_memory(shards))
    assert adjusted_rand_score(Y, model.labels_.compute(scheduler="sync")) > 0.98


SOME = np.full(N, -1)
SOME[::1500] = Y[::1500]


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"gate": True, "validation_fraction": 0.1, "optimizer": "adam"}, {}),
        ({"centres": "peaks", "metric": "mahalanobis"}, {}),
        ({"centres": [7, 9000, 300, 4444], "metric": "cityblock"}, {}),
        ({"n_clusters": "auto", "d0": "auto"}, {}),
        ({}, {"must_link": [[1, 9000]], "cannot_link": [[11_999, 3]], "labels": SOME}),
    ],
    ids=["gate", "peaks", "centres", "auto", "links and labels"],
)
def test_so_do_all_ways_to_train(options, given):
    model = NNEVCLUS(**{**OPTIONS, "n_clusters": 4, **options})
    other = NNEVCLUS(**{**OPTIONS, "n_clusters": 4, **options})
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        assert_same(model.fit(TABLE, **given), other.fit(X, **given))
    if "centres" in options:
        np.testing.assert_array_equal(model.centres_, other.centres_)


def test_pieces_are_read_again_where_memory_is_short(monkeypatch):
    whole = in_memory()
    monkeypatch.setattr("evdist.nnevclus.fit._KEPT", 0.0)
    assert_same(fitted(TABLE), whole)


@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_numbers_of_any_type(kind):
    rows = (100 * X).astype(kind)
    assert_same(fitted(da.from_array(rows, chunks=(5000, 2))), fitted(rows))


def test_a_file_larger_than_memory(tmp_path, monkeypatch):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    assert isinstance(fitted(path).labels_, np.ndarray)
    monkeypatch.setattr(lazy, "available", lambda: X.nbytes)
    assert_same(fitted(path), in_memory())


@pytest.mark.process
class TestWorkers:
    @pytest.mark.parametrize("shards", [None, 3])
    def test_read_their_own_rows(self, two_workers, shards):
        model = fitted(TABLE, two_workers, n_shards=shards)
        assert_same(model, in_memory(shards or 2))
        assert_same(model, fitted(X, two_workers, n_shards=shards))
        there = two_workers.compute(model.labels_).result()
        np.testing.assert_array_equal(there, in_memory(shards or 2).labels_)

    def test_are_sent_no_rows(self, two_workers, monkeypatch):
        """What a rank is sent are addresses."""
        sent = []
        deal = objects.deal_pieces

        def watched(*args):
            sent.extend(deal(*args))
            return sent

        monkeypatch.setattr("evdist.nnevclus.problem.deal_pieces", watched)
        fitted(TABLE, two_workers)
        pieces = [piece for shard in sent for piece in shard.pieces]
        assert len(pieces) == 4
        assert all(isinstance(piece, objects.StoredPiece) for piece in pieces)

    def test_that_die_change_nothing(self, tmp_path):
        with workers(2, tmp_path / "dask") as client:
            killed = []

            def kill(news) -> None:
                if news.stage == "fit" and news.sweep == 2 and not killed:
                    killed.append(next(iter(client.run(os.getpid).values())))
                    os.kill(killed[0], signal.SIGKILL)

            few = {"n_shards": 2, "checkpoint_every": 2, "max_iter": 6}
            with pytest.warns(RuntimeWarning, match="was lost. Training goes on from the state"):
                model = fitted(TABLE, client, callbacks=[kill], **few)
            assert killed
        assert_same(model, fitted(X, **few))


def test_a_checkpoint_keeps_the_rows_and_goes_on(tmp_path):
    half = fitted(TABLE, checkpoint=tmp_path, max_iter=2, checkpoint_every=1)
    assert (tmp_path / "partitions.zarr").is_dir()
    assert half.n_iter_ == 2
    assert_same(fitted(TABLE, checkpoint=tmp_path), in_memory())


def test_no_folder_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = fitted(TABLE)
    assert not list(tmp_path.glob("evdist-*"))
    assert model.labels_[:5].compute(scheduler="sync").shape == (5,)


def test_new_objects_and_a_saved_model(tmp_path):
    model = fitted(TABLE)
    model.save(tmp_path / "model")
    again = NNEVCLUS.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mass(X[:50]), model.predict_mass(X[:50]))


def test_few_rows_are_simply_loaded():
    model = fitted(TABLE[:3000])
    assert isinstance(model.labels_, np.ndarray)


def test_a_bad_value_is_named_by_its_row():
    holed = da.where((da.arange(N, chunks=5000) == 8765)[:, None], np.nan, TABLE)
    with pytest.raises(ValueError, match="row 8765, column 0 is nan"):
        NNEVCLUS(4, **OPTIONS).fit(holed)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"scale": "standard"}, "scale"),
        ({"batch_size": None}, "batch_size=None"),
        ({"metric": "precomputed"}, "metric='precomputed'"),
    ],
)
def test_what_needs_all_rows_is_refused(options, name):
    with pytest.raises(ValueError, match=f"{name} needs all rows in memory, and these 12,000"):
        NNEVCLUS(4, **{**OPTIONS, **options}).fit(TABLE)


def test_so_are_features_for_the_metric():
    with pytest.raises(ValueError, match="metric_features needs all rows in memory"):
        NNEVCLUS(4, **OPTIONS).fit(TABLE, metric_features=X)


@pytest.mark.parametrize("metric", ["euclidean", lambda a, b: abs(a[0] - b[0])])
def test_many_objects_in_memory_take_features_and_any_metric(metric):
    """The same dissimilarities as those of X."""
    few = X[:4500]
    small = {"batch_size": 10, "max_iter": 1, "metric": metric, "d0": 6.0}
    one = fitted(few, given={"metric_features": few.copy()}, **small)
    assert one.history_ == fitted(few, **small).history_

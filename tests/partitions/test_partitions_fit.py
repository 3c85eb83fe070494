"""A fit in partitions: exact descent, and the same bits however little memory there is."""

from __future__ import annotations

from collections.abc import Iterator

import dask.array as da
import dask.config
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition
from evdist.engine import memory as memory_module
from evdist.evclus.partitions import door as door_module
from evdist.evclus.partitions import owner as owner_module
from evdist.evclus.partitions import sites as sites_module
from evdist.evclus.partitions.points import RestorePoints
from evdist.stores.encoding import StoreError

N = 6007


@pytest.fixture(autouse=True)
def on_threads() -> Iterator[None]:
    """What is lazy is computed here, whatever clients other tests of this process have."""
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(N, 3, centers=3, cluster_std=1.5, random_state=6)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def X(data) -> np.ndarray:
    return data[0]


def model(**options) -> EVCLUS:
    known = {"d0": "q0.5", "n_dissimilarities": 20, "random_state": 1, "partitions": 8}
    return EVCLUS(
        **{"metric": "euclidean", "n_clusters": 3, **known, "tol": 1e-4, "n_jobs": 1, **options}
    )


@pytest.fixture(scope="module")
def fitted(X) -> EVCLUS:
    return model().fit(X)


def same(a: EVCLUS, b: EVCLUS) -> bool:
    return a.credal_partition_ == b.credal_partition_ and a.history_ == b.history_


def test_the_answer_is_in_the_order_of_the_user(fitted, data):
    assert adjusted_rand_score(data[1], fitted.labels_) > 0.9
    assert fitted.converged_ and fitted.n_features_in_ == 3


def test_the_objective_falls_and_is_that_of_the_masses(fitted):
    assert np.all(np.diff(fitted.history_) <= 0)
    delta, kappa = fitted.shepard_pairs()
    assert len(delta) > 10_000
    # A sample of the pairs, so equal but for chance.
    assert np.mean((kappa - delta) ** 2) == pytest.approx(fitted.objective_, rel=0.1)


def test_partitions_are_as_good_as_all_in_one_place(fitted, data):
    whole = model(partitions="never").fit(data[0])
    scores = [adjusted_rand_score(data[1], m.labels_) for m in (fitted, whole)]
    assert scores[0] == pytest.approx(scores[1], abs=0.01)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(fitted, X, threads):
    assert same(model(n_jobs=threads).fit(X), fitted)


def test_little_memory_changes_no_bit(fitted, X, monkeypatch):
    """No room beside the view: masses in files, pairs made again for a part of the rows."""
    monkeypatch.setattr(owner_module, "_FEWEST_ROWS", owner_module.PIECE_ROWS // 8)
    monkeypatch.setattr(owner_module, "PIECE_ROWS", owner_module.PIECE_ROWS // 8)
    monkeypatch.setattr(sites_module.PartitionSite, "room", 1)
    monkeypatch.setattr(sites_module.PartitionSite, "check", lambda self, *sizes: None)
    told: list[str] = []
    there = model(callbacks=[lambda p: told.append(p.stage)]).fit(X)
    assert same(there, fitted)
    assert any("8 partitions of 751 rows from disk" in stage for stage in told)


def test_a_fit_that_cannot_hold_one_partition_is_refused_before_a_row_is_read(X, monkeypatch):
    monkeypatch.setattr(sites_module, "lay_out", lambda *args, **options: pytest.fail("laid out"))
    with pytest.raises(MemoryError, match="Raise memory_limit"):
        model(memory_limit=1 << 20).fit(X)


def test_dask_in_dask_out(fitted, X):
    there = model().fit(da.from_array(X, chunks=(1000, 2)))
    assert isinstance(there.labels_, da.Array) and isinstance(
        there.credal_partition_.mass, da.Array
    )
    assert same(there, fitted)
    assert np.array_equal(there.labels_.compute(), fitted.labels_)


def test_a_model_predicts_saves_and_loads(fitted, X, tmp_path):
    fitted.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    assert again.credal_partition_ == fitted.credal_partition_
    assert np.array_equal(again.predict_mass(X[:50]), fitted.predict_mass(X[:50]))


def test_a_fit_that_was_stopped_goes_on_with_the_same_bits(fitted, X, tmp_path):
    def stop(progress):
        if progress.stage == "fit" and progress.sweep == 6:
            raise InterruptedError("stopped")

    options = {"checkpoint": tmp_path, "checkpoint_every": 4}
    with pytest.raises(InterruptedError, match="stopped"):
        model(callbacks=[stop], **options).fit(X)
    seen: list[int] = []
    again = model(callbacks=[lambda p: seen.append(p.sweep) if p.stage == "fit" else None],
                  **options).fit(X)  # fmt: skip
    assert seen[0] == 5 and same(again, fitted)
    assert CredalPartition.load(tmp_path / "answer.zarr") == fitted.credal_partition_


def test_the_restore_point_of_another_fit_is_refused(X, tmp_path):
    model(checkpoint=tmp_path, tol=0.1).fit(X)
    with pytest.raises(StoreError, match="restore point of another fit: k 20 instead of 10"):
        model(checkpoint=tmp_path, n_dissimilarities=10).fit(X)


def test_a_fit_that_reached_max_iter_goes_on(fitted, X, tmp_path):
    with pytest.warns(match="did not converge in max_iter=6"):
        model(checkpoint=tmp_path, checkpoint_every=4, max_iter=6).fit(X)
    more = model(checkpoint=tmp_path, checkpoint_every=4).fit(X)
    assert more.converged_ and more.n_iter_ > 6
    assert more.objective_ == pytest.approx(fitted.objective_, rel=1e-3)


def test_an_incomplete_point_is_no_restore_point(fitted, X, tmp_path, monkeypatch):
    taken: list[RestorePoints] = []
    begin = RestorePoints.begin
    monkeypatch.setattr(RestorePoints, "begin", lambda self: taken.append(self) or begin(self))
    model(checkpoint=tmp_path).fit(X)
    slot = begin(taken[0])
    with pytest.raises(StoreError, match="lacks partition 0"):
        taken[0].commit(slot, {})


# ---------------------------------------------------------------------- when it is done
def test_what_fits_the_memory_is_fitted_as_before(X):
    assert isinstance(model(partitions="auto").fit(X).credal_partition_.mass, np.ndarray)


def test_what_does_not_fit_is_fitted_in_partitions(X, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(door_module, "available", lambda: 1 << 20)
    monkeypatch.setattr(door_module, "PARTITION_ROWS", 1000)
    np.save(tmp_path / "X.npy", X)
    there = model(partitions="auto").fit(tmp_path / "X.npy")
    assert not isinstance(there.credal_partition_.mass, np.ndarray)
    assert memory_module.available() > 1 << 20


@pytest.mark.parametrize(
    ("options", "given", "named"),
    [
        ({}, {"must_link": [[0, 1]]}, "constraints"),
        ({}, {"sample_weight": np.ones(N)}, "sample_weight"),
        ({"focal_sets": "select"}, {}, 'focal_sets="select"'),
        ({"metric": lambda a, b: 1.0}, {}, "metric="),
    ],
)
def test_what_partitions_cannot_do_is_told(X, options, given, named):
    with pytest.raises(ValueError, match=f"cannot be combined with {named}"):
        model(**options).fit(X, **given)


@pytest.mark.parametrize("partitions", [3, 0, True, "sometimes", 2.0])
def test_a_value_that_makes_no_sense_is_refused(X, partitions):
    with pytest.raises(ValueError, match="partitions must be one of"):
        model(partitions=partitions).fit(X)

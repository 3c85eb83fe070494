"""NNEVCLUS in a folder: saved models, and trainings that go on after they were stopped."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from evdist import NNEVCLUS
from evdist.stores.encoding import StoreError

X, _ = make_blobs(120, centers=[[0, 0], [8, 0], [0, 8]], random_state=1)
QUICK = {"hidden": (8,), "d0": "q0.5", "n_init": 1, "device": "cpu", "random_state": 0, "tol": 0.05}


def again(model: NNEVCLUS, folder, **given) -> NNEVCLUS:
    model.save(folder / "model")
    return NNEVCLUS.load(folder / "model", **given)


@pytest.mark.parametrize(
    "options",
    [{}, {"hidden": (6, 5)}, {"gate": True}, {"centres": "peaks"}, {"batch_size": 40}],
    ids=str,
)
def test_a_loaded_model_predicts_the_same_bits(tmp_path, options):
    model = NNEVCLUS(3, **{**QUICK, **options}).fit(X)
    twin = again(model, tmp_path)
    new = X[:40] + 0.3
    np.testing.assert_array_equal(twin.predict_mass(new), model.predict_mass(new))
    np.testing.assert_array_equal(twin.labels_, model.labels_)
    assert (twin.d0_, twin.history_) == (model.d0_, model.history_)
    assert tuple(twin.hidden) == tuple(model.hidden)


def test_a_model_of_dissimilarities_predicts_the_same_bits(tmp_path):
    D = squareform(pdist(X))
    model = NNEVCLUS(3, **QUICK, metric="precomputed", n_components=3).fit(D)
    twin = again(model, tmp_path)
    np.testing.assert_array_equal(twin.predict_mass(D[:9]), model.predict_mass(D[:9]))


def test_a_body_is_passed_again(tmp_path):
    body = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU())
    model = NNEVCLUS(3, **QUICK, body=body, batch_size=40).fit(X)
    model.save(tmp_path / "model")
    fresh = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU())
    twin = NNEVCLUS.load(tmp_path / "model", body=fresh)
    np.testing.assert_array_equal(twin.predict_mass(X), model.predict_mass(X))
    with pytest.raises(StoreError, match="trained with a body of its own: pass a module like it"):
        NNEVCLUS.load(tmp_path / "model")


def test_appended_objects_are_placed_by_the_network(tmp_path):
    model = again(NNEVCLUS(3, **QUICK).fit(X), tmp_path)
    new = X[:7] + 0.1
    expected = model.predict_mass(new)
    model.append(new)
    np.testing.assert_array_equal(np.asarray(model.credal_partition_.mass)[120:], expected)
    assert len(model.labels_) == 127


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
@pytest.mark.parametrize("validation_fraction", [0.0, 0.2])
def test_a_stopped_training_goes_on_with_the_same_bits(tmp_path, optimizer, validation_fraction):
    options = {
        **QUICK, "batch_size": 40, "optimizer": optimizer, "checkpoint_every": 4, "tol": 0.0,
        "validation_fraction": validation_fraction, "max_iter": 12,
    }  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        whole = NNEVCLUS(3, **options).fit(X)
        NNEVCLUS(3, **{**options, "checkpoint": tmp_path, "max_iter": 4}).fit(X)
        after = NNEVCLUS(3, **options, checkpoint=tmp_path).fit(X)
    np.testing.assert_array_equal(after.credal_partition_.mass, whole.credal_partition_.mass)
    assert after.history_ == whole.history_
    assert len(list((tmp_path / "fit").iterdir())) == 1  # the last one only


def test_the_checkpoint_of_another_fit_is_refused(tmp_path):
    options = {**QUICK, "batch_size": 40, "checkpoint": tmp_path, "max_iter": 5}
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        NNEVCLUS(3, **options).fit(X)
    with pytest.raises(StoreError, match=r"checkpoint of another fit: learning rate 0\.01 "):
        NNEVCLUS(3, **options, learning_rate=0.02).fit(X)


def test_a_half_written_checkpoint_does_not_count(tmp_path):
    options = {**QUICK, "batch_size": 40, "tol": 0.0, "max_iter": 8}
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        NNEVCLUS(3, **{**options, "checkpoint": tmp_path, "max_iter": 5}).fit(X)
    (store,) = (tmp_path / "fit").iterdir()
    newer = store.with_name("epoch-00000009.zarr")
    newer.mkdir()
    text = (store / "zarr.json").read_text().replace('"complete": true', '"complete": false')
    (newer / "zarr.json").write_text(text)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        whole = NNEVCLUS(3, **options).fit(X)
        after = NNEVCLUS(3, **options, checkpoint=tmp_path).fit(X)
    assert after.history_ == whole.history_


def test_a_training_goes_on_with_the_shards_it_began_with(tmp_path):
    options = {**QUICK, "batch_size": 30, "tol": 0.0, "max_iter": 8}
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        whole = NNEVCLUS(3, **options, n_shards=2).fit(X)
        NNEVCLUS(3, **{**options, "max_iter": 5}, n_shards=2, checkpoint=tmp_path).fit(X)
        after = NNEVCLUS(3, **options, checkpoint=tmp_path).fit(X)
    assert after.history_ == whole.history_
    with pytest.raises(StoreError, match="checkpoint of another fit: shards 2 "):
        NNEVCLUS(3, **options, n_shards=3, checkpoint=tmp_path).fit(X)

"""Training of NNEVCLUS: its modes, what they have in common, and what guides them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from torch import nn

from evdist import EVCLUS, NNEVCLUS, FocalSets
from evdist.data.sources import AttributeSource
from evdist.nnevclus.batch import adaptive_steps, lbfgs
from evdist.nnevclus.deltas import make_deltas
from evdist.nnevclus.network import one_thread

X, Y = make_blobs(150, centers=[[0, 0], [8, 0], [0, 8]], random_state=1)
QUICK = {"hidden": (8,), "d0": "q0.5", "n_init": 1, "device": "cpu", "random_state": 0}
MODES = {
    "lbfgs": {},
    "adaptive": {"optimizer": "adaptive"},
    "kept pairs": {"n_dissimilarities": 30},
    "rmsprop": {"batch_size": 40, "tol": 0.02},
    "adam": {"batch_size": 40, "optimizer": "adam", "tol": 0.02},
    "two layers": {"hidden": (8, 6)},
    "gate": {"gate": True},
    "held out": {"validation_fraction": 0.2},
    "held out of batches": {"validation_fraction": 0.2, "batch_size": 40, "tol": 0.02},
    "cityblock": {"metric": "cityblock"},
    "cityblock in batches": {"metric": "cityblock", "batch_size": 40, "tol": 0.02},
    "l2": {"l2_penalty": 1e-4},
    "shards": {"batch_size": 20, "n_shards": 2, "tol": 0.02},
}


def conflict_loss(model: NNEVCLUS, data: np.ndarray) -> float:
    """Eq. (9), from the masses."""
    mass = np.asarray(model.credal_partition_.mass, float)
    kappa = mass @ model.credal_partition_.focal_sets.C @ mass.T
    delta = 1 - np.exp(np.log(0.05) * (squareform(pdist(data)) / model.d0_) ** 2)
    upper = np.triu_indices(len(data), 1)
    return float(((kappa - delta)[upper] ** 2).mean())


@pytest.mark.parametrize("name", MODES)
def test_every_mode_lowers_the_loss_and_finds_the_clusters(name):
    model = NNEVCLUS(3, **{**QUICK, **MODES[name]}).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.98
    assert model.objective_ == model.history_[-1] < 0.2 * model.history_[0]
    assert model.converged_
    assert model.n_iter_ == len(model.history_) - 1


def test_the_objective_is_that_of_the_masses():
    model = NNEVCLUS(3, **QUICK).fit(X)
    assert model.objective_ == pytest.approx(conflict_loss(model, X), rel=1e-4)
    mini = NNEVCLUS(3, **QUICK, batch_size=40, tol=0.05).fit(X)  # so few objects are one subset
    assert mini.objective_ == pytest.approx(conflict_loss(mini, X), rel=1e-4)


@pytest.mark.parametrize("mode", ["lbfgs", "kept pairs", "rmsprop", "gate"])
def test_the_number_of_torchs_threads_changes_no_bit(mode):
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            found.append(NNEVCLUS(3, **{**QUICK, **MODES[mode], "max_iter": 500}).fit(X))
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    np.testing.assert_array_equal(*(m.credal_partition_.mass for m in found))


def test_fits_leave_torchs_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    NNEVCLUS(3, **QUICK, batch_size=50, tol=0.1).fit(X)
    assert torch.equal(torch.rand(3), expected)


def test_restarts_keep_the_best():
    hard, _ = make_blobs(200, centers=5, random_state=4)
    options = {**QUICK, "d0": "q0.3"}
    one = NNEVCLUS(5, **options).fit(hard)
    several = NNEVCLUS(5, **{**options, "n_init": 3}).fit(hard)
    assert several.objective_ <= one.objective_


def test_iterations_that_run_out_are_told():
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=3 iterations"):
        model = NNEVCLUS(3, **QUICK, max_iter=3).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 3


def test_news_comes_once_per_iteration():
    news = []
    model = NNEVCLUS(3, **QUICK, batch_size=50, tol=0.05, callbacks=[news.append]).fit(X)
    assert [n.sweep for n in news] == list(range(1, model.n_iter_ + 1))
    assert {n.stage for n in news} == {"fit"}
    assert news[0].objective == model.history_[1]


def test_many_objects_are_trained_by_mini_batches():
    many, truth = make_blobs(2100, centers=[[0, 0], [8, 0], [0, 8]], random_state=2)
    model = NNEVCLUS(3, **QUICK, tol=0.05).fit(many)
    assert adjusted_rand_score(truth, model.labels_) > 0.98


def test_shards_take_mini_batches_of_two_objects_at_least():
    few = X[:7]
    model = NNEVCLUS(2, **QUICK, batch_size=2, n_shards=2, tol=0.5).fit(few)
    assert np.isfinite(model.history_).all()
    with pytest.raises(ValueError, match="4 shards of 7 objects leave 1 of one for training"):
        NNEVCLUS(2, **QUICK, n_shards=4).fit(few)
    with pytest.raises(ValueError, match="Shards are trained by mini-batches; batch_size=None"):
        NNEVCLUS(2, **QUICK, n_shards=2, batch_size=None).fit(few)


def test_all_partners_are_all_pairs():
    all_pairs = NNEVCLUS(3, **QUICK).fit(X)
    partners = NNEVCLUS(3, **QUICK, n_dissimilarities=149).fit(X)
    np.testing.assert_array_equal(partners.credal_partition_.mass, all_pairs.credal_partition_.mass)


@pytest.mark.parametrize(
    "metric", ["euclidean", "sqeuclidean", "cosine", "mahalanobis", "cityblock"]
)
def test_dissimilarities_on_the_device_are_those_of_the_source(metric):
    data = X + 5.0
    source = AttributeSource.of(data, metric)
    rows = np.array([3, 5, 70, 149, 20])
    D = source.distances(rows.astype(np.uint32), np.tile(rows.astype(np.uint32), (5, 1)))
    d0 = float(D.max())
    with one_thread():
        found = make_deltas(source, d0).on(torch.device("cpu"))(torch.from_numpy(rows)).numpy()
    expected = 1 - np.exp(np.log(0.05) * (D.astype(float) / d0) ** 2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


# ---------------------------------------------------------------------- what guides it
def test_links_pull_and_push():
    rng = np.random.default_rng(0)
    line = np.column_stack([rng.uniform(0, 6, 120), rng.normal(0, 0.1, 120)])
    options = {**QUICK, "d0": "q0.7", "constraint_weight": 2.0}
    free = NNEVCLUS(2, **options).fit(line)
    # Cut the line elsewhere than in the middle.
    left, right = np.flatnonzero(line[:, 0] < 4), np.flatnonzero(line[:, 0] >= 4)
    must = [*pairwise(left[:31]), *pairwise(right[:16])]
    cannot = list(zip(left[:30], np.resize(right, 30), strict=True))
    linked = NNEVCLUS(2, **options).fit(line, must_link=must, cannot_link=cannot)
    truth = (line[:, 0] >= 4).astype(int)
    assert adjusted_rand_score(truth, linked.labels_) > adjusted_rand_score(truth, free.labels_)
    mini = NNEVCLUS(2, **options, batch_size=40, tol=0.02).fit(
        line, must_link=must, cannot_link=cannot
    )
    assert adjusted_rand_score(truth, mini.labels_) > adjusted_rand_score(truth, free.labels_)


def test_labels_name_the_clusters():
    labels = np.full(150, -1)
    for cluster in range(3):
        labels[np.flatnonzero(Y == cluster)[:2]] = 2 - cluster
    model = NNEVCLUS(3, **QUICK).fit(X, labels=labels)
    np.testing.assert_array_equal(model.labels_, 2 - Y)


@pytest.mark.parametrize("centres", ["peaks", "evclus", [0, 1, 2]])
def test_centres_are_learnt_as_labelled(centres):
    if centres == [0, 1, 2]:
        centres = [int(np.flatnonzero(Y == k)[0]) for k in (1, 0, 2)]
    model = NNEVCLUS(3, **QUICK, centres=centres).fit(X)
    assert model.centres_.shape == (3,)
    np.testing.assert_array_equal(model.labels_[model.centres_], [0, 1, 2])
    assert adjusted_rand_score(Y, model.labels_) > 0.98


def test_labels_and_centres_exclude_each_other():
    with pytest.raises(ValueError, match="labels or centres, not both"):
        NNEVCLUS(3, **QUICK, centres="peaks").fit(X, labels=np.where(np.arange(150) < 5, Y, -1))


def test_dissimilarities_alone_are_enough():
    D = squareform(pdist(X))
    model = NNEVCLUS(3, **QUICK, metric="precomputed", n_components=3).fit(D)
    assert adjusted_rand_score(Y, model.labels_) > 0.98
    np.testing.assert_array_equal(model.predict_mass(D[:7]), model.credal_partition_.mass[:7])


def test_dissimilarities_may_come_from_other_features_than_the_inputs():
    # By the second coordinate alone two of the three clusters are one.
    options = {**QUICK, "d0": 8.0}
    model = NNEVCLUS(2, **options).fit(X, metric_features=X[:, 1:])
    assert adjusted_rand_score(Y == 2, model.labels_) > 0.98
    assert model.n_features_in_ == 2
    D = squareform(pdist(X[:, 1:]))
    same = NNEVCLUS(2, **options, metric="precomputed").fit(X, metric_features=D)
    assert adjusted_rand_score(same.labels_, model.labels_) > 0.98
    assert same.predict_mass(X[:4]).shape == (4, 4)


def test_any_module_may_be_the_body():
    images = np.zeros((150, 36))
    images[np.arange(150), 7 * (1 + Y) + np.arange(150) % 3] = 1.0
    body = nn.Sequential(nn.Unflatten(1, (1, 6, 6)), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten())
    before = body[1].weight.detach().clone()
    options = {**QUICK, "d0": 1.5}
    model = NNEVCLUS(3, **options, body=body).fit(images)
    assert torch.equal(body[1].weight, before)  # it is copied
    assert model.objective_ < model.history_[0]
    assert model.predict_mass(images[:4]).shape == (4, 5)
    with pytest.raises(ValueError, match=r"body must give \(rows, features\) for inputs"):
        NNEVCLUS(3, **options, body=body[:2]).fit(images)


def test_random_layers_of_a_body_give_the_same_bits_again():
    body = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.1), nn.BatchNorm1d(8))
    fits = [
        NNEVCLUS(3, **QUICK, body=body, batch_size=50, tol=0.05, max_iter=300).fit(X)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(f.credal_partition_.mass for f in fits))


# ---------------------------------------------------------------------- the gate
@pytest.mark.parametrize("exact", [True, False])
def test_the_gate_sends_far_objects_to_the_empty_set(exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("evdist.nnevclus.inputs.EXACT", 100)
    rng = np.random.default_rng(0)
    # Heavy tails, as fourclass has them: the network sees some outliers.
    data = X + 0.7 * rng.standard_t(2, X.shape)
    direction = rng.normal(size=(60, 2))
    far = X.mean(axis=0) + 60 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    options = {**QUICK, "n_init": 2, "focal_sets": FocalSets.pairs(3)}
    gated = NNEVCLUS(3, **options, gate=True, gate_width=0.3).fit(data)
    assert (gated.predict_mass(far).argmax(axis=1) == 0).all()
    assert np.isfinite(gated.predict_mass(far)).all()


def test_without_a_gate_far_objects_may_look_like_any_other():
    model = NNEVCLUS(3, **{**QUICK, "d0": 8.0, "l2_penalty": 0.01}).fit(X)
    far = np.array([[1e3, 0.0], [0.0, 1e3], [-1e3, -1e3]])
    assert (model.predict_mass(far).argmax(axis=1) != 0).any()


# ---------------------------------------------------------------------- the optimisers
@pytest.mark.parametrize("method", [lbfgs, adaptive_steps])
def test_optimisers_find_the_minimum_of_a_convex_function(method, shared):
    def fun(x):
        i = np.arange(1, 5)
        return float((i * (x - 1) ** 2).sum() + 0.1 * (x**4).sum()), 2 * i * (x - 1) + 0.4 * x**3

    best = 0.33871169946987534
    seen = []

    def after(x, value):
        seen.append(value)
        return value < best + 1e-9

    found = method(fun, np.array([3, -2, 1.5, 0.2]), 200, after)
    assert fun(found)[0] == pytest.approx(best, abs=1e-8)
    assert all(b <= a for a, b in pairwise(seen))


def test_evclus_is_a_lower_bound_of_the_loss():
    free = EVCLUS(3, metric="euclidean", n_dissimilarities=149, d0="q0.5", random_state=0).fit(X)
    assert NNEVCLUS(3, **QUICK).fit(X).objective_ > 0.95 * free.objective_


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["lbfgs", "kept pairs", "rmsprop", "gate", "held out of batches"])
def test_it_trains_on_cuda(name):
    options = {**QUICK, **MODES[name], "device": "cuda"}
    model = NNEVCLUS(3, **options).fit(X)
    assert adjusted_rand_score(Y, model.labels_) > 0.98
    masses = model.predict_mass(X)
    np.testing.assert_allclose(
        model.set_params(device="cpu").predict_mass(X), masses, rtol=0, atol=1e-4
    )

"""NNEVCLUS with many clusters: taught by EVCLUS, near pairs with half the weight."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, NNEVCLUS
from evdist.belief import FocalSets
from evdist.estimators.checks import CopiesWarning
from evdist.nnevclus.loss import KeptPairs, Near, all_pairs, kept_pairs

C, N = 26, 800
RNG = np.random.default_rng(0)
Y = RNG.integers(0, C, N)
X = 3 * RNG.normal(size=(C, 8))[Y] + RNG.normal(size=(N, 8))
QUICK = {"n_init": 1, "device": "cpu", "random_state": 0, "d0": 10.0, "tol": 0.02}


def fitted(**options) -> NNEVCLUS:
    labels = options.pop("labels", None)
    return NNEVCLUS(C, **{**QUICK, **options}).fit(X, labels=labels)


def few_epochs(**options) -> NNEVCLUS:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        return fitted(**{"batch_size": 100, "tol": 0.0, "max_iter": 4, **options})


def same_bits(one: NNEVCLUS, other: NNEVCLUS) -> None:
    np.testing.assert_array_equal(one.credal_partition_.mass, other.credal_partition_.mass)
    assert one.history_ == other.history_


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_size": 200}, {"n_dissimilarities": 100}, {"focal_sets": "pairs"}, {"gate": True}],
    ids=["at once", "mini-batches", "kept pairs", "pairs of clusters", "gate"],
)
def test_it_finds_the_clusters_that_evclus_finds(options):
    model = fitted(**options)
    other = EVCLUS(C, metric="euclidean", d0=10.0, random_state=0).fit(X)
    assert adjusted_rand_score(Y, other.labels_) > 0.95
    assert adjusted_rand_score(Y, model.labels_) > adjusted_rand_score(Y, other.labels_) - 0.02
    assert model.objective_ < model.history_[0]  # it was taught, and has learnt since


def test_near_pairs_have_half_the_weight():
    m = np.random.default_rng(1).dirichlet(np.ones(5), 9)
    delta, group = np.random.default_rng(2).random((9, 9)), np.arange(9) % 3
    sets = FocalSets.simple(3)
    square = (m @ sets.C @ m.T - delta) ** 2
    apart = ~np.eye(9, dtype=bool)
    same = group[:, None] == group
    share = same[apart].mean()
    expected = square[apart & same].mean() / 2 + square[apart & ~same].mean() / 2

    at = torch.from_numpy(group)
    w = Near(share).weights(at, at)
    tensors = [torch.from_numpy(values) for values in (m, sets.C.astype(float), delta)]
    np.testing.assert_allclose(all_pairs(*tensors, w).item(), expected, rtol=1e-6)
    partner = torch.from_numpy(np.array([[j for j in range(9) if j != i] for i in range(9)]))
    kept = KeptPairs(
        partner, tensors[2].gather(1, partner), Near(share).weights(at, at[partner]).double()
    )
    np.testing.assert_allclose(kept_pairs(*tensors[:2], kept).item(), expected, rtol=1e-6)


def test_the_gradient_with_weights_is_that_of_finite_differences():
    rng = np.random.default_rng(3)
    m = torch.from_numpy(rng.dirichlet(np.ones(5), 6)).requires_grad_()
    conflict = torch.from_numpy(FocalSets.simple(3).C.astype(float))
    delta, w = (torch.from_numpy((a + a.T) / 2) for a in rng.random((2, 6, 6)))
    assert torch.autograd.gradcheck(lambda m: all_pairs(m, conflict, delta, w), m)


def test_labels_keep_their_numbers():
    known = np.full(len(X), -1)
    known[:150] = Y[:150]
    model = fitted(labels=known, batch_size=200)
    np.testing.assert_allclose(np.mean(model.labels_ == Y), 1, atol=0.03)


def test_a_stopped_training_goes_on_with_the_same_bits(tmp_path):
    whole = few_epochs(checkpoint_every=2)
    few_epochs(checkpoint_every=2, checkpoint=tmp_path, max_iter=2)
    same_bits(few_epochs(checkpoint_every=2, checkpoint=tmp_path), whole)


def test_a_loaded_model_predicts_the_same_bits(tmp_path):
    model = few_epochs(hidden=(30, 24))
    model.save(tmp_path / "model")
    loaded = NNEVCLUS.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_mass(X[:50]), model.predict_mass(X[:50]))


def test_layers_are_wider_than_those_of_few_clusters():
    assert few_epochs().network_.head.in_features == 39
    few = NNEVCLUS(3, max_iter=5, n_init=1, device="cpu", random_state=0, d0=10.0)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        few.fit(X[:60])
    assert few.network_.head.in_features == 20
    with pytest.raises(ValueError, match="hidden must be"):
        fitted(hidden="wide")


def test_the_start_is_told():
    news = []
    few_epochs(callbacks=[news.append])
    stages = [one.stage for one in news]
    assert stages.index("start") < stages.index("fit")


def test_equal_objects_are_no_error():
    """Fewer groups than clusters, of objects that are equal: it is told, and fitted."""
    Z = np.repeat(X[:20], 20, axis=0)
    with pytest.warns(CopiesWarning, match="20 different rows for 26 clusters"):
        model = NNEVCLUS(C, **QUICK).fit(Z)
    np.testing.assert_allclose(model.credal_partition_.mass.sum(axis=1), 1, atol=1e-6)

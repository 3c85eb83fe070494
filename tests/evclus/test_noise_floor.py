"""Distances less their noise floors: the formula, when "auto" takes them off, where it must hold.

Threads, partitions, prediction, a model on disk; the GPU's kernels are in tests/gpu.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.data.sources import AttributeSource
from evdist.evclus.floor import less_noise
from evdist.kernels.distances import FLOOR_NEAREST

CLUSTERS, D = 6, 60


def noisy(n: int = 1200, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Clusters in many dimensions, each object with noise of its own size."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLUSTERS, size=n)
    size = rng.uniform(0.7, 1.5, (n, 1))
    return 0.6 * rng.normal(size=(CLUSTERS, D))[y] + size * rng.normal(size=(n, D)), y


def all_pairs(source: AttributeSource) -> NDArray[np.float32]:
    everyone = np.arange(source.n, dtype=np.uint32)
    return source.distances(everyone, np.tile(everyone, (source.n, 1)))


def floors(squares: NDArray) -> NDArray:
    """Half the mean of the smallest numbers of each row that are not zero."""
    return np.array([np.sort(row[row > 0])[:FLOOR_NEAREST].mean() / 2 for row in squares])


def fit(X: Any, **options: Any) -> EVCLUS:
    return EVCLUS(
        CLUSTERS, **{"metric": "euclidean", "random_state": 0, "n_jobs": 1, "d0": "q0.9", **options}
    ).fit(X)


# ---------------------------------------------------------------------- the formula
@pytest.mark.parametrize(
    ("metric", "of_squares"),
    [
        ("euclidean", np.sqrt),
        ("sqeuclidean", lambda D2: D2),
        ("cosine", lambda D2: D2 / 2),
    ],
)
def test_half_the_mean_square_to_the_nearest_is_taken_off_both_objects(metric, of_squares):
    X = np.random.default_rng(0).normal(size=(90, 48)) + 0.5
    reference = np.arange(0, 90, 2)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    squares = cdist(rows, rows) ** 2
    f = floors(squares[:, reference])
    right = of_squares(np.maximum(squares - f[:, None] - f, 0))
    found = all_pairs(AttributeSource.of(X, metric).less_noise(reference))
    np.testing.assert_allclose(found, right, rtol=2e-4, atol=2e-4)
    np.testing.assert_array_equal(found, found.T)
    assert not found.diagonal().any()


def test_copies_of_an_object_do_not_lower_its_floor():
    X = np.random.default_rng(0).normal(size=(60, 20))
    once = AttributeSource.of(X, "cosine").less_noise(np.arange(60))
    twice = AttributeSource.of(np.vstack([X, X]), "cosine").less_noise(np.arange(60))
    np.testing.assert_array_equal(all_pairs(twice)[:60, :60], all_pairs(once))
    assert not all_pairs(twice)[np.arange(60), np.arange(60, 120)].any()


@given(cuts=st.lists(st.integers(0, 300), max_size=4), threads=st.integers(1, 3))
def test_a_floor_does_not_depend_on_the_rows_beside_it(cuts, threads):
    X = np.random.default_rng(0).normal(size=(300, 17))
    metric = AttributeSource.of(X, "euclidean").less_noise(np.arange(0, 300, 5)).metric
    parts = np.split(X, sorted(cuts))
    pieces = [metric.table(part, threads) for part in parts if len(part)]
    np.testing.assert_array_equal(np.concatenate(pieces), metric.table(X))


# ---------------------------------------------------------------------- when
def taken(X: Any, asked: Any = "auto", metric: str = "euclidean", c: int = CLUSTERS) -> bool:
    source = AttributeSource.of(np.asarray(X, float), metric)
    return less_noise(source, asked, n_clusters=c, seed=0) is not source


def test_auto_takes_floors_off_where_distances_hardly_vary():
    X, _ = noisy()
    assert taken(X) and taken(X, metric="cosine") and taken(X, metric="sqeuclidean")
    assert not taken(X[:, :3])  # distances vary
    assert not taken(X, metric="cityblock")  # no square is the sum of signal and noise
    assert not taken(X[:50])  # the nearest of few are not near
    assert not taken(X, c=1000)  # nor where a cluster has few objects in the sample
    assert taken(X[:, :3], True) and not taken(X, False)


def test_auto_leaves_distances_between_clusters_that_are_far_apart():
    # They hardly vary either, but little of them is noise.
    rng = np.random.default_rng(0)
    far = 10 * rng.normal(size=(100, 50))[np.arange(2000) % 100] + rng.normal(size=(2000, 50))
    assert not taken(far, c=100)


def test_what_cannot_have_a_floor_is_refused_if_it_was_asked_for():
    X, _ = noisy(150)
    D = cdist(X, X)
    assert not fit(D, metric="precomputed").noise_floor_
    with pytest.raises(ValueError, match="noise_floor=True is for dense attributes"):
        fit(D, metric="precomputed", noise_floor=True)
    with pytest.raises(ValueError, match=r'noise_floor must be "auto", True or False, got 0\.5'):
        fit(X, noise_floor=0.5)


# ---------------------------------------------------------------------- fits
#: Objects that are fitted; the others are new.
FITTED = 900


@pytest.fixture(scope="module")
def data() -> tuple[NDArray, NDArray]:
    X, y = noisy()
    return X[:FITTED], y[:FITTED]


@pytest.fixture(scope="module")
def fitted(data) -> EVCLUS:
    return fit(data[0])


def test_clusters_are_found_and_noisy_members_are_no_outliers(data, fitted):
    X, y = data
    plain = fit(X, noise_floor=False)
    assert fitted.noise_floor_ and not plain.noise_floor_
    assert adjusted_rand_score(y, fitted.labels_) > 0.85
    # Nobody was planted outside: who has much noise of its own is not an outlier.
    outliers = [m.credal_partition_.outliers().mean() for m in (fitted, plain)]
    assert outliers[0] < 0.75 * outliers[1]


def test_a_fitted_model_says_that_it_took_floors_off(fitted, data):
    assert repr(fitted).endswith("  # less noise floors")
    assert "noise floors" not in repr(EVCLUS(metric="euclidean"))
    assert "noise floors" not in repr(fit(data[0], noise_floor=False))


def test_same_bits_for_any_number_of_threads(fitted, data):
    assert fit(data[0], n_jobs=2).credal_partition_ == fitted.credal_partition_


def test_new_objects_have_floors_too(fitted, tmp_path):
    X, y = (part[FITTED:] for part in noisy())
    placed = fitted.predict_mass(X)
    assert adjusted_rand_score(y, fitted.predict(X)) > 0.8
    np.testing.assert_array_equal(fitted.predict_mass(X[7:40]), placed[7:40])
    fitted.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mass(X), placed)
    assert again.noise_floor_ and again.noise_floor == "auto"


@pytest.mark.parametrize("c", [CLUSTERS, 14])
def test_partitions_take_them_off(data, c, tmp_path):
    X, y = data
    options = {"partitions": 4, "n_dissimilarities": 40, "d0": "auto" if c > 12 else "q0.9"}
    model = EVCLUS(c, random_state=0, n_jobs=1, **{"metric": "euclidean", **options}).fit(X)
    assert model.noise_floor_
    kept = EVCLUS(
        c,
        random_state=0,
        n_jobs=2,
        checkpoint=tmp_path / "fit",
        **{"metric": "euclidean", **options},
    ).fit(X)
    assert kept.credal_partition_ == model.credal_partition_
    if c == CLUSTERS:
        assert adjusted_rand_score(y, model.labels_) > 0.8
    delta, kappa = model.shepard_pairs()
    assert np.mean((kappa - delta) ** 2) == pytest.approx(model.objective_, rel=0.1)

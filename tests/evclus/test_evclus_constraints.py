"""Must-links and cannot-links in a fit: k-CEVCLUS."""

from __future__ import annotations

import numpy as np
import pytest
from evclus.evclus_reference import (
    distances,
    kept_pairs,
    link_costs,
    mean_square,
    phi,
    seed_of,
)
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, expand_constraints
from evdist.constraints import random_links

N = 200


@pytest.fixture(scope="module")
def y() -> np.ndarray:
    return np.repeat([0, 1], N // 2)


@pytest.fixture(scope="module")
def X(y) -> np.ndarray:
    """Two long clusters side by side, which touch: distances alone cut them across."""
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(0, 3, N), rng.normal(0, 0.6, N) + 3 * y])


@pytest.fixture(scope="module")
def links(y) -> tuple[np.ndarray, np.ndarray]:
    return random_links(y, 150, np.random.default_rng(1))


def fit(X, links=None, **options) -> EVCLUS:
    known = {"d0": "q0.7", "n_dissimilarities": 40, "random_state": 0, **options}
    must, cannot = (None, None) if links is None else links
    return EVCLUS(2, **{"metric": "euclidean", **known}).fit(X, must_link=must, cannot_link=cannot)


def honoured(labels, must, cannot) -> float:
    right = (labels[must[:, 0]] == labels[must[:, 1]]).sum()
    return (right + (labels[cannot[:, 0]] != labels[cannot[:, 1]]).sum()) / (
        len(must) + len(cannot)
    )


@pytest.mark.parametrize("k", [40, N - 1])
@pytest.mark.parametrize("family", ["simple", "full"])
@pytest.mark.parametrize("xi", [0.02, 0.05, 0.5, 3.0])
def test_the_objective_is_stress_plus_penalty(X, links, k, family, xi):
    """Eq. (11) with 2 xi / |links|, times the mean of delta^2."""
    model = fit(X, links, n_dissimilarities=k, focal_sets=family, constraint_weight=xi)
    mass, sets = model.credal_partition_.mass, model.credal_partition_.focal_sets
    pairs = kept_pairs(N, k, seed_of(model))
    delta = phi(distances(X, pairs), model.d0_)
    per_link = 2 * xi / sum(map(len, links))
    penalty = np.mean(delta**2) * per_link * sum(link_costs(mass, sets, *links))
    np.testing.assert_allclose(
        model.objective_, mean_square(mass, sets, pairs, delta) + penalty, rtol=1e-6
    )
    assert (np.diff(model.history_) <= 0).all()


def test_links_turn_the_partition_to_the_one_they_come_from(X, y, links):
    free, bound = fit(X), fit(X, links, constraint_weight=1.0)
    assert adjusted_rand_score(y, free.labels_) < 0.3
    assert adjusted_rand_score(y, bound.labels_) > 0.8
    assert honoured(bound.labels_, *links) > 0.95 > honoured(free.labels_, *links)


def test_a_weight_of_zero_is_no_constraint(X, links):
    free, bound = fit(X), fit(X, links, constraint_weight=0.0)
    np.testing.assert_allclose(bound.objective_, free.objective_, rtol=1e-4)


def test_one_kind_of_link_is_enough(X, links):
    must, cannot = links
    for some in [(must, None), (None, cannot), ([], cannot)]:
        model = fit(X, some)
        assert model.objective_ > fit(X).objective_ * 0.999


def test_the_weight_is_reached_by_a_warm_up(X, links):
    seen: list[str] = []
    fit(X, links, constraint_weight=0.5, callbacks=[lambda news: seen.append(news.stage)])
    assert list(dict.fromkeys(seen))[3:] == [  # after three stages without sweeps
        "fit",
        "constraints 0.05",
        "constraints 0.15",
        "constraints 0.5",
    ]
    seen.clear()
    fit(X, links, constraint_weight=0.05, callbacks=[lambda news: seen.append(news.stage)])
    assert list(dict.fromkeys(seen))[3:] == ["fit", "constraints 0.05"]


def test_links_change_no_bit_with_threads():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 9000)
    X = rng.normal(size=(9000, 2)) + 3.0 * np.eye(3)[y][:, :2]
    must, cannot = random_links(y, 500, rng)
    options = {"d0": "q0.5", "n_dissimilarities": 10, "random_state": 0, "tol": 1e-3}
    one, two = (
        EVCLUS(3, n_jobs=jobs, **{"metric": "euclidean", **options}).fit(
            X, must_link=must, cannot_link=cannot
        )
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.credal_partition_.mass, two.credal_partition_.mass)
    assert one.history_ == two.history_


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "mahalanobis", "precomputed"])
def test_expanded_links_are_those_of_algorithm_2(X, links, metric):
    table = cdist(X, X) if metric == "precomputed" else X
    few = tuple(some[:10] for some in links)
    more = expand_constraints(table, *few, 3, metric=metric)
    assert len(more[0]) > 10
    a = fit(table, few, expand_constraints=3, metric=metric)
    b = fit(table, more, metric=metric)
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)


def test_expansion_makes_few_links_count_for_more(X, y, links):
    few = tuple(some[:15] for some in links)
    plain, expanded = (
        adjusted_rand_score(y, fit(X, few, expand_constraints=K).labels_) for K in (0, 5)
    )
    assert expanded > plain + 0.1


@pytest.mark.parametrize(
    ("must", "cannot", "says"),
    [
        (
            [(0, 1), (1, 2)],
            [(2, 0)],
            r"cannot_link row 0, \(2, 0\), contradicts.*2 - 1 - 0. Remove",
        ),
        ([(0, N)], None, rf"must_link must name objects 0..{N - 1}, but row 0 is \(0, {N}\)"),
        (None, [(5, 5)], r"cannot_link must join two different objects, but row 0 is \(5, 5\)"),
        ([0, 1], None, r"must_link must be pairs of objects.*For one pair write \[\(i, j\)\]"),
        ([(0.5, 1)], None, "must_link must hold whole numbers"),
    ],
)
def test_impossible_links_are_refused(X, must, cannot, says):
    with pytest.raises(ValueError, match=says):
        fit(X, (must, cannot))


@pytest.mark.parametrize("expand", [0, 2])
def test_a_pair_list_takes_no_links(expand):
    rows = np.array([[0, 1, 1.0], [1, 2, 2.0], [0, 2, 3.0]])
    with pytest.raises(ValueError, match="Pass the attributes or a square matrix"):
        fit(rows, ([(0, 1)], None), metric="pairs", expand_constraints=expand)


def test_more_neighbours_than_objects_are_refused(X):
    with pytest.raises(ValueError, match=f"K must be 0 to n - 1 = {N - 1} neighbours, got {N}"):
        fit(X, ([(0, 1)], None), expand_constraints=N)

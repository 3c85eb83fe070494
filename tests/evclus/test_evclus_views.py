"""The default metric, with four columns or more: several views of the objects, one partition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, run
from evdist.stores.encoding import StoreError

VIEWS = ["straight", "along", "layout", "along the layout"]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


@pytest.fixture(scope="module")
def model(digits):
    return EVCLUS(10, random_state=0).fit(digits[0])


def test_together_they_are_at_least_as_good_as_the_views_on_average(digits, model):
    _, y = digits
    each = [adjusted_rand_score(y, view.labels()) for view in model.views_.values()]
    assert list(model.views_) == VIEWS
    assert adjusted_rand_score(y, model.labels_) >= np.mean(each)
    assert model.metric_ == "views"


def test_it_is_the_mean_of_the_views_and_for_a_quarter_a_fit_of_their_bets(model):
    masses = [np.asarray(view.mass) for view in model.views_.values()]
    bets = [mass[:, 1:-1] + mass[:, -1:] / 10 for mass in masses]
    joint = EVCLUS(10, metric="euclidean", random_state=0).fit(np.hstack(bets).astype(np.float32))
    whole = np.asarray(joint.credal_partition_.mass)
    base = whole[:, 1:-1]
    total = 0
    for mass in masses:
        order = linear_sum_assignment(-base.T @ mass[:, 1:-1])[1]
        total = total + np.column_stack([mass[:, 0], mass[:, 1 + order], mass[:, -1]])
    expected = 0.75 * total / 4 + 0.25 * whole
    np.testing.assert_allclose(model.credal_partition_.mass, expected, atol=1e-6)
    assert model.objective_ == joint.objective_


def test_where_views_differ_an_object_is_not_sure(digits, model):
    partition = model.credal_partition_
    named = np.array([view.labels() for view in model.views_.values()])
    matched = np.array([
        linear_sum_assignment(-np.equal.outer(partition.labels(), np.arange(10)).T.astype(float)
                              @ np.equal.outer(row, np.arange(10)))[1].argsort()[row]
        for row in named
    ])  # fmt: skip
    agreed = (matched == matched[0]).all(axis=0)
    sure = np.asarray(partition.decide().codes) == 0
    assert sure[agreed].mean() > sure[~agreed].mean() + 0.1


def test_what_is_said_of_one_way_of_comparing_leaves_it_at_that(digits):
    """Links, weights, given masses, a distance as d0 and sets of clusters: no view knows them."""
    X, y = digits
    zeros = np.flatnonzero(y == 0)[:2]
    start = np.tile([0.0, 0.2, 0.2, 0.2, 0.2, 0.2], (len(X), 1))
    quick = {"n_dissimilarities": 20, "random_state": 0}
    for options, given in (
        ({}, {"must_link": [zeros]}),
        ({}, {"sample_weight": np.full(len(X), 2.0)}),
        ({"d0": 30.0}, {}),
        ({"init": start}, {}),
        ({"focal_sets": "pairs"}, {}),
        ({"partitions": 2}, {}),
    ):
        found = EVCLUS(4, **quick, **options).fit(X, **given)
        straight = EVCLUS(4, metric="euclidean", **quick, **options).fit(X, **given)
        assert found.metric_ == "euclidean"
        np.testing.assert_array_equal(
            np.asarray(found.credal_partition_.mass), np.asarray(straight.credal_partition_.mass)
        )


def test_same_bits_for_any_number_of_threads(digits, model):
    other = EVCLUS(10, random_state=0, n_jobs=1).fit(digits[0])
    np.testing.assert_array_equal(other.credal_partition_.mass, model.credal_partition_.mass)


def test_every_view_places_new_objects(digits, model, tmp_path):
    X, _ = digits
    assert (model.predict(X) == model.labels_).mean() > 0.85
    model.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mass(X[:50]), model.predict_mass(X[:50]))
    assert list(again.views_) == VIEWS
    assert again.metric_ == "views"


def test_views_of_another_model_are_refused(digits, model, tmp_path):
    X, _ = digits
    model.save(tmp_path / "one")
    EVCLUS(10, random_state=1).fit(X).save(tmp_path / "two")
    folder = tmp_path / "one" / "views.zarr" / "along"
    folder.rename(tmp_path / "away")
    (tmp_path / "two" / "views.zarr" / "along").rename(folder)
    with pytest.raises(StoreError, match="that of another model"):
        EVCLUS.load(tmp_path / "one")


def test_jobs_take_them(digits, model, tmp_path):
    np.save(tmp_path / "x.npy", digits[0])
    data = {"url": str(tmp_path / "x.npy")}
    given = {"n_clusters": 10}
    done = run({"data": data, "folder": str(tmp_path / "job"), "parameters": given})
    mass = np.asarray(done.model().credal_partition_.mass)
    np.testing.assert_array_equal(mass, model.credal_partition_.mass)


def test_rows_of_length_one_are_compared_by_angle(digits):
    X = digits[0][:500]
    found = EVCLUS(5, random_state=0).fit(X / np.linalg.norm(X, axis=1)[:, None])
    assert found._map.models["straight"].metric_ == "cosine"


def test_a_few_hundred_objects_are_compared_straight(digits):
    """Wine, 178 objects: .90 straight, .40 along the data, .82 on a layout."""
    found = EVCLUS(10, random_state=0).fit(digits[0][:499])
    assert found.metric_ == "euclidean"
    straight = EVCLUS(10, metric="euclidean", random_state=0).fit(digits[0][:499])
    np.testing.assert_array_equal(found.credal_partition_.mass, straight.credal_partition_.mass)


def test_with_three_columns_one_metric_is_taken(digits):
    found = EVCLUS(3, random_state=0).fit(digits[0][:100, 2:5])
    assert found.metric_ in ("euclidean", "geodesic")
    with pytest.raises(AttributeError, match="no views with the metric"):
        _ = found.views_


@pytest.mark.parametrize("c", [24, 25])
def test_many_clusters_are_answered_in_the_same_way_from_tables_and_lists(digits, c):
    found = EVCLUS(c, random_state=0).fit(digits[0])
    total = sum(
        np.column_stack([mass[:, 0], mass[:, 1 + one], mass[:, -1]])
        for one, mass in zip(
            found._map.matching,
            (np.asarray(view.mass) for view in found.views_.values()),
            strict=True,
        )
    )
    rest = np.asarray(found.credal_partition_.mass) - 0.75 * total / 4
    np.testing.assert_allclose(rest.sum(axis=1), 0.25, atol=1e-5)  # what the joint fit says
    assert rest.min() > -1e-6
    assert (found.predict(digits[0]) == found.labels_).mean() > 0.7

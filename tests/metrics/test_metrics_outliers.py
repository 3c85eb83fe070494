"""Scores that rank outliers: by mass on the empty set and by distance on the scale of a cluster."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from evdist import CredalPartition, metrics
from evdist.metrics import outlier_scores, outliers


@pytest.fixture(scope="module")
def planted():
    """A dense and a sparse cluster, and objects strange to the dense one; labels 0, 1."""
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(0, 0.1, (200, 2)), rng.normal(8, 2, (200, 2))
    strange = np.array([[0.9, 0.9], [-0.9, 0.8], [0.8, -0.9], [1.0, 0.0]])
    X = np.concatenate([dense, sparse, strange])
    labels = np.repeat([0, 1, 0], [200, 200, 4])
    return X, CredalPartition.from_labels(labels), np.repeat([0, 1], [400, 4])


def test_an_object_is_strange_on_the_scale_of_its_own_cluster(planted):
    X, partition, strange = planted
    assert roc_auc_score(strange, outlier_scores(partition, X)) > 0.99


def test_mass_on_the_empty_set_is_added(planted):
    X, partition, _ = planted
    mass = np.array(partition.mass)
    mass[7] = 0
    mass[7, 0] = 1
    more = outlier_scores(CredalPartition(mass, partition.focal_sets), X)
    assert more[7] == pytest.approx(outlier_scores(partition, X)[7] + 1)


def test_units_do_not_matter_and_copies_do_no_harm(planted):
    X, partition, _ = planted
    np.testing.assert_allclose(outlier_scores(partition, 1000 * X), outlier_scores(partition, X))
    assert np.isfinite(outlier_scores(partition, np.zeros_like(X))).all()


def test_neighbours_of_many_objects_are_looked_for_in_a_sample(planted, monkeypatch):
    X, partition, strange = planted
    monkeypatch.setattr(outliers, "SAMPLE", 300)
    assert roc_auc_score(strange, outlier_scores(partition, X)) > 0.99


def test_what_is_refused(planted):
    X, partition, _ = planted
    with pytest.raises(ValueError, match="one row for each of the 404 objects"):
        outlier_scores(partition, X[:5])
    with pytest.raises(ValueError, match="n_neighbors must be from 1 to 403, got 0"):
        outlier_scores(partition, X, n_neighbors=0)


def test_the_example_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(metrics.outlier_scores, "scores")
    assert doctest.DocTestRunner().run(example).failed == 0

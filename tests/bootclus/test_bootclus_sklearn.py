"""Bootclus as scikit-learn knows an estimator."""

from __future__ import annotations

import doctest

import numpy as np
import pandas as pd
import pytest
from bootclus.bootclus_cases import three_gaussians
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist import Bootclus


@parametrize_with_checks(
    [Bootclus(2, n_bootstrap=8, covariance_models="EII", n_jobs=1, random_state=0)]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(Bootclus, "Bootclus")
    assert len(example.examples) == 4
    assert doctest.DocTestRunner().run(example).failed == 0


def test_parameters_are_stored_untouched():
    numbers = range(2, 5)
    assert Bootclus(numbers).get_params()["n_clusters"] is numbers


def test_frames_give_names_and_a_pipeline_ends_here():
    X, _ = three_gaussians(60)
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = Bootclus(3, n_bootstrap=8, covariance_models="EII", random_state=0)
    line = make_pipeline(StandardScaler().set_output(transform="pandas"), model).fit(frame)
    assert line[-1].feature_names_in_.tolist() == ["length", "width"]
    np.testing.assert_array_equal(np.unique(line.predict(frame)), [0, 1, 2])
    with pytest.raises(ValueError, match="feature names should match"):
        line[-1].predict(frame[["width", "length"]])

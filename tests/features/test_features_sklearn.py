"""The transformers as scikit-learn knows them: its own checks, clones, frames and names."""

from __future__ import annotations

import doctest
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist.features import (
    LFDA,
    LSI,
    PCCA,
    DissimilarityPCA,
    DMLEig,
    GeodesicMap,
    KernelFDA,
    KernelPCCA,
    NeighbourLayout,
)

MUST, CANNOT = [(0, 1), (2, 3)], [(0, 2), (1, 4)]


class _Linked:
    """The checks pass no links, without which nothing can be learnt: these stand in for them."""

    def fit(self, X, y=None):
        return super().fit(X, y, must_link=MUST, cannot_link=CANNOT)


class LinkedPCCA(_Linked, PCCA):
    pass


class LinkedKernelPCCA(_Linked, KernelPCCA):
    pass


class LinkedLSI(_Linked, LSI):
    pass


class LinkedDMLEig(_Linked, DMLEig):
    pass


@parametrize_with_checks(
    [
        LinkedPCCA(1),
        LinkedKernelPCCA(1),
        LinkedLSI(1),
        LinkedDMLEig(1),
        KernelFDA(),
        LFDA(),
        DissimilarityPCA(1),
        GeodesicMap(3),
        NeighbourLayout(2, n_neighbors=5),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


X, Y = make_blobs(90, centers=[[0, 0, 0], [6, 0, 0], [0, 6, 0]], random_state=3)
SOME = np.where(np.arange(90) % 3, Y, -1)
FITTED = {
    "PCCA": PCCA(2).fit(X, must_link=MUST, cannot_link=CANNOT),
    "KernelPCCA": KernelPCCA(2).fit(X, must_link=MUST, cannot_link=CANNOT),
    "LSI": LSI(2).fit(X, must_link=MUST, cannot_link=CANNOT),
    "DMLEig": DMLEig(2).fit(X, must_link=MUST, cannot_link=CANNOT),
    "KernelFDA": KernelFDA(gamma=0.1).fit(X, SOME),
    "LFDA": LFDA(2).fit(X, SOME),
    "DissimilarityPCA": DissimilarityPCA(2, n_landmarks=20, random_state=0).fit(X),
    "GeodesicMap": GeodesicMap(2, random_state=0).fit(X),
    "precomputed": DissimilarityPCA(2, metric="precomputed").fit(np.abs(X)),
}


@pytest.fixture(params=FITTED)
def model(request):
    return FITTED[request.param]


def rows(model) -> np.ndarray:
    return np.abs(X) if getattr(model, "metric", None) == "precomputed" else X


def test_features_are_finite_float64_and_have_names(model):
    features = model.transform(rows(model))
    assert features.shape == (90, 2)
    assert features.dtype == np.float64
    assert np.isfinite(features).all()
    name = type(model).__name__.lower()
    assert model.get_feature_names_out().tolist() == [f"{name}0", f"{name}1"]


def test_the_same_rows_given_as_new_objects_get_the_same_features(model):
    """However they are cut into calls: each object's features are its own."""
    whole = model.transform(rows(model))
    parts = [model.transform(rows(model)[lo : lo + 7]) for lo in range(0, 90, 7)]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-9, atol=1e-9)


def test_a_dask_array_gives_a_dask_array_of_the_same_features(model):
    lazy = model.transform(da.from_array(rows(model), chunks=(31, 2)))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (90, 2)
    np.testing.assert_allclose(lazy.compute(), model.transform(rows(model)), rtol=1e-9, atol=1e-9)


def test_a_fitted_model_survives_pickling(model):
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.transform(rows(model)), model.transform(rows(model)))


def test_an_unfitted_model_says_so(model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(model).transform(X)


def test_frames_are_asked_for_their_names_again():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LFDA(2).set_output(transform="pandas").fit(frame, Y)
    assert model.transform(frame).columns.tolist() == ["lfda0", "lfda1"]
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        model.transform(frame[["b", "a", "c"]])


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(PCCA, "PCCA")
    assert len(example.examples) == 4
    assert doctest.DocTestRunner().run(example).failed == 0

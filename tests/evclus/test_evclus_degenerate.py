"""Data that cannot give what is asked for: said in a sentence, before or beside the answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from evdist import ECM, EVCLUS
from evdist.estimators.checks import CopiesWarning

X, Y = make_blobs(80, centers=3, random_state=0)


@pytest.mark.parametrize("method", [EVCLUS, ECM])
def test_fewer_different_rows_than_clusters_are_told(method):
    few = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    with pytest.warns(CopiesWarning, match="2 different rows for 4 clusters, .* Ask for 2 at most"):
        model = method(4, random_state=0).fit(few)
    assert sorted(np.bincount(model.labels_).tolist()) == [20, 20]


def test_identical_rows_are_told():
    with pytest.warns(CopiesWarning, match="1 different row for 3 clusters"):
        ECM(3, random_state=0).fit(np.ones((30, 3)))


def test_enough_different_rows_far_down_are_seen():
    late = np.vstack([np.zeros((100, 2)), X])
    assert len(ECM(3, random_state=0).fit(late).labels_) == 180


@pytest.mark.parametrize("method", [EVCLUS, ECM])
def test_a_number_without_a_square_is_refused_with_its_place(method):
    huge = X.copy()
    huge[5, 0] = 1e200
    with pytest.raises(ValueError, match=r"too large to square, but row 5, column 0 is 1e\+200"):
        method(3, random_state=0).fit(huge)


def test_numbers_beyond_single_precision_need_a_scale():
    with pytest.raises(ValueError, match=r"numbers below 1e\+18, but X goes up to .*e\+25"):
        EVCLUS(3, metric="euclidean", random_state=0).fit(X * 1e25)
    labels = EVCLUS(3, metric="euclidean", scale="standard", random_state=0).fit(X * 1e25).labels_
    np.testing.assert_array_equal(
        labels, EVCLUS(3, metric="euclidean", scale="standard", random_state=0).fit(X).labels_
    )


@pytest.mark.parametrize("wrong", [99.0, 9999.0])
def test_one_wrong_entry_of_a_matrix_does_not_move_the_rest(wrong):
    D = cdist(X, X)
    right = EVCLUS(3, metric="precomputed", random_state=0).fit(D)
    D[3, 7] = D[7, 3] = wrong
    model = EVCLUS(3, metric="precomputed", random_state=0).fit(D)
    assert (model.labels_ == right.labels_).mean() > 0.95
    sure = [m.credal_partition_.decide().sure.mean() for m in (right, model)]
    assert sure[1] == pytest.approx(sure[0], abs=0.1)

"""An estimator stands where users of hdbscan and scikit-learn expect theirs to stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import make_blobs

from evdist import ECM, EVCLUS
from evdist.estimators.checks import random_of


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    X, _ = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    X[7] = [400.0, 400.0]
    return X


@pytest.fixture(scope="module")
def model(X) -> EVCLUS:
    return EVCLUS(3, d0=8.0, outliers="label", random_state=0).fit(X)


def test_outliers_have_the_label_minus_one_where_that_is_asked_for(X, model):
    out = np.asarray(model.credal_partition_.outliers())
    assert out[7]
    np.testing.assert_array_equal(model.labels_ == -1, out)
    assert set(model.labels_[~out]) == {0, 1, 2}
    assert model.predict([[-300.0, 300.0]])[0] == -1
    plain = EVCLUS(3, d0=8.0, random_state=0).fit(X)
    assert -1 not in plain.labels_
    np.testing.assert_array_equal(plain.labels_[~out], model.labels_[~out])


def test_a_loaded_model_labels_as_the_saved_one(model, tmp_path):
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(EVCLUS.load(tmp_path / "m").labels_, model.labels_)


def test_another_word_for_outliers_is_refused(X):
    with pytest.raises(ValueError, match="outliers must be one of cluster, label, got 'drop'"):
        EVCLUS(3, outliers="drop").fit(X)


def test_strengths_and_outlier_scores_are_those_of_the_masses(model):
    strength, score = model.probabilities_, model.outlier_scores_
    assert strength.shape == score.shape == (120,)
    assert strength[7] == 0
    assert score[7] > 0.5
    np.testing.assert_allclose(score, np.asarray(model.credal_partition_.mass)[:, 0], atol=1e-6)
    assert strength.max() <= 1
    assert not hasattr(EVCLUS(3), "probabilities_")


def test_a_score_is_higher_for_rows_in_the_middle_of_clusters(model):
    assert model.score([[0.0, 0.0], [9.0, 0.0]]) > model.score([[4.5, 4.5], [200.0, 0.0]])


@pytest.mark.parametrize("estimator", [EVCLUS, ECM])
def test_an_arrow_table_is_a_data_frame(X, estimator):
    frame = pd.DataFrame(X, columns=["a", "b"])
    table = pa.Table.from_pandas(frame)
    one, two = (estimator(3, random_state=0).fit(data) for data in (frame, table))
    assert one.credal_partition_ == two.credal_partition_
    np.testing.assert_array_equal(one.predict_mass(frame[:9]), two.predict_mass(table.slice(0, 9)))


def test_a_generator_is_drawn_from(X):
    seeds = [random_of(np.random.default_rng(5)).randint(1000) for _ in range(2)]
    assert seeds[0] == seeds[1]
    generator = np.random.default_rng(5)
    assert random_of(generator).randint(1000) == seeds[0]
    assert random_of(generator).randint(1000) != seeds[0]
    one, two = (ECM(3, random_state=np.random.default_rng(1)).fit(X) for _ in range(2))
    assert one.credal_partition_ == two.credal_partition_


@pytest.mark.parametrize(
    "texts", [["a b", "c d", "e f"], np.array(["a", "b"]), pd.Series(["x", "y"])]
)
def test_texts_are_told_what_to_become(texts):
    with pytest.raises(ValueError, match=r"table of numbers.* texts, such as .*language model"):
        ECM(2).fit(texts)


def test_an_unknown_metric_is_told_all_that_there_are(X):
    with pytest.raises(ValueError, match=r"chebyshev.*pairs.*auto, geodesic and layout"):
        EVCLUS(3, metric="jaccard").fit(X)

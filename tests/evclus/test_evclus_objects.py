"""Objects that are no rows of numbers: text, series of any length, sparse attributes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from evdist import EVCLUS

RNG = np.random.default_rng(0)
WORDS = [f"{stem}{'x' * int(more)}" for stem in ("cat", "doggy") for more in RNG.integers(0, 3, 20)]


def edits(a: str, b: str) -> float:
    """A rough distance of two words."""
    return float(abs(len(a) - len(b)) + (a[0] != b[0]) * 5)


class TestOneCallForEachPair:
    def test_of_rows(self):
        X = np.r_[RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)) + 6]
        seen: list[frozenset] = []

        def metric(a, b):
            seen.append(frozenset([tuple(a), tuple(b)]))
            return float(np.linalg.norm(a - b))

        model = EVCLUS(2, metric=metric, random_state=0).fit(X)
        assert len(seen) == len(set(seen)) <= 60 * 59 // 2
        assert all(len(pair) == 2 for pair in seen), "an object is not compared with itself"
        assert len(set(model.labels_[:30])) == 1 != len(set(model.labels_))

    def test_an_asymmetric_function_gives_one_value_for_a_pair(self):
        asked = set()

        def metric(a, b):
            asked.add((float(a[0]), float(b[0])))
            return float(abs(a[0] - b[0]) + (a[0] > b[0]))

        X = np.arange(20.0)[::-1, None] ** 2
        EVCLUS(2, metric=metric, random_state=0).fit(X)
        assert all(a > b for a, b in asked), "the object with the lower number comes first"

    def test_a_value_that_must_not_be_names_the_pair(self):
        X = np.arange(30.0)[:, None]
        bad = {3.0, 7.0}
        with pytest.raises(ValueError, match="gave nan for objects 3 and 7"):
            EVCLUS(2, metric=lambda a, b: np.nan if {a[0], b[0]} == bad else 1.0).fit(X)


class TestText:
    @pytest.mark.parametrize("kind", [list, np.array, pd.Series], ids=["list", "array", "series"])
    def test_a_list_an_array_and_a_series_give_the_same(self, kind):
        model = EVCLUS(2, metric=edits, random_state=0).fit(kind(WORDS))
        assert len(set(model.labels_[:20])) == 1 != len(set(model.labels_))
        assert model.predict(["catxx", "doggyx"]).tolist() == model.labels_[[0, 20]].tolist()

    def test_the_index_of_a_series_names_the_objects(self):
        index = [f"w{i}" for i in range(40)]
        model = EVCLUS(2, metric=edits, random_state=0).fit(pd.Series(WORDS, index=index))
        assert model.credal_partition_.ids.tolist() == index

    def test_a_saved_model_places_new_words(self, tmp_path):
        model = EVCLUS(2, metric=edits, random_state=0).fit(WORDS)
        model.save(tmp_path / "m")
        loaded = EVCLUS.load(tmp_path / "m", metric=edits)
        new = ["catty", "dog"]
        np.testing.assert_array_equal(loaded.predict_mass(new), model.predict_mass(new))


def test_series_of_unequal_length():
    series = [np.full(n, level) for level in (0.0, 9.0) for n in range(3, 18)]
    model = EVCLUS(2, metric=lambda a, b: abs(a.mean() - b.mean()), random_state=0).fit(series)
    assert len(set(model.labels_[:15])) == 1 != len(set(model.labels_))
    assert model.predict([np.zeros(40)]).tolist() == [model.labels_[0]]


class TestSparse:
    TEXTS = ["apple pie sugar", "apple tart sugar cream", "pie cream apple"] * 8
    TEXTS += ["engine wheel oil", "wheel brake engine", "oil brake engine gear"] * 8

    @pytest.mark.parametrize("metric", ["cosine", "euclidean", "sqeuclidean"])
    def test_gives_what_the_dense_matrix_gives(self, metric):
        X = TfidfVectorizer().fit_transform(self.TEXTS)
        sparse = EVCLUS(2, metric=metric, random_state=0).fit(X)
        dense = EVCLUS(2, metric=metric, random_state=0).fit(X.toarray())
        np.testing.assert_allclose(
            sparse.credal_partition_.mass, dense.credal_partition_.mass, atol=2e-3
        )
        np.testing.assert_array_equal(sparse.predict(X[:5]), sparse.labels_[:5])
        np.testing.assert_array_equal(sparse.predict(X.toarray()[:5]), sparse.labels_[:5])

    @pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok"])
    def test_any_format_will_do(self, form):
        X = sp.random(30, 4, 0.6, random_state=0).asformat(form)
        model = EVCLUS(2, metric="euclidean", d0="q0.5", random_state=0).fit(X)
        assert model.predict_proba(X).shape == (30, 2)

    def test_is_saved(self, tmp_path):
        X = TfidfVectorizer().fit_transform(self.TEXTS)
        model = EVCLUS(2, metric="cosine", random_state=0).fit(X)
        model.save(tmp_path / "m")
        loaded = EVCLUS.load(tmp_path / "m")
        np.testing.assert_array_equal(loaded.predict_mass(X), model.predict_mass(X))

    def test_an_empty_row_has_no_direction(self):
        X = sp.csr_matrix(np.vstack([np.eye(6, 3), np.ones((6, 3))]))
        with pytest.raises(ValueError, match="Row 3 of X is empty"):
            EVCLUS(2, metric="cosine").fit(X)

    def test_other_metrics_need_a_dense_matrix(self):
        with pytest.raises(TypeError, match="dense data is required"):
            EVCLUS(2, metric="cityblock").fit(sp.csr_matrix(np.ones((9, 2))))

    def test_a_square_one_holds_dissimilarities(self):
        i, j = np.triu_indices(30, 1)
        D = sp.coo_matrix((np.where((i < 15) == (j < 15), 0.1, 5.0), (i, j)), (30, 30))
        labels = EVCLUS(2, metric="euclidean", random_state=0).fit(D).labels_
        assert len(set(labels[:15])) == 1 != len(set(labels))

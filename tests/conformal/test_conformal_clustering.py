"""Conformal sets of new objects: what is promised holds, for any estimator; laws; refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.mixture import GaussianMixture as OtherMixture

from evdist import ECM, EGMM, EVCLUS, RECM, conformal
from evdist.conformal import ConformalClustering
from evdist.mixture import GaussianMixture

CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 2.6]])


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.normal(size=(n, 2)), y


class Posterior(BaseEstimator):
    """The true probabilities, or `sharp` ones that are too sure; nothing is fitted."""

    def __init__(self, sharp: float = 1.0):
        self.sharp = sharp

    def fit(self, X, y=None):
        self.n_seen_ = len(X)
        return self

    def predict_proba(self, X):
        far = ((np.asarray(X)[:, None] - CENTRES) ** 2).sum(axis=2) * self.sharp / 2
        bet = np.exp(-(far - far.min(axis=1, keepdims=True)))
        return bet / bet.sum(axis=1, keepdims=True)


def coverage(model, labels, repetitions: int = 200, n: int = 120, new: int = 200, **known):
    """Mean and standard error of how often the sets hold what `labels(model, Z, z)` draws."""
    held = []
    for seed in range(repetitions):
        X, _ = draw(n, seed)
        Z, z = draw(new, 10_000 + seed)
        fitted = clone(model).set_params(random_state=seed).fit(X)
        sets = fitted.predict_set(Z, **known)
        held.append((sets.members * labels(fitted, Z, z)).sum(axis=1).mean())
    return np.mean(held), np.std(held) / np.sqrt(repetitions)


def own(fitted, Z, z):
    return fitted.estimator_.predict_proba(Z)


def true(fitted, Z, z):
    return np.eye(3)[z]


class TestThePromise:
    @pytest.mark.parametrize("drawn", [False, True])
    @pytest.mark.parametrize("alpha", [0.05, 0.2])
    def test_true_components_are_held_where_the_probabilities_are_right(self, alpha, drawn) -> None:
        """Within two standard errors; with 60 objects that calibrate, at most 2/61 more."""
        model = ConformalClustering(Posterior(), score="randomised-aps", drawn=drawn)
        mean, error = coverage(model, true, alpha=alpha)
        assert 1 - alpha - 2 * error <= mean <= 1 - alpha + 2 / 61 + 2 * error

    @pytest.mark.parametrize("score", ["aps", "lac"])
    @pytest.mark.parametrize("estimator", [ECM(3), GaussianMixture(3, covariance_models="EII")])
    def test_labels_of_the_model_are_held_by_any_estimator(self, estimator, score) -> None:
        model = ConformalClustering(estimator.set_params(random_state=0), score=score)
        mean, error = coverage(model, own, 40, alpha=0.1)
        assert mean >= 0.9 - 2 * error

    def test_labels_of_a_second_fit_are_held(self) -> None:
        def other(fitted, Z, z):
            return fitted.other_.predict_proba(Z)[:, fitted.pairs_]

        model = ConformalClustering(ECM(3, random_state=0), labels="refit")
        mean, error = coverage(model, other, 40, alpha=0.1)
        assert mean >= 0.9 - 2 * error

    def test_true_components_are_held_less_often_by_what_the_probabilities_are_wrong(self) -> None:
        """Eq. (2), and that it is not for nothing: a model that is too sure misses the promise."""
        Z, _ = draw(4000, 1)
        right, sharp = Posterior(), Posterior(4.0)
        apart = 0.5 * np.abs(right.predict_proba(Z) - sharp.predict_proba(Z)).sum(axis=1).mean()
        model = ConformalClustering(sharp, score="randomised-aps")
        mean, error = coverage(model, true, alpha=0.1)
        assert 0.9 - apart - 2 * error <= mean < 0.9 - 2 * error

    def test_weights_mend_a_shift_of_the_objects(self) -> None:
        """New objects mostly from the middle, where the components overlap."""

        def ratio(X: np.ndarray) -> np.ndarray:
            return np.exp(-((X - CENTRES.mean(axis=0)) ** 2).sum(axis=1) / 2)

        held = {True: [], False: []}
        for seed in range(200):
            X, _ = draw(300, seed)
            Z, z = draw(400, 10_000 + seed)
            kept = np.random.default_rng(seed).random(400) < ratio(Z)
            Z, z = Z[kept], z[kept]
            for weighted, found in held.items():
                model = ConformalClustering(Posterior(), score="lac", random_state=seed)
                w, v = (ratio(X), ratio(Z)) if weighted else (None, None)
                sets = model.fit(X, weight=w).predict_set(Z, 0.2, weight=v)
                found.append(sets.members[np.arange(len(z)), z].mean())
        error = {k: np.std(some) / np.sqrt(200) for k, some in held.items()}
        assert np.mean(held[True]) >= 0.8 - 2 * error[True]
        assert np.mean(held[False]) < 0.8 - 5 * error[False]


class TestSets:
    X, Y = draw(240, 0)[0], draw(100, 1)[0]

    @pytest.mark.parametrize("score", ["aps", "randomised-aps", "lac"])
    @pytest.mark.parametrize("labels", ["own", "refit"])
    def test_grow_as_alpha_falls_and_are_the_same_for_a_seed(self, score, labels) -> None:
        model = ConformalClustering(
            ECM(3, random_state=0), score=score, labels=labels, random_state=0
        )
        model.fit(self.X)
        sets = [model.predict_set(self.Y, a).members for a in (0.4, 0.2, 0.1, 0.02)]
        assert all((a <= b).all() for a, b in pairwise(sets))
        again = clone(model).fit(self.X)
        np.testing.assert_array_equal(again.predict_set(self.Y, 0.1).members, sets[2])

    def test_aps_has_the_likeliest_cluster_always(self) -> None:
        model = ConformalClustering(ECM(3, random_state=0), random_state=0).fit(self.X)
        best = model.estimator_.predict_proba(self.Y).argmax(axis=1)
        assert model.predict_set(self.Y, 0.9).members[np.arange(100), best].all()

    def test_parts_are_disjoint_and_of_the_share_that_was_asked_for(self) -> None:
        model = ConformalClustering(Posterior(), calibration=0.25, random_state=0).fit(self.X)
        assert len(model.calibration_rows_) == 60 and len(model.fitted_rows_) == 180
        assert model.estimator_.n_seen_ == 180
        together = np.concatenate([model.calibration_rows_, model.fitted_rows_])
        assert sorted(together) == list(range(240))
        assert model.predict_set(self.Y).n_calibration == 60
        assert model.other_ is model.pairs_ is model.agreement_ is None

    def test_two_fits_that_disagree_make_sets_larger(self) -> None:
        """Noise without clusters: what one fit calls a cluster the other does not."""
        noise = np.random.default_rng(0).random((400, 2))
        sizes = {}
        for labels in ("own", "refit"):
            model = ConformalClustering(ECM(6), labels=labels, score="lac", random_state=1)
            model.fit(noise)
            sizes[labels] = model.predict_set(noise, 0.2).sizes.mean()
        assert model.agreement_ < 0.9 and sizes["refit"] > sizes["own"]
        assert "second fit, to other objects of the same kind" in model.predict_set(noise).promise

    def test_dissimilarities_are_cut_in_rows_and_columns(self) -> None:
        D, new = cdist(self.X, self.X), cdist(self.Y, self.X)
        for labels in ("own", "refit"):
            model = ConformalClustering(
                RECM(3, random_state=0), labels=labels, random_state=0, score="lac"
            ).fit(D)
            sets = model.predict_set(new[:, model.fitted_rows_], 0.1)
            assert sets.members.shape == (100, 3)
            assert (own(model, new[:, model.fitted_rows_], 0) * sets.members).sum() > 80

    def test_tables_and_files_are_read(self, tmp_path) -> None:
        np.save(tmp_path / "x.npy", self.X)
        model = ConformalClustering(ECM(3, random_state=0), random_state=0)
        plain = model.fit(self.X).predict_set(self.Y).members
        frame = pd.DataFrame(self.X, columns=["a", "b"])
        named = model.fit(frame).predict_set(pd.DataFrame(self.Y, columns=["a", "b"])).members
        np.testing.assert_array_equal(named, plain)
        stored = model.fit(tmp_path / "x.npy").predict_set(self.Y).members
        np.testing.assert_array_equal(stored, plain)

    @pytest.mark.parametrize(
        "estimator",
        [
            EVCLUS(3, metric="euclidean", random_state=0),
            EGMM(3, random_state=0),
            GaussianMixture(3, covariance_models="EII"),
            OtherMixture(3, random_state=0),
        ],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_any_estimator_that_places_new_objects_will_do(self, estimator) -> None:
        model = ConformalClustering(estimator, random_state=0).fit(self.X)
        sets = model.predict_set(self.Y, 0.1)
        assert sets.members.shape == (100, 3) and (sets.sizes >= 1).all()
        assert len(sets.open_names()) == 100
        assert "100 sets at alpha = 0.1, calibrated on 120 objects" in sets.summary()
        assert isinstance(sets, conformal.ConformalSets)


class TestRefusals:
    X = draw(40, 0)[0]

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"score": "best"}, "score must be one of 'aps', 'lac', 'randomised-aps', got 'best'"),
            ({"labels": "true"}, "labels must be one of own, refit, got 'true'"),
            ({"calibration": 1.0}, "calibration must be a number above 0 and below 1, got 1.0"),
            ({"calibration": 0.01}, "at least two objects in each part, got 40 objects for 1 fits"),
        ],
    )
    def test_parameters_that_mean_nothing(self, parameters: dict, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            ConformalClustering(Posterior(), **parameters).fit(self.X)

    def test_an_estimator_that_places_no_new_objects(self) -> None:
        class Fixed(ECM):
            predict_mass = property()

        with pytest.raises(TypeError, match=r"one that places new objects, .* got Fixed"):
            ConformalClustering(Fixed(3)).fit(self.X)

    def test_weights_in_one_place_alone(self) -> None:
        model = ConformalClustering(Posterior(), random_state=0)
        with pytest.raises(ValueError, match="weight must be given to both fit and predict_set"):
            model.fit(self.X).predict_set(self.X, weight=np.ones(40))
        with pytest.raises(ValueError, match="weight must be given to both fit and predict_set"):
            model.fit(self.X, weight=np.ones(40)).predict_set(self.X)
        with pytest.raises(ValueError, match="finite number of at least 0 for each of the 40"):
            model.fit(self.X, weight=-np.ones(40))

    def test_an_alpha_that_so_few_objects_cannot_show(self) -> None:
        model = ConformalClustering(Posterior(), random_state=0).fit(self.X)
        with pytest.raises(ValueError, match="needs at least 99 objects to calibrate on, got 20"):
            model.predict_set(self.X, 0.01)

    def test_two_fits_with_different_numbers_of_clusters(self) -> None:
        class Fickle(Posterior):
            """As many clusters as the first object is far out, an odd thing to do."""

            def predict_proba(self, X):
                return super().predict_proba(X)[:, : 2 + self.n_seen_ % 2]

        X = np.concatenate([self.X, self.X[:2]])  # halves of 11 and 10 objects
        with pytest.raises(ValueError, match=r"labels='refit' found .* clusters: nothing can be"):
            ConformalClustering(Fickle(), labels="refit").fit(X)

"""verbose=True shows how far a fit is; scikit-learn's manners of all clusterers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evdist import ECM
from evdist.registry import ALGORITHMS

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)) + 8]


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_estimator_has_it(name):
    model = ALGORITHMS[name].cls(verbose=True)
    assert clone(model).verbose is True


def test_a_fit_shows_its_stages_only_when_asked(capsys):
    ECM(2, random_state=0).fit(X)
    assert capsys.readouterr() == ("", "")
    ECM(2, random_state=0, verbose=True).fit(X)
    out, err = capsys.readouterr()
    assert out == "" and "objective" in err


def test_probabilities_go_with_labels_and_sum_to_one():
    model = ECM(2, random_state=0).fit(X)
    chance = model.predict_proba(X)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    assert (chance.argmax(axis=1) == model.predict(X)).all()


def test_masses_are_features_in_a_pipeline():
    y = np.repeat([0, 1], 30)
    model = make_pipeline(ECM(2, random_state=0), LogisticRegression()).fit(X, y)
    assert model.score(X, y) == 1
    assert model[0].get_feature_names_out().tolist() == ["mass_∅", "mass_{0}", "mass_{1}", "mass_Ω"]
    frame = model[0].set_output(transform="pandas").transform(X)
    assert list(frame.columns) == model[0].get_feature_names_out().tolist()

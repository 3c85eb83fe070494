"""News of a fit: once per sweep, to callables and to scikit-learn's callbacks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.engine.progress import Progress


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(100, centers=2, random_state=0)[0]


def fit(X, **options) -> EVCLUS:
    return EVCLUS(2, d0="q0.5", random_state=0, **{"metric": "euclidean", **options}).fit(X)


def test_every_sweep_is_told_once(X):
    news: list[Progress] = []
    model = fit(X, init="random", callbacks=[news.append], max_iter=150)
    before = [one.stage for one in news if not one.max_sweeps]
    assert before == ["choose d0", "first masses", "draw pairs"]
    news = [one for one in news if one.max_sweeps]
    assert [one.sweep for one in news] == list(range(1, model.n_iter_ + 1))
    assert {one.stage for one in news} == {"fit"}
    assert {one.max_sweeps for one in news} == {150}
    # The last value of the history is computed afresh from the masses.
    np.testing.assert_allclose([one.objective for one in news], model.history_[1:], rtol=1e-9)
    np.testing.assert_allclose(
        [one.change for one in news], np.diff(model.history_), rtol=1e-6, atol=1e-12
    )
    assert all(one.change <= 0 for one in news)
    assert all(one.rows_per_second > 0 for one in news)
    assert all(one.seconds_left >= 0 for one in news)
    assert news[-1].seconds_left == 0


def test_all_listeners_hear_it_in_turn(X):
    heard: list[str] = []
    fit(X, max_iter=100, callbacks=[lambda _: heard.append("a"), lambda _: heard.append("b")])
    assert heard[:4] == ["a", "b", "a", "b"]
    assert len(heard) % 2 == 0


def test_restarts_have_names(X):
    news: list[Progress] = []
    fit(X, init="random", n_init=2, callbacks=[news.append])
    assert list(dict.fromkeys(one.stage for one in news if one.max_sweeps)) == ["fit", "fit 2"]


def test_listeners_change_nothing(X):
    quiet, told = fit(X), fit(X, callbacks=[lambda _: None])
    np.testing.assert_array_equal(quiet.credal_partition_.mass, told.credal_partition_.mass)


def test_an_error_in_a_listener_stops_the_fit(X):
    def refuse(news: Progress) -> None:
        if news.sweep:
            raise LookupError(f"sweep {news.sweep}")

    with pytest.raises(LookupError, match="sweep 1"):
        fit(X, callbacks=[refuse])


class TestScikitLearn:
    callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")

    def test_its_progress_bar_draws(self, X, capsys):
        model = EVCLUS(2, metric="euclidean", d0="q0.5", random_state=0).set_callbacks(
            self.callback.ProgressBar()
        )
        np.testing.assert_array_equal(model.fit(X).labels_, fit(X).labels_)
        assert "EVCLUS" in capsys.readouterr().out

    def test_its_callbacks_hear_of_every_sweep(self, X):
        heard: list[str] = []

        class Listener:
            def setup(self, estimator, context):
                heard.append("setup")

            def teardown(self, estimator, context):
                heard.append("teardown")

            def on_fit_task_begin(self, estimator, context, **more):
                heard.append(context.task_name)

            def on_fit_task_end(self, estimator, context, **more):
                return False

        mine: list[Progress] = []
        model = EVCLUS(2, metric="euclidean", d0="q0.5", random_state=0, callbacks=[mine.append])
        model.set_callbacks(Listener()).fit(X)
        assert (heard[0], heard[1], heard[-1]) == ("setup", "fit", "teardown")
        assert heard[2:-1] == [f"fit, sweep {one.sweep}" for one in mine if one.max_sweeps]

    def test_they_are_left_in_order_when_a_fit_fails(self, X):
        ends: list[str] = []

        class Listener:
            def setup(self, estimator, context):
                pass

            def teardown(self, estimator, context):
                ends.append("teardown")

            def on_fit_task_begin(self, estimator, context, **more):
                pass

            def on_fit_task_end(self, estimator, context, **more):
                raise LookupError("no")

        model = EVCLUS(2, metric="euclidean", d0="q0.5", random_state=0).set_callbacks(Listener())
        with pytest.raises(LookupError, match="no"):
            model.fit(X)
        assert ends == ["teardown"]

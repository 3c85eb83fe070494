"""A fit that is killed goes on by the same call, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.constraints import random_links
from evdist.engine.progress import Progress
from evdist.evclus.pair_store import PairStore
from evdist.stores.encoding import StoreError


class KilledError(RuntimeError):
    """Stands for whatever ends a process."""


class Kill:
    """A listener that remembers the sweeps it was told of, and raises at one of them."""

    def __init__(self, sweep: int | None = None, stage: str = "fit"):
        self.at = (stage, sweep)
        self.seen: list[tuple[str, int]] = []

    def __call__(self, news: Progress) -> None:
        if not news.max_sweeps:
            return  # a stage without sweeps
        self.seen.append((news.stage, news.sweep))
        if self.seen[-1] == self.at:
            raise KilledError("killed")


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(400, centers=4, random_state=8)


@pytest.fixture(scope="module")
def X(data) -> np.ndarray:
    return data[0]


def fit(X, listener=None, links=None, **options) -> EVCLUS:
    known = {"d0": "q0.4", "n_dissimilarities": 30, "random_state": 3, "init": "random"}
    listeners = [] if listener is None else [listener]
    must, cannot = (None, None) if links is None else links
    model = EVCLUS(
        4, callbacks=listeners, checkpoint_every=4, **{"metric": "euclidean", **known, **options}
    )
    return model.fit(X, must_link=must, cannot_link=cannot)


@pytest.fixture(scope="module")
def whole(X) -> EVCLUS:
    model = fit(X)
    assert model.n_iter_ > 12
    return model


def assert_same(a: EVCLUS, b: EVCLUS) -> None:
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)
    assert a.history_ == b.history_
    assert a.objective_ == b.objective_
    assert a.d0_ == b.d0_


def test_a_checkpoint_changes_no_bit(X, whole, tmp_path):
    assert_same(fit(X, checkpoint=tmp_path / "job"), whole)


@pytest.mark.parametrize("sweep", [1, 4, 11])
def test_a_killed_fit_goes_on_where_it_stopped(X, whole, sweep, tmp_path):
    with pytest.raises(KilledError, match="killed"):
        fit(X, Kill(sweep), checkpoint=tmp_path)
    later = Kill()
    assert_same(fit(X, later, checkpoint=str(tmp_path)), whole)
    done = sweep // 4 * 4  # the last checkpoint
    assert later.seen == [("fit", s) for s in range(done + 1, whole.n_iter_ + 1)]


def test_a_fit_may_be_killed_again_and_again(X, whole, tmp_path):
    for sweep in (2, 5, 9, 10):
        with pytest.raises(KilledError, match="killed"):
            fit(X, Kill(sweep), checkpoint=tmp_path)
    assert_same(fit(X, checkpoint=tmp_path), whole)


def test_a_finished_fit_sweeps_no_more(X, whole, tmp_path):
    fit(X, checkpoint=tmp_path)
    again = Kill(1)
    assert_same(fit(X, again, checkpoint=tmp_path), whole)
    assert again.seen == []


def test_a_fit_that_stopped_at_max_iter_goes_on_when_that_is_raised(X, whole, tmp_path):
    with pytest.warns(UserWarning, match="did not converge in max_iter=6"):
        fit(X, max_iter=6, checkpoint=tmp_path)
    later = Kill()
    assert_same(fit(X, later, checkpoint=tmp_path), whole)
    assert later.seen[0] == ("fit", 5), "the last whole cycle of four sweeps is where it goes on"


def test_killed_while_the_pairs_are_written(X, whole, tmp_path, monkeypatch):
    def kill(self: PairStore) -> None:
        raise KilledError("killed")

    monkeypatch.setattr(PairStore, "finish", kill)
    with pytest.raises(KilledError, match="killed"):
        fit(X, checkpoint=tmp_path)
    monkeypatch.undo()
    assert_same(fit(X, checkpoint=tmp_path), whole)


@pytest.mark.parametrize("stage", ["constraints 0.05", "constraints 0.5"])
def test_every_stage_of_a_constrained_fit_is_kept(X, data, stage, tmp_path):
    links = random_links(data[1], 60, np.random.default_rng(0))
    whole = fit(X, links=links)
    with pytest.raises(KilledError, match="killed"):
        fit(X, Kill(5, stage), links, checkpoint=tmp_path)
    later = Kill()
    assert_same(fit(X, later, links, checkpoint=tmp_path), whole)
    assert later.seen[0] == (stage, 5)


def test_the_second_step_of_select_is_kept(X, tmp_path):
    whole = fit(X, focal_sets="select")
    with pytest.raises(KilledError, match="killed"):
        fit(X, Kill(1, "pairs"), focal_sets="select", checkpoint=tmp_path)
    later = Kill()
    assert_same(fit(X, later, focal_sets="select", checkpoint=tmp_path), whole)
    assert {stage for stage, _ in later.seen} == {"pairs"}


def test_restarts_are_kept_one_by_one(X, tmp_path):
    whole = fit(X, n_init=3)
    with pytest.raises(KilledError, match="killed"):
        fit(X, Kill(2, "fit 2"), n_init=3, checkpoint=tmp_path)
    later = Kill()
    assert_same(fit(X, later, n_init=3, checkpoint=tmp_path), whole)
    assert {stage for stage, _ in later.seen} == {"fit 2", "fit 3"}


def test_a_pair_list_is_resumed_too(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    i, j = np.triu_indices(40, 1)
    rows = np.column_stack([i, j, np.linalg.norm(X[i] - X[j], axis=1)])
    whole = fit(rows, metric="pairs")
    with pytest.raises(KilledError, match="killed"):
        fit(rows, Kill(6), metric="pairs", checkpoint=tmp_path)
    later = Kill()
    assert_same(fit(rows, later, metric="pairs", checkpoint=tmp_path), whole)
    assert later.seen[0] == ("fit", 5)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"random_state": 4}, "holds other pairs: .*seed .* instead of .*Remove it, or sample to"),
        ({"n_dissimilarities": 20}, "holds other pairs: k 30 instead of 20"),
        ({"metric": "cityblock"}, "holds other pairs: metric 'euclidean' instead of 'cityblock'"),
        ({"d0": 2.5}, "is the checkpoint of another fit: d0 .* instead of 2.5. Remove it, or keep"),
        ({"focal_sets": "full"}, "is the checkpoint of another fit: another focal sets"),
        ({"init": "landmarks"}, "another fit: init 'random' instead of 'landmarks'"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(X, change, says, tmp_path):
    fit(X, checkpoint=tmp_path)
    with pytest.raises(StoreError, match=says):
        fit(X, checkpoint=tmp_path, **change)


def test_a_checkpoint_of_other_data_is_refused(X, tmp_path):
    fit(X, checkpoint=tmp_path)
    other = X.copy()
    other[0, 0] += 1
    with pytest.raises(StoreError, match="holds other pairs: another source"):
        fit(other, checkpoint=tmp_path)

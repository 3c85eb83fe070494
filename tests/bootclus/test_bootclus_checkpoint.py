"""A fit that was stopped goes on: replicates and masses are kept, and the bits are the same."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from bootclus.bootclus_cases import three_gaussians

from evdist import Bootclus
from evdist.bootclus import replicates as replicates_module
from evdist.stores.encoding import StoreError

FAST = {"n_bootstrap": 24, "covariance_models": "EII", "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return three_gaussians(90)[0]


@pytest.fixture(scope="module")
def whole(X) -> Bootclus:
    return Bootclus(3, **FAST).fit(X)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch) -> None:
    monkeypatch.setattr(replicates_module, "BATCH", 8 * 90)


class KilledError(RuntimeError):
    """Stands for whatever ends a process."""


def stop_at(stage: str, when: int):
    def listen(news) -> None:
        if news.stage == stage and news.sweep >= when:
            raise KilledError("killed")

    return listen


@pytest.mark.parametrize(("stage", "when"), [("bootstrap", 16), ("fit", 6)])
def test_a_stopped_fit_goes_on_with_the_same_bits(X, whole, tmp_path, stage, when):
    options = {**FAST, "checkpoint": tmp_path / "folder", "checkpoint_every": 4}
    with pytest.raises(KilledError, match="killed"):
        Bootclus(3, **options, callbacks=[stop_at(stage, when)]).fit(X)
    news = []
    model = Bootclus(3, **options, callbacks=[news.append]).fit(X)
    np.testing.assert_array_equal(model.credal_partition_.mass, whole.credal_partition_.mass)
    assert model.history_ == whole.history_
    made = [n.sweep for n in news if n.stage == "bootstrap"]
    assert made == ([16, 24] if stage == "bootstrap" else [24])
    if stage == "fit":
        assert min(n.sweep for n in news if n.stage == "fit") > 4


def test_half_written_replicates_are_made_again(X, whole, tmp_path):
    options = {**FAST, "checkpoint": tmp_path / "folder"}
    Bootclus(3, **options).fit(X)
    batches = sorted((tmp_path / "folder").glob("replicates-*.zarr"))
    assert len(batches) == 3
    shutil.rmtree(batches[1] / "means")
    for checkpoint in (tmp_path / "folder").glob("checkpoint*"):
        shutil.rmtree(checkpoint)
    model = Bootclus(3, **options).fit(X)
    np.testing.assert_array_equal(model.credal_partition_.mass, whole.credal_partition_.mass)


def test_a_folder_of_another_fit_is_refused(X, tmp_path):
    options = {**FAST, "checkpoint": tmp_path / "folder"}
    Bootclus(3, **options).fit(X)
    with pytest.raises(StoreError, match="replicates of other data, another mixture"):
        Bootclus(3, **{**options, "random_state": 1}).fit(X)
    with pytest.raises(StoreError, match="confidence"):
        Bootclus(3, **options, confidence=0.5).fit(X)


def test_more_replicates_take_those_that_are_there(X, tmp_path):
    options = {**FAST, "checkpoint": tmp_path / "folder"}
    Bootclus(3, **options).fit(X)
    for checkpoint in (tmp_path / "folder").glob("checkpoint*"):
        shutil.rmtree(checkpoint)
    news = []
    more = {**FAST, "n_bootstrap": 32}
    model = Bootclus(
        3, **{**more, "checkpoint": tmp_path / "folder"}, callbacks=[news.append]
    ).fit(X)  # fmt: skip
    assert [n.sweep for n in news if n.stage == "bootstrap"] == [24, 32]
    fresh = Bootclus(3, **more).fit(X)
    np.testing.assert_array_equal(model.credal_partition_.mass, fresh.credal_partition_.mass)

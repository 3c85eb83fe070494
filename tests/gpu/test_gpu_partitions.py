"""Partitions on a device: each view lies there while it is updated, and no more than that.

The device is torch on the CPU here; the same code runs on GPUs.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.data.sources import AttributeSource
from evdist.evclus.partitions import door as door_module
from evdist.evclus.partitions import sizes as sizes_module
from evdist.evclus.partitions.device import view_on
from evdist.evclus.partitions.estimator import in_partitions
from evdist.evclus.partitions.graph import View, draw_partition_graph
from evdist.evclus.rows import device as device_module
from evdist.evclus.rows.memory import Room
from evdist.kernels.shuffle import Shuffle

pytestmark = pytest.mark.usefixtures("on_torch")

CPU = torch.device("cpu")
N = 1403


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y, *_ = make_blobs(N, 3, centers=3, cluster_std=1.5, random_state=6)
    return X.astype(np.float32), y


def model(**options) -> EVCLUS:
    known = {"d0": "q0.5", "n_dissimilarities": 20, "random_state": 1, "partitions": 8}
    return EVCLUS(
        **{
            "metric": "euclidean",
            "n_clusters": 3,
            **known,
            "device": "cuda",
            "tol": 1e-3,
            **options,
        }
    )


# ---------------------------------------------------------------------- one view
def view_of(n: int = 203, partitions: int = 8, partition: int = 3) -> View:
    return View(draw_partition_graph(Shuffle.of(n, partitions), 10, 0), partition)


def test_partners_on_the_device_are_those_of_the_host():
    view = view_of()
    listed, degree = view.pairs(0, view.own)
    graph, _ = view_on(CPU, view, _source(view), 1.0, list(view.plan.pieces))
    at, there = graph.colours[0].positions(torch.arange(view.own))
    for row in range(view.own):
        assert sorted(at[there[:, row], row].tolist()) == sorted(listed[row, : degree[row]])


def test_dissimilarities_on_the_device_are_those_of_the_pairs():
    view = view_of()
    source = _source(view)
    graph, kept = view_on(CPU, view, source, 2.0, list(view.plan.pieces))
    ((_, delta),) = kept.parts(0)
    at, there = graph.colours[0].positions(torch.arange(view.own))
    D = source.distances(np.arange(view.own, dtype=np.uint32), at.T.numpy().astype(np.uint32))
    expected = -np.expm1(np.log(0.05) * (D / 2.0) ** 2)
    np.testing.assert_allclose(delta.T[there.T], expected[there.T.numpy()], rtol=1e-5)


def _source(view: View) -> AttributeSource:
    X = np.random.default_rng(0).normal(size=(view.n, 4)).astype(np.float32)
    return AttributeSource.of(X, "euclidean", 1)


# ---------------------------------------------------------------------- a fit
def test_it_finds_what_threads_find(data):
    X, y = data
    there, threads = model().fit(X), model(device="cpu").fit(X)
    assert adjusted_rand_score(y, there.labels_) > 0.9
    assert there.objective_ == pytest.approx(threads.objective_, rel=0.02)
    assert (np.diff(there.history_) <= 0).all()


@pytest.mark.filterwarnings("ignore:EVCLUS did not converge")
def test_a_fit_goes_on_where_it_was(data, tmp_path):
    options = {"init": "random", "d0": 8.0, "tol": 0.0, "checkpoint_every": 4}
    whole = model(max_iter=8, **options).fit(data[0])
    for sweeps in (5, 8):
        again = model(max_iter=sweeps, checkpoint=tmp_path / "fit", **options).fit(data[0])
    assert again.credal_partition_ == whole.credal_partition_


@pytest.mark.process
def test_two_workers_give_the_bits_of_one_process(two_workers, data):
    # The start is made by a worker, where the numbers of landmarks are the usual ones.
    options = {"init": "random", "d0": 8.0}
    there = model(**options).fit(data[0], client=two_workers)
    assert there.credal_partition_ == model(**options).fit(data[0]).credal_partition_


# ---------------------------------------------------------------------- when, and when not
def test_objects_are_in_partitions_if_the_device_has_no_room_for_all(data, monkeypatch):
    monkeypatch.setattr(door_module, "PARTITION_ROWS", 100)
    seen: list[str] = []

    def stages(room: int) -> str:
        seen.clear()
        monkeypatch.setattr(device_module, "room_on", lambda rows: Room(room, 10**12, 1))
        model(partitions="auto", callbacks=[lambda news: seen.append(news.stage)]).fit(data[0])
        return ", ".join(seen)

    monkeypatch.setattr(sizes_module.Sizes, "view_rows", 500)  # of partitions of 100 rows
    assert "partitions of" in stages(200_000)
    assert "partitions of" not in stages(1_000_000)


def test_many_clusters_are_lists_of_which_the_device_holds_more(data, monkeypatch):
    monkeypatch.setattr(door_module, "PARTITION_ROWS", 100)
    # Enough for lists of clusters, too little for a number for each of the 100.
    monkeypatch.setattr(device_module, "room_on", lambda rows: Room(1_500_000, 10**12, 1))
    assert not in_partitions(model(partitions="auto", n_clusters=100), data[0], None)


def test_a_view_that_does_not_fit_is_refused_before_a_row_is_read(data):
    with pytest.raises(MemoryError, match="on the GPU"):
        model(memory_limit=1000).fit(data[0])

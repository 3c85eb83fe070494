"""Near partners in partitions: symmetric pairs of near groups, exact descent, the same bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition
from evdist.data.sources import AttributeSource
from evdist.evclus.grouping import Grouping
from evdist.evclus.groups import find_groups
from evdist.evclus.partitions import owner as owner_module
from evdist.evclus.partitions import sites as sites_module
from evdist.evclus.partitions.graph import View, draw_near_pairs, draw_partition_graph
from evdist.evclus.partitions.near import Sorted
from evdist.kernels.shuffle import Shuffle

C = 30


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(3001, 4, centers=C, cluster_std=0.8, random_state=2)
    return X.astype(np.float32), y


def model(**options) -> EVCLUS:
    known = {"random_state": 1, "partitions": 6, "n_dissimilarities": 40, "n_jobs": 1, "tol": 1e-3}
    return EVCLUS(**{"metric": "euclidean", "n_clusters": C, **known, **options})


@pytest.fixture(scope="module")
def fitted(data) -> EVCLUS:
    return model().fit(data[0])


def same(a: EVCLUS, b: EVCLUS) -> bool:
    return a.credal_partition_ == b.credal_partition_ and a.history_ == b.history_


# ---------------------------------------------------------------------- pairs
def views(n: int, parts: int, k: int, groups: int) -> tuple[list[View], list[np.ndarray]]:
    shuffle = Shuffle.of(n, parts)
    rng = np.random.default_rng(0)
    # Groups of very unequal size, some of them empty in some partitions.
    labels = [np.minimum(rng.geometric(0.4, shuffle.size(b)) - 1, groups - 1) for b in range(parts)]
    near = draw_near_pairs(shuffle, k, 0.5, groups, 0)
    graph = draw_partition_graph(shuffle, max(k - near.k, 0), 0)
    sorted_rows = [Sorted.of(mine, groups) for mine in labels]
    return [View(graph, b, near, sorted_rows.__getitem__) for b in range(parts)], labels


def pairs_of(all_views: list[View]) -> Counter:
    """How often each ordered pair of positions is kept."""
    bounds = all_views[0].graph.bounds
    found: Counter = Counter()
    for view in all_views:
        partner, degree = view.pairs(0, view.own)
        place = np.concatenate(
            [np.arange(*bounds[q : q + 2]) for q in (view.partition, *view.partners)]
        )
        for row in range(view.own):
            mine = int(bounds[view.partition]) + row
            found.update((mine, int(place[p])) for p in partner[row, : degree[row]])
    return found


@pytest.mark.parametrize(
    ("n", "parts", "k", "groups"),
    [(203, 2, 10, 5), (203, 4, 9, 3), (500, 6, 12, 7), (1000, 12, 20, 1), (120, 8, 2, 4)],
)
def test_near_pairs_are_symmetric_and_of_two_colours(n, parts, k, groups):
    all_views, labels = views(n, parts, k, groups)
    found = pairs_of(all_views)
    assert all(found[j, i] == count for (i, j), count in found.items())
    part = np.repeat(np.arange(parts), np.diff(all_views[0].graph.bounds))
    assert all((part[i] - part[j]) % 2 for i, j in found)
    near = all_views[0].near
    sizes = np.array([np.bincount(mine, minlength=groups) for mine in labels])
    assert sum(found.values()) == all_views[0].graph.entries + near.entries(sizes)


def test_half_of_the_near_partners_are_of_the_own_group():
    n, parts, k, groups = 40_000, 8, 64, 20
    shuffle = Shuffle.of(n, parts)
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, groups, shuffle.size(b)) for b in range(parts)]
    near = draw_near_pairs(shuffle, k, 0.5, groups, 0)
    graph = draw_partition_graph(shuffle, k - near.k, 0)
    view = View(graph, 3, near, lambda b: Sorted.of(labels[b], groups))
    partner, degree = view.pairs(0, view.own)
    label = np.concatenate([labels[q] for q in (3, *view.partners)])
    there = np.arange(k) < degree[:, None]
    step = (label[partner] - label[: view.own, None] + groups // 2) % groups - groups // 2
    own, beside = ((abs(step) == far)[there].mean() for far in (0, 1))
    assert own == pytest.approx(0.25 + 0.5 / groups, abs=0.02)
    assert beside == pytest.approx(0.25 + 0.5 * 2 / groups, abs=0.02)
    assert degree.mean() > 0.96 * k


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_a_grouping_tells_the_groups_of_its_sample_again(data, metric):
    source = AttributeSource.of(data[0], metric, 1)
    grouping, groups = Grouping.find(source, C, 0)
    assert np.array_equal(groups.labels, find_groups(source, C, 0).labels)
    assert np.array_equal(grouping.labels(source.table), groups.labels)


# ---------------------------------------------------------------------- fits
def test_partitions_are_as_good_as_one_place(fitted, data):
    whole = model(partitions="never").fit(data[0])
    scores = [adjusted_rand_score(data[1], np.asarray(m.labels_)) for m in (fitted, whole)]
    assert scores[0] > scores[1] - 0.005
    assert np.all(np.diff(fitted.history_) <= 0)
    assert fitted.d0_ == pytest.approx(whole.d0_, rel=0.05)


def test_the_objective_is_that_of_the_masses(fitted):
    delta, kappa = fitted.shepard_pairs()
    assert np.mean((kappa - delta) ** 2) == pytest.approx(fitted.objective_, rel=0.1)


def test_dense_rows_have_near_partners_too(data):
    X, y = make_blobs(2000, 2, centers=14, cluster_std=0.4, random_state=3)
    there = model(n_clusters=14, partitions=4).fit(X)
    assert adjusted_rand_score(y, np.asarray(there.labels_)) > 0.85
    assert np.all(np.diff(there.history_) <= 0)


def test_little_memory_and_threads_change_no_bit(fitted, data, monkeypatch):
    assert same(model(n_jobs=2).fit(data[0]), fitted)
    monkeypatch.setattr(owner_module, "_FEWEST_ROWS", owner_module.PIECE_ROWS // 16)
    monkeypatch.setattr(owner_module, "PIECE_ROWS", owner_module.PIECE_ROWS // 16)
    monkeypatch.setattr(sites_module.PartitionSite, "room", 1)
    monkeypatch.setattr(sites_module.PartitionSite, "check", lambda self, *what: None)
    assert same(model().fit(data[0]), fitted)


def test_a_fit_that_was_stopped_goes_on_with_the_same_bits(fitted, data, tmp_path):
    def stop(progress):
        if progress.stage == "fit" and progress.sweep == 6:
            raise InterruptedError("stopped")

    options = {"checkpoint": tmp_path, "checkpoint_every": 4}
    with pytest.raises(InterruptedError, match="stopped"):
        model(callbacks=[stop], **options).fit(data[0])
    assert same(model(**options).fit(data[0]), fitted)


def test_a_fit_killed_while_objects_are_placed_begins_again(fitted, data, tmp_path):
    def stop(progress):
        if progress.stage == "place" and progress.sweep == 3:
            raise InterruptedError("stopped")

    with pytest.raises(InterruptedError, match="stopped"):
        model(callbacks=[stop], checkpoint=tmp_path).fit(data[0])
    assert same(model(checkpoint=tmp_path).fit(data[0]), fitted)


def test_a_model_predicts_saves_and_loads(fitted, data, tmp_path):
    X, y = data
    assert adjusted_rand_score(y[:500], fitted.predict(X[:500])) > 0.9
    fitted.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    assert again.credal_partition_ == fitted.credal_partition_
    assert np.array_equal(again.predict_mass(X[:50]), fitted.predict_mass(X[:50]))
    CredalPartition.load(tmp_path / "model" / "masses.zarr").validate()


@pytest.mark.process
def test_two_workers_give_the_bits_of_one_process(two_workers, fitted, data):
    assert same(model().fit(data[0], client=two_workers), fitted)

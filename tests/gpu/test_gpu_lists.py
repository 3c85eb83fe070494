"""Lists of clusters: the CUDA source of lists.cu, run on the CPU, against the rows of threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.list_cases import CPU, copied, random_lists, stress, swept
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus import sites
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows import device, list_state, place_lists
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.list_state import labelled_rows
from evdist.evclus.rows.lists import MAX_NEAR_SUMS, list_kernels_on
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import SourcePairs, near_layout
from evdist.kernels.sparse_rows import decode, labelled
from evdist.partition.sparse import SparseMasses

CASES = {
    "30 clusters": {"c": 30},
    "uniform pairs": {"c": 30, "near": False},
    "weights": {"c": 40, "weighted": True},
    "long lists": {"c": 60, "spread": 1.0},
    "sums in global memory": {"c": MAX_NEAR_SUMS + 1, "spread": 0.0005},
    "an odd number": {"c": 30, "n": 307, "k": 37},
    "clusters that promise something": {"c": 30, "promise": 3e-3},
    "promise and weights": {"c": 30, "promise": 3e-3, "weighted": True},
}


@pytest.mark.parametrize("case", CASES)
def test_rows_change_as_on_threads(list_source, case):
    problem, start, state = random_lists(**CASES[case])
    list_source.settle(state.mass)
    with NumbaRows().executor(problem, start) as executor:
        here = executor._state
        np.testing.assert_array_equal(state.mass.numpy(), here.result())
        assert stress(list_source, state) == pytest.approx(executor.objective()[0], rel=1e-12)
        first = slice(0, state.graph.bounds[1])
        here.update([0], 0.0)
        list_source.update(state, 0)
        found, expected = state.change[0, first].numpy(), here.gains()[first]
        # A program that needs more columns than it has room for ends there: threads have one less.
        # With thousands of clusters at random that is one row in four.
        crowded = case == "sums in global memory"
        same = np.isclose(found, expected, rtol=1e-4, atol=1e-7).mean()
        assert same > (0.7 if crowded else 0.9)
        np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-7)
        # Paths part where minimisers are not unique.
        for skip in (0.0, 1e-9, 1e-9, 0.0):
            assert swept(list_source, state, skip) <= 0
            executor.sweep(skip)
        assert stress(list_source, state) < (1.2 if crowded else 1.05) * executor.objective()[0]


@pytest.mark.parametrize("case", CASES)
def test_the_objective_falls_by_what_the_rows_say(list_source, case):
    _, _, state = random_lists(**CASES[case], seed=3)
    list_source.settle(state.mass)
    before = stress(list_source, state)
    for skip in (0.0, 1e-6, 1e-6, 0.0, 1e-6, 0.0):
        change = swept(list_source, state, skip)
        after = stress(list_source, state)
        assert after <= before
        assert after - before == pytest.approx(change, rel=1e-5, abs=1e-9)
        before = after
    mass = decode(state.mass.numpy(), state.n_clusters).astype(float)
    assert (mass.sum(axis=1) == 1).all()
    assert (mass * (1 << 24) == np.rint(mass * (1 << 24))).all()


def test_chosen_places_and_parts_of_the_pairs(list_source):
    _, _, state = random_lists(c=30)
    list_source.settle(state.mass)
    whole = copied(state)
    lo, hi = state.graph.bounds[1:3]
    list_source.update(whole, 1)
    places = torch.arange(hi - lo, dtype=torch.int32)
    for part in places.split(29):
        some = copied(state)
        some.mass, some.change = state.mass, state.change
        some.first = lo + int(part[0])
        some.delta = state.delta[:, :, some.first : some.first + len(part)].contiguous()
        list_source.update(some, 1, part)
    assert torch.equal(state.mass.view(torch.int32), whole.mass.view(torch.int32))
    assert torch.equal(state.change, whole.change)


def test_a_start_has_the_bits_of_the_cpu():
    labels = np.array([3, 0, 31, 17, 31000])
    there = labelled_rows(labels, 0.75, CPU).numpy()
    np.testing.assert_array_equal(there.view(np.uint32), labelled(labels, 0.75).view(np.uint32))


def test_near_partners_are_those_of_the_cpu():
    graph = near_layout(np.random.default_rng(0).integers(30, size=1003), 24, 0.5, 0).graph
    partner, degree = graph.partners(0, 1003)
    there = Graph.of(graph, CPU)
    for colour, partners in enumerate(there.colours):
        lo, hi = there.bounds[colour : colour + 2]
        at, exists = partners.positions(torch.arange(hi - lo))
        for t in range(hi - lo):
            mine = at[:, t][exists[:, t]].tolist()
            assert mine == partner[lo + t, : degree[lo + t]].tolist()


@pytest.fixture
def on_lists(list_source, monkeypatch):
    """EVCLUS with device="cuda" runs the CUDA source of lists.cu, and torch, on the CPU."""
    monkeypatch.setattr(sites, "find_device", lambda name, client=None: "cuda")
    monkeypatch.setattr(device, "device_here", lambda name, number=0: CPU)
    for module in (list_state, place_lists):
        monkeypatch.setattr(module, "list_kernels_on", lambda device: list_source)


def test_a_fit_from_groups_to_prediction(on_lists):
    X, y = _blobs()
    model = EVCLUS(26, metric="euclidean", n_dissimilarities=24, device="cuda", random_state=0).fit(
        X
    )
    assert isinstance(model.credal_partition_.mass, SparseMasses)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert (np.diff(model.history_) <= 0).all()
    delta, kappa = model.shepard_pairs()
    assert np.mean((delta - kappa) ** 2) == pytest.approx(model.objective_, rel=1e-5)
    mass = model.predict_mass(X[:60])
    assert (mass.argmax(axis=1) - 1 == model.labels_[:60]).mean() > 0.9
    np.testing.assert_array_equal(model.predict_mass(X[7:8]), mass[7:8])


def test_a_fit_goes_on_from_given_lists(on_lists):
    X, _ = _blobs()
    options = {"n_dissimilarities": 24, "device": "cuda", "random_state": 0}
    first = EVCLUS(26, metric="euclidean", **options).fit(X)
    again = EVCLUS(26, metric="euclidean", init=first.credal_partition_, **options).fit(X)
    assert isinstance(again.credal_partition_.mass, SparseMasses)
    assert again.history_[0] == pytest.approx(first.objective_, rel=1e-6)
    assert again.objective_ <= first.objective_
    assert (again.labels_ == first.labels_).mean() > 0.99


def test_a_fit_in_partitions_has_near_partners(on_lists):
    X, y = _blobs()
    options = {"n_dissimilarities": 24, "random_state": 0, "partitions": 4}
    there, threads = (
        EVCLUS(26, metric="euclidean", **options, device=name).fit(X) for name in ("cuda", "cpu")
    )
    assert adjusted_rand_score(y, np.asarray(there.labels_)) > 0.9
    assert (np.diff(there.history_) <= 0).all()
    # The same groups and pairs; rows are solved in another order of adding.
    assert there.d0_ == threads.d0_
    assert there.objective_ == pytest.approx(threads.objective_, rel=0.02)
    assert there.history_[0] == pytest.approx(threads.history_[0], rel=1e-5)


def _blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(26, size=700)
    return ((4 * rng.normal(size=(26, 5)))[y] + rng.normal(size=(700, 5))).astype(np.float32), y


def test_processes_that_share_the_pieces_have_the_bits_of_one(on_lists):
    rng = np.random.default_rng(1)
    source = AttributeSource.of(rng.normal(size=(9000, 3)), "euclidean")
    rows = device.DeviceRows("cuda")
    groups = rows.groups(source, 30, 0, 1)
    layout = near_layout(groups.labels, 8, 0.5, 0)
    pairs = SourcePairs(source, layout.graph, layout.order, 1.0)
    problem = Problem(FocalSets.simple(30), pairs, Plan.of(layout.bounds), sparse=True)
    start = rows.on_host(rows.in_positions(rows.labelled(groups), layout.order))
    pieces = range(len(problem.plan.pieces))
    assert len(pieces) == 8  # two of each colour
    alone = rows.state(problem, start)
    states = [rows.state(problem, start, list(pieces)[mine::2]) for mine in range(2)]
    for skip in (0.0, 1e-6):
        alone.update(range(4), skip)
        for step in range(4):
            for state in states:
                state.update([step], skip)
            (first, mass, _), (second, other, _) = (state.moved(step) for state in states)
            states[0].patch(second, other)
            states[1].patch(first, mass)
    for state in states:
        found = state.result().view(torch.int32)
        assert torch.equal(found, alone.result().view(torch.int32))
    both = {**states[0].losses(), **states[1].losses()}
    assert both == alone.losses()
    assert {**states[0].changes(), **states[1].changes()} == alone.changes()
    assert (alone.masses(5, 9).view(np.int32) == alone.result()[5:9].numpy().view(np.int32)).all()


def test_no_lists_without_a_gpu():
    with pytest.raises(ValueError, match="run on a GPU or on threads, not on cpu"):
        list_kernels_on(CPU)

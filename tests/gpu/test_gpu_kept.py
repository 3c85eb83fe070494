"""Dissimilarities on the device, in the host's memory or made again: the same bits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from gpu.gpu_cases import CPU, blobs
from hypothesis import given
from hypothesis import strategies as st

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.engine import plan as plan_module
from evdist.engine.plan import Plan
from evdist.evclus.problem import Problem
from evdist.evclus.rows import memory
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.device_pairs import by_colour, keep_pieces
from evdist.evclus.rows.device_state import DeviceState
from evdist.evclus.rows.kept import in_groups
from evdist.evclus.rows.memory import Choice, Need, Room, choose, thread_memory
from evdist.evclus.rows.parts import piece_sums
from evdist.evclus.sampling import SourcePairs
from evdist.kernels.graph import PairGraph

PLACES = ("device", "host", "recomputed")


@pytest.fixture
def small_pieces(monkeypatch):
    """Several pieces and tiles in every colour."""
    monkeypatch.setattr(plan_module, "PIECE_ROWS", 20)


@pytest.fixture
def wide(monkeypatch):
    """No rows count as narrow: the host's memory comes before computing again."""
    monkeypatch.setattr(memory, "NARROW", 0)


class TestCutting:
    @given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 60))
    def test_tiles_are_runs_of_whole_pieces(self, sizes, columns):
        ends = np.cumsum([0, *sizes]).tolist()
        pieces = list(pairwise(ends))
        groups = in_groups(pieces, columns)
        assert [groups[0][0], *(b for _, b in groups)] == sorted({ends[0], *(b for _, b in groups)})
        assert all(b - a <= columns or (a, b) in pieces for a, b in groups)
        assert groups[-1][1] == ends[-1]

    @given(st.lists(st.integers(1, 70), min_size=1, max_size=9), st.integers(0, 99))
    def test_the_sum_of_a_piece_does_not_see_the_others(self, sizes, seed):
        ends = np.cumsum([0, *sizes])
        pieces = torch.as_tensor(np.column_stack([ends[:-1], ends[1:]]))
        values = torch.as_tensor(np.random.default_rng(seed).normal(size=ends[-1])).float()
        sums = piece_sums(values, pieces)
        torch.testing.assert_close(
            sums, torch.stack([values[a:b].double().sum() for a, b in pieces])
        )
        for i in range(len(sizes)):
            alone = piece_sums(values[ends[i] :], pieces[i : i + 1] - ends[i])
            assert float(alone) == float(sums[i])


def state(where: str, pieces=None, *, n=203, k=12, columns=45) -> DeviceState:
    """Part of a problem on blobs, its dissimilarities kept somewhere."""
    rng = np.random.default_rng(0)
    source, graph = AttributeSource.of(blobs(n, 3)[0], "euclidean"), PairGraph.draw(n, k, rng)
    pairs = SourcePairs(source, graph, rng.permutation(n).astype(np.uint32), 6.0)
    sets = FocalSets.pairs(3)
    weight = rng.uniform(0.5, 2, n).astype(np.float32)
    problem = Problem(sets, pairs, Plan.of(graph.bounds), weight)
    mass = rng.dirichlet(np.ones(len(sets)), n).astype(np.float32)
    there = Graph.of(graph, CPU)
    own = range(len(problem.plan.pieces)) if pieces is None else pieces
    mine = by_colour(problem.plan, there.bounds, own)
    kept = keep_pieces(pairs, there, mine, CPU, Choice(where, columns))
    return DeviceState(problem, mass, own, there, kept)


def swept(states: list[DeviceState], sweeps: int = 3) -> tuple[np.ndarray, list]:
    """Masses, changes and objectives of states that tell each other what has moved."""
    steps, told = len(states[0]._steps), []
    for _ in range(sweeps):
        for step in range(steps):
            for s in states:
                s.update([step], 0.0)
            found = [s.moved(step) for s in states]
            for s in states:
                for other, (rows, mass, _) in zip(states, found, strict=True):
                    if other is not s:
                        s.patch(rows, mass)
        told.append(sorted(item for s in states for item in s.changes().items()))
        told.append(sorted(item for s in states for item in s.losses().items()))
    masses = [s.masses(0, 203) for s in states]
    assert all((m == masses[0]).all() for m in masses)
    return masses[0], told


@pytest.mark.usefixtures("small_pieces")
class TestStates:
    def test_where_they_are_kept_changes_no_bit(self):
        mass, told = swept([state("device")])
        assert told[-1][0] != told[1][0]  # something happened
        for where in PLACES[1:]:
            again, same = swept([state(where)])
            np.testing.assert_array_equal(again, mass)
            assert same == told

    @pytest.mark.parametrize("count", [2, 3])
    def test_nor_does_the_number_of_processes(self, count):
        mass, told = swept([state("device")])
        # Of every colour a run of pieces, as a cluster hands them out.
        every = Plan.of(PairGraph.draw(203, 12, np.random.default_rng(0)).bounds)
        parts: list[list[int]] = [[] for _ in range(count)]
        for step in every.steps:
            for part, run in zip(parts, np.array_split([q for q, _ in step], count), strict=True):
                part += run.tolist()
        again, same = swept([state(w, p) for w, p in zip(PLACES, parts, strict=False)])
        np.testing.assert_array_equal(again, mass)
        assert same == told

    @pytest.mark.parametrize("lo_hi", [(0, 203), (31, 34), (64, 96), (150, 203), (7, 8)])
    def test_masses_of_some_rows(self, lo_hi):
        one = state("device")
        np.testing.assert_array_equal(one.masses(*lo_hi), one.masses(0, 203)[slice(*lo_hi)])


class TestChoosing:
    need = Need(n=10**7, k=100, f=12, d=10, rows=10**7)

    def test_on_the_device_where_they_fit(self):
        assert choose(self.need, Room(10**11, 10**11, 132)) == Choice("device")

    def test_narrow_rows_are_compared_again_wide_ones_sent(self):
        room = Room(35 * 10**8, 10**11, 132)
        assert choose(self.need, room).where == "recomputed"
        wide = Need(10**6, 1000, 12, 784, 10**6)
        room = Room(385 * 10**7, 10**11, 132)
        assert choose(wide, room) == Choice("host", memory.TILE_BYTES // 4000)
        # ... unless the host cannot hold them either.
        assert choose(wide, Room(385 * 10**7, 10**8, 132)).where == "recomputed"

    def test_what_has_no_attributes_is_sent(self):
        need = Need(10**7, 100, 12, 0, 10**7)
        assert choose(need, Room(35 * 10**8, 10**11, 132)).where == "host"
        with pytest.raises(
            MemoryError, match=r"kept pairs do not fit on the GPU needs .* are free on its host"
        ):
            choose(need, Room(35 * 10**8, 10**9, 132))

    def test_tiles_get_smaller_with_the_room(self):
        some = [choose(self.need, Room(free, 10**11, 132)).columns
                for free in (22 * 10**8, 24 * 10**8, 35 * 10**8)]  # fmt: skip
        assert some == sorted(some)
        assert some[0] < some[-1] == memory.TILE_BYTES // 400

    def test_refused_where_masses_do_not_fit(self):
        with pytest.raises(
            MemoryError, match=r"needs about 2\.1 GB .* 1\.0 GB are free on the GPU"
        ):
            choose(self.need, Room(10**9, 10**11, 132))

    @pytest.mark.parametrize(
        ("f", "gigabytes"),
        [(17, 0.50), (23, 0.98), (30, 1.68), (57, 5.92), (68, 8.40), (80, 11.59), (122, 26.24)],
    )
    def test_threads_get_what_was_measured_on_132_processors(self, f, gigabytes):
        assert gigabytes * 1e9 <= thread_memory(f, 132) <= 1.1 * gigabytes * 1e9 + 4e8

    def test_registers_and_torch_need_no_memory_of_threads(self):
        assert [thread_memory(f, 132) for f in (2, 16, 129)] == [0, 0, 0]
        assert thread_memory(16, 132, views=2) > 0

    def test_links_need_room_too(self):
        assert Need(10, 5, 4, 2, 10, linked=True).masses - Need(10, 5, 4, 2, 10).masses == 160

    def test_the_least_of_several(self):
        rooms = [Room(5, 70, 100), Room(7, 60, 132)]
        assert Room.least(rooms) == Room(5, 60, 132)
        assert Room.on(CPU, 1000).device == 1000


@pytest.mark.usefixtures("small_pieces", "on_torch")
class TestEstimator:
    def fit(self, X, **parameters):
        seen: list[str] = []
        masses = np.random.default_rng(1).dirichlet(np.ones(5), len(X))
        model = EVCLUS(
            3, n_dissimilarities=20, d0=8.0, init=masses, tol=2e-2, random_state=0, device="cuda",
            callbacks=[lambda news: seen.append(news.stage)],
            **{"metric": "euclidean", **parameters},
        )  # fmt: skip
        links = {"must_link": [[0, 1], [2, 3], [4, 9]], "cannot_link": [[5, 6], [0, 7], [1, 8]]}
        return model.fit(X, **links), seen

    def test_chooses_by_itself_and_says_so(self, wide):
        X, _ = blobs(301, 3)
        whole, seen = self.fit(X)
        assert not any("dissimilarities" in stage for stage in seen)
        sent, seen = self.fit(X, memory_limit=48_000)
        assert seen[0] == "dissimilarities in host memory"
        np.testing.assert_array_equal(sent.credal_partition_.mass, whole.credal_partition_.mass)
        assert sent.history_ == whole.history_

    def test_within_a_limit_the_same_bits(self, monkeypatch):
        X, _ = blobs(301, 3)
        whole, _ = self.fit(X, focal_sets="simple")
        again, seen = self.fit(X, memory_limit=48_000)
        assert seen[0] == "dissimilarities computed in every sweep"
        np.testing.assert_array_equal(again.credal_partition_.mass, whole.credal_partition_.mass)
        assert again.history_ == whole.history_
        with pytest.raises(MemoryError, match="Use fewer focal sets or attributes"):
            self.fit(X, memory_limit=20_000)

    def test_a_square_matrix_is_sent(self):
        D = np.linalg.norm((X := blobs(301, 3)[0])[:, None] - X, axis=2)
        whole, _ = self.fit(D, metric="precomputed")
        sent, seen = self.fit(D, metric="precomputed", memory_limit=44_000)
        assert seen[0] == "dissimilarities in host memory"
        np.testing.assert_array_equal(sent.credal_partition_.mass, whole.credal_partition_.mass)

    def test_a_limit_is_a_number_of_bytes(self):
        with pytest.raises(ValueError, match="memory_limit must be an integer"):
            self.fit(blobs(301, 3)[0], memory_limit=0.5)

    def test_pairs_that_are_never_read_are_not_written(self, tmp_path):
        EVCLUS(
            3, metric="euclidean", device="cuda", checkpoint=tmp_path, random_state=0
        ).sample_pairs(blobs(90, 3)[0])
        assert not list(tmp_path.iterdir())

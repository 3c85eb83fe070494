"""The memory of a fit is known, and refused with the cure, before the work starts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evdist import EVCLUS, FocalSets
from evdist.engine import memory as engine_memory
from evdist.evclus import memory
from evdist.evclus.memory import projected
from evdist.kernels.shuffle import PARTITION_ROWS


@pytest.fixture
def little(monkeypatch) -> None:
    """A machine with 140 kB."""
    there = SimpleNamespace(available=140_000)
    monkeypatch.setattr(engine_memory.psutil, "virtual_memory", lambda: there)


X = np.random.default_rng(0).normal(size=(1000, 2))


def test_a_fit_that_cannot_fit_is_refused_before_it_starts(little):
    started: list[object] = []
    with pytest.raises(
        MemoryError,
        match=r"needs about \d\.\d MB \(.* for 1,000 x 100 kept pairs, .* for masses, "
        r".* for data\), but \d\.\d MB "
        r"are free here. Lower n_dissimilarities, use fewer focal sets, or use more workers",
    ):
        EVCLUS(3, metric="euclidean", d0=1.0, random_state=0, callbacks=[started.append]).fit(X)
    assert not started


def test_a_limit_counts_where_one_partition_would_hold_all_objects():
    with pytest.raises(
        MemoryError, match=r"0\.\d MB are free within memory_limit\..*, or raise memory_limit\.$"
    ):
        EVCLUS(3, metric="euclidean", d0=1.0, memory_limit=100_000).fit(X)


def test_what_keeps_a_fit_from_partitions_is_told():
    many = np.zeros((PARTITION_ROWS + 1, 1), np.float32)
    model = EVCLUS(3, metric="euclidean", d0=1.0, memory_limit=100_000)
    with pytest.raises(
        MemoryError, match=r"Partitions need less memory, but do not take links, weights"
    ):
        model.fit(many, sample_weight=np.ones(len(many)))


def test_the_cure_helps(little):
    model = EVCLUS(3, metric="euclidean", d0=1.0, n_dissimilarities=3, random_state=0, tol=0.1)
    assert len(model.fit(X[:500]).labels_) == 500


@pytest.mark.parametrize("family", ["pairs", "select", FocalSets.full(10)])
def test_focal_sets_count(monkeypatch, family):
    there = projected(1000, 5, 12).total
    monkeypatch.setattr(
        engine_memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=there)
    )
    with pytest.raises(MemoryError, match="fewer focal sets"):
        EVCLUS(10, metric="euclidean", focal_sets=family, d0=1.0, n_dissimilarities=5).fit(X)


def test_a_list_of_pairs_counts_its_pairs(monkeypatch):
    i, j = np.triu_indices(200, 1)
    rows = np.column_stack([i, j, np.ones(len(i))])
    monkeypatch.setattr(
        engine_memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=200 * 199 * 8)
    )
    with pytest.raises(MemoryError, match="200 x 199 kept pairs"):
        EVCLUS(2, metric="pairs").fit(rows)


def test_workers_share_the_pairs_but_not_the_masses():
    one, four = projected(10**6, 100, 12), projected(10**6, 100, 12, workers=4)
    assert one.pairs == 4 * 10**8 == 4 * four.pairs
    assert one.masses == four.masses
    assert one.total == one.pairs + one.masses


def test_near_partners_and_those_of_few_rows_are_kept():
    assert projected(10**6, 100, 12, near=True).pairs == 8 * 10**8
    assert projected(10**4, 100, 12).pairs == 8 * 10**6


def test_a_million_objects_fit_in_three_gigabytes():
    assert projected(10**6, 100, 12).total < 3e9


def test_a_full_disk_is_known_before_a_checkpoint_is_begun(monkeypatch, tmp_path):
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda where: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"checkpoint folder needs about .* MB, but 0\.0 MB are free"):
        EVCLUS(3, metric="euclidean", d0=1.0, random_state=0, checkpoint=tmp_path / "job").fit(X)
    assert not (tmp_path / "job").exists()

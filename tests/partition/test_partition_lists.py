"""Rows that are lists of clusters say what dense rows say, to the last bit, and are never made
dense for it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from evdist import CredalPartition, FocalSets, plot
from evdist.kernels.sparse_rows import SLOTS, WORDS, cluster_slots, encode, ids_of, labelled
from evdist.partition import decisions, sparse_views, views
from evdist.partition import rows as blocks
from evdist.partition.open_sets import OpenTable
from evdist.partition.sparse import SparseMasses
from evdist.partition.summary import tally
from evdist.report.facts import collect

LEVELS = (*decisions.LEVELS, 0.5, 0.95)


def random_masses(c: int, n: int, seed: int) -> np.ndarray:
    """Float32 masses of every kind: few and many clusters, ties, tiny ones, all on one set."""
    rng = np.random.default_rng(seed)
    m = np.zeros((n, c + 2))
    for row in m:
        named = 1 + rng.choice(c, rng.integers(min(SLOTS, c) + 1), replace=False)
        kind = rng.integers(9)
        if kind == 0:
            row[rng.choice([0, c + 1])] = 1.0
        elif kind == 1:  # ties
            row[[0, c + 1, *named]] = rng.choice([0.0, 1.0, 2.0], 2 + len(named))
        elif kind == 2:  # what is lost when Omega is added
            row[named], row[c + 1] = 1e-30 * rng.random(len(named)), rng.choice([0.0, 1.0])
        elif kind == 8:  # neighbours on the grid of float32, at the edge of what Omega leaves
            row[named] = 2.0 ** -rng.integers(22, 32) * (
                1 + rng.integers(3, size=len(named)) / 2**23
            )
            row[c + 1] = 1.0
        elif kind == 3:  # odds at a level
            row[named[:2]] = rng.choice([0.3, 0.7, 0.05, 0.95], len(named[:2]))
        else:
            row[named] = rng.random(len(named)) ** rng.choice([1, 8])
            row[0], row[c + 1] = rng.random(2) * rng.choice([0.0, 0.1, 3.0], 2)
        if row.sum() < 0.01:
            row[0] = 1.0
    return (m / m.sum(axis=1, keepdims=True)).astype(np.float32)


def both(c: int, n: int, seed: int) -> tuple[CredalPartition, CredalPartition]:
    m = random_masses(c, n, seed)
    focal = FocalSets.simple(c)
    lists = SparseMasses.of(m)
    # Tiny masses may round away: the masses are those that the lists have.
    return CredalPartition(lists, focal), CredalPartition(lists.dense(), focal)


def same(a: object, b: object) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


many = pytest.mark.parametrize(
    "view",
    [
        lambda p: p.labels(),
        lambda p: p.labels("belief"),
        lambda p: p.labels("pignistic"),
        lambda p: p.labels(outlier=-1),
        lambda p: p.assigned(),
        lambda p: p.outliers(),
        lambda p: p.margin(),
        lambda p: p.object_nonspecificity(),
        lambda p: p._view(decisions.second_doubt, None),
    ],
)


@many
@settings(max_examples=25, deadline=None)
@given(c=st.integers(20, 70), n=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_views_of_lists_have_the_bits_of_dense_ones(view, c, n, seed):
    lists, dense = both(c, n, seed)
    same(view(lists), view(dense))


@settings(max_examples=40, deadline=None)
@given(
    c=st.integers(20, 70),
    n=st.integers(0, 60),
    seed=st.integers(0, 10**6),
    rule=st.sampled_from(views.APPROXIMATION_RULES),
)
def test_tallies_and_counts_have_the_bits_of_dense_ones(c, n, seed, rule):
    lists, dense = both(c, n, seed)
    focal = FocalSets.simple(c)
    T, m = lists.mass.rows, dense.mass.astype(np.float64)
    same(sparse_views.counts(T, focal, LEVELS), decisions.counts(m, focal, LEVELS))
    one, two = sparse_views.tally(T, focal, rule, LEVELS), tally(m, focal, rule, LEVELS)
    for name in ("objects", "mass", "labels", "lower", "upper", "decided"):
        same(getattr(one, name), getattr(two, name))


@settings(max_examples=40, deadline=None)
@given(
    c=st.integers(20, 70),
    n=st.integers(0, 60),
    seed=st.integers(0, 10**6),
    level=st.sampled_from([None, 0.5, 0.7, 0.95, 1.0]),
)
def test_decisions_of_lists_are_those_of_dense_rows(c, n, seed, level):
    lists, dense = both(c, n, seed)
    one, two = lists.decide(level), dense.decide(level)
    assert one.level == two.level
    same(one.codes, two.codes)
    same(one.margin, two.margin)
    assert one.open_names() == two.open_names()
    still, known = one.open, two.open
    assert isinstance(still, OpenTable)
    assert (still.shape, still.dtype, still.ndim, len(still)) == (known.shape, bool, 2, n)
    same(still, known)
    same(still.sum(axis=1), known.sum(axis=1))
    same(still.sum(axis=0), known.sum(axis=0))
    assert still.sum() == known.sum()
    same(still.any(axis=1), known.any(axis=1))
    for k in (0, c // 2, -1):
        same(still[:, k], known[:, k])
    some = np.random.default_rng(seed).integers(n, size=9) if n else np.zeros(0, int)
    for rows in (slice(3, 20, 2), slice(None, None, -1), some, np.arange(n) % 3 == 1):
        same(still[rows], known[rows])
        same(still[rows, 2:5], known[rows, 2:5])
        same(still[rows].sum(axis=1), known[rows].sum(axis=1))
        same(still[rows, 1], known[rows, 1])
    for row in some[:3].tolist():
        same(still[row], known[row])
        same(still[row, 4], known[row, 4])
    same(still & known, known)
    same(~still, ~known)


def test_open_clusters_are_few_bytes():
    lists, _ = both(60, 400, 1)
    still = lists.decide(0.9).open
    assert still.nbytes < 400 * 60
    assert "np.asarray" in repr(still)
    with pytest.raises(IndexError, match="out of range"):
        still[400]
    with pytest.raises(IndexError, match="out of range"):
        still[:, 60]


def test_all_blocks_of_a_summary_have_the_bits_of_dense_ones(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 16)
    monkeypatch.setattr(blocks, "MIN_ROWS", 16)
    lists, dense = both(40, 500, 3)
    for rule in views.APPROXIMATION_RULES:
        one, two = lists.summary(rule), dense.summary(rule)
        assert str(one) == str(two)
        assert one.nonspecificity == two.nonspecificity == lists.nonspecificity()
        same(one.mean_mass, two.mean_mass)
        same(one.sizes.expected, two.sizes.expected)
    assert lists.level() == dense.level()


def test_every_list_version_stands_for_a_view():
    focal = FocalSets.simple(30)
    assert sparse_views.has_list_views(focal)
    assert not sparse_views.has_list_views(FocalSets.simple(SLOTS - 1))
    assert not sparse_views.has_list_views(FocalSets.simple(30, omega=False))
    assert not sparse_views.has_list_views(FocalSets.pairs(30))


def test_renamed_clusters_of_lists(monkeypatch):
    lists, dense = both(25, 80, 5)
    order = np.random.default_rng(0).permutation(25).tolist()
    one, two = lists.relabel(order), dense.relabel(order)
    same(one.labels(), two.labels())
    assert str(one.summary()) == str(two.summary())
    same(one.decide(0.8).open, two.decide(0.8).open)
    few_lists, few_dense = both(7, 80, 5)  # fewer clusters than slots
    same(few_lists.labels(), few_dense.labels())
    same(few_lists.margin(), few_dense.margin())


@settings(max_examples=25, deadline=None)
@given(c=st.integers(20, 60), seed=st.integers(0, 10**6), partition=st.booleans())
def test_a_level_from_known_objects(c, seed, partition):
    lists, dense = both(c, 50, seed)
    known = both(c, 50, seed + 1)[1] if partition else dense.labels() % 7
    one, two = (p.calibrate(known, risk=0.3) for p in (lists, dense))
    assert str(one) == str(two)


def test_no_look_makes_lists_dense(monkeypatch, tmp_path):
    lists, _ = both(300, 200, 2)

    def refuse(*_: object) -> None:
        raise AssertionError("made dense")

    monkeypatch.setattr("evdist.partition.derived.decode", refuse)
    monkeypatch.setattr(SparseMasses, "dense", refuse)
    lists.summary()
    lists.labels("pignistic", outlier=-1)
    lists.margin()
    lists.nonspecificity()
    lists.object_nonspecificity()
    lists.calibrate(np.arange(200) % 3)
    lists.validate()
    decided = lists.decide()
    decided.open_names()
    decided.open[:, 7].sum()
    lists.to_frame()
    lists.save(tmp_path / "p.csv")
    for column in (0, 7, -1):
        lists.mass[:, column].sum()
    plt.close(plot.nonspecificity(lists).figure)
    plt.close(plot.sizes(lists).figure)
    assert lists[5:9] == lists[[5, 6, 7, 8]]


@pytest.mark.parametrize("c", [30, 300])
def test_columns_of_lists_are_those_of_dense_rows(c):
    lists, dense = both(c, 2000, 3)
    for columns in (0, 1, 17, c, c + 1, -1, [5, 0], slice(3, 6), slice(0, 0)):
        same(lists.mass[:, columns], dense.mass[:, columns])
    same(lists.mass[4:9, 2], dense.mass[4:9, 2])
    same(lists.mass[[], 2], dense.mass[[], 2])
    same(lists.mass[3, [1, 2]], dense.mass[3, [1, 2]])
    for wrong in (c + 2, -c - 3):
        with pytest.raises(IndexError, match=f"size {c + 2}"):
            lists.mass[:, wrong]


@pytest.mark.parametrize("c", [30, 300])
def test_doubt_by_cluster_of_lists_is_that_of_dense_rows(c):
    drawn = []
    for partition in both(c, 500, 4):
        ax = plot.nonspecificity(partition)
        drawn.append([bar.get_width() for bars in ax.containers for bar in bars])
        plt.close(ax.figure)
    np.testing.assert_allclose(*drawn, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.parametrize("c", [30, 300])
def test_tables_of_lists_are_those_of_dense_rows(c, n, tmp_path):
    lists, dense = (p.with_ids([f"o{i}" for i in range(n)]) for p in both(c, n, 4))
    one, two = lists.to_frame(level=0.8), dense.to_frame(level=0.8)
    assert_frame_equal(one, two, rtol=2e-7)  # probability: the sum over clusters is added otherwise
    assert_frame_equal(one.drop(columns="probability"), two.drop(columns="probability"), rtol=0)
    assert_frame_equal(
        lists.to_frame(masses=True, level=0.8), dense.to_frame(masses=True, level=0.8)
    )
    lists.save(tmp_path / "p.parquet")
    lists.save(tmp_path / "p.csv")
    stored = pd.read_parquet(tmp_path / "p.parquet")
    assert stored["open"].tolist() == lists.decide().open_names()
    assert len(pd.read_csv(tmp_path / "p.csv")) == n


def test_an_object_of_lists_is_explained():
    lists, dense = both(30, 200, 8)
    X = np.random.default_rng(0).normal(size=(200, 3))
    for row in (0, 17, 150):
        assert str(lists.explain(row, X)) == str(dense.explain(row, X))
        assert str(lists.explain(row, X, level=0.7)) == str(dense.explain(row, X, level=0.7))


def test_hulls_of_decisions_are_those_of_dense_rows():
    lists, dense = both(24, 300, 9)
    X = np.random.default_rng(0).normal(size=(300, 2))
    drawn = []
    for p in (lists, dense):
        ax = plot.approximations(p, X, rule="decision", level=0.8)
        drawn.append({line.get_gid(): line.get_xydata().tolist() for line in ax.get_lines()})
        plt.close(ax.figure)
    assert drawn[0] == drawn[1]


# ---------------------------------------------------------------------- what is refused
def test_a_list_that_is_damaged_is_refused_by_row():
    T = labelled(np.arange(30), 0.75)
    focal = FocalSets.simple(30)

    def told(row: int, change) -> str:
        bad = T.copy()
        change(bad[row : row + 1])
        for look in (lambda p: p.summary(), lambda p: p.labels(), lambda p: p.validate(),
                     lambda p: p.plausibility):  # fmt: skip
            with pytest.raises(ValueError, match=f"Row {row} of mass") as error:
                look(CredalPartition(SparseMasses(bad, 30), focal))
        return str(error.value)

    def put(column: int, value: float):
        return lambda T: T.__setitem__((0, column), value)

    def number(slot: int, value: int):
        def change(T: np.ndarray) -> None:
            ids_of(T)[0, 4 + slot] = value
            T[0, 8], T[0, 8 + slot] = 0.375, 0.375

        return change

    assert "sums to 1.25; each row must sum to 1" in told(7, put(1, 0.5))
    assert "-0.75 on {4} (column 5); masses are at least 0" in told(4, put(8, -0.75))
    assert "nan on Ω (column 31); replace or drop" in told(4, put(1, np.nan))
    assert "names cluster 30; there are 0..29" in told(11, number(1, 30))
    assert "names cluster 2 after cluster 11; the clusters of a list ascend" in told(
        11, number(1, 2)
    )
    assert "names cluster 11 after cluster 11" in told(11, number(1, 11))


def test_free_slots_may_have_any_number():
    T = labelled(np.array([3, 4]), 0.5)
    ids_of(T)[0, 6:10] = 0
    p = CredalPartition(SparseMasses(T, 20), FocalSets.simple(20))
    assert p.labels().tolist() == [3, 4]
    assert p == CredalPartition(SparseMasses(labelled(np.array([3, 4]), 0.5), 20), p.focal_sets)


def test_masses_become_lists():
    m = random_masses(25, 50, 0)
    lists = SparseMasses.of(m)
    assert lists.rows.shape == (50, WORDS)
    assert np.array_equal(lists.dense(), m)
    assert SparseMasses.of(lists) is lists
    assert SparseMasses.of(m[:0]).shape == (0, 27)
    assert np.array_equal(cluster_slots(encode(m)), cluster_slots(lists.rows))


def test_a_report_says_the_same_of_lists():
    lists, dense = both(40, 300, 6)
    one, two = collect(lists), collect(dense)
    assert (one.clusters, one.focal, one.uncertain) == (two.clusters, two.focal, two.uncertain)

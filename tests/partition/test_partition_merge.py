"""Clusters that are hard to tell apart become one."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import ECM, CredalPartition, FocalSets, plot
from evdist.partition.merge import ClusterTree, tree_of


@pytest.fixture(scope="module")
def partition() -> CredalPartition:
    """Four clusters of 50; ten objects each lie between 0 and 2, and two between 1 and 3."""
    focal = FocalSets.pairs(4)
    mass = np.zeros((200, len(focal)))
    mass[np.arange(200), focal.singletons[np.arange(200) // 50]] = 1.0
    for row in range(10):
        mass[row] = 0.0
        mass[row, focal.index([0, 2])] = 1.0
    for row in (50, 51):
        mass[row] = 0.0
        mass[row, focal.index([1, 3])] = 1.0
    mass[199] = 0.0
    mass[199, 0] = 1.0
    return CredalPartition(mass, focal, ids=[f"c{i}" for i in range(200)])


def test_those_that_most_objects_lie_between_become_one_first(partition):
    tree = partition.tree()
    assert [(m.left, m.right) for m in tree] == [((0,), (2,)), ((1,), (3,)), ((0, 2), (1, 3))]
    assert tree.merges[-1].confusion == 0.0
    assert tree.groups(2) == ((0, 2), (1, 3))
    assert tree.groups(4) == ((0,), (1,), (2,), (3,))
    assert tree.to_frame().loc[3, "right"] == "{2}"
    assert "{0} and {2}" in str(tree)


def test_mass_between_two_clusters_is_mass_on_what_they_have_become(partition):
    merged = partition.merge(2)
    assert merged.n_clusters == 2
    assert merged.focal_sets.sets == ((), (0,), (1,), (0, 1))
    np.testing.assert_array_equal(merged.mass[0], [0, 1, 0, 0])
    np.testing.assert_array_equal(merged.mass[199], [1, 0, 0, 0])
    np.testing.assert_array_equal(merged.labels()[:199], (np.arange(199) // 50) % 2)
    assert list(merged.ids) == list(partition.ids)
    assert merged.summary().n_sure == 199


def test_the_clusters_that_become_one_can_be_named(partition):
    merged = partition.merge([[3, 0]])
    assert merged.n_clusters == 3
    np.testing.assert_array_equal(merged.labels()[[20, 70, 120, 170]], [0, 1, 2, 0])
    with pytest.raises(ValueError, match=r"clusters 0..3 may stand in one group.*\[0, 1\], \[1\]"):
        partition.merge([[0, 1], [1]])
    with pytest.raises(ValueError, match="between 1 and 4, got 5"):
        partition.merge(5)


def test_plausibility_of_a_merged_cluster_is_that_of_the_set(partition):
    merged = partition.merge([[0, 1]])
    pl = partition.mass @ partition.focal_sets.matrix[:, [0, 1]].any(axis=1)
    np.testing.assert_allclose(merged.plausibility[:, 0], pl)


def test_of_probabilities_the_tree_of_a_merged_partition_is_the_rest_of_the_tree():
    p = CredalPartition.from_fuzzy(np.random.default_rng(0).dirichlet(np.full(5, 0.3), 200))
    got = [merge.confusion for merge in p.merge(3).tree()]
    np.testing.assert_allclose(got, [merge.confusion for merge in p.tree()][2:], rtol=1e-6)


def test_more_clusters_than_wanted_then_merged_find_the_classes():
    X, y = make_blobs(600, centers=3, random_state=0, cluster_std=0.6)
    many = ECM(6, random_state=0).fit(X)
    assert adjusted_rand_score(y, many.labels_) < 0.7
    assert adjusted_rand_score(y, many.credal_partition_.merge(3).labels()) > 0.95


def test_lazy_masses_merge_lazily_to_the_same(partition):
    lazy = CredalPartition(da.from_array(partition.mass, chunks=(30, -1)), partition.focal_sets)
    assert lazy.tree().groups(2) == partition.tree().groups(2)
    assert lazy.merge(2) == partition.merge(2)


def test_one_cluster_has_an_empty_tree():
    one = CredalPartition.from_labels([0, 0, 0])
    assert len(one.tree()) == 0
    assert one.merge(1) == one
    with pytest.raises(ValueError, match="at least two clusters"):
        plot.tree(one)


def test_the_figure_draws_a_branch_for_each_step(partition):
    ax = plot.tree(partition)
    assert len(ax.lines) == 3
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "2", "1", "3"]
    assert len(plot.tree(partition.tree()).lines) == 3
    plot.to_svg(ax)


def test_sizes_do_not_decide():
    S = np.array([[0, 5, 1.0], [5, 0, 2], [1, 2, 0]])
    tree = tree_of(S, np.array([100.0, 100.0, 4.0]))
    assert isinstance(tree, ClusterTree)
    assert (tree.merges[0].left, tree.merges[0].right) == ((1,), (2,))
    assert tree.linkage[:, 2].tolist() == sorted(tree.linkage[:, 2].tolist())

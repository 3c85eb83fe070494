"""Figures of many clusters: the largest by name, the rest together."""

from __future__ import annotations

import numpy as np
import pytest

from evdist import CredalPartition
from evdist.plot import (
    approximations,
    distance_matrix,
    mass_profile,
    nonspecificity,
    relation_matrix,
    sizes,
)


@pytest.fixture
def partition() -> CredalPartition:
    """Two hundred clusters; cluster k has k + 1 objects."""
    return CredalPartition.from_labels(np.repeat(np.arange(200), np.arange(1, 201)))


def test_the_largest_clusters_have_bars_and_the_rest_one(partition: CredalPartition) -> None:
    ax = sizes(partition)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [*(f"cluster {k}" for k in range(199, 175, -1)), "176 smaller ones", "outliers"]
    lengths = [bar.get_width() for bar in ax.patches if bar.get_gid() == "sure"] or [
        bar.get_width() for bar in ax.containers[0]
    ]
    assert lengths[0] == 200
    assert lengths[-1] == 0, "a bar of all others would be 78 times as long as the longest"
    assert "15,576 (no bar)" in [text.get_text() for text in ax.texts]
    assert sum(lengths) + 15_576 == partition.n_objects


def test_a_bar_of_the_rest_that_leaves_room_for_the_others_is_drawn() -> None:
    ax = sizes(CredalPartition.from_labels(np.repeat(np.arange(30), [100] * 24 + [10] * 6)))
    assert ax.containers[0][-1].get_width() == 60


def test_nonspecificity_of_the_rest_is_their_mean(partition: CredalPartition) -> None:
    ax = nonspecificity(partition)
    assert len(ax.containers[0]) == 26
    assert ax.get_yticklabels()[-2].get_text() == "176 smaller ones"


def test_the_largest_clusters_have_hulls_and_the_objects_of_the_others_are_dots(
    partition: CredalPartition,
) -> None:
    X = np.random.default_rng(0).normal(size=(partition.n_objects, 2))
    ax = approximations(partition, X, max_points=30_000)
    hulls = {line.get_gid() for line in ax.lines}
    assert hulls == {f"{kind}-{k}" for kind in ("lower", "upper") for k in range(188, 200)}
    dots = {found.get_gid(): len(found.get_offsets()) for found in ax.collections}
    assert dots == {**{f"sure-{k}": k + 1 for k in range(188, 200)}, "others": 188 * 189 / 2}
    texts = [text.get_text() for text in ax.texts]
    assert texts[:-1] == [str(k) for k in range(199, 187, -1)]
    assert texts[-1].startswith("the 12 largest of 200 clusters, others grey")


def test_hulls_of_few_clusters_are_as_they_were() -> None:
    partition = CredalPartition.from_labels(np.repeat(np.arange(25), 4))
    ax = approximations(partition, np.random.default_rng(0).normal(size=(100, 2)))
    assert len({line.get_gid() for line in ax.lines}) == 50
    assert "others" not in {found.get_gid() for found in ax.collections}


def test_the_matrix_shows_pairs_of_the_largest_clusters(partition: CredalPartition) -> None:
    ax = relation_matrix(partition, max_objects=240)
    assert ax.get_title() == "Relation of pairs, 24 largest of 200"
    assert ax.images[0].get_array().shape == (240, 240)
    assert {int(text.get_text()) for text in ax.get_xticklabels()} <= set(range(176, 200))
    assert len(ax.lines) == 2 * 23, "lines between 24 clusters, each way"
    X = np.zeros((partition.n_objects, 1))
    ax = distance_matrix(X, partition.labels())
    assert ax.get_title() == "Dissimilarities, 24 largest of 200"


def test_long_numbers_of_objects_do_not_lie_on_each_other() -> None:
    partition = CredalPartition.from_labels(np.arange(200_000) % 3)
    ax = mass_profile(partition, objects=np.arange(199_980, 200_000))
    assert sum(len(text.get_text()) for text in ax.get_xticklabels()) <= 32


@pytest.mark.parametrize(("c", "named"), [(20, range(20)), (25, range(0, 25, 2))])
def test_clusters_beside_a_matrix_are_named_as_far_as_there_is_room(c: int, named: range) -> None:
    ax = relation_matrix(CredalPartition.from_labels(np.repeat(np.arange(c), 2)), labels=None)
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [text.get_text() for text in labels] == [str(k) for k in named]

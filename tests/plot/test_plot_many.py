"""Figures of many clusters: the largest by name, the rest together."""

from __future__ import annotations

import numpy as np
import pytest

from evdist import CredalPartition
from evdist.plot import nonspecificity, relation_matrix, sizes


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
    assert lengths[-1] == 176 * 177 / 2
    assert sum(lengths) == partition.n_objects


def test_nonspecificity_of_the_rest_is_their_mean(partition: CredalPartition) -> None:
    ax = nonspecificity(partition)
    assert len(ax.containers[0]) == 26
    assert ax.get_yticklabels()[-2].get_text() == "176 smaller ones"


@pytest.mark.parametrize(("c", "named"), [(20, range(20)), (50, range(0, 50, 3))])
def test_clusters_beside_a_matrix_are_named_as_far_as_there_is_room(c: int, named: range) -> None:
    ax = relation_matrix(CredalPartition.from_labels(np.repeat(np.arange(c), 2)), labels=None)
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert [text.get_text() for text in labels] == [str(k) for k in named]

"""An object is no member of a cluster that it was never compared with and is far from."""

from __future__ import annotations

import numpy as np
import pytest

from evdist import EVCLUS, FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.confirm import Members
from evdist.kernels.sparse_rows import decode, encode

C = 3
#: Three clusters of five objects at 0, 10 and 20, then the objects in question.
PLACES = [0, 10, 20]


def judged(x: float, group: int, cluster: int, *, sparse: bool, mass: float = 0.75) -> np.ndarray:
    """Masses (empty set, clusters, Omega) of an object at x that came from a group to a cluster."""
    X = np.append(np.repeat(PLACES, 5) + np.tile(np.linspace(-1, 1, 5), C), x)
    source = AttributeSource.of(X[:, None], "euclidean")
    began = np.append(np.repeat(np.arange(C), 5), group).astype(np.int32)
    M = np.zeros((16, C + 2), np.float32)
    M[np.arange(15), 1 + began[:15]] = 1.0
    M[15, 1 + cluster], M[15, -1] = mass, 1.0 - mass
    rows = encode(M) if sparse else M
    members = Members.of(rows[:15], began[:15], FocalSets.simple(C), sparse)
    members.confirm(rows, began, 4.0, source.distances)
    found = decode(rows, C) if sparse else rows
    np.testing.assert_array_equal(found[:15], M[:15])
    return found[15]


both = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "lists"])


@both
def test_an_object_far_from_all_goes_to_the_empty_set(sparse):
    found = judged(-20.0, group=0, cluster=2, sparse=sparse)
    assert found.tolist() == [0.75, 0, 0, 0, 0.25]


@both
def test_one_that_is_near_its_group_goes_back(sparse):
    # Its nearest member is 2 = d0 / 2 away: phi = 1 - .05^(1/4).
    found = judged(3.0, group=0, cluster=2, sparse=sparse)
    assert found[1] == pytest.approx(0.75 * 0.05**0.25, abs=1e-6)
    assert found[0] + found[1] == 0.75 and found[3] == 0


@both
@pytest.mark.parametrize(
    ("x", "group", "cluster", "mass"),
    [
        (13.0, 0, 1, 0.75),  # near the cluster it came to
        (15.0, 2, 1, 0.75),  # as far from its group as from the cluster
        (-20.0, 0, 0, 0.75),  # it stayed
        (-20.0, 0, 2, 0.25),  # little mass there
    ],
)
def test_others_keep_their_masses(x, group, cluster, mass, sparse):
    found = judged(x, group, cluster, sparse=sparse, mass=mass)
    assert found[1 + cluster] == mass and found[-1] == 1 - mass


@pytest.mark.parametrize(("c", "partitions"), [(24, "never"), (50, "never"), (50, 4)])
def test_outliers_are_no_sure_members_of_clusters_far_from_them(c, partitions):
    rng = np.random.default_rng(0)
    y = rng.integers(0, c, 9000)
    X = 5 * rng.normal(size=(c, 8))[y] + rng.normal(size=(9000, 8))
    moved = rng.random(9000) < 0.03
    X[moved] = rng.uniform(X.min(axis=0), X.max(axis=0), (moved.sum(), 8))
    model = EVCLUS(c, metric="euclidean", partitions=partitions, random_state=0).fit(X)
    sure = np.asarray(model.credal_partition_.decide().sure)
    labels = model.labels_
    wrong = 0
    for k in range(c):
        members = X[(labels == k) & sure & ~moved]
        asked = X[(labels == k) & sure & moved]
        away = np.linalg.norm(asked[:, None] - members[None], axis=2)
        wrong += int((away.min(axis=1) > model.d0_).sum()) if away.size else 0
    assert wrong <= 2  # of about 280 that were moved; 5 to 12 without the comparison

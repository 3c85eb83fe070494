"""Far from the core of a cluster is not an outlier: mass on the empty set against neighbours."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from evdist import EVCLUS
from evdist.data.sources import AttributeSource
from evdist.evclus.reach import NEIGHBOUR, OutlierWarning, Reach
from evdist.kernels.grid import GRID


@pytest.fixture(scope="module")
def two_moons():
    """Bent clusters, which a small d0 follows, and three objects far from all others."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 300)
    low = np.arange(300) < 150
    x = np.where(low, np.cos(angle), 1 - np.cos(angle))
    y = np.where(low, np.sin(angle), 0.5 - np.sin(angle))
    X = np.column_stack([x, y]) + rng.normal(scale=0.05, size=(300, 2))
    return np.vstack([X, [[4.0, 4.0], [-4.0, 4.0], [4.0, -4.0]]])


def reach_of(X) -> Reach:
    found = Reach.of(AttributeSource.of(X, "euclidean"), len(X), 2)
    assert found is not None
    return found


class TestReach:
    def test_is_a_box_plot_of_the_distance_to_the_fifth_neighbour(self, two_moons):
        D = np.linalg.norm(two_moons[:, None] - two_moons, axis=2)
        far = np.log(np.sort(D, axis=1)[:, NEIGHBOUR])
        low, high = np.quantile(far, [0.25, 0.75])
        reach = reach_of(two_moons)
        assert reach.usual == pytest.approx(high, abs=1e-5)
        assert reach.fence == pytest.approx(high + 1.5 * (high - low), abs=1e-5)

    def test_what_is_kept_rises_from_the_usual_distance_to_the_fence(self, two_moons):
        reach = reach_of(two_moons)
        middle = (reach.usual + reach.fence) / 2
        far = np.exp([reach.usual - 1, reach.usual, middle, reach.fence, reach.fence + 1])
        np.testing.assert_allclose(reach.kept(far), [0, 0, 0.5, 1, 1], atol=1e-9)

    @pytest.mark.parametrize("X", [np.zeros((50, 2)), np.array([[0.0], [1.0], [5.0]])])
    def test_nothing_is_said_of_copies_and_of_a_few(self, X):
        assert Reach.of(AttributeSource.of(X, "euclidean"), len(X), 2) is None


class TestGivenBack:
    def test_goes_to_the_clusters_in_proportion(self):
        mass = np.array([[0.5, 0.3, 0.1, 0.1], [1.0, 0, 0, 0], [0.5, 0.5, 0, 0]], np.float32)
        reach = Reach(np.zeros(21, np.uint32), 0.0, 1.0)
        far = np.array([1.0, 1.0, np.e])
        own = np.zeros(3, bool)
        reach.give_back(mass, own, lambda rows: np.repeat(far[rows][:, None], 21, axis=1), 3)
        expected = [[0, 0.6, 0.2, 0.2], [0, 0, 0, 1], [0.5, 0.5, 0, 0]]
        np.testing.assert_allclose(mass, expected, atol=1e-6)
        assert (mass.sum(axis=1) == 1).all() and (mass * GRID % 1 == 0).all()

    def test_leaves_outliers_and_labels(self, two_moons):
        auto = EVCLUS(2, metric="euclidean", random_state=0).fit(two_moons)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutlierWarning)
            given = EVCLUS(2, metric="euclidean", d0=auto.d0_, random_state=0).fit(two_moons)
        assert given.credal_partition_.outliers().sum() > 60
        assert set(np.flatnonzero(auto.credal_partition_.outliers())) >= {300, 301, 302}
        assert auto.credal_partition_.outliers().sum() < 0.05 * 303
        np.testing.assert_array_equal(auto.labels_, given.labels_)

    def test_new_objects_are_judged_alike_also_by_a_saved_model(self, two_moons, tmp_path):
        model = EVCLUS(2, metric="euclidean", random_state=0).fit(two_moons)
        new = model.predict_partition(two_moons[::2] + 1e-3)
        assert new.outliers().sum() < 0.05 * 152
        assert model.predict_partition([[9.0, 9.0]]).outliers().all()
        model.save(tmp_path / "model")
        again = EVCLUS.load(tmp_path / "model")
        np.testing.assert_array_equal(again.predict_mass(two_moons), model.predict_mass(two_moons))

    def test_in_partitions_too(self, two_moons, tmp_path):
        X = np.vstack([two_moons] * 4) + np.random.default_rng(1).normal(scale=1e-3, size=(1212, 2))
        model = EVCLUS(
            2, metric="euclidean", random_state=0, partitions=2, checkpoint=tmp_path / "fit"
        ).fit(X)
        assert np.asarray(model.credal_partition_.outliers()).mean() < 0.05


def test_a_small_d0_of_the_users_is_told(two_moons):
    with pytest.warns(OutlierWarning, match=r"of 303 objects are outliers at d0 = 0\.\d+, though"):
        EVCLUS(2, metric="euclidean", d0="q0.05", random_state=0).fit(two_moons)

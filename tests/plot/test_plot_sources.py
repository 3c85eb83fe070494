"""The figures of the sources: profiles, tables, planes, maps, images of pairs, ellipses, BIC."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris

from evdist import ECM, CredalPartition, FocalSets, plot
from evdist.metrics import (
    consistency,
    credal_rand_index,
    nonspecificity,
    pairwise_belief,
    pairwise_plausibility,
)
from evdist.mixture import GaussianMixture

#: Slides, "Butterfly dataset": two wings, an object in the middle, an outlier.
BUTTERFLY = np.array(
    [[-5, 0], [-3.34, 1.67], [-3.34, 0], [-3.34, -1.67], [-1.67, 0], [0, 0], [1.67, 0],
     [3.34, -1.67], [3.34, 0], [3.34, 1.67], [5, 0], [10, 10]]
)  # fmt: skip


def child(ax, gid):
    return next(c for c in ax.get_children() if c.get_gid() == gid)


def hard(labels, c=3) -> CredalPartition:
    mass = np.zeros((len(labels), c + 2), np.float32)
    mass[np.arange(len(labels)), 1 + np.asarray(labels)] = 1
    return CredalPartition(mass, FocalSets.simple(c))


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def partition(iris) -> CredalPartition:
    return ECM(3, focal_sets="pairs", random_state=0).fit(iris[0]).credal_partition_


class TestMassProfile:
    def test_the_butterfly_of_the_slides(self):
        """The middle has its mass on both wings together, the outlier most on no cluster."""
        start = [[-3.0, 0.0], [3.0, 0.0]]
        model = ECM(2, focal_sets="full", delta=10, init=start).fit(BUTTERFLY)
        ax = plot.mass_profile(model.credal_partition_)
        drawn = np.array([child(ax, f"mass-{j}").get_ydata() for j in range(4)])
        np.testing.assert_array_equal(drawn.T, model.credal_partition_.mass)
        assert drawn[:, 5].argmax() == 3
        assert drawn[:, 11].argmax() == 0
        assert drawn[:, 2].argmax() == 1
        assert drawn[:, 8].argmax() == 2
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names == ["m(∅)", "m({0})", "m({1})", "m(Ω)"]
        plot.to_svg(ax)

    def test_chosen_objects_in_their_order_and_the_sets_that_count(self, partition):
        ax = plot.mass_profile(partition, objects=[140, 3, 77], max_sets=2)
        lines = [line for line in ax.lines if (line.get_gid() or "").startswith("mass-")]
        assert len(lines) == 2
        assert [text.get_text() for text in ax.get_xticklabels()] == ["140", "3", "77"]
        assert ax.get_title() == "Masses (2 of 8 focal sets)"
        j = int(lines[0].get_gid().partition("-")[2])
        np.testing.assert_array_equal(lines[0].get_ydata(), partition.mass[[140, 3, 77], j])

    def test_what_cannot_be_read_is_refused(self):
        many = hard(np.zeros(501, int))
        with pytest.raises(ValueError, match="cannot be read: pass objects"):
            plot.mass_profile(many)
        with pytest.raises(ValueError, match="objects must be 1 to 500 numbers"):
            plot.mass_profile(many, objects=[])


class TestClassTable:
    def test_counts_of_the_largest_masses(self, partition, iris):
        ax = plot.class_table(partition, iris[1], names=["se", "ve", "vi"])
        names = [text.get_text() for text in ax.get_xticklabels()]
        best = [partition.focal_sets.names[j] for j in np.asarray(partition.assigned())]
        table = pd.crosstab(iris[1], best)
        cells = iter(text.get_text() for text in ax.texts)
        for k in range(3):
            for name in names:
                cell = next(cells)
                assert (0 if cell == "·" else int(cell)) == table.loc[k, name]
        assert [text.get_text() for text in ax.get_yticklabels()] == ["se", "ve", "vi"]
        plot.to_svg(ax)

    def test_a_class_may_be_called_like_a_formula(self):
        plot.to_svg(plot.class_table(hard([0, 1]), ["$5", "$"]))

    def test_refused(self, partition):
        with pytest.raises(ValueError, match="the class of each of the 150 objects"):
            plot.class_table(partition, [0, 1])
        with pytest.raises(ValueError, match="names must be those of the 2 classes, got 1"):
            plot.class_table(hard([0, 1]), [0, 1], names=["a"])
        with pytest.raises(ValueError, match="31 classes and 1 focal sets cannot be read"):
            plot.class_table(hard([0] * 31), np.arange(31))


class TestSeveralPartitions:
    def test_consistency_against_nonspecificity_and_who_is_dominated(self, partition, iris):
        truth = iris[1]
        wrong = hard(np.random.default_rng(0).integers(0, 3, 150))
        nothing = CredalPartition(np.eye(5, dtype=np.float32)[[4] * 150], FocalSets.simple(3))
        ax = plot.consistency_plane(
            {"truth $": hard(truth), "ECM": partition, "wrong": wrong, "vacuous": nothing}, truth
        )
        for k, one in enumerate((hard(truth), partition, wrong, nothing)):
            point = child(ax, f"partition-{k}")
            assert point.get_xdata()[0] == pytest.approx(nonspecificity(one))
            assert point.get_ydata()[0] == pytest.approx(consistency(one, truth))
        # The truth, wholly consistent and specific, dominates all others.
        alphas = [child(ax, f"partition-{k}").get_alpha() for k in range(4)]
        assert alphas == [1.0, 0.4, 0.4, 0.4]
        assert len(child(ax, "front").get_xdata()) == 1
        plot.to_svg(ax)

    def test_distances_on_the_map_are_those_of_the_credal_rand_index(self, partition, iris):
        rng = np.random.default_rng(0)
        members = {"ECM": partition, "truth": iris[1], "drawn": rng.integers(0, 3, 150)}
        ax = plot.partition_map(members)
        xy = np.array([child(ax, f"partition-{k}").get_xydata()[0] for k in range(3)])
        values = list(members.values())
        expected = [
            1 - credal_rand_index(values[a], values[b]) for a, b in ((0, 1), (0, 2), (1, 2))
        ]
        np.testing.assert_allclose(pdist(xy), expected, atol=1e-3)
        assert "off by 0.000" in ax.get_title()
        plot.to_svg(ax)

    def test_too_few_are_refused(self, partition, iris):
        with pytest.raises(ValueError, match="at least three partitions, got 1"):
            plot.partition_map({"one": partition})
        with pytest.raises(ValueError, match="at least one partition, got none"):
            plot.consistency_plane({}, iris[1])


class TestPairs:
    def test_distances_sorted_by_class(self, iris):
        X, y = iris
        shuffled = np.random.default_rng(0).permutation(150)
        ax = plot.distance_matrix(X[shuffled], y[shuffled])
        order = shuffled[np.argsort(y[shuffled], kind="stable")]
        np.testing.assert_allclose(ax.images[0].get_array(), squareform(pdist(X[order])))
        given = plot.distance_matrix(squareform(pdist(X)), metric="precomputed")
        np.testing.assert_allclose(given.images[0].get_array(), squareform(pdist(X)))
        plot.to_svg(ax)

    @pytest.mark.parametrize(
        ("what", "found"), [("belief", pairwise_belief), ("plausibility", pairwise_plausibility)]
    )
    def test_relations_of_all_pairs(self, partition, what, found):
        ax = plot.relation_matrix(partition, what=what, labels=np.zeros(150))
        expected = squareform(np.asarray(found(partition)), checks=False)
        np.fill_diagonal(expected, 1)
        np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-6)
        plot.to_svg(ax)

    def test_many_objects_are_thinned_out_evenly(self):
        labels = np.repeat([0, 1, 2], 1_000)
        shown = plot.relation_matrix(hard(labels)).images[0].get_array()
        assert shown.shape == (1_000, 1_000)
        assert shown.mean() == pytest.approx(1 / 3, abs=0.01)

    def test_a_histogram_of_one_pair(self):
        estimates = np.linspace(0.2, 0.6, 500)
        ax = plot.pair_histogram(estimates, interval=(0.22, 0.58), bel_pl=(0.2, 0.61), truth=0.5)
        assert sum(patch.get_height() for patch in ax.patches) == 500
        assert child(ax, "interval-1").get_xdata()[0] == 0.58
        assert child(ax, "Bel and Pl-0").get_xdata()[0] == 0.2
        assert child(ax, "truth").get_xdata()[0] == 0.5
        plot.to_svg(ax)
        assert plot.pair_histogram(estimates).get_legend() is None

    def test_refused(self, partition, iris):
        with pytest.raises(ValueError, match=r"or \(n, n\) with metric='precomputed'"):
            plot.distance_matrix(iris[0], metric="precomputed")
        with pytest.raises(ValueError, match="labels must be one for each of the 150 objects"):
            plot.distance_matrix(iris[0], [0])
        with pytest.raises(ValueError, match='"belief" or "plausibility", got \'doubt\''):
            plot.relation_matrix(partition, what="doubt")
        with pytest.raises(ValueError, match="numbers from 0 to 1"):
            plot.pair_histogram([0.5, 1.2])


class TestMixtures:
    def test_an_ellipse_is_one_standard_deviation_wide(self):
        X = np.random.default_rng(0).normal(size=(50, 3))
        turn = np.array([[0.6, -0.8], [0.8, 0.6]])
        S = np.zeros((1, 3, 3))
        S[0, 1:, 1:], S[0, 0, 0] = turn @ np.diag([9.0, 1.0]) @ turn.T, 5.0
        ax = plot.ellipses([[0.0, 1, 2]], S, X, columns=(1, 2))
        ellipse = child(ax, "ellipse-0")
        assert (ellipse.width, ellipse.height) == (pytest.approx(6), pytest.approx(2))
        assert ellipse.angle % 180 == pytest.approx(np.degrees(np.arctan2(0.8, 0.6)))
        assert ellipse.center == (1.0, 2.0)
        plot.to_svg(ax)

    def test_bic_of_iris_is_largest_for_two_ellipsoids(self, iris):
        """002 fixes three clusters for iris; BIC alone takes VEV with two, as mclust does."""
        model = GaussianMixture([1, 2, 3], covariance_models=["EII", "VEV", "VVV"]).fit(iris[0])
        ax = plot.bic_curves(model.bics_)
        assert ax.get_title() == "Best: VEV, 2 components"
        np.testing.assert_allclose(child(ax, "bic-VEV").get_ydata(), model.bics_["VEV"])
        np.testing.assert_allclose(child(ax, "best").get_xydata(), [[2, model.bic_]])
        plot.to_svg(ax)

    def test_a_failed_fit_leaves_a_gap(self):
        table = pd.DataFrame({"EII": [-3.0, -2.0], "VVV": [-2.5, -np.inf]}, index=[1, 2])
        ax = plot.bic_curves(table)
        assert np.isnan(child(ax, "bic-VVV").get_ydata()[1])
        plot.to_svg(ax)

    def test_a_panel_for_every_pair_of_attributes(self, partition, iris):
        frame = pd.DataFrame(iris[0][:, :3], columns=["length", "width", "$"])
        figure = plot.scatter_matrix(partition, frame)
        assert isinstance(figure, Figure)
        assert len(figure.axes) == 9
        assert {text.get_text() for ax in figure.axes for text in ax.texts} == set(frame.columns)
        assert any((line.get_gid() or "") == "upper-0" for line in figure.axes[1].lines)
        plot.to_svg(figure)

    def test_refused(self, partition, iris):
        with pytest.raises(ValueError, match=r"got \(1, 2\), \(2, 2\) and \(150, 4\)"):
            plot.ellipses([[0.0, 0.0]], np.eye(2), iris[0])
        with pytest.raises(ValueError, match="2 to 6 attributes"):
            plot.scatter_matrix(partition, iris[0][:, :1])
        with pytest.raises(ValueError, match="with a finite value"):
            plot.bic_curves(pd.DataFrame({"EII": [-np.inf]}))

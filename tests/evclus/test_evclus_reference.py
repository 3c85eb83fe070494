"""EVCLUS against the papers and against values computed by R's evclust."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from evclus.evclus_reference import all_pairs, distances, link_costs, mean_square, phi, r_criterion
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, FocalSets

#: NN-EVCLUS paper, figure 1: two wings, object 6 between them, object 12 far away.
BUTTERFLY = np.array(
    [
        *[(-5, 0), (-3.34, 1.67), (-3.34, 0), (-3.34, -1.67), (-1.67, 0), (0, 0)],
        *[(1.67, 0), (3.34, -1.67), (3.34, 0), (3.34, 1.67), (5, 0), (10, 10)],
    ]
)


class TestButterfly:
    def test_it_has_two_wings_a_doubtful_object_and_an_outlier(self):
        """NN-EVCLUS paper, example 2 and table 1."""
        model = EVCLUS(
            2,
            metric="euclidean",
            focal_sets="full",
            d0="q0.9",
            tol=1e-8,
            max_iter=2000,
            random_state=0,
        )
        partition = model.fit(BUTTERFLY).credal_partition_
        assert np.flatnonzero(partition.outliers()).tolist() == [11]
        assert partition.mass[5].argmax() == partition.focal_sets.omega
        assert partition.mass[11].argmax() == 0
        labels = model.labels_
        assert len(set(labels[:5])) == len(set(labels[6:11])) == 1
        assert labels[0] != labels[10]
        lower = {frozenset(np.flatnonzero(column)) for column in partition.lower().T}
        assert all(len(wing) >= 4 and wing <= {*range(11)} - {5} for wing in lower)

    def test_it_is_no_worse_than_r_from_the_same_start(self, shared):
        reference = json.loads((shared / "reference" / "butterfly.json").read_text())
        X, r = np.array(reference["x"], float), reference["kevclus"]
        model = EVCLUS(
            2, focal_sets="full", n_dissimilarities=11, d0=r["d0_used"], init=np.array(r["m0"]),
            tol=1e-9, max_iter=2000, random_state=0,
        ).fit(X)  # fmt: skip
        pairs = all_pairs(12)
        delta = phi(distances(X, pairs), r["d0_used"])
        mass, sets = model.credal_partition_.mass, FocalSets.full(2)
        np.testing.assert_allclose(
            r_criterion(np.array(r["mass"]), sets, pairs, delta), r["crit_exact"], rtol=1e-10
        )
        assert r_criterion(mass, sets, pairs, delta) <= r["crit_exact"]
        assert model.credal_partition_.outliers().nonzero()[0].tolist() == [11]
        assert mass[5].argmax() == 3
        assert model.labels_.tolist() == [label - 1 for label in r["y.pl"]]
        np.testing.assert_allclose(mass, r["tight_epsi_1e12"]["mass"], atol=2e-3)


class TestProtein:
    @pytest.fixture
    def D(self, shared) -> np.ndarray:
        return pd.read_csv(shared / "data" / "protein_D.csv.gz").to_numpy()

    @pytest.fixture
    def y(self, shared) -> np.ndarray:
        return pd.read_csv(shared / "data" / "protein_labels.csv")["y"].to_numpy()

    @pytest.mark.parametrize("start", ["R's", "landmarks"])
    def test_the_criterion_is_no_higher_than_rs(self, shared, D, y, start):
        r = json.loads((shared / "reference" / "kevclus_protein.json").read_text())["full"]
        model = EVCLUS(
            4, metric="precomputed", n_dissimilarities=212, d0=float(D.max()),
            init=np.array(r["m0"]) if start == "R's" else "landmarks", random_state=0,
        ).fit(D)  # fmt: skip
        pairs = all_pairs(213)
        delta = phi(D[pairs[:, 0], pairs[:, 1]], D.max())
        mass = model.credal_partition_.mass
        assert r_criterion(mass, FocalSets.simple(4), pairs, delta) <= 0.0023628
        assert adjusted_rand_score(y, model.labels_) >= 0.98


class TestConstrainedIris:
    @pytest.fixture
    def iris(self, shared) -> pd.DataFrame:
        return pd.read_csv(shared / "data" / "iris.csv")

    @pytest.mark.parametrize("family", ["full", "simple"])
    def test_the_cost_is_no_higher_than_rs(self, shared, iris, family):
        reference = json.loads((shared / "reference" / "kcevclus_iris.json").read_text())
        r = reference[family]
        must, cannot = (np.array(reference[kind]) - 1 for kind in ("ML", "CL"))
        X, pairs = iris.iloc[:, :4].to_numpy(), all_pairs(150)
        d0 = float(np.quantile(distances(X, pairs), 0.9))
        xi = 0.5
        # R weighs the links with 2 xi / (nML + nCL), as we do.
        model = EVCLUS(
            3, focal_sets=family, n_dissimilarities=149, d0=d0, init=np.array(r["m0"]),
            constraint_weight=xi, random_state=0,
        ).fit(X, must_link=must, cannot_link=cannot)  # fmt: skip
        delta = phi(distances(X, pairs), d0)
        sets = model.credal_partition_.focal_sets

        def cost(mass: np.ndarray) -> float:
            links = sum(link_costs(mass, sets, must, cannot))
            return r_criterion(mass, sets, pairs, delta) + 2 * xi / 150 * links

        theirs = np.array(r["mass"])
        np.testing.assert_allclose(
            link_costs(theirs, sets, must, cannot), (r["JM"], r["JC"]), rtol=1e-10
        )
        mine = cost(model.credal_partition_.mass)
        assert mine <= r["crit_exact"] + 1e-6
        assert mine <= cost(theirs)
        np.testing.assert_allclose(mine * np.mean(delta**2), model.objective_, rtol=1e-6)
        assert adjusted_rand_score(iris["y"], model.labels_) > r["ari_pl"]


@pytest.mark.parametrize("seed", range(3))
def test_four_gaussians_never_end_in_the_poor_minimum(shared, seed):
    """R's k-EVCLUS ends at twice the stress in a quarter of its runs."""
    table = pd.read_csv(shared / "data" / "gauss4_n1000.csv.gz")
    X, y = table[["x1", "x2"]].to_numpy(), table["y"]
    model = EVCLUS(4, metric="euclidean", d0="q0.9", random_state=seed).fit(X)
    delta = phi(distances(X, all_pairs(1000)), model.d0_)
    stress = mean_square(
        model.credal_partition_.mass, FocalSets.simple(4), all_pairs(1000), delta
    ) / np.mean(delta**2)
    assert stress < 0.03
    assert adjusted_rand_score(y, model.labels_) > 0.8

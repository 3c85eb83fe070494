"""Values computed by R's evclust from the same masses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tolerances import REFERENCE

from evdist import belief as ev
from evdist.belief import FocalSets, mutual_neighbour_pairs

PARTITIONS = ["full", "pairs", "hard", "fuzzy"]
BUTTERFLY = [
    ("ecm",),
    ("ecm", "converged_epsi_1e12"),
    ("kevclus",),
    ("kevclus", "tight_epsi_1e12"),
    ("recm",),
    ("recm", "tight_epsi_1e12"),
]


def read(shared, name):
    return json.loads((shared / "reference" / f"{name}.json").read_text())


def assert_derived_quantities(ref):
    """Everything ``extractMass`` derives from the masses."""
    focal, m = FocalSets.from_matrix(np.array(ref["F"])), np.array(ref["mass"])
    normal = ev.normalise(m, focal)
    pl = ev.contour(m, focal)
    derived = {
        "mass.n": normal[:, 1:],
        "conf": m[:, 0],
        "pl": pl,
        "pl.n": ev.contour(normal, focal),
        "p": pl / pl.sum(axis=1, keepdims=True),
        "bel": ev.singleton_belief(m, focal),
        "bel.n": ev.singleton_belief(normal, focal),
        "betp": ev.pignistic(m, focal),
        "betp.n": ev.pignistic(m, focal, normalised=True),
        "N": ev.nonspecificity(m, focal).mean() / np.log2(focal.n_clusters),
    }
    for field, got in derived.items():
        np.testing.assert_allclose(got, ref[field], err_msg=field, **REFERENCE)


def test_focal_sets(shared):
    """R ignores Omega=FALSE for the power set."""
    *named, chosen = read(shared, "makeF")
    for ref in named:
        c, omega = ref["c"], {} if ref["type"] == "full" else {"omega": ref["Omega"]}
        got = getattr(FocalSets, ref["type"])(c, **omega)
        np.testing.assert_array_equal(got.matrix, ref["F"], err_msg=str(ref))
    got = FocalSets.pairs(4, [(0, 1), (0, 2)])
    np.testing.assert_array_equal(got.matrix, chosen["F"])


def test_mutual_neighbour_pairs(shared):
    ref = read(shared, "createPairs")
    simple, m = FocalSets.simple(4), np.array(ref["mass"])
    pl = ev.contour(ev.normalise(m, simple), simple)
    np.testing.assert_allclose(pl, ref["pl.n"], **REFERENCE)
    similarity = pl.T @ pl
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(similarity[off], np.array(ref["S"])[off], **REFERENCE)
    pairs = mutual_neighbour_pairs(pl, q=2)
    assert [[j + 1, k + 1] for j, k in pairs] == ref["pairs"]
    # The masses carried over to the larger family, as R starts its second run.
    focal = FocalSets.pairs(4, pairs)
    start = np.zeros((len(m), len(focal)))
    start[:, [focal.index(s) for s in simple]] = m
    np.testing.assert_allclose(start, ref["m0"], **REFERENCE)


@pytest.mark.parametrize("name", PARTITIONS)
def test_derived_quantities_of_small_partitions(shared, name):
    assert_derived_quantities(read(shared, "pairwise_mass")[name])


@pytest.mark.parametrize("path", BUTTERFLY, ids="-".join)
def test_derived_quantities_of_the_butterfly(shared, path):
    ref = read(shared, "butterfly")
    for key in path:
        ref = ref[key]
    assert_derived_quantities(ref)


@pytest.mark.parametrize(("field", "rule"), [("normalize_d", "dempster"), ("normalize_y", "yager")])
def test_normalisation(shared, field, rule):
    ref = read(shared, "pairwise_mass")
    focal = FocalSets.from_matrix(np.array(ref["full"]["F"]))
    got = ev.normalise(np.array(ref["full"]["mass"]), focal, rule)
    np.testing.assert_allclose(got, ref[field]["mass"], **REFERENCE)


@pytest.mark.parametrize("name", PARTITIONS)
def test_conflict_of_pairs_of_objects(shared, name):
    """kappa_ij = m_ij(empty) + m_ij(not same), in the order of R's dist."""
    ref = read(shared, "pairwise_mass")
    focal = FocalSets.from_matrix(np.array(ref[name]["F"]))
    m = np.array(ref[name]["mass"])
    i, j = np.triu_indices(len(m), 1)
    relation = ref["pairwise"][name]
    kappa = np.array(relation["Me"]) + np.array(relation["M0"])
    np.testing.assert_allclose(ev.conflict(m[i], m[j], focal), kappa, **REFERENCE)

"""Every derived quantity that R's evclust gives for the same masses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tolerances import REFERENCE

from evdist import CredalPartition, FocalSets

CASES = [("pairwise_mass", name) for name in ("full", "pairs", "hard", "fuzzy")]
CASES += [("butterfly", name) for name in ("ecm", "kevclus", "recm")]
CASES += [("butterfly", f"{name}/tight_epsi_1e12") for name in ("kevclus", "recm")]
CASES += [("butterfly", "ecm/converged_epsi_1e12")]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case).replace("/", "-"))
def case(request: pytest.FixtureRequest, shared: Path) -> tuple[CredalPartition, dict]:
    file, path = request.param
    ref = json.loads((shared / "reference" / f"{file}.json").read_text())
    for key in path.split("/"):
        ref = ref[key]
    focal = FocalSets.from_matrix(np.array(ref["F"]))
    return CredalPartition(np.array(ref["mass"], dtype=float), focal), ref


def _members(table: np.ndarray) -> list[list[int]]:
    """R lists the objects of each approximation, counting from one."""
    return [(np.flatnonzero(column) + 1).tolist() for column in table.T]


def _untied(score: np.ndarray) -> np.ndarray:
    """Rows without a tie: R draws one of the maxima at random within a tolerance of 1e-5."""
    best = np.sort(score, axis=1)
    return best[:, -1] - best[:, -2] > 2e-5 * best[:, -1]


@pytest.mark.parametrize(
    ("field", "view"),
    [
        ("pl", lambda p: p.plausibility),
        ("pl.n", lambda p: p.normalised_plausibility),
        ("bel", lambda p: p.belief),
        ("betp", lambda p: p.pignistic),
        ("p", lambda p: p.fuzzy()),
    ],
)
def test_numbers_per_cluster(case: tuple, field: str, view: object) -> None:
    partition, ref = case
    np.testing.assert_allclose(view(partition), np.array(ref[field], dtype=float), **REFERENCE)


def test_nonspecificity(case: tuple) -> None:
    partition, ref = case
    np.testing.assert_allclose(partition.nonspecificity(), ref["N"], **REFERENCE)


@pytest.mark.parametrize(
    ("rule", "lower", "upper"),
    [
        ("mass", "lower.approx", "upper.approx"),
        ("dominance", "lower.approx.nd", "upper.approx.nd"),
    ],
)
def test_approximations(case: tuple, rule: str, lower: str, upper: str) -> None:
    partition, ref = case
    assert _members(partition.lower(rule)) == ref[lower]
    assert _members(partition.upper(rule)) == ref[upper]


def test_sets_of_clusters(case: tuple) -> None:
    partition, ref = case
    np.testing.assert_array_equal(partition.upper("mass"), np.array(ref["Y"]))
    np.testing.assert_array_equal(partition.upper("dominance"), np.array(ref["Ynd"]))


def test_outliers(case: tuple) -> None:
    partition, ref = case
    assert (np.flatnonzero(partition.outliers()) + 1).tolist() == ref["outlier"]


@pytest.mark.parametrize(
    ("rule", "field", "score"),
    [
        ("plausibility", "y.pl", "plausibility"),
        ("belief", "y.bel", "belief"),
        ("pignistic", "y.betp_argmax_first", "pignistic"),
    ],
)
def test_labels_of_objects_without_ties(case: tuple, rule: str, field: str, score: str) -> None:
    partition, ref = case
    clear = _untied(getattr(partition, score))
    assert clear.sum() >= 9
    np.testing.assert_array_equal(partition.labels(rule)[clear], np.array(ref[field])[clear] - 1)


def test_hard_and_fuzzy_partitions_have_the_reference_masses(shared: Path) -> None:
    ref = json.loads((shared / "reference" / "pairwise_mass.json").read_text())
    hard = CredalPartition.from_labels(np.array(ref["hard"]["y.pl"]))
    np.testing.assert_array_equal(hard.mass, np.array(ref["hard"]["mass"]))
    masses = np.array(ref["fuzzy"]["mass"])
    fuzzy = CredalPartition.from_fuzzy(masses[:, 1:])
    np.testing.assert_allclose(fuzzy.mass, masses, **REFERENCE)

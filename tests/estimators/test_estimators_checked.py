"""Every public estimator is given to scikit-learn's own checks in some test of the suite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import evdist
from evdist import features, mixture
from evdist.registry import PUBLIC as PUBLIC_NAMES

PUBLIC = {
    name: value
    for home in (evdist, features, mixture)
    for name in (PUBLIC_NAMES if home is evdist else home.__all__)
    if isinstance(value := getattr(home, name), type) and issubclass(value, BaseEstimator)
}


def names_at_the_top(path: Path) -> Iterator[str]:
    """Classes that a module of tests makes or derives from outside its functions' bodies."""
    for statement in ast.parse(path.read_text()).body:
        parts = getattr(statement, "decorator_list", [statement])
        if isinstance(statement, ast.ClassDef):
            parts = statement.bases
        for node in (node for part in parts for node in ast.walk(part)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node, ast.Name) and isinstance(statement, ast.ClassDef):
                yield node.id


@pytest.fixture(scope="module")
def checked(root: Path) -> set[str]:
    users = (
        path for path in (root / "tests").rglob("test_*.py")
        if path != Path(__file__) and "@parametrize_with_checks(" in path.read_text()
    )  # fmt: skip
    return {name for path in users for name in names_at_the_top(path)}


def test_there_are_estimators_to_speak_of():
    assert {"EVCLUS", "NNEVCLUS", "Bootclus", "ECM", "MECM", "EvidentialNN", "PCCA"} <= set(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_scikit_learn_checks_it(name: str, checked: set[str]):
    assert name in checked, f"No test gives {name} to parametrize_with_checks."

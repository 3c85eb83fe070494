"""Fixtures and settings shared by the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Figures are drawn into files; a machine without a screen must not matter. Set before any test
# imports matplotlib.
os.environ["MPLBACKEND"] = "Agg"

ROOT = Path(__file__).resolve().parents[1]

# The first call of a compiled kernel takes seconds, so no example has a deadline. The examples are
# the same in every run; HYPOTHESIS_PROFILE=explore draws new and more ones.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", parent=settings.get_profile("ci"), derandomize=False, max_examples=500
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of data sets and reference values beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the data folder ../shared, which is absent")
    return folder

"""Configurations, manifests, stores and tables that no program should have written, at random.

The same cases by the thousand: benchmarks/fuzz.py.
"""

from __future__ import annotations

import pytest
from fuzz_cases import KINDS, Shop, try_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Shop:
    return Shop.open(tmp_path_factory.mktemp("fuzz") / "shop")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_case_ends_well_or_with_a_sentence(shop, scratch, kind, seed):
    try_case(shop, kind, seed, scratch)

"""Random configurations: accepted, or a ConfigError with a sentence; nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzz_cases import BASES, check_config
from fuzz_damage import POISON, mutated
from hypothesis import given, settings
from hypothesis import strategies as st

from evdist import JobConfig
from evdist.service.config import ConfigError, read_config


def assert_told(values: Any) -> bool:
    """Whether it is accepted; a refusal must be a sentence that can be shown anywhere."""
    return check_config(values) is not None


@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_mutations(seed):
    rng = random.Random(seed)
    accepted = 0
    for _ in range(100):
        values = rng.choice(BASES)
        for _ in range(rng.choice([1, 1, 2, 5])):
            values = mutated(values, rng, other=rng.choice(BASES))
            if not values:
                break
        accepted += assert_told(values)
    assert accepted < 90, "the mutations change nothing"


@pytest.mark.parametrize("base", BASES, ids=lambda base: base["task"])
def test_the_configurations_that_were_changed_are_good_ones(base):
    assert assert_told(base)


@pytest.mark.parametrize("key", list(BASES[0]))
def test_every_key_with_every_poison(key):
    for poison in (*POISON, object()):
        assert_told({**BASES[0], key: poison})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(list(BASES[0])) | st.text(max_size=8), JSON, max_size=6))
@settings(max_examples=150)
def test_values_that_hypothesis_draws(values):
    assert_told(values)


@given(st.dictionaries(st.sampled_from(["n_clusters", "d0", "tol", "metric", "x"]), JSON))
@settings(max_examples=100)
def test_parameters_that_hypothesis_draws(parameters):
    assert_told({"folder": "a", "data": {"url": "a"}, "parameters": parameters})


@pytest.mark.parametrize("kind", ["json", "yaml", "toml"])
def test_damaged_files(kind, tmp_path: Path):
    """A good file with bytes changed, cut off or doubled."""
    good = {
        "json": json.dumps(BASES[0]),
        "yaml": yaml.safe_dump(BASES[0]),
        "toml": 'folder = "a"\n[data]\nurl = "b"\n[parameters]\nn_clusters = 3\ntol = 1e-4\n',
    }[kind].encode()
    path, rng = tmp_path / f"job.{kind}", random.Random(kind)
    for _ in range(60):
        text = bytearray(good)
        for _ in range(rng.choice([1, 3, 10])):
            at = rng.randrange(len(text))
            match rng.randrange(3):
                case 0:
                    text[at] = rng.randrange(256)
                case 1:
                    del text[at : at + rng.randrange(1, 20)]
                case 2:
                    text[at:at] = rng.choice([b"*a", b"&a ", b"!!", b"{", b"]", b'"', b"\n", b": "])
        path.write_bytes(bytes(text))
        try:
            assert isinstance(read_config(path), JobConfig)
        except ConfigError as error:
            str(error).encode()

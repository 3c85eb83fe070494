"""Configurations that nobody meant: accepted, or a ConfigError with a sentence; nothing else."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evdist import JobConfig
from evdist.service.config import ConfigError, read_config

BASES: list[dict[str, Any]] = [
    {
        "version": 1,
        "task": "cluster",
        "folder": "jobs/a",
        "data": {"url": "a.csv", "columns": ["x", "y"], "label": "z", "scale": "robust"},
        "algorithm": "evclus",
        "parameters": {"n_clusters": 3, "d0": "q0.9", "tol": 1e-4, "random_state": 1},
        "links": {"must": [[0, 1], [2, 3]], "cannot": [[0, 2]]},
        "cluster": {"kind": "processes", "n_workers": 2, "threads": 1},
        "title": "A",
        "tags": ["one", "two"],
    },
    {"task": "predict", "folder": "b", "model": "jobs/a", "data": {"url": "s3://bucket/b.parquet"}},
    {"task": "append", "folder": "b", "model": "jobs/a", "data": {"url": "b.npy"}},
    {"task": "select", "folder": "c", "data": {"url": "a.npy"}, "candidates": [2, 3, 4]},
    {"task": "combine", "folder": "d", "inputs": ["a", "b"], "parameters": {"n_clusters": 2}},
]

#: What a mutation puts in the place of something.
POISON: list[Any] = [
    None, True, False, 0, -1, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", " ", "0", "null", "nan", "../../../etc/passwd", "/dev/null", "file:///etc/x",
    "s3://", "://", "~", "a\0b", "\ud800", "\u202e", "ℵ" * 50, "x" * 1000, "%s%n", "{0}", "${HOME}",
    "'; drop table jobs; --", "<script>", [], {}, [[]], [None], [[0]], {"a": 1}, {"": None}, {1: 2},
    {None: None}, [["must"]], {"$ref": "#"}, {"__class__": "x"}, b"bytes", (1, 2), {1}, object(),
]  # fmt: skip

NAMES = ["cls", "self", "__init__", "model_fields", "url", "folder", "data ", "DATA", "", "\0", "é"]


def mutated(base: Any, rng: random.Random) -> Any:
    """The base with one place changed: replaced, removed, doubled, renamed, buried."""
    base = deepcopy(base)
    node, places = base, []
    while isinstance(node, dict | list) and node and (not places or rng.random() < 0.7):
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        places.append((node, key))
        node = node[key]
    where, key = places[-1]
    match rng.randrange(6):
        case 0 | 1:
            where[key] = deepcopy(rng.choice(POISON[:-1]))
        case 2:
            del where[key]
        case 3:
            other = rng.choice([*NAMES, f"{key}x", str(key)[:-1]])
            if isinstance(where, dict):
                where[other] = where.pop(key)
            else:
                where.insert(0, deepcopy(where))
        case 4:
            for _ in range(rng.choice([1, 3, 40])):
                where[key] = [where[key]] if rng.random() < 0.5 else {"data": where[key]}
        case 5:
            where[key] = rng.choice(BASES)
    return base


def assert_told(values: Any) -> bool:
    """Whether it is accepted; a refusal must be a sentence that can be shown anywhere."""
    try:
        job = JobConfig.of(values)
    except ConfigError as error:
        said = str(error)
        assert said.rstrip().endswith((".", "?")), said
        assert len(said) < 3000
        said.encode()
        return False
    # What is accepted can be written, read and named.
    assert JobConfig.of(json.loads(job.to_json())).fingerprint == job.fingerprint
    return True


@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_mutations(seed):
    rng = random.Random(seed)
    accepted = 0
    for _ in range(100):
        values = rng.choice(BASES)
        for _ in range(rng.choice([1, 1, 2, 5])):
            values = mutated(values, rng)
            if not values:
                break
        accepted += assert_told(values)
    assert accepted < 90, "the mutations change nothing"


@pytest.mark.parametrize("base", BASES, ids=lambda base: base["task"])
def test_the_configurations_that_were_changed_are_good_ones(base):
    assert assert_told(base)


@pytest.mark.parametrize("key", list(BASES[0]))
def test_every_key_with_every_poison(key):
    for poison in POISON:
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

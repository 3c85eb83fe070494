"""Fuzzed configurations, manifests, stores and tables, and what must hold of each.

A case is made from a seed alone. It ends well, or with an error that the command line tells in a
sentence; it writes nothing outside of the folders it was given; and its inputs, the other jobs and
their data are what they were.
"""

from __future__ import annotations

import json
import random
import shutil
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_tables
import numpy as np
import typer.testing
import yaml
from fuzz_damage import mutated, spoil_file, spoil_json, spoil_tree, spoilt
from fuzz_guard import content, guarded
from typer.testing import CliRunner

from evdist import Client, CredalPartition, JobConfig
from evdist.data.dataset import Dataset, Table, read_contents
from evdist.data.tables import read_table
from evdist.service.cli.app import app
from evdist.service.cli.out import _told
from evdist.service.config import ConfigError, read_config
from evdist.service.jobs import JobFolder, JobResult, run
from evdist.service.jobs.keeping import collect
from evdist.service.jobs.models import load_model, model_level
from evdist.stores.encoding import seal

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
KINDS = ("configuration", "configuration file", "manifest", "job", "store", "zarr", "table")
#: Seconds after which a case counts as one that hangs.
PATIENCE = 30.0


class Defect(AssertionError):
    """A case that broke a rule."""


@dataclass(frozen=True)
class Shop:
    """What cases are made from: a finished job, its data, and tables of every kind."""

    root: Path

    @classmethod
    def open(cls, root: Path) -> Shop:
        shop, X = cls(root), fuzz_tables.rows()
        storage = root / "storage"
        for name, seed in (("good", 0), ("other", 1)):
            data = Client(str(storage)).upload(X + seed)
            run(
                {
                    "folder": str(storage / f"jobs/{name}"), "data": {"url": data.url},
                    "parameters": {"n_clusters": 2, "d0": 5.0, "random_state": seed},
                }
            )  # fmt: skip
        for name in ("pairs.zarr", "kept.zarr", "landmarks.zarr"):  # one job has them all
            shutil.rmtree(storage / "jobs/other" / name, ignore_errors=True)
        whole = CredalPartition.load(str(storage / "jobs/good/masses.zarr"))
        whole.save(str(root / "masses.npz"))
        (root / "tables").mkdir()
        fuzz_tables.write_all(root / "tables", X)
        return shop


def try_case(shop: Shop, kind: str, seed: int, scratch: Path) -> str:
    """Run one case; "done" or the error's class. A Defect tells what broke which rule."""
    rng = random.Random(f"{kind} {seed}")
    box = scratch / "box"
    shutil.rmtree(box, ignore_errors=True)
    box.mkdir(parents=True)
    call, writable, kept = _MAKERS[kind](shop, rng, box)
    # Writing into what was damaged is allowed to the calls that repair it; nothing else is.
    before, began = content(*kept), time.monotonic()
    with guarded(*writable) as guard, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = _outcome(call)
    if guard.breaches:
        raise Defect(f"{kind} {seed}: {guard.breaches[0]}")
    if content(*kept) != before:
        raise Defect(f"{kind} {seed}: something that it should only read has changed")
    if time.monotonic() - began > PATIENCE:
        raise Defect(f"{kind} {seed}: took {time.monotonic() - began:.0f} s")
    return outcome


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        told = _told(error)
        if told is None:
            raise Defect("".join(traceback.format_exception(error))) from error
        if not told[0].strip():
            raise Defect(f"an error without a word: {error!r}") from error
        if told[0].encode("utf-8", "replace").decode() != told[0]:
            raise Defect(f"cannot be shown everywhere: {told[0]!r}") from error
        own = type(error).__module__.startswith(("evdist.", "builtins"))
        if not own or isinstance(error, UnicodeError):
            raise Defect(f"the words of a library: {error!r}") from error
        return type(error).__name__
    return "done"


# The runner would read all signatures anew at each call, ten times as long as most cases take.
typer.testing._get_command = cache(typer.testing._get_command)


def _command(*words: str) -> None:
    """The command line in this process; what it refuses is an error with its sentence."""
    found = CliRunner().invoke(app, list(words))
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    if "Traceback" in found.output or "can't encode" in found.output:
        raise AssertionError(found.output)
    if found.exit_code:
        raise ConfigError(found.output)


Made = tuple[Callable[[], Any], tuple[Path, ...], tuple[Path, ...]]


# ---------------------------------------------------------------------- configurations
def _values(rng: random.Random) -> Any:
    values: Any = rng.choice(BASES)
    for _ in range(rng.choice([1, 1, 2, 5])):
        values = mutated(values, rng, other=rng.choice(BASES))
        if not values:
            break
    return values


def check_config(values: Any) -> JobConfig | None:
    """The configuration if it is accepted; a refusal must be a sentence."""
    try:
        job = JobConfig.of(values)
    except ConfigError as error:
        said = str(error)
        assert said.rstrip().endswith((".", "?")), said
        assert len(said) < 3000, said
        said.encode()
        return None
    # What is accepted can be written, read and named.
    assert JobConfig.of(json.loads(job.to_json())).fingerprint == job.fingerprint
    return job


def _configuration(shop: Shop, rng: random.Random, box: Path) -> Made:
    values = _values(rng)

    def call() -> None:
        job = check_config(values)
        if job is None:
            raise ConfigError("refused")
        if job.task in ("cluster", "select") and job.data is not None and rng.random() < 0.2:
            # Run as far as the first stages, on data that are there.
            data = job.data.model_copy(update={"url": str(shop.root / "tables/x.csv")})
            update = {"folder": str(box / "job"), "data": data}
            run(job.model_copy(update=update), through="validate")

    return call, (box,), (shop.root,)


def _configuration_file(shop: Shop, rng: random.Random, box: Path) -> Made:
    base = rng.choice(BASES)
    kind, text = rng.choice(
        [("json", json.dumps(base)), ("yaml", yaml.safe_dump(base)),
         ("toml", 'folder = "a"\n[data]\nurl = "b"\n[parameters]\nn_clusters = 3\ntol = 1e-4\n')]
    )  # fmt: skip
    path = box / f"job.{kind}"
    path.write_bytes(spoilt(text.encode(), rng))
    return lambda: read_config(path), (), (box,)


# ---------------------------------------------------------------------- jobs
def _storage(shop: Shop, box: Path) -> Path:
    """A copy of a storage with two finished jobs."""
    shutil.copytree(shop.root / "storage", box / "storage")
    for path in (box / "storage/jobs").glob("*/manifest.json"):
        # Its addresses are those of the copy.
        old, new = str(shop.root / "storage"), str(box / "storage")
        found = json.loads(path.read_text().replace(old, new))
        found.pop("seal")
        path.write_text(json.dumps(seal(found)))
    return box / "storage"


def _resealed(values: dict[str, Any]) -> dict[str, Any]:
    values.pop("seal", None)
    return seal(values)


def _look(rng: random.Random, storage: Path, job: Path) -> Callable[[], Any]:
    """One of the calls that meet a job folder."""
    at = ["--storage", str(storage)]
    calls: list[Callable[[], Any]] = [
        lambda: _command("inspect", str(job)),
        lambda: _command("inspect", str(job), "--json"),
        lambda: _command("status", str(job), *at),
        lambda: _command("status", *at),
        lambda: _command("logs", str(job), *at),
        lambda: _command("jobs", "list", *at),
        lambda: _command("jobs", "rm", str(job), *at),
        lambda: collect(str(storage), grace=-1.0),
        lambda: _command("fetch", str(job), "--out", str(job.parent / "fetched"), *at),
        lambda: JobResult(JobFolder.open(job)).metrics,
        lambda: JobResult(JobFolder.open(job)).model(),
        lambda: JobResult(JobFolder.open(job)).partition.in_memory(),
        lambda: run(JobFolder.open(job).config, through="load"),
        lambda: run(JobFolder.open(job).config, through="fit"),
    ]
    return rng.choice(calls)


def _manifest(shop: Shop, rng: random.Random, box: Path) -> Made:
    storage = _storage(shop, box)
    job = storage / "jobs/good"
    if rng.random() < 0.3:
        spoil_file(job / "manifest.json", rng)
    else:
        spoil_json(job / "manifest.json", rng, _resealed if rng.random() < 0.8 else None)
    _still_a_job(job)
    return _look(rng, storage, job), _own(job), (storage / "jobs/other", storage / "data")


def _job(shop: Shop, rng: random.Random, box: Path) -> Made:
    storage = _storage(shop, box)
    job = storage / "jobs/good"
    spoil_tree(job, rng)
    _still_a_job(job)
    return _look(rng, storage, job), _own(job), (storage / "jobs/other", storage / "data")


def _still_a_job(job: Path) -> None:
    """A folder without a manifest is what a removal has left: it may go, and its data."""
    if not (job / "manifest.json").exists():
        (job / "manifest.json").write_bytes(b"{}")


def _own(job: Path) -> tuple[Path, ...]:
    """What calls on a job may write: it, its lock beside other data, what is fetched."""
    data = sorted((job.parent.parent / "data").glob("*.zarr"))
    locks = [Path(f"{path}.lock") for path in data]
    return job, job.parent / "fetched", job.parent / "other/lock", *locks


# ---------------------------------------------------------------------- stores and tables
def _store(shop: Shop, rng: random.Random, box: Path) -> Made:
    if rng.random() < 0.1:
        archive = box / "masses.npz"
        archive.write_bytes(spoilt((shop.root / "masses.npz").read_bytes(), rng))
        return lambda: CredalPartition.load(str(archive)).summary(), (), (archive, shop.root)
    names = ["storage/jobs/good/masses.zarr", "storage/jobs/good"]
    names += [
        str(path.relative_to(shop.root)) for path in (shop.root / "storage/data").glob("*.zarr")
    ]
    source = shop.root / rng.choice(names)
    place = box / source.name
    shutil.copytree(source, place)
    spoil_tree(place, rng)
    calls: list[Callable[[], Any]] = [lambda: _command("inspect", str(place))]
    if source.name == "masses.zarr":
        calls.append(lambda: CredalPartition.load(str(place)).in_memory().summary())
        calls.append(lambda: Client(str(box / "s")).upload(str(place)))
    elif source.name == "good":
        calls = [
            lambda: JobResult(JobFolder.open(place)).predict(np.zeros((2, 3))),
            lambda: load_model(str(place)),
            lambda: model_level(str(place)),
        ]
        if rng.random() < 0.3:  # a model without its job
            (place / "manifest.json").unlink(missing_ok=True)
            calls.append(lambda: _command("inspect", str(place)))
    else:
        calls.append(lambda: Dataset.open(str(place)).rows())
        calls.append(lambda: Client(str(box / "s")).upload(str(place)).rows())
        calls.append(lambda: _validate(str(place), box))
    return rng.choice(calls), (box / "s", box / "job"), (place, shop.root)


def _zarr(shop: Shop, rng: random.Random, box: Path) -> Made:
    source = rng.choice(sorted((shop.root / "tables").glob("*.zarr")))
    place = box / source.name
    shutil.copytree(source, place)
    spoil_tree(place, rng)
    return _read(rng, str(place), box), (box / "job",), (place, shop.root)


def _table(shop: Shop, rng: random.Random, box: Path) -> Made:
    place = fuzz_tables.any_table(shop.root / "tables", rng, box)
    return _read(rng, str(place), box), (box / "job",), (place, shop.root)


def _read(rng: random.Random, url: str, box: Path) -> Callable[[], Any]:
    given = fuzz_tables.options(rng)
    if rng.random() < 0.15:
        return lambda: _validate(url, box, **given)
    if rng.random() < 0.2:
        return lambda: read_table(url)
    return lambda: read_contents(Table(url, **{k: _tuple(v) for k, v in given.items()}))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _validate(url: str, box: Path, **more: Any) -> None:
    data = {"url": url, **more}
    values = {"folder": str(box / "job"), "data": data, "parameters": {"n_clusters": 2}}
    run(JobConfig.of(values), through="validate")


_MAKERS: dict[str, Callable[[Shop, random.Random, Path], Made]] = {
    "configuration": _configuration, "configuration file": _configuration_file,
    "manifest": _manifest, "job": _job, "store": _store, "zarr": _zarr, "table": _table,
}  # fmt: skip

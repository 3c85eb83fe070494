"""Models, jobs and partitions with many clusters keep their masses as lists, wherever they go."""

from __future__ import annotations

import json
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr
from typer.testing import CliRunner

from evdist import EVCLUS, CredalPartition
from evdist.partition.rows import is_dask
from evdist.partition.sparse import SparseMasses
from evdist.service.cli import app
from evdist.service.jobs import JobFolder, run

C, N = 30, 1500


def gaussians(n: int = N, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 4 * np.random.default_rng(7).normal(size=(C, 5))
    return centres[rng.integers(C, size=n)] + rng.normal(size=(n, 5))


def model(**more: object) -> EVCLUS:
    return EVCLUS(C, random_state=0, n_jobs=1, **{"metric": "euclidean", **more})


def version(folder: Path, name: str = "masses.zarr") -> int:
    return zarr.open_group(folder / name, mode="r").attrs["version"]


@pytest.fixture(scope="module")
def fitted() -> EVCLUS:
    return model().fit(gaussians())


def test_a_model_is_saved_with_lists_and_grows(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    assert version(tmp_path / "m") == 2
    loaded, new = EVCLUS.load(tmp_path / "m"), gaussians(70, seed=1)
    assert isinstance(loaded.credal_partition_.mass, SparseMasses)
    assert loaded.credal_partition_.mass.stored
    assert loaded.credal_partition_ == fitted.credal_partition_
    assert np.array_equal(loaded.labels_, fitted.labels_)
    placed = fitted.predict_mass(new)
    held = EVCLUS.load(tmp_path / "m")
    held.credal_partition_, held._folder = held.credal_partition_.in_memory(), None
    for one in (loaded, held):
        one.append(new)
        partition = one.credal_partition_
        assert isinstance(partition.mass, SparseMasses)
        assert np.array_equal(np.asarray(partition.mass[N:]), placed)
        assert partition[:N] == fitted.credal_partition_
        assert np.array_equal(one.labels_[N:], fitted.predict(new))
    assert EVCLUS.load(tmp_path / "m").credal_partition_ == held.credal_partition_
    loaded.save(tmp_path / "again")
    assert version(tmp_path / "again") == 2


def test_a_model_saved_with_dense_masses_is_read_and_grows(fitted, tmp_path):
    """As it was before lists were stored."""
    fitted.save(tmp_path / "m")
    dense = CredalPartition(
        np.asarray(fitted.credal_partition_.mass), fitted.credal_partition_.focal_sets
    )
    (tmp_path / "m/masses.zarr").rename(tmp_path / "old.zarr")
    dense.save(tmp_path / "m/masses.zarr")
    assert version(tmp_path / "m") == 1
    loaded, new = EVCLUS.load(tmp_path / "m"), gaussians(70, seed=1)
    assert loaded.credal_partition_ == fitted.credal_partition_
    loaded.append(new)
    assert np.array_equal(loaded.credal_partition_.mass[N:], fitted.predict_mass(new))
    assert version(tmp_path / "m") == 1


def test_a_fit_in_partitions_writes_lists(tmp_path):
    X = gaussians(3000)
    there = model(partitions=4, checkpoint=tmp_path / "work").fit(X)
    assert version(tmp_path / "work", "answer.zarr") == 2
    partition = there.credal_partition_
    assert isinstance(partition.mass, SparseMasses)
    assert partition.mass.stored
    partition.validate()
    lazy = model(partitions=4).fit(da.from_array(X, chunks=(700, 5)))
    assert is_dask(lazy.credal_partition_.mass)
    assert is_dask(lazy.labels_)
    assert lazy.credal_partition_.mass.shape == (3000, C + 2)
    assert lazy.credal_partition_ == partition
    assert np.array_equal(np.asarray(lazy.labels_), np.asarray(there.labels_))
    assert np.array_equal(lazy.credal_partition_.mass[5:9].compute(), partition.mass[5:9].dense())
    lazy.credal_partition_ = lazy.credal_partition_.with_ids(np.arange(3000) + 5)
    lazy.save(tmp_path / "m")
    assert version(tmp_path / "m") == 2
    again = EVCLUS.load(tmp_path / "m")
    assert again.credal_partition_ == partition
    assert again.credal_partition_.ids[0] == 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    np.save(folder / "x.npy", gaussians())
    np.save(folder / "new.npy", gaussians(70, seed=1))
    run({
        "folder": str(folder / "job"),
        "data": {"url": str(folder / "x.npy")},
        "parameters": {"n_clusters": C, "metric": "euclidean", "random_state": 0},
        "cluster": {"threads": 1},
    })  # fmt: skip
    return folder


class TestJobs:
    def ask(self, folder: Path, task: str) -> CredalPartition:
        values = {
            "task": task,
            "folder": str(folder / task),
            "model": str(folder / "job"),
            "data": {"url": str(folder / "new.npy")},
        }
        return run(values, through="summarise").partition

    def test_a_job_leaves_lists(self, folder, fitted):
        assert version(folder / "job") == 2
        assert CredalPartition.load(folder / "job/masses.zarr") == fitted.credal_partition_
        found = CliRunner().invoke(app, ["inspect", str(folder / "job/masses.zarr"), "--json"])
        assert json.loads(found.stdout)["objects"] == "1,500"
        assert (folder / "job/report.html").exists()

    def test_new_objects_are_placed_as_lists(self, folder, fitted):
        placed = self.ask(folder, "predict")
        assert version(folder / "predict") == 2
        assert np.array_equal(np.asarray(placed.mass), fitted.predict_mass(gaussians(70, seed=1)))

    def test_new_objects_are_added_once(self, folder, fitted):
        for _ in range(2):
            added = self.ask(folder, "append")
            grown = CredalPartition.load(folder / "job/masses.zarr")
            assert isinstance(grown.mass, SparseMasses)
            assert len(grown) == N + 70
            assert grown[N:] == added
            assert grown[:N] == fitted.credal_partition_
            # As if it had been killed after the rows were there: they are recognised.
            job = JobFolder.open(folder / "append")
            names = list(job.stages)
            for name in names[names.index("append") :]:
                del job._manifest.stages[name]
            job._write()

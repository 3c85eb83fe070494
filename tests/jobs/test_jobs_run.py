"""`run`: from a configuration to a folder with the answer, the same bits as the estimator."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jobs.jobs_cases import PARAMETERS, blobs, config, data_file, fitted, quick, stages, state

from evdist import CredalPartition, JobConfig, run
from evdist.progress import Progress
from evdist.service.config import ConfigError
from evdist.service.jobs import JobError, JobResult, stages_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    data_file(place)
    return place


@pytest.fixture(scope="module")
def done(folder):
    """One whole job, with its report."""
    news: list[Progress] = []
    result = run(config(folder, title="Three blobs"), listen=[news.append])
    return result, news


def whatever_the_clock(result: JobResult, name: str) -> object:
    """What a file of the answer says, but for seconds."""
    content = Path(result.folder.path(name)).read_bytes()
    if name.endswith(".json"):
        return {key: value for key, value in json.loads(content).items() if key != "seconds"}
    return content


class TestAnswer:
    def test_has_the_bits_of_the_estimator(self, done):
        result, _ = done
        model = fitted()
        np.testing.assert_array_equal(
            np.asarray(result.partition.mass), np.asarray(model.credal_partition_.mass)
        )
        assert result.metrics["objective"] == model.objective_
        assert result.metrics["iterations"] == model.n_iter_

    def test_lies_in_one_folder(self, done):
        result, _ = done
        there = set(os.listdir(result.folder.url))
        assert there >= {"manifest.json", "job.log", "progress.json", "data.zarr", "pairs.zarr"}
        assert there >= {"masses.zarr", "model.json", "metrics.json", "objects.parquet"}
        assert "report.html" in there
        assert not [name for name in there if name.startswith("checkpoint") or "part" in name[-5:]]

    def test_in_numbers(self, done):
        metrics = done[0].metrics
        assert metrics["n_objects"] == 200 and metrics["n_clusters"] == 3
        assert metrics["n_sure"] + metrics["n_between"] + metrics["n_outliers"] == 200
        assert sum(row["labelled"] for row in metrics["clusters"]) == 200
        assert metrics["converged"] is True and metrics["warnings"] == []
        assert "adjusted_rand_index" not in metrics, "the classes were not told"

    def test_one_row_per_object(self, done):
        result, _ = done
        table = pd.read_parquet(result.folder.path("objects.parquet"))
        partition = result.partition
        assert table["id"].tolist() == list(range(200))
        assert (table["label"] == np.asarray(partition.labels())).all()
        assert ((table["decision"] == "outlier") == np.asarray(partition.outliers())).all()
        assert table["nonspecificity"].mean() == pytest.approx(result.metrics["nonspecificity"])

    def test_to_look_at(self, done):
        page = Path(done[0].report).read_text(encoding="utf-8")
        assert "Three blobs" in page and "n_dissimilarities" in page

    def test_is_a_model_that_predicts(self, done):
        new = blobs()[:7] + 0.01
        np.testing.assert_array_equal(done[0].model().predict_mass(new), fitted().predict_mass(new))

    def test_is_lazy(self, done):
        assert not isinstance(done[0].partition.mass, np.ndarray)


class TestStages:
    def test_are_named_in_order(self, folder):
        job = JobConfig.of(config(folder))
        assert stages_of(job) == ("load", "validate", "sample", "fit", "summarise", "report")

    def test_are_all_in_the_manifest(self, done):
        result, _ = done
        assert list(stages(result)) == list(stages_of(result.folder.config))
        assert state(result.folder.url) == "done"

    def test_tell_news(self, done):
        heard = list(dict.fromkeys(one.stage for one in done[1]))
        assert [s for s in heard if s in ("load", "validate", "sample", "fit", "summarise")] == [
            "load", "validate", "sample", "fit", "summarise",
        ]  # fmt: skip
        assert heard[-1] == "report"

    def test_leave_one_line_per_event_in_the_log(self, done):
        result, _ = done
        lines = result.folder.log().splitlines()
        assert all(f"[{result.folder.id}]" in line for line in lines)
        assert lines[0].endswith("load: begins") and lines[-1].endswith("done")
        assert any("objective" in line for line in lines)

    def test_leave_no_listener_behind(self, done):
        assert logging.getLogger("evdist.job").handlers == []

    def test_can_be_entered_one_by_one(self, folder, done):
        values = config(folder, "steps")
        for name in stages_of(JobConfig.of(values))[:-1]:
            result = run(values, through=name)
            assert list(stages(result))[-1] == name
            assert state(result.folder.url) == "running", "the job is not over"
        # What one run hands on in memory, another one finds in the folder.
        for name in ("metrics.json", "objects.parquet"):
            assert whatever_the_clock(result, name) == whatever_the_clock(done[0], name)
        np.testing.assert_array_equal(
            np.asarray(result.partition.mass), np.asarray(done[0].partition.mass)
        )

    def test_that_need_no_workers_do_without(self, folder):
        absent = {"kind": "scheduler", "address": "tcp://127.0.0.1:9"}
        values = config(folder, "far", cluster=absent)
        assert list(stages(run(values, through="validate"))) == ["load", "validate"]

    def test_of_no_such_name(self, folder):
        with pytest.raises(ValueError, match=r"through must be one of load, .*got 'fitt'"):
            run(config(folder, "no"), through="fitt")


class TestSecondCall:
    def test_does_nothing(self, folder, done):
        result, _ = done
        before = stages(result)
        files = {
            p: os.stat(result.folder.path(p)).st_mtime_ns for p in ("report.html", "model.json")
        }
        news: list[Progress] = []
        again = run(config(folder), listen=[news.append])
        assert stages(again) == before
        assert news == []
        for name, when in files.items():
            assert os.stat(result.folder.path(name)).st_mtime_ns == when

    def test_may_come_as_a_file(self, folder, done):
        path = folder / "job.json"
        path.write_text(json.dumps(config(folder)))
        assert stages(run(path)) == stages(done[0])
        assert stages(run(str(path))) == stages(done[0])

    def test_may_ask_for_other_threads_or_another_title(self, folder, done):
        again = run(config(folder, cluster={"threads": 2}, title="Other"))
        assert stages(again) == stages(done[0])

    def test_makes_what_was_removed(self, folder):
        values = config(folder, "removed")
        first = quick(values)
        mass = np.asarray(first.partition.mass)
        os.unlink(first.folder.path("metrics.json"))
        before = stages(first)
        again = quick(values)
        assert again.metrics["n_objects"] == 200
        assert {k: v for k, v in stages(again).items() if k != "summarise"} == {
            k: v for k, v in before.items() if k != "summarise"
        }
        np.testing.assert_array_equal(np.asarray(again.partition.mass), mass)

    @pytest.mark.parametrize(
        ("more", "sentence"),
        [
            ({"parameters": {**PARAMETERS, "n_clusters": 4}}, "n_clusters 3 instead of 4"),
            ({"parameters": {**PARAMETERS, "tol": 0.1}}, "tol None instead of 0.1"),
            ({"links": {"must": [[0, 1]]}}, "links: must"),
            ({"algorithm": "ecm", "parameters": {"n_clusters": 3}}, "algorithm 'evclus' instead"),
        ],
    )
    def test_of_another_job_is_refused_with_what_differs(self, folder, done, more, sentence):
        before = stages(done[0])
        with pytest.raises(JobError, match=f"folder of another job: .*{sentence}.*another folder"):
            run(config(folder, **more))
        assert stages(done[0]) == before


class TestSource:
    def test_touched_but_the_same(self, tmp_path):
        path = data_file(tmp_path)
        before = stages(quick(config(tmp_path)))
        os.utime(path, (1, 1))
        after = stages(quick(config(tmp_path)))
        assert {k: after[k] for k in after if k != "load"} == {
            k: before[k] for k in before if k != "load"
        }

    def test_changed_after_it_was_loaded(self, tmp_path):
        data_file(tmp_path)
        first = quick(config(tmp_path))
        mass = np.asarray(first.partition.mass)
        data_file(tmp_path, blobs(300))
        then = r"since this job began: 300 rows of 2 now, 200 of 2 then.*new folder"
        with pytest.raises(JobError, match=then):
            quick(config(tmp_path))
        np.testing.assert_array_equal(np.asarray(first.partition.mass), mass)
        data_file(tmp_path)  # as it was
        assert quick(config(tmp_path)).metrics["n_objects"] == 200

    def test_gone_after_it_was_loaded(self, tmp_path):
        path = data_file(tmp_path)
        run(config(tmp_path), through="load")
        os.unlink(path)
        result = quick(config(tmp_path))
        assert result.metrics["n_objects"] == 200
        assert "no longer exists; the copy in the job folder is used" in result.folder.log()

    def test_never_there(self, tmp_path):
        with pytest.raises(JobError, match=r"There is no data at .*x.npy") as error:
            run(config(tmp_path))
        assert isinstance(error.value.__cause__, FileNotFoundError)
        assert state(tmp_path / "job") == "failed"
        data_file(tmp_path)
        assert quick(config(tmp_path)).metrics["n_objects"] == 200

    def test_of_another_kind(self, tmp_path):
        (tmp_path / "x.txt").write_text("1 2 3")
        with pytest.raises(JobError, match=r"x.txt: known endings are .npy, .csv"):
            run(config(tmp_path, data={"url": str(tmp_path / "x.txt")}))


def test_a_mistake_in_the_configuration_is_told_before_anything_is_made(tmp_path):
    with pytest.raises(ConfigError, match=r"did you mean 'n_clusters'"):
        run(config(tmp_path, parameters={"n_cluster": 3}))
    assert os.listdir(tmp_path) == []
    with pytest.raises(ConfigError, match=r"Keys must be words"):
        run({1: 2})


def test_a_folder_that_is_a_file(tmp_path):
    data_file(tmp_path)
    with pytest.raises(JobError, match=r"x.npy is a file, not a folder. Choose another job folder"):
        run(config(tmp_path, "x.npy"))
    with pytest.raises(JobError, match=r"x.npy.* is a file, not a folder"):
        run(config(tmp_path, "x.npy/job"))


def test_two_jobs_in_two_folders_do_not_mix(folder, done, tmp_path):
    other = quick(config(folder, "other", parameters={**PARAMETERS, "n_clusters": 2}))
    assert other.metrics["n_clusters"] == 2
    assert CredalPartition.load(done[0].folder.path("masses.zarr")).n_clusters == 3


def test_every_column_may_be_named_by_a_table(tmp_path):
    X = blobs()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=np.arange(200))
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    masses = []
    for name, data in (("x.csv", {"columns": ["a", "b"]}), ("x.parquet", {"drop": ["id"]})):
        values = config(tmp_path, f"job {name}", data={"url": str(tmp_path / name), **data})
        masses.append(np.asarray(quick(values).partition.mass))
    np.testing.assert_array_equal(masses[0], masses[1])
    np.testing.assert_array_equal(masses[0], np.asarray(fitted().credal_partition_.mass))

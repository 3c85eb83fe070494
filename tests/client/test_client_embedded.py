"""The client without any server: jobs in the background of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import programs
import pytest
from client.client_cases import QUICK, SLOW, alone, blobs, kill, masses, sweeping, until

from evdist import Client, JobConfig
from evdist.progress import Progress
from evdist.service.client import background
from evdist.service.config import ConfigError
from evdist.service.jobs import JobCancelled, JobError, JobFolder, JobState
from evdist.stores.encoding import StoreError, StoreNotFoundError

pytestmark = pytest.mark.process
X = blobs(300)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Client:
    return Client(tmp_path_factory.mktemp("storage"))


@pytest.fixture(scope="module")
def done(client):
    """A finished job, and the news that were heard while waiting for it."""
    news: list[Progress] = []
    return client.submit(X, **QUICK).wait(timeout=100, bar=news.append), news


class TestSubmit:
    def test_gives_the_bits_of_the_estimator(self, done):
        np.testing.assert_array_equal(masses(done[0]), alone(X, QUICK))

    def test_the_result_is_lazy(self, done):
        assert not isinstance(done[0].result().mass, np.ndarray)
        assert done[0].result().n_objects == 300

    def test_says_how_it_went(self, client, done):
        job, news = done
        assert job.status is JobState.DONE and job.error is None
        assert job.metrics["n_objects"] == 300
        assert job.progress.stage == "report" == news[-1].stage
        assert "report: done" in job.logs() and job.id in job.logs()
        assert job.id in repr(job) and "done" in repr(job)
        assert "embedded" in repr(client)

    def test_a_process_that_gets_no_job_ends(self, client):
        with pytest.raises(ConfigError, match="n_cluster"):
            client.submit(X, n_cluster=3)
        process = background._started[-1]
        assert process.wait(timeout=60) == 0

    def test_the_report_can_be_copied(self, done, tmp_path):
        copy = done[0].report(tmp_path / "sub/report.html")
        assert copy.read_bytes() == Path(done[0].report()).read_bytes()
        with pytest.raises(JobError, match=r"has no nothing.txt"):
            done[0].copy("nothing.txt", tmp_path / "a")

    def test_the_model_predicts(self, done):
        assert done[0].model().predict_mass(X[:4]).shape == (4, 5)

    def test_the_same_again_finds_the_first_job(self, client, done, tmp_path):
        """However the data come: by content, not by name."""
        np.save(tmp_path / "x.npy", X)
        before = sorted(path.name for path in Path(client.storage).glob("*/*"))
        for same in (X, X.tolist(), tmp_path / "x.npy", str(tmp_path / "x.npy"), client.upload(X)):
            assert client.submit(same, **QUICK).id == done[0].id
        assert sorted(path.name for path in Path(client.storage).glob("*/*")) == before

    def test_jobs_are_found_again(self, client, done):
        assert done[0].id in [job.id for job in client.jobs()]
        assert client.job(done[0].id).url == client.job(done[0].url).url == done[0].url
        with pytest.raises(StoreNotFoundError, match=r"no job at .*jobs/nobody"):
            client.job("nobody")

    def test_other_things_in_the_storage_are_no_jobs(self, client, done):
        jobs = Path(client.storage) / "jobs"
        (jobs / "note.txt").write_text("a note")
        (jobs / "empty").mkdir()
        assert {job.id for job in client.jobs()} == {done[0].id}

    def test_waiting_for_a_finished_job_takes_no_time(self, done):
        began = time.monotonic()
        assert done[0].wait(bar=False) is done[0]
        assert time.monotonic() - began < 5.0


class TestMistakes:
    """Told before anything is sent."""

    @pytest.mark.parametrize(
        ("more", "sentence"),
        [
            ({"n_clusters": "three"}, "n_clusters must be a valid integer"),
            ({"n_cluster": 3}, "did you mean 'n_clusters'"),
            ({"n_clusters": 3, "algorithm": "evclu"}, "did you mean 'evclus'"),
            ({"n_clusters": 3, "scale": "log"}, "data.scale must be 'standard', 'robust' or 'gow"),
            ({"n_clusters": 3, "cluster": {"kind": "moon"}}, "cluster.kind must be"),
            ({}, "n_clusters is missing"),
        ],
    )
    def test_in_parameters(self, tmp_path, more, sentence):
        with pytest.raises(ConfigError, match=sentence):
            Client(tmp_path / "s").submit(X, **more)
        assert not (tmp_path / "s").exists()

    @pytest.mark.parametrize(
        ("source", "error", "sentence"),
        [
            ("no.npy", FileNotFoundError, r"There is no file .*no.npy"),
            ("no.txt", ValueError, "known endings"),
            (np.arange(3), ValueError, "must be a table of numbers"),
            (pd.DataFrame({"a": ["x"]}), ValueError, "'a' of X is not numeric"),
        ],
    )
    def test_in_data(self, tmp_path, source, error, sentence):
        with pytest.raises(error, match=sentence):
            Client(tmp_path / "s").submit(source, n_clusters=3)

    @pytest.mark.parametrize("links", [[[0, 1, 2]], [0, 1], [[0.5, 1.5]], [["a", "b"]]])
    def test_in_links(self, tmp_path, links):
        with pytest.raises(ValueError, match=r"Links must be pairs of object numbers"):
            Client(tmp_path / "s").submit(X, n_clusters=3, must_link=links)

    def test_results_of_a_job_that_is_not_done(self, tmp_path):
        url = str(tmp_path / "s/jobs/a")
        values = {"folder": url, "data": {"url": "x.npy"}, "parameters": QUICK}
        JobFolder.create(JobConfig.of(values))
        job = Client(tmp_path / "s").job("a")
        assert job.status is JobState.QUEUED and job.progress is None
        with pytest.raises(JobError, match=r"is queued, not done. Wait for it: job.wait\(\)"):
            job.result()

    def test_a_job_that_fails_says_why(self, tmp_path):
        bad = X.copy()
        bad[7, 1] = np.nan
        client = Client(tmp_path / "s")
        job = client.submit(bad, **QUICK)
        with pytest.raises(JobError, match=rf"Job {job.id} failed: Row 7, column 1 is missing"):
            job.wait(timeout=100, bar=False)
        assert job.status is JobState.FAILED and "Row 7" in job.error
        assert "failed: Row 7" in job.logs()


class TestDisturbed:
    def test_two_jobs_at_once_and_one_of_them_killed(self, client):
        """They do not mix; the killed one goes on when it is waited for."""
        Y = blobs(2500)
        jobs = [client.submit(Y, **SLOW, random_state=seed) for seed in (0, 1)]
        until(lambda: sweeping(jobs[0]))
        with pytest.raises(TimeoutError, match=r"is running after 0 s"):
            jobs[0].wait(timeout=0, bar=False)
        assert jobs[0].status is JobState.RUNNING, "it goes on"
        kill(jobs[0])
        until(lambda: jobs[0].status is JobState.STOPPED, 10.0)
        for seed, job in enumerate(jobs):
            job.wait(timeout=100, bar=False)
            np.testing.assert_array_equal(masses(job), alone(Y, SLOW, seed))
        assert "sample: was done before" in jobs[0].logs()

    def test_the_client_is_killed_and_the_job_cancelled_and_resumed(self, tmp_path):
        """A job outlives who submitted it; cancelled, it stops within seconds."""
        Y = blobs(2400)
        np.save(tmp_path / "y.npy", Y)
        program = (
            "import os, signal, sys\n"
            "from evdist import Client\n"
            f"job = Client(sys.argv[1]).submit(sys.argv[2], **{SLOW!r})\n"
            "print(job.id, flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        ended = programs.run(["-c", program, tmp_path / "s", tmp_path / "y.npy"])
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        client = Client(tmp_path / "s")
        job = client.job(ended.stdout.strip())
        until(lambda: sweeping(job))
        job.cancel()
        asked = time.monotonic()
        until(lambda: job.status is JobState.CANCELLED)
        assert time.monotonic() - asked < 10.0
        with pytest.raises(JobCancelled, match=f"Job {job.id} was cancelled"):
            job.wait(bar=False)
        again = client.submit(Y, **SLOW)  # the same content: the same job, which goes on
        assert again.id == job.id
        np.testing.assert_array_equal(masses(again.wait(timeout=100, bar=False)), alone(Y, SLOW))

    def test_a_job_whose_client_was_killed_before_it_could_start_it(self, tmp_path):
        np.save(tmp_path / "x.npy", X)
        url = str(tmp_path / "s/jobs/a")
        values = {"folder": url, "data": {"url": str(tmp_path / "x.npy")}, "parameters": QUICK}
        folder = JobFolder.create(JobConfig.of(values))
        folder._manifest.created -= 3600.0
        folder._write()
        job = Client(tmp_path / "s").job("a")
        assert job.status is JobState.STOPPED
        np.testing.assert_array_equal(masses(job.wait(timeout=100, bar=False)), alone(X, QUICK))


class TestUpload:
    def test_goes_on_where_it_was_cut_off(self, tmp_path):
        client = Client(tmp_path / "s")
        data = client.upload(X)
        attributes = Path(data.url) / "zarr.json"
        attributes.write_text(
            attributes.read_text().replace('"complete": true', '"complete": false')
        )
        next((Path(data.url) / "X/c").glob("*/*")).unlink()
        again = client.upload(X)
        assert again.url == data.url
        np.testing.assert_array_equal(again.rows(), X)

    def test_a_truncated_one_is_refused(self, tmp_path):
        client = Client(tmp_path / "s")
        chunk = next((Path(client.upload(X).url) / "X/c").glob("*/*"))
        chunk.write_bytes(chunk.read_bytes()[:-1])
        with pytest.raises(StoreError, match=r"is damaged"):
            client.upload(X).rows()

    def test_takes_little_memory(self, tmp_path):
        """160 MB pass through a client that grows by far less."""
        path = tmp_path / "x.npy"
        big = np.lib.format.open_memmap(path, "w+", np.float32, (4_000_000, 10))
        big[:] = np.arange(10, dtype=np.float32)
        big[:, 0] = np.arange(4_000_000)
        big.flush()
        del big
        program = (
            "import sys\n"
            "from evdist import Client\n"
            "def peak():\n"
            "    lines = open('/proc/self/status').read().splitlines()\n"
            "    return int([x for x in lines if x.startswith('VmHWM')][0].split()[1]) / 1024\n"
            "client = Client(sys.argv[1])\n"
            "before = peak()\n"
            "assert client.upload(sys.argv[2]).n == 4_000_000\n"
            "print(before, peak())\n"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "s"), str(path)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        before, after = (float(word) for word in told.split())
        assert after - before < 80.0, f"{before:.0f} MB before, {after:.0f} MB after"
        assert after < 500.0


def test_environment_variables_say_where(tmp_path, monkeypatch):
    monkeypatch.setenv("EVDIST_STORAGE", str(tmp_path / "here"))
    assert Client().storage == str(tmp_path / "here")
    assert Client(tmp_path / "there").storage == str(tmp_path / "there")
    monkeypatch.delenv("EVDIST_STORAGE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Client().storage == os.path.join(tmp_path, ".evdist")


def test_a_prefect_server_is_asked_only_where_the_folder_does_not_tell(tmp_path, monkeypatch):
    nobody = Client(tmp_path, "http://127.0.0.1:9/api")  # no server there
    folder = JobFolder.create(JobConfig.of(folder=str(tmp_path / "jobs/a"), data={"url": "x.npy"},
                                           parameters={"n_clusters": 2}))  # fmt: skip
    job = nobody.job("a")
    with pytest.raises(JobError, match="No Prefect server answers"):
        _ = job.status
    folder.set_state(JobState.RUNNING)
    folder.tell({"stage": "fit"})
    assert job.status is JobState.RUNNING  # its beat has moved since the look before
    monkeypatch.setattr("evdist.service.client.deployment.FRESH_SECONDS", 0.0)
    with pytest.raises(JobError, match="No Prefect server answers"):
        _ = job.status
    folder.set_state(JobState.DONE)
    assert job.status is JobState.DONE

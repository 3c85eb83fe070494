"""Faults around a run: cancels that must not be lost, corrected calls, a full disk, a storage that
is away, two processes in one folder of object storage."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import programs
import pytest
import s3fs
from jobs.jobs_cases import (
    PARAMETERS,
    KilledError,
    Stop,
    blobs,
    config,
    data_file,
    fitted,
    quick,
    state,
)
from proxy import Proxy
from s3_bucket import s3_bucket

from evdist.service.jobs import JobCancelled, JobError, JobFolder, JobState
from evdist.stores import lease, paths


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return np.asarray(fitted().credal_partition_.mass)


@pytest.fixture
def folder(tmp_path):
    data_file(tmp_path)
    return tmp_path


class TestCancel:
    def test_no_retry_takes_it_back(self, folder, whole):
        """As Prefect retries a stage; only a person's call goes on."""
        with pytest.raises(KilledError, match="stopped"):
            quick(config(folder), listen=[Stop("fit", 2)])
        JobFolder.open(folder / "job").ask_to_cancel()
        for _ in range(2):
            with pytest.raises(JobCancelled, match="Resume it to continue"):
                quick(config(folder), resume=False)
            assert state(folder / "job") == "cancelled"
        result = quick(config(folder))
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)

    def test_an_interrupt_that_a_library_turns_into_another_error_is_still_a_cancel(self, folder):
        def hits_a_lock(news) -> None:
            if news.stage == "fit":
                JobFolder.open(folder / "job").ask_to_cancel()
                try:
                    time.sleep(60)
                except KeyboardInterrupt as error:
                    raise RuntimeError("cannot release un-acquired lock") from error

        with pytest.raises(JobCancelled, match="was cancelled"):
            quick(config(folder), listen=[hits_a_lock])
        assert state(folder / "job") == "cancelled"

    @pytest.mark.process
    def test_where_sigint_is_ignored(self, folder):
        """As in every process that a shell script starts in the background."""
        program = (
            "import json, sys, threading\n"
            "from evdist.service.jobs import run\n"
            "def listen(news):\n"
            "    if news.stage == 'fit':\n"
            "        print('fit', flush=True)\n"
            "        threading.Event().wait(100)\n"  # a stage without news, in a lock
            "run(json.loads(sys.argv[1]), listen=[listen], through='fit')\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(config(folder))], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "fit\n"
        JobFolder.open(folder / "job").ask_to_cancel()
        child.wait(20)
        child.stdout.close()
        assert state(folder / "job") == "cancelled"

    def test_a_second_signal_does_not_keep_the_end_from_being_written(self, folder, monkeypatch):
        """As a supervisor sends it to a run that takes long to stop."""
        write, left = JobFolder.set_state, [1, 1]

        def interrupted(self, state, error=None):
            if state is JobState.STOPPED and left:
                left.pop()
                raise KeyboardInterrupt
            write(self, state, error)

        monkeypatch.setattr(JobFolder, "set_state", interrupted)
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            quick(config(folder), listen=[Stop("fit", 2, KeyboardInterrupt)])
        assert state(folder / "job") == "stopped"

    def test_the_heart_beats_until_the_end_and_not_only_to_the_end_of_a_stage(self, folder):
        def late(news) -> None:
            if news.stage == "summarise":
                before = JobFolder.open(folder / "job").progress()
                time.sleep(1.5)
                assert JobFolder.open(folder / "job").progress() != before

        quick(config(folder), listen=[late])

    def test_a_storage_that_is_away_when_asked_for_a_cancel_costs_no_run(
        self, folder, whole, monkeypatch
    ):
        """It answered the beat a moment before: the outage is as young as that."""
        is_cancelled, away = JobFolder.is_cancelled, [1, 1]

        def asked(self):
            if threading.current_thread().name == "evdist-watch" and away:
                away.pop()
                raise ConnectionError("away")
            return is_cancelled(self)

        def late(news) -> None:
            while news.stage == "fit" and away:
                time.sleep(0.1)

        monkeypatch.setattr(JobFolder, "is_cancelled", asked)
        result = quick(config(folder), listen=[late])
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)


class TestCorrected:
    def test_what_does_not_decide_the_answer_comes_from_the_last_call(
        self, folder, whole, monkeypatch
    ):
        monkeypatch.setattr("evdist.engine.connect._TIMEOUT", 1.0)
        wrong = {"kind": "scheduler", "address": "tcp://127.0.0.1:9"}
        with pytest.raises(JobError, match="No Dask scheduler answers at tcp://127"):
            quick(config(folder, cluster=wrong))
        result = quick(config(folder, title="mended"))
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)
        kept = JobFolder.open(folder / "job").config
        assert kept.cluster.kind == "threads"
        assert kept.title == "mended"

    def test_a_call_that_failed_to_load_gives_way_to_the_corrected_one(self, folder, whole):
        with pytest.raises(JobError, match="There is no data at"):
            quick(config(folder, data={"url": str(folder / "no.npy")}))
        bad = blobs()
        bad[3, 1] = np.nan
        data_file(folder, bad, "bad.npy")
        with pytest.raises(JobError, match="Row 3, column 1 is missing"):
            quick(config(folder, data={"url": str(folder / "bad.npy")}))
        result = quick(config(folder))
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)
        with pytest.raises(JobError, match="is the folder of another job"):
            quick(config(folder, parameters={**PARAMETERS, "n_clusters": 2}))


class TestFullDisk:
    def test_is_told_as_such_and_the_job_goes_on_when_there_is_room(
        self, folder, whole, monkeypatch
    ):
        """Every write fails while the reserve is there: as a disk that the fit has filled."""
        full = threading.Event()
        draft = paths._draft

        def write(path, content):
            if full.is_set() and (folder / "job/reserve").exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return draft(path, content)

        def fill(news) -> None:
            if news.stage == "fit":
                full.set()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "masses.zarr/c/0/0")

        monkeypatch.setattr(paths, "_draft", write)
        with pytest.raises(JobError, match="The disk is full"):
            quick(config(folder), listen=[fill])
        job = JobFolder.open(folder / "job")
        assert job.state is JobState.FAILED
        assert "The disk is full" in str(job.error)
        full.clear()
        result = quick(config(folder))
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)
        assert not (folder / "job/reserve").exists()


# ---------------------------------------------------------------------- object storage
PROGRAM = """
import json, sys
from evdist.service.jobs import JobError, run
try:
    run(json.loads(sys.argv[1]), through="summarise")
except JobError as error:
    sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def storage():
    """A bucket behind a network that can be cut."""
    with s3_bucket("faults") as url, pytest.MonkeyPatch.context() as patch:
        host, port = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://").split(":")
        proxy = Proxy(host, int(port))
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        s3fs.S3FileSystem.clear_instance_cache()
        yield url, proxy
        proxy.cut()


def remote(folder: Path, url: str, **more) -> dict:
    return {**config(folder), "folder": url, **more}


@pytest.mark.process
class TestObjectStorage:
    def test_of_two_processes_on_one_job_one_works_and_the_other_is_refused(
        self, folder, storage, whole
    ):
        given = remote(folder, f"{storage[0]}/two")
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(programs.run, [["-c", PROGRAM, json.dumps(given)]] * 2))
        for one in both:
            # The second may also come when the first has done: then there is nothing left to do.
            assert one.returncode == 0 or "Another process is running the job" in one.stderr
        assert 0 in [one.returncode for one in both]
        np.testing.assert_array_equal(np.asarray(quick(given).partition.mass), whole)

    def test_an_outage_is_waited_out(self, folder, storage, whole):
        """Cut in the middle of the fit, for longer than s3fs waits of its own."""
        url, proxy = storage
        cut = []

        def listen(news) -> None:
            if news.stage == "fit" and not cut:
                cut.append(time.monotonic())
                proxy.cut()
                threading.Timer(6.0, proxy.mend).start()

        result = quick(remote(folder, f"{url}/outage"), listen=[listen])
        assert time.monotonic() - cut[0] >= 6.0
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)

    def test_a_heart_that_stands_still_is_an_error_that_is_told(self, folder, storage, monkeypatch):
        url, proxy = storage
        monkeypatch.setenv("EVDIST_PATIENCE", "1")
        monkeypatch.setattr("evdist.service.jobs.watch.LEASE_SECONDS", 1.0)
        monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
        monkeypatch.setattr(paths, "_S3_TRIES", 1)

        def listen(news) -> None:
            if news.stage == "fit":
                proxy.cut()
                threading.Event().wait(90)

        try:
            with pytest.raises(JobError, match=r"has not answered for .* s .* Run the job again"):
                quick(remote(folder, f"{url}/heart"), listen=[listen])
        finally:
            proxy.mend()
        monkeypatch.setattr(lease, "LEASE_SECONDS", 1.0)
        assert JobFolder.open(f"{url}/heart").state is JobState.RUNNING  # it could not say more
        quick(remote(folder, f"{url}/heart"))

"""A job that is stopped, at any stage and by anything, goes on by the same call: the same bits."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time

import numpy as np
import programs
import pytest
from jobs.jobs_cases import (
    KilledError,
    Stop,
    blobs,
    config,
    data_file,
    fitted,
    quick,
    run_and_kill,
    stages,
    state,
)

from evdist import JobConfig
from evdist.service.jobs import JobCancelled, JobError, JobFolder, run
from evdist.service.jobs.fitting import keep_model
from evdist.service.jobs.watch import Watch, interrupt
from evdist.stores.encoding import StoreError


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return np.asarray(fitted().credal_partition_.mass)


@pytest.fixture
def folder(tmp_path):
    data_file(tmp_path)
    return tmp_path


def assert_goes_on(folder, whole: np.ndarray) -> None:
    result = quick(config(folder))
    np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)
    assert result.metrics["n_objects"] == len(whole)


STAGES = [("read", 1), ("load", 1), ("validate", 1), ("sample", 1), ("fit", 1), ("fit", 9)]
STAGES += [("summarise", 1)]


class TestInProcess:
    @pytest.mark.parametrize(("stage", "count"), STAGES)
    @pytest.mark.parametrize(
        ("error", "left"), [(KilledError, "failed"), (KeyboardInterrupt, "stopped")]
    )
    def test_at_every_stage(self, folder, whole, stage, count, error, left):
        with pytest.raises(error, match="stopped"):
            quick(config(folder), listen=[Stop(stage, count, error)])
        assert state(folder / "job") == left
        assert_goes_on(folder, whole)

    def test_what_was_done_is_not_done_again(self, folder, whole):
        with pytest.raises(KilledError, match="stopped"):
            quick(config(folder), listen=[Stop("fit", 9)])
        before = stages(folder / "job")
        assert list(before) == ["load", "validate", "sample"]
        later = Stop("never")
        quick(config(folder), listen=[later])
        assert not {"read", "load", "validate", "sample"} & set(later.heard)
        assert later.heard.count("fit") == fitted().n_iter_ - 8, "from the last checkpoint"
        assert {k: v for k, v in stages(folder / "job").items() if k in before} == before

    def test_while_the_model_is_saved(self, folder, whole, monkeypatch):
        def kill(folder: JobFolder, model: object) -> None:
            keep_model(folder, model)
            os.unlink(folder.path("model.json"))
            raise KilledError("stopped")

        monkeypatch.setattr("evdist.service.jobs.fitting.keep_model", kill)
        with pytest.raises(KilledError, match="stopped"):
            quick(config(folder))
        monkeypatch.undo()
        assert_goes_on(folder, whole)

    def test_in_the_report(self, folder):
        with pytest.raises(KeyboardInterrupt, match="stopped"):
            run(config(folder), listen=[Stop("report", error=KeyboardInterrupt)])
        before = stages(folder / "job")
        assert list(before)[-1] == "summarise"
        later = Stop("never")
        assert os.path.exists(run(config(folder), listen=[later]).report)
        assert later.heard == ["report"]

    def test_again_and_again(self, folder, whole):
        for stage, count in STAGES:
            with pytest.raises(KilledError, match="stopped"):
                quick(config(folder), listen=[Stop(stage, count)])
        assert_goes_on(folder, whole)


@pytest.mark.process
class TestKilled:
    """kill -9 of a real process."""

    def test_in_the_middle_of_the_fit(self, folder, whole):
        run_and_kill(config(folder), "fit", 9)
        assert state(folder / "job") == "running"
        assert not JobFolder.open(folder / "job").is_alive()
        assert_goes_on(folder, whole)

    def test_at_random_moments(self, folder, whole):
        """Killed from outside whenever it pleases, twice or until the job is done."""
        rng = random.Random(7)
        program = "import json, sys, evdist; evdist.run(json.loads(sys.argv[1]))"
        for _ in range(2):
            child = programs.start(["-c", program, json.dumps(config(folder))])
            late = time.monotonic() + 60
            while child.poll() is None and time.monotonic() < late:
                if (folder / "job/lock").exists() and JobFolder.open(folder / "job").is_alive():
                    break
                time.sleep(0.01)
            time.sleep(rng.random())
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert_goes_on(folder, whole)


class TestCancelled:
    def test_within_seconds_and_resumed(self, folder, whole):
        """The word is left in the folder; the run sees it while it sweeps."""
        slow = SlowAndCancelled(folder / "job")
        with pytest.raises(JobCancelled, match=r"Job evclus-\w+ was cancelled"):
            quick(config(folder), listen=[slow])
        assert time.monotonic() - slow.asked < 10.0
        assert state(folder / "job") == "cancelled"
        assert_goes_on(folder, whole)

    def test_the_word_is_forgotten_when_the_job_is_run_again(self, folder, whole):
        with pytest.raises(KilledError, match="stopped"):
            quick(config(folder), listen=[Stop("load")])
        JobFolder.open(folder / "job").ask_to_cancel()
        assert_goes_on(folder, whole)

    def test_a_word_that_comes_when_all_is_done_changes_nothing(self, folder, whole, monkeypatch):
        late_signal(monkeypatch, cancelled=True)
        run(config(folder))
        assert state(folder / "job") == "done"
        assert_goes_on(folder, whole)

    def test_ctrl_c_when_all_is_done_is_still_ctrl_c(self, folder, whole, monkeypatch, ctrl_c):
        late_signal(monkeypatch, cancelled=False)
        with pytest.raises(KeyboardInterrupt, match=r"^$"):
            quick(config(folder))
        assert state(folder / "job") == "stopped"
        assert_goes_on(folder, whole)


def late_signal(monkeypatch, *, cancelled):
    """SIGINT on its way while the work ends, once."""
    calm = Watch.calm

    def late(watch):
        monkeypatch.setattr(Watch, "calm", calm)
        watch._cancelled = cancelled
        signal.raise_signal(signal.SIGINT)
        calm(watch)

    monkeypatch.setattr(Watch, "calm", late)


class SlowAndCancelled:
    """A listener that asks for a stop at the first sweep, then sleeps a little at each."""

    def __init__(self, url):
        self.url, self.asked = url, 0.0

    def __call__(self, news):
        if news.stage == "fit":
            if not self.asked:
                JobFolder.open(self.url).ask_to_cancel()
                self.asked = time.monotonic()
            time.sleep(0.2)


class TestTwoRuns:
    def test_of_one_job_at_once_are_refused(self, folder, whole):
        heard: list[BaseException] = []

        def second(news) -> None:
            if news.stage == "fit" and not heard:
                assert JobFolder.open(folder / "job").is_alive()
                try:
                    quick(config(folder))
                except JobError as error:
                    heard.append(error)

        first = quick(config(folder), listen=[second])
        assert "Another process is running the job" in str(heard[0])
        np.testing.assert_array_equal(np.asarray(first.partition.mass), whole)

    def test_one_after_the_other_see_what_the_first_has_done(self, folder):
        """Both have read the manifest; the second must not go by what it read."""
        early = JobFolder.create(JobConfig.of(config(folder)))
        quick(config(folder))
        assert early.stages == {}
        with early.held():
            assert list(early.stages)[-1] == "summarise"

    def test_who_only_looks_does_not_disturb(self, folder, whole):
        """Looks whether a job lives take its lock for an instant; a run waits for that."""
        with pytest.raises(KilledError, match="stopped"):
            quick(config(folder), listen=[Stop("load")])
        job = JobFolder.open(folder / "job")
        job._manifest.state = "running"  # as a killed one says
        over = threading.Event()

        def look() -> None:
            while not over.is_set():
                job.is_alive()

        watchers = [threading.Thread(target=look) for _ in range(2)]
        for thread in watchers:
            thread.start()
        try:
            for _ in range(20):
                with JobFolder.open(folder / "job").held():
                    pass
        finally:
            over.set()
            for thread in watchers:
                thread.join()

    def test_the_lock_is_let_go(self, folder):
        quick(config(folder))
        with JobFolder.open(folder / "job").held():
            with pytest.raises(StoreError, match=r"Another process is running"):
                with JobFolder.open(folder / "job").held():
                    pass
        assert not JobFolder.open(folder / "job").is_alive()


def test_threads_change_no_bit(folder, whole):
    result = quick(config(folder, cluster={"threads": 3}))
    np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)
    assert len(blobs()) == result.metrics["n_objects"]


@pytest.mark.parametrize("known", [True, False])
def test_the_main_thread_is_stopped_also_where_a_signal_has_no_thread(monkeypatch, known):
    if not known:
        monkeypatch.delattr(signal, "pthread_kill")
    stopped = False
    try:
        interrupt(threading.main_thread())
        time.sleep(5)
    except KeyboardInterrupt:
        stopped = True
    assert stopped

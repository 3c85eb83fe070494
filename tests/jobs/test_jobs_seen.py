"""What operators see: tracebacks in the folder, logs as JSON, metrics of living and ended jobs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import dask
import pytest
from jobs.jobs_cases import KilledError, Stop, config, data_file, quick

from evdist.engine.admission import _Book
from evdist.service.jobs import JobError, JobFolder
from evdist.service.monitor.events import ENDS, JOBS, Publisher
from evdist.service.monitor.metrics import JobMetrics


@pytest.fixture
def folder(tmp_path):
    data_file(tmp_path)
    return tmp_path


def test_a_traceback_is_kept_beside_the_sentence(folder):
    with pytest.raises(KilledError, match="stopped"):
        quick(config(folder), listen=[Stop("fit", 2)])
    text = (folder / "job/traceback.txt").read_text()
    assert text.startswith("Traceback (most recent call last)")
    assert "KilledError: stopped" in text
    assert JobFolder.open(folder / "job").error == "stopped"
    with pytest.raises(JobError, match="There is no data at"):
        quick(config(folder, "other", data={"url": str(folder / "no.npy")}))
    assert "FileNotFoundError" in (folder / "other/traceback.txt").read_text()


def test_logs_as_json_name_the_job_in_every_line(folder, monkeypatch):
    monkeypatch.setenv("EVDIST_LOG_FORMAT", "json")
    quick(config(folder))
    job = JobFolder.open(folder / "job")
    lines = [json.loads(line) for line in job.log().splitlines()]
    assert {line["job"] for line in lines} == {job.id}
    assert {line["level"] for line in lines} == {"info"}
    assert any(line["message"].startswith("fit: done") for line in lines)
    assert all(line["time"].endswith("Z") for line in lines)


class Scheduler:
    """What the metrics read of a scheduler."""

    def __init__(self) -> None:
        self.status, self.clients = "running", {"client": None}
        self.events: dict[str, list[tuple[float, dict]]] = {JOBS: [], ENDS: []}
        self.evdist_book = _Book({"a": ("client", 5), "b": ("client", 7)}, {"c": ("client", 9)})

    def log_event(self, topic: str, event: dict) -> None:
        self.events[topic].append((time.time(), event))

    def get_events(self, topic: str) -> list[tuple[float, dict]]:
        return self.events[topic]


def values(scheduler: Scheduler) -> dict[str, float]:
    def samples() -> Iterator[tuple[str, float]]:
        for family in JobMetrics(scheduler).collect():
            for sample in family.samples:
                yield f"{sample.name} {' '.join(sample.labels.values())}".strip(), sample.value

    return dict(samples())


def test_metrics_of_living_and_ended_jobs():
    scheduler = Scheduler()
    told = Publisher(scheduler, "job-1")
    news = {"stage": "fit", "sweep": 3, "max_sweeps": 9, "objective": 0.5, "change": -0.1,
            "rows_per_second": 7.0, "seconds_left": 2.0, "unit": "sweep"}  # fmt: skip
    scheduler.log_event(JOBS, {"job": "job-1", **news})
    found = values(scheduler)
    assert found["evdist_sweep job-1 fit"] == 3
    assert found["evdist_jobs running"] == 2
    assert found["evdist_jobs waiting"] == 1
    assert found["evdist_reserved_bytes"] == 12
    scheduler.evdist_book.inside["gone"] = ("killed client", 100)
    assert values(scheduler)["evdist_reserved_bytes"] == 12
    told.end("fit", True, 4.0, 2)
    told.end("fit", False, 1.0, 0)
    found = values(scheduler)
    assert not [name for name in found if "job-1" in name], "gauges of ended jobs go"
    assert found["evdist_runs_total done"] == found["evdist_runs_total failed"] == 1
    assert found["evdist_run_seconds_total done"] == 4
    assert found["evdist_retries_total"] == 2


def test_the_end_of_a_certificate_is_a_metric(tmp_path, root):
    subprocess.run(
        [sys.executable, root / "deploy/certificates.py", tmp_path, "scheduler"], check=True,
        capture_output=True,
    )  # fmt: skip
    path = str(tmp_path / "dask/tls.crt")
    with dask.config.set({"distributed.comm.tls.scheduler.cert": path}):
        ends = values(Scheduler())["evdist_certificate_expiry_seconds"]
    assert 80 < (ends - time.time()) / 86400 < 100
    assert "evdist_certificate_expiry_seconds" not in values(Scheduler())

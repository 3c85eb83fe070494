"""What must not leak, grow or be said wrongly: secrets, links, lost files, missing buckets."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from jobs.jobs_cases import config, data_file, quick
from s3_bucket import s3_bucket
from typer.testing import CliRunner, Result

from evdist import Client, JobConfig
from evdist.engine.progress import Progress
from evdist.service.cli.app import app
from evdist.service.client.deployment import _parameters
from evdist.service.config import ConfigError
from evdist.service.jobs import JobFolder, run, smoke, wait_for_prefect
from evdist.stores.encoding import StoreError
from flows import artifacts
from flows.stages import whole


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


SECRETS = [
    "s3://key:SECRET@bucket/x.npy",
    "https://user:SECRET@host/x.csv",
    "https://bucket.s3.amazonaws.com/x.csv?X-Amz-Signature=SECRET",
    "https://account.blob.core.windows.net/x.csv?sv=1&sig=SECRET",
    "https://host/x.csv?access_token=SECRET",
]


@pytest.mark.parametrize("url", SECRETS)
@pytest.mark.parametrize("key", ["data", "folder", "links"])
def test_credentials_in_addresses_are_refused_and_not_repeated(url, key):
    values = {"folder": "job", "data": {"url": "x.npy"}, "parameters": {"n_clusters": 2}}
    values |= {key: url if key == "folder" else {"url": url}}
    with pytest.raises(ConfigError, match="holds credentials, which would be kept") as told:
        JobConfig.of(values)
    assert "SECRET" not in str(told.value)


def test_addresses_without_a_right_are_kept():
    for url in ("https://host/x.csv?version=3", "s3://bucket/a@b.npy", "/a:b@c/x.npy"):
        assert JobConfig.of(folder="j", data={"url": url}, parameters={"n_clusters": 2})


def test_many_links_go_through_the_job_folder_and_not_through_prefect(tmp_path):
    links = {"must": [[i, i + 1] for i in range(60_000)], "cannot": [[0, 5]]}
    job = JobConfig.of(
        folder=str(tmp_path / "j"), data={"url": "x.npy"}, parameters={"n_clusters": 2}, links=links
    )
    JobFolder.create(job)
    sent = _parameters(job)
    assert len(json.dumps(sent)) < 500_000  # Prefect refuses 524,288 and more
    received = JobConfig.of(sent["config"])
    assert whole(received, sent["links_in_manifest"]).fingerprint == job.fingerprint
    few = job.model_copy(update={"links": type(job.links)(must=[(0, 1)])})
    assert _parameters(few) == {"config": few.model_dump(mode="json", exclude_none=True)}


def test_lost_numbers_are_not_empty_numbers(tmp_path):
    data_file(tmp_path)
    result = quick(config(tmp_path))
    (tmp_path / "job/metrics.json").unlink()
    with pytest.raises(StoreError, match=r"metrics.json is lost. Run the job again"):
        _ = result.metrics
    assert quick(config(tmp_path)).metrics["n_objects"] == 200


def test_inspect_reads_every_chunk(tmp_path):
    data_file(tmp_path)
    run(config(tmp_path))
    assert invoke("inspect", str(tmp_path / "job")).exit_code == 0
    (chunk,) = (tmp_path / "job/masses.zarr").glob("**/c/0/0")
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    told = invoke("inspect", str(tmp_path / "job"))
    assert told.exit_code == 1
    assert "is damaged" in told.output


def test_a_missing_bucket_is_not_an_empty_storage():
    with s3_bucket("there") as url:
        assert Client(f"{url}/new").jobs() == []
        with pytest.raises(StoreError, match="There is no bucket s3://missing"):
            Client("s3://missing/jobs").jobs()


# ---------------------------------------------------------------------- Prefect's artifacts
def test_artifacts_are_replaced_in_place_and_a_server_that_is_away_stalls_nothing(monkeypatch):
    made, changed, stuck = [], [], threading.Event()

    def create(*args, **options):
        made.append(options["key"])
        return options["key"]

    def update(*args):
        changed.append(args)
        stuck.wait(30)

    monkeypatch.setattr(artifacts, "_SECONDS", 0.05)
    monkeypatch.setattr(artifacts, "_LAST", 0.2)
    for name in ("create_progress_artifact", "create_table_artifact"):
        monkeypatch.setattr(artifacts, name, create)
    monkeypatch.setattr(artifacts, "update_progress_artifact", update)
    listen = artifacts.Artifacts(SimpleNamespace(fingerprint="f" * 64), "fit")  # type: ignore[arg-type]
    began = time.monotonic()
    for sweep in range(1, 200):
        listen(Progress("fit", sweep, 200, objective=1 / sweep, rows_per_second=9.0))
        time.sleep(0.005)
    listen.close()
    assert time.monotonic() - began < 10
    assert len(made) == 2
    assert len(changed) == 1
    assert np.isfinite(changed[0][1])
    monkeypatch.setattr(artifacts, "get_client", None)  # an error, told once
    stuck.set()
    assert listen._thread is not None
    listen._thread.join(10)
    assert not listen._thread.is_alive()


# ---------------------------------------------------------------------- what the chart runs
def test_the_smoke_test_tries_anew_each_time(tmp_path, capsys, monkeypatch):
    """Done once, it must still find out that the scheduler is dead."""
    data_file(tmp_path)
    monkeypatch.setattr("evdist.engine.connect._TIMEOUT", 1.0)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(config(tmp_path)))
    assert smoke.main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["n_objects"] == 200
    assert list((tmp_path / "job").iterdir()) == []
    dead = {"kind": "scheduler", "address": "tcp://127.0.0.1:9"}
    path.write_text(json.dumps(config(tmp_path, cluster=dead)))
    assert smoke.main([str(path)]) == 1
    assert "No Dask scheduler answers" in capsys.readouterr().err


def test_waiting_for_prefect_ends(capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert wait_for_prefect.main(["0"]) == 1
    assert "No Prefect server answers at http://127.0.0.1:9/api" in capsys.readouterr().err

"""Where an operator has set EVDIST_ALLOWED, jobs read and write below it and nowhere else."""

from __future__ import annotations

import os

import numpy as np
import pytest
from jobs.jobs_cases import blobs, config, data_file

from evdist import JobConfig
from evdist.data.dataset import Table, read_contents, write_dataset
from evdist.service.config import ConfigError
from evdist.service.jobs import JobError, JobFolder, run
from evdist.service.jobs.allowed import check_address, check_allowed

REFUSED = "names an address that jobs may not use here"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's place, which is all that jobs may use."""
    (tmp_path / "anna").mkdir()
    monkeypatch.setenv("EVDIST_ALLOWED", f"s3://bucket/evdist/anna, {tmp_path}/anna")
    return tmp_path / "anna"


def test_a_job_inside_runs(home):
    data_file(home)
    assert run(config(home), through="validate").folder.url == str(home / "job")


@pytest.mark.parametrize("key", ["folder", "data", "links", "model", "start", "inputs"])
def test_all_that_a_job_names_is_looked_at(home, key):
    inside, outside = str(home / "x.csv"), "/elsewhere/x.csv"

    def values(url: str) -> dict[str, object]:
        found = {"folder": inside, "data": {"url": inside}, "parameters": {"n_clusters": 2}}
        if key == "inputs":
            del found["data"]
            return {**found, "task": "combine", "inputs": [inside, url]}
        if key == "model":
            return {**found, "task": "predict", "parameters": {}, "model": url}
        return {**found, key: {"url": url} if key in ("data", "links") else url}

    check_allowed(JobConfig.of(values(inside)))
    with pytest.raises(ConfigError, match=REFUSED):
        check_allowed(JobConfig.of(values(outside)))


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/evdist/annabel/x.npy", "s3://bucket/evdist", "s3://other/evdist/anna/x.npy",
        "s3://bucket/evdist/anna/../bert/x.npy", "s3://bucket/evdist/anna/%2e%2e/bert/x.npy",
        "s3://bucket/evdist/anna/%252e%252e/bert/x.npy", "s3://key@bucket/evdist/anna/x.npy",
        "zip://x.csv::s3://bucket/evdist/anna/x.zip", "simplecache::s3://bucket/evdist/anna/x.npy",
        "http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "/etc/passwd",
        "HOME/../bert/x.npy", "HOME/link/x.npy", "local:///etc/passwd",
    ],
)  # fmt: skip
def test_detours_do_not_lead_outside(home, url):
    os.symlink("/etc", home / "link")
    with pytest.raises(ConfigError, match=REFUSED) as told:
        check_address(url.replace("HOME", str(home)), "data.url")
    assert "bucket" not in str(told.value)  # a stranger learns nothing of what others may use


@pytest.mark.parametrize(
    "url",
    ["s3://bucket/evdist/anna", "s3://bucket/evdist/anna/a/x.npy", "HOME/x.npy", "file://HOME/x"],
)
def test_addresses_inside_are_let_through(home, url):
    check_address(url.replace("HOME", str(home)), "data.url")


def test_nothing_is_written_for_a_job_that_is_refused(home):
    np.save(home / "x.npy", blobs(20))
    with pytest.raises(ConfigError, match=REFUSED):
        run({**config(home), "folder": str(home.parent / "bert/job")})
    assert not (home.parent / "bert").exists()


def test_a_manifest_that_names_data_elsewhere_is_refused(home, tmp_path):
    data_file(home)
    run(config(home), through="load")
    table = Table(blobs())
    theirs = write_dataset(table, tmp_path / "theirs.zarr", read_contents(table)).url
    folder = JobFolder.open(str(home / "job"))
    folder._manifest.stages["load"].outputs["data"] = theirs
    folder._write()
    with pytest.raises(JobError, match=f"the manifest {REFUSED}"):
        run(config(home), through="validate")

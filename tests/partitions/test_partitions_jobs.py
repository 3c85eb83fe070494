"""A job in partitions: the bits of the estimator, and no stage that loads all rows."""

from __future__ import annotations

import os

import numpy as np
import pytest
from jobs.jobs_cases import PARAMETERS, config, data_file

from evdist import EVCLUS, run
from evdist.data.dataset import Dataset
from evdist.service.jobs.context import Job
from evdist.service.jobs.scale import Scale
from evdist.service.monitor import page


@pytest.mark.parametrize("scale", [None, "standard"])
def test_a_job_has_the_bits_of_the_estimator(tmp_path, monkeypatch, scale):
    url = data_file(tmp_path)
    monkeypatch.setattr(Job, "X", property(_refused))
    parameters = {**PARAMETERS, "d0": "q0.5", "partitions": 4}
    result = run(config(tmp_path, parameters=parameters, data={"url": url, "scale": scale}))
    there = set(os.listdir(result.folder.url))
    assert there >= {"partitions.zarr", "masses.zarr", "model.json", "report.html"}
    assert not there & {"pairs.zarr", "answer.zarr", "points", "back"}
    rows = Dataset.open(result.folder.path("data.zarr")).rows()
    known = Scale.of_json(result.folder.stages["validate"].outputs["scale"])
    alone = EVCLUS(metric="euclidean", **parameters).fit(rows if known is None else known(rows))
    assert result.partition == alone.credal_partition_
    assert result.metrics["objective"] == alone.objective_
    assert np.array_equal(result.partition.labels(), alone.labels_)


def _refused(job):
    raise AssertionError("all rows were loaded")


def test_the_page_of_the_dashboard_shows_partitions_and_what_they_exchange():
    told = {"step": 1, "steps": 2, "rows": 5, "partitions": 4, "moved": 1200, "received": 2_500_000}
    steps = [{"worker": "tcp://<a>", **told}, {"worker": "tcp://<a>", **told}]
    text = page._owners(steps)
    assert "tcp://&lt;a&gt;" in text and "2,400" in text and "5.0" in text
    assert page._owners([{"worker": "b", "step": 1, "steps": 4, "rows": 5}]) == ""

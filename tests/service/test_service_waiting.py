"""A job that nobody takes: refused jobs say why, queued ones what they wait for."""

from __future__ import annotations

import numpy as np
import pytest

from evdist import Client
from evdist.service.client.waiting import why_queued
from evdist.service.jobs import JobError, JobState

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


def objects(seed: int) -> np.ndarray:
    return np.random.default_rng(1000 + seed).normal(size=(60, 2))


@pytest.mark.parametrize(
    ("api", "deployment", "why"),
    [
        ("", "cluster/nobody", "There is no deployment 'cluster/nobody'"),
        ("http://127.0.0.1:9/api", "cluster/evdist", "No Prefect server answers"),
    ],
)
def test_a_refused_job_has_failed_and_says_why(service, tmp_path, api, deployment, why):
    client = Client(tmp_path, api or service.prefect.api_url, deployment=deployment)
    with pytest.raises(JobError, match=why):
        client.submit(objects(0), n_clusters=2)
    (job,) = Client(tmp_path, service.prefect.api_url).jobs()
    assert job.status is JobState.FAILED
    assert why in str(job.error)
    assert job.waiting is None


def test_a_refused_job_is_queued_when_it_is_submitted_again(service, tmp_path):
    wrong = Client(tmp_path, service.prefect.api_url, deployment="cluster/nobody")
    with pytest.raises(JobError, match="no deployment"):
        wrong.submit(objects(1), n_clusters=2)
    service.close()
    job = Client(tmp_path, service.prefect.api_url).submit(objects(1), n_clusters=2)
    assert job.status is JobState.QUEUED
    service.worker()
    job.wait(200, bar=False)
    assert job.status is JobState.DONE
    assert job.waiting is None


def test_a_queued_job_says_that_no_worker_serves_its_pool_or_that_it_is_paused(service, tmp_path):
    service.prefect.prefect("work-pool", "create", "idle", "--type", "process")
    client = Client(tmp_path, service.prefect.api_url, deployment="cluster/idle")

    def deploy(prefect):
        flow = prefect.read_deployment_by_name("cluster/evdist").flow_id
        prefect.create_deployment(flow_id=flow, name="idle", work_pool_name="idle")

    client._backend.asked(deploy)
    job = client.submit(objects(2), n_clusters=2)
    assert job.waiting == "No worker of the work pool idle is online. It starts when one is."
    service.prefect.prefect("work-pool", "pause", "idle")
    paused = "The work pool idle is paused: prefect work-pool resume idle"
    assert job.waiting == paused
    assert paused in job._repr_html_()
    job.cancel()


def test_a_queued_job_knows_how_many_go_first(service, tmp_path):
    service.close()
    client = Client(tmp_path, service.prefect.api_url)
    jobs = [client.submit(objects(seed), n_clusters=2) for seed in (4, 5)]
    backend = client._backend

    def told(job):
        def ask(prefect):
            (run,) = backend._runs(prefect, job.folder)
            # As if a worker were online: here none may take them.
            prefect.read_workers_for_work_pool = lambda pool: [online]
            try:
                return why_queued(prefect, run)
            finally:
                del prefect.read_workers_for_work_pool

        return backend.asked(ask)

    online = type("Worker", (), {"status": "ONLINE"})()
    assert told(jobs[0]) == "It is the next: it starts when a worker has room."
    assert told(jobs[1]) == "1 run of the queue goes first."
    service.worker()
    for job in jobs:
        job.wait(200, bar=False)

"""A job whose flow run was killed comes back without a client that waits for it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from client.client_cases import kill
from prometheus_client import CollectorRegistry, generate_latest
from service.servers import wait_for
from service.test_service_prefect import LONG, SWEEPS, in_process, objects, sweeping

from evdist.service.client.keeper import look
from evdist.service.jobs import JobState
from evdist.service.monitor.keeper import Keeper

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


def killed(service, seed: int):
    """A job that nobody waits for, and whose flow run was killed."""
    X, given = objects(seed), {**LONG, "max_iter": SWEEPS, "random_state": seed}
    service.worker()
    job = service.client().submit(X, **given)
    sweeping(job)
    kill(job)
    wait_for("the end of the run", lambda: job.status is JobState.STOPPED, 200)
    return job, X, given


def test_a_killed_job_is_queued_again_once_and_ends_with_the_same_bits(service):
    job, X, given = killed(service, 81)
    assert look(service.prefect.api_url, 3).restarted == [job.id]
    again = look(service.prefect.api_url, 3)
    assert again.restarted == again.given_up == []
    wait_for("the job", lambda: job.status is JobState.DONE, 300)
    np.testing.assert_array_equal(np.asarray(job.result().mass), in_process(X, **given))
    assert look(service.prefect.api_url, 3).restarted == []


def test_a_job_that_is_killed_too_often_is_left_alone(service):
    job, _, _ = killed(service, 82)
    found = look(service.prefect.api_url, 0)
    assert (found.restarted, found.given_up) == ([], [job.id])
    assert job.status is JobState.STOPPED


def test_the_metrics_say_who_does_not_answer(service, tmp_path):
    registry = CollectorRegistry()
    keeper = Keeper(service.prefect.api_url, str(tmp_path), 0)
    registry.register(keeper)
    service.worker()

    def told() -> str:
        keeper.look()
        return generate_latest(registry).decode()

    assert "evdist_prefect_ready 1.0" in told()
    assert "evdist_storage_free_bytes" in told()
    # Others that were killed count as online until their heartbeat is missed.
    online = re.compile(r'evdist_prefect_workers\{pool="evdist-process"\} [1-9]')
    wait_for("a worker that is online", lambda: online.search(told()), 60)
    keeper.api_url = "http://127.0.0.1:9/api"
    assert "evdist_prefect_ready 0.0" in told()

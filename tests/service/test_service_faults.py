"""The servers themselves are killed in the middle of a fit; and runs that were deleted."""

from __future__ import annotations

import os
import signal
import subprocess

import numpy as np
import pytest
from service.servers import BIN, wait_for
from service.test_service_prefect import LONG, SWEEPS, in_process, objects, sweeping

from evdist.service.client.deployment import Deployment
from evdist.service.jobs import JobState

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@pytest.mark.parametrize("victim", ["scheduler", "prefect server"])
def test_kill_9_of_a_server_changes_no_bit(service, victim):
    seed = 50 + len(victim)
    X = objects(seed)
    given = {**LONG, "max_iter": SWEEPS, "random_state": seed}
    service.worker()
    job = service.client().submit(X, **given)
    sweeping(job)
    if victim == "scheduler":
        service.dask.replace_scheduler()
    else:
        service.prefect.restart()
    job.wait(400, bar=False)
    np.testing.assert_array_equal(np.asarray(job.result().mass), in_process(X, **given))


def test_a_cancel_is_kept_and_deleted_flow_runs_do_not_block_the_resume(service):
    service.worker()
    job = service.client().submit(objects(70), **LONG, max_iter=100_000, random_state=0)
    sweeping(job)
    job.cancel()
    wait_for("the end", lambda: job.folder.state is JobState.CANCELLED, 60)
    backend = Deployment(service.prefect.api_url)

    def delete(client) -> None:
        for one in backend._runs(client, job.folder):
            wait_for("the flow run", lambda run=one: _ended(client, run.id), 60)
            client.delete_flow_run(one.id)

    backend._asked(delete)
    job.resume()
    sweeping(job)
    job.cancel()
    wait_for("the end", lambda: job.folder.state is JobState.CANCELLED, 60)


def test_a_prefect_worker_in_the_background_of_a_script_ends_with_sigterm(service, tmp_path):
    """As flows/README.md starts it: the shell of a script lets it ignore SIGINT."""
    log = tmp_path / "worker.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            ["env", "--default-signal=INT", str(BIN / "prefect"), "worker", "start",
             "--pool", "evdist-process", "--type", "process"],
            stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **service.prefect.env},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )  # fmt: skip
    try:
        wait_for("the worker", lambda: b"started" in log.read_bytes(), process=child)
        child.terminate()
        assert child.wait(60) == 0
    finally:
        child.kill()


def _ended(client, run) -> bool:
    state = client.read_flow_run(run).state
    return state is not None and state.is_final()

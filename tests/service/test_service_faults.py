"""The servers themselves are killed in the middle of a fit."""

from __future__ import annotations

import os
import signal
import subprocess

import numpy as np
import pytest
from service.servers import BIN, wait_for
from service.test_service_prefect import LONG, SWEEPS, in_process, objects, sweeping

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

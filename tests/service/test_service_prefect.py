"""From the client through Prefect, Dask and S3 to the answer, and what survives when they die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from contextlib import nullcontext

import numpy as np
import programs
import pytest
from prefect.states import Running
from service.servers import wait_for

from evdist import EVCLUS, Client
from evdist.service.client.deployment import Deployment
from evdist.service.jobs import JobCancelled, JobFolder, JobResult, JobState
from evdist.stores.paths import read_bytes

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

VICTIMS = ("flow", "client and prefect worker", "dask worker")
#: A fit that takes a while: it never meets its stopping rule.
LONG = {
    "n_clusters": 3, "metric": "euclidean", "n_dissimilarities": 30, "tol": 0.0, "d0": "q0.5",
}  # fmt: skip
#: Sweeps of a fit in which something is killed: it takes several seconds.
SWEEPS = 80


def objects(seed: int, n: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) + 4.0 * rng.integers(0, 3, (n, 1))


def in_process(X: np.ndarray, **parameters) -> np.ndarray:
    short = parameters.get("tol") == 0
    with pytest.warns(match="did not converge") if short else nullcontext():
        return EVCLUS(**parameters).fit(X).credal_partition_.mass


def sweeping(job, sweep: int = 3):
    """Wait until the fit is under way; its news."""

    def look():
        assert job.status not in (JobState.FAILED, JobState.DONE), (job.status, job.error)
        news = job.folder.progress()
        return news if news and news.get("stage") == "fit" and news["sweep"] >= sweep else None

    return wait_for("the fit", look, 240)


def tasks_at_work(dashboard: str) -> int:
    with urllib.request.urlopen(f"{dashboard}/json/counts.json", timeout=5) as reply:
        return json.load(reply)["processing"]


def artifact_kinds(api_url: str) -> set[str]:
    wanted = urllib.request.Request(
        f"{api_url}/artifacts/filter", b"{}", {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(wanted, timeout=10) as reply:
        return {artifact["type"] for artifact in json.load(reply)}


def test_two_jobs_at_once_end_with_the_bits_of_fits_in_process(service):
    service.worker()
    client = service.client()
    given = {"n_clusters": 3, "n_dissimilarities": 30, "random_state": 1}
    jobs = {seed: client.submit(objects(seed), **given) for seed in (0, 1)}
    assert client.submit(objects(0), **given).url == jobs[0].url  # found, not run twice
    for seed, job in jobs.items():
        job.wait(300, bar=False)
        expected = in_process(objects(seed), **given)
        np.testing.assert_array_equal(np.asarray(job.result().mass), expected)
        assert job.metrics["n_objects"] == len(expected)
        stages = {"load", "validate", "sample", "fit", "summarise", "report"}
        assert set(job.folder.stages) == stages
        assert "fit: done" in job.logs()
    assert {job.id for job in client.jobs()} >= {job.id for job in jobs.values()}
    # A job is done before its flow has shown all of it.
    kinds = {"progress", "table", "markdown", "image"}
    wait_for("artifacts", lambda: kinds <= artifact_kinds(service.prefect.api_url), 60)


@pytest.mark.parametrize(
    ("flow", "algorithm", "given"),
    [
        ("bootstrap", "bootclus", {"n_bootstrap": 20, "covariance_models": "EII"}),
        ("nn_train", "nnevclus", {"max_iter": 20, "n_init": 1, "device": "cpu", "d0": "q0.5"}),
    ],
)
def test_algorithms_have_flows_of_their_own(service, flow, algorithm, given):
    service.worker()
    X = objects(5, 300)
    client = Client(service.storage, service.prefect.api_url, deployment=f"{flow}/evdist")
    job = client.submit(X, algorithm, n_clusters=3, random_state=0, **given)
    job.wait(240, bar=False)
    assert job.result().n_objects == len(X)
    assert job.model().predict(X[:5]).shape == (5,)


def flow_run(service, flow: str, **parameters) -> None:
    """Run a deployment to its end."""
    service.worker()
    given = json.dumps(parameters)
    said = service.prefect.prefect(
        "deployment", "run", f"{flow}/evdist", "--params", given, "--watch"
    )
    assert "Completed" in said


def test_a_grid_is_compared_and_the_best_kept(service):
    X = objects(6, 300)
    data = {"url": service.client().upload(X).url}
    folder = f"{service.storage}/grids/a"
    config = {"folder": folder, "data": data, "parameters": {"n_clusters": 2, "d0": "q0.5"}}
    flow_run(service, "sweep", config=config, n_clusters=[2, 3], seeds=[0, 1])
    found = json.loads(read_bytes(f"{folder}/sweep.json"))
    assert len(found["jobs"]) == 4
    assert found["best"] == found["jobs"][0]["folder"]
    assert found["jobs"][0]["n_clusters"] == 3  # as many as there are
    assert JobFolder.open(found["best"]).state is JobState.DONE


def test_growing_data_are_fitted_again_from_where_they_were(service):
    X, client = objects(7, 400), service.client()
    folder = f"{service.storage}/nights"
    for night, n in (("one", 300), ("two", 400)):
        data = {"url": client.upload(X[:n]).url}
        given = {"folder": folder, "data": data, "parameters": {"n_clusters": 3, "d0": "q0.5"}}
        flow_run(service, "nightly", config=given, name=night)
    first, second = (JobFolder.open(f"{folder}/{night}") for night in ("one", "two"))
    assert first.config.start is None
    assert second.config.start == first.url
    assert JobResult(second).partition.n_objects == 400
    assert JobResult(second).metrics["converged"]


def test_users_take_turns_in_the_queue_of_the_server(service, tmp_path):
    server = Deployment(service.prefect.api_url)
    # In a pool without a worker, what is queued stays queued.
    service.prefect.prefect("work-pool", "create", "turns", "--type", "process")
    flow = server.asked(lambda client: client.read_deployment_by_name("cluster/evdist")).flow_id
    server.asked(lambda client: client.create_deployment(flow, "turns", work_pool_name="turns"))
    data = Client(tmp_path).upload(objects(12, 50))

    def submit(user: str, n: int) -> None:
        client = Client(tmp_path, server.api_url, deployment="cluster/turns", user=user)
        for k in range(n):
            client.submit(data, n_clusters=2, random_state=1000 * ord(user[0]) + k)

    def queue() -> list:
        """Flow runs in the order in which a worker gets them."""
        found = server.asked(lambda client: client.get_scheduled_flow_runs_for_work_pool("turns"))
        return [entry.flow_run for entry in found]

    def users() -> list[str]:
        return [tag[12:] for run in queue() for tag in run.tags if tag.startswith("evdist-user:")]

    submit("anna", 4)
    submit("ben", 2)
    waiting = users()
    assert sorted(waiting[:2]) == sorted(waiting[2:4]) == ["anna", "ben"]
    assert waiting[4:] == ["anna", "anna"]
    for run in queue()[:4]:  # the first two rounds begin
        server.asked(lambda client, run=run: client.set_flow_run_state(run.id, Running(), True))
    submit("carla", 2)
    waiting = users()
    assert sorted(waiting[:2]) == sorted(waiting[2:]) == ["anna", "carla"]


def test_a_cancel_stops_the_work_on_dask_within_ten_seconds_and_is_kept(service):
    service.worker()
    job = service.client().submit(objects(20), **LONG, max_iter=100_000, random_state=0)
    sweeping(job)
    began = time.monotonic()
    job.cancel()
    # Its connection to Dask is closed before the folder says so.
    wait_for("the end", lambda: job.folder.state is JobState.CANCELLED, 60)
    assert time.monotonic() - began < 10
    with pytest.raises(JobCancelled, match="was cancelled"):
        job.wait(60, bar=False)
    last = job.folder.progress()
    time.sleep(3)
    assert job.folder.progress() == last  # no process works on or tells anything
    assert tasks_at_work(service.dask.dashboard) == 0
    delete_flow_runs(Deployment(service.prefect.api_url), job)  # they do not block the resume
    job.resume()
    sweeping(job)
    job.cancel()
    wait_for("the end", lambda: job.folder.state is JobState.CANCELLED, 60)


def delete_flow_runs(backend: Deployment, job) -> None:
    """As a person does who clears up on Prefect's pages."""

    def ended(client, run) -> bool:
        state = client.read_flow_run(run).state
        return state is not None and state.is_final()

    def delete(client) -> None:
        for one in backend._runs(client, job.folder):
            wait_for("the flow run", lambda run=one: ended(client, run.id), 60)
            client.delete_flow_run(one.id)

    backend.asked(delete)


@pytest.mark.parametrize("victim", VICTIMS)
def test_kill_9_in_the_middle_of_the_fit_changes_no_bit(service, victim):
    seed = 30 + VICTIMS.index(victim)
    X = objects(seed)
    given = {**LONG, "max_iter": SWEEPS, "random_state": seed}
    worker = service.worker()
    if victim == "client and prefect worker":
        job, other = submitted_elsewhere(service, X, given)
        sweeping(job)
        for process in (other, worker):
            process.kill()
            process.wait()
        other.stdout.close()
        service.worker()  # as its supervisor would
    else:
        job = service.client().submit(X, **given)
        news = sweeping(job)
        pids = {"dask worker": service.dask.workers[0].pid, "flow": news["pid"]}
        os.kill(pids[victim], signal.SIGKILL)
    job.wait(400, bar=False)
    np.testing.assert_array_equal(np.asarray(job.result().mass), in_process(X, **given))
    if victim == "dask worker":
        service.dask.workers.pop(0).wait()
        service.dask.start_worker()  # for the tests that follow


def submitted_elsewhere(service, X: np.ndarray, given: dict):
    """A job that a client in another process submits and waits for; that process."""
    script = (
        "import sys, json, numpy as np\n"
        "from evdist import Client\n"
        "job = Client(sys.argv[1], sys.argv[2]).submit(np.load(sys.argv[3]), "
        "**json.loads(sys.argv[4]))\n"
        "print(job.id, flush=True)\n"
        "job.wait()\n"
    )
    path = service.prefect.folder / "client.npy"
    np.save(path, X)
    other = programs.start(
        ["-c", script, service.storage, service.prefect.api_url, path, json.dumps(given)],
        stdout=subprocess.PIPE,
    )
    return service.client().job(other.stdout.readline().strip()), other

"""The same end-to-end job with Prefect on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import programs
import psutil
import pytest
from service.postgres import postgres, postgres_binaries
from service.servers import prefect_server

from evdist import EVCLUS, Client
from evdist.service.jobs import JobError, JobState

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    if postgres_binaries() is None:
        pytest.skip("needs PostgreSQL (Debian: apt-get install postgresql), which is absent")
    with postgres() as url:
        yield url


def test_a_job_through_prefect_on_postgresql(database, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2)) + 6 * np.repeat([[0], [1], [2]], 100, 0)
    given = {"n_clusters": 3, "random_state": 0}
    engine = programs.command("-m", "prefect.engine")
    with prefect_server(tmp_path, database, engine) as prefect, prefect.worker({}):
        job = Client(tmp_path / "storage", prefect.api_url).submit(X, **given)
        job.wait(300, bar=False)
        expected = EVCLUS(**given).fit(X).credal_partition_.mass
        np.testing.assert_array_equal(np.asarray(job.result().mass), expected)


def test_a_lost_database_is_named_and_the_job_is_not_queued_for_ever(tmp_path):
    """The folder of the job that was refused says why."""
    storage, X = tmp_path / "storage", np.random.default_rng(0).normal(size=(30, 2))
    if postgres_binaries() is None:
        pytest.skip("needs PostgreSQL (Debian: apt-get install postgresql), which is absent")
    with postgres() as url, prefect_server(tmp_path, url) as prefect:
        port = url.rpartition(":")[2].partition("/")[0]
        for one in psutil.process_iter(["name", "cmdline"]):
            if one.info["name"] == "postgres" and {"-p", port} <= set(one.info["cmdline"] or ()):
                one.kill()
        began = time.monotonic()
        client = Client(storage, prefect.api_url)
        with pytest.raises(JobError, match="answers, but its database does not"):
            client.submit(X, n_clusters=2)
        assert time.monotonic() - began < 15
        (job,) = Client(storage).jobs()
        assert job.status is JobState.FAILED
        assert "database" in str(job.error)

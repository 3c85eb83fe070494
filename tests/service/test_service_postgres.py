"""The same end-to-end job with Prefect on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import programs
import pytest
from service.postgres import postgres, postgres_binaries
from service.servers import prefect_server

from evdist import EVCLUS, Client

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

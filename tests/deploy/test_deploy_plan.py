"""`evdist plan`: what a cluster must have for a job, and values for the chart."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from chart_render import VALUES, defaults, merged, refusals, render_values
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evdist.engine.admission import _enter
from evdist.evclus.memory import projected
from evdist.kernels.sparse_rows import WORDS
from evdist.service.cli import app
from evdist.service.jobs.plan import Plan, seconds_per_row

GIB = 1 << 30


def test_the_example_of_the_page() -> None:
    plan = Plan.of(10**8, 64, 20)
    assert (plan.focal_sets, plan.pairs) == (22, 100)
    assert plan.data == 25_600_000_000
    # Masses are on every worker, pairs are shared, and both fit with room to spare.
    need = projected(10**8, 100, 22, workers=plan.workers)
    assert need.total + plan.data < plan.worker_need < plan.worker_limit
    assert plan.workers == 2


@pytest.mark.parametrize(("k", "f", "low", "high"), [(100, 6, 1.1, 2.4), (100, 12, 1.6, 3.2)])
def test_time_is_near_what_was_measured(k: int, f: int, low: float, high: float) -> None:
    """docs/evclus-speed.md: 1.1 to 1.4 and 2.3 to 2.6 microseconds; docs/sizing.md has more."""
    assert low < seconds_per_row(k, f) * 1e6 < high


def test_many_clusters_are_lists_whose_size_does_not_know_them() -> None:
    fifty, thousand = Plan.of(10**8, 64, 50), Plan.of(10**8, 64, 1000)
    assert (thousand.focal_sets, thousand.words) == (1002, WORDS)
    for size in ("worker_limit", "run_limit", "storage", "sweep_seconds", "moved"):
        assert getattr(thousand, size) == getattr(fifty, size)
    # Sets of two clusters are not lists.
    assert Plan.of(10**6, 8, 50, focal_sets="pairs").words == 52 + 50 * 49 // 2
    # docs/decisions/many-clusters.md: 7.3 to 8.5 microseconds.
    assert 6 < seconds_per_row(100, WORDS, lists=True) * 1e6 < 9


@given(
    n=st.integers(10**3, 10**10),
    d=st.integers(1, 10**4),
    c=st.integers(1, 60),
    workers=st.integers(1, 500),
)
def test_more_of_anything_never_costs_less(n: int, d: int, c: int, workers: int) -> None:
    plan = Plan.of(n, d, c, workers=workers)
    for more in (
        Plan.of(n + 1, d, c, workers=workers),
        Plan.of(n, d + 1, c, workers=workers),
        Plan.of(n, d, c + 1, workers=workers),
    ):
        for size in ("worker_limit", "scheduler_limit", "run_limit", "storage", "sweep_seconds"):
            assert getattr(more, size) >= getattr(plan, size)
    more = Plan.of(n, d, c, workers=workers + 1)
    assert more.worker_need <= plan.worker_need
    assert more.compute_seconds < plan.compute_seconds


@pytest.mark.process
def test_the_values_are_good_ones_and_the_chart_takes_them(tmp_path: Path) -> None:
    mine = yaml.safe_load((VALUES / "minimal.yaml").read_text())
    plan = Plan.of(10**8, 64, 20, threads=16)
    values = merged(mine, yaml.safe_load(plan.values()))
    assert refusals(merged(defaults(), values)) == []
    chart = render_values(values, tmp_path)
    spec = chart["Deployment", "evdist-worker"]["spec"]
    assert spec["replicas"] == plan.workers
    limits = spec["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "16", "memory": f"{plan.worker_limit // GIB}Gi"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"objects": 0}, "objects must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"clusters": 30, "focal_sets": "full"}, "focal sets are too many"),
        ({"focal_sets": "some"}, "focal_sets must be one of"),
        ({"network": 0.0}, "network must be more than 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Plan.of(**{"objects": 1000, "features": 2, "clusters": 3, **wrong})


class TestTheCommand:
    ARGUMENTS = ("plan", "--objects", "1e8", "--features", "64", "--clusters", "20")

    def test_tells_memory_storage_time_and_values(self) -> None:
        done = CliRunner().invoke(app, self.ARGUMENTS)
        assert done.exit_code == 0, done.output
        for words in ("memory per worker", "storage", "time per full sweep", "replicas: 2"):
            assert words in done.output

    def test_writes_the_values_to_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "size.yaml"
        done = CliRunner().invoke(app, [*self.ARGUMENTS, "--values", str(file)])
        assert done.exit_code == 0, done.output
        assert yaml.safe_load(file.read_text())["dask"]["workers"]["replicas"] == 2

    def test_answers_machines(self) -> None:
        done = CliRunner().invoke(app, [*self.ARGUMENTS, "--json"])
        found = json.loads(done.output)
        assert found["workers"] == 2
        assert found["worker_limit"] % GIB == 0

    @pytest.mark.parametrize("number", ["many", "1.5", "inf", "nan"])
    def test_wants_whole_numbers(self, number: str) -> None:
        done = CliRunner().invoke(app, ["plan", "--objects", number, "--features", "2", "-c", "3"])
        assert done.exit_code == 2
        assert "needs a whole number" in done.output


@pytest.mark.parametrize("jobs", [1, 3, 8])
def test_as_many_jobs_are_let_in_as_planned(jobs: int) -> None:
    plan = Plan.of(10**7, 32, 10, jobs=jobs)
    worker = SimpleNamespace(
        address="tcp://w", memory_limit=plan.worker_limit, status=SimpleNamespace(name="running")
    )
    scheduler = SimpleNamespace(workers={"w": worker}, clients={"me": None})
    told = [_enter(f"{i}", "me", plan.job_need, dask_scheduler=scheduler) for i in range(jobs)]
    assert told == [""] * jobs
    values = yaml.safe_load(plan.values())
    assert values["prefect"]["worker"]["limit"] == jobs
    together = f"memory: {jobs * plan.run_limit // GIB}Gi"
    assert (together in plan.values().split("worker.type process")[-1]) or jobs == 1


@pytest.mark.process
def test_a_worker_that_runs_jobs_itself_has_the_resources_of_the_plan(tmp_path: Path) -> None:
    mine = yaml.safe_load((VALUES / "process-s3.yaml").read_text())
    plan = Plan.of(10**7, 32, 10)
    chart = render_values(merged(mine, yaml.safe_load(plan.values())), tmp_path)
    pod = chart["Deployment", "prefect-worker"]["spec"]["template"]["spec"]
    limits = pod["containers"][0]["resources"]["limits"]
    assert limits["memory"] == f"{plan.run_limit // GIB}Gi"
    sizes = [volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if "emptyDir" in volume]
    wanted = yaml.safe_load(plan.values())
    assert sizes == [wanted["prefect"]["runs"]["scratch"]]
    assert f"--limit={plan.jobs}" in pod["containers"][0]["args"]


def test_in_partitions_nothing_but_the_workers_grows_with_the_objects():
    small, large = (Plan.of(n, 64, 20, workers=100, partitions=True) for n in (10**8, 10**9))
    assert large.run_need == small.run_need and large.scheduler_need == small.scheduler_need
    share = [plan.worker_need - plan.worker_least for plan in (small, large)]
    assert share[1] == pytest.approx(10 * share[0], rel=0.1)


def test_in_partitions_more_workers_need_less_each():
    few, many = (Plan.of(10**9, 64, 20, workers=w, partitions=True) for w in (50, 100))
    assert many.worker_need < 0.6 * few.worker_need and many.moved <= few.moved
    assert many.worker_need < 0.1 * Plan.of(10**9, 64, 20, workers=100).worker_need

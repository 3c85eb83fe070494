"""Fixtures and settings shared by the whole suite."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import programs
import pytest
from hypothesis import HealthCheck, settings
from kept import end_all, kept

if TYPE_CHECKING:
    from distributed import Client

# Figures are drawn into files; a machine without a screen must not matter. Set before any test
# imports matplotlib.
os.environ["MPLBACKEND"] = "Agg"
# The suite runs in more processes than there are cores: threads of BLAS and OpenMP (PyTorch,
# scikit-learn), which start by themselves for small matrices too, would wait for each other, and
# OpenMP's keep their cores busy while they wait. Set before NumPy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

ROOT = Path(__file__).resolve().parents[1]

#: Files that `make test-fast` leaves out beside the tests that start processes: each takes more
#: than six seconds. They are marked `slow`.
SLOW = (
    "*/test_*_sklearn.py",
    "bootclus/test_bootclus_lazy.py",
    "cli/test_cli_commands.py",
    "egmm/test_egmm.py",
    "eknn/test_eknn_network.py",
    "estimators/test_estimators_shepard.py",
    "evclus/test_evclus_confirm.py",
    "evclus/test_evclus_constraints.py",
    "evclus/test_evclus_laws.py",
    "evclus/test_evclus_objects.py",
    "evclus/test_evclus_outlying.py",
    "evclus/test_many_clusters.py",
    "evclus/test_many_stored.py",
    "features/test_features_links.py",
    "gpu/*",
    "jobs/test_jobs_algorithms.py",
    "jobs/test_jobs_config_fuzz.py",
    "jobs/test_jobs_fuzz.py",
    "jobs/test_jobs_keeping.py",
    "jobs/test_jobs_run.py",
    "jobs/test_jobs_stops.py",
    "jobs/test_jobs_strangers.py",
    "jobs/test_jobs_tasks.py",
    "kernels/test_kernels_sweep.py",
    "metrics/test_combine.py",
    "mixture/test_mixture_em.py",
    "nnevclus/test_nnevclus_lazy.py",
    "nnevclus/test_nnevclus_many.py",
    "nnevclus/test_nnevclus_training.py",
    "partitions/test_partitions_fit.py",
    "partitions/test_partitions_near.py",
    "plot/test_report.py",
    "select/test_select.py",
    "service/test_service_warm.py",
    "solvers/test_solvers_stop.py",
    "stores/test_stores_pairs.py",
    "stores/test_stores_s3.py",
    "test_docs.py",
    "test_progress.py",
)

#: Folders whose tests start servers of Prefect, S3 or Postgres, or install the package.
SERVERS = ("tests/service/", "tests/deploy/")
#: What a file says whose tests run on Dask workers.
CLUSTERS = ("two_workers", "fault_cluster", "LocalCluster")

# The first call of a compiled kernel takes seconds, so no example has a deadline. The examples are
# the same in every run; HYPOTHESIS_PROFILE=explore draws new and more ones.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", parent=settings.get_profile("ci"), derandomize=False, max_examples=500
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of data sets and reference values beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the data folder ../shared, which is absent")
    return folder


@cache
def _starts(file: str) -> str:
    """What the tests of a file start, by its path in the checkout: servers, workers, processes."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if "mark.process" not in text:
        return "nothing"
    if file.startswith(SERVERS):
        return "servers"
    return "workers" if any(word in text for word in CLUSTERS) else "processes"


def _group(file: str) -> str:
    """The group of a file's tests; one process runs a group, one test after another.

    Tests that start servers are one group, those with Dask workers, most of which share the cluster
    of `two_workers`, another. Every other file is a group of its own.
    """
    started = _starts(file)
    return started if started in ("servers", "workers") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out groups. Not by xdist's own marks of groups: pytest 9.2 lets them have no effect."""
    from xdist.scheduler import LoadFileScheduling  # only where pytest-xdist is there

    class Groups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(super()._split_scope(nodeid))

        def schedule(self) -> None:
            """The first groups are for the first processes, not for those that came up first."""
            by_number = sorted(self.nodes, key=lambda node: int(node.gateway.id.removeprefix("gw")))
            self.assigned_work = {node: self.assigned_work[node] for node in by_number}
            super().schedule()

    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow files; where there are processes to share groups out to, the longest go first."""
    size = Counter(_group(item.nodeid.split("::")[0]) for item in items)
    for item in items:
        file = item.path.relative_to(ROOT / "tests").as_posix()
        if any(fnmatch(file, pattern) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)

    def order(item: pytest.Item) -> tuple[int, int]:
        file = item.nodeid.split("::")[0]
        slow = item.get_closest_marker("slow") is not None
        # Of the files, slow ones before those with deadlines: the first is begun by the process of
        # low priority. What is short goes last and fills up.
        first = {"servers": 0, "workers": 1, "processes": 3, "nothing": 4}[_starts(file)]
        return 2 if slow and first > 2 else first, -size[_group(file)]

    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=order)


def pytest_configure(config: pytest.Config) -> None:
    """The third process of tests and those after it have low priority.

    The first two run the tests that kill workers, which have deadlines.
    """
    programs.own()  # the first process of the run does, before it starts others
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") not in ("gw0", "gw1"):
        os.nice(10)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Where one process runs a group after another, what the group shares ends with it."""
    if nextitem is not None and "PYTEST_XDIST_WORKER" in os.environ:
        ended, begins = (_group(one.nodeid.split("::")[0]) for one in (item, nextitem))
        if ended != begins:
            end_all()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    end_all()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A client of two Dask workers, for all tests that leave them alive and as they were."""
    from dask_cluster import workers  # Dask takes a second to load

    return kept("two workers", lambda: workers(2, tmp_path_factory.mktemp("dask")))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT as it is at a terminal, for this process and those it starts.

    A shell that starts the suite in the background (`nohup make test &`) has it ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

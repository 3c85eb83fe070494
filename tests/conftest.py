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

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from distributed import Client

# Figures are drawn into files; a machine without a screen must not matter. Set before any test
# imports matplotlib.
os.environ["MPLBACKEND"] = "Agg"
# The suite runs in as many processes as there are cores: threads of BLAS, which it starts by itself
# for small matrices too, would wait for each other. Set before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]

#: Files that `make test-fast` leaves out beside the tests that start processes: each takes more
#: than ten seconds. They are marked `slow`.
SLOW = (
    "*/test_*_sklearn.py",
    "cli/test_cli_commands.py",
    "eknn/test_eknn_network.py",
    "features/test_features_links.py",
    "gpu/*",
    "jobs/test_jobs_algorithms.py",
    "jobs/test_jobs_config_fuzz.py",
    "jobs/test_jobs_fuzz.py",
    "jobs/test_jobs_stops.py",
    "jobs/test_jobs_tasks.py",
    "kernels/test_kernels_sweep.py",
    "mixture/test_mixture_em.py",
    "metrics/test_combine.py",
    "nnevclus/test_nnevclus_training.py",
    "plot/test_report.py",
    "test_docs.py",
)

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


#: Groups of files that one process runs one after another; they go first, in this order, since
#: they take longest. Tests that kill workers and servers have deadlines, which many of them at once
#: could break: so there are few such groups, and beside them run tests that only compute.
GROUPS = {
    "prefect": ("service/test_service_prefect.py",),
    "workers": (
        "blocks/test_blocks_cluster.py",
        "blocks/test_blocks_faults.py",
        "bootclus/test_bootclus_cluster.py",
        "client/*",
        "cli/test_cli_process.py",
        "ecm/test_ecm_cluster.py",
        "gpu/test_gpu_workers.py",
        "jobs/test_jobs_faults.py",
        "nnevclus/test_nnevclus_ranks.py",
        "partitions/test_partitions_workers.py",
    ),
    "servers": ("service/*", "deploy/test_deploy_processes.py"),
}


@cache
def _group(file: str) -> tuple[int, str]:
    """Place in the order, and name, of the group of a file; by its path in the checkout.

    After the groups above come the files with tests that start processes, then those that
    `make test-fast` leaves out, then all others.
    """
    name = file.removeprefix("tests/")
    for place, (group, patterns) in enumerate(GROUPS.items()):
        if any(fnmatch(name, pattern) for pattern in patterns):
            return place, group
    text = (ROOT / file).read_text(encoding="utf-8")
    slow = any(fnmatch(name, pattern) for pattern in SLOW)
    return len(GROUPS) + (0 if "mark.process" in text else 1 if slow else 2), file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out groups. Not by xdist's own marks of groups: pytest 9.2 lets them have no effect."""
    from xdist.scheduler import LoadFileScheduling  # only where pytest-xdist is there

    class Groups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(super()._split_scope(nodeid))[1]

    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow files; where there are processes to share groups out to, the longest go first."""
    groups = [_group(item.nodeid.split("::")[0]) for item in items]
    size = Counter(groups)
    for item in items:
        file = item.path.relative_to(ROOT / "tests").as_posix()
        if any(fnmatch(file, pattern) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)
    if "PYTEST_XDIST_WORKER" in os.environ:
        order = sorted(range(len(items)), key=lambda i: (groups[i][0], -size[groups[i]]))
        items[:] = [items[i] for i in order]


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of two Dask workers, for all tests that leave them alive and as they were."""
    from dask_cluster import workers  # Dask takes a second to load

    with workers(2, tmp_path_factory.mktemp("dask")) as client:
        yield client


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT as it is at a terminal, for this process and those it starts.

    A shell that starts the suite in the background (`nohup make test &`) has it ignored.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

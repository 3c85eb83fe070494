"""Windows lacks much of what Linux has: the package needs none of it to be imported and to fit.

Nothing here runs on Windows or macOS; what they lack is taken away.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evdist.stores import paths

#: After the packages that evdist stands on, which have their own ways on each system.
LOADED = "import numpy, scipy.stats, sklearn.cluster, pandas, numba, dask.array, distributed, zarr"
TAKEN = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix"):
    sys.modules[name] = None
for name in ("pthread_kill", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGALRM",
             "alarm", "setitimer", "pthread_sigmask", "sigwait", "pause"):
    delattr(signal, name)
for name in ("fork", "getuid", "geteuid", "getgid", "sched_getaffinity", "sched_setaffinity",
             "getpgid", "setsid", "killpg", "uname", "getloadavg", "O_DIRECTORY",
             "posix_fadvise", "sync"):
    delattr(os, name)
"""
FIT = """
import numpy as np
from evdist import EVCLUS, ECM, Client, CredalPartition, JobConfig, run
import evdist.data.encode, evdist.features, evdist.plot, evdist.service.cli.here
import evdist.service.jobs.watch, evdist.service.client.background
X = np.random.default_rng(0).normal(size=(60, 2)) + 9 * np.eye(2)[np.arange(60) % 2]
assert (np.bincount(EVCLUS(2, random_state=0).fit(X).labels_) == 30).all()
ECM(2, random_state=0).fit(X)
np.save("x.npy", X)
done = run(JobConfig(folder="job", data={"url": "x.npy"}, parameters={"n_clusters": 2}))
assert done.metrics["n_objects"] == 60
"""


@pytest.mark.process
def test_nothing_of_linux_alone_is_needed_to_import_and_to_fit(tmp_path: Path, root: Path) -> None:
    code = "\n".join([LOADED, TAKEN, FIT])
    paths_ = {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path, env=os.environ | paths_, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_where_folders_cannot_be_opened_files_alone_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, int]] = []
    real = os.open

    def watched(path: str, flags: int, *more: int) -> int:
        opened.append((os.path.basename(path), flags))
        return real(path, flags, *more)

    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(paths.os, "open", watched)
    paths.sync(tmp_path)
    assert {name for name, _ in opened} == {tmp_path.name, "file"}
    opened.clear()
    # Only for this call: pathlib asks for the name, too.
    found = [tmp_path, tmp_path / "file"]
    monkeypatch.setattr(paths.os, "name", "nt")
    for one in map(str, found):
        paths._flush(one)
    assert opened == [("file", os.O_RDWR)]

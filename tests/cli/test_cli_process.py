"""The command as a process of its own: Ctrl-C leaves a job that the same command finishes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from client.client_cases import SLOW, alone, blobs

from evdist import CredalPartition
from evdist.service.jobs import JobFolder

pytestmark = pytest.mark.process
EVDIST = str(Path(sys.executable).parent / "evdist")


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [EVDIST, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sweeping(folder: Path) -> bool:
    if not (folder / "manifest.json").exists():
        return False
    news = JobFolder.open(folder).progress()
    return news is not None and news.get("stage") == "fit" and news["sweep"] > 4


def test_ctrl_c_leaves_a_job_that_the_same_command_finishes(tmp_path, ctrl_c):
    Y = blobs(2500)
    np.save(tmp_path / "y.npy", Y)
    words: list[object] = ["cluster", tmp_path / "y.npy", "--out", tmp_path / "job", "--threads", 1]
    for name, value in SLOW.items():
        words += ["--set", f"{name}={json.dumps(value)}"]
    first = start(*words)
    late = time.monotonic() + 100
    while not sweeping(tmp_path / "job"):
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < late
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=30)
    assert first.returncode == 130, said
    assert "Stopped. The same command resumes where it stopped." in said
    assert "Traceback" not in said
    assert JobFolder.open(tmp_path / "job").state == "stopped"

    second = start(*words, "--json")
    answer, said = second.communicate(timeout=110)
    assert second.returncode == 0, said
    assert json.loads(answer)["n_objects"] == 2500
    mass = CredalPartition.load(tmp_path / "job/masses.zarr").mass
    np.testing.assert_array_equal(np.asarray(mass), alone(Y, SLOW))


def test_a_mistake_is_one_line_on_the_error_output(tmp_path):
    child = start("cluster", tmp_path / "no.npy", "-c", 3, "--out", tmp_path / "job")
    out, said = child.communicate(timeout=60)
    assert child.returncode == 3 and out == ""
    assert said.splitlines()[-1].startswith("evdist: There is no data at")
    assert "Traceback" not in said

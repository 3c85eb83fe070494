"""Python programs as forks of one process that has imported what they need.

An interpreter that loads scikit-learn, Numba, zarr and Dask takes four seconds of CPU, one that
runs a flow of Prefect nine, and the tests start hundreds. A fork is a process of its own like
theirs, with arguments, environment, folder, files and a session of its own, and can be killed; it
only finds these modules loaded. Tests of what is imported, and of commands as they are installed,
start interpreters.

`start` and `run` are called by tests. `command` is a command line that others may run: it starts a
program as well, and ends as it ends.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

#: What the programs of the tests need. None of it may start a thread: a fork has only one.
PRELOADED = (
    "distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "dask.__main__",
    "distributed.dashboard.scheduler", "evdist.engine.worker_state", "evdist.evclus.estimator",
    "evdist.evclus.rows.numba", "evdist.report", "evdist.service.client",
    "evdist.service.client.background", "evdist.service.jobs", "evdist.service.monitor.scheduler",
    "matplotlib.pyplot", "prefect.engine", "prefect.flow_engine", "flows.cluster", "s3fs",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[1]
#: The folder of the socket, shared by the processes of a run of the tests, and the process whose
#: end is the end of the run.
FOLDER, OWNER = "EVDIST_TEST_PROGRAMS", "EVDIST_TEST_OWNER"
#: How a process id, and then an exit code, travel: both may have come before the first is read.
NUMBER, WIDTH = b"%8d", 8


# ---------------------------------------------------------------------- for tests
class Program:
    """A running program, to be treated like a `subprocess.Popen`."""

    def __init__(self, connection: socket.socket, pid: int, stdout: IO[str] | None):
        self._connection, self.pid, self.stdout = connection, pid, stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(f"program {self.pid}", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], seconds)[0]:
            self.returncode = _number(self._connection)
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    words: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
) -> Program:
    """Start `python *words`: -c, -m or a file, and its arguments. Files are those of a Popen."""
    null = os.open(os.devnull, os.O_RDWR)
    reader = None
    own = [null]
    if stdout == subprocess.PIPE:
        read, stdout = os.pipe()
        reader = os.fdopen(read)
        own.append(stdout)
    files = [null if stdin is None else stdin, null if stdout is None else stdout]
    files.append({None: null, subprocess.STDOUT: files[1]}.get(stderr, stderr))
    try:
        numbers = [file if isinstance(file, int) else file.fileno() for file in files]
        connection, pid = _ask(_socket(), [str(word) for word in words], env, cwd, numbers)
    finally:
        for number in own:
            os.close(number)
    return Program(connection, pid, reader)


def run(
    words: Sequence[object], timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess:
    """Run a program to its end; what it said."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        program = start(words, stdout=out, stderr=err, **options)
        code = program.wait(timeout)
        said = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(list(words), code, *said)


def killed_after(lines: int, words: Sequence[object]) -> list[str]:
    """What a program has printed when it is killed, so many lines after its start."""
    program = start(words, stdout=subprocess.PIPE)
    assert program.stdout is not None
    with program.stdout:
        told = [program.stdout.readline() for _ in range(lines)]
        program.kill()
    program.wait()
    return told


def command(*words: str) -> list[str]:
    """A command line that starts the program, ends as it ends, and passes SIGTERM on."""
    return [sys.executable, "-I", "-S", __file__, "run", str(_socket()), *words]


def own() -> None:
    """From now on this process owns what is forked: it ends with it, for all that it starts."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="evdist-programs-")
        os.environ[OWNER] = str(os.getpid())
        atexit.register(shutil.rmtree, os.environ[FOLDER], ignore_errors=True)


@cache
def _socket() -> Path:
    """The socket of the process that is forked, which the first to ask for it starts."""
    from filelock import FileLock  # what `command` starts should be there at once

    own()
    folder = Path(os.environ[FOLDER])
    path = folder / "socket"
    with FileLock(folder / "lock"):
        if not path.exists():
            with (folder / "log").open("wb") as log:
                subprocess.run(
                    [sys.executable, __file__, "serve", str(path), os.environ[OWNER]], cwd=ROOT,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder)},
                )  # fmt: skip
    return path


# ---------------------------------------------------------------------- asking
def _ask(
    path: str | Path,
    words: list[str],
    env: Mapping[str, str] | None,
    cwd: str | Path,
    files: list[int],
) -> tuple[socket.socket, int]:
    """A connection, on which the exit code will come, and the process id of the new program."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    request = {
        "argv": words,
        "env": dict(os.environ if env is None else env),
        "cwd": str(cwd),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
    }
    data = json.dumps(request).encode() + b"\n"
    socket.send_fds(connection, [data[:1]], files)
    connection.sendall(data[1:])
    return connection, _number(connection)


def _number(connection: socket.socket) -> int:
    return int(connection.recv(WIDTH, socket.MSG_WAITALL))


def _run(path: str, words: list[str]) -> int:
    """What `command` runs."""
    connection, pid = _ask(path, words, None, os.getcwd(), [0, 1, 2])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = _number(connection)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


# ---------------------------------------------------------------------- the process that is forked
def _serve(path: str, owner: int) -> dict[str, Any] | None:
    """Fork for each that asks. Returns what was asked in the fork, and None at the end."""
    for name in PRELOADED:
        import_module(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    if os.fork():  # it belongs to no test, and ends with its owner
        os._exit(0)
    os.setsid()
    gc.collect()
    gc.freeze()  # what is here already stays shared memory
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    while Path(f"/proc/{owner}").exists():
        ready = select.select([listener, woken], [], [], 1.0)[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell_ended(running)
        if listener in ready:
            connection = listener.accept()[0]
            data, files, *_ = socket.recv_fds(connection, 1 << 16, 3)
            while not data.endswith(b"\n"):
                data += connection.recv(1 << 16)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for other in (listener, connection, *running.values()):
                    other.close()
                os.close(woken)
                os.close(wake)
                return {**json.loads(data), "files": files}
            for number in files:
                os.close(number)
            connection.sendall(NUMBER % pid)
            running[pid] = connection
    return None


def _tell_ended(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        connection = running.pop(pid)
        with suppress(BrokenPipeError):  # its caller has ended
            connection.sendall(NUMBER % os.waitstatus_to_exitcode(status))
        connection.close()


def _become(request: dict[str, Any]) -> None:
    """Be the program that was asked for."""
    import runpy
    import types

    os.setsid()
    with suppress(PermissionError):  # only root may take back a low one
        os.setpriority(os.PRIO_PROCESS, 0, request["nice"])
    for number, file in enumerate(request["files"]):
        os.dup2(file, number)
    for file in request["files"]:
        if file > 2:
            os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, m, 1) for n, m in enumerate("rww"))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    _read_environment()
    kind, *words = request["argv"]
    extra = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    first = {"-c": "", "-m": os.getcwd()}.get(kind, str(Path(kind).parent))
    sys.path[:] = [first, *extra, *(place for place in sys.path if place not in extra)]
    if kind == "-m":
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        code, *words = words
        sys.argv = ["-c", *words]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [kind, *words]
        runpy.run_path(kind, run_name="__main__")


def _read_environment() -> None:
    """Modules that are loaded already read the settings of this environment."""
    import dask
    from prefect.context import refresh_global_settings_context

    dask.config.refresh()
    refresh_global_settings_context()


if __name__ == "__main__":
    if sys.argv[1] == "run":
        sys.exit(_run(sys.argv[2], sys.argv[3:]))
    asked = _serve(sys.argv[2], int(sys.argv[3]))
    if asked is not None:
        _become(asked)

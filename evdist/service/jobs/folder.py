"""The job folder: a manifest of finished stages, news for its watchers, a log.

```
FOLDER/
  manifest.json   {"evdist": "job", "version": 1, "id", "config", "created", "stages": {name:
                  {"fingerprint", "outputs", "seconds", "finished"}}, "state", "error", "seal"}
  progress.json   the last news of a run: stage, iteration, objective, rows per second, time left;
                  "beat" counts while the run lives
  job.log         one line per event
  cancel          there when the job was asked to stop; only a wish to go on takes it away
  lock, lease     of the process that runs the job: on disk, in object storage
  ...             what the stages wrote
```
The manifest is replaced at one stroke after each stage; a stage counts when it stands there with
the fingerprint of what it was made from. Everything works on disk and in object storage.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from evdist.service.config import JobConfig
from evdist.stores.encoding import (
    StoreError,
    StoreNotFoundError,
    as_written,
    check_encoding,
    check_seal,
    differences,
    reading,
    seal,
)
from evdist.stores.lease import Lease
from evdist.stores.paths import (
    Url,
    address,
    alone,
    create_bytes,
    exists,
    is_local,
    join,
    read_bytes,
    remove,
    remove_file,
    replace_bytes,
)

KIND, VERSION = "job", 1
_SEALED = ("evdist", "version", "id", "config", "created", "stages", "state", "error")
_CURE = "Run the job in a new folder."
#: Stages of a job that has not yet begun to compute: what they made can be made again.
_FIRST_STAGES = frozenset({"load", "validate"})
#: Bytes kept back on disk, so that a job that fills it can still say so.
_RESERVE = 1 << 18
#: Outputs of stages that this package reads again.
_OUTPUTS: dict[str, tuple[type, ...]] = {
    "files": (list,), "warnings": (list,), "data": (str,), "content": (str,), "fitted": (dict,),
    "n": (int,), "d": (int,),
}  # fmt: skip
#: Numbers of a manifest are times, sizes and counts: none is larger.
_MOST = 2**53
#: A lock that stays taken for so many seconds is held by a run.
_LOCK_SECONDS = 0.5


class JobState(StrEnum):
    """Where a job stands. All but RUNNING and QUEUED stay as they are until it is run again."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Stage:
    """A finished stage: what it was made from, what it gave, how long it took."""

    fingerprint: str
    outputs: dict[str, Any]
    seconds: float
    finished: float


@dataclass
class _Manifest:
    id: str
    config: dict[str, Any]
    created: float
    stages: dict[str, Stage] = field(default_factory=dict)
    state: JobState = JobState.QUEUED
    error: str | None = None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> _Manifest:
        """As it is written; a TypeError where a value is not of its kind."""
        stages = {name: Stage(**stage) for name, stage in _is(found["stages"], dict).items()}
        for stage in stages.values():
            _is(stage.fingerprint, str)
            _is(stage.seconds, float, int)
            _is(stage.finished, float, int)
            for name, value in _is(stage.outputs, dict).items():
                _is(value, *_OUTPUTS.get(name, (object,)))
        return cls(
            _is(found["id"], str),
            _is(found["config"], dict),
            _is(found["created"], float, int),
            stages,
            JobState(_is(found["state"], str)),
            _is(found["error"], str, type(None)),
        )


def _is(value: Any, *kinds: type) -> Any:
    huge = isinstance(value, float | int) and not -_MOST <= value <= _MOST
    if huge or not isinstance(value, kinds):
        raise TypeError(f"{value!r:.60} must be of type {kinds[0].__name__}")
    return value


class JobFolder:
    """A job at a path or URL. Made by :meth:`create` or :meth:`open`; one process runs it."""

    def __init__(self, url: str, manifest: _Manifest):
        self.url = url
        self._manifest = manifest
        self._lease: Lease | None = None
        self._run, self._beat = uuid.uuid4().hex, 0

    # ------------------------------------------------------------------ construction
    @classmethod
    def create(cls, config: JobConfig) -> JobFolder:
        """The folder of this configuration: new, or the one there when it is of the same job.

        A job that failed before it had begun to compute gives way to another configuration: that
        of a corrected call.
        """
        url = address(config.folder)
        try:
            folder = cls.open(url)
        except StoreNotFoundError:
            os.makedirs(url, exist_ok=True) if "://" not in url else None
            folder = cls(url, _new_manifest(config))
            if create_bytes(folder.path("manifest.json"), folder._content()):
                return folder
            folder = cls.open(url)  # of another process that was quicker
        if folder.config.fingerprint != config.fingerprint:
            folder._give_way(config)
        return folder

    def _give_way(self, config: JobConfig) -> None:
        """Become the folder of another job, where nothing is lost by it; a StoreError elsewhere."""
        begun = set(self.stages) - _FIRST_STAGES
        if begun or self.state is not JobState.FAILED:
            found = self.config.model_dump(mode="json", exclude_none=True)
            wanted = config.model_dump(mode="json", exclude_none=True)
            for key in ("folder", "cluster", "title", "tags"):
                found.pop(key, None), wanted.pop(key, None)
            raise StoreError(
                f"{self.url} is the folder of another job: {_told(found, wanted)}. Choose another "
                "folder, or remove that one."
            )
        with self.held():
            for name in ("data.zarr", "progress.json", "cancel"):
                if self.has(name):
                    remove(self.path(name))
            self._manifest = _new_manifest(config)
            self._write()

    @classmethod
    def open(cls, url: Url) -> JobFolder:
        """The job there; what is no job, or was changed, is refused."""
        url = address(url)
        path = join(url, "manifest.json")
        content = read_bytes(path)
        if content is None:
            raise StoreNotFoundError(f"There is no job at {url}: it has no manifest.json.")
        with reading(path, _CURE):
            found = json.loads(content)
        if not isinstance(found, dict):
            found = {}
        check_encoding(path, found, KIND, VERSION)
        check_seal(path, found, _SEALED, _CURE)
        with as_written(path, _CURE):
            return cls(url, _Manifest.of(found))

    # ------------------------------------------------------------------ what is known
    @property
    def id(self) -> str:
        return self._manifest.id

    @property
    def config(self) -> JobConfig:
        return JobConfig.of(**self._manifest.config)

    @property
    def created(self) -> float:
        return self._manifest.created

    @property
    def error(self) -> str | None:
        return self._manifest.error

    @property
    def stages(self) -> dict[str, Stage]:
        return dict(self._manifest.stages)

    @property
    def state(self) -> JobState:
        """As the manifest says; a run that was killed still says RUNNING (see :meth:`is_alive`)."""
        return self._manifest.state

    def path(self, name: str) -> str:
        return join(self.url, name)

    def has(self, name: str) -> bool:
        return exists(self.path(name))

    # ------------------------------------------------------------------ the run
    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from running this job."""
        with ExitStack() as stack:
            try:
                if is_local(self.url):
                    # A process that calls `is_alive` holds the lock for an instant: be patient.
                    stack.enter_context(alone(self.path("lock"), _LOCK_SECONDS))
                    stack.callback(self._free_reserve)
                    self._keep_reserve()
                else:
                    lease = Lease(self.path("lease"))
                    stack.enter_context(lease.held())
                    stack.callback(setattr, self, "_lease", None)
                    self._lease = lease
            except BlockingIOError as error:
                raise StoreError(
                    f"Another process is running the job at {self.url}. Wait for it, or cancel it."
                ) from error
            # Another process may have run the job since the manifest was read.
            self._manifest = JobFolder.open(self.url)._manifest
            yield

    def is_alive(self) -> bool:
        """Whether some process runs the job now, as far as can be told.

        In object storage a process that was killed is told from a living one once this process
        has watched it for a while (`evdist.stores.lease`).
        """
        if self.state is not JobState.RUNNING:
            return False
        if not is_local(self.url):
            return Lease(self.path("lease")).is_alive()
        try:
            with alone(self.path("lock")):
                return False
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False

    def adopt(self, config: JobConfig) -> None:
        """Take from the present call what does not decide the answer: cluster, title, tags."""
        self._manifest.config = config.model_dump(mode="json", exclude_none=True)

    def set_state(self, state: JobState, error: str | None = None) -> None:
        self._manifest.state, self._manifest.error = state, error
        self._write()

    def refuse(self, why: str) -> None:
        """Write down that no worker took the job, which would else stay queued for ever.

        Not where a worker has taken it meanwhile: two clients may submit the same.
        """
        with suppress(StoreError, BlockingIOError), self.held():
            if self.state is JobState.QUEUED:
                self.set_state(JobState.FAILED, why)

    def finish(self, name: str, stage: Stage) -> None:
        """Write down that a stage is done."""
        self._manifest.stages[name] = stage
        self._write()

    def done(self, name: str, fingerprint: str) -> Stage | None:
        """The stage, when it was finished from the same and what it wrote is still there."""
        stage = self._manifest.stages.get(name)
        if stage is None or stage.fingerprint != fingerprint:
            return None
        files = stage.outputs.get("files", [])
        return stage if all(self.has(file) for file in files) else None

    def _content(self) -> bytes:
        manifest = asdict(self._manifest)
        content = seal({"evdist": KIND, "version": VERSION, **manifest})
        return json.dumps(content, indent=1).encode()

    def _write(self) -> None:
        if self._lease is not None:
            self._lease.check()  # one that was taken over must not undo what the other has done
        try:
            replace_bytes(self.path("manifest.json"), self._content())
        except OSError as error:
            if error.errno != errno.ENOSPC or not self.has("reserve"):
                raise
            self._free_reserve()
            replace_bytes(self.path("manifest.json"), self._content())

    def _keep_reserve(self) -> None:
        try:
            with open(self.path("reserve"), "wb") as file:
                file.write(os.urandom(_RESERVE))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self._free_reserve()  # the disk is full already; the manifest of before is there

    def _free_reserve(self) -> None:
        if is_local(self.url):
            with suppress(FileNotFoundError):
                os.unlink(self.path("reserve"))

    # ------------------------------------------------------------------ cancelling
    def ask_to_cancel(self) -> None:
        """Leave word that the job should stop; a run sees it within seconds.

        The word stays, whatever retries the run, until the job is resumed.
        """
        replace_bytes(self.path("cancel"), str(time.time()).encode())

    def is_cancelled(self) -> bool:
        return read_bytes(self.path("cancel")) is not None

    def forget_cancel(self) -> None:
        if self.is_cancelled():
            remove_file(self.path("cancel"))

    # ------------------------------------------------------------------ news and log
    def tell(self, news: Mapping[str, Any]) -> None:
        """Replace the news, and show that the run lives."""
        if self._lease is not None:
            self._lease.beat()
        self._beat += 1
        now = {"updated": time.time(), "host": socket.gethostname(), "pid": os.getpid(),
               "run": self._run, "beat": self._beat}  # fmt: skip
        replace_bytes(self.path("progress.json"), json.dumps({**now, **news}).encode())

    def progress(self) -> dict[str, Any] | None:
        """The last news; None before any."""
        content = read_bytes(self.path("progress.json"))
        if content is None:
            return None
        try:
            found = json.loads(content)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def log(self) -> str:
        """All lines logged so far."""
        content = read_bytes(self.path("job.log"))
        return "" if content is None else content.decode("utf-8", "replace")


def _new_manifest(config: JobConfig) -> _Manifest:
    kind = config.algorithm if config.task == "cluster" else config.task
    return _Manifest(
        f"{kind}-{config.fingerprint[:12]}",
        config.model_dump(mode="json", exclude_none=True),
        time.time(),
    )


def _told(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """What differs, key by key of the nested sections."""
    parts = []
    for key in [*wanted, *(key for key in found if key not in wanted)]:
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = differences(old, new)
            parts += [f"{key}: {inner}"] if inner else []
        elif old != new:
            parts.append(differences({key: old}, {key: new}))
    return "; ".join(parts)

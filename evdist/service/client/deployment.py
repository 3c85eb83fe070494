"""Jobs through Prefect: a deployment runs them, its flow runs tell how they are."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags, LogFilter
from prefect.client.schemas.filters import LogFilterFlowRunId as ByFlowRun
from prefect.client.schemas.sorting import FlowRunSort, LogSort
from prefect.context import get_settings_context
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)
from prefect.states import Cancelling, Crashed, Scheduled

from evdist.service.client.turns import next_turn, tags
from evdist.service.client.waiting import why_queued
from evdist.service.config import JobConfig
from evdist.service.jobs import JobError, JobFolder, JobState
from evdist.service.jobs.reach import prefect_away, told_when_late
from evdist.stores.lease import Pulse, pulse
from evdist.stores.transient import is_transient, steady

T = TypeVar("T")

#: States of a flow run that is not over, in words of ours.
_STATES = {
    "SCHEDULED": JobState.QUEUED,
    "PENDING": JobState.QUEUED,
    "PAUSED": JobState.QUEUED,
    "RUNNING": JobState.RUNNING,
    "CANCELLING": JobState.RUNNING,
}
#: A run writes news every two seconds; one that this process has watched for so long without any
#: is taken for dead.
LOST_SECONDS = 60.0
#: A worker that has taken a run starts its process at once, or asks Kubernetes for it, which gives
#: the run another name; one that stays in these states for so long was taken by a worker that died.
_TAKEN = ("Pending", "Submitting")
TAKEN_SECONDS = 150.0
#: With news seen no longer ago than this it runs: the server need not be asked several times a
#: second.
FRESH_SECONDS = 6.0
#: A job that has been queued for so long without a flow run gets none: its client was killed before
#: it could ask for one. By clocks of two machines, which differ by less.
_UNASKED_SECONDS = 600.0
#: Links that are sent as parameters; more stay in the job folder.
_MOST_LINKS = 2000
_LOG_LINES = 200  # the server gives no more at once


class Deployment:
    """Runs jobs as flow runs of one deployment.

    Parameters
    ----------
    api_url : str
        Of the Prefect server, e.g. "http://127.0.0.1:4200/api".
    name : str
        FLOW/DEPLOYMENT.
    auth : str, optional
        "user:password" where the server wants one; PREFECT_API_AUTH_STRING otherwise.
    user : str
        Whose jobs they are: users with jobs waiting take turns.
    """

    def __init__(
        self,
        api_url: str,
        name: str = "cluster/evdist",
        auth: str | None = None,
        *,
        user: str = "anyone",
    ):
        self.api_url = api_url
        self.name = name
        self.user = user
        self._auth = auth if auth is not None else os.environ.get("PREFECT_API_AUTH_STRING")
        #: Whether a server has ever been there: an address that never was is told at once.
        self._answered = False
        #: Made once: its settings and certificates take longer than most questions.
        self._client: SyncPrefectClient | None = None

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Nothing to prepare: a worker is there."""
        yield

    def start(self, folder: JobFolder, config: JobConfig) -> None:
        """Queue a flow run; the same job is not queued twice while one is under way."""
        config = config.model_copy(update={"folder": folder.url})
        self.asked(lambda client: self._start(client, folder, config))

    def _start(self, client: SyncPrefectClient, folder: JobFolder, config: JobConfig) -> None:
        try:
            deployment = client.read_deployment_by_name(self.name)
        except ObjectNotFound as error:
            raise JobError(
                f"There is no deployment {self.name!r} at {self.api_url}. Deploy the flows "
                "(see flows/README.md), or name another deployment."
            ) from error
        runs = self._runs(client, folder)
        if runs and runs[0].state is not None and not runs[0].state.is_final():
            if not _is_lost(runs[0], folder):
                return  # under way, or about to be
            client.set_flow_run_state(runs[0].id, Crashed(), force=True)
        # Two clients that submit the same at once get one flow run; runs that were deleted on
        # the server do not count.
        after = str(runs[0].id) if runs else f"{folder.created:.6f}"
        client.create_flow_run_from_deployment(
            deployment.id,
            name=f"{folder.id}-{len(runs) + 1}",
            parameters=_parameters(config),
            state=Scheduled(scheduled_time=next_turn(client, deployment.work_pool_name, self.user)),
            idempotency_key=f"{folder.id}-{after}",
            tags=[_tag(folder), *tags(self.user), *config.tags],
        )

    def state(self, folder: JobFolder) -> JobState:
        """As the folder says when it is finished or has fresh news; else as the last flow run."""
        if folder.state is JobState.DONE:
            return JobState.DONE
        seen = _pulse(folder)
        if folder.state is JobState.RUNNING and seen.moved and seen.silence < FRESH_SECONDS:
            return JobState.RUNNING
        runs = self.asked(lambda client: self._runs(client, folder))
        if not runs or runs[0].state is None:
            unasked = folder.state is JobState.QUEUED and _is_unasked(folder)
            return JobState.STOPPED if unasked else folder.state
        state = runs[0].state
        if not state.is_final():
            if _is_lost(runs[0], folder):
                return JobState.STOPPED
            return _STATES.get(state.type.value, folder.state)
        # The flow is over; the folder knows better why. One that still says it runs was killed.
        told = JobFolder.open(folder.url).state
        if told in (JobState.FAILED, JobState.CANCELLED, JobState.DONE):
            return told
        return JobState.CANCELLED if state.is_cancelled() else JobState.STOPPED

    def waits_for(self, folder: JobFolder) -> str | None:
        """Why the last flow run has not begun."""

        def ask(client: SyncPrefectClient) -> str | None:
            runs = self._runs(client, folder)
            return why_queued(client, runs[0]) if runs else "No flow run was asked for yet."

        return self.asked(ask)

    def logs(self, folder: JobFolder) -> str:
        """What the flow runs have logged, oldest first."""
        lines = self.asked(lambda client: self._lines(client, folder))
        return "\n".join([*lines, ""]) if lines else folder.log()

    def _lines(self, client: SyncPrefectClient, folder: JobFolder) -> list[str]:
        lines = []
        for one in reversed(self._runs(client, folder)):
            offset = 0
            while True:
                found = client.read_logs(
                    LogFilter(flow_run_id=ByFlowRun(any_=[one.id])),
                    limit=_LOG_LINES,
                    offset=offset,
                    sort=LogSort.TIMESTAMP_ASC,
                )
                lines += [f"{log.timestamp:%Y-%m-%d %H:%M:%S} {log.message}" for log in found]
                offset += len(found)
                if len(found) < _LOG_LINES:
                    break
        return lines

    def cancel(self, folder: JobFolder) -> None:
        """Ask the run itself, which stops at once, and Prefect, which ends its process."""
        folder.ask_to_cancel()
        self.asked(lambda client: self._cancel(client, folder))

    def _cancel(self, client: SyncPrefectClient, folder: JobFolder) -> None:
        for one in self._runs(client, folder):
            if one.state is not None and not one.state.is_final():
                client.set_flow_run_state(one.id, Cancelling())

    # ------------------------------------------------------------------ the server
    def asked(self, call: Callable[[SyncPrefectClient], T]) -> T:
        """What the server says; an outage or an overload of one that has answered is waited out.

        Every call may be made twice: a flow run has a key that no second one gets.
        """

        def once() -> T:
            try:
                with self._settings.model_copy():
                    return call(self._connected())
            except JobError as error:
                why = error.__cause__
                if self._answered and isinstance(why, Exception) and is_transient(why):
                    raise why from None
                raise

        try:
            with told_when_late(lambda: prefect_away(self.api_url)):
                return steady(once)
        except Exception as error:
            if is_transient(error):
                said = prefect_away(self.api_url) or (
                    f"The Prefect server at {self.api_url} is overloaded, or fails: {_said(error)}"
                )
                raise JobError(said) from error
            if isinstance(error, PrefectHTTPStatusError):
                raise JobError(f"Prefect refused the job: {_said(error)}") from error
            raise

    @cached_property
    def _settings(self) -> Any:
        """Settings in which a request is repeated once; making them takes 50 ms.

        Prefect waits twice as long each time, a minute in all: meanwhile other clients would fill
        the queue. `steady` asks again within seconds.
        """
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 1}):
            return get_settings_context()

    def _connected(self) -> SyncPrefectClient:
        if self._client is None:
            client = _connect(self.api_url, self._auth)
            weakref.finalize(self, client.__exit__, None, None, None)
            self._client, self._answered = client, True
        return self._client

    def _runs(self, client: SyncPrefectClient, folder: JobFolder) -> list[Any]:
        """Flow runs of a job, the latest first."""
        found = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(tags=FlowRunFilterTags(all_=[_tag(folder)])),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        )
        # By the server's clock: the times for which they were scheduled are turns of users.
        return sorted(found, key=lambda run: run.created, reverse=True)


def _parameters(config: JobConfig) -> dict[str, Any]:
    """The configuration; without the links where they are many, which the manifest has.

    Prefect takes half a megabyte.
    """
    values = config.model_dump(mode="json", exclude_none=True)
    if len(config.links.must) + len(config.links.cannot) <= _MOST_LINKS:
        return {"config": values}
    values["links"] = {name: v for name, v in values["links"].items() if name == "url"}
    return {"config": values, "links_in_manifest": True}


def _connect(api_url: str, auth: str | None) -> SyncPrefectClient:
    """A client of one server, whatever the user's own settings say.

    A JobError says which part of it does not answer, with a ConnectionError for its cause.
    """
    missing = prefect_away(api_url)
    if missing is not None:
        raise JobError(missing) from ConnectionError(missing)
    updates: dict[Any, Any] = {PREFECT_API_URL: api_url}
    if auth:
        updates[PREFECT_API_AUTH_STRING] = auth
    with temporary_settings(updates):
        client = get_client(sync_client=True)
        client.__enter__()
    away = client.api_healthcheck()
    if away is not None:
        client.__exit__(None, None, None)
        raise JobError(f"The Prefect server at {api_url} refuses: {_said(away)}") from away
    return client


def _is_lost(run: Any, folder: JobFolder) -> bool:
    """Whether a run says it works but gives no sign of life: its process and its worker died.

    Known once this process has looked for a while: by its own clock, not by the run's.
    """
    if run.state.name in _TAKEN:
        # Its worker was killed between taking the run and starting its process: it stays so. Should
        # it begin all the same, it meets a job that is held by another process.
        return pulse(f"{folder.url} {run.id} taken", run.state.name).silence > TAKEN_SECONDS
    if run.state.type.value not in ("RUNNING", "CANCELLING"):
        return False
    return _pulse(folder, str(run.id)).silence > LOST_SECONDS


def _pulse(folder: JobFolder, run: str = "") -> Pulse:
    """Signs of life of a run, counted in its news."""
    news = folder.progress() or {}
    return pulse(f"{folder.url} {run}", (news.get("run"), news.get("beat")))


def _tag(folder: JobFolder) -> str:
    return f"evdist-job:{folder.id}"


def _is_unasked(folder: JobFolder) -> bool:
    """Whether no client will ask for a flow run of this queued job any more."""
    if time.time() - folder.created > _UNASKED_SECONDS:
        return True
    return pulse(f"{folder.url} unasked", folder.state).silence > LOST_SECONDS


def _said(error: Exception) -> str:
    """What the server says of an error, or the error without the page of hints that httpx adds."""
    reply: Any = getattr(error, "response", None)
    if getattr(reply, "status_code", 0) in (401, 403):
        hint = "Set PREFECT_API_AUTH_STRING, or PREFECT_API_KEY where a proxy stands before it."
        return f"{reply.status_code} {reply.reason_phrase}. {hint}"
    try:
        return str(reply.json()["detail"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return str(error).partition("\n")[0]

"""Users of a Prefect server take turns, however many jobs each has queued."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evdist import Client
from evdist.service.client.turns import turn

START = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)


class Queue:
    """Jobs in the order of their times, as a worker of Prefect takes them."""

    def __init__(self) -> None:
        self.now, self.began = START, None
        self.waiting: list[tuple[datetime, int, str]] = []
        self.own: dict[str, datetime] = {}
        self.served: list[str] = []
        self._number = 0

    def look(self, user: str) -> datetime:
        """The turn of a user, as the queue is now."""
        self.now += timedelta(seconds=1)
        waits = min(self.waiting)[0] if self.waiting else None
        return turn(self.now, waits, self.began, self.own.get(user))

    def submit(self, user: str, when: datetime | None = None) -> None:
        when = when or self.look(user)
        self._number += 1
        self.own[user] = when
        self.waiting.append((when, self._number, user))

    def serve(self) -> None:
        if self.waiting:
            job = min(self.waiting)
            self.waiting.remove(job)
            self.began = job[0]
            self.served.append(job[2])

    def users_waiting(self) -> set[str]:
        return {user for _, _, user in self.waiting}


def test_a_user_with_one_job_does_not_wait_for_the_hundred_of_another():
    queue = Queue()
    for _ in range(100):
        queue.submit("anna")
    for _ in range(40):
        queue.serve()
    queue.submit("ben")
    queue.submit("carla")
    for _ in range(3):
        queue.serve()
    assert sorted(queue.served[40:]) == ["anna", "ben", "carla"]


def test_users_who_find_an_empty_queue_at_once_are_in_the_same_round():
    """Five clients at a slow server: each looks before any job of the others is there."""
    queue, users = Queue(), ["anna", "ben", "carla", "dora", "emil"]
    seen = {user: queue.look(user) for user in users}
    for user in users:
        queue.submit(user, seen[user])
    for user in reversed(users):
        for _ in range(3):
            queue.submit(user)
    for _ in range(20):
        queue.serve()
    for k in range(0, 20, 5):
        assert sorted(queue.served[k : k + 5]) == users


def test_jobs_of_one_user_keep_their_order():
    queue = Queue()
    for _ in range(5):
        queue.submit("anna")
    numbers = [number for _, number, _ in sorted(queue.waiting)]
    assert numbers == sorted(numbers)


@given(st.lists(st.sampled_from(["anna", "ben", "carla", "serve", "serve"]), max_size=80))
def test_users_who_wait_together_are_served_alike(events):
    """Start-time fair queueing: of two that wait all the while, none is two jobs ahead for long."""
    queue = Queue()
    since: dict[str, int] = {}
    for event in [*events, *["serve"] * 80]:
        queue.serve() if event == "serve" else queue.submit(event)
        waiting = queue.users_waiting()
        since = {user: since.get(user, len(queue.served)) for user in waiting}
        for user, first in since.items():
            for other, began in since.items():
                both = queue.served[max(first, began) :]
                assert abs(both.count(user) - both.count(other)) <= 2
    assert not queue.waiting


def test_an_idle_queue_starts_at_the_last_hour_and_no_time_lies_ahead():
    assert turn(START, None, START - DAY, START - DAY) == START.replace(minute=0)
    late = START + timedelta(minutes=2)  # of a client whose clock is ahead
    assert turn(START, late, None, None) == START


def test_a_run_that_no_worker_takes_does_not_stop_the_turns():
    stuck, began = START - timedelta(hours=5), START - timedelta(seconds=9)
    assert turn(START, stuck, began, None) == began


def test_nothing_is_put_ahead_of_a_run_that_has_waited_for_a_day():
    assert turn(START, START - 3 * DAY, START - 3 * DAY, None) == START - DAY


@pytest.mark.parametrize("account", ["anna", None])
def test_the_user_is_the_account_unless_named(tmp_path, monkeypatch, account):
    def getuser() -> str:
        if account is None:
            raise KeyError("getpwuid(): uid not found: 10001")
        return account

    monkeypatch.setattr("evdist.service.client.core.getuser", getuser)
    monkeypatch.setattr("evdist.service.client.core.socket.gethostname", lambda: "host")
    monkeypatch.delenv("EVDIST_USER", raising=False)
    assert Client(tmp_path).user == f"{account or 'unknown'}@host"
    monkeypatch.setenv("EVDIST_USER", "ben")
    assert Client(tmp_path).user == "ben"
    assert Client(tmp_path, user="carla").user == "carla"

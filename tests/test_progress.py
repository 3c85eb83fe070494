"""Listeners of a fit: what the log, the plain lines and the bar say, and when the bar ends."""

from __future__ import annotations

import copy
import io
import logging
import pickle
import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.datasets import make_blobs

from evdist import EVCLUS, progress
from evdist.engine.progress import Progress
from evdist.estimators import callbacks
from evdist.kernels.compiled import is_loaded
from evdist.progress import LogProgress, ProgressBar, one_line

SHOW_CURSOR = "\x1b[?25h"


def news(stage: str = "fit", sweep: int = 3, **changes: float) -> Progress:
    known = {"objective": 0.0123456789, "change": -1e-3, "rows_per_second": 1.25e6}
    return Progress(stage, sweep, 200, **{**known, "seconds_left": 12.4, **changes})


def output(*, terminal: bool) -> tuple[io.StringIO, Console]:
    file = io.StringIO()
    return file, Console(file=file, force_terminal=terminal, width=80, _environ={})


def set_clock(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    """A clock of the listeners alone: threads of other tests go on reading the real one."""
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=clock))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(60, centers=3, random_state=0)[0]


# ---------------------------------------------------------------------- the line
def test_a_sweep_is_one_line():
    assert one_line(news()) == (
        "fit: sweep 3 of at most 200, objective 0.0123457, 1.2 million rows/s, at least 12 s left"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1:00"), (200, "3:20"), (7500, "2:05:00")],
)
def test_the_time_left_is_readable(seconds, words):
    assert one_line(news(seconds_left=seconds)).endswith(f"at least {words} left")


@pytest.mark.parametrize(
    ("rate", "words"), [(950, "950"), (12345.6, "12,346"), (2.5e6, "2.5 million"), (3e9, "3.0 bil")]
)
def test_the_speed_is_readable(rate, words):
    assert f", {words}" in one_line(news(rows_per_second=rate))


# ---------------------------------------------------------------------- the log
def test_the_log_gets_one_record_per_sweep(X, caplog):
    with caplog.at_level(logging.INFO, logger="evdist"):
        model = EVCLUS(3, metric="euclidean", random_state=0, callbacks=[LogProgress()]).fit(X)
    said = [record.getMessage() for record in caplog.records]
    assert said[:3] == ["choose d0", "first masses", "draw pairs"]
    assert len(said) == 3 + model.n_iter_
    assert said[3].startswith("fit: sweep 1 of at most 200, objective ")


def test_logger_and_level_can_be_chosen(caplog):
    mine = logging.getLogger("mine.fits")
    with caplog.at_level(logging.DEBUG, logger="mine.fits"):
        LogProgress(mine, level=logging.DEBUG)(news())
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("mine.fits", logging.DEBUG)
    assert record.getMessage() == one_line(news())


def test_a_level_that_is_off_says_nothing(caplog):
    with caplog.at_level(logging.WARNING, logger="evdist"):
        LogProgress()(news())
    assert caplog.records == []


# ---------------------------------------------------------------------- plain lines
def test_without_a_terminal_a_stage_has_its_first_and_last_line():
    file, console = output(terminal=False)
    bar = ProgressBar(console)
    first, next_stage = news("fit", 1), news("constraints 0.5", 1)
    for item in (first, news("fit", 2), news("fit", 3), next_stage):
        bar(item)
    bar.close()
    assert file.getvalue().splitlines() == [
        one_line(first),
        "fit: 3 sweeps, objective 0.0123457, 1.2 million rows/s",
        one_line(next_stage),
        "constraints 0.5: 1 sweep, objective 0.0123457, 1.2 million rows/s",
    ]


def test_without_a_terminal_a_long_stage_says_something_now_and_then(monkeypatch):
    clock = iter([0.0, 4.0, 9.0, 11.0, 15.0])
    set_clock(monkeypatch, lambda: next(clock))
    file, console = output(terminal=False)
    bar = ProgressBar(console)
    for sweep in range(1, 6):
        bar(news(sweep=sweep))
    bar.close()
    said = file.getvalue().splitlines()
    assert said[:2] == [one_line(news(sweep=1)), one_line(news(sweep=4))]
    assert said[2:] == ["fit: 5 sweeps, objective 0.0123457, 1.2 million rows/s"]


def test_lines_are_neither_wrapped_nor_styled():
    file = io.StringIO()
    bar = ProgressBar(Console(file=file, force_terminal=False, width=20, _environ={}))
    bar(news("[bold]fit"))
    assert file.getvalue() == one_line(news("[bold]fit")) + "\n"


def test_the_standard_error_output_is_the_default(X, capsys):
    EVCLUS(3, metric="euclidean", random_state=0, callbacks=[ProgressBar()]).fit(X)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[:3] == ["choose d0", "first masses", "draw pairs"]
    assert lines[3].startswith("fit: sweep 1 of at most 200, objective ")


# ---------------------------------------------------------------------- the bar
def test_a_terminal_sees_stage_sweep_objective_speed_and_time_left():
    file, console = output(terminal=True)
    bar = ProgressBar(console)
    bar(news("fit", 7))
    bar._view._bar.refresh()
    drawn = file.getvalue()
    bar.close()
    for words in ("fit: sweep 7 ", "objective 0.01235", "1.2 million rows/s", "> 12 s left"):
        assert words in drawn


def test_a_terminal_keeps_one_line_of_every_stage():
    file, console = output(terminal=True)
    bar = ProgressBar(console)
    for item in (news("fit", 1), news("fit", 2), news("pairs", 1), news("pairs", 5)):
        bar(item)
    bar.close()
    kept = [line for line in file.getvalue().split("\n") if " sweeps, objective 0.0123457" in line]
    assert len(kept) == 2
    assert "fit: 2 sweeps" in kept[0]
    assert "pairs: 5 sweeps" in kept[1]
    assert SHOW_CURSOR in file.getvalue().split("\n")[-1]


def test_the_bar_never_goes_back(monkeypatch):
    clock = iter([0.0, 5.0, 6.0, 7.0])
    set_clock(monkeypatch, lambda: next(clock))
    view = progress._Terminal(output(terminal=True)[1])
    shares = []
    for left in (20.0, 5.0, 94.0, 0.0):
        view.show(news(seconds_left=left))
        shares.append(view._bar.tasks[0].completed)
    view.close()
    assert shares == [0.0, 0.5, 0.5, 1.0]


@pytest.mark.parametrize("terminal", [True, False])
def test_one_bar_serves_several_fits(X, terminal):
    file, console = output(terminal=terminal)
    model = EVCLUS(3, metric="euclidean", random_state=0, callbacks=[ProgressBar(console)])
    model.fit(X)
    once = file.getvalue()
    model.fit(X)
    last = f"fit: {model.n_iter_} sweeps"
    assert once.count(last) == 1
    assert file.getvalue().count(last) == 2


def test_the_bar_is_taken_away_when_a_fit_fails(X):
    file, console = output(terminal=True)

    def fail(news: Progress) -> None:
        raise RuntimeError("stopped by hand")

    bar = ProgressBar(console)
    with pytest.raises(RuntimeError, match="stopped by hand"):
        EVCLUS(3, metric="euclidean", random_state=0, callbacks=[bar, fail]).fit(X)
    assert bar._view is None
    assert SHOW_CURSOR in file.getvalue().split("\n")[-1]


def test_an_estimator_with_listeners_can_be_copied():
    model = EVCLUS(3, metric="euclidean", callbacks=[ProgressBar(), LogProgress()])
    for twin in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert [type(c) for c in twin.callbacks] == [ProgressBar, LogProgress]


def test_listeners_change_no_bit(X):
    quiet = EVCLUS(3, metric="euclidean", random_state=0).fit(X)
    _, console = output(terminal=True)
    heard = EVCLUS(
        3, metric="euclidean", random_state=0, callbacks=[ProgressBar(console), LogProgress()]
    ).fit(X)
    np.testing.assert_array_equal(quiet.credal_partition_.mass, heard.credal_partition_.mass)


# ---------------------------------------------------------------------- while kernels are compiled
def test_the_bar_of_a_stage_of_known_length_moves_by_itself():
    file, console = output(terminal=True)
    bar = ProgressBar(console)
    bar(Progress("compiling once, about 8 s", 0, 0, seconds_left=8.0))
    task = bar._view._bar.tasks[0]
    for past, share in ((0.0, 0.0), (4.0, 0.5), (100.0, 0.95)):
        task.start_time = task.get_time() - past
        bar._view._bar.refresh()
        assert task.completed == pytest.approx(share, abs=0.05)
    bar.close()
    assert "compiling once, about 8 s" in file.getvalue() and "left" not in file.getvalue()


def test_a_stage_of_known_length_is_one_line_without_a_terminal():
    assert one_line(Progress("compiling once", 0, 0, seconds_left=8.0)) == "compiling once"


class Function:
    """As a function of numba: `overloads` fills when it is compiled."""

    def __init__(self):
        self.overloads = {}


@pytest.mark.parametrize("verbose", [False, True])
def test_the_bar_waits_until_the_kernels_are_there(verbose, monkeypatch):
    shown, function = [], Function()

    class Shown:
        is_live = True

        def __call__(self, news):
            shown.append(news.stage)

        def close(self):
            shown.append("closed")

    places = {"evdist.progress:ProgressBar": Shown}
    monkeypatch.setattr(callbacks, "load", lambda place: places.get(place, function))
    monkeypatch.setattr(callbacks, "is_compiled", is_loaded)
    model = EVCLUS(metric="euclidean", verbose=verbose)
    with model._reporting() as report:
        report(Progress("choose d0", 0, 0))
        function.overloads = {"signature": "code"}
        for stage in ("draw pairs", "fit"):
            report(Progress(stage, 0, 0))
    said = ["draw pairs", "fit"] if verbose else []
    assert shown == ["compiling once, about 12 s", *said, "closed"]


# ---------------------------------------------------------------------- in a notebook
class Cell:
    """IPython's `display` module and the handle of one display."""

    def __init__(self):
        self.pictures: list[str] = []

    def display(self, view, display_id):
        assert display_id is True
        return self

    def update(self, view):
        self.pictures.append(view._repr_html_())


@pytest.fixture
def cell(monkeypatch) -> Cell:
    cell = Cell()
    shell = SimpleNamespace(kernel=object())
    module = SimpleNamespace(get_ipython=lambda: shell, display=cell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return cell


def test_a_notebook_gets_a_live_bar_and_keeps_the_lines(cell):
    bar = ProgressBar()
    assert bar.is_live
    bar(Progress("first <masses>", 0, 0))
    bar(news("fit", 1))
    bar.close()
    first, second, last = cell.pictures
    assert "<progress max='1'></progress> first &lt;masses&gt;" in first
    assert "<div>first &lt;masses&gt;</div>" in second and 'value="0.000"' in second
    assert "fit: sweep 1 objective 0.01235, 1.2 million rows/s, &gt; 12 s left" in second
    assert last.endswith("<div>fit: 1 sweep, objective 0.0123457, 1.2 million rows/s</div>")
    assert "progress " not in last


def test_a_notebook_is_not_flooded(cell, monkeypatch):
    clock = iter([0.0, 0.1, 0.19, 0.25, 0.3, 9.0, 9.1])
    set_clock(monkeypatch, lambda: next(clock, 9.2))
    bar = ProgressBar()
    for sweep in range(1, 4):
        bar(news(sweep=sweep))
    assert len(cell.pictures) < 3


def test_a_fit_and_its_text_in_a_notebook(cell, X):
    EVCLUS(3, metric="euclidean", random_state=0, verbose=True).fit(X)
    assert "choose d0" in cell.pictures[0] and "sweeps, objective" in cell.pictures[-1]


def test_the_shell_of_a_terminal_is_no_notebook(monkeypatch):
    module = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert progress._notebook() is None

"""Progress bar and log, for the parameter `callbacks` of an estimator.

A listener is any callable that takes a `Progress`. One with a method `close` is closed when the
fit is over, also when it fails.
"""

from __future__ import annotations

import html
import logging
import math
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.progress_bar import ProgressBar as DrawnBar

from evdist.engine.progress import Progress

__all__ = ["LogProgress", "ProgressBar", "one_line"]

#: Seconds between two lines of one stage where there is no terminal.
_SECONDS_PER_LINE = 10.0
#: Seconds between two pictures of the bar in a notebook.
_SECONDS_PER_PICTURE = 0.2


def one_line(news: Progress) -> str:
    """What logs and plain outputs say of a sweep, or of a step of a stage without sweeps.

    Parameters
    ----------
    news : Progress
        What a callback is called with.

    Examples
    --------
    >>> from evdist.engine.progress import Progress
    >>> from evdist.progress import one_line
    >>> one_line(Progress("evclus", 3, 200, objective=0.25))
    'evclus: sweep 3 of at most 200, objective 0.25'
    """
    most = "of at most" if news.unit == "sweep" else "of"
    count = f"{news.unit} {news.sweep:,} {most} {news.max_sweeps:,}" if news.max_sweeps else ""
    # The time left is a guess from below: the stopping rule cannot be met sooner.
    known = news.max_sweeps and not math.isnan(news.seconds_left)
    left = f"at least {_seconds(news.seconds_left)} left" if known else ""
    said = ", ".join(filter(None, (count, _measures(news), left)))
    return f"{news.stage}: {said}" if said else news.stage


def _last_line(news: Progress) -> str:
    """What is said of a stage that is over."""
    count = f"{news.sweep:,} {news.unit}" + ("" if news.sweep == 1 else "s")
    said = ", ".join(filter(None, (count if news.max_sweeps else "", _measures(news))))
    return f"{news.stage}: {said}" if said else news.stage


def _measures(news: Progress, digits: int = 6) -> str:
    known = []
    if not math.isnan(news.objective):
        known.append(f"objective {news.objective:.{digits}g}")
    if not math.isnan(news.rows_per_second):
        known.append(f"{_rows(news.rows_per_second)} rows/s")
    return ", ".join(known)


def _rows(per_second: float) -> str:
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if per_second >= unit:
            return f"{per_second / unit:.1f}{name}"
    return f"{per_second:,.0f}"


def _seconds(seconds: float) -> str:
    """5 s, 3:20 or 2:05:00."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes = f"{rest // 60}:{rest % 60:02}"
    return f"{hours}:{minutes:0>5}" if hours else minutes


class LogProgress:
    """Writes one record per sweep to a logger.

    Parameters
    ----------
    logger : logging.Logger or str, default="evdist"
        A logger or its name.
    level : int, default=logging.INFO
        Level of the records.

    Examples
    --------
    >>> from evdist import EVCLUS
    >>> from evdist.progress import LogProgress
    >>> model = EVCLUS(n_clusters=3, callbacks=[LogProgress()])
    """

    def __init__(self, logger: logging.Logger | str = "evdist", level: int = logging.INFO):
        self.logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self.level = level

    def __call__(self, news: Progress) -> None:
        if self.logger.isEnabledFor(self.level):
            self.logger.log(self.level, "%s", one_line(news))


class ProgressBar:
    """Shows stage, sweep, objective, rows per second and time left of a fit.

    In a terminal and in a notebook: a bar for the present stage, and one line for every stage that
    is over. The bar measures time against the least time left, so it may wait near its end.
    Elsewhere (a file, a log): plain lines, at the first sweep of a stage, every ten seconds, and
    at its end.

    Parameters
    ----------
    console : rich.console.Console, default=None
        Where to write; None is the notebook's cell, or the standard error output.

    Examples
    --------
    >>> from evdist import EVCLUS
    >>> from evdist.progress import ProgressBar
    >>> model = EVCLUS(n_clusters=3, callbacks=[ProgressBar()])
    """

    def __init__(self, console: Console | None = None):
        self.console = console
        self._view: _Terminal | _Notebook | _Lines | None = None

    @property
    def is_live(self) -> bool:
        """Whether a bar can move here: in a terminal, or in a notebook."""
        if self.console is None and _notebook() is not None:
            return True
        return (self.console or Console(stderr=True)).is_terminal

    def __call__(self, news: Progress) -> None:
        if self._view is None:
            # Made now, not before: an estimator that has not been fitted can be copied and sent
            # to other processes with all its listeners.
            self._view = self._made()
        self._view.show(news)

    def _made(self) -> _Terminal | _Notebook | _Lines:
        display = _notebook() if self.console is None else None
        if display is not None:
            return _Notebook(display)
        console = self.console or Console(stderr=True)
        return _Terminal(console) if console.is_terminal else _Lines(console)

    def close(self) -> None:
        """Take the bar away and leave the last lines; the next fit gets a new one."""
        view, self._view = self._view, None
        if view is not None:
            view.close()


class _Lines:
    """One line now and then, for outputs that keep what is written."""

    def __init__(self, console: Console):
        self._console = console
        self._last: Progress | None = None
        self._when = 0.0

    def show(self, news: Progress) -> None:
        now = time.monotonic()
        first = self._last is None or self._last.stage != news.stage
        if first:
            self.close()
        self._last = news
        if first or now - self._when >= _SECONDS_PER_LINE:
            self._when = now
            _write_line(self._console, one_line(news))

    def close(self) -> None:
        # A stage that counts nothing was named when it began.
        if self._last is not None and self._last.max_sweeps:
            _write_line(self._console, _last_line(self._last))
        self._last = None


class _Terminal:
    """A live bar for the present stage."""

    def __init__(self, console: Console):
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _TimedBar(bar_width=10),
            TextColumn("{task.fields[state]}", markup=False),
            console=console,
            transient=True,
        )
        self._bar.start()
        self._last: Progress | None = None

    def show(self, news: Progress) -> None:
        now = time.monotonic()
        # Short enough for 80 columns.
        state = _state(news)
        if self._last is None or self._last.stage != news.stage:
            self._end_stage()
            self._began = now
            timed = math.nan if news.max_sweeps else news.seconds_left
            self._task = self._bar.add_task(news.stage, total=1.0, state=state, timed=timed)
        self._last = news
        # A guess may grow; a bar that goes back would only puzzle.
        share = max(_share(news, now - self._began), self._bar.tasks[0].completed)
        self._bar.update(self._task, description=_title(news), completed=share, state=state)

    def close(self) -> None:
        try:
            self._end_stage()
        finally:
            self._bar.stop()

    def _end_stage(self) -> None:
        if self._last is not None:
            self._bar.remove_task(self._task)
            _write_line(self._bar.console, _last_line(self._last))
            self._last = None


class _TimedBar(BarColumn):
    """A bar that moves by itself through a stage that says how long it takes, and counts nothing.

    It stops short of its end: the stage may take longer than it says.
    """

    def render(self, task: Task) -> DrawnBar:
        timed = task.fields.get("timed", math.nan)
        if timed > 0.0:
            task.completed = max(task.completed, min((task.elapsed or 0.0) / timed, 0.95))
        return super().render(task)


def _title(news: Progress) -> str:
    return f"{news.stage}: {news.unit} {news.sweep:,}" if news.max_sweeps else news.stage


def _state(news: Progress) -> str:
    """What stands behind a bar: short enough for 80 columns."""
    known = news.max_sweeps and not math.isnan(news.seconds_left)
    left = f"> {_seconds(news.seconds_left)} left" if known else ""
    return ", ".join(filter(None, (_measures(news, 4), left)))


def _share(news: Progress, past: float) -> float:
    """The part of a stage that is done after `past` seconds."""
    if not math.isnan(news.seconds_left):
        return past / (past + news.seconds_left) if past > 0 else 0.0
    return news.sweep / news.max_sweeps if news.max_sweeps else 0.0


def _notebook() -> Any:
    """IPython's `display` in a notebook, None elsewhere.

    IPython is never imported: in a notebook it is there already.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # The shell of a terminal has no kernel to send pictures to.
    return None if getattr(shell, "kernel", None) is None else sys.modules["IPython"].display


class _Notebook:
    """A live bar in the output of a notebook's cell; only its lines stay when it is over."""

    def __init__(self, display: Any):
        self._lines: list[str] = []
        self._last: Progress | None = None
        self._began = self._drawn = 0.0
        self._handle = display.display(self, display_id=True)

    def show(self, news: Progress) -> None:
        now = time.monotonic()
        first = self._last is None or self._last.stage != news.stage
        if first:
            self._end_stage()
            self._began = now
        self._last = news
        if first or now - self._drawn >= _SECONDS_PER_PICTURE:
            self._drawn = now
            self._handle.update(self)

    def close(self) -> None:
        self._end_stage()
        self._handle.update(self)

    def _end_stage(self) -> None:
        if self._last is not None:
            self._lines.append(_last_line(self._last))
            self._last = None

    def __repr__(self) -> str:
        return "\n".join([*self._lines, *([] if self._last is None else [one_line(self._last)])])

    def _repr_html_(self) -> str:
        parts = [f"<div>{html.escape(line)}</div>" for line in self._lines]
        if self._last is not None:
            # Without a value the browser moves the bar to and fro.
            share = _share(self._last, time.monotonic() - self._began)
            value = f' value="{share:.3f}"' if self._last.max_sweeps else ""
            said = " ".join(map(html.escape, (_title(self._last), _state(self._last))))
            parts.append(f"<div><progress max='1'{value}></progress> {said}</div>")
        return "".join(parts)


def _write_line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)

"""Who listens to a fit: a progress bar and a log, for the parameter `callbacks` of an estimator.

A listener is any callable that takes a `Progress`. One with a method `close` is closed when the
fit is over, also when it fails.
"""

from __future__ import annotations

import logging
import math
import time

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from evdist.engine.progress import Progress

__all__ = ["LogProgress", "ProgressBar", "one_line"]

#: Seconds between two lines of one stage where there is no terminal.
_SECONDS_PER_LINE = 10.0


def one_line(news: Progress) -> str:
    """What logs and plain outputs say of a sweep, or of a step of a stage without sweeps."""
    most = "of at most" if news.unit == "sweep" else "of"
    count = f"{news.unit} {news.sweep:,} {most} {news.max_sweeps:,}" if news.max_sweeps else ""
    # The time left is a guess from below: the stopping rule cannot be met sooner.
    left = "" if math.isnan(news.seconds_left) else f"at least {_seconds(news.seconds_left)} left"
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

    In a terminal: a bar for the present stage, and one line for every stage that is over. The bar
    measures time against the least time left, so it may wait near its end. Elsewhere (a file, a
    notebook): plain lines, at the first sweep of a stage, every ten seconds, and at its end.

    Parameters
    ----------
    console : rich.console.Console, default=None
        Where to write; None is the standard error output.

    Examples
    --------
    >>> from evdist import EVCLUS
    >>> from evdist.progress import ProgressBar
    >>> model = EVCLUS(n_clusters=3, callbacks=[ProgressBar()])
    """

    def __init__(self, console: Console | None = None):
        self.console = console
        self._view: _Terminal | _Lines | None = None

    def __call__(self, news: Progress) -> None:
        if self._view is None:
            # Made now, not before: an estimator that has not been fitted can be copied and sent
            # to other processes with all its listeners.
            console = self.console or Console(stderr=True)
            self._view = _Terminal(console) if console.is_terminal else _Lines(console)
        self._view.show(news)

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
            BarColumn(bar_width=10),
            TextColumn("{task.fields[state]}", markup=False),
            console=console,
            transient=True,
        )
        self._bar.start()
        self._last: Progress | None = None

    def show(self, news: Progress) -> None:
        now = time.monotonic()
        # Short enough for 80 columns.
        known = not math.isnan(news.seconds_left)
        left = f"> {_seconds(news.seconds_left)} left" if known else ""
        state = ", ".join(filter(None, (_measures(news, 4), left)))
        if self._last is None or self._last.stage != news.stage:
            self._end_stage()
            self._began = now
            self._task = self._bar.add_task(news.stage, total=1.0, state=state)
        self._last = news
        past = now - self._began
        if known:
            share = past / (past + news.seconds_left) if past > 0 else 0.0
        else:
            share = news.sweep / news.max_sweeps if news.max_sweeps else 0.0
        # A guess may grow; a bar that goes back would only puzzle.
        share = max(share, self._bar.tasks[0].completed)
        self._bar.update(
            self._task,
            description=f"{news.stage}: {news.unit} {news.sweep:,}"
            if news.max_sweeps
            else news.stage,
            completed=share,
            state=state,
        )

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


def _write_line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)

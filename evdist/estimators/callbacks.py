"""News from a fit, passed on to its listeners: callables, and scikit-learn's callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evdist.engine.progress import Progress
from evdist.kernels.compiled import is_compiled, is_loaded
from evdist.registry import load

try:  # scikit-learn's callback protocol came with 1.9
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback._callback_support import callback_management_context
except ImportError:  # pragma: no cover

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Without scikit-learn's protocol only `callbacks` listen."""

    callback_management_context = None


class SweepCallbacks(CallbackSupportMixin):
    """Tells `self.callbacks` and scikit-learn's callbacks about every sweep.

    Those of `self.callbacks` that have a method `close` are closed when the fit is over; with
    `verbose`, a progress bar listens too. Where kernels have to be compiled first, a bar shows it
    even without `verbose`, and goes when they are there.
    """

    callbacks: Any
    verbose: bool
    _bar: Any = None
    #: The function of `_compiles` while it is not there yet.
    _compiling: Any = None
    max_iter: int
    #: The slowest function to compile, as "module:name", and the seconds that all take together.
    _compiles: tuple[str, int] | None = None

    @contextmanager
    def _reporting(self) -> Iterator[Callable[[Progress], None]]:
        self._bar = load("evdist.progress:ProgressBar")() if getattr(self, "verbose", 0) else None
        try:
            with self._reporting_to_all() as report:
                self._tell_of_compiling()
                yield report
        finally:
            listeners, self._bar, self._compiling = self._listeners(), None, None
            for listen in listeners:
                if hasattr(listen, "close"):
                    listen.close()

    @contextmanager
    def _reporting_to_all(self) -> Iterator[Callable[[Progress], None]]:
        if callback_management_context is None or not getattr(self, "_skl_callbacks", None):
            yield self._tell
            return
        with callback_management_context(self):
            context = self._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self)

            def report(news: Progress) -> None:
                self._tell(news)
                if not news.max_sweeps:
                    return  # a stage without sweeps has begun: no task of its own
                task = context.subcontext(task_name=f"{news.stage}, sweep {news.sweep}")
                task.call_on_fit_task_begin(estimator=self)
                task.call_on_fit_task_end(estimator=self)

            yield report
            context.call_on_fit_task_end(estimator=self)

    def _tell_of_compiling(self) -> None:
        """On the first fit of a machine: why it takes longer than the next."""
        if self._compiles is None:
            return
        place, seconds = self._compiles
        function = load(place)
        if is_compiled(function):
            return
        said = f"compiling once, about {seconds} s"
        if not self._listeners():  # no bar and no log of its own
            bar = load("evdist.progress:ProgressBar")()
            if bar.is_live:
                self._bar = bar
            else:
                logging.getLogger("evdist").warning("evdist: %s; the next fit starts at once", said)
        self._tell(Progress(said, 0, 0, seconds_left=seconds))
        self._compiling = function

    def _check_callbacks(self) -> None:
        known = isinstance(self.callbacks, Sequence)
        if not known or not all(map(callable, self.callbacks)):
            raise ValueError(
                f"callbacks must be a list of functions of one Progress, got {self.callbacks!r}."
            )

    def _listeners(self) -> list[Callable[[Progress], None]]:
        return [*self.callbacks, *([] if self._bar is None else [self._bar])]

    def _tell(self, news: Progress) -> None:
        for listen in self.callbacks:
            listen(news)
        if self._bar is None:
            return
        if self._compiling is not None:
            if not news.max_sweeps and not is_loaded(self._compiling):
                return  # the kernels are compiled within the stages that come first
            self._compiling = None
            if not getattr(self, "verbose", 0):
                bar, self._bar = self._bar, None
                bar.close()
                return
        self._bar(news)

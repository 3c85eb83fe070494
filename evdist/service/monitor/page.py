"""A page of the Dask dashboard: how far each job is, how its objective falls, who does the work.

Importing this module in a scheduler's process adds the page /evdist: see
`evdist.service.monitor.scheduler`.
"""

from __future__ import annotations

import time
from html import escape
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, DataRange1d, FactorRange, Range1d
from bokeh.models.widgets import Div
from bokeh.plotting import figure
from distributed.dashboard import scheduler as dashboard
from distributed.dashboard.components import add_periodic_callback
from distributed.dashboard.components.scheduler import BOKEH_THEME, env
from distributed.http.utils import RequestHandler

from evdist.service.monitor.events import JOBS, STEPS, JobNews, read_jobs

#: Milliseconds between two looks.
_EVERY = 500
#: Seconds of colour steps that the shares are taken from.
_RECENT = 30.0
_STYLE = "border-spacing: 1.2em 0.2em; font-size: 110%"
_BLUE, _ORANGE = "#0072B2", "#D55E00"


class ProgressHandler(RequestHandler):
    """The same news as JSON, for those who draw their own page."""

    def get(self) -> None:
        jobs = read_jobs(self.server.get_events(JOBS), time.time())
        self.write({"jobs": [{**job.last, "updated": job.when} for job in jobs]})


#: Read by Dask: served beside the scheduler's own.
routes: list[tuple[str, type, dict[str, Any]]] = [("evdist.json", ProgressHandler, {})]


class JobsView:
    """The parts of the page, and how they follow the events."""

    def __init__(self, scheduler: Any):
        self.scheduler = scheduler
        self.facts = Div(sizing_mode="stretch_width")
        self.owners = Div(sizing_mode="stretch_width")
        self.objective = ColumnDataSource({"sweep": [], "objective": []})
        self.speed = ColumnDataSource({"sweep": [], "rows": []})
        self.share = ColumnDataSource({"worker": [], "share": [], "step": []})
        self.workers = FactorRange()
        self.root = column(
            self.facts,
            row(self._curves(), self._speeds(), sizing_mode="stretch_both"),
            self._shares(),
            self.owners,
            sizing_mode="stretch_both",
        )

    def _curves(self) -> Any:
        plot = figure(title="Objective J after each sweep", y_axis_type="log",
                      x_axis_label="sweep", sizing_mode="stretch_both", min_height=220,
                      tools="pan,wheel_zoom,reset,hover")  # fmt: skip
        plot.line("sweep", "objective", source=self.objective, line_width=2, color=_BLUE)
        plot.scatter("sweep", "objective", source=self.objective, size=5, color=_BLUE)
        return plot

    def _speeds(self) -> Any:
        plot = figure(title="Rows per second", x_axis_label="sweep", sizing_mode="stretch_both",
                      min_height=220, y_range=DataRange1d(start=0),
                      tools="pan,wheel_zoom,reset,hover")  # fmt: skip
        plot.line("sweep", "rows", source=self.speed, line_width=2, color=_ORANGE)
        return plot

    def _shares(self) -> Any:
        plot = figure(title="Share of the rows each worker updated in the last 30 seconds",
                      y_range=self.workers, x_range=Range1d(start=0, end=1),
                      sizing_mode="stretch_width", height=180, tools="hover",
                      tooltips="@worker: @share{0.0 %}, step @step")  # fmt: skip
        plot.hbar(y="worker", right="share", height=0.7, source=self.share, color=_BLUE)
        return plot

    def update(self) -> None:
        """Take what the scheduler knows now."""
        now = time.time()
        jobs = read_jobs(self.scheduler.get_events(JOBS), now)
        steps = [event for when, event in self.scheduler.get_events(STEPS) if now - when < _RECENT]
        self.facts.text = _facts(jobs, steps, now)
        self.owners.text = _owners(steps)
        first = jobs[0] if jobs else JobNews("")
        self.objective.data = {"sweep": first.sweeps, "objective": first.objectives}
        self.speed.data = {"sweep": first.sweeps, "rows": first.speeds}
        rows: dict[str, int] = {}
        last: dict[str, str] = {}
        for event in steps:
            rows[event["worker"]] = rows.get(event["worker"], 0) + event["rows"]
            last[event["worker"]] = f"{event['step']} of {event['steps']}"
        total = max(sum(rows.values()), 1)
        workers = sorted(rows)
        self.workers.factors = workers
        self.share.data = {
            "worker": workers,
            "share": [rows[worker] / total for worker in workers],
            "step": [last[worker] for worker in workers],
        }


def _facts(jobs: list[JobNews], steps: list[dict[str, Any]], now: float) -> str:
    """The table at the top of the page; every text in it comes from outside and is escaped."""
    if not jobs:
        return "<p>No evdist job has reported anything within the last hour.</p>"
    step = f"{steps[-1]['step']} of {steps[-1]['steps']}" if steps else "–"
    heads = ("job", "stage", "sweep", "objective J", "fall of J", "rows/s", "colour step",
             "earliest end", "last update")  # fmt: skip
    lines = ["<tr>" + "".join(f"<th align='left'>{head}</th>" for head in heads) + "</tr>"]
    for job in jobs[:10]:
        last = job.last
        recent = now - job.when < _RECENT
        ends = "–" if job.ends is None else time.strftime("%H:%M:%S", time.localtime(job.ends))
        cells = (
            job.job, last["stage"], f"{last['sweep']:,} of {last['max_sweeps']:,}",
            _number(last["objective"]), _number(last["change"], -1.0),
            "–" if last["rows_per_second"] is None else f"{last['rows_per_second']:,.0f}",
            step if recent else "–", ends, f"{now - job.when:.0f} s ago",
        )  # fmt: skip
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
    return f"<h2>evdist</h2><table style='{_STYLE}'>{''.join(lines)}</table>"


def _owners(steps: list[dict[str, Any]]) -> str:
    """What owners of partitions moved and received in the steps; "" where there are none."""
    totals: dict[str, list[int]] = {}
    for event in steps:
        if "partitions" in event:
            mine = totals.setdefault(event["worker"], [0, 0, 0])
            mine[0] = event["partitions"]
            mine[1] += event["moved"]
            mine[2] += event["received"]
    if not totals:
        return ""
    heads = ("worker", "partitions", "rows moved", "MB received")
    lines = ["<tr>" + "".join(f"<th align='left'>{head}</th>" for head in heads) + "</tr>"]
    for worker, (partitions, moved, received) in sorted(totals.items()):
        cells = (worker, partitions, f"{moved:,}", f"{received / 1e6:,.1f}")
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
    title = "Partitions: exchange of the last 30 seconds"
    return f"<h3>{title}</h3><table style='{_STYLE}'>{''.join(lines)}</table>"


def _number(value: float | None, sign: float = 1.0) -> str:
    return "–" if value is None else f"{sign * value:.6g}"


def evdist_page(scheduler: Any, extra: dict[str, Any], doc: Any) -> None:
    """Make the page; Dask calls this for every browser that opens it."""
    view = JobsView(scheduler)
    view.update()
    add_periodic_callback(doc, view, _EVERY)
    doc.title = "Dask: evdist"
    doc.add_root(view.root)
    doc.template = env.get_template("simple.html")
    doc.template_variables.update({**extra, "active_page": "evdist"})
    doc.theme = BOKEH_THEME


dashboard.applications["/evdist"] = evdist_page

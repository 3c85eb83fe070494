"""Commands that submit jobs and look after them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evdist.service.cli.late import Late
from evdist.service.cli.options import (
    Algorithm,
    ApiUrl,
    Category,
    Clusters,
    Columns,
    Data,
    Deployment,
    Drop,
    DropIds,
    Encode,
    Id,
    JobName,
    Json,
    Label,
    Parameters,
    Scale,
    Seed,
    Storage,
    Weight,
    given,
    listed,
    number,
    parsed,
)
from evdist.service.cli.out import Exit, errors, facts, say, show, table

if TYPE_CHECKING:
    from evdist.service.client import Job

Client: Any = Late("evdist.service.client:Client")
ConfigError: Any = Late("evdist.service.config:ConfigError")
JobState: Any = Late("evdist.service.jobs:JobState")
paths: Any = Late("evdist.stores.paths")


def submit(
    data: Data,
    clusters: Clusters = None,
    algorithm: Algorithm = "evclus",
    set_: Parameters = None,
    scale: Scale = None,
    encode: Encode = False,
    category: Category = None,
    drop_ids: DropIds = None,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    label: Label = None,
    weight: Weight = None,
    seed: Seed = None,
    storage: Storage = None,
    api_url: ApiUrl = None,
    deployment: Deployment = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job, with a bar.")] = False,
    json: Json = False,
) -> None:
    """Upload data and start a job in the background, or on a Prefect server."""
    with errors(json):
        parameters = {**parsed(set_), **given(n_clusters=number(clusters), random_state=seed)}
        job = Client(storage, api_url, deployment=deployment).submit(
            data, algorithm, scale=scale, encode=encode, categories=listed(category) or (),
            drop_ids=drop_ids, columns=listed(column), drop=listed(drop) or (), id=id,
            label=label, weight=weight, bar=not json, **parameters,
        )  # fmt: skip
        if wait:
            job.wait(bar=not json)
        show(_described(job)) if json else say(f"{job.id}  {job.status}  {job.url}")


def status(
    job: Annotated[str, typer.Argument(metavar="[JOB]", help="A job; default: all jobs.")] = "",
    storage: Storage = None,
    api_url: ApiUrl = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job, with a bar.")] = False,
    json: Json = False,
) -> None:
    """Show the status of jobs. For a single job, exit code 4 means that it is not done."""
    with errors(json):
        client = Client(storage, api_url)
        if not job:
            rows = [_described(one) for one in client.jobs()]
            if json:
                show(rows)
            elif rows:
                names = ["id", "status", "stage", "iteration", "objective", "created"]
                table(names, [[row[name] for name in names] for row in rows])
                for row in rows:
                    if row["waiting"]:
                        say(f"{row['id']}: {row['waiting']}")
            else:
                say("no jobs yet")
            return
        found = client.job(job)
        if watch:
            found.wait(bar=not json)
        described = _described(found)
        show(described) if json else facts(described)
        if described["status"] != JobState.DONE:
            raise typer.Exit(int(Exit.NOT_DONE))


def _described(job: Job) -> dict[str, Any]:
    folder, news = job.folder, job.progress
    counted, state = news is not None and news.max_sweeps, job.status
    return {
        "id": folder.id,
        "status": str(state),
        "stage": news.stage if news else "",
        "iteration": news.sweep if news is not None and counted else "",
        "objective": f"{news.objective:.6g}" if news and news.objective == news.objective else "",
        "created": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(folder.created)),
        "folder": folder.url,
        "error": folder.error or "",
        "waiting": (job.waiting if state is JobState.QUEUED else None) or "",
    }


def logs(job: JobName, storage: Storage = None, api_url: ApiUrl = None, json: Json = False) -> None:
    """Show the log of a job."""
    with errors(json):
        found = Client(storage, api_url).job(job)
        lines = found.logs().rstrip()
        show({"id": found.id, "lines": lines.splitlines()}) if json else say(lines)


def cancel(
    job: JobName, storage: Storage = None, api_url: ApiUrl = None, json: Json = False
) -> None:
    """Stop a job. If you submit it again, it resumes where it stopped."""
    with errors(json):
        found = Client(storage, api_url).job(job)
        state = found.status
        running = state in (JobState.QUEUED, JobState.RUNNING)
        found.cancel()
        if json:
            show({"id": found.id, "status": str(state), "asked_to_stop": running})
            return
        say(f"{found.id}: asked to stop" if running else f"{found.id} is {state}: nothing to stop")


def delete(
    job: JobName,
    storage: Storage = None,
    api_url: ApiUrl = None,
    json: Json = False,
) -> None:
    """Remove a job that has ended and all its files; uploaded data are kept."""
    with errors(json):
        client = Client(storage, api_url)
        name = client.job(job).id
        freed = client.delete(job)
        show({"id": name, "bytes": freed}) if json else say(f"{name}: removed, {freed:,} bytes")


def fetch(
    job: JobName,
    out: Annotated[Path, typer.Option("--out", "-o", help="Local folder for the results.")],
    storage: Storage = None,
    api_url: ApiUrl = None,
    json: Json = False,
) -> None:
    """Copy the results of a finished job: masses.zarr, objects.parquet, metrics, report."""
    with errors(json):
        found = Client(storage, api_url).job(job)
        result = found.result()
        masses = paths.join(paths.address(out), "masses.zarr")
        if paths.exists(paths.join(paths.address(out), "manifest.json")):
            raise ConfigError(f"{out} is the folder of a job. Fetch into another one.")
        out.mkdir(parents=True, exist_ok=True)
        if paths.exists(masses):
            paths.remove(masses)  # of an earlier fetch
        found.report(out / "report.html")
        result.save(masses)
        for name in ("metrics.json", "objects.parquet"):
            found.copy(name, out / name)
        names = sorted(path.name for path in out.iterdir())
        if json:
            show({"id": found.id, "folder": str(out.absolute()), "files": names})
        else:
            say(f"{found.id}: {', '.join(names)} in {out}")

"""Commands that run jobs here, and commands that submit jobs and look after them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evdist.service.cli.late import Late
from evdist.service.cli.options import (
    Algorithm,
    ApiUrl,
    ConfigFile,
    Deployment,
    Json,
    Out,
    Parameters,
    Quiet,
    Storage,
    listed,
    parsed,
)
from evdist.service.cli.out import Exit, errors, facts, note, say, show, table

if TYPE_CHECKING:
    from evdist.service.client import Job
    from evdist.service.jobs import JobResult

ProgressBar: Any = Late("evdist.progress:ProgressBar")
Client: Any = Late("evdist.service.client:Client")
ConfigError: Any = Late("evdist.service.config:ConfigError")
JobConfig: Any = Late("evdist.service.config:JobConfig")
read_config: Any = Late("evdist.service.config:read_config")
JobState: Any = Late("evdist.service.jobs:JobState")
run: Any = Late("evdist.service.jobs:run")
paths: Any = Late("evdist.stores.paths")

Data = Annotated[str, typer.Argument(help="A .csv, .parquet, .npy or .zarr file, or its URL.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="A,B", help="Columns to use; may be repeated."),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out; may be repeated.")
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names the objects in the answer."),
]
Label = Annotated[str | None, typer.Option(help="Column of known classes, for scores only.")]
Weight = Annotated[str | None, typer.Option(help="Column of positive weights.")]
Scale = Annotated[
    Literal["standard", "robust", "gower"] | None,
    typer.Option(help="Bring the columns to one scale; gower needs --encode."),
]
Encode = Annotated[
    bool,
    typer.Option("--encode", help="Make numbers of categories, dates and missing values."),
]
Category = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="With --encode: columns whose numbers are names."),
]
Clusters = Annotated[
    str | None,
    typer.Option("--clusters", "-c", metavar="NUMBER", help="Number of clusters, or 'auto'."),
]
Links = Annotated[
    str | None, typer.Option(help="Table with columns i, j, link ('must' or 'cannot').")
]
Seed = Annotated[int | None, typer.Option(help="Random state; 0 by default.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Dask worker processes on this machine.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores by default.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler that runs.")]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Id or folder of a job.")]


# ---------------------------------------------------------------------- here and now
def cluster(
    data: Data = "",
    clusters: Clusters = None,
    out: Out = "",
    algorithm: Algorithm = "evclus",
    set_: Parameters = None,
    scale: Scale = None,
    encode: Encode = False,
    category: Category = None,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    label: Label = None,
    weight: Weight = None,
    links: Links = None,
    seed: Seed = None,
    workers: Workers = None,
    threads: Threads = None,
    scheduler: Scheduler = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cluster the objects of a file. Called again, it goes on where it stopped."""
    with errors(json):
        if config is None and not (data and out):
            raise ConfigError(
                "Say what to cluster and where the job folder is to be: evdist cluster DATA -c 3 "
                "--out FOLDER. Or name a file that says so with --config."
            )
        values: dict[str, Any] = {}
        if data:
            values["data"] = _given(
                url=data, columns=listed(column), drop=listed(drop), id=id, label=label,
                weight=weight, scale=scale, encode=encode or None, categories=listed(category),
            )  # fmt: skip
        parameters = {**parsed(set_), **_given(n_clusters=_number(clusters), random_state=seed)}
        values |= _given(
            folder=out or None,
            algorithm=algorithm if algorithm != "evclus" or config is None else None,
            parameters=parameters or None,
            links={"url": links} if links else None,
            cluster=_cluster(workers, threads, scheduler) or None,
            title=title,
        )
        wanted = JobConfig.of(**values) if config is None else read_config(config, **values)
        _told(run(wanted, listen=() if quiet or json else (ProgressBar(),)), json)


def predict(
    model: Annotated[str, typer.Argument(help="Folder of a finished job.")],
    data: Data,
    out: Out,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Place new objects by the model of a finished job, which knows columns, scale and id."""
    _with_model("predict", model, data, out, column, drop, id, quiet, json)


def append(
    model: Annotated[str, typer.Argument(help="Folder of a finished job; its partition grows.")],
    data: Data,
    out: Out,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Add new objects to the partition of a finished job, once however often it is called."""
    _with_model("append", model, data, out, column, drop, id, quiet, json)


def select(
    data: Data,
    out: Out,
    clusters: Annotated[
        str | None, typer.Option("--clusters", "-c", metavar="LOW-HIGH", help="Numbers to try.")
    ] = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="modes (default), nonspecificity, bic, silhouette or gap."),
    ] = None,
    algorithm: Algorithm = "evclus",
    set_: Parameters = None,
    scale: Scale = None,
    encode: Encode = False,
    category: Category = None,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    label: Label = None,
    seed: Seed = None,
    workers: Workers = None,
    threads: Threads = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the number of clusters, or that the data show no structure; fit with that many."""
    with errors(json):
        config = JobConfig.of(
            task="select",
            folder=out,
            data=_given(
                url=data,
                columns=listed(column),
                drop=listed(drop),
                id=id,
                label=label,
                scale=scale,
                encode=encode or None,
                categories=listed(category),
            ),
            **_given(candidates=clusters and _range(clusters), criterion=criterion),
            algorithm=algorithm,
            parameters={**parsed(set_), **_given(random_state=seed)},
            cluster=_cluster(workers, threads, scheduler),
        )
        result = run(config, listen=() if quiet or json else (ProgressBar(),))
        found = result.folder.stages["select"].outputs["selection"]
        if json:
            show({**result.metrics, "selection": found, "folder": result.folder.url})
            return
        names = ["n_clusters", found["criterion"]]
        if any("objective" in row for row in found["candidates"]):
            names.append("objective")
        table(names, [[_short(row.get(name, "")) for name in names] for row in found["candidates"]])
        say(f"best: {found['verdict']}")
        _told(result, json)


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdigit() else text


def _range(text: str) -> list[int]:
    low, _, high = text.partition("-")
    if not low.isdigit() or not (high or low).isdigit() or int(high or low) < int(low):
        raise ConfigError(f"--clusters needs LOW-HIGH, such as 2-10, got {text!r}.")
    return list(range(int(low), int(high or low) + 1))


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def combine(
    inputs: Annotated[list[str], typer.Argument(help="Folders of finished jobs, or mass stores.")],
    out: Out,
    set_: Parameters = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """One partition that agrees best with several of the same objects."""
    with errors(json):
        config = JobConfig.of(task="combine", folder=out, inputs=inputs, parameters=parsed(set_))
        _told(run(config, listen=() if quiet or json else (ProgressBar(),)), json)


def _with_model(
    task: str,
    model: str,
    data: str,
    out: str,
    column: list[str] | None,
    drop: list[str] | None,
    id: str | None,
    quiet: bool,
    json: bool,
) -> None:
    with errors(json):
        chosen = _given(url=data, columns=listed(column), drop=listed(drop), id=id)
        config = JobConfig.of(task=task, model=model, data=chosen, folder=out)
        _told(run(config, listen=() if quiet or json else (ProgressBar(),)), json)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _cluster(workers: int | None, threads: int | None, scheduler: str | None) -> dict[str, Any]:
    kind = "scheduler" if scheduler else "processes" if workers else None
    return _given(kind=kind, n_workers=workers, threads=threads, address=scheduler)


def _told(result: JobResult, json: bool) -> None:
    metrics = result.metrics
    if json:
        show({**metrics, "folder": result.folder.url, "report": result.report})
        return
    for sentence in metrics.get("warnings", []):
        note(f"warning: {sentence}")
    say(
        f"{metrics['n_objects']:,} objects in {metrics['n_clusters']} clusters: "
        f"{metrics['n_sure']:,} sure members, {metrics['n_between']:,} between clusters, "
        f"{metrics['n_outliers']:,} outliers"
    )
    names = ("objective", "iterations", "converged", "nonspecificity", "adjusted_rand_index")
    known = {name.replace("_", " "): metrics[name] for name in names if name in metrics}
    facts({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in known.items()})
    say(f"look at: {result.report}")


# ---------------------------------------------------------------------- submitted jobs
def submit(
    data: Data,
    clusters: Clusters = None,
    algorithm: Algorithm = "evclus",
    set_: Parameters = None,
    scale: Scale = None,
    encode: Encode = False,
    category: Category = None,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    label: Label = None,
    weight: Weight = None,
    seed: Seed = None,
    storage: Storage = None,
    api_url: ApiUrl = None,
    deployment: Deployment = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for it, with a bar.")] = False,
    json: Json = False,
) -> None:
    """Upload data and start a job in the background, or on a Prefect server."""
    with errors(json):
        given = {**parsed(set_), **_given(n_clusters=_number(clusters), random_state=seed)}
        job = Client(storage, api_url, deployment=deployment).submit(
            data, algorithm, scale=scale, encode=encode, categories=listed(category) or (),
            columns=listed(column), drop=listed(drop) or (), id=id,
            label=label, weight=weight, bar=not json, **given,
        )  # fmt: skip
        if wait:
            job.wait(bar=not json)
        show(_described(job)) if json else say(f"{job.id}  {job.status}  {job.url}")


def status(
    job: Annotated[str, typer.Argument(metavar="[JOB]", help="One job; all without.")] = "",
    storage: Storage = None,
    api_url: ApiUrl = None,
    watch: Annotated[bool, typer.Option("--watch", help="Until it is over, with a bar.")] = False,
    json: Json = False,
) -> None:
    """Where jobs stand. Of one job, exit code 4 says that it is not done."""
    with errors(json):
        client = Client(storage, api_url)
        if not job:
            rows = [_described(one) for one in client.jobs()]
            if json:
                show(rows)
            elif rows:
                names = ["id", "status", "stage", "iteration", "objective", "created"]
                table(names, [[row[name] for name in names] for row in rows])
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
    counted = news is not None and news.max_sweeps
    return {
        "id": folder.id,
        "status": str(job.status),
        "stage": news.stage if news else "",
        "iteration": news.sweep if news is not None and counted else "",
        "objective": f"{news.objective:.6g}" if news and news.objective == news.objective else "",
        "created": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(folder.created)),
        "folder": folder.url,
        "error": folder.error or "",
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
    """Ask a job to stop. Submitted again, it goes on where it was."""
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
    """Remove a job that is over, with all it has made; its uploaded data stay."""
    with errors(json):
        client = Client(storage, api_url)
        name = client.job(job).id
        freed = client.delete(job)
        show({"id": name, "bytes": freed}) if json else say(f"{name}: removed, {freed:,} bytes")


def fetch(
    job: JobName,
    out: Annotated[Path, typer.Option("--out", "-o", help="Local folder for the answer.")],
    storage: Storage = None,
    api_url: ApiUrl = None,
    json: Json = False,
) -> None:
    """Copy the answer of a finished job: masses.zarr, objects.parquet, metrics, report."""
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

"""Commands that run a job in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evdist.service.cli.late import Late
from evdist.service.cli.options import (
    Algorithm,
    Category,
    Clusters,
    Columns,
    ConfigFile,
    Data,
    Drop,
    DropIds,
    Encode,
    Id,
    Json,
    Label,
    Links,
    Out,
    Parameters,
    Quiet,
    Scale,
    Scheduler,
    Seed,
    Threads,
    Weight,
    Workers,
    given,
    listed,
    number,
    parsed,
)
from evdist.service.cli.out import errors, facts, note, say, show, table

if TYPE_CHECKING:
    from evdist.service.jobs import JobResult

#: Clusters whose headlines a command prints; `evdist describe` has all.
SHOWN_CLUSTERS = 12

ProgressBar: Any = Late("evdist.progress:ProgressBar")
ConfigError: Any = Late("evdist.service.config:ConfigError")
JobConfig: Any = Late("evdist.service.config:JobConfig")
read_config: Any = Late("evdist.service.config:read_config")
run: Any = Late("evdist.service.jobs:run")


def cluster(
    data: Data = "",
    clusters: Clusters = None,
    out: Out = "",
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
    links: Links = None,
    seed: Seed = None,
    workers: Workers = None,
    threads: Threads = None,
    scheduler: Scheduler = None,
    conformal: Annotated[
        float | None,
        typer.Option(help="Share of conformal sets of clusters that may miss, such as 0.1."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cluster the objects of a file. If interrupted, the same command resumes."""
    with errors(json):
        if config is None and not (data and out):
            raise ConfigError(
                "Give the data to cluster and the job folder: evdist cluster DATA -c 3 "
                "--out FOLDER. Or name a file that says so with --config."
            )
        values: dict[str, Any] = {}
        if data:
            values["data"] = given(
                url=data, columns=listed(column), drop=listed(drop), id=id, label=label,
                weight=weight, scale=scale, encode=encode or None, categories=listed(category),
                drop_ids=drop_ids,
            )  # fmt: skip
        parameters = {**parsed(set_), **given(n_clusters=number(clusters), random_state=seed)}
        values |= given(
            folder=out or None,
            algorithm=algorithm if algorithm != "evclus" or config is None else None,
            parameters=parameters or None,
            links={"url": links} if links else None,
            cluster=_cluster(workers, threads, scheduler) or None,
            conformal=conformal,
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
    """Predict new objects with the model of a finished job (same columns, scale and id)."""
    _with_model("predict", model, data, out, column, drop, id, quiet, json)


def append(
    model: Annotated[str, typer.Argument(help="Folder of a finished job to extend.")],
    data: Data,
    out: Out,
    column: Columns = None,
    drop: Drop = None,
    id: Id = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Add new objects to the partition of a finished job. Repeated calls add them only once."""
    _with_model("append", model, data, out, column, drop, id, quiet, json)


def select(
    data: Data,
    out: Out,
    clusters: Annotated[
        str | None,
        typer.Option("--clusters", "-c", metavar="LOW-HIGH", help="Numbers of clusters to try."),
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
    drop_ids: DropIds = None,
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
    """Find the number of clusters (1 if the data show no structure) and fit with it."""
    with errors(json):
        config = JobConfig.of(
            task="select",
            folder=out,
            data=given(
                url=data,
                columns=listed(column),
                drop=listed(drop),
                id=id,
                label=label,
                scale=scale,
                encode=encode or None,
                categories=listed(category),
                drop_ids=drop_ids,
            ),
            **given(candidates=clusters and _range(clusters), criterion=criterion),
            algorithm=algorithm,
            parameters={**parsed(set_), **given(random_state=seed)},
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
    """Combine several partitions of the same objects into the one that agrees best with all."""
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
        chosen = given(url=data, columns=listed(column), drop=listed(drop), id=id)
        config = JobConfig.of(task=task, model=model, data=chosen, folder=out)
        _told(run(config, listen=() if quiet or json else (ProgressBar(),)), json)


def _cluster(workers: int | None, threads: int | None, scheduler: str | None) -> dict[str, Any]:
    kind = "scheduler" if scheduler else "processes" if workers else None
    return given(kind=kind, n_workers=workers, threads=threads, address=scheduler)


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
        f"{metrics['n_outliers']:,} outlier{'' if metrics['n_outliers'] == 1 else 's'}"
    )
    # A few new objects do not say what a cluster is.
    fitted = metrics["task"] in ("cluster", "select")
    for k, one in enumerate(metrics["clusters"][:SHOWN_CLUSTERS]):
        if fitted and one.get("headline"):
            say(f"  {{{k}}} {one['labelled']:,} objects: {one['headline']}")
    names = ("objective", "iterations", "converged", "nonspecificity", "adjusted_rand_index")
    known = {name.replace("_", " "): metrics[name] for name in names if name in metrics}
    facts({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in known.items()})
    say(f"look at: {result.report}")

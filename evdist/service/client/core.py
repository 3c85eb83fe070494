"""The client: data in, jobs out."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from getpass import getuser
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evdist.data.dataset import (
    Dataset,
    Table,
    is_complete,
    is_dataset,
    read_contents,
    write_dataset,
)
from evdist.engine.progress import Progress
from evdist.progress import ProgressBar
from evdist.registry import load
from evdist.service.client.background import Background
from evdist.service.client.job import Backend, Job, begin
from evdist.service.config import JobConfig
from evdist.service.jobs import JobError, JobFolder, JobState
from evdist.service.jobs.keeping import (
    Collected,
    check_bucket,
    check_quota,
    collect,
    delete,
    folders,
)
from evdist.service.jobs.models import read_alike
from evdist.service.jobs.reach import storage_away
from evdist.stores.paths import Url, address, join

#: Jobs that a notebook shows of a client.
_SHOWN_JOBS = 10


class Client:
    """Submit jobs and find existing ones.

    Parameters
    ----------
    storage : path or fsspec URL, default=None
        Where data and jobs are stored; by default EVDIST_STORAGE, or .evdist in your home folder.
        With a Prefect server, all workers must have access to it.
    api_url : str, default=None
        URL of a Prefect server, e.g. "http://host:4200/api"; by default EVDIST_API_URL. Without a
        server, jobs run embedded: in the background on this machine, with the same code and the
        same folders.
    deployment : str, default=None
        FLOW/DEPLOYMENT that runs the jobs; by default EVDIST_DEPLOYMENT, or "cluster/evdist". On
        Kubernetes it is "cluster/evdist-k8s".
    user : str, default=None
        Whose jobs they are; by default EVDIST_USER, or your account and the name of this machine.
        On a Prefect server, users with jobs waiting take turns, however many jobs each has queued.

    Examples
    --------
    >>> from evdist import Client
    >>> client = Client()  # embedded
    >>> job = client.submit("flowers.csv", n_clusters=3)  # doctest: +SKIP
    >>> job.wait().result().labels()  # doctest: +SKIP
    """

    def __init__(
        self,
        storage: Url | None = None,
        api_url: str | None = None,
        *,
        deployment: str | None = None,
        user: str | None = None,
    ):
        home = os.environ.get("EVDIST_STORAGE") or str(Path.home() / ".evdist")
        self.storage = address(storage if storage is not None else home)
        self.api_url = api_url or os.environ.get("EVDIST_API_URL") or None
        self.deployment = deployment or os.environ.get("EVDIST_DEPLOYMENT") or "cluster/evdist"
        self.user = user or os.environ.get("EVDIST_USER") or _this_user()
        #: Whether the storage has ever answered.
        self._found = False
        self._backend: Backend = Background()
        if self.api_url is not None:
            # Imports Prefect, which takes two seconds and which an embedded client does not need.
            remote = load("evdist.service.client.deployment:Deployment")
            self._backend = remote(self.api_url, self.deployment, user=self.user)

    # ------------------------------------------------------------------ submitting
    def submit(
        self,
        X: Any,
        algorithm: str = "evclus",
        *,
        scale: Literal["standard", "robust", "gower"] | None = None,
        encode: bool = False,
        categories: Sequence[str] = (),
        drop_ids: Literal["auto"] | None = None,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        label: str | None = None,
        weight: str | None = None,
        id: str | None = None,
        delimiter: str | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        cluster: dict[str, Any] | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        bar: bool = False,
        **parameters: Any,
    ) -> Job:
        """Upload data and start a job, unless they already exist.

        Parameters
        ----------
        X : array, data frame, path or URL, Dataset
            The objects. Data frames may be pandas, polars or Dask; also Arrow tables, Dask and
            zarr arrays.
        algorithm : str, default="evclus"
            Name of an estimator in lower case.
        scale, encode, categories, drop_ids, columns, drop, label, weight, id, delimiter
            See `evdist.service.config.Data`.
        must_link, cannot_link : (p, 2) arrays of object numbers, optional
            Pairs of objects known to be in one cluster, or in different ones.
        cluster : dict, optional
            See `evdist.service.config.Cluster`.
        title, tags
            Of the report, and of the job.
        bar : bool
            Show the upload.
        **parameters
            Of the algorithm: n_clusters=10, ...
        """
        values: dict[str, Any] = {
            "folder": join(self.storage, "jobs/new"),
            "data": {
                "url": "to be uploaded",
                "scale": scale,
                "id": id,
                "encode": encode,
                "categories": list(categories),
                "drop_ids": drop_ids,
            },
            "algorithm": algorithm,
            "parameters": parameters,
            "links": {"must": _pairs(must_link), "cannot": _pairs(cannot_link)},
            "cluster": cluster or {},
            "title": title,
            "tags": list(tags),
        }
        names = None if columns is None else tuple(columns)
        kept: dict[str, Any] = {
            "columns": names,
            "label": label,
            "weight": weight,
            "drop": tuple(drop),
            "id": id,
            "delimiter": delimiter,
        }
        with self._backend.preparing():
            # Mistakes are told before anything is sent.
            JobConfig.of(**values)
            if encode:
                kept |= {
                    "encode": scale or "standard",
                    "categories": tuple(categories),
                    "drop_ids": drop_ids is not None,
                }
                # The numbers that are uploaded are on that scale.
                values["data"] |= {
                    "scale": None, "encode": False, "categories": [], "drop_ids": None
                }  # fmt: skip
            values["data"]["url"] = self.upload(X, **kept, bar=bar).url
            return self.submit_config(JobConfig.of(**values))

    def predict(
        self,
        model: Job | str,
        X: Any,
        *,
        columns: Sequence[str] | None = None,
        id: str | None = None,
    ) -> Job:
        """Start a job that predicts new objects with the model of a finished job.

        Columns, scale and id are those of the model, unless others are given.

        Parameters
        ----------
        model : Job or str
            The finished job, or its folder.
        X : as for `submit`
            The new objects.
        columns : sequence of str, optional
            Columns to use; by default those of the model.
        id : str, optional
            Column with the ids of the objects; by default that of the model.
        """
        return self._with_model("predict", model, X, columns, id)

    def append(
        self,
        model: Job | str,
        X: Any,
        *,
        columns: Sequence[str] | None = None,
        id: str | None = None,
    ) -> Job:
        """Start a job that adds new objects to the partition of a finished job.

        Parameters
        ----------
        model : Job or str
            The finished job, or its folder.
        X : as for `submit`
            The new objects.
        columns : sequence of str, optional
            Columns to use; by default those of the model.
        id : str, optional
            Column with the ids of the objects; by default that of the model.
        """
        return self._with_model("append", model, X, columns, id)

    def _with_model(
        self, task: str, model: Job | str, X: Any, columns: Sequence[str] | None, id: str | None
    ) -> Job:
        url = model.url if isinstance(model, Job) else address(model)
        if isinstance(X, Dataset) or (isinstance(X, str | Path) and is_dataset(X)):
            data = self.upload(X)
        else:
            chosen = None if columns is None else tuple(columns)
            data = self._upload(read_alike(url, Table(X, chosen, id=id)))
        folder = join(self.storage, "jobs/new")
        return self.submit_config(
            JobConfig.of(task=task, folder=folder, model=url, data={"url": data.url})
        )

    def submit_config(self, config: JobConfig) -> Job:
        """Start a job from its configuration, in a folder of this storage named by its content.

        Parameters
        ----------
        config : JobConfig
            What to run; its `folder` is replaced.
        """
        kind = config.algorithm if config.task == "cluster" else config.task
        url = join(self.storage, f"jobs/{kind}-{config.fingerprint[:12]}")
        self._find_storage()
        folder = JobFolder.create(config.model_copy(update={"folder": url}))
        job = Job(folder.url, self._backend)
        if folder.state is JobState.QUEUED:
            begin(self._backend, folder, config)
        else:
            job.resume(config)
        return job

    def upload(
        self,
        X: Any,
        *,
        columns: tuple[str, ...] | None = None,
        label: str | None = None,
        weight: str | None = None,
        drop: tuple[str, ...] = (),
        id: str | None = None,
        encode: Literal["standard", "robust", "gower"] | None = None,
        categories: tuple[str, ...] = (),
        drop_ids: bool = False,
        delimiter: str | None = None,
        bar: bool = False,
    ) -> Dataset:
        """Upload data to the storage in chunks, named by the fingerprint of their content.

        What is there already is not sent again; an upload that was cut off goes on. `encode` is
        the scale of numbers where columns of any kind are made numbers, `drop_ids` whether columns
        that name objects are left out then.

        Parameters
        ----------
        X : as for `submit`
            The objects.
        columns : tuple of str, optional
            Columns to use; all others are left out.
        label : str, optional
            Column of known classes, used for scores only.
        weight : str, optional
            Column of positive weights of the objects.
        drop : tuple of str, default=()
            Columns to leave out.
        id : str, optional
            Column with the ids of the objects.
        encode : {"standard", "robust", "gower"}, optional
            Make columns of any kind numbers, on this scale.
        categories : tuple of str, default=()
            With `encode`: numeric columns that are categories.
        drop_ids : bool, default=False
            With `encode`: leave out columns of text that name objects.
        delimiter : str, optional
            Between the values of a CSV file; detected by default.
        bar : bool, default=False
            Show the progress.
        """
        if isinstance(X, Dataset):
            return X
        if isinstance(X, str | Path) and is_dataset(X):
            return Dataset.open(X)
        table = Table(X, columns, label, weight, drop, delimiter, id)
        if encode is not None:
            fit = load("evdist.data.encode:fit_encoding")
            table = replace(table, encoding=fit(table.raw_pieces(), encode, categories, drop_ids))
        return self._upload(table, bar)

    def _upload(self, table: Table, bar: bool = False) -> Dataset:
        show = ProgressBar() if bar else None
        try:
            self._find_storage()
            contents = read_contents(table)

            def tell(n: int) -> None:
                if show is not None:
                    show(Progress("upload", n, contents.n, unit="row"))

            url = join(self.storage, f"data/{contents.fingerprint[:32]}.zarr")
            if not is_complete(url):
                check_quota(self.storage, contents.nbytes)
            return write_dataset(table, url, contents, tell)
        finally:
            if show is not None:
                show.close()

    # ------------------------------------------------------------------ finding
    def job(self, name: str) -> Job:
        """The job with this id or folder.

        Parameters
        ----------
        name : str
            Id of a job of this storage, or the path or URL of its folder.
        """
        self._find_storage()
        url = name if "/" in name else join(self.storage, f"jobs/{name}")
        return Job(JobFolder.open(url).url, self._backend)

    def jobs(self) -> list[Job]:
        """All jobs of the storage, newest first; a JobError if its bucket does not exist."""
        self._find_storage()
        check_bucket(self.storage)
        found = [(folder.created, folder.url) for folder in folders(self.storage)]
        return [Job(url, self._backend) for _, url in sorted(found, reverse=True)]

    # ------------------------------------------------------------------ housekeeping
    def delete(self, name: str) -> int:
        """Remove a job and its files, but not its data; returns the number of bytes freed.

        Refused while it runs: cancel it first.

        Parameters
        ----------
        name : str
            Id or folder of the job.
        """
        job = self.job(name)
        if job.status in (JobState.QUEUED, JobState.RUNNING):
            raise JobError(f"Job {job.id} is {job.status}. Cancel it first: evdist cancel {job.id}")
        return delete(job.folder, storage=self.storage)

    def collect(self, *, days: float | None = None, dry_run: bool = False) -> Collected:
        """Remove jobs that ended more than `days` ago, and data that no job uses any more.

        Parameters
        ----------
        days : float, optional
            Age from which ended jobs are removed; None removes no job that ended.
        dry_run : bool, default=False
            Only tell what would be removed.
        """
        return collect(self.storage, days=days, dry_run=dry_run)

    def _find_storage(self) -> None:
        """A storage that does not answer is told within seconds, when it is first needed."""
        if not self._found and (away := storage_away(self.storage)):
            raise JobError(away)
        self._found = True

    def _repr_html_(self) -> str:
        """What a notebook shows: where jobs are kept, and the newest of them."""
        found = self.jobs()
        rows = "".join(
            f"<tr><td>{escape(job.id)}</td><td>{escape(str(job.status))}</td></tr>"
            for job in found[:_SHOWN_JOBS]
        )
        more = f"<p>and {len(found) - _SHOWN_JOBS} more</p>" if len(found) > _SHOWN_JOBS else ""
        head = "<tr><th>job</th><th>status</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>{more}"

    def __repr__(self) -> str:
        how = f"Prefect at {self.api_url}" if self.api_url else "embedded"
        return f"<Client: {how}, storage {self.storage}>"


def _this_user() -> str:
    try:
        name = getuser()
    except (ImportError, KeyError, OSError):  # a container's account without a name
        name = "unknown"
    return f"{name}@{socket.gethostname()}"


def _pairs(links: ArrayLike | None) -> list[list[int]]:
    if links is None:
        return []
    table = np.asarray(links)
    if table.size == 0:
        return []
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
        raise ValueError(f"Links must be pairs of object numbers, (p, 2), got {table.shape}.")
    return table.tolist()

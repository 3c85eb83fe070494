"""The configuration of a job: a version, a task, and what that task needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from evdist.estimators.parameters import Parameters, Seed
from evdist.service.config.algorithms import algorithm, checked, usual_name
from evdist.service.config.errors import ConfigError, sentences
from evdist.service.config.plain import plain
from evdist.service.config.secrets import refuse_secret
from evdist.stores.fingerprints import fingerprint

Task = Literal["cluster", "predict", "append", "select", "combine"]
Text = Annotated[str, Field(min_length=1)]
Link = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class Links(_Part):
    """Pairs of objects known to be in one cluster, or in different ones."""

    must: list[Link] = []
    cannot: list[Link] = []
    url: Text | None = Field(
        default=None,
        description="a CSV or Parquet table with columns i, j, link ('must' or 'cannot')",
    )

    @model_validator(mode="after")
    def _no_secret(self) -> Self:
        refuse_secret(self.url, "links.url")
        return self


class Data(_Part):
    """Where the objects are, and how they are read."""

    url: Text = Field(description="path or URL of a .csv, .parquet, .npy or .zarr file")
    columns: list[Text] | None = Field(
        default=None, description="columns to use; all others are left out"
    )
    drop: list[Text] = Field(default=[], description="columns to leave out")
    id: Text | None = Field(
        default=None,
        description="column with the ids of the objects",
    )
    label: Text | None = Field(
        default=None, description="column of known classes, used for scores only"
    )
    weight: Text | None = Field(
        default=None, description="column of positive weights of the objects"
    )
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        default=None, description="between the values of a CSV file; detected by default"
    )
    scale: Literal["standard", "robust", "gower"] | None = Field(
        default=None,
        description="centre each column and divide it by its spread; 'gower' divides by the "
        "range and needs data.encode",
    )

    encode: bool = Field(
        default=False,
        description="encode categories, dates and missing values as numbers; all columns then "
        "have the same weight, and scale applies to numeric columns (default: standard)",
    )
    categories: list[Text] = Field(
        default=[], description="encode: numeric columns that are categories, such as postal codes"
    )
    drop_ids: Literal["auto"] | None = Field(
        default=None,
        description="encode: 'auto' leaves out columns of text that name objects, such as those "
        "with more than a hundred levels",
    )

    @model_validator(mode="after")
    def _no_secret(self) -> Self:
        refuse_secret(self.url, "data.url")
        return self

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.categories and not self.encode:
            raise ValueError("data.categories belongs to data.encode: give both.")
        if self.drop_ids and not self.encode:
            raise ValueError("data.drop_ids belongs to data.encode: give both.")
        if self.scale == "gower" and not self.encode:
            raise ValueError("data.scale 'gower' belongs to data.encode: give both.")
        if self.columns is not None and self.drop:
            raise ValueError("Say which columns to use (data.columns) or to leave out (data.drop).")
        return self


class Cluster(_Part):
    """Where the work runs."""

    kind: Literal["threads", "processes", "scheduler"] = Field(
        default="threads",
        description="threads of one process; Dask worker processes on this machine; a running "
        "Dask scheduler",
    )
    address: Text | None = Field(
        default=None, description="address of the scheduler, e.g. tls://host:8786"
    )
    n_workers: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None,
        description="worker processes; with a scheduler, how many to request if the cluster "
        "scales automatically",
    )
    threads: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        default=None, description="threads per process; all cores by default"
    )
    tls_ca: Text | None = None
    tls_cert: Text | None = None
    tls_key: Text | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if (self.kind == "scheduler") != (self.address is not None):
            raise ValueError("cluster.address belongs to cluster.kind 'scheduler': give both.")
        tls = [self.tls_ca, self.tls_cert, self.tls_key]
        if any(tls) and not all(tls):
            raise ValueError("cluster.tls_ca, tls_cert and tls_key belong together: give all.")
        if self.kind == "threads" and self.n_workers is not None:
            raise ValueError(
                "cluster.n_workers belongs to cluster.kind 'processes' or 'scheduler'."
            )
        return self


class CombineParameters(Parameters):
    """Parameters of the task combine: those of `evdist.combine.combine`."""

    n_clusters: int | None = None
    rule: Literal["dempster", "dubois_prade", "average", "dubois-prade"] = "dempster"
    focal_sets: str = "simple"
    n_pairs: int = 100
    max_iter: int = 100
    tol: float = 1e-4
    random_state: Seed = 0


class JobConfig(_Part):
    """Configuration of a job; the same configuration always gives the same result.

    Attributes
    ----------
    version : int, default=1
        Version of this configuration.
    task : {"cluster", "predict", "append", "select", "combine"}, default="cluster"
        What to do.
    folder : str
        Job folder: a path or any fsspec URL.
    data : Data or mapping, optional
        Where the objects are and how they are read, see `evdist.service.config.Data`; all tasks
        but "combine" need it.
    algorithm : str, default="evclus"
        Name of an estimator in lower case.
    parameters : mapping, default={}
        Parameters of the algorithm; for "combine" those of `evdist.combine.combine`.
    links : Links or mapping, optional
        Pairs of objects, `must` and `cannot`, or a `url` of a table of them.
    model : str, optional
        "predict" and "append": folder of a finished job.
    start : str, optional
        "cluster": folder of a finished job whose masses the fit starts from.
    candidates : list of int, optional
        "select": numbers of clusters to try.
    criterion : {"modes", "nonspecificity", "bic", "silhouette", "gap"}, optional
        "select": what decides; by default what `evdist.select` takes.
    inputs : list of str, optional
        "combine": folders or stores of masses.
    conformal : float, optional
        Share of conformal sets of clusters that may miss; their sizes are then told.
    cluster : Cluster or mapping, optional
        Where the work runs, see `evdist.service.config.Cluster`; by default in threads of this
        process.
    title : str, optional
        Title of the report.
    tags : list of str, default=[]
        Tags of the job.

    Examples
    --------
    >>> from evdist import JobConfig
    >>> job = JobConfig.of(data={"url": "flowers.csv", "scale": "standard"},
    ...                    parameters={"n_clusters": 3}, folder="jobs/flowers")
    >>> job.algorithm
    'evclus'
    """

    version: Literal[1] = 1
    task: Task = "cluster"
    folder: Text = Field(description="job folder: a path or any fsspec URL")
    data: Data | None = None
    algorithm: Annotated[Text, AfterValidator(usual_name)] = "evclus"
    parameters: dict[str, Any] = Field(default={}, description="of the algorithm")
    links: Links = Links()
    model: Text | None = Field(
        default=None, description="predict, append: folder of a finished job"
    )
    start: Text | None = Field(
        default=None,
        description="cluster: folder of a finished job whose masses the fit starts from",
    )
    candidates: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None, description="select: numbers of clusters to try"
    )
    criterion: Literal["modes", "nonspecificity", "bic", "silhouette", "gap"] | None = Field(
        default=None, description="select: what decides; by default what `evdist.select` takes"
    )
    inputs: list[Text] | None = Field(
        default=None, description="combine: folders or stores of masses"
    )
    conformal: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="share of conformal sets of clusters that may miss, such as 0.1; their sizes "
        "then stand in metrics.json and the report",
    )
    cluster: Cluster = Cluster()
    title: Text | None = Field(default=None, description="of the report")
    tags: list[Text] = []

    @classmethod
    def of(cls, values: Mapping[str, Any] | None = None, /, **keys: Any) -> JobConfig:
        """Create a configuration, or raise a ConfigError with one sentence for each mistake.

        Pass the values as a mapping, as keywords, or both; keywords take precedence.

        Parameters
        ----------
        values : mapping, optional
            The configuration, such as a JSON document.
        **keys
            The configuration as keywords.
        """
        try:
            return cls.model_validate(plain({**(values or {}), **keys}))
        except ValidationError as error:
            raise ConfigError(sentences(error, _KEYS)) from error

    @model_validator(mode="after")
    def _task_has_what_it_needs(self) -> Self:
        for name, url in (("folder", self.folder), ("model", self.model), ("start", self.start)):
            refuse_secret(url, name)
        needs, knows = _TASKS[self.task]
        for key in needs:
            if getattr(self, key) is None:
                raise ValueError(f"Task {self.task!r} needs the key {key!r}.")
        for key in ("data", "model", "start", "candidates", "criterion", "inputs"):
            if getattr(self, key) is not None and key not in (*needs, *knows):
                raise ValueError(
                    f"Task {self.task!r} has no use for the key {key!r}; leave it out."
                )
        if self.task in ("cluster", "select"):
            self._check_algorithm()
        elif self.task == "combine":
            self._check_combine()
        elif self.parameters:
            raise ValueError(
                f"Task {self.task!r} takes its parameters from the model; leave them out."
            )
        return self

    def _check_combine(self) -> None:
        checked("combine", CombineParameters, self.parameters)
        if self.parameters.get("n_clusters") is None:
            raise ValueError("parameters.n_clusters is missing: say how many clusters to make.")

    def _check_algorithm(self) -> None:
        chosen = algorithm(self.algorithm).parameters
        checked(self.algorithm, chosen, self.parameters)
        fields = chosen.model_fields
        if self.task == "select" and "n_clusters" in self.parameters:
            raise ValueError(
                "Task 'select' takes the numbers of clusters from 'candidates'; leave out "
                "parameters.n_clusters."
            )
        if self.task == "cluster" and "n_clusters" not in self.parameters:
            if "n_clusters" in fields and fields["n_clusters"].default is not None:
                raise ValueError(
                    "parameters.n_clusters is missing: say how many clusters to look for, or let "
                    "the task 'select' or n_clusters 'auto' find out."
                )
        linked = self.links.must or self.links.cannot or self.links.url
        if linked and "must_link" not in chosen.fit_takes:
            raise ValueError(f"{self.algorithm} takes no links; leave them out.")
        assert self.data is not None
        if self.data.weight is not None and "sample_weight" not in chosen.fit_takes:
            raise ValueError(f"{self.algorithm} takes no weights; leave out data.weight.")
        if self.start is not None and ("init" not in fields or "init" in self.parameters):
            raise ValueError(
                "start gives the first masses: it needs an algorithm with the parameter init, and "
                "that parameter left out."
            )
        metric = self.parameters.get("metric")
        if self.data.scale is not None and metric in ("precomputed", "pairs"):
            raise ValueError(f"data.scale is for attributes; with metric {metric!r} leave it out.")
        if self.data.scale is not None and self.parameters.get("scale") is not None:
            raise ValueError("Give data.scale or parameters.scale, not both: it is the same scale.")

    @property
    def fingerprint(self) -> str:
        """Fingerprint of everything that affects the result: not the folder, cluster or title."""
        decisive = self.model_dump(
            mode="json", exclude={"folder", "cluster", "title", "tags"}, exclude_none=True
        )
        return fingerprint(decisive)

    def to_json(self) -> str:
        """The configuration as a JSON document, without what is not set."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=1)


#: Task -> (keys it needs, keys it also knows).
_TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cluster": (("data",), ("start",)),
    "predict": (("data", "model"), ()),
    "append": (("data", "model"), ()),
    "select": (("data",), ("candidates", "criterion")),
    "combine": (("inputs",), ()),
}

_KEYS = {
    "": list(JobConfig.model_fields),
    "data": list(Data.model_fields),
    "cluster": list(Cluster.model_fields),
    "links": list(Links.model_fields),
}

"""The public names of evdist: every algorithm is one line of ALGORITHMS, everything else of OTHERS.

From these tables come `evdist.NAME`, the algorithms that a job or the command line may name, and
the stub for type checkers, which `make format` writes.
Importing this module loads nothing outside the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evdist.deferred import stand_ins

#: Package that an extra brings -> the extra.
EXTRAS = {
    "torch": "nn",
    "prefect": "service",
    "bokeh": "service",
    "prometheus_client": "service",
    "s3fs": "s3",
    "dask_kubernetes": "k8s",
}


def missing(package: str) -> str:
    """What to do where a package of an extra is not installed."""
    extra = EXTRAS[package]
    more = ""
    if package == "torch":
        more = (
            " For the small build without CUDA first: pip install torch --index-url "
            "https://download.pytorch.org/whl/cpu"
        )
    return f"This needs {package}, which is not installed: pip install 'evdist[{extra}]'.{more}"


def load(place: str) -> Any:
    """The module "package.module", or the object "package.module:name", imported now.

    For modules that take seconds to import (scikit-learn, compiled code, Prefect, matplotlib) and
    that only some callers need; every other import stands at the top of its module.
    """
    module, _, name = place.partition(":")
    try:
        with stand_ins():
            found = import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise ImportError(missing(package), name=package) from error
    return getattr(found, name) if name else found


@dataclass(frozen=True)
class Algorithm:
    """A clusterer of evdist: where its class is, what it does, which page of docs/ is about it."""

    estimator: str
    module: str
    summary: str
    page: str
    #: Parameters with which `select` compares numbers of clusters by N*, where none are given.
    select: Mapping[str, Any] = field(default_factory=lambda: {"focal_sets": "pairs"})
    #: Package of an extra without which its module cannot be imported.
    needs: str | None = None

    @property
    def name(self) -> str:
        """As jobs and the command line call it."""
        return self.estimator.lower()

    @property
    def cls(self) -> Any:
        """The estimator's class, imported now."""
        return load(f"{self.module}:{self.estimator}")

    @property
    def parameters(self) -> Any:
        """The model of its parameters (`evdist.estimators.parameters`), without the estimator."""
        package = self.module.rpartition(".")[0]
        return load(f"{package}.parameters:{self.estimator}Parameters")


#: N* of ECM needs all sets of clusters, and alpha = 2, to rise again after the right number.
_ALL_SETS = {"focal_sets": "full", "alpha": 2.0}

_TABLE = (
    Algorithm("EVCLUS", "evdist.evclus.estimator",
              "conflict of masses matches dissimilarity; linear in n", "evclus.md"),
    Algorithm("NNEVCLUS", "evdist.nnevclus.estimator",
              "a neural network learns the masses; places new objects", "nnevclus.md",
              needs="torch"),
    Algorithm("Bootclus", "evdist.bootclus.estimator",
              "calibrated by a bootstrap of Gaussian mixtures", "bootclus.md"),
    Algorithm("ECM", "evdist.ecm.estimator", "evidential c-means", "ecm.md", _ALL_SETS),
    Algorithm("CECM", "evdist.ecm.cecm", "evidential c-means with links between objects", "ecm.md"),
    Algorithm("RECM", "evdist.ecm.recm", "evidential c-means on a square matrix", "ecm.md",
              _ALL_SETS),
    Algorithm("SECM", "evdist.ecm.secm", "spatial evidential c-means, for images", "ecm.md",
              _ALL_SETS),
    Algorithm("CCM", "evdist.ecm.ccm", "credal c-means", "family.md"),
    Algorithm("BCM", "evdist.ecm.bcm", "belief c-means", "family.md"),
    Algorithm("BPEC", "evdist.ecm.bpec", "belief peaks, then evidential c-means", "family.md"),
    Algorithm("ECMdd", "evdist.medoids.ecmdd", "evidential c-medoids", "family.md"),
    Algorithm("MECM", "evdist.medoids.mecm", "median evidential c-means", "family.md"),
    Algorithm("EGMM", "evdist.egmm.estimator",
              "evidential Gaussian mixture; chooses the number of clusters by BIC", "mixtures.md"),
    Algorithm("EKNNclus", "evdist.eknn.clus",
              "most plausible partition; finds the number of clusters", "family.md"),
)  # fmt: skip

#: Name in a job or on the command line -> algorithm.
ALGORITHMS: dict[str, Algorithm] = {entry.name: entry for entry in _TABLE}

#: Public name -> the module it is taken from. A submodule stands under its own name.
PUBLIC: dict[str, str] = {
    **{entry.estimator: entry.module for entry in _TABLE},
    "Client": "evdist.service.client",
    "CredalPartition": "evdist.partition",
    "EKNNClassifier": "evdist.eknn.classifier",
    "EvidentialNN": "evdist.eknn.network",
    "FocalSets": "evdist.belief",
    "JobConfig": "evdist.service.config",
    "delta_bel": "evdist.ecm.belief_peaks",
    "expand_constraints": "evdist.constraints",
    "belief": "evdist.belief",
    "combine": "evdist.combine",
    "conformal": "evdist.conformal",
    "features": "evdist.features",
    "metrics": "evdist.metrics",
    "mixture": "evdist.mixture",
    "plot": "evdist.plot",
    "progress": "evdist.progress",
    "report": "evdist.report",
    "propose_links": "evdist.constraints",
    "run": "evdist.service.jobs",
    "select": "evdist.selection",
}


def installed() -> list[str]:
    """The public names that `from evdist import *` imports: all whose extras are installed."""
    missing_here = {e.estimator for e in _TABLE if e.needs and find_spec(e.needs) is None}
    return sorted(PUBLIC.keys() - missing_here)


def api_page() -> str:
    """docs/api.md: every public name, where it comes from, and the first sentence about it."""
    lines = [
        "# API\n",
        "One sentence for every public name. For details see `help(evdist.NAME)` or the site that "
        "`make docs` builds. Written by `make format`.\n",
    ]
    for name, home in sorted(PUBLIC.items(), key=lambda pair: pair[0].lower()):
        module = home == f"evdist.{name}"
        about = (load(home if module else f"{home}:{name}").__doc__ or "").strip()
        place = home if module else f"{home}.{name}"
        sentence = " ".join(about.split("\n\n")[0].split())
        lines.append(f"## {name}\n\n`{place}`: {sentence}\n")
        if module:
            members = getattr(load(home), "__all__", [])
            lines.append(f"Holds {', '.join(f'`{one}`' for one in sorted(members))}.\n")
    return "\n".join(lines)


def write_stub() -> None:
    """Write evdist/__init__.pyi: what `evdist.__getattr__` finds, as type checkers see it."""
    places = sorted(
        ("evdist" if home == f"evdist.{name}" else home, name) for name, home in PUBLIC.items()
    )
    lines = [f"from {home} import {name} as {name}\n" for home, name in places]
    text = "".join(["# Written by `make format`.\n", *lines, "\n__version__: str\n"])
    Path(__file__).with_name("__init__.pyi").write_text(text, encoding="utf-8")

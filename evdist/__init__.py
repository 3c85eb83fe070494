"""evdist: evidential clustering of very many objects.

The public names are imported on first use, so that ``import evdist`` costs next to nothing and
asks for no optional dependency.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in _PUBLIC, for type checkers and editors
    from evdist import features as features
    from evdist import metrics as metrics
    from evdist.belief import FocalSets as FocalSets
    from evdist.bootclus.estimator import Bootclus as Bootclus
    from evdist.constraints import expand_constraints as expand_constraints
    from evdist.constraints import propose_links as propose_links
    from evdist.ecm.belief_peaks import delta_bel as delta_bel
    from evdist.ecm.bpec import BPEC as BPEC
    from evdist.ecm.ccm import CCM as CCM
    from evdist.ecm.cecm import CECM as CECM
    from evdist.ecm.estimator import ECM as ECM
    from evdist.ecm.recm import RECM as RECM
    from evdist.eknn.classifier import EKNNClassifier as EKNNClassifier
    from evdist.eknn.clus import EKNNclus as EKNNclus
    from evdist.eknn.network import EvidentialNN as EvidentialNN
    from evdist.evclus.estimator import EVCLUS as EVCLUS
    from evdist.medoids.ecmdd import ECMdd as ECMdd
    from evdist.medoids.mecm import MECM as MECM
    from evdist.nnevclus.estimator import NNEVCLUS as NNEVCLUS
    from evdist.partition import CredalPartition as CredalPartition
    from evdist.selection import select as select
    from evdist.service.client import Client as Client
    from evdist.service.config import JobConfig as JobConfig
    from evdist.service.jobs import run as run

__version__ = "0.1.0"

#: Public name -> the module it is taken from. A submodule stands under its own name.
_PUBLIC = {
    "BPEC": "evdist.ecm.bpec",
    "Bootclus": "evdist.bootclus.estimator",
    "CCM": "evdist.ecm.ccm",
    "CECM": "evdist.ecm.cecm",
    "Client": "evdist.service.client",
    "CredalPartition": "evdist.partition",
    "ECM": "evdist.ecm.estimator",
    "ECMdd": "evdist.medoids.ecmdd",
    "EKNNClassifier": "evdist.eknn.classifier",
    "EKNNclus": "evdist.eknn.clus",
    "EVCLUS": "evdist.evclus.estimator",
    "EvidentialNN": "evdist.eknn.network",
    "FocalSets": "evdist.belief",
    "JobConfig": "evdist.service.config",
    "MECM": "evdist.medoids.mecm",
    "NNEVCLUS": "evdist.nnevclus.estimator",
    "RECM": "evdist.ecm.recm",
    "delta_bel": "evdist.ecm.belief_peaks",
    "expand_constraints": "evdist.constraints",
    "features": "evdist.features",
    "metrics": "evdist.metrics",
    "propose_links": "evdist.constraints",
    "run": "evdist.service.jobs",
    "select": "evdist.selection",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'evdist' has no attribute {name!r}.")
    module = import_module(_PUBLIC[name])
    value = module if module.__name__ == f"evdist.{name}" else getattr(module, name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})

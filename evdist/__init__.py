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
    from evdist.client import Client as Client
    from evdist.config import JobConfig as JobConfig
    from evdist.constraints import expand_constraints as expand_constraints
    from evdist.constraints import propose_links as propose_links
    from evdist.estimators.bootclus import Bootclus as Bootclus
    from evdist.estimators.bpec import BPEC as BPEC
    from evdist.estimators.ccm import CCM as CCM
    from evdist.estimators.cecm import CECM as CECM
    from evdist.estimators.ecm import ECM as ECM
    from evdist.estimators.ecmdd import ECMdd as ECMdd
    from evdist.estimators.eknn_classifier import EKNNClassifier as EKNNClassifier
    from evdist.estimators.eknnclus import EKNNclus as EKNNclus
    from evdist.estimators.evclus import EVCLUS as EVCLUS
    from evdist.estimators.evidential_nn import EvidentialNN as EvidentialNN
    from evdist.estimators.mecm import MECM as MECM
    from evdist.estimators.nnevclus import NNEVCLUS as NNEVCLUS
    from evdist.estimators.recm import RECM as RECM
    from evdist.jobs import run as run
    from evdist.partition import CredalPartition as CredalPartition
    from evdist.selection import select as select
    from evdist.solvers.belief_peaks import delta_bel as delta_bel

__version__ = "0.1.0"

#: Public name -> the module it is taken from. A submodule stands under its own name.
_PUBLIC = {
    "BPEC": "evdist.estimators.bpec",
    "Bootclus": "evdist.estimators.bootclus",
    "CCM": "evdist.estimators.ccm",
    "CECM": "evdist.estimators.cecm",
    "Client": "evdist.client",
    "CredalPartition": "evdist.partition",
    "ECM": "evdist.estimators.ecm",
    "ECMdd": "evdist.estimators.ecmdd",
    "EKNNClassifier": "evdist.estimators.eknn_classifier",
    "EKNNclus": "evdist.estimators.eknnclus",
    "EVCLUS": "evdist.estimators.evclus",
    "EvidentialNN": "evdist.estimators.evidential_nn",
    "FocalSets": "evdist.belief",
    "JobConfig": "evdist.config",
    "MECM": "evdist.estimators.mecm",
    "NNEVCLUS": "evdist.estimators.nnevclus",
    "RECM": "evdist.estimators.recm",
    "delta_bel": "evdist.solvers.belief_peaks",
    "expand_constraints": "evdist.constraints",
    "features": "evdist.features",
    "metrics": "evdist.metrics",
    "propose_links": "evdist.constraints",
    "run": "evdist.jobs",
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

"""The scikit-learn face of evdist."""

from evdist.estimators.evclus import EVCLUS

__all__ = ["EVCLUS"]

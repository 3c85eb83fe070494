"""Scores of credal partitions, all built on what partitions say about pairs of objects."""

from evdist.metrics.outliers import outlier_scores
from evdist.metrics.quality import adjusted_rand_index, consistency, nonspecificity
from evdist.metrics.rand import (
    Estimate,
    credal_rand_index,
    estimate_credal_rand_index,
)
from evdist.metrics.relation import (
    Relation,
    pairwise_belief,
    pairwise_mass,
    pairwise_plausibility,
    relational_representation,
)
from evdist.metrics.risk import RiskCoverage, risk_coverage

__all__ = [
    "Estimate",
    "Relation",
    "RiskCoverage",
    "adjusted_rand_index",
    "consistency",
    "credal_rand_index",
    "estimate_credal_rand_index",
    "nonspecificity",
    "outlier_scores",
    "pairwise_belief",
    "pairwise_mass",
    "pairwise_plausibility",
    "relational_representation",
    "risk_coverage",
]

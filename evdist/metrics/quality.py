"""Scores of one credal partition: agreement with a known truth, and imprecision.

A partition is better than another when it is more consistent with the truth and less nonspecific
(Denoeux, Li, Sriboonchitta 2018; NN-EVCLUS, section 4.1 and figure 22). Both are exact for any n,
in one pass over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from evdist.metrics.moments import first_moments
from evdist.metrics.rand import credal_rand_index, unit_interval
from evdist.partition import CredalPartition


def adjusted_rand_index(
    a: CredalPartition | NDArray[Any], b: CredalPartition | NDArray[Any]
) -> float:
    """scikit-learn's adjusted Rand index; a credal partition counts with its hard labels.

    Parameters
    ----------
    a, b : CredalPartition or (n,) labels
        Labels of a credal partition are those of maximum plausibility.
    """
    return float(metrics.adjusted_rand_score(_labels(a), _labels(b)))


def consistency(partition: CredalPartition, truth: CredalPartition | NDArray[Any]) -> float:
    """Consistency index CI: mean plausibility, over pairs, of what is true of them.

    CI = 1 - mean degree of conflict between m_ij and the true relation. It is 1 when nothing that
    the partition says about a pair contradicts the truth: a vacuous partition is consistent too,
    which is why CI goes with :func:`nonspecificity`.

    Parameters
    ----------
    partition : CredalPartition
        The partition to judge.
    truth : (n,) labels or CredalPartition
        What is true of the same objects.
    """
    return credal_rand_index(partition, truth, "conflict")


def nonspecificity(partition: CredalPartition) -> float:
    """Nonspecificity index NS: mean over pairs of m_ij(empty) + m_ij(Theta), between 0 and 1.

    The nonspecificity sum_A m(A) log2 |A| of a mass function on {s, not s} is its mass on Theta;
    as in ``evdist.belief.nonspecificity`` the empty set counts like the whole frame. It speaks
    of pairs: ``CredalPartition.nonspecificity`` is N*, the mean over objects.

    Parameters
    ----------
    partition : CredalPartition
        The partition to judge.
    """
    empty, _, _, theta = first_moments(partition)
    return unit_interval(float(empty + theta))


def _labels(partition: CredalPartition | NDArray[Any]) -> NDArray[Any]:
    if isinstance(partition, CredalPartition):
        return np.asarray(partition.labels())
    return np.asarray(partition)

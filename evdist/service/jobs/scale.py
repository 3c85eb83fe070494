"""The scale of a job's columns: fitted once, kept with the job, applied to new objects alike."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evdist.data.dataset import Dataset
from evdist.data.scale import SAMPLE, Scale
from evdist.service.jobs.check import Finding


def fit_scale(
    kind: Literal["standard", "robust", "gower"] | None, data: Dataset, found: Finding
) -> Scale | None:
    """ "standard": mean and standard deviation; "robust": median and interquartile range.

    A column without spread is left as it is, but for its centre.
    """
    if kind is None:
        return None
    if kind == "standard":
        return Scale.of(found.mean, found.spread)
    step = -(-data.n // SAMPLE)
    rows = np.concatenate([block[(-first) % step :: step] for first, block in data.blocks()])
    return Scale.robust(rows, found.spread)

"""What a job configuration may set of an estimator, declared beside it as a pydantic model.

Reading the constructor's signature instead would load the estimator, which takes seconds
(scikit-learn, compiled code), in every process that only checks or submits a configuration.
tests/jobs/test_jobs_algorithms.py compares each model with the signature of its estimator.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict


def _seed(value: int) -> int:
    if not 0 <= value < 2**32:
        raise ValueError("from 0 to 2^32 - 1")
    return value


#: The estimators take generators, too; a job must draw the same numbers when it is continued.
Seed = Annotated[int, AfterValidator(_seed)]


class Parameters(BaseModel):
    """Names, types and defaults of parameters, as far as JSON can write their values.

    A module `parameters.py` beside an estimator NAME has a subclass NAMEParameters. Left out are
    the parameters that a job sets by itself: checkpoint, callbacks, n_jobs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    #: Of must_link, sample_weight and client, those that `fit` takes.
    fit_takes: ClassVar[frozenset[str]] = frozenset()

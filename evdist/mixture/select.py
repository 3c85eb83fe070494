"""The choice of a covariance model and of the number of components, by BIC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evdist.estimators.checks import integer, non_negative, one_of, random_of
from evdist.mixture.covariance import MODELS, simplest
from evdist.mixture.em import EMResult, fit_em, from_posterior
from evdist.mixture.starts import MOST_ROWS, Starts

_INITS = ("hierarchical", "k-means++")


@dataclass(frozen=True)
class Selection:
    """The best of several mixtures: what `select_mixture` gives.

    Attributes
    ----------
    best : EMResult
        The mixture of the largest BIC.
    bic : float
        Of the best.
    bics : DataFrame
        BIC by number of components (rows) and model (columns); -inf where every fit has failed.
    """

    best: EMResult
    bic: float
    bics: pd.DataFrame


def bic(result: EMResult, n: float) -> float:
    """2 L - nu log n, larger is better; n is the sum of the weights.

    Parameters
    ----------
    result : EMResult
        A fitted mixture.
    n : float
        The number of rows, or the sum of their weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist.mixture import bic, select_mixture
    >>> X = load_iris().data
    >>> chosen = select_mixture(X, 3, "VVV", random_state=0)
    >>> bic(chosen.best, len(X)) == chosen.bic
    True
    """
    return 2 * result.loglik - result.parameters.n_parameters * float(np.log(n))


def select_mixture(
    X: ArrayLike,
    n_components: int | Sequence[int] = 3,
    covariance_models: str | Sequence[str] = "auto",
    *,
    sample_weight: ArrayLike | None = None,
    init: str = "hierarchical",
    n_init: int = 2,
    tol: float = 1e-6,
    max_iter: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Fit every model with every number of components, and take the one of the largest BIC.

    The parameters are those of :class:`evdist.mixture.GaussianMixture`. A fit that failed (see
    :class:`EMResult`) is chosen only where none has succeeded.

    Parameters
    ----------
    X : (n, d) array
        The rows.
    n_components : int or sequence of int, default=3
        Numbers to try.
    covariance_models : str or sequence of str, default="auto"
        Some of `MODELS`; "auto" is all.
    sample_weight : (n,) array, optional
        Weights of the rows; their sum is BIC's n.
    init : {"hierarchical", "k-means++"}, default="hierarchical"
        How EM's starting partitions are found.
    n_init : int, default=2
        Starts of every fit.
    tol : float, default=1e-6
        As in `fit_em`.
    max_iter : int, default=1000
        As in `fit_em`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the starts.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    """
    numbers = _numbers(n_components)
    models = _models(covariance_models)
    one_of("init", init, _INITS)
    for name, value in (("n_init", n_init), ("max_iter", max_iter)):
        integer(name, value, 1)
    non_negative("tol", tol)
    X = np.ascontiguousarray(X, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got {X.shape}.")
    weight = _weights(sample_weight, len(X))
    if not weight.all():
        X, weight = X[weight > 0], weight[weight > 0]
    rng = np.random.default_rng(int(random_of(random_state).randint(2**31 - 1)))
    some = np.arange(len(X))
    if len(X) > MOST_ROWS:
        some = np.sort(rng.choice(len(X), MOST_ROWS, replace=False))
    starts = Starts(X[some], weight[some], max(numbers), init, n_init, int(rng.integers(2**31)))
    if starts.n_distinct < max(numbers):
        raise ValueError(
            f"n_components must be at most the number of different rows, got {max(numbers)} for "
            f"{starts.n_distinct} different rows."
        )
    how: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_jobs": n_jobs}
    fits: dict[tuple[int, str], EMResult] = {}
    for c in numbers:
        parts = list(starts.labels(c))
        for model in dict.fromkeys(simplest(m, c, X.shape[1]) for m in models):
            fit = _best_start(starts, parts, c, model, how)
            if len(some) < len(X):
                fit = fit_em(X, fit.parameters, sample_weight=weight, **how)
            fits[c, model] = fit
    return _choose(fits, numbers, models, float(weight.sum()))


def _best_start(
    starts: Starts, parts: list[NDArray[Any]], c: int, model: str, how: dict[str, Any]
) -> EMResult:
    """EM from every partition of the starting rows; a fit that has not failed comes first."""
    fits = []
    for labels in parts:
        start = from_posterior(starts.X, np.eye(c)[labels], model, starts.weight)
        fits.append(fit_em(starts.X, start, sample_weight=starts.weight, **how))
    return max(fits, key=lambda fit: (fit.failed is None, fit.loglik))


def _choose(
    fits: dict[tuple[int, str], EMResult], numbers: list[int], models: list[str], n: float
) -> Selection:
    d = next(iter(fits.values())).parameters.n_features
    values = {key: bic(fit, n) for key, fit in fits.items()}
    best = max(fits, key=lambda key: (fits[key].failed is None, values[key]))
    table = pd.DataFrame(-np.inf, index=pd.Index(numbers, name="n_components"), columns=models)
    for c in numbers:
        for model in models:
            key = c, simplest(model, c, d)
            if fits[key].failed is None:
                table.loc[c, model] = values[key]
    return Selection(fits[best], values[best], table)


def _numbers(n_components: Any) -> list[int]:
    numbers = [n_components] if isinstance(n_components, Integral) else list(n_components)
    wrong = [v for v in numbers if not isinstance(v, Integral) or isinstance(v, bool) or v < 1]
    if wrong or not numbers:
        raise ValueError(
            "n_components must be an integer of at least 1 or a sequence of such, got "
            f"{n_components!r}."
        )
    return sorted({int(v) for v in numbers})


def _models(covariance_models: Any) -> list[str]:
    if isinstance(covariance_models, str):
        chosen = list(MODELS) if covariance_models == "auto" else [covariance_models]
    else:
        chosen = list(covariance_models)
    wrong = [m for m in chosen if m not in MODELS]
    if wrong or not chosen:
        raise ValueError(
            f'covariance_models must be "auto" or some of {", ".join(MODELS)}, got '
            f"{covariance_models!r}."
        )
    return [m for m in MODELS if m in chosen]


def _weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if sample_weight is None:
        return np.ones(n)
    w = np.asarray(sample_weight, dtype=float)
    if w.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {w.shape}.")
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"sample_weight must be finite and not negative, but row {row} has {w[row]}."
        )
    if not w.any():
        raise ValueError("sample_weight must not be zero for all rows.")
    return w

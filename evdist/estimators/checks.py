"""Checks of parameters that estimators share: what must hold, what was got, what to do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from evdist.belief import FocalSets


def random_of(random_state: Any) -> np.random.RandomState:
    """The random numbers of a fit: of None, an int, a RandomState, or a Generator (drawn from)."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(int(random_state.integers(2**31 - 1)))
    found: np.random.RandomState = check_random_state(random_state)
    return found


def integer(name: str, value: Any, least: int) -> int:
    """`value` as an int of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
    return int(value)


def non_negative(name: str, value: Any) -> float:
    """`value` as a finite float of at least 0."""
    if not _is_number(value) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")
    return float(value)


def positive(name: str, value: Any, below: float = np.inf) -> float:
    """`value` as a float above 0 and below `below`."""
    if not _is_number(value) or not 0 < float(value) < below:
        bound = "" if below == np.inf else f" and below {below:g}"
        raise ValueError(f"{name} must be a number above 0{bound}, got {value!r}.")
    return float(value)


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """`value`, when it is one of the words known."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    return value


def seeded_checkpoint(model: Any, drawn: str) -> None:
    """A fit that may go on after a crash must draw the same things again."""
    if model.checkpoint is not None and model.random_state is None:
        raise ValueError(
            "checkpoint needs a random_state, such as random_state=0: without it the same "
            f"call draws other {drawn} and cannot go on."
        )


def at_most_objects(n_clusters: int, n: int) -> None:
    """There are no more clusters than objects."""
    if n_clusters > n:
        raise ValueError(
            f"n_clusters must be at most the number of objects, got {n_clusters} clusters "
            f"for n_samples={n}."
        )


class CopiesWarning(UserWarning):
    """Fewer different rows than clusters."""


def tell_of_copies(X: NDArray[Any], n_clusters: Any, least: float) -> None:
    """Warn where X has `least` different rows or more, but fewer than clusters.

    Nearly always the first rows show that it has enough, and no other is looked at.
    """
    if not isinstance(n_clusters, Integral) or not 2 <= int(n_clusters) <= len(X):
        return
    for rows in (X[: 20 * int(n_clusters)], X):
        different = len(np.unique(rows, axis=0))
        if different >= n_clusters:
            return
    if different < least:
        return
    warnings.warn(
        f"X has {different} different row{'s' * (different > 1)} for {n_clusters} clusters, so "
        f"that some of these stay empty. Ask for {different} at most.",
        CopiesWarning,
        stacklevel=5,
    )


def focal_family(focal_sets: Any, n_clusters: int, known: Sequence[str]) -> FocalSets | str:
    """A FocalSets over so many clusters, or the name of a family."""
    if isinstance(focal_sets, FocalSets):
        if focal_sets.n_clusters != n_clusters:
            raise ValueError(
                f"focal_sets are over {focal_sets.n_clusters} clusters, but n_clusters is "
                f"{n_clusters}."
            )
        return focal_sets
    if focal_sets not in known:
        raise ValueError(
            f"focal_sets must be a FocalSets or one of {tuple(known)}, got {focal_sets!r}."
        )
    return focal_sets


def weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Weights of the objects, (n,), with mean 1; None stays None."""
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=float)
    if w.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {w.shape}.")
    bad = ~np.isfinite(w) | (w <= 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"sample_weight must be above zero and finite, but object {row} has {w[row]}. Leave "
            "out objects that should not count."
        )
    return w / w.mean()


def checked_d0(d0: Any) -> float | str:
    """A positive number, a quantile such as "q0.9", or "auto"."""
    if isinstance(d0, str):
        if d0 == "auto":
            return d0
        try:
            quantile = float(d0[1:]) if d0.startswith("q") else -1.0
        except ValueError:
            quantile = -1.0
        if 0 < quantile <= 1:
            return d0
    elif isinstance(d0, Real) and not isinstance(d0, bool) and 0 < float(d0) < np.inf:
        return float(d0)
    raise ValueError(
        f'd0 must be a positive number, a quantile such as "q0.9", or "auto", got {d0!r}.'
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)

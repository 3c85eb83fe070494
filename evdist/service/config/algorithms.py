"""The algorithms a job may name: a table, and what is read from an estimator's own signature."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from evdist import _PUBLIC
from evdist.service.config.errors import ConfigError, nearest, short
from evdist.service.config.signatures import Parameter, of_method

__all__ = ["ALGORITHMS", "Algorithm", "algorithm", "check_parameters"]

#: Parameters that the job sets by itself: where to keep checkpoints, who listens, how many threads.
_OURS = frozenset({"checkpoint", "checkpoint_every", "callbacks", "n_jobs"})


@dataclass(frozen=True)
class Algorithm:
    """An estimator that jobs can run.

    Everything else is read from the class: which parameters it knows and their types, whether it
    takes links, weights, a Dask client, a checkpoint folder.
    """

    name: str
    module: str
    estimator: str
    summary: str

    @property
    def cls(self) -> Any:
        """The estimator's class; imported now, not before."""
        return getattr(import_module(self.module), self.estimator)

    @property
    def _made_from(self) -> Mapping[str, Parameter]:
        return of_method(self.module, self.estimator, "__init__")

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that a configuration may set, with their defaults."""
        found = self._made_from.items()
        return {name: parameter.default for name, parameter in found if name not in _OURS}

    def takes(self, name: str) -> bool:
        """Whether the constructor has a parameter of that name."""
        return name in self._made_from

    def fit_takes(self, name: str) -> bool:
        """Whether `fit` has a parameter of that name: must_link, sample_weight, client."""
        return name in of_method(self.module, self.estimator, "fit")

    @property
    def predicts(self) -> bool:
        return hasattr(self.cls, "predict_mass")

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """`given` as the estimator takes it, when every name is known and every type is right."""
        return check_parameters(self.name, self._made_from, given, own=_OURS)

    def make(self, given: dict[str, Any], **ours: Any) -> Any:
        """The estimator with these parameters; of `ours` those that it knows."""
        return self.cls(**self.check(given), **{k: v for k, v in ours.items() if self.takes(k)})


def check_parameters(
    owner: str,
    takes: Mapping[str, Parameter],
    given: dict[str, Any],
    *,
    own: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """`given` as what `takes` them gets them; names it does not know, or that are the job's `own`,
    and values of another type are refused."""
    known = [name for name in takes if name not in own]
    taken = {}
    for name, value in given.items():
        if name in own:
            raise ConfigError(f"parameters.{name} is set by the job itself; leave it out.")
        if name not in known:
            raise ConfigError(f"Unknown parameter {short(name)} of {owner}: {nearest(name, known)}")
        # A signature takes generators, too; a job must draw the same numbers when it goes on.
        kind = int if name == "random_state" else takes[name].kind
        taken[name] = _converted(name, value, kind)
        if name == "random_state" and not 0 <= value < 2**32:
            raise ConfigError(f"parameters.random_state must be from 0 to 2^32 - 1, got {value}.")
    return taken


def _converted(name: str, value: Any, kind: Any) -> Any:
    """A JSON value as the type that the signature names: a list becomes a tuple, and so on."""
    plain = [one for one in _members(kind) if _is_plain(one)]
    if not plain:
        raise ConfigError(f"parameters.{name} cannot be written in a configuration; leave it out.")
    try:
        # A union that is made here and now: type checkers need not understand it.
        adapter = TypeAdapter(functools.reduce(operator.or_, plain))
        return adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        wanted = dict.fromkeys(
            one["msg"].removeprefix("Input should be ") for one in error.errors()
        )
        raise ConfigError(
            f"parameters.{name} must be {' or '.join(wanted)}, got {short(value)}."
        ) from error


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_plain(kind: Any) -> bool:
    """Whether JSON can write it: numbers, words, and lists of those."""
    if kind in (bool, int, float, str, None, NoneType, Any) or get_origin(kind) is Literal:
        return True
    series = get_origin(kind) in (tuple, list, Sequence, range)
    return series and all(
        item is ... or all(_is_plain(one) for one in _members(item)) for item in get_args(kind)
    )


#: Name in a configuration -> algorithm. One line makes an estimator part of the service.
ALGORITHMS: dict[str, Algorithm] = {
    name: Algorithm(name, _PUBLIC[estimator], estimator, summary)
    for name, estimator, summary in (
        ("evclus", "EVCLUS", "conflict of masses matches dissimilarity; linear in n"),
        ("nnevclus", "NNEVCLUS", "a neural network learns the masses; places new objects"),
        ("bootclus", "Bootclus", "calibrated by a bootstrap of Gaussian mixtures"),
        ("ecm", "ECM", "evidential c-means"),
        ("cecm", "CECM", "evidential c-means with links between objects"),
        ("recm", "RECM", "evidential c-means on a square matrix"),
        ("ccm", "CCM", "credal c-means"),
        ("bpec", "BPEC", "belief peaks, then evidential c-means"),
        ("ecmdd", "ECMdd", "evidential c-medoids"),
        ("mecm", "MECM", "median evidential c-means"),
        ("eknnclus", "EKNNclus", "most plausible partition; finds the number of clusters"),
    )
}


def algorithm(name: str) -> Algorithm:
    """The algorithm of that name, or an error that tells the nearest."""
    if name not in ALGORITHMS:
        raise ConfigError(f"Unknown algorithm {short(name)}: {nearest(name, ALGORITHMS)}")
    return ALGORITHMS[name]

"""The algorithms and parameters of a configuration, checked against the registry and the models."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from evdist.estimators.parameters import Parameters
from evdist.registry import ALGORITHMS, Algorithm
from evdist.service.config.errors import ConfigError, nearest, short

#: Parameters that the job sets by itself: where to keep checkpoints, who listens, how many threads.
_OURS = frozenset({"checkpoint", "checkpoint_every", "callbacks", "n_jobs"})


def usual_name(name: str) -> str:
    """The name in the registry, for one as its class or its paper has it: EVCLUS, NN-EVCLUS."""
    found = name.lower().replace("-", "").replace("_", "")
    return found if found in ALGORITHMS else name


def algorithm(name: str) -> Algorithm:
    """The algorithm of that name, or an error that names the nearest."""
    if name not in ALGORITHMS:
        raise ConfigError(f"Unknown algorithm {short(name)}: {nearest(name, ALGORITHMS)}")
    return ALGORITHMS[name]


def checked(owner: str, model: type[Parameters], given: dict[str, Any]) -> Parameters:
    """The parameters of `owner` with its defaults, or an error that names every wrong value."""
    for name in given:
        if name in _OURS:
            raise ConfigError(f"parameters.{name} is set by the job itself; leave it out.")
        if name not in model.model_fields:
            near = nearest(name, model.model_fields)
            raise ConfigError(f"Unknown parameter {short(name)} of {owner}: {near}")
    try:
        return model.model_validate_json(json.dumps(given))
    except ValidationError as error:
        wanted: dict[str, list[str]] = {}
        for one in error.errors():  # a union has an error for each of its types
            said = one["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
            wanted.setdefault(str(one["loc"][0]), []).append(said)
        raise ConfigError(
            " ".join(
                f"parameters.{name} must be {' or '.join(dict.fromkeys(said))}, got "
                f"{short(given[name])}."
                for name, said in wanted.items()
            )
        ) from error


def estimator(entry: Algorithm, given: dict[str, Any], **ours: Any) -> Any:
    """The estimator with the given parameters, and of `ours` those that its constructor takes."""
    parameters = checked(entry.name, entry.parameters, given)
    made = entry.cls(**{name: getattr(parameters, name) for name in type(parameters).model_fields})
    known = made.get_params(deep=False)
    return made.set_params(**{name: value for name, value in ours.items() if name in known})

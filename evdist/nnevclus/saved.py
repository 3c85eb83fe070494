"""Checkpoints of a training: the network, what the optimiser remembers, and where it stands.

```
FOLDER/STAGE/
  epoch-00000005.zarr   arrays; attributes {"evdist": "training", "version", "problem", ...}
```
Every save is a store of its own; the one before is removed once the new one is whole. No pickle.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.nnevclus.training import TrainState
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import StoreError, differences
from evdist.stores.paths import Url, address, children, join, remove

KIND, VERSION = "training", 1
_CURE = "Remove it and start again."
_NAME = re.compile(r"epoch-(\d{8})\.zarr")
_PARTS = ("weights", "memory", "kept")


class Checkpoints:
    """The checkpoints of one training, in a folder of their own.

    `problem` names what must be the same for a training to go on: values that JSON can write.
    """

    def __init__(self, url: Url, stage: str, problem: dict[str, Any]):
        self.url = join(address(url), stage.replace(" ", "-"))
        self._problem = problem

    def _there(self) -> list[str]:
        return [name for name in children(self.url) if _NAME.fullmatch(name)]

    def newest(self) -> tuple[dict[str, Any], dict[str, NDArray], str] | None:
        """Attributes, arrays and address of the newest whole checkpoint; None without one."""
        for name in reversed(self._there()):
            url = join(self.url, name)
            try:
                found = read_arrays(url, KIND, VERSION, what="checkpoint of a training", cure=_CURE)
            except StoreError as error:
                if "half written" in str(error):
                    continue  # the run was stopped while it saved; the one before is whole
                raise
            return *found, url
        return None

    def load(self) -> TrainState | None:
        """The state to go on from; None when there is none."""
        newest = self.newest()
        if newest is None:
            return None
        found, arrays, url = newest
        other = differences(found["problem"], self._problem)
        if other:
            raise StoreError(
                f"{url} is the checkpoint of another fit: {other}. Remove it, or keep this "
                "fit's checkpoint elsewhere."
            )
        return _state(found, arrays)

    def save(self, state: TrainState) -> None:
        old = self._there()
        name = f"epoch-{state.epoch:08d}.zarr"
        if name in old:  # half written, or of a run that has just been done again
            remove(join(self.url, name))
        arrays: dict[str, NDArray] = {}
        for part in _PARTS:
            arrays |= to_arrays(part, getattr(state, part))
        attributes = {
            "problem": self._problem,
            "epoch": state.epoch,
            "history": list(state.history),
            "best": None if math.isinf(state.best) else state.best,
            "since": state.since,
            "decays": state.decays,
            "converged": state.converged,
        }
        write_arrays(join(self.url, name), KIND, VERSION, attributes, arrays)
        for other in old:
            if other != name:
                remove(join(self.url, other))


def saved_problem(url: Url) -> dict[str, Any]:
    """What some checkpoint in the folder says of its problem; nothing where there is none."""
    for stage in children(address(url)):
        newest = Checkpoints(url, stage, {}).newest()
        if newest is not None:
            return newest[0]["problem"]
    return {}


def _state(found: dict[str, Any], arrays: dict[str, NDArray]) -> TrainState:
    parts = {part: from_arrays(part, arrays) for part in _PARTS}
    return TrainState(
        **parts,
        epoch=int(found["epoch"]),
        history=tuple(float(v) for v in found["history"]),
        best=math.inf if found["best"] is None else float(found["best"]),
        since=int(found["since"]),
        decays=int(found["decays"]),
        converged=bool(found["converged"]),
    )


def to_arrays(part: str, values: dict[str, NDArray]) -> dict[str, NDArray]:
    """Arrays of a state_dict under names that begin with `part`; numbers become rows of one."""
    return {f"{part}.{name}": np.atleast_1d(value) for name, value in values.items()}


def from_arrays(part: str, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
    """What `to_arrays` was given; numbers stay rows of one, which a state_dict takes."""
    start = f"{part}."
    return {name.removeprefix(start): v for name, v in arrays.items() if name.startswith(start)}

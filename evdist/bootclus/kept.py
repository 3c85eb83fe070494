"""Replicates in a checkpoint folder: a bootstrap that was stopped goes on where it was.

```
FOLDER/replicates-FIRST-XXXXXXXX.zarr   {"evdist": "replicates", "version": 1, "model", "problem"}
  number, failed                        (b,) int64: which replicates, and their failed draws
  weights, means, volumes, ...          (b, ...) float64, see GaussianReplicates
```
Each batch is a store of its own with a name drawn at random. One that is half written is left
alone: its replicates are made again, with the same bits.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from evdist.bootclus.replicates import GaussianReplicates, Gaussians
from evdist.mixture import Parameters
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import StoreError
from evdist.stores.paths import children, join

KIND, VERSION = "replicates", 1


class KeptReplicates:
    """The replicates of one fit in a folder.

    Parameters
    ----------
    folder : str
        A path or URL.
    problem : str
        Fingerprint of data, mixture and seed: replicates of another fit are refused.
    """

    def __init__(self, folder: str, problem: str):
        self._folder, self._problem = folder, problem

    def load(self) -> Gaussians:
        """All replicates that are there."""
        found: Gaussians = {}
        for name in children(self._folder):
            if not name.startswith("replicates-"):
                continue
            url = join(self._folder, name)
            try:
                attributes, arrays = read_arrays(url, KIND, VERSION, what="replicates", cure="")
            except StoreError:
                continue
            if attributes["problem"] != self._problem:
                raise StoreError(
                    f"{url} holds replicates of other data, another mixture or another "
                    "random_state. Name another checkpoint folder, or remove this one."
                )
            found.update(_read(attributes["model"], arrays))
        return found

    def save(self, found: Gaussians) -> None:
        """Write a batch of replicates."""
        numbers = sorted(found)
        replicates = GaussianReplicates.of([found[b][0] for b in numbers])
        arrays = {
            "number": np.array(numbers),
            "failed": np.array([found[b][1] for b in numbers]),
            **replicates.arrays,
        }
        name = f"replicates-{numbers[0]:05d}-{secrets.token_hex(4)}.zarr"
        attributes = {"model": replicates.model, "problem": self._problem}
        write_arrays(join(self._folder, name), KIND, VERSION, attributes, arrays)


def _read(model: str, arrays: dict[str, Any]) -> Gaussians:
    numbers, failed = arrays.pop("number").tolist(), arrays.pop("failed").tolist()
    return {
        b: (Parameters(model, **{name: a[row] for name, a in arrays.items()}), failed[row])
        for row, b in enumerate(numbers)
    }

"""What is measured of an answer once it is there. Only here do an answer and the truth meet.

Scores of a line:

* ari, consistency, nonspecificity: of a partition;
* value:NAME: a number that the part gives, for which no truth is needed;
* mass:OBJECT:SET: the mass of an object (from 1) on a set of clusters, `ve+vi`, `empty`, `all`;
* cell:CLASS:SET: how many objects of a class have their largest mass on a set;
* wrong, empty: objects on a set of clusters that does not hold their class; on the empty set;
* error, test:CLASS:CHOSEN: of a classifier, on the objects to be placed;
* cover:NAME, length:NAME: of intervals, how many hold the true probability, and their mean length.

Clusters are named by the class that most of their objects have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from evdist import metrics
from ledger.answer import Answer
from ledger.sets import Truth

#: Of every answer that has a partition and a truth, whatever the lines ask: for the plane of
#: consistency and nonspecificity.
ALWAYS = ("ari", "consistency", "nonspecificity")


class Scores:
    """The scores of one answer, each worked out when it is asked for."""

    def __init__(self, answer: Answer, truth: Truth) -> None:
        self.answer, self.truth = answer, truth

    def of(self, names: Iterable[str]) -> dict[str, float]:
        return {name: self.one(name) for name in names}

    def usual(self) -> dict[str, float]:
        """What any partition is asked, and the numbers the part gave."""
        found = {f"value:{name}": float(v) for name, v in self.answer.values.items()}
        if self.answer.partition is not None:
            known = self.truth.y is not None
            found |= self.of(ALWAYS if known else ALWAYS[2:])
        return found

    def one(self, name: str) -> float:
        kind, _, rest = name.partition(":")
        found = getattr(self, f"_{kind}", None)
        if found is None:
            raise ValueError(f"There is no score {name!r}; `scores.py` lists them.")
        return float(found(*rest.split(":")) if rest else found())

    # ------------------------------------------------------------------ partitions
    def _ari(self) -> float:
        return adjusted_rand_score(self.truth.y, self.answer.hard)

    def _consistency(self) -> float:
        classes = np.unique(self.truth.y, return_inverse=True)[1]
        return metrics.consistency(self.answer.partition, classes)

    def _nonspecificity(self) -> float:
        return self.answer.partition.nonspecificity()

    def _value(self, name: str) -> float:
        return self.answer.values[name]

    @cached_property
    def _names(self) -> dict[int, str]:
        """The class of each cluster."""
        table = pd.crosstab(pd.Series(self.truth.y), pd.Series(self.answer.hard))
        return {int(k): str(name) for k, name in table.idxmax(axis=0).items()}

    def _set(self, A: Iterable[int]) -> str:
        members = sorted(self._names.get(k, f"cluster {k}") for k in A)
        return "+".join(members) or "empty"

    @cached_property
    def _chosen(self) -> list[str]:
        """The set of largest mass of each object; its cluster where there are only labels."""
        partition = self.answer.partition
        if partition is None:
            return [self._names[int(k)] for k in self.answer.hard]
        names = [self._set(A) for A in partition.focal_sets.sets]
        return [names[k] for k in np.asarray(partition.mass).argmax(axis=1)]

    def _mass(self, number: str, wanted: str) -> float:
        partition = self.answer.partition
        names = [self._set(A) for A in partition.focal_sets.sets]
        mass = np.asarray(partition.mass)[int(number) - 1]
        return sum(float(m) for m, name in zip(mass, names, strict=True) if name == wanted)

    def _cell(self, true: str, wanted: str) -> float:
        return Counter(zip(self.truth.y, self._chosen, strict=True))[true, wanted]

    def _wrong(self) -> float:
        pairs = zip(self.truth.y, self._chosen, strict=True)
        return sum(true not in chosen.split("+") for true, chosen in pairs if chosen != "empty")

    def _empty(self) -> float:
        return sum(chosen == "empty" for chosen in self._chosen)

    # ------------------------------------------------------------------ classifiers, intervals
    def _error(self) -> float:
        return (np.asarray(self.answer.labels) != self.truth.y).mean()

    def _test(self, true: str, chosen: str) -> float:
        labels = np.asarray(self.answer.labels)
        return ((self.truth.y == int(true)) & (labels == int(chosen))).sum()

    def _cover(self, name: str) -> float:
        i, j, low, high = self.answer.intervals[name]
        true = _same(self.truth.posterior, i, j)
        # Probabilities and masses are rounded to float32.
        return ((low <= true + 1e-6) & (true <= high + 1e-6)).mean()

    def _length(self, name: str) -> float:
        _, _, low, high = self.answer.intervals[name]
        return (high - low).mean()


def _same(posterior: NDArray[Any], i: NDArray[Any], j: NDArray[Any]) -> NDArray[Any]:
    return np.einsum("pk,pk->p", posterior[i], posterior[j])

"""What a part hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from evdist import CredalPartition


@dataclass(frozen=True)
class Answer:
    """A partition, or labels where there are no masses, or numbers that need no truth.

    `intervals` are bounds for pairs of objects by name: (i, j, lower, upper).
    """

    partition: CredalPartition | None = None
    labels: NDArray[Any] | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[NDArray[Any], ...]] = field(default_factory=dict)

    @property
    def hard(self) -> NDArray[Any] | None:
        """Labels: those given, else those of maximum plausibility."""
        if self.labels is not None or self.partition is None:
            return self.labels
        return self.partition.labels()

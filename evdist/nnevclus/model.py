"""A trained network of NN-EVCLUS: it gives masses to objects, and can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evdist.data.inputs import load
from evdist.estimators.base import CredalClusterer
from evdist.nnevclus.inputs import Preparation
from evdist.nnevclus.rows import pick_device
from evdist.nnevclus.saved import from_arrays, to_arrays
from evdist.nnevclus.solver import network_masses, rebuilt
from evdist.partition.rows import is_dask, map_rows
from evdist.stores.encoding import StoreError
from evdist.stores.paths import Url, address

__all__ = ["NetworkModel"]


class NetworkModel(CredalClusterer):
    """Base of NNEVCLUS: what it can do once it is fitted."""

    hidden: Sequence[int]
    body: Any
    metric: str | Callable
    device: str
    network_: Any
    d0_: float
    d0_curve_: list[tuple[float, float]]
    centres_: NDArray[np.int64]
    _prepare: Preparation

    def predict_mass(self, X: Any) -> Any:
        """Mass functions that the network gives to objects, old or new: (rows, f).

        With metric="precomputed" (and no `metric_features`) the rows of X are dissimilarities to
        all training objects. A Dask array gives a Dask array.
        """
        check_is_fitted(self, "credal_partition_")
        if is_dask(X) and hasattr(X, "map_blocks") and hasattr(X, "rechunk"):
            f = len(self.credal_partition_.focal_sets)
            return map_rows(self._predict_rows, X, width=f, dtype=np.float32)
        device = pick_device(self.device)
        x, fx = self._prepare(self._table(load(X), reset=False), device)
        return network_masses(self.network_, x, fx, device)

    def _predict_rows(self, rows: NDArray, first: int) -> NDArray[np.float32]:
        return self.predict_mass(rows)

    # ------------------------------------------------------------------ on disk
    @classmethod
    def load(cls, url: Url, *, body: Any = None, metric: Callable | None = None) -> Self:
        """The fitted model that :meth:`save` wrote; it predicts the same bits.

        `body` is a module like the one that the model was trained with: of such a module only the
        weights are saved. `metric` is the function of a model with a callable metric.
        """
        given = {"body": body, "metric": metric}
        return cls._load(address(url), {k: v for k, v in given.items() if v is not None})

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        values, arrays = self._prepare.state()
        values["d0"] = float(self.d0_)
        values["d0_curve"] = [[float(q), float(value)] for q, value in self.d0_curve_]
        weights = {k: v.cpu().numpy() for k, v in self.network_.state_dict().items()}
        arrays |= to_arrays("network", weights)
        if hasattr(self, "centres_"):
            arrays["centres"] = self.centres_
        return values, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        self._prepare = Preparation.from_state(values, arrays)
        if self._prepare.raw and self.body is None:
            raise StoreError(
                "This model was trained with a body of its own: pass a module like it, "
                "NNEVCLUS.load(url, body=module)."
            )
        self.d0_ = float(values["d0"])
        self.d0_curve_ = [(float(q), float(value)) for q, value in values["d0_curve"]]
        if "centres" in arrays:
            self.centres_ = arrays["centres"]
        self.network_ = rebuilt(from_arrays("network", arrays), tuple(self.hidden), self.body)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = False
        return tags

"""CCM and BCM share this: ECM without alpha, and gamma, one more weight in the distance of sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.ecm.base import MeansClusterer, beta_for, checked_model, delta_for
from evdist.ecm.solver import Floats, Model, Sums
from evdist.engine.progress import Progress
from evdist.estimators.checks import non_negative

_FAMILIES = ("simple", "pairs", "full")


@dataclass(frozen=True, eq=False)
class GammaModel(Model, ABC):
    """A model of ECM whose prototypes solve a linear system H V = B that depends on gamma.

    Parameters
    ----------
    gamma : float, at least 0
    """

    alpha: float = 0.0
    gamma: float = 1.0

    @abstractmethod
    def system(self, F: Floats, size: Floats, W: Floats) -> Floats:
        """H, (c, c), of sets F (f, c) with `size` clusters and the weights W (f,) of `Sums`."""

    def step(self, sums: Sums, *, move: bool = True) -> Model:
        """The prototypes that minimise J for the masses behind `sums`."""
        if not move:
            return self
        assert sums.B is not None
        size = np.maximum(self.focal_sets.cardinality, 1).astype(float)
        H = self.system(self.focal_sets.matrix.astype(float), size, sums.W)
        V = self.prototypes - self.centre
        # Solved for the step: a prototype that no object determines stays where it is.
        moved = np.linalg.lstsq(H, sums.B - H @ V, rcond=None)[0]
        return replace(self, prototypes=self.prototypes + moved)


@dataclass(eq=False, repr=False)
class GammaClusterer(MeansClusterer):
    """The parameters, the model to start from and the state on disk; a subclass names its model."""

    _model_type: ClassVar[Callable[..., GammaModel]]

    #: Read by the checks and the descent that all prototype-based clusterers share.
    alpha, metric = 0.0, "euclidean"

    n_clusters: int = 4
    _: KW_ONLY
    gamma: float = 1.0
    beta: float | str = "auto"
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "pairs"
    init: str | ArrayLike = "k-means++"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def _start(self, X: NDArray[Any], w: NDArray[np.float64] | None) -> Model:
        gamma = non_negative("gamma", self.gamma)
        delta, beta = delta_for(self.delta, X, w), beta_for(self.beta, *X.shape)
        plain = checked_model(self, *X.shape, beta=beta, families=_FAMILIES, delta=delta)
        return self._model_type(
            plain.focal_sets, plain.prototypes, 0.0, plain.beta, plain.delta, gamma=gamma
        )

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._state()
        model: Any = self._model
        return {**values, "gamma": model.gamma}, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._keep(
            self._model_type(
                self.credal_partition_.focal_sets, np.asarray(arrays["prototypes"], dtype=float),
                0.0, float(values["beta"]), float(values["delta"]), gamma=float(values["gamma"]),
            )
        )  # fmt: skip

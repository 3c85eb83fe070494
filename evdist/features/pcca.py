"""Features from must-links and cannot-links: PCCA and its kernel version.

Reference: Mignon, Jurie (2012), PCCA and KPCCA; NN-EVCLUS, section 3.3 and its example 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from evdist.constraints import check_links
from evdist.engine.memory import check_memory
from evdist.estimators.checks import integer, positive
from evdist.features.base import RowTransformer, count_features
from evdist.features.kernel_space import (
    Kernel,
    check_kernel,
    kernel_bytes,
    kernel_map,
    orthonormal_functions,
)
from evdist.features.links import Map, Search, solve_pcca


@dataclass(eq=False, repr=False)
class _Linked(RowTransformer):
    """Parameters, links and the descent of both versions; `_learn` is where they differ."""

    _learn: ClassVar[Callable[..., None]]

    n_components: int = 2
    _: KW_ONLY
    sharpness: float = 1.0
    tol: float = 1e-6
    max_iter: int = 1000

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Learn the map from the linked objects; other objects are ignored.

        Parameters
        ----------
        X : (n, d) array
            The objects.
        y : None
            Not used; pipelines pass it.
        must_link, cannot_link : (p, 2) arrays of object numbers
            Pairs known to be in one cluster, in different clusters; at least one of the latter.
        """
        self._learn(*self._read(X, must_link, cannot_link))
        return self

    def _read(self, X: Any, must_link: Any, cannot_link: Any) -> tuple[NDArray[Any], ...]:
        """X (n, d), the linked objects (m,), pairs of places among them (p, 2), signs (p,)."""
        for name in ("n_components", "max_iter"):
            integer(name, getattr(self, name), 1)
        for name in ("sharpness", "tol"):
            positive(name, getattr(self, name))
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        must, cannot = check_links(must_link, cannot_link, len(X))
        if not len(cannot):
            raise ValueError(
                f"{type(self).__name__} needs at least one cannot_link, got {len(must)} must-links "
                "and no cannot-link: nothing would keep the features from shrinking to zero."
            )
        linked, place = np.unique(np.concatenate([must, cannot]), return_inverse=True)
        s = np.repeat([1.0, -1.0], [len(must), len(cannot)])
        return X, linked, place.reshape(-1, 2), s

    def _refuse(self, need: int, p: int, m: int) -> None:
        what = f"{type(self).__name__} on {p:,} links between {m:,} objects"
        cure = "Give fewer links, some of these drawn at random."
        check_memory({"links": need}, cure, what=what)

    def _solve(self, Z: NDArray[Any], place: NDArray[Any], s: NDArray[Any]) -> Map:
        """The map of the coordinates Z (m, d) of the linked objects."""
        search = Search(
            int(self.n_components), float(self.sharpness), float(self.tol), int(self.max_iter)
        )
        found = solve_pcca(Z[place[:, 0]] - Z[place[:, 1]], s, search)
        self.objective_ = found.loss
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        self._n_features_out = search.n_components
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} steps; raise "
                "max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found


def _difference_bytes(p: int, d: int) -> int:
    """Differences of p links, in their unit, in their span, and LAPACK's workspace."""
    return 8 * (4 * p * d + 4 * min(p, d) ** 2)


class PCCA(_Linked):
    """Pairwise constrained component analysis: a linear map learnt from links.

    In the new features must-linked objects are nearer than 1 and cannot-linked ones farther, as
    far as a linear map can do it. Distances between features are a learnt Mahalanobis distance.
    Nothing is random: the same links give the same map.

    Parameters
    ----------
    n_components : int, default=2
        Features, at most as many as X has. NN-EVCLUS takes 3 for iris and 5 for glass.
    sharpness : float, default=1.0
        How sharply a link on the wrong side of 1 is told from one on the right side; beta in
        Mignon and Jurie.
    tol : float, default=1e-6
        Stop when a step lowers the loss by less than this share of it (of 1, for a loss below 1).
    max_iter : int, default=1000
        Steps of L-BFGS at most.

    Attributes
    ----------
    components_ : (n_components, d) array
        The map L; rows are orthogonal, the longest first.
    mean_ : (d,) array
        Mean of the linked objects, whose features are zero.
    objective_ : float
        The loss: the sum over links of log(1 + exp(sharpness s (D^2 - 1))) / sharpness, s = 1 for a
        must-link and -1 for a cannot-link.
    n_iter_ : int
        Steps made.
    converged_ : bool
        Whether `tol` ended them, not `max_iter`.

    Examples
    --------
    >>> from evdist.features import PCCA
    >>> X = [[0, 0], [9, 0], [0, 1], [9, 1]]  # the first coordinate is noise
    >>> model = PCCA(1).fit(X, must_link=[(0, 1)], cannot_link=[(0, 2), (1, 3)])
    >>> bool(abs(model.components_[0, 0]) < 0.01 * abs(model.components_[0, 1]))
    True
    """

    def _learn(
        self, X: NDArray[Any], linked: NDArray[Any], place: NDArray[Any], s: NDArray[Any]
    ) -> None:
        d = X.shape[1]
        count_features(self.n_components, d, f"X has n_features={d}")
        self._refuse(_difference_bytes(len(s), d), len(s), len(linked))
        Z = X[linked]
        self.mean_ = Z.mean(axis=0)
        self.components_ = self._solve(Z - self.mean_, place, s).L

    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return (X - self.mean_) @ self.components_.T


@dataclass(eq=False, repr=False)
class KernelPCCA(_Linked):
    """Pairwise constrained component analysis in the feature space of a kernel.

    The curved version of :class:`PCCA`. The best map is a combination of the kernel functions of
    the linked objects, so that m linked objects need an (m, m) matrix, however many others there
    are: n is not limited.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "poly", "linear", "cosine"} or callable, default="rbf"
        Of scikit-learn, with its defaults for all but gamma; or a positive semidefinite function
        of two rows.
    gamma : float, default=None
        exp(-gamma |x - y|^2) for "rbf"; None is 1 / d. The most important parameter: NN-EVCLUS,
        example 5, has 0.3 for a circle of radius about 5.
    n_components : int, default=2
        Number of features.
    sharpness, tol, max_iter
        As in :class:`PCCA`. Links that a kernel can satisfy have no shortest answer, and tol says
        how far the cannot-links are drawn out.

    Attributes
    ----------
    basis_ : (m, d) array
        The linked objects.
    dual_coef_ : (m, n_components) array
        The features of x are the sums over a of dual_coef_[a] k(x, basis_[a]), less offset_.
    offset_ : (n_components,) array
        The linked objects have mean zero.
    objective_, n_iter_, converged_
        As in :class:`PCCA`.
    """

    _: KW_ONLY
    kernel: Kernel = "rbf"
    gamma: float | None = None

    def _learn(
        self, X: NDArray[Any], linked: NDArray[Any], place: NDArray[Any], s: NDArray[Any]
    ) -> None:
        check_kernel(self.kernel, self.gamma)
        m = len(linked)
        self._refuse(kernel_bytes(m) + _difference_bytes(len(s), m), len(s), m)
        basis = X[linked]
        R, Z = orthonormal_functions(basis, self.kernel, self.gamma)
        rank = Z.shape[1]
        count_features(
            self.n_components, rank,
            f"the kernel matrix of the {m} linked objects has rank {rank}, with "
            f"n_features={X.shape[1]}",
        )  # fmt: skip
        L = self._solve(Z, place, s).L
        self.basis_ = basis
        self.dual_coef_ = R @ L.T
        self.offset_ = (Z @ L.T).mean(axis=0)

    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return kernel_map(X, self.basis_, self.dual_coef_, self.kernel, self.gamma) - self.offset_

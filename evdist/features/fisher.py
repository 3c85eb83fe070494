"""Features from labels of some objects: kernel and local Fisher discriminants.

Reference: NN-EVCLUS, section 3.3, after Yang et al. (2004), kernel PCA plus LDA (its [57]), and
Sugiyama (2006), LFDA (its [50]).

The linear discriminants of Fisher are scikit-learn's LinearDiscriminantAnalysis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from sklearn import discriminant_analysis
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from evdist.engine.memory import check_memory
from evdist.estimators.checks import integer
from evdist.features.base import RowTransformer, count_features
from evdist.features.kernel_space import (
    Kernel,
    check_kernel,
    kernel_bytes,
    kernel_map,
    orthonormal_functions,
)
from evdist.features.scatter import local_affinity, local_scatter


class _Labelled(RowTransformer):
    """Reads labels of which some are not known; `_learn` makes the map, and says its features."""

    _learn: Callable[[NDArray[Any], NDArray[Any]], int]

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the map from the labelled objects; other objects are ignored.

        Parameters
        ----------
        X : (n, d) array
            The objects.
        y : (n,) labels
            A number below 0 says that the label is not known.
        """
        self._n_features_out = self._learn(*self._read(X, y))
        return self

    def _read(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The labelled rows of X (m, d), and their labels (m,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        known = y >= 0 if y.dtype.kind in "if" else np.ones(len(y), bool)
        self.classes_ = np.unique(y[known])
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs labelled objects of at least two classes, got "
                f"{int(known.sum())} labelled objects of {len(self.classes_)} classes "
                "(labels below 0 are not known)."
            )
        return X[known], y[known]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _check_share(shrinkage: Any, why: str) -> float:
    number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
    if not number or not 0 < float(shrinkage) <= 1:
        raise ValueError(f"shrinkage must be above 0 and at most 1, got {shrinkage!r}. {why}")
    return float(shrinkage)


@dataclass(eq=False, repr=False)
class KernelFDA(_Labelled):
    """Kernel Fisher discriminant analysis: a curved map that separates labelled classes.

    Fisher's discriminants in the feature space of a kernel: kernel PCA of the labelled objects,
    then scikit-learn's LinearDiscriminantAnalysis. The labelled objects need an (m, m) matrix;
    the number of others is not limited.

    Parameters
    ----------
    n_components : int, default=None
        Features, at most the number of classes less 1, which is the default.
    kernel : {"rbf", "laplacian", "poly", "linear", "cosine"} or callable, default="rbf"
        Of scikit-learn, with its defaults for all but gamma; or a positive semidefinite function
        of two rows.
    gamma : float, default=None
        exp(-gamma |x - y|^2) for "rbf"; None is 1 / d.
    shrinkage : float, default=1e-3
        Share of the within-class covariance, above 0, that is replaced by a multiple of the
        identity: m objects in a space of up to m dimensions leave directions without any spread.

    Attributes
    ----------
    classes_ : (c,) array
        Labels that are known.
    basis_ : (m, d) array
        The labelled objects.
    dual_coef_ : (m, n_components) array
        The features of x are the sums over a of dual_coef_[a] k(x, basis_[a]), less offset_.
    offset_ : (n_components,) array
        The labelled objects have mean zero.
    """

    n_components: int | None = None
    _: KW_ONLY
    kernel: Kernel = "rbf"
    gamma: float | None = None
    shrinkage: float = 1e-3

    def _learn(self, basis: NDArray[Any], labels: NDArray[Any]) -> int:
        check_kernel(self.kernel, self.gamma)
        shrinkage = _check_share(self.shrinkage, "Without it the answer is not unique.")
        c = len(self.classes_)
        check_memory(
            {"kernel matrix": kernel_bytes(len(basis))},
            "Set the labels of a part of them to -1, or use LFDA or LDA.",
            what=f"The kernel matrix of {len(basis):,} labelled objects",
        )
        R, Z = orthonormal_functions(basis, self.kernel, self.gamma)
        most = min(c - 1, Z.shape[1])
        r = count_features(self.n_components, most, f"there are {c} classes of labelled objects")
        lda = discriminant_analysis.LinearDiscriminantAnalysis(
            solver="eigen", shrinkage=shrinkage
        ).fit(Z, labels)
        directions = _signed(lda.scalings_[:, :r], Z)
        self.basis_ = basis
        self.dual_coef_ = R @ directions
        self.offset_ = (Z @ directions).mean(axis=0)
        return r

    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return kernel_map(X, self.basis_, self.dual_coef_, self.kernel, self.gamma) - self.offset_


@dataclass(eq=False, repr=False)
class LFDA(_Labelled):
    """Local Fisher discriminant analysis: a linear map that lets classes have several parts.

    As Fisher's discriminants, but only near objects of one class are drawn together, so that a
    class of two far parts does not pull the map out of shape; and there may be as many features
    as attributes.

    Parameters
    ----------
    n_components : int, default=None
        Features; None is as many as X has.
    n_neighbors : int, default=7
        Objects of one class are near at about the distance to so many of its objects; local
        scaling, with Sugiyama's 7.
    shrinkage : float, default=1e-6
        Ridge, above 0, on the within-class scatter, as a share of its mean variance: it makes
        constant and dependent columns harmless.

    Attributes
    ----------
    classes_ : (c,) array
        Labels that are known.
    components_ : (n_components, d) array
        Each row has the length of the root of its eigenvalue, as Sugiyama weights them: features
        that separate more count more in distances.
    mean_ : (d,) array
        Mean of the labelled objects, whose features are zero.
    eigenvalues_ : (n_components,) array
        Local between-class scatter over within-class scatter, largest first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist.features import LFDA
    >>> X, y = load_iris(return_X_y=True)
    >>> LFDA(2).fit_transform(X, y).shape
    (150, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    n_neighbors: int = 7
    shrinkage: float = 1e-6

    def _learn(self, Z: NDArray[Any], labels: NDArray[Any]) -> int:
        k = integer("n_neighbors", self.n_neighbors, 1)
        shrinkage = _check_share(self.shrinkage, "Without it dependent columns have no answer.")
        d = Z.shape[1]
        r = count_features(self.n_components, d, f"X has n_features={d}")
        classes = [Z[labels == label] for label in self.classes_]
        sizes = np.array([len(members) for members in classes])
        check_memory(
            {"affinities": 8 * (3 * int(sizes.max()) ** 2 + int((sizes**2).sum()))},
            "Set the labels of a part of them to -1, or use LDA.",
            what=f"LFDA of {len(Z):,} labelled objects in {len(classes)} classes",
        )
        within, between = local_scatter(classes, [local_affinity(X_l, k) for X_l in classes])
        spread = np.trace(within + between) / d
        if not spread > 0:
            raise ValueError("The labelled objects are all equal; label objects that differ.")
        ridge = shrinkage * (np.trace(within) / d or spread)
        values, vectors = eigh(between, within + ridge * np.eye(d), subset_by_index=(d - r, d - 1))
        # The between-class scatter is positive semidefinite: below 0 is rounding.
        self.eigenvalues_ = np.maximum(values[::-1], 0.0)
        self.mean_ = Z.mean(axis=0)
        directions = _signed(vectors[:, ::-1], Z - self.mean_)
        self.components_ = np.sqrt(self.eigenvalues_)[:, None] * directions.T
        return r

    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return (X - self.mean_) @ self.components_.T


def _signed(directions: NDArray[Any], Z: NDArray[Any]) -> NDArray[np.float64]:
    """Columns with the sign by which the largest feature of Z's rows, less their mean, is positive.

    An eigenvector has no sign of its own; this one does not change when the data are turned.
    """
    features = (Z - Z.mean(axis=0)) @ directions
    largest = np.take_along_axis(features, np.abs(features).argmax(axis=0)[None], axis=0)[0]
    return directions * np.where(largest < 0, -1.0, 1.0)

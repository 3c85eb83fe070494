"""What EVCLUS takes as X, and what it says about data that it cannot take."""

from __future__ import annotations

import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from evclus.evclus_reference import all_pairs, distances, mean_square, phi
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.kernels.distances import METRICS

N = 60


@pytest.fixture(scope="module")
def truth() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(N, centers=[[3, 2], [10, 2], [3, 10]], random_state=4)
    return X.astype(np.float32).astype(float), y


@pytest.fixture(scope="module")
def X(truth) -> np.ndarray:
    return truth[0]


@pytest.fixture(scope="module")
def D(X) -> np.ndarray:
    return squareform(pdist(X))


def fit(X, **options) -> EVCLUS:
    return EVCLUS(
        3,
        **{
            "metric": "euclidean",
            "d0": "q0.5",
            "random_state": 0,
            "n_dissimilarities": 25,
            **options,
        },
    ).fit(X)


@pytest.fixture(scope="module")
def expected(X) -> EVCLUS:
    return fit(X)


# ---------------------------------------------------------------------- attributes
def write(X, kind, folder):
    frame, path = pd.DataFrame(X, columns=["a", "b"]), str(folder / f"X.{kind}")
    if kind == "npy":
        np.save(path, X)
    elif kind.startswith("csv"):
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        zarr.save_array(path, X)
    return path


@pytest.mark.parametrize("kind", ["npy", "csv", "csv.gz", "parquet", "zarr"])
def test_a_file_is_the_array_in_it(X, expected, kind, tmp_path):
    model = fit(write(X, kind, tmp_path))
    np.testing.assert_array_equal(model.credal_partition_.mass, expected.credal_partition_.mass)


@pytest.mark.parametrize(
    "wrap",
    [
        np.ndarray.tolist,
        pd.DataFrame,
        lambda X: X.astype(np.float32),
        np.asfortranarray,
        lambda X: da.from_array(X, chunks=(17, 1)),
        lambda X: dd.from_pandas(pd.DataFrame(X), npartitions=3),
        lambda X: zarr.array(X, chunks=(20, 2)),
    ],
    ids=["list", "frame", "float32", "columns", "dask array", "dask frame", "zarr array"],
)
def test_every_kind_of_table_gives_the_same_masses(X, expected, wrap):
    model = fit(wrap(X))
    np.testing.assert_array_equal(model.credal_partition_.mass, expected.credal_partition_.mass)


def test_integers_are_numbers(X):
    rounded = np.round(10 * X)
    np.testing.assert_array_equal(
        fit(rounded.astype(np.int16)).credal_partition_.mass, fit(rounded).credal_partition_.mass
    )


def test_data_are_not_changed(X):
    before = X.copy()
    fit(X)
    np.testing.assert_array_equal(X, before)


# ---------------------------------------------------------------------- metrics
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_built_in_metric_is_that_of_scipy(X, metric):
    X = np.column_stack([X, X[:, 0] * X[:, 1], np.round(X)])
    model = fit(X, metric=metric, n_dissimilarities=N - 1)
    pairs = all_pairs(N)
    options = {"VI": np.linalg.inv(np.cov(X.T))} if metric == "mahalanobis" else {}
    raw = cdist(X, X, metric, **options)[pairs[:, 0], pairs[:, 1]]
    mass, sets = model.credal_partition_.mass, model.credal_partition_.focal_sets
    want = mean_square(mass, sets, pairs, phi(raw, model.d0_))
    np.testing.assert_allclose(model.objective_, want, rtol=1e-4, atol=1e-9)


def test_a_callable_metric_is_asked_for_pairs(X, D):
    model = fit(X, metric=lambda a, b: float(np.linalg.norm(a - b)))
    np.testing.assert_array_equal(
        model.credal_partition_.mass, fit(D, metric="precomputed").credal_partition_.mass
    )


def test_a_callable_metric_may_compare_anything():
    words = np.array([["aaa"], ["aab"], ["abb"], ["xyz"], ["xyy"], ["xzz"]])

    def differing(a, b):
        return float(sum(p != q for p, q in zip(a[0], b[0], strict=True)))

    model = EVCLUS(2, metric=differing, d0=3.0, random_state=0).fit(words)
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], model.labels_) == 1
    assert model.predict(np.array([["aac"]]))[0] == model.labels_[0]


# ---------------------------------------------------------------------- dissimilarities
def test_a_square_matrix_gives_what_its_attributes_give(X, D, expected):
    model = fit(D, metric="precomputed")
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-4)
    assert adjusted_rand_score(model.labels_, expected.labels_) == 1


def test_an_asymmetric_matrix_is_symmetrised_and_says_so(D):
    noise = np.random.default_rng(0).uniform(0, 1, D.shape) * (D > 0)
    with pytest.warns(UserWarning, match=r"not symmetric \(D\[0, 1\] = .*\(D \+ D'\) / 2") as said:
        model = fit(D + noise, metric="precomputed")
    assert said[0].filename == fit.__code__.co_filename  # the line that called fit
    same = fit(D + (noise + noise.T) / 2, metric="precomputed")
    np.testing.assert_array_equal(model.credal_partition_.mass, same.credal_partition_.mass)


def test_dissimilarities_need_not_be_a_metric(truth, D):
    model = fit(D**3, metric="precomputed")
    assert adjusted_rand_score(truth[1], model.labels_) == 1


def listed(D: np.ndarray, keep: float = 1.0) -> np.ndarray:
    pairs = all_pairs(len(D))
    pairs = pairs[np.random.default_rng(0).uniform(size=len(pairs)) < keep]
    return np.column_stack([pairs, D[pairs[:, 0], pairs[:, 1]]])


def test_a_pair_list_is_fitted_to_its_pairs(truth, X, D):
    rows = listed(D, 0.5)
    model = fit(rows, metric="pairs", n_init=5)
    pairs = rows[:, :2].astype(int)
    delta = phi(distances(X, pairs), model.d0_)
    mass, sets = model.credal_partition_.mass, model.credal_partition_.focal_sets
    np.testing.assert_allclose(model.objective_, mean_square(mass, sets, pairs, delta), rtol=1e-6)
    assert adjusted_rand_score(truth[1], model.labels_) == 1
    assert (np.diff(model.history_) <= 0).all()


def test_a_pair_list_may_be_a_frame_a_file_or_a_sparse_matrix(D, tmp_path):
    rows = listed(D, 0.4)
    model = fit(rows, metric="pairs")
    frame = pd.DataFrame(rows, columns=["i", "j", "d"])
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    i, j = rows[:, :2].astype(int).T
    sparse = sp.coo_array((rows[:, 2], (i, j)), shape=(N, N))
    both = (sparse + sparse.T).tocsr()
    for same, metric in [
        (frame, "pairs"),
        (tmp_path / "pairs.csv", "pairs"),
        (sparse, "precomputed"),
        (both, "euclidean"),
    ]:
        mass = fit(same, metric=metric).credal_partition_.mass
        np.testing.assert_array_equal(mass, model.credal_partition_.mass)


def test_a_pair_given_twice_counts_once_with_the_mean():
    once = [[0, 1, 2.0], [1, 2, 5.0], [0, 2, 6.0]]
    twice = [[0, 1, 1.0], [1, 0, 3.0], [1, 2, 5.0], [2, 1, 5.0], [0, 2, 6.0], [2, 2, 9.0]]
    a, b = (
        EVCLUS(2, metric="pairs", d0=6.0, random_state=0).fit(np.array(r)) for r in (once, twice)
    )
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)
    assert a.objective_ == b.objective_


def test_a_pair_list_takes_the_papers_d0_by_default(D):
    model = fit(listed(D), metric="pairs", d0="auto")
    np.testing.assert_allclose(model.d0_, np.quantile(listed(D)[:, 2], 0.9), rtol=1e-6)
    assert model.d0_curve_ == []


# ---------------------------------------------------------------------- refused
def broken(X, value):
    X = X.copy()
    X[7, 1] = value
    return X


PAIRS = {"metric": "pairs"}
SQUARE = {"metric": "precomputed"}


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (lambda X: broken(X, np.nan), {}, "row 7, column 1 is nan. Fill in the value or leave"),
        (lambda X: broken(X, -np.inf), {}, "row 7, column 1 is -inf"),
        (lambda X: X[:1], {}, r"Found array with 1 sample\(s\).*minimum of 2 is required"),
        (lambda X: X[:0], {}, r"Found array with 0 sample\(s\)"),
        (lambda X: X[:2], {}, "n_clusters must be at most the number of objects, got 3 clusters"),
        (lambda X: X[:, 0], {}, "Expected 2D array, got 1D"),
        (lambda X: X + 1j, {}, "Complex data not supported"),
        (lambda X: X * 0, {}, "every object is the same. There is nothing to cluster"),
        (lambda X: pd.DataFrame({"a": X[:, 0], "town": ["Paris"] * N}), {},
         "Column 'town' of X is not numeric: row 0 holds 'Paris'. Leave that column out"),
        (lambda X: pd.DataFrame({"a": X[:, 0], "b": [1, *["x"] * (N - 1)]}), {},
         "Column 'b' of X is not numeric: row 1 holds 'x'"),
        (lambda X: pd.DataFrame({"day": pd.date_range("2020", periods=N)}), {},
         "Column 'day' of X is not numeric: row 0 holds Timestamp"),
        (lambda X: np.vstack([X, [0, 0]]), {"metric": "cosine"},
         f"Row {N} of X is zero: its cosine dissimilarity to others is undefined"),
        (lambda X: np.full((9, 3), 2.0), {"metric": "correlation"}, "Row 0 of X is constant"),
        (lambda X: X[:, [0, 0]], {"metric": "mahalanobis"}, "covariance matrix of X is singular"),
        (lambda X: cdist(X, X)[:9], SQUARE, r"must be square, got shape \(9, 60\). For attributes"),
        (lambda X: broken(cdist(X, X), -1), SQUARE, r"D\[7, 1\] = -1.0. Correct or remove"),
        (lambda X: broken(cdist(X, X), np.nan), SQUARE, "row 7, column 1 is nan"),
        (lambda X: X, PAIRS, r"needs rows \(i, j, dissimilarity\), got shape \(60, 2\)"),
        (lambda X: np.empty((0, 3)), PAIRS, "pair list is empty"),
        (lambda X: [[0, 1, 1.0], [1, 3, 2.0]], PAIRS, "Object 2 has no dissimilarity to any other"),
        (lambda X: [[0, 1, 1.0], [1, 2.5, 2.0]], PAIRS, "Row 1 of the pair list .* 1 and 2.5"),
        (lambda X: [[0, np.nan, 1.0]], PAIRS, "Row 0 of the pair list names objects 0 and nan"),
        (lambda X: [[-1, 2, 1.0]], PAIRS, "objects are numbered 0, 1, 2"),
        (lambda X: [[0, 1, -2.0], [1, 2, 1]], PAIRS, r"but pair \(0, 1\) has -2.0"),
        (lambda X: X, {"metric": lambda a, b: -1.0}, "metric gave -1.0 for objects 0 and 1"),
        (lambda X: X, {"metric": lambda a, b: np.nan}, "metric gave nan for objects 0 and 1"),
        (lambda X: X, {"metric": lambda a, b: a - b}, r"one number for two rows.*shape \(2,\)"),
    ],
)  # fmt: skip
def test_bad_data_is_refused_by_name(X, make, options, says):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a broken matrix is asymmetric as well
        with pytest.raises(ValueError, match=says):
            fit(make(X), **options)


def test_files_that_cannot_be_read_say_why(X, tmp_path):
    with pytest.raises(ValueError, match=r"X.xlsx: known endings are .npy, .csv, .tsv, .csv.gz"):
        fit(tmp_path / "X.xlsx")
    with pytest.raises(FileNotFoundError, match=r"X\.csv"):
        fit(tmp_path / "X.csv")
    zarr.create_group(str(tmp_path / "group.zarr"))
    with pytest.raises(ValueError, match=r"is a zarr group; name the array in it"):
        fit(tmp_path / "group.zarr")
    pd.DataFrame({"a": [1.0, 2.0], "b": ["3", "x"]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"Column 'b' of .*t.csv is not numeric: row 1 holds 'x'"):
        fit(tmp_path / "t.csv")
    np.save(tmp_path / "objects.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        fit(tmp_path / "objects.npy")

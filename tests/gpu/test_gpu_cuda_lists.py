"""Lists of clusters on a GPU: the kernels against those of threads, and the whole fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import ready
from gpu.list_cases import random_lists, stress, swept
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.data.sources import AttributeSource
from evdist.evclus.rows.arrays import Graph, Partners
from evdist.evclus.rows.attributes import sample
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.device_groups import groups_on
from evdist.evclus.rows.lists import MAX_NEAR_SUMS, list_kernels_on
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.rows.torch import TorchKernels
from evdist.evclus.sampling import near_layout
from evdist.kernels.sparse_rows import decode
from evdist.partition.sparse import SparseMasses

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU = torch.device("cuda")
CASES = {
    "30 clusters": {"c": 30},
    "uniform pairs": {"c": 30, "near": False},
    "weights": {"c": 40, "weighted": True},
    "long lists": {"c": 60, "spread": 1.0},
    "sums in global memory": {"c": MAX_NEAR_SUMS + 1, "spread": 0.0005},
    "an odd number": {"c": 200, "n": 5003, "k": 101, "near": False, "spread": 0.003},
    "many pairs, no room in shared memory": {"c": 60, "k": 1200},
}


def gaussians(c: int, n: int, seed: int = 0, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    X = (3 * rng.normal(size=(c, d)))[y] + rng.normal(size=(n, d))
    return X.astype(np.float32), y


@pytest.mark.parametrize("case", CASES)
def test_rows_change_as_on_threads(case):
    problem, start, state = random_lists(**{"n": 5000, **CASES[case]}, device=GPU)
    kernels = list_kernels_on(GPU)
    kernels.settle(state.mass)
    with NumbaRows().executor(problem, start) as executor:
        here = executor._state
        np.testing.assert_array_equal(state.mass.cpu().numpy(), here.result())
        assert stress(kernels, state) == pytest.approx(executor.objective()[0], rel=1e-12)
        first = slice(0, state.graph.bounds[1])
        here.update([0], 0.0)
        kernels.update(state, 0)
        found, expected = state.change[0, first].cpu().numpy(), here.gains()[first]
        # A program that needs more columns than it has room for ends there: threads have one less.
        # With thousands of clusters at random that is one row in four.
        crowded = case == "sums in global memory"
        same = np.isclose(found, expected, rtol=1e-4, atol=1e-6).mean()
        assert same > (0.7 if crowded else 0.9)
        np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-6)
        for skip in (0.0, 1e-9, 1e-9, 0.0):
            swept(kernels, state, skip)
            executor.sweep(skip)
        assert stress(kernels, state) < (1.2 if crowded else 1.05) * executor.objective()[0]


@pytest.mark.parametrize("case", CASES)
def test_the_objective_never_rises(case):
    _, _, state = random_lists(**{"n": 5000, **CASES[case]}, device=GPU, seed=1)
    kernels = list_kernels_on(GPU)
    kernels.settle(state.mass)
    before = stress(kernels, state)
    for skip in (0.0, 1e-6, 1e-6, 0.0, 1e-6, 0.0, 0.0):
        change = swept(kernels, state, skip)
        after = stress(kernels, state)
        assert after <= before
        assert after - before == pytest.approx(change, rel=1e-5, abs=1e-8)
        before = after
    mass = decode(state.mass.cpu().numpy(), state.n_clusters).astype(float)
    assert (mass.sum(axis=1) == 1).all()


def test_the_same_bits_every_time():
    found = []
    for _ in range(2):
        _, _, state = random_lists(c=100, n=20_000, k=60, device=GPU, spread=0.05)
        kernels = list_kernels_on(GPU)
        kernels.settle(state.mass)
        for skip in (0.0, 1e-6, 0.0):
            swept(kernels, state, skip)
        found.append(state.mass.view(torch.int32).clone())
    assert torch.equal(*found)


def test_distances_of_near_and_of_listed_pairs():
    X = np.random.default_rng(0).normal(size=(3001, 13)).astype(np.float32)
    data, code = ready(X, device=GPU)
    labels = np.random.default_rng(1).integers(30, size=3001)
    graph = Graph.of(near_layout(labels, 30, 0.5, 0).graph, GPU)
    D, right = (sample(kernels, data, graph, code, 2.0, torch.float32)
                for kernels in (kernels_on(GPU, 2), TorchKernels()))  # fmt: skip
    torch.testing.assert_close(D, right, rtol=2e-6, atol=2e-6)
    listed = torch.randint(-1, 3001, (11, 500), device=GPU, dtype=torch.int32)
    found = []
    for kernels in (kernels_on(GPU, 2), TorchKernels()):
        out = torch.empty(11, 500, device=GPU)
        kernels.distances(data, data, out, Partners.of_list(listed), code, 0.1,
                          lo=7, first=0, rows=500, place=0, spread=1)  # fmt: skip
        found.append(out)
    torch.testing.assert_close(*found, rtol=2e-6, atol=2e-6)


def test_groups_are_the_same_every_time_and_good():
    X, y = gaussians(60, 30_000)
    source = AttributeSource.of(X, "euclidean")
    first, second = (groups_on(GPU, source, 60, 3) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.middle, second.middle)
    assert adjusted_rand_score(y, first.labels) > 0.95


@pytest.fixture(scope="module")
def fitted() -> tuple[np.ndarray, np.ndarray, EVCLUS]:
    X, y = gaussians(50, 20_003)
    return X, y, EVCLUS(50, metric="euclidean", random_state=0, device="cuda").fit(X)


def test_a_fit_with_many_clusters(fitted):
    X, y, model = fitted
    here = EVCLUS(50, metric="euclidean", random_state=0).fit(X)
    assert isinstance(model.credal_partition_.mass, SparseMasses)
    ari = adjusted_rand_score(y, model.labels_)
    assert ari >= adjusted_rand_score(y, here.labels_) - 0.01
    assert (np.diff(model.history_) <= 0).all()
    again = EVCLUS(50, metric="euclidean", random_state=0, device="cuda").fit(X)
    assert again.credal_partition_ == model.credal_partition_
    assert again.history_ == model.history_


def test_a_fit_goes_on_from_given_lists(fitted):
    X, y, model = fitted
    for first in (model.credal_partition_, np.asarray(model.credal_partition_.mass)):
        again = EVCLUS(50, metric="euclidean", init=first, random_state=1, device="cuda").fit(X)
        assert isinstance(again.credal_partition_.mass, SparseMasses)
        assert (again.labels_ == model.labels_).mean() > 0.99
        ari = adjusted_rand_score(y, again.labels_)
        assert ari >= adjusted_rand_score(y, model.labels_) - 0.01


def test_pairs_kept_elsewhere_give_the_same_bits(fitted):
    X, _, model = fitted
    # 20,003 x 100 pairs are 8 MB.
    tight = EVCLUS(
        50, metric="euclidean", random_state=0, device="cuda", memory_limit=16_000_000
    ).fit(X)
    assert tight.credal_partition_ == model.credal_partition_


def test_any_pieces_give_the_same_bits():
    _, _, state = random_lists(c=40, n=9000, k=40, device=GPU)
    kernels = list_kernels_on(GPU)
    kernels.settle(state.mass)
    whole = state.mass.clone()
    kernels.update(state, 0)
    lo, hi = state.graph.bounds[:2]
    places = torch.arange(hi - lo, device=GPU, dtype=torch.int32)
    state.mass, found = whole, state.mass
    for part in places.split(777):
        kernels.update(state, 0, part)
    assert torch.equal(found.view(torch.int32), state.mass.view(torch.int32))


def test_new_objects(fitted):
    X, _, model = fitted
    mass = model.predict_mass(X[:3000])
    assert np.allclose(mass.sum(axis=1), 1.0)
    assert (model.predict(X[:3000]) == model.labels_[:3000]).mean() > 0.97
    np.testing.assert_array_equal(model.predict_mass(X[7:8]), mass[7:8])
    model.set_params(device="cpu")
    there, here = mass, model.predict_mass(X[:3000])
    model.set_params(device="cuda")
    assert (there.argmax(axis=1) == here.argmax(axis=1)).mean() > 0.999


def test_a_matrix_and_weights(fitted):
    X, y = gaussians(30, 1600)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    model = EVCLUS(30, metric="precomputed", random_state=0, device="cuda").fit(D)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    weight = np.random.default_rng(0).uniform(0.5, 2, 1600)
    model = EVCLUS(30, metric="euclidean", random_state=0, device="cuda").fit(
        X, sample_weight=weight
    )
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert (np.diff(model.history_) <= 0).all()


def test_a_checkpoint_is_gone_on_from(fitted, tmp_path):
    X, _, model = fitted
    with pytest.warns(UserWarning, match="did not converge"):
        EVCLUS(50, metric="euclidean", random_state=0, device="cuda", checkpoint=tmp_path,
               checkpoint_every=4, max_iter=4).fit(X)  # fmt: skip
    rest = EVCLUS(50, metric="euclidean", random_state=0, device="cuda", checkpoint=tmp_path).fit(X)
    assert rest.credal_partition_ == model.credal_partition_


def test_links_and_selected_pairs_keep_dense_rows():
    X, _ = gaussians(26, 3000)
    model = EVCLUS(
        26,
        metric="euclidean",
        random_state=0,
        device="cuda",
        d0=6.0,
        max_iter=8,
        n_dissimilarities=40,
    )
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(X, must_link=[[0, 1]])
    assert not isinstance(model.credal_partition_.mass, SparseMasses)

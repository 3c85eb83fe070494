"""EVCLUS on one GPU: a sweep against the bare gather, fits of 10^6 to 10^8 objects, real data.

    python benchmarks/gpu_speed.py                all parts
    python benchmarks/gpu_speed.py sweep          a sweep at 10^6 against the gather it needs
    python benchmarks/gpu_speed.py fit            10^6, 10^7, 10^8 objects from landmarks
    python benchmarks/gpu_speed.py real [folder]  covtype and MNIST, from a folder that holds
                                                  covtype.npz and mnist.npz, `X` and `y` each
    python benchmarks/gpu_speed.py focal          10^5 objects with 12 to 138 focal sets
    python benchmarks/gpu_speed.py stream         dissimilarities beyond a limit of memory
    python benchmarks/gpu_speed.py workers        Dask workers against one process (distributed)
    python benchmarks/gpu_speed.py answer folder  against the CPU's answer that gpu_answer.py wrote
    python benchmarks/gpu_speed.py bootclus       intervals and sweeps of Bootclus
    python benchmarks/gpu_speed.py nn [folder]    NN-EVCLUS on MNIST against two CPU cores

All fits are those of the estimator, from a NumPy array to NumPy masses and labels. The first fit
of a kind, which compiles its kernels, is not timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from ctypes import c_int, c_longlong
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bounds import Bounds
from gpu_large import answer, focal, stream, timed, workers
from gpu_models import bootclus, nn

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.rows import nvrtc
from evdist.evclus.rows.arrays import Graph, State, on_grid, tiles
from evdist.evclus.rows.attributes import sample, tiles_of
from evdist.evclus.rows.cuda import Kernels, kernels_on
from evdist.evclus.sampling import draw_layout

#: The gather of a sweep and nothing else: the same addresses, added up.
BARE = """
extern "C" __global__ void __launch_bounds__(128) bare(
    const float* table, float* out, const int* base, const int* lim, const int* shift,
    int lo, int rows, int size, int k, int none) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= rows) return;
    float A[F], sum = 0.0f;
#pragma unroll 4
    for (int h = 0; h < k; h++) {
        load_row(table, partner(base, lim, shift, h, k, t, size, none), A);
#pragma unroll
        for (int a = 0; a < F; a++) sum += A[a];
    }
    out[lo + t] = sum;
}
extern "C" __global__ void __launch_bounds__(128) scattered(
    const float4* table, float* out, const int* index, long long n, int rows, int k) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= 4 * rows) return;
    int row = t / 4, part = t % 4;
    float sum = 0.0f;
#pragma unroll 8
    for (int h = 0; h < k; h++) {
        float4 v = table[4 * (long long)index[h * n + row] + part];
        sum += v.x + v.y + v.z + v.w;
    }
    out[t] = sum;
}
"""


def seconds(call: Callable[[], object], times: int) -> float:
    """Median time of a call on the device."""
    found = []
    for _ in range(times):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return float(np.median(found))


def blobs(n: int, d: int, c: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit Gaussians round centres of spread 3; centres depend on d and c alone."""
    centres = np.random.default_rng([seed, d, c]).normal(0, 3, (c, d)).astype(np.float32)
    generator = torch.Generator("cuda").manual_seed(seed)
    y = torch.randint(0, c, (n,), generator=generator, device="cuda", dtype=torch.uint8)
    X = torch.randn(n, d, generator=generator, device="cuda")
    at = torch.as_tensor(centres, device="cuda")
    for lo in range(0, n, 1 << 22):
        X[lo : lo + (1 << 22)] += at[y[lo : lo + (1 << 22)].long()]
    return X.cpu().numpy(), y.cpu().numpy()


def ari(a: Tensor | np.ndarray, b: Tensor | np.ndarray) -> float:
    """Adjusted Rand index of two labellings, in float64."""
    a, b = (torch.as_tensor(x).cuda().long() for x in (a, b))
    width = int(b.max()) + 1
    table = torch.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).double()
    table = table.reshape(-1, width)

    def pairs(x: Tensor) -> float:
        return float((x * (x - 1) / 2).sum())

    both, first, second = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = first * second / pairs(table.sum().reshape(1))
    return (both - expected) / ((first + second) / 2 - expected)


def state_of(X: np.ndarray, fit: EVCLUS, k: int) -> State:
    """A fit's masses on pairs of their own."""
    gpu, source = torch.device("cuda"), AttributeSource.of(X, "euclidean")
    layout = draw_layout(len(X), k, 1)
    graph = Graph.of(layout.graph, gpu)
    sums, end, d = source.metric.code
    mass = torch.as_tensor(np.asarray(fit.credal_partition_.mass), device=gpu)
    kernels = kernels_on(gpu, mass.shape[1])
    data = tiles_of(source.table[:, :d], gpu)
    delta = sample(kernels, data, graph, (sums, end), fit.d0_, torch.float32)
    sets = fit.credal_partition_.focal_sets
    return State.of(graph, delta[None], tiles(on_grid(mass))[None], sets.C)


def one_sweep(kernels: Kernels, state: State) -> None:
    for colour in range(len(state.graph.colours)):
        kernels.update(state, colour)


def sweep(bounds: Bounds) -> None:
    n, k = 1_000_000, 100
    X, _ = blobs(n, 10)
    fit, *_ = timed(X, 10, n_dissimilarities=k, max_iter=2)
    state = state_of(X, fit, k)
    rows = kernels_on(torch.device("cuda"), state.f)
    source = Path(nvrtc.__file__).with_name("rows.cu").read_text() + BARE
    module = nvrtc.Module(source, (f"F={state.f}",), 0)
    out = torch.empty(4 * n, device="cuda")
    padded = torch.rand(n, 16, device="cuda")
    index = torch.randint(0, n, (k, n), device="cuda", dtype=torch.int32)

    def bare() -> None:
        for colour, p in enumerate(state.graph.colours):
            lo, hi = state.graph.bounds[colour : colour + 2]
            args = [state.table, out, p.base, p.lim, p.shift, c_int(lo), c_int(hi - lo),
                    c_int(p.size), c_int(k), c_int(n)]  # fmt: skip
            module.launch("bare", hi - lo, 1, args)

    def scattered() -> None:
        args = [padded, out, index, c_longlong(n), c_int(n), c_int(k)]
        module.launch("scattered", 4 * n, 1, args)

    one_sweep(rows, state)
    bare(), scattered()
    swept = seconds(lambda: one_sweep(rows, state), 15)
    gather, jumps = seconds(bare, 15), seconds(scattered, 15)
    bounds.head(f"a sweep, n = 10^6, k = 100, c = 10, {torch.cuda.get_device_name()}")
    bounds.note("sweep, ms", swept * 1e3)
    bounds.note("bare gather of the same numbers, ms", gather * 1e3)
    bounds.note("bare gather of k random 64-byte rows, ms", jumps * 1e3)
    bounds.at_most("sweep / bare gather of the same numbers", swept / gather, 3.0, digits=2)
    bounds.at_most("sweep / bare random gather", swept / jumps, 3.0, digits=2)
    tenth = FocalSets.simple(10)
    random = torch.distributions.Dirichlet(torch.ones(len(tenth), device="cuda")).sample((n,))
    far = State.of(state.graph, state.delta, tiles(on_grid(random))[None], tenth.C)
    bounds.note(
        "first sweep from random masses, ms", seconds(lambda: one_sweep(rows, far), 1) * 1e3
    )


def k_means(X: Tensor, c: int, seed: int = 0) -> Tensor:
    """Lloyd's algorithm to a relative change of 1e-4, from the best of ten k-means++ seedings."""
    generator = torch.Generator("cuda").manual_seed(seed)
    some = X[torch.randint(0, len(X), (10_000,), generator=generator, device="cuda")]
    best = float("inf")
    for _ in range(10):
        seeds = some[:1]
        for _ in range(c - 1):
            chance = torch.cdist(some, seeds).amin(1) ** 2
            seeds = torch.cat([seeds, some[torch.multinomial(chance, 1, generator=generator)]])
        for _ in range(10):
            label = torch.cdist(some, seeds).argmin(1)
            one = torch.nn.functional.one_hot(label, c).float()
            seeds = (one.T @ some) / one.sum(0).clamp(min=1)[:, None]
        left = float((torch.cdist(some, seeds).amin(1) ** 2).sum())
        if left < best:
            best, centres = left, seeds
    before = float("inf")
    for _ in range(100):
        total, sums, count = 0.0, torch.zeros_like(centres), torch.zeros(c, device="cuda")
        labels = []
        for part in X.split(1 << 22):
            near, label = torch.cdist(part, centres).min(1)
            one = torch.nn.functional.one_hot(label, c).float()
            sums, count = sums + one.T @ part, count + one.sum(0)
            total += float((near.double() ** 2).sum())
            labels.append(label)
        centres = sums / count.clamp(min=1)[:, None]
        if before - total < 1e-4 * total:
            break
        before = total
    return torch.cat(labels)


def mixture(X: Tensor, c: int) -> Tensor:
    """Gaussian mixture, full covariances, EM from k-means to a change of 1e-3 in the mean.

    The settings of scikit-learn's; in the precision of X.
    """
    n, d = X.shape
    resp = torch.nn.functional.one_hot(k_means(X.float(), c), c).to(X)
    eye, before = 1e-6 * torch.eye(d).to(X), -float("inf")
    for _ in range(100):
        weight = resp.sum(0).clamp(min=1e-6)
        mean = (resp.T @ X) / weight[:, None]
        log = torch.empty_like(resp)
        for j in range(c):
            Z = X - mean[j]
            cov = (Z * resp[:, j : j + 1]).T @ Z / weight[j] + eye
            L = torch.linalg.cholesky(cov)
            white = Z @ torch.linalg.inv(L).T
            log[:, j] = (weight[j] / n).log() - L.diagonal().log().sum() - 0.5 * (white**2).sum(1)
        level = torch.logsumexp(log, 1)
        now = float(level.double().mean())
        resp = (log - level[:, None]).exp()
        if now - before < 1e-3:
            break
        before = now
    return resp.argmax(1)


def fit(bounds: Bounds) -> None:
    timed(blobs(20_000, 10)[0], 10)  # compile
    cases = [(10**6, 10, 100, 0.3), (10**7, 10, 100, 5.0), (10**8, 8, 50, 60.0)]
    for n, d, k, bound in cases:
        X, y = blobs(n, d)
        torch.cuda.reset_peak_memory_stats()
        first = np.array(timed(X, 10, n_dissimilarities=k)[0].credal_partition_.mass)
        found, took, _, _ = timed(X, 10, n_dissimilarities=k)
        exponent = len(str(n)) - 1
        bounds.head(f"n = 10^{exponent}, d = {d}, c = 10, k = {k}, {torch.cuda.get_device_name()}")
        if n == 10**6:
            # So short that one pause of the host decides: the least of three, and the first.
            for name, d0 in (("auto", "auto"), ("q0.2", "q0.2"), ("6", 6.0)):
                three = [timed(X, 10, n_dissimilarities=k, d0=d0)[1] for _ in range(3)]
                bounds.at_most(f"fit, d0 = {name}, s (least of three)", min(three), bound, digits=3)
                bounds.note("the first of them, s", three[0])
        else:
            bounds.at_most("fit of the estimator, s", took, bound, digits=3)
        peak = torch.cuda.max_memory_allocated() / 1e9
        bounds.at_most("peak of device memory, GB", peak, 100.0, digits=1)
        bounds.note("sweeps", found.n_iter_, digits=0)
        bounds.note("objective", found.objective_, digits=6)
        bounds.at_least("ARI", ari(found.labels_, y), 0.995, digits=4)
        same = np.asarray(found.credal_partition_.mass)
        bounds.at_most("bits that differ from run to run", float((first != same).sum()), 0,
                       digits=0)  # fmt: skip
        if n == 10**6:
            found.predict_mass(X)
            bounds.note("prediction of all, s", seconds(partial(found.predict_mass, X), 3))
        del first, same, found
        if n <= 10**7:
            others(bounds, torch.as_tensor(X).cuda(), torch.as_tensor(y).cuda(), 10, torch.float32)
        del X, y


def others(bounds: Bounds, X: Tensor, y: Tensor, c: int, precision: torch.dtype) -> None:
    """What a GPU user would run instead; the mixture in a precision its covariances bear."""
    for name, call, T in (
        ("k-means", k_means, X),
        ("Gaussian mixture", mixture, X.to(precision)),
    ):
        call(T[:10_000], c)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        labels = call(T, c)
        torch.cuda.synchronize()
        bounds.note(f"{name} on torch, s", time.perf_counter() - begin)
        bounds.note(f"{name} on torch, ARI", ari(labels, y), digits=4)


def real(bounds: Bounds, folder: Path) -> None:
    for name, c in (("covtype", 7), ("mnist", 10)):
        with np.load(folder / f"{name}.npz") as stored:
            X = torch.as_tensor(stored["X"].astype(np.float32).reshape(len(stored["y"]), -1))
            y = torch.as_tensor(np.unique(stored["y"], return_inverse=True)[1])
        if name == "covtype":
            X = (X - X.mean(0)) / X.std(0).clamp(min=1e-12)
        else:
            X = X / 255
        rows = X.numpy()
        timed(rows[:5000], c)
        found, took, _, _ = timed(rows, c)
        bounds.head(f"{name}, {X.shape[0]} x {X.shape[1]}, c = {c}, k = 100")
        bounds.note("fit, s", took)
        bounds.note("sweeps", found.n_iter_, digits=0)
        bounds.note("objective", found.objective_, digits=6)
        bounds.note("ARI", ari(found.labels_, y))
        # Attributes that are 0 in a whole cluster: single precision has no Cholesky factor of it.
        others(bounds, X.cuda(), y.cuda(), c, torch.float64)


def main(arguments: list[str]) -> int:
    bounds = Bounds()
    what = arguments[0] if arguments else "all"
    if what in ("all", "sweep"):
        sweep(bounds)
    if what in ("all", "fit"):
        fit(bounds)
    if what == "real" or (what == "all" and len(arguments) > 1):
        real(bounds, Path(arguments[1]))
    if what in ("all", "focal"):
        focal(bounds, blobs)
    if what in ("all", "stream"):
        stream(bounds, blobs)
    if what == "workers":
        workers(bounds, blobs)
    if what == "answer":
        answer(bounds, Path(arguments[1]))
    if what in ("all", "bootclus"):
        bootclus(bounds)
    if what == "nn" or (what == "all" and len(arguments) > 1):
        nn(bounds, Path(arguments[1]))
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

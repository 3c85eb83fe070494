"""EVCLUS with many clusters on one GPU, beside k-means in torch on the same data.

    python benchmarks/gpu_many.py          10^6 x 10 with 50 and 1,000 clusters; 10^6 x 384, cosine
    python benchmarks/gpu_many.py large    10^8 x 8 with 100 clusters
    python benchmarks/gpu_many.py stages   where the time of 10^6 x 10, c = 50 goes

All fits are those of the estimator, from a NumPy array to NumPy masses and labels. The first fit
of a kind, which compiles its kernels, is not timed. k-means starts with the data on the GPU.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bounds import Bounds

from evdist import EVCLUS


def gaussians(n: int, d: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit Gaussians round centres of spread 3."""
    generator = torch.Generator("cuda").manual_seed(seed)
    centres = 3 * torch.randn(c, d, generator=generator, device="cuda")
    y = torch.randint(0, c, (n,), generator=generator, device="cuda")
    X = torch.empty(n, d)
    for lo in range(0, n, 1 << 22):
        at = y[lo : lo + (1 << 22)]
        noise = torch.randn(len(at), d, generator=generator, device="cuda")
        X[lo : lo + (1 << 22)] = (noise + centres[at]).cpu()
    return X.numpy(), y.cpu().numpy()


def directions(n: int, d: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors round random directions, at a mean cosine of about 0.7 to their own."""
    generator = torch.Generator("cuda").manual_seed(seed)
    centres = torch.nn.functional.normalize(
        torch.randn(c, d, generator=generator, device="cuda"), dim=1
    )
    y = torch.randint(0, c, (n,), generator=generator, device="cuda")
    X = torch.empty(n, d)
    for lo in range(0, n, 1 << 18):
        at = y[lo : lo + (1 << 18)]
        noise = torch.randn(len(at), d, generator=generator, device="cuda") / d**0.5
        rows = torch.nn.functional.normalize(centres[at] + noise, dim=1)
        X[lo : lo + (1 << 18)] = rows.cpu()
    return X.numpy(), y.cpu().numpy()


def ari(a: np.ndarray, b: np.ndarray) -> float:
    """Adjusted Rand index of two labellings, in float64."""
    one, other = (torch.as_tensor(x).cuda().long() for x in (a, b))
    width = int(other.max()) + 1
    table = torch.bincount(one * width + other, minlength=(int(one.max()) + 1) * width).double()
    table = table.reshape(-1, width)

    def pairs(x: Tensor) -> float:
        return float((x * (x - 1) / 2).sum())

    both, first, second = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = first * second / pairs(table.sum().reshape(1))
    return (both - expected) / ((first + second) / 2 - expected)


def k_means(X: Tensor, c: int, seed: int = 0) -> Tensor:
    """Lloyd's algorithm to a relative change of 1e-4, from k-means++ on a sample of 20 c rows."""
    generator = torch.Generator("cuda").manual_seed(seed)
    some = X[torch.randint(0, len(X), (max(10_000, 20 * c),), generator=generator, device="cuda")]
    chosen = [0]
    far = ((some - some[0]) ** 2).sum(1)
    for _ in range(c - 1):
        at = torch.multinomial(far, 1, generator=generator)
        chosen.append(at)
        far = torch.minimum(far, ((some - some[at]) ** 2).sum(1))
    V = some[torch.cat([torch.zeros(1, dtype=torch.int64, device="cuda"), *chosen[1:]])]
    size, before = max(1024, (1 << 28) // c), float("inf")
    for _ in range(100):
        total, sums = 0.0, torch.zeros_like(V)
        count = torch.zeros(c, device="cuda")
        labels = []
        for part in X.split(size):
            value, label = torch.addmm((V * V).sum(1), part, V.T, alpha=-2.0).min(1)
            total += float((value.double() + (part * part).sum(1)).sum())
            sums.index_add_(0, label, part)
            count += torch.bincount(label, minlength=c)
            labels.append(label)
        V = torch.where(count[:, None] > 0, sums / count.clamp(min=1)[:, None], V)
        if before - total < 1e-4 * total:
            break
        before = total
    return torch.cat(labels)


def fitted(X: np.ndarray, c: int, **options: Any) -> tuple[EVCLUS, float]:
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EVCLUS(c, random_state=0, device="cuda", **{"metric": "euclidean", **options}).fit(
            X
        )
    return model, time.perf_counter() - begin


def compare(
    bounds: Bounds, title: str, data: tuple[np.ndarray, np.ndarray], c: int, bound: float,
    again: bool = True, **options: Any,
) -> None:  # fmt: skip
    X, y = data
    fitted(X[: 40 * c + 4000], c, **options)  # compile
    torch.cuda.reset_peak_memory_stats()
    model, first = fitted(X, c, **options)
    took = min(first, *(fitted(X, c, **options)[1] for _ in range(2))) if again else first
    bounds.head(f"{title}, {torch.cuda.get_device_name()}")
    bounds.at_most("fit of the estimator, s (least of three)" if again else "fit, s", took, bound)
    bounds.note("the first of them, s", first)
    bounds.note("peak of device memory, GB", torch.cuda.max_memory_allocated() / 1e9, digits=1)
    bounds.note("sweeps", model.n_iter_, digits=0)
    bounds.note("objective", model.objective_, digits=6)
    bounds.note("ARI", ari(model.labels_, y), digits=4)
    Z = torch.as_tensor(X).cuda()
    k_means(Z[: 40 * c + 4000], c)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    labels = k_means(Z, c)
    torch.cuda.synchronize()
    peer = time.perf_counter() - begin
    bounds.note("k-means on torch, s", peer)
    bounds.note("k-means on torch, ARI", ari(labels, y), digits=4)
    bounds.note("fit / k-means", took / peer, digits=2)


def stages() -> None:
    data = gaussians(10**6, 10, 50)
    fitted(data[0][:8000], 50)
    fitted(data[0], 50)
    profile = cProfile.Profile()
    profile.enable()
    fitted(data[0], 50)
    profile.disable()
    pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


def main(arguments: list[str]) -> int:
    bounds = Bounds()
    what = arguments[0] if arguments else "all"
    if what == "stages":
        stages()
        return 0
    if what == "large":
        compare(bounds, "n = 10^8, d = 8, c = 100, k = 50", gaussians(10**8, 8, 100), 100,
                600.0, again=False, n_dissimilarities=50)  # fmt: skip
        return bounds.finish()
    for c, bound in ((50, 0.5), (1000, 3.0)):
        compare(bounds, f"n = 10^6, d = 10, c = {c}, k = 100", gaussians(10**6, 10, c), c, bound)
    compare(bounds, "n = 10^6, d = 384, cosine, c = 50, k = 100", directions(10**6, 384, 50), 50,
            5.0, metric="cosine")  # fmt: skip
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

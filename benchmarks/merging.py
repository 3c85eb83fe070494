"""Twice as many clusters as there are classes, merged: which way of merging finds the classes.

    python benchmarks/merging.py ../shared/data

Adjusted Rand index of EVCLUS and ECM with the right number of clusters, and with twice as many (at
most 24) that are merged by the confusion of `evdist.partition.merge`, and by that confusion with
other divisors. Labels only measure.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from evdist import ECM, EVCLUS

SETS = ("S1", "S2", "drybean", "segment", "vowel", "seeds", "wine")
CLASSES = ("label", "class", "y", "target", "species", "cluster")


def divided(S, n, k, m, how):
    if how == "product":
        return S[k, m] / (n[k] * n[m])
    if how == "smaller":
        return S[k, m] / min(n[k], n[m])
    if how == "root":
        return S[k, m] / np.sqrt(n[k] * n[m])
    return S[k, m] / np.sqrt(S[k, k] * S[m, m])


def groups(P, wanted, how):
    S, n = P.T @ P, P.sum(axis=0)
    alive, members = list(range(len(n))), [[k] for k in range(len(n))]
    while len(alive) > wanted:
        pairs = [(a, b) for a in alive for b in alive if a < b]
        k, m = max(pairs, key=lambda pair: divided(S, n, *pair, how))
        own = S[k, k] + S[m, m] + 2 * S[k, m]
        S[k] += S[m]
        S[:, k] += S[:, m]
        S[k, k], n[k] = own, n[k] + n[m]
        members[k] += members[m]
        alive.remove(m)
    return [members[k] for k in alive]


def data(folder: Path):
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y
    for name in SETS:
        table = pd.read_csv(folder / f"{name}.csv.gz")
        column = next(one for one in table.columns if str(one).lower() in CLASSES)
        y = pd.factorize(table.pop(column))[0]
        X = table.select_dtypes("number").to_numpy(float)
        if len(X) > 4000:
            rows = np.random.default_rng(0).choice(len(X), 4000, replace=False)
            X, y = X[rows], y[rows]
        yield name, StandardScaler().fit_transform(X), y


def main() -> None:
    warnings.simplefilter("ignore")
    ways = ("product", "smaller", "root", "norms")
    print("| set | | right number | merged | " + " | ".join(ways[1:]) + " |")
    print("|---|---|--:|--:|" + "--:|" * len(ways[1:]))
    for name, X, y in data(Path(sys.argv[1])):
        k = len(set(y))
        for estimator in (EVCLUS, ECM):
            direct = adjusted_rand_score(y, estimator(k, random_state=0).fit_predict(X))
            many = estimator(min(2 * k, 24), random_state=0).fit(X).credal_partition_
            P = np.asarray(many.pignistic)
            found = [adjusted_rand_score(y, many.merge(k).labels("pignistic"))]
            for how in ways[1:]:
                of = {j: g for g, part in enumerate(groups(P.copy(), k, how)) for j in part}
                found.append(adjusted_rand_score(y, [of[j] for j in P.argmax(axis=1)]))
            said = " | ".join(f"{value:.3f}" for value in (direct, *found))
            print(f"| {name} | {estimator.__name__} | {said} |", flush=True)


if __name__ == "__main__":
    main()

"""BERTopic with EVCLUS in the place of its cluster model, beside UMAP + HDBSCAN.

    pip install bertopic umap-learn hdbscan
    python benchmarks/bertopic_run.py ../shared/data/text            # --rows 4000 for less

Descriptions of Debian packages and their embeddings. BERTopic is given both; its dimension
reduction is switched off for EVCLUS, which clusters the unit vectors by angle. HDBSCAN stands
where BERTopic has it by default, behind UMAP. Sections of the distribution, which the models do not
see, measure: adjusted Rand index among the documents that a model does not call outliers, and over
all with outliers as a class of their own. Then the topics, and what `describe` says.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bertopic import BERTopic
from bertopic.dimensionality import BaseDimensionalityReduction
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS

TOPICS = 25
NAMES = ("EVCLUS", "UMAP + EVCLUS", "UMAP + HDBSCAN")


#: BERTopic's own, but for the seed.
USUAL = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine"}


def parts_of(name: str, n: int) -> dict[str, Any]:
    """Dimension reduction and cluster model of one line-up."""
    if name == "EVCLUS":
        evclus = EVCLUS(TOPICS, metric="cosine", outliers="label", random_state=0)
        return {"umap_model": BaseDimensionalityReduction(), "hdbscan_model": evclus}
    umap = import_module("umap").UMAP(random_state=0, **USUAL)
    if name == "UMAP + EVCLUS":
        evclus = EVCLUS(TOPICS, outliers="label", random_state=0)
        return {"umap_model": umap, "hdbscan_model": evclus}
    least = max(10, n // 200)
    hdbscan = import_module("hdbscan").HDBSCAN(min_cluster_size=least, prediction_data=True)
    return {"umap_model": umap, "hdbscan_model": hdbscan}


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("folder", type=Path)
    given.add_argument("--rows", type=int, default=0)
    given.add_argument("--only", nargs="*", choices=NAMES)
    asked = given.parse_args()
    warnings.simplefilter("ignore")
    table = pd.read_csv(asked.folder / "packages.csv.gz")
    vectors = np.load(asked.folder / "embeddings.npy").astype(np.float32)
    if asked.rows:
        some = np.sort(np.random.default_rng(0).choice(len(table), asked.rows, replace=False))
        table, vectors = table.iloc[some], vectors[some]
    texts, section = table["text"].fillna("").tolist(), pd.factorize(table["section"])[0]
    for name in asked.only or NAMES:
        parts = parts_of(name, len(texts))
        began = time.perf_counter()
        topic = BERTopic(
            vectorizer_model=CountVectorizer(stop_words="english", min_df=2),
            calculate_probabilities=False, **parts,
        )  # fmt: skip
        labels, _ = topic.fit_transform(texts, embeddings=vectors)
        labels = np.asarray(labels)
        seconds, inside = time.perf_counter() - began, labels >= 0
        print(
            f"\n{name}: {len(set(labels[inside].tolist()))} topics, "
            f"{100 * (1 - inside.mean()):.0f} % outliers, {seconds:.0f} s; ARI "
            f"{adjusted_rand_score(section[inside], labels[inside]):.3f} of the others, "
            f"{adjusted_rand_score(section, labels):.3f} of all",
            flush=True,
        )
        for _, row in topic.get_topic_info().iterrows():
            if row["Topic"] >= 0:
                print(f"  {row['Count']:>5}  {', '.join(row['Representation'][:6])}")
        partition = getattr(parts["hdbscan_model"], "credal_partition_", None)
        if partition is not None and name == "EVCLUS":
            print(f"\n{name}, as describe names them:")
            for card in partition.describe(text=texts):
                print(f"  {card.size}: {card.headline}")


if __name__ == "__main__":
    main()

"""Words that tell the texts of one cluster from those of the others.

Reference: Grootendorst (2022), BERTopic, section 3.3: class-based TF-IDF. With tf_tk how often word
t stands in the texts of cluster k, f_t how often in all texts, and A the mean number of words of a
cluster:

    W_tk = tf_tk log(1 + A / f_t)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evdist.registry import load

#: Words told of each cluster.
WORDS = 8


def telling_words(texts: NDArray[Any], group: NDArray[np.int64], c: int) -> list[tuple[str, ...]]:
    """The words with the largest W of each cluster; (m,) texts, group -1 belongs to none."""
    known = group >= 0
    said = ["" if text is None or text != text else str(text) for text in texts[known].tolist()]
    counter = load("sklearn.feature_extraction.text:CountVectorizer")
    try:
        look = counter(stop_words="english", min_df=2 if len(said) > 20 else 1,
                       token_pattern=r"(?u)\b[^\W\d]\w+\b")  # fmt: skip
        counts = look.fit_transform(said)
    except ValueError:  # no word is left
        return [()] * c
    names = look.get_feature_names_out()
    m = counts.shape[0]
    of = sparse.csr_array((np.ones(m), (group[known], np.arange(m))), shape=(c, m))
    N = sparse.csr_array(of @ counts)  # (c, words)
    total = np.asarray(N.sum(axis=1)).ravel()
    weight = np.log1p(total.mean() / np.maximum(np.asarray(N.sum(axis=0)).ravel(), 1.0))
    found = []
    for k in range(c):
        words = N.indices[N.indptr[k] : N.indptr[k + 1]]
        many = N.data[N.indptr[k] : N.indptr[k + 1]]
        order = np.lexsort((words, -many * weight[words]))[: 3 * WORDS]
        found.append(_different([str(names[w]) for w in words[order]]))
    return found


def _different(words: list[str]) -> tuple[str, ...]:
    """The first words of which none is another's plural."""
    kept: list[str] = []
    for word in words:
        if not any(word.rstrip("s") == other.rstrip("s") for other in kept):
            kept.append(word)
    return tuple(kept[:WORDS])

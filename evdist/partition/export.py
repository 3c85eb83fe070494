"""One row per object, for people and other programs: the same columns in a data frame, in a CSV or
Parquet file, and in the table that a job leaves.

===================  ============================================================================
id                   of the object; its row number where there are no ids (in a frame, the index)
label                cluster of greatest plausibility, from 0
decision             sure, between or outlier
open                 the clusters that stay open: "{2}", "{0,2}", "∅" for an outlier
set                  the focal set with the largest mass
probability          pignistic probability of the label's cluster, normalised
margin               plausibility margin, from 0 (unsure) to 1
nonspecificity       from 0 (precise) to 1 (vacuous)
empty                mass on the empty set: how little the object fits any cluster
probability_K        normalised pignistic probability of cluster K; they sum to 1
plausibility_K       Pl({K}), not normalised
mass_SET             mass of a focal set; on request
===================  ============================================================================

Beyond `MOST_CLUSTERS` clusters the columns of single clusters are left out: the stored masses have
them. Numbers are float32. Written block by block, whatever the number of objects.

pandas and pyarrow take a third of a second to load: this module is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, cast

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.partition import decisions, sparse_views, views
from evdist.partition.ids import storable
from evdist.partition.rows import gather_rows
from evdist.partition.sparse import SparseMasses
from evdist.partition.validate import check_lists

#: With more clusters, no columns of single clusters.
MOST_CLUSTERS = 256
#: Rows of the table written at a time.
_ROWS = 1 << 17
#: Columns of a few words.
_WORDS = ("decision", "open", "set")


class Words(NamedTuple):
    """A column of a few words: the number of each object's word, and the words."""

    codes: NDArray[Any]
    words: Sequence[str]


Column = NDArray[Any] | Words


class Answer(NamedTuple):
    """What an export needs of a partition."""

    mass: Any
    focal_sets: FocalSets
    ids: NDArray[Any] | None
    level: float


def columns(focal: FocalSets, masses: bool = False) -> list[str]:
    """Names of the columns, but for the id."""
    names = ["label", "decision", "open", "set", "probability", "margin", "nonspecificity", "empty"]
    if focal.n_clusters <= MOST_CLUSTERS:
        for what in ("probability", "plausibility"):
            names += [f"{what}_{k}" for k in range(focal.n_clusters)]
    return names + [f"mass_{name}" for name in focal.names if masses]


def _block(
    m: NDArray[Any], first: int, focal: FocalSets, level: float, masses: bool
) -> list[Column]:
    """The columns of a block of objects."""
    m = np.ascontiguousarray(m, dtype=np.float64)
    contour, chance = views.contour(m, focal), views.probability(m, focal)
    decided = decisions.decide(m, focal, level)
    label = contour.argmax(axis=1)
    found: list[Column] = [
        label,
        Words(decided[:, 0], decisions.DECISIONS),
        Words(*decisions.coded_sets(decided[:, 1:].astype(bool))),
        _used(views.assigned_set(m, focal), focal.names),
        chance[np.arange(len(m)), label],
        decisions.margin(m, focal),
        views.specificity_loss(m, focal),
        m[:, 0],
    ]
    if focal.n_clusters <= MOST_CLUSTERS:
        found += [*chance.T, *contour.T]
    if masses:
        found += list(m.T)
    return [_short(column) for column in found]


def _used(codes: NDArray[Any], words: Sequence[str]) -> Words:
    """Without the words that no object has: there may be a million focal sets."""
    seen, codes = np.unique(codes, return_inverse=True)
    return Words(codes, [words[k] for k in seen.tolist()])


def _short(column: Column) -> Column:
    if isinstance(column, Words):
        return column._replace(codes=column.codes.astype(np.int32))
    return column.astype(np.float32) if column.dtype == np.float64 else column


def _list_block(
    T: NDArray[np.float32], first: int, offset: int, focal: FocalSets, level: float
) -> list[Column]:
    """As :func:`_block`, of lists of clusters, without columns of single clusters."""
    check_lists(T, offset + first, focal.names)
    codes, still = sparse_views.joined([sparse_views.open_sets(T, focal, level)], focal.n_clusters)
    label, chance = sparse_views.label_probability(T, focal)
    found: list[Column] = [
        label,
        Words(codes, decisions.DECISIONS),
        Words(*decisions.coded_sets(still)),
        _used(sparse_views.assigned_set(T, focal), focal.names),
        chance,
        sparse_views.margin(T, focal),
        sparse_views.specificity_loss(T, focal),
        T[:, 0].copy(),
    ]
    return [_short(column) for column in found]


def _columns(answer: Answer, rows: slice, masses: bool) -> dict[str, Column]:
    """The columns of some objects."""
    focal = answer.focal_sets
    part = answer.mass[rows]
    lists = isinstance(part, SparseMasses) and sparse_views.has_list_views(focal)
    if lists and not masses and focal.n_clusters > MOST_CLUSTERS:
        look = partial(_list_block, offset=rows.start or 0, focal=focal, level=answer.level)
        blocks = gather_rows(look, part.rows)
    else:
        look = partial(_block, focal=focal, level=answer.level, masses=masses)
        blocks = gather_rows(look, part)
    blocks = blocks or [_block(np.zeros((0, len(focal))), 0, focal, 1.0, masses)]
    joined = (_joined(parts) for parts in zip(*blocks, strict=True))
    return dict(zip(columns(focal, masses), joined, strict=True))


def _joined(parts: Sequence[Column]) -> Column:
    """One column of those of blocks; blocks number their words each for itself."""
    if not isinstance(parts[0], Words):
        return np.concatenate(cast("Sequence[NDArray[Any]]", parts))
    number: dict[str, int] = {}
    codes = []
    for part in cast("Sequence[Words]", parts):
        common = [number.setdefault(word, len(number)) for word in part.words]
        codes.append(np.array(common, np.int32)[part.codes])
    return Words(np.concatenate(codes), list(number))


# ---------------------------------------------------------------------- in memory
def frame(answer: Answer, masses: bool = False) -> pd.DataFrame:
    """The table as a data frame; its index holds the ids."""
    found: dict[str, Any] = _columns(answer, slice(None), masses)
    known = {"decision": decisions.DECISIONS, "set": answer.focal_sets.names}
    for name in _WORDS:
        codes, words = found[name]
        categories = known.get(name, sorted(words))
        place = {word: number for number, word in enumerate(categories)}
        common = np.array([place[word] for word in words], np.int32)
        found[name] = pd.Categorical.from_codes(common[codes], categories=categories)
    index = None if answer.ids is None else pd.Index(answer.ids, name=_index_name(answer.ids))
    return pd.DataFrame(found, index=index)


def _index_name(ids: NDArray[Any]) -> str | None:
    # An index with levels has a name for each.
    return None if len(ids) and isinstance(ids[0], tuple) else "id"


# ---------------------------------------------------------------------- in files
def write_table(url: str, answer: Answer, masses: bool = False) -> None:
    """The table as a .csv or .parquet file at a path or URL."""
    schema = _schema(answer, masses)
    if url.endswith(".csv"):
        with fsspec.open(url, "wb") as file:
            plain = pa.schema([(f.name, _plain(f.type)) for f in schema])
            with pyarrow.csv.CSVWriter(file, plain) as csv:
                for table in _tables(answer, schema, masses):
                    csv.write_table(table.cast(plain))
        return
    # Of numbers that hardly repeat, dictionaries cost four times the rest of the writing, least
    # and greatest values a quarter of it.
    few = {"use_dictionary": ["label", *_WORDS], "write_statistics": ["id", "label"]}
    with fsspec.open(url, "wb") as file, pq.ParquetWriter(file, schema, **few) as writer:
        for table in _tables(answer, schema, masses):
            writer.write_table(table)


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_dictionary(kind) else kind


def _schema(answer: Answer, masses: bool) -> pa.Schema:
    words = pa.dictionary(pa.int32(), pa.string())
    kinds = {"label": pa.int64(), **dict.fromkeys(_WORDS, words)}
    whole = answer.ids is None or answer.ids.dtype.kind == "i"
    fields = [("id", pa.int64() if whole else pa.string())]
    fields += [(name, kinds.get(name, pa.float32())) for name in columns(answer.focal_sets, masses)]
    return pa.schema(fields)


def _tables(answer: Answer, schema: pa.Schema, masses: bool) -> Iterator[pa.Table]:
    """The table, some rows at a time; the next are made while these are written."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(_table, answer, 0, schema, masses)
        for first in range(_ROWS, answer.mass.shape[0], _ROWS):
            now, coming = coming, pool.submit(_table, answer, first, schema, masses)
            yield now.result()
        yield coming.result()


def _table(answer: Answer, first: int, schema: pa.Schema, masses: bool) -> pa.Table:
    last = min(first + _ROWS, answer.mass.shape[0])
    found = _columns(answer, slice(first, last), masses)
    ids = np.arange(first, last) if answer.ids is None else storable(answer.ids[first:last])
    if pa.types.is_string(schema.field("id").type):
        ids = ids.astype(str)
    arrays = [pa.array(ids.tolist() if ids.dtype.kind == "U" else ids, schema.field("id").type)]
    for name, values in found.items():
        if isinstance(values, Words):
            words = pa.array(values.words, pa.string())
            arrays.append(pa.DictionaryArray.from_arrays(values.codes, words))
        else:
            arrays.append(pa.array(values, schema.field(name).type))
    return pa.table(arrays, schema=schema)

"""From facts and figures to one HTML file.

The page is written from ``template.html`` by jinja2 with autoescaping: every text that comes from
outside is escaped. Figures are SVG in the page, drawn by `evdist.report.figures`; the map is drawn
by ``script.js`` from the data in the page.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import ArrayLike

from evdist import __version__
from evdist.partition import CredalPartition, Decisions, Summary
from evdist.partition.describe import Description
from evdist.report import figures
from evdist.report.facts import Facts, collect, duration, in_words, level_in_words, plain
from evdist.report.figures import Figure
from evdist.report.objects import (
    Describe,
    MapKind,
    described,
    object_data,
    page_rows,
    places,
)
from evdist.sketch.pairs import PairDensity
from evdist.sketch.palette import COLOURS, DARK

#: Clusters whose cards are shown at once; the others open on a click. Of more than MOST_CARDS in
#: all the smallest have none: the table of clusters lists every one.
FIRST_CARDS, MOST_CARDS = 12, 200
#: Uncertain objects that are explained.
EXPLAINED = 3

#: Says why an object is where it is, by its row and what is decided.
Explain = Callable[[int, Decisions], object]


def write_report(
    path: str | os.PathLike[str],
    partition: CredalPartition,
    *,
    X: ArrayLike | None = None,
    coordinates: ArrayLike | None = None,
    map: MapKind = "auto",
    title: str = "Evidential clustering",
    parameters: Mapping[str, Any] | None = None,
    timings: Mapping[str, float] | None = None,
    history: ArrayLike | Mapping[str, ArrayLike] | None = None,
    shepard: tuple[ArrayLike, ArrayLike] | PairDensity | None = None,
    metrics: Mapping[str, Any] | None = None,
    notes: str | Sequence[str] | None = None,
    describe: Describe | None = None,
) -> Path:
    """Write the report of a clustering as one self-contained HTML file.

    The file appears at ``path`` complete or not at all; an older report there is replaced.
    See :func:`render_report` for the other parameters.

    Parameters
    ----------
    path : path
        File to write, .html.
    partition : CredalPartition of n objects
        The partition to report.
    X : (n, d) array or data frame, optional
        The data.
    coordinates : (n, 2) array or data frame, optional
        Where to draw the objects.
    map : {"auto", "components", "neighbours"}, default="auto"
        See :func:`render_report`.
    title : str, default="Evidential clustering"
        Heading of the page.
    parameters, metrics : mappings of names to values, optional
        Tables to show.
    timings : mapping of stages to seconds, optional
        To show.
    history, shepard : optional
        What `plot.convergence` and `plot.shepard` draw.
    notes : str or sequence of str, optional
        Paragraphs to put under the summary.
    describe : callable, optional
        Attributes to show of an object that is pointed at.

    Returns
    -------
    Path
        The file.
    """
    page = render_report(
        partition,
        X=X,
        coordinates=coordinates,
        map=map,
        title=title,
        parameters=parameters,
        timings=timings,
        history=history,
        shepard=shepard,
        metrics=metrics,
        notes=notes,
        describe=describe,
    )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, as only a rename within one file system is atomic.
    draft = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        draft.write_text(page, encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def render_report(
    partition: CredalPartition,
    *,
    summary: Summary | None = None,
    X: Any = None,
    coordinates: ArrayLike | None = None,
    map: MapKind = "auto",
    title: str = "Evidential clustering",
    parameters: Mapping[str, Any] | None = None,
    timings: Mapping[str, float] | None = None,
    history: ArrayLike | Mapping[str, ArrayLike] | None = None,
    shepard: tuple[ArrayLike, ArrayLike] | PairDensity | None = None,
    metrics: Mapping[str, Any] | None = None,
    notes: str | Sequence[str] | None = None,
    describe: Describe | None = None,
    description: Description | None = None,
    explain: Explain | None = None,
) -> str:
    """The report as text, to store it elsewhere than in a local file.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to report.
    summary : Summary, optional
        That of the partition, where it is known already.
    X : (n, d) array or data frame, optional
        The data; with it the report has a map. Of many objects only some rows are read.
    coordinates : (n, 2) array or data frame, optional
        Where to draw the objects, such as the plane of UMAP or t-SNE. By default the columns of X
        where there are two, else what `map` says.
    map : {"auto", "components", "neighbours"}, default="auto"
        Principal components of X, or a layout in which nearest neighbours lie together
        (:class:`evdist.features.NeighbourLayout`). "auto" takes the layout where X has more than 3
        columns and 50 rows or more. Of more than 10,000 rows a random sample is laid out, and the
        page says so.
    title : str, default="Evidential clustering"
        Heading of the page.
    parameters : mapping of names to values, optional
        Table of parameters to show.
    timings : mapping of stages to seconds, optional
        Seconds of each stage, to show.
    history : (t,) array or mapping of names to arrays, optional
        Values of the objective, the first before any iteration; or several named curves.
    shepard : (delta, kappa) arrays, or a PairDensity, optional
        Transformed dissimilarities and degrees of conflict of pairs.
    metrics : mapping of names to scores, optional
        Table of scores to show.
    notes : str or sequence of str, optional
        Paragraphs to put under the summary.
    describe : callable, optional
        Attributes to show of an object that is pointed at: a function of row numbers that gives
        names and, for each, the texts of these rows. Without it the columns of X.
    description : Description, optional
        What each cluster is: ``partition.describe(table)``. Without it that of X.
    explain : callable, optional
        Why an object is where it is: a function of its row and of what is decided. Without it
        ``partition.explain`` with X.

    Returns
    -------
    str
        A whole HTML document.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import ECM
    >>> from evdist.report import render_report
    >>> X = load_iris().data
    >>> render_report(ECM(3, random_state=0).fit(X).credal_partition_, X=X)[:15]
    '<!DOCTYPE html>'
    """
    partition = partition.in_memory()
    if coordinates is not None and np.shape(coordinates) != (partition.n_objects, 2):
        raise ValueError(
            f"coordinates must have two columns and a row for each of the {partition.n_objects} "
            f"objects, got shape {np.shape(coordinates)}."
        )
    facts = collect(partition, summary)
    if description is None:
        description = partition.describe(X, level=facts.answer)
    drawn = X if coordinates is None else coordinates
    found = None
    if drawn is not None:
        found = places(drawn, partition.n_objects, page_rows(facts.answer), map)
    look = describe or (None if X is None else described(X))
    why = explain or (lambda row, answer: partition.explain(row, X, level=answer))
    script = files(__package__).joinpath("script.js").read_text(encoding="utf-8")
    cards = sorted(description.clusters, key=lambda card: -card.possible)[:MOST_CARDS]
    cards.sort(key=lambda card: card.cluster)
    return (
        _environment()
        .get_template("template.html")
        .render(
            title=title,
            version=__version__,
            facts=facts,
            words=in_words(facts, description.clusters),
            level=level_in_words(facts.summary),
            headlines=[card.headline for card in description],
            cards=cards,
            card_notes=description.notes,
            first_cards=FIRST_CARDS,
            colours=list(enumerate(zip(COLOURS, DARK, strict=True))),
            explained=[str(why(one.row, facts.answer)) for one in facts.uncertain[:EXPLAINED]],
            script=script,
            policy=_policy(script),
            objects=object_data(partition, facts.answer, found, look),
            places=found,
            notes=[notes] if isinstance(notes, str) else list(notes or ()),
            figures=list(_figures(partition, facts)),
            details=list(_details(partition, facts, history, shepard)),
            parameters=_texts(parameters),
            metrics=_texts(metrics),
            timings=[(str(stage), duration(float(s))) for stage, s in (timings or {}).items()],
            total=duration(float(sum(timings.values()))) if timings else "",
        )
    )


def _figures(partition: CredalPartition, facts: Facts) -> Iterator[Figure]:
    """What is looked at beside the table of clusters."""
    yield figures.sizes(facts)
    tree = figures.tree(partition)
    if tree is not None:
        yield tree


def _details(
    partition: CredalPartition,
    facts: Facts,
    history: ArrayLike | Mapping[str, ArrayLike] | None,
    shepard: tuple[ArrayLike, ArrayLike] | PairDensity | None,
) -> Iterator[Figure]:
    """What those look at who know the theory, or mistrust the fit."""
    yield figures.masses(partition, facts)
    relations = figures.relations(partition)
    if relations is not None:
        yield relations
    yield figures.nonspecificity(facts)
    if history is not None:
        yield figures.convergence(history)
    if shepard is not None:
        density = shepard if isinstance(shepard, PairDensity) else PairDensity().add(*shepard)
        yield figures.shepard(density)


def _policy(script: str) -> str:
    """What a browser lets the page do: run this script, load nothing."""
    mark = b64encode(sha256(script.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{mark}'"


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(__package__, "."),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt name in the template is an error, not a gap
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _texts(values: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    return [(str(name), plain(value)) for name, value in (values or {}).items()]

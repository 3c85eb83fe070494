"""From facts and figures to one HTML file.

The page is written from ``template.html`` by jinja2 with autoescaping: every text that comes from
outside is escaped. Figures are SVG images inside the file.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import ArrayLike

from evdist import __version__, plot
from evdist.partition import CredalPartition, Summary
from evdist.partition.describe import Description
from evdist.plot import PairDensity
from evdist.plot.hulls import MOST_HULLS
from evdist.plot.style import MOST_NAMED, cluster_colour, named_clusters
from evdist.report.facts import ClusterRow, Facts, collect, duration, in_words, plain
from evdist.report.objects import DRAWN, Describe, described, object_data

#: Clusters whose cards are shown at once; the others open on a click.
MOST_CARDS = 12
#: Clusters whose tree is drawn.
MOST_BRANCHES = 60
#: Uncertain objects that are explained.
EXPLAINED = 3
#: Up to so many objects have their masses drawn one by one, and their relations in an image.
PROFILED, RELATED = 60, 300


@dataclass(frozen=True)
class _Picture:
    source: str
    alt: str
    caption: str


def write_report(
    path: str | os.PathLike[str],
    partition: CredalPartition,
    *,
    X: ArrayLike | None = None,
    coordinates: ArrayLike | None = None,
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
    X: ArrayLike | None = None,
    coordinates: ArrayLike | None = None,
    title: str = "Evidential clustering",
    parameters: Mapping[str, Any] | None = None,
    timings: Mapping[str, float] | None = None,
    history: ArrayLike | Mapping[str, ArrayLike] | None = None,
    shepard: tuple[ArrayLike, ArrayLike] | PairDensity | None = None,
    metrics: Mapping[str, Any] | None = None,
    notes: str | Sequence[str] | None = None,
    describe: Describe | None = None,
    description: Description | None = None,
) -> str:
    """The report as text, to store it elsewhere than in a local file.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to report.
    summary : Summary, optional
        That of the partition, where it is known already.
    X : (n, d) array or data frame, optional
        The data; with it the report draws the approximations of the clusters.
    coordinates : (n, 2) array or data frame, optional
        Where to draw the objects, such as the plane of UMAP or t-SNE. By default the two columns
        of X, or its first two principal components.
    title : str, default="Evidential clustering"
        Heading of the page.
    parameters : mapping of names to values, optional
        Table of parameters to show.
    timings : mapping of stages to seconds, optional
        Seconds of each stage, to show.
    history : (t,) array or mapping of names to arrays, optional
        See :func:`evdist.plot.convergence`.
    shepard : (delta, kappa) arrays, or a PairDensity, optional
        See :func:`evdist.plot.shepard`.
    metrics : mapping of names to scores, optional
        Table of scores to show.
    notes : str or sequence of str, optional
        Paragraphs to put under the summary.
    describe : callable, optional
        Attributes to show of an object that is pointed at: a function of row numbers that gives
        names and, for each, the texts of these rows. Without it the columns of X.
    description : Description, optional
        What each cluster is: ``partition.describe(table)``. Without it that of X.

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
    drawn = X if coordinates is None else coordinates
    facts = collect(partition, summary)
    if description is None:
        description = partition.describe(X, level=facts.answer)
    script = files(__package__).joinpath("script.js").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("template.html")
        .render(
            title=title,
            version=__version__,
            facts=facts,
            words=in_words(facts),
            cards=description.clusters,
            card_notes=description.notes,
            most_cards=MOST_CARDS,
            hues=[cluster_colour(card.cluster) for card in description],
            explained=_explained(partition, facts, X),
            script=script,
            policy=_policy(script),
            objects=object_data(
                partition,
                facts.answer,
                drawn,
                describe or (None if X is None else described(X)),
            ),
            notes=[notes] if isinstance(notes, str) else list(notes or ()),
            pictures=list(_pictures(partition, facts, drawn, history, shepard)),
            parameters=_texts(parameters),
            metrics=_texts(metrics),
            timings=[(str(stage), duration(float(s))) for stage, s in (timings or {}).items()],
            total=duration(float(sum(timings.values()))) if timings else "",
        )
    )


def _explained(partition: CredalPartition, facts: Facts, X: ArrayLike | None) -> list[str]:
    """Why the most uncertain objects are where they are, in words."""
    some = facts.uncertain[:EXPLAINED]
    return [str(partition.explain(one.row, X, level=facts.answer)) for one in some]


def _policy(script: str) -> str:
    """What a browser lets the page do: run this script, show images inside it, load nothing."""
    mark = b64encode(sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{mark}'"
    )


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


def _picture(svg: bytes, alt: str, caption: str) -> _Picture:
    # An image, not inline <svg>: ids of several figures cannot clash, and nothing in it can run.
    data = b64encode(svg).decode("ascii")
    return _Picture(f"data:image/svg+xml;base64,{data}", alt, caption)


def _pictures(
    partition: CredalPartition,
    facts: Facts,
    X: ArrayLike | None,
    history: ArrayLike | Mapping[str, ArrayLike] | None,
    shepard: tuple[ArrayLike, ArrayLike] | PairDensity | None,
) -> Iterable[_Picture]:
    if X is not None:
        plane = "two principal components" if np.shape(X)[-1] > 2 else "the plane"
        c = facts.summary.n_clusters
        whose = f"the {MOST_HULLS} largest of {c:,}" if c > MOST_NAMED else f"{c}"
        yield _picture(
            plot.to_svg(
                plot.approximations(
                    partition, X, rule="decision", level=facts.answer, max_points=DRAWN
                )
            ),
            f"Scatter plot of {facts.summary.n_objects:,} objects on {plane} with the convex "
            "hulls of the sure members, and of all objects that stay open, of "
            f"{whose} clusters and "
            f"{facts.summary.n_outliers:,} outliers.",
            "Solid lines enclose the objects that are surely in a cluster, dashed lines also those "
            "for which it stays open. Circles are outliers.",
        )
    rows, smaller = _told(facts)
    sizes = "; ".join(
        f"cluster {row.number}: {row.sure:,} to {row.possible:,}"
        for row in rows
        if row.number is not None
    )
    yield _picture(
        plot.to_svg(plot.sizes(partition, level=facts.answer)),
        f"Bar chart of the number of sure to possible members. {sizes}{smaller}; "
        f"outliers: {facts.summary.n_outliers:,}.",
        "How many objects surely (full bars) and possibly (with the hatched ends) belong to each "
        "cluster.",
    )
    doubts = "; ".join(
        f"{'' if row.number is None else 'cluster '}{row.name}: {row.nonspecificity:.3f}"
        for row in rows
    )
    yield _picture(
        plot.to_svg(plot.nonspecificity(partition)),
        f"Bar chart of the mean nonspecificity. {doubts}{smaller}.",
        "How unsure the cluster of an object is on average, and whether the doubt lies between "
        "clusters or in belonging to any.",
    )
    if 1 < facts.summary.n_clusters <= MOST_BRANCHES:
        found = partition.tree()
        said = "; ".join(f"{m.left} and {m.right}" for m in found.merges[:3])
        yield _picture(
            plot.to_svg(plot.tree(found)),
            f"Tree of the clusters. The first that become one: {said}.",
            "Which clusters are hard to tell apart: the lower two branches meet, the more objects "
            "lie between them for their sizes.",
        )
    yield _profile(partition, facts)
    if partition.n_objects > 1:
        yield _relations(partition)
    if history is not None:
        yield _picture(
            plot.to_svg(plot.convergence(history)),
            "Curve of the objective after each iteration.",
            "The objective after each iteration.",
        )
    if shepard is not None:
        density = shepard if isinstance(shepard, PairDensity) else PairDensity().add(*shepard)
        yield _picture(
            plot.to_svg(plot.shepard(density)),
            f"Density plot of degrees of conflict against transformed dissimilarities of "
            f"{density.n_pairs:,} pairs; stress {density.stress:.3g}.",
            "A good fit lies along the dashed diagonal.",
        )


def _told(facts: Facts) -> tuple[list[ClusterRow], str]:
    """The rows that the texts beside figures name, and words for the others."""
    sizes = [row.possible or 0 for row in facts.clusters if row.number is not None]
    named = set(named_clusters(sizes).tolist())
    rows = [row for row in facts.clusters if row.number is None or row.number in named]
    left = len(sizes) - len(named)
    return rows, f"; and {left:,} smaller clusters" if left else ""


def _profile(partition: CredalPartition, facts: Facts) -> _Picture:
    """Masses object by object: of all, or of the most uncertain."""
    n = partition.n_objects
    rows = None if n <= PROFILED else [one.row for one in facts.uncertain]
    who = f"all {n} objects" if rows is None else f"the {len(rows)} most uncertain objects"
    if not rows and n > PROFILED:  # every object is sure: any of them will do
        rows, who = list(range(PROFILED)), f"the first {PROFILED} objects"
    return _picture(
        plot.to_svg(plot.mass_profile(partition, objects=rows)),
        f"Curves of the masses on the focal sets of {who}.",
        f"The masses of {who}: where two curves meet, an object lies between clusters.",
    )


def _relations(partition: CredalPartition) -> _Picture:
    """How possibly two objects are in one cluster, objects of a cluster side by side."""
    n = partition.n_objects
    ax = plot.relation_matrix(partition, max_objects=RELATED)
    some = ax.images[0].get_size()[0]
    shown = f"{some:,} of {n:,} objects" if n > some else f"{n:,} objects"
    return _picture(
        plot.to_svg(ax),
        f"Image of the plausibility that two objects are in one cluster, for {shown}.",
        "How possible it is that two objects belong together. Dark squares on the diagonal are "
        "clusters; dark fields beside it are clusters that are hard to tell apart.",
    )

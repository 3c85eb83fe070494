"""The answer of a job as artifacts of Prefect."""

from __future__ import annotations

from base64 import b64encode

from prefect.artifacts import (
    create_image_artifact,
    create_markdown_artifact,
    create_table_artifact,
)

from evdist.plot import sizes, to_png
from evdist.report.facts import collect, in_words
from evdist.service.jobs import JobResult

__all__ = ["publish"]


def publish(result: JobResult) -> None:
    """Words, a table of clusters, a picture."""
    key, partition = result.folder.id, result.partition.in_memory()
    facts = collect(partition)
    create_markdown_artifact(
        f"## {key}\n\n{' '.join(in_words(facts))}\n\n"
        f"Report: `{result.report}`\n\nMasses: `{result.folder.path('masses.zarr')}`\n",
        key=f"answer-{key}",
    )
    rows = [{"cluster": k, **row} for k, row in enumerate(result.metrics["clusters"])]
    create_table_artifact(rows, key=f"clusters-{key}")
    # Inside the artifact: a user of Prefect need not have access to the storage.
    picture = b64encode(to_png(sizes(partition, level=facts.answer))).decode("ascii")
    create_image_artifact(f"data:image/png;base64,{picture}", key=f"sizes-{key}")

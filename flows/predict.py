"""The flow `predict`: new objects placed by the model of a finished job."""

from __future__ import annotations

from prefect import flow

from evdist.service.config import JobConfig
from evdist.service.jobs import stages_of
from flows.stages import enter_stages, reachable

__all__ = ["predict"]


@flow(name="predict", persist_result=False)
def predict(model: str, data: str, folder: str, columns: list[str] | None = None) -> str:
    """Place the objects at `data` by the model in `model`; the folder is the result."""
    source = {"url": data, "columns": columns}
    config = JobConfig.of(task="predict", model=model, data=source, folder=folder)
    config = reachable(config)
    return enter_stages(config, stages_of(config)).folder.url

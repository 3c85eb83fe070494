"""What a job can be asked for, each a line of stages.

Stages are named by module and function, and loaded when they are entered: who predicts does not
wait for what draws, and who submits waits for neither.
"""

from __future__ import annotations

from evdist.jobs.context import StageWork

__all__ = ["TASKS"]

_LOAD = StageWork("load", "evdist.jobs.loading:load", "evdist.jobs.loading:source_stamp")
_VALIDATE = StageWork("validate", "evdist.jobs.loading:validate")
_VALIDATE_NEW = StageWork("validate", "evdist.jobs.new_objects:check_new")
_ANSWER = (
    StageWork("summarise", "evdist.jobs.results:summarise"),
    StageWork("report", "evdist.jobs.results:report"),
)

#: Task -> its stages, in order.
TASKS: dict[str, tuple[StageWork, ...]] = {
    "cluster": (
        _LOAD,
        _VALIDATE,
        StageWork("sample", "evdist.jobs.fitting:sample"),
        StageWork("fit", "evdist.jobs.fitting:fit"),
        *_ANSWER,
    ),
    "predict": (
        _LOAD,
        _VALIDATE_NEW,
        StageWork("predict", "evdist.jobs.new_objects:predict"),
        *_ANSWER,
    ),
    "append": (
        _LOAD,
        _VALIDATE_NEW,
        StageWork("count", "evdist.jobs.new_objects:count"),
        StageWork("append", "evdist.jobs.new_objects:append"),
        StageWork("copy", "evdist.jobs.new_objects:copy_grown"),
        *_ANSWER,
    ),
    "select": (_LOAD, _VALIDATE, StageWork("select", "evdist.jobs.selecting:select"), *_ANSWER),
    "combine": (StageWork("combine", "evdist.jobs.combining:combine"), *_ANSWER),
}

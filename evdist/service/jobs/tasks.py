"""What a job can be asked for, each a line of stages.

Stages are named by module and function, and loaded when they are entered: who predicts does not
wait for what draws, and who submits waits for neither.
"""

from __future__ import annotations

from evdist.service.jobs.context import StageWork

_LOAD = StageWork(
    "load", "evdist.service.jobs.loading:load", "evdist.service.jobs.loading:source_stamp"
)
_VALIDATE = StageWork("validate", "evdist.service.jobs.loading:validate")
_VALIDATE_NEW = StageWork("validate", "evdist.service.jobs.new_objects:check_new")
_ANSWER = (
    StageWork(
        "summarise",
        "evdist.service.jobs.results:summarise",
        "evdist.service.jobs.loading:table_version",
    ),
    StageWork("report", "evdist.service.jobs.results:report"),
)

#: Task -> its stages, in order.
TASKS: dict[str, tuple[StageWork, ...]] = {
    "cluster": (
        _LOAD,
        _VALIDATE,
        StageWork("sample", "evdist.service.jobs.fitting:sample"),
        StageWork("fit", "evdist.service.jobs.fitting:fit"),
        *_ANSWER,
    ),
    "predict": (
        _LOAD,
        _VALIDATE_NEW,
        StageWork("predict", "evdist.service.jobs.new_objects:predict"),
        *_ANSWER,
    ),
    "append": (
        _LOAD,
        _VALIDATE_NEW,
        StageWork("count", "evdist.service.jobs.new_objects:count"),
        StageWork("append", "evdist.service.jobs.new_objects:append"),
        StageWork("copy", "evdist.service.jobs.new_objects:copy_grown"),
        *_ANSWER,
    ),
    "select": (
        _LOAD,
        _VALIDATE,
        StageWork("select", "evdist.service.jobs.selecting:select"),
        *_ANSWER,
    ),
    "combine": (StageWork("combine", "evdist.service.jobs.combining:combine"), *_ANSWER),
}

"""How a job's lines look: for people, or, with EVDIST_LOG_FORMAT=json, one JSON object each."""

from __future__ import annotations

import json
import logging
import os
import time

#: One format for everything that a job says, wherever it is read.
LOG_FORMAT = "%(asctime)s %(levelname)-7s [{job}] %(message)s"


def formatter(job: str) -> logging.Formatter:
    """The lines of a job."""
    if os.environ.get("EVDIST_LOG_FORMAT", "").lower() == "json":
        return _Json(job)
    return logging.Formatter(LOG_FORMAT.format(job=job.replace("%", "%%")))


class _Json(logging.Formatter):
    """Time in UTC, level, job and message, and the traceback where there is one."""

    def __init__(self, job: str):
        super().__init__()
        self._job = job

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{when}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "job": self._job,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)

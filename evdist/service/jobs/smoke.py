"""``python -m evdist.service.jobs.smoke JOB.yaml``: does a job run here, from data to report?

In a new folder each time, under that of the configuration: a job that was done before would be
found and nothing tried. The folder is removed when all went well.
"""

from __future__ import annotations

import json
import sys
import uuid

from evdist.service.config import ConfigError, read_config
from evdist.service.jobs.pipeline import JobCancelled, JobError, run
from evdist.stores.paths import join, remove


def main(arguments: list[str]) -> int:
    """Entry point."""
    try:
        given = read_config(arguments[0])
        config = given.model_copy(update={"folder": join(given.folder, uuid.uuid4().hex[:12])})
        metrics = run(config).metrics
    except (ConfigError, JobError, JobCancelled) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(metrics, default=str) + "\n")
    remove(config.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

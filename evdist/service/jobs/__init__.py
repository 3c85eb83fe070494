"""Jobs: one use case, from a configuration to a folder with the answer and its report."""

from evdist.service.jobs.folder import JobFolder, JobState
from evdist.service.jobs.pipeline import JobCancelled, JobError, JobResult, run, stages_of

__all__ = ["JobCancelled", "JobError", "JobFolder", "JobResult", "JobState", "run", "stages_of"]

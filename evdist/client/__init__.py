"""Submit data, watch the job, fetch the answer: embedded on this machine, or through Prefect."""

from evdist.client.core import Client
from evdist.client.job import Job

__all__ = ["Client", "Job"]

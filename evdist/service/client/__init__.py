"""Submit data, watch the job, fetch the answer: embedded on this machine, or through Prefect."""

from evdist.service.client.core import Client
from evdist.service.client.job import Job

__all__ = ["Client", "Job"]

"""What a job is: its configuration, and how a mistake in it is told."""

from evdist.service.config.errors import ConfigError
from evdist.service.config.files import read_config
from evdist.service.config.model import Cluster, Data, JobConfig

__all__ = ["Cluster", "ConfigError", "Data", "JobConfig", "read_config"]

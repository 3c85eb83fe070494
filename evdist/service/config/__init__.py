"""What a job is: its configuration, the algorithms there are, and how a mistake is told."""

from evdist.service.config.algorithms import ALGORITHMS, Algorithm
from evdist.service.config.errors import ConfigError
from evdist.service.config.files import read_config
from evdist.service.config.model import Cluster, Data, JobConfig

__all__ = ["ALGORITHMS", "Algorithm", "Cluster", "ConfigError", "Data", "JobConfig", "read_config"]

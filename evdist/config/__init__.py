"""What a job is: its configuration, the algorithms there are, and how a mistake is told."""

from evdist.config.algorithms import ALGORITHMS, Algorithm
from evdist.config.errors import ConfigError
from evdist.config.files import read_config
from evdist.config.model import Cluster, Data, JobConfig

__all__ = ["ALGORITHMS", "Algorithm", "Cluster", "ConfigError", "Data", "JobConfig", "read_config"]

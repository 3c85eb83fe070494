"""EVCLUS on data larger than any one process: partitions that know only a few others."""

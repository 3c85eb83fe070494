"""The key `conformal` of a job: sizes of its sets in metrics.json and the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs.jobs_cases import config, data_file, quick

from evdist import JobConfig, run
from evdist.service.config import ConfigError


def test_sizes_of_the_sets_stand_in_metrics_and_report(tmp_path: Path) -> None:
    data_file(tmp_path)
    result = run(config(tmp_path, conformal=0.1))
    told = result.metrics["conformal"]
    sets = result.partition.conformal(0.1)
    assert told["alpha"] == 0.1 and told["promise"] == sets.promise
    assert told["counts"] == sets.counts().tolist() and sum(told["counts"]) == 200
    assert told["threshold"] == sets.threshold and told["mean_size"] == sets.sizes.mean()
    assert "clusters in a conformal set, alpha 0.1" in Path(result.report).read_text()


def test_without_the_key_nothing_is_said(tmp_path: Path) -> None:
    data_file(tmp_path)
    assert "conformal" not in quick(config(tmp_path)).metrics


@pytest.mark.parametrize("alpha", [0, 1, -0.1])
def test_a_share_that_means_nothing_is_refused(alpha: float, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="conformal"):
        JobConfig.of(config(tmp_path, conformal=alpha))

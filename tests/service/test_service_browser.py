"""The page on Dask's dashboard and the report, opened in a real browser."""

from __future__ import annotations

import re
import shutil
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from service.servers import dask_cluster, wait_for

from evdist import run

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium), which is absent")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


def metrics_of(dashboard: str) -> str:
    with urllib.request.urlopen(f"{dashboard}/metrics") as reply:
        return reply.read().decode()


def test_a_fit_can_be_watched_and_its_report_read(browser, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(60_000, 3)) + 5 * rng.integers(0, 3, (60_000, 1)))
    config = {
        "folder": str(tmp_path / "job"),
        "data": {"url": str(tmp_path / "x.npy")},
        "parameters": {
            "n_clusters": 3,
            "metric": "euclidean",
            "tol": 0.0,
            "max_iter": 300,
            "d0": "q0.5",
        },
        "title": "Three <b>groups</b>",
    }
    with dask_cluster(tmp_path) as dask, ThreadPoolExecutor(1) as pool:
        config["cluster"] = {"kind": "scheduler", "address": dask.address}
        job = pool.submit(run, config)
        page = browser.new_page()
        page.goto(f"{dask.dashboard}/evdist")
        page.get_by_text("fall of J").wait_for(timeout=120_000)
        page.get_by_text("of 300").wait_for(timeout=120_000)
        told = re.compile(r'evdist_objective\{job="([^"]+)",stage="fit"\}')
        found = wait_for("the objective", lambda: told.search(metrics_of(dask.dashboard)), 60)
        assert page.get_by_text("colour step").count() == 1
        assert page.get_by_role("link", name="Evdist").count() == 1  # in the bar of pages
        assert page.locator("canvas").count() >= 3
        with urllib.request.urlopen(f"{dask.dashboard}/evdist.json") as reply:
            assert b'"stage"' in reply.read()
        result = job.result(timeout=240)
    assert found[1] == result.folder.id
    page.goto(f"file://{result.report}")
    assert page.title() == "Three <b>groups</b>"
    assert page.locator("#answer").inner_text().startswith("60,000 objects in 3 clusters")
    assert page.locator("#object-map canvas").first.bounding_box()["width"] > 300
    assert page.locator(".figures svg").count() >= 4

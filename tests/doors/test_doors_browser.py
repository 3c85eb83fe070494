"""The report in a real browser: hover, search, filter and sort, read from the page itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, sync_playwright

from evdist import CredalPartition, FocalSets
from evdist.report import write_report

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium), which is absent")
    path = report(tmp_path_factory.mktemp("report"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: errors.append(request.url))
        page.goto(f"file://{path}")
        yield page
        browser.close()
    assert [one for one in errors if not one.startswith(("file:", "data:"))] == []


def report(folder: Path) -> Path:
    """Thirty objects: ten in each of two clusters, five between, five outliers."""
    rows = [[0.0, 1.0, 0.0, 0.0]] * 10 + [[0.0, 0.0, 1.0, 0.0]] * 10
    rows += [[0.0, 0.4, 0.3, 0.3]] * 5 + [[0.7, 0.1, 0.1, 0.1]] * 5
    ids = [f"client-{i:02}" for i in range(30)]
    X = pd.DataFrame({"age": np.arange(30.0), "spent": (np.arange(30) * 7 % 30.0)}, index=ids)
    partition = CredalPartition(rows, FocalSets.simple(2), ids)
    return write_report(folder / "report.html", partition, X=X)


def listed(page: Page) -> list[str]:
    return page.locator("#object-list tbody th").all_inner_texts()


def test_pointing_at_an_object_tells_its_id_and_values(page):
    page.locator('[data-id="client-21"]').hover()
    told = page.locator("#object-tip").inner_text()
    assert told.startswith("client-21") and "between {0,1}" in told
    assert "age\n21" in told and "spent\n27" in told
    page.mouse.move(0, 0)
    assert page.locator("#object-tip").is_hidden()


def test_an_object_is_found_by_its_id(page):
    page.fill("#object-search", "client-07")
    assert listed(page) == ["client-07"]
    assert page.locator(".point.found").get_attribute("data-id") == "client-07"
    assert page.locator(".point.dim").count() == 29
    page.fill("#object-search", "client-1")
    assert len(listed(page)) == 10
    page.fill("#object-search", "")
    assert len(listed(page)) == 30


def test_decisions_and_clusters_filter(page):
    for word in ("sure", "between"):
        page.locator(f'input[value="{word}"]').uncheck()
    assert listed(page) == [f"client-{i}" for i in range(25, 30)]
    assert page.locator("#object-count").inner_text() == "5 objects"
    for word in ("sure", "between"):
        page.locator(f'input[value="{word}"]').check()
    page.locator("select").select_option("1")
    assert set(listed(page)) == {f"client-{i}" for i in range(10, 20)}
    page.locator("select").select_option("")


def test_a_click_on_a_head_sorts(page):
    head = page.locator("#object-list th", has_text="spent")
    for direction in ("ascending", "descending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        cells = page.locator("#object-list tbody td:last-child").all_inner_texts()
        values = [float(cell) for cell in cells]
        assert values == sorted(values, reverse=direction == "descending")


def test_axes_are_named_after_the_columns(page):
    assert page.locator("svg .axis").all_text_contents() == ["age", "spent"]


def test_numbers_of_many_clusters_do_not_lie_on_each_other(page, tmp_path):
    """The largest have theirs; the legend names them, and says that the others' signs repeat."""
    y = np.repeat(np.arange(300), np.arange(1, 301) % 23 + 1)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + y[:, None] % 7
    many = page.context.browser.new_page()
    many.goto(f"file://{write_report(tmp_path / 'many.html', CredalPartition.from_labels(y), X=X)}")
    boxes = [one.bounding_box() for one in many.locator(".map text.number").all()]
    assert 24 < len(boxes) < 300
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            aside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            # Boxes of text are higher than its digits.
            assert aside or abs(a["y"] - b["y"]) >= 0.6 * a["height"], (a, b)
    legend = many.locator(".legend").inner_text()
    named = [int(k) for k in re.findall(r"cluster (\d+)", legend)]
    assert len(named) == 24 and named[0] == 21, "the first of those with most objects"
    assert "and 276 smaller ones" in legend
    many.close()

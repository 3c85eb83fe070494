"""The report in a real browser: hover, search, filter and sort, read from the page itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, sync_playwright
from report_pages import place

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
        page.wait_for_selector("canvas[data-view]")
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
    page.mouse.move(*place(page, "client-21"))
    told = page.locator("#object-tip").inner_text()
    assert told.startswith("client-21") and "between {0,1}" in told
    assert "age\n21" in told and "spent\n27" in told
    page.mouse.move(0, 0)
    assert page.locator("#object-tip").is_hidden()


def test_an_object_is_found_by_its_id(page):
    page.fill("#object-search", "client-07")
    assert listed(page) == ["client-07"]
    page.fill("#object-search", "client-1")
    assert len(listed(page)) == 10
    page.fill("#object-search", "")
    assert page.locator("#object-count").inner_text() == "30 objects"


def test_the_list_has_pages(page):
    assert len(listed(page)) == 25
    bar = page.locator("#object-view .pages")
    assert "1 to 25 of 30" in bar.inner_text()
    bar.get_by_text("next").click()
    assert len(listed(page)) == 5 and bar.get_by_text("next").is_disabled()
    bar.get_by_text("previous").click()
    assert len(listed(page)) == 25


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
    assert page.locator("#object-count").inner_text() == "30 objects"


def test_a_card_shows_its_members_and_an_object_its_card(page):
    card = page.locator("#cluster-1")
    card.locator(".pick").click()
    assert set(listed(page)) == {f"client-{i}" for i in range(10, 20)}
    assert "chosen" in card.get_attribute("class")
    assert card.locator(".pick").get_attribute("aria-pressed") == "true"
    page.get_by_text("show all").click()
    assert "chosen" not in card.get_attribute("class")
    page.mouse.click(*place(page, "client-02"))
    assert "chosen" in page.locator("#cluster-0").get_attribute("class")
    page.locator(".map canvas").press("Escape")
    assert page.locator("#object-count").inner_text() == "30 objects"


def test_an_area_is_selected(page):
    page.get_by_text("select an area").click()
    (x, y), (u, v) = place(page, "client-00"), place(page, "client-03")  # (0, 0) and (3, 21)
    page.mouse.move(x - 6, y + 6)
    page.mouse.down()
    page.mouse.move(u + 6, v - 6, steps=4)
    page.mouse.up()
    assert set(listed(page)) == {"client-00", "client-01", "client-02", "client-03"}
    assert "in the area: 4 in cluster 0" in page.locator("#object-count").inner_text()
    page.get_by_text("show all").click()
    page.get_by_text("select an area").click()


def test_the_map_zooms_and_comes_back(page):
    view = page.locator(".map canvas")
    before = place(page, "client-29")
    page.get_by_label("zoom in").click()
    page.wait_for_timeout(100)
    assert place(page, "client-29") != before
    view.press("0")
    page.wait_for_timeout(100)
    assert place(page, "client-29") == pytest.approx(before)


def test_paper_is_white_and_shows_what_is_folded(page):
    dark = page.context.browser.new_page(color_scheme="dark")
    dark.goto(page.url)
    assert not dark.get_by_text("Nonspecificity", exact=True).is_visible()
    dark.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert dark.get_by_text("Nonspecificity", exact=True).is_visible()
    paper = "getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()"
    assert dark.evaluate(paper) == "#fff"
    dark.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not dark.get_by_text("Nonspecificity", exact=True).is_visible()
    assert dark.evaluate(paper) != "#fff"
    dark.close()


def test_a_click_on_a_head_sorts(page):
    head = page.locator("#object-list th", has_text="spent")
    for direction in ("ascending", "descending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        cells = page.locator("#object-list tbody td:last-child").all_inner_texts()
        values = [float(cell) for cell in cells]
        assert values == sorted(values, reverse=direction == "descending")


def test_numbers_of_many_clusters_do_not_lie_on_each_other(page, tmp_path):
    """The largest have theirs; the legend names them, and says that the others' signs repeat."""
    y = np.repeat(np.arange(300), np.arange(1, 301) % 23 + 1)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + y[:, None] % 7
    many = page.context.browser.new_page()
    many.goto(f"file://{write_report(tmp_path / 'many.html', CredalPartition.from_labels(y), X=X)}")
    many.wait_for_selector("canvas[data-view]")
    boxes = [one.bounding_box() for one in many.locator(".map .number").all()]
    assert 24 < len(boxes) < 300
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            aside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            # Boxes of text are higher than its digits.
            assert aside or abs(a["y"] - b["y"]) >= 0.6 * a["height"], (a, b)
    legend = many.locator(".legend").inner_text()
    named = [int(k) for k in many.locator(".legend button").all_inner_texts()]
    assert len(named) == 24 and named[0] == 21, "the first of those with most objects"
    assert "and 276 smaller clusters" in legend
    many.close()

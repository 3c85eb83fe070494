"""Where things lie on the page of a report that a browser shows."""

from __future__ import annotations

import json

from playwright.sync_api import Page


def place(page: Page, name: str) -> tuple[float, float]:
    """Where an object of the map lies in the window."""
    data = json.loads(page.locator("#object-data").text_content() or "")
    i = data["id"].index(name)
    canvas = page.locator(".map canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    (mx, my), (cx, cy), (sx, sy) = json.loads(canvas.get_attribute("data-view") or "")
    return (
        box["x"] + mx + (data["x"][i] - cx) * sx,
        box["y"] + my - (data["y"][i] - cy) * sy,
    )

"""Draw which-estimator.svg: from what you have to the estimator to take.

    python docs/images/which_estimator.py

On the site the drawing is part of its page: its colours are those of the theme, and the names of
estimators are links. As a picture of its own it has the colours that follow the commas below.
"""

from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent

#: What the objects are -> (what is wanted of them, estimators, page).
CHART: dict[str, list[tuple[str, tuple[str, ...], str]]] = {
    "rows of numbers, or a table": [
        ("start here", ("EVCLUS",), "evclus.md"),
        ("images, texts, cells: many columns", ('EVCLUS(metric="auto")',), "evclus.md"),
        ("rings, bands, any shape", ('EVCLUS(metric="geodesic")', "EKNNclus"), "features.md"),
        ("round clusters, prototypes", ("ECM", "CCM", "BCM", "BPEC"), "ecm.md"),
        ("long and flat clusters", ("EGMM", 'ECM(metric="adaptive")'), "mixtures.md"),
        ("masses that are calibrated", ("Bootclus",), "bootclus.md"),
        ("a network that places new rows", ("NNEVCLUS",), "nnevclus.md"),
    ],
    "dissimilarities only": [
        ("many objects, lists of pairs", ("EVCLUS",), "evclus.md"),
        ("objects as centres", ("ECMdd", "MECM"), "family.md"),
        ("as ECM", ("RECM",), "ecm.md"),
    ],
    "with links: together, apart": [
        ("any number of objects", ("EVCLUS", "NNEVCLUS"), "evclus.md"),
        ("prototypes", ("CECM",), "ecm.md"),
    ],
    "pixels of an image": [("neighbours count", ("SECM",), "ecm.md")],
    "known classes": [
        ("classify, and say how sure", ("EKNNClassifier", "EvidentialNN"), "family.md")
    ],
}

STYLE = """
.chart { font: 14px system-ui, sans-serif }
.chart rect.back { fill: var(--md-default-bg-color, #ffffff) }
.chart rect.from { fill: var(--md-code-bg-color, #f2f4f8) }
.chart text { fill: var(--md-default-fg-color, #222222) }
.chart text.want { fill: var(--md-default-fg-color--light, #555555) }
.chart path { stroke: var(--md-default-fg-color--lighter, #bbbbbb); fill: none; stroke-width: 1.5 }
.chart rect.name { fill: none; stroke: var(--md-accent-fg-color, #0072b2) }
.chart a text { fill: var(--md-typeset-a-color, #0072b2); font-family: monospace; font-size: 13px }
.chart text.from { font-weight: 600 }
"""
WIDE, STEP, GAP = 820, 36, 14
FROM, WANT, NAMES = 10, 250, 484


def main() -> None:
    """Entry point."""
    parts, top = [], 12.0
    for start, rows in CHART.items():
        middle = top + STEP * len(rows) / 2
        parts.append(_box(start, middle))
        for i, (want, names, page) in enumerate(rows):
            parts.append(_row(want, names, page, middle, top + STEP * (i + 0.5)))
        top += STEP * len(rows) + GAP
    body = "\n".join(parts)
    text = (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {top:g}" '
        f'role="img" aria-label="Which estimator: what you have, what you want, what to take">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="back" width="{WIDE}" height="{top:g}"/>\n{body}\n</svg>\n'
    )
    (HERE / "which-estimator.svg").write_text(text, encoding="utf-8")


def _box(start: str, y: float) -> str:
    return (
        f'<rect class="from" x="{FROM}" y="{y - 17:g}" width="212" height="34" rx="6"/>'
        f'<text class="from" x="{FROM + 10}" y="{y + 5:g}">{escape(start)}</text>'
    )


def _row(want: str, names: tuple[str, ...], page: str, middle: float, y: float) -> str:
    bend = f"M{FROM + 212} {middle:g} C{WANT - 12} {middle:g} {WANT - 20} {y:g} {WANT - 5} {y:g}"
    text = f'<path d="{bend}"/><text class="want" x="{WANT}" y="{y + 5:g}">{escape(want)}</text>'
    x = float(NAMES)
    for name in names:
        wide = 7.83 * len(name) + 16  # a letter of 13 px monospace
        text += (
            f'<a href="{page}"><rect class="name" x="{x:g}" y="{y - 13:g}" width="{wide:g}" '
            f'height="26" rx="13"/>'
            f'<text x="{x + 8:g}" y="{y + 4.5:g}">{escape(name, False)}</text></a>'
        )
        x += wide + 8
    return text


if __name__ == "__main__":
    main()

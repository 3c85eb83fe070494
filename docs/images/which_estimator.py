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
    "rows of numbers, or a table made numbers": [
        ("start here", ("EVCLUS",), "evclus.md"),
        ("millions of rows, a distance to trust", ('EVCLUS(metric="euclidean")',), "evclus.md"),
        ("rings, bands, any shape", ('EVCLUS(metric="geodesic")',), "features.md"),
        ("number of clusters not known", ('EVCLUS("auto")', "select", "EKNNclus"), "ecm.md"),
        ("round clusters, prototypes", ("ECM", "CCM", "BCM", "BPEC"), "ecm.md"),
        ("long and flat clusters", ("EGMM", 'ECM(metric="adaptive")'), "mixtures.md"),
        ("masses that are calibrated", ("Bootclus",), "bootclus.md"),
        ("a network that places new rows", ("NNEVCLUS",), "nnevclus.md"),
    ],
    "only dissimilarities between objects": [
        ("many objects, lists of pairs", ("EVCLUS",), "evclus.md"),
        ("objects as centres", ("ECMdd", "MECM"), "family.md"),
        ("prototypes, as in ECM", ("RECM",), "ecm.md"),
    ],
    "with links: pairs known to be together or apart": [
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
WIDE, STEP, GAP = 640, 36, 12
WANT, NAMES = 40, 296


def main() -> None:
    """Entry point."""
    parts, top = [], 10.0
    for start, rows in CHART.items():
        parts.append(
            f'<rect class="from" x="10" y="{top:g}" width="{WIDE - 20}" height="30" rx="6"/>'
            f'<text class="from" x="20" y="{top + 20:g}">{escape(start)}</text>'
        )
        for i, (want, names, page) in enumerate(rows):
            y = top + 30 + STEP * (i + 0.6)
            above = y - 6 - STEP if i else top + 30  # the line goes on from the row above
            parts.append(_row(want, names, page, above, y))
        top += 30 + STEP * len(rows) + GAP
    body = "\n".join(parts)
    text = (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {top:g}" '
        f'role="img" aria-label="Which estimator: what you have, what you want, what to take">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="back" width="{WIDE}" height="{top:g}"/>\n{body}\n</svg>\n'
    )
    (HERE / "which-estimator.svg").write_text(text, encoding="utf-8")


def _row(want: str, names: tuple[str, ...], page: str, above: float, y: float) -> str:
    text = (
        f'<path d="M20 {above:g} V{y - 6:g} Q20 {y:g} 26 {y:g} H34"/>'
        f'<text class="want" x="{WANT}" y="{y + 5:g}">{escape(want)}</text>'
    )
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

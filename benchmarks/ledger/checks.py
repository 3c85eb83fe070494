"""The checks of `figures/claims.csv`: each asks the answers whether a claim of a source holds.

A check returns whether it holds and what was found; it raises `Missing` where an answer is not
there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from ledger.claims import Found

#: The sets of table 3 that can be had.
SETS = ("Wine", "Iris", "Ecoli", "Heart", "Seeds", "Glass", "Segment", "S2", "S4", "D31",
        "DryBean")  # fmt: skip
PLANES = ("S2", "S4", "D31")
REAL = tuple(name for name in SETS if name not in PLANES)
NETWORKS = ("NN-EVCLUS", "NN-EVCLUS-bp")
SMALL = ("Banana_200", "Glass", "Iris", "Ecoli")
XI = ("0", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")
Q = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")
LINKED = {"glass10": ("q0.5", "5"), "iris": ("q0.9", "3")}


def dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Higher consistency and lower nonspecificity, NN-EVCLUS, figure 22."""
    return a[0] > b[0] and a[1] < b[1]


Verdict = tuple[bool, str]


def _said(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


# ---------------------------------------------------------------------- NN-EVCLUS
def _with_medoids(found: Found) -> list[str]:
    return [name for name in SETS if name not in PLANES]


def medoids_lose(found: Found) -> Verdict:
    bad, beaten = [], []
    for name in _with_medoids(found):
        row = found.table_3(name)
        best = max(row.pop("sECMdd"), row.pop("wECMdd"))
        if best >= max(row.values()):
            bad.append(name)
        if below := sum(value < best for value in row.values()):
            beaten.append(f"{name} {below} of {len(row)}")
    return not bad, (f"best of all on {_said(bad)}; other methods that the better of the two "
                     f"beats: {_said(beaten)}")  # fmt: skip


def network_near_best(found: Found) -> Verdict:
    bad = []
    for name in SETS:
        row = found.table_3(name)
        ours = max(row[method] for method in NETWORKS if method in row)
        if name not in ("Iris", "Segment") and ours < 0.95 * max(row.values()):
            bad.append(f"{name} ({ours:.2f} of {max(row.values()):.2f})")
    return not bad, f"farther from the best: {_said(bad)}"


def peaks_improve(found: Found) -> Verdict:
    rows = {name: found.table_3(name) for name in PLANES}
    gain = {name: row["NN-EVCLUS-bp"] - row["NN-EVCLUS"] for name, row in rows.items()}
    return min(gain.values()) > 0, _said([f"{name} {v:+.2f}" for name, v in gain.items()])


def network_not_below_evclus(found: Found) -> Verdict:
    rows = {name: found.table_3(name) for name in REAL}
    well = [n for n, row in rows.items() if row["NN-EVCLUS"] >= row["EVCLUS"] - 0.01]
    return 2 * len(well) > len(rows), f"on {len(well)} of {len(rows)} (less .01): {_said(well)}"


def network_fails_on_many(found: Found) -> Verdict:
    rows = {name: found.table_3(name) for name in PLANES}
    gap = {name: row["NN-EVCLUS"] - row["EVCLUS"] for name, row in rows.items()}
    return max(gap.values()) < 0, _said([f"{name} {v:+.2f}" for name, v in gap.items()])


def prototypes_below_on_real(found: Found) -> Verdict:
    bad = []
    for name in REAL:
        row = found.table_3(name)
        best = max(v for method, v in row.items() if method.startswith(("ECM", "CCM", "BPEC")))
        ours = max(v for method, v in row.items() if "EVCLUS" in method)
        if best > ours:
            bad.append(f"{name} ({best:.2f}, {ours:.2f})")
    return not bad, f"a prototype method is above on {_said(bad)}"


def not_dominated(found: Found) -> Verdict:
    bad, boot = [], []
    for name in SETS:
        plane = found.plane("3", name)
        for method in NETWORKS:
            if method not in plane:
                continue
            above = [m for m, at in plane.items() if dominates(at, plane[method])]
            boot += [name] if "Bootclus" in above and name not in boot else []
            others = [m for m in above if m != "Bootclus" and m not in NETWORKS]
            bad += [f"{name}: {method} by {' and '.join(others)}"] if others else []
    held = not bad and set(boot) <= {"Wine", "Ecoli", "Seeds"}
    return held, f"by others than Bootclus: {_said(bad)}; by Bootclus on {_said(boot)}"


def heart_plane(found: Found) -> Verdict:
    plane = found.plane("3", "Heart")
    over = {m: [k for k, at in plane.items() if dominates(plane[m], at)] for m in plane}
    under = [m for m in ("EVCLUS", "NN-EVCLUS", "CCM-bp")
             if any(dominates(at, plane[m]) for at in plane.values())]  # fmt: skip
    held = not under and all({"sECMdd", "wECMdd"} & set(over[m]) for m in ("Bootclus", "EVCLUS"))
    return held, (f"Bootclus dominates {_said(over['Bootclus'])}; EVCLUS dominates "
                  f"{_said(over['EVCLUS'])}; dominated: {_said(under)}")  # fmt: skip


def _protein(found: Found) -> dict[str, float]:
    methods = ("EVCLUS", "NN-EVCLUS", "RECM", "sECMdd", "wECMdd")
    return {m: found.cell("nn_evclus", "6", "Protein", m) for m in methods}


def protein_best(found: Found) -> Verdict:
    row = _protein(found)
    held = min(row["EVCLUS"], row["NN-EVCLUS"]) > max(row["RECM"], row["sECMdd"], row["wECMdd"])
    return held, _said([f"{name} {value:.3f}" for name, value in row.items()])


def protein_plane(found: Found) -> Verdict:
    plane = found.plane("6", "Protein")
    held = all(dominates(plane[a], plane[b])
               for a in ("EVCLUS", "NN-EVCLUS") for b in ("sECMdd", "wECMdd"))  # fmt: skip
    return held, _said([f"{name} ({ci:.3f}, {ns:.3f})" for name, (ci, ns) in plane.items()])


def protein_network_free(found: Found) -> Verdict:
    plane = found.plane("6", "Protein")
    above = [m for m, at in plane.items() if dominates(at, plane["NN-EVCLUS"])]
    return not above, f"dominated by {_said(above)}"


def _linked(found: Found, data: str, links: int, method: str, pcca: bool) -> float:
    d0, p = LINKED[data]
    run = f"linked {data} d0={d0} draws=5 links={links} method={method}"
    run += f" p={p}" if pcca else ""
    return found.of_run(run, "ari", fmean)


METHODS = ("evclus", "nnevclus", "cecm")


def links_network_best(found: Found) -> Verdict:
    said, held = [], True
    for data in LINKED:
        for links in (100, 200):
            row = {m: _linked(found, data, links, m, False) for m in METHODS}
            held &= row["nnevclus"] >= max(row.values())
            said.append(f"{data}, {links}: " + " ".join(f"{m} {v:.2f}" for m, v in row.items()))
    return held, "; ".join(said)


def links_pcca_improves(found: Found) -> Verdict:
    bad = [
        f"{data}, {links}, {m}" for data in LINKED for links in (100, 200) for m in METHODS
        if _linked(found, data, links, m, True) < _linked(found, data, links, m, False)
    ]  # fmt: skip
    return not bad, f"not for {_said(bad)}"


def links_pcca_glass(found: Found) -> Verdict:
    rows = [{m: _linked(found, "glass10", n, m, True) for m in METHODS} for n in (100, 200)]
    held = all(row["nnevclus"] >= max(row.values()) for row in rows)
    return held, "; ".join(" ".join(f"{m} {v:.2f}" for m, v in row.items()) for row in rows)


def links_pcca_iris(found: Found) -> Verdict:
    rows = [{m: _linked(found, "iris", n, m, True) for m in METHODS} for n in (100, 200)]
    held = all(abs(row["nnevclus"] - row["evclus"]) <= 0.03 for row in rows)
    return held, "; ".join(" ".join(f"{m} {v:.2f}" for m, v in row.items()) for row in rows)


def _circles(found: Found, run: str, least: float, most: float) -> Verdict:
    value = found.of_run(f"circles circles draws=5 {run}", "ari")
    return least <= value <= most, f"median ARI {value:.3f}"


def circles_links(found: Found) -> Verdict:
    return _circles(found, "links=50 metric=KPCCA", 0.98, 1.0)


def circles_labels(found: Found) -> Verdict:
    return _circles(found, "labelled=50 metric=KFDA", 0.98, 1.0)


def circles_alone(found: Found) -> Verdict:
    return _circles(found, "metric=none", -1.0, 0.3)


def losses_alike(found: Found) -> Verdict:
    a, b = (found.cell("nn_evclus", "text", "example 4", f"loss of {m}")
            for m in ("EVCLUS", "NN-EVCLUS"))  # fmt: skip
    return b <= 1.25 * a, f"{a:.5f} and {b:.5f}"


# ---------------------------------------------------------------------- k-CEVCLUS
def _column(found: Found, table: str, links: int, keys: Sequence[str], name: str, score: str
            ) -> list[float]:  # fmt: skip
    what = "xi" if table == "2" else "q"
    column = f"{name}, {'ARI' if score == 'ari' else 'nonspecificity'}"
    rows = [f"{links} links, {what} = {key}" for key in keys]
    return [found.cell("k_cevclus", table, row, column) for row in rows]


def xi_makes_precise(found: Found) -> Verdict:
    falls = [a >= b for name in SMALL for n in (100, 200)
             for a, b in _steps(_column(found, "2", n, XI, name, "ns"))]  # fmt: skip
    return 2 * sum(falls) > len(falls), f"in {sum(falls)} of {len(falls)} steps"


def _steps(values: Sequence[float]) -> list[tuple[float, float]]:
    return list(pairwise(values))


def xi_hardly_matters(found: Found) -> Verdict:
    spread = {}
    for name in SMALL:
        values = _column(found, "2", 200, XI[4:], name, "ari")
        spread[name] = max(values) - min(values)
    said = _said([f"{name} {value:.2f}" for name, value in spread.items()])
    return max(spread.values()) <= 0.10, f"from .3 on it moves by {said}"


def half_is_good(found: Found) -> Verdict:
    gap = {}
    for name in SMALL:
        for n in (100, 200):
            values = _column(found, "2", n, XI, name, "ari")
            gap[f"{name} {n}"] = max(values) - values[XI.index("0.5")]
    bad = [f"{name} (.{100 * value:02.0f} below)" for name, value in gap.items() if value > 0.05]
    return not bad, f"farther: {_said(bad)}"


def _best_q(found: Found, name: str, score: str, links: int) -> float:
    values = _column(found, "3", links, Q, name, score)
    best = max(values) if score == "ari" else min(values)
    return float(Q[values.index(best)])


def q_of_least_nonspecificity(found: Found) -> Verdict:
    expected = {"Banana_200": 0.9, "Glass": 0.9, "Iris": 0.6, "Ecoli": 0.9}
    at = {f"{name}, {n}": _best_q(found, name, "ns", n) for name in SMALL for n in (100, 200)}
    bad = [f"{key}: {q:g}" for key, q in at.items()
           if abs(q - expected[key.partition(",")[0]]) > 0.1 + 1e-9]  # fmt: skip
    return not bad, f"elsewhere: {_said(bad)}"


def iris_best_q(found: Found) -> Verdict:
    at = [_best_q(found, "Iris", "ari", n) for n in (100, 200)]
    return at == [0.6, 0.6], f"ours at q = {at[0]:g} and {at[1]:g}; the paper's own table: 0.4"


def banana_best_q(found: Found) -> Verdict:
    at = [_best_q(found, "Banana_200", "ari", n) for n in (100, 200)]
    return at == [0.1, 0.1], f"at q = {at[0]:g} and {at[1]:g}"


def ari_rises_with_q(found: Found) -> Verdict:
    held, said = True, []
    for name in ("Glass", "Ecoli"):
        for n in (100, 200):
            values = _column(found, "3", n, Q, name, "ari")
            held &= values[8] > values[0]
            said.append(f"{name}, {n}: {values[0]:.2f} to {values[8]:.2f}")
    return held, "; ".join(said)


def expansion_saves(found: Found) -> Verdict:
    many = found.of_run("sampled_links bananas2000 d0=q0.9 draws=3 k=200 links=1500 xi=0.5", "ari")
    few = found.of_run("sampled_links bananas2000 K=5 d0=q0.9 draws=3 k=200 links=500 xi=0.5",
                       "ari")  # fmt: skip
    return few >= many - 0.05, f"{few:.2f} against {many:.2f}"


# ---------------------------------------------------------------------- Bootclus, slides
def _cover(found: Found, table: str, model: str, what: str = "CI, coverage") -> float:
    return found.cell("bootclus", table, f"{model}, 90 %", what)


def coverage_nominal(found: Found) -> Verdict:
    right = {"2": "EII", "3": "EEE", "4": "VVV"}
    values = {table: _cover(found, table, model) for table, model in right.items()}
    said = _said([f"table {table} {value:.3f}" for table, value in values.items()])
    return all(abs(value - 0.9) <= 0.05 for value in values.values()), f"{said} for .90"


def coverage_collapses(found: Found) -> Verdict:
    value = _cover(found, "3", "EII", "[Bel, Pl], coverage")
    return value < 0.6, f"[Bel, Pl] cover {value:.3f}"


def intervals_wider(found: Found) -> Verdict:
    values = [_cover(found, "2", model, "CI, length") for model in ("EII", "EEE", "VVV")]
    return values == sorted(values), " < ".join(f"{value:.3f}" for value in values)


def auto_fails(found: Found) -> Verdict:
    value = _cover(found, "4", "auto", "[Bel, Pl], coverage")
    return value < 0.8, f"[Bel, Pl] cover {value:.3f}"


def _certain(found: Found, table: str, classes: Sequence[str]) -> float:
    """Objects on the cluster of their class alone."""
    return sum(found.cell("bootclus", table, name, f"{{{name}}}") for name in classes)


def rivals_worse(found: Found) -> Verdict:
    held, said = True, []
    for data, classes, ours, theirs in (
        ("iris", ("se", "ve", "vi"), "6", ("7", "8")),
        ("diabetes", ("ch", "no", "ov"), "10", ("11", "12")),
    ):
        right = [_certain(found, table, classes) for table in (ours, *theirs)]
        held &= right[0] > max(right[1:])
        said.append(f"{data}: {right[0]:g} objects right and sure, ECM {right[1]:g}, k-EVCLUS "
                    f"{right[2]:g}")  # fmt: skip
    return held, "; ".join(said)


def irises_in_doubt(found: Found) -> Verdict:
    mass = {i: found.cell("bootclus", "5", f"object {i}", "{ve, vi}")
            for i in (69, 71, 73, 78, 84)}  # fmt: skip
    held = all((value > 0.5) == (i != 84) for i, value in mass.items())
    return held, _said([f"{i}: {value:.2f}" for i, value in mass.items()])


def doubt_saves(found: Found) -> Verdict:
    soft = found.cell("bootclus", "text", "diabetes, Bootclus", "objects misplaced")
    hard = found.cell("bootclus", "text", "diabetes, mixture VVV", "objects misplaced")
    return soft < hard, f"{soft:g} against {hard:g}"


def fusion_helps(found: Found) -> Verdict:
    x, other, both = (found.cell("slides_2021", "fusion", "evidential network", name)
                      for name in ("x alone", "x' alone", "x and x'"))  # fmt: skip
    return both < min(x, other), f"{both:.3f} against {x:.3f} and {other:.3f}"


CHECKS: dict[str, Callable[[Found], Verdict]] = {
    check.__name__: check
    for check in (
        medoids_lose, network_near_best, peaks_improve, network_not_below_evclus,
        network_fails_on_many, prototypes_below_on_real, not_dominated, heart_plane, protein_best,
        protein_plane, protein_network_free, links_network_best, links_pcca_improves,
        links_pcca_glass, links_pcca_iris, circles_links, circles_labels, circles_alone,
        losses_alike, xi_makes_precise, xi_hardly_matters, half_is_good,
        q_of_least_nonspecificity, iris_best_q, banana_best_q, ari_rises_with_q, expansion_saves,
        coverage_nominal, coverage_collapses, intervals_wider, auto_fails, rivals_worse,
        irises_in_doubt, doubt_saves, fusion_helps,
    )
}  # fmt: skip

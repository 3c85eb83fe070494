"""The layers of evdist, the owners of its dependencies, and a checker of both.

The tables are the whole policy: a new module or package under evdist/ gets its place in LAYERS, a
new dependency its owners in OWNERS. The checker reads source files and imports none of them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from evdist.registry import ALGORITHMS

#: Lowest first. A module imports from its own row and the rows before it. Packages of one row may
#: use each other, but never in a circle.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("evdist.belief",),
    ("evdist.kernels",),
    (
        "evdist.stores",
        "evdist.partition",
        "evdist.data",
        "evdist.metrics",
        "evdist.combine",
        "evdist.constraints",
    ),
    ("evdist.engine",),
    ("evdist.estimators", "evdist.features", "evdist.mixture", "evdist.progress"),
    tuple(sorted({entry.module.rpartition(".")[0] for entry in ALGORITHMS.values()})),
    ("evdist.sketch", "evdist.conformal", "evdist.plot", "evdist.report", "evdist.selection"),
    ("evdist.service", "evdist.demo"),
    ("flows",),
)

#: Dependency -> the packages or modules that may import it. One that is not named here may be
#: imported anywhere but in the layers of ONLY.
OWNERS: dict[str, tuple[str, ...]] = {
    "numba": (
        "evdist.kernels",
        "evdist.evclus.rows",
        "evdist.bootclus.interval_kernel",
        "evdist.mixture.kernel",
        "evdist.ecm.kernel",
        "evdist.ecm.link_kernel",
        "evdist.eknn.kernel",
        "evdist.eknn.network_kernel",
        "evdist.features.layout_kernel",
    ),
    "llvmlite": ("evdist.kernels",),
    "dask": ("evdist.engine", "evdist.partition.rows", "evdist.metrics", "evdist.service.monitor"),
    "distributed": ("evdist.engine", "evdist.service.monitor"),
    "zarr": ("evdist.stores", "evdist.partition.io", "evdist.data", "evdist.evclus"),
    "matplotlib": ("evdist.plot",),
    "jinja2": ("evdist.report",),
    "rich": ("evdist.progress", "evdist.service.cli"),
    "torch": ("evdist.engine", "evdist.evclus", "evdist.bootclus", "evdist.nnevclus"),
    "prefect": ("flows", "evdist.service.client"),
    "filelock": ("evdist.stores",),
    "pydantic": ("evdist.estimators.parameters", "evdist.service.config"),
    "yaml": ("evdist.service.config",),
    "typer": ("evdist.service.cli",),
    "bokeh": ("evdist.service.monitor",),
    "prometheus_client": ("evdist.service.monitor",),
}

#: Layers that import nothing but the standard library, these packages and what lies below them.
ONLY: dict[str, tuple[str, ...]] = {
    "evdist.belief": ("numpy",),
    "evdist.nnevclus.loss": ("numpy", "torch"),
    "evdist.nnevclus.network": ("numpy", "torch"),
    "evdist.nnevclus.shards": ("numpy", "torch"),
    "evdist.nnevclus.training": ("numpy", "torch"),
}

#: The root package, whose public names are imported on first use, and the table of these names:
#: they name modules of every layer and belong to none.
LAZY = "evdist"
REGISTRY = "evdist.registry"
#: What the registry loads them with; it imports nothing.
DEFERRED = "evdist.deferred"

#: Imports inside functions that are meant: seconds that only those pay who use them.
LATE = {
    ("evdist.data.tables", "evdist.data.frames"),  # pandas
}


#: A string that names a module, or a function in one.
_NAMED = re.compile(r"(evdist|flows)(\.[a-z_]+)+(:\w+)?")


@dataclass(frozen=True)
class Import:
    """One imported module, where it stands, and whether that is inside a function or class."""

    importer: str
    target: str
    where: str
    nested: bool


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module in evdist/ and flows/."""
    for top in ("evdist", "flows"):
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(root: Path, public: Mapping[str, str]) -> Iterator[Import]:
    """Every import of every module, whether at the top, in a function or under TYPE_CHECKING.

    ``public`` maps the lazy names of the root package to the modules that they come from, so that
    ``from evdist import FocalSets`` counts as an import of evdist.belief.
    """
    known = {name for name, _ in modules(root)}
    for name, path in modules(root):
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        inside = {
            id(node)
            for scope in ast.walk(tree)
            if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda))
            for node in ast.walk(scope)
        }
        for node in ast.walk(tree):
            for target in _targets(node, package, public, known):
                where = f"{path.relative_to(root).as_posix()}:{getattr(node, 'lineno', 0)}"
                yield Import(name, target, where, id(node) in inside)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                # "module:function", or a name that import_module gets, loads that module some day.
                if _NAMED.fullmatch(node.value) and _is_module(root, node.value):
                    target = node.value.partition(":")[0]
                    yield Import(name, target, f"{path.relative_to(root)}:{node.lineno}", False)


def _is_module(root: Path, text: str) -> bool:
    path = root.joinpath(*text.partition(":")[0].split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _targets(
    node: ast.AST, package: str, public: Mapping[str, str], known: set[str]
) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            for alias in node.names:
                # A member of evdist itself is a lazy name or a submodule, and has its own layer.
                member = f"{base}.{alias.name}"
                if base == LAZY:
                    yield public.get(alias.name, member)
                else:
                    yield member if member in known else base


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def layer(module: str) -> tuple[int, str] | None:
    """Row and name of the layer a module belongs to, None for the root package and outsiders."""
    for row, names in enumerate(LAYERS):
        for name in names:
            if within(module, name):
                return row, name
    return None


def undeclared(root: Path) -> list[str]:
    """Modules that no row of LAYERS holds."""
    return [
        f"{path.relative_to(root).as_posix()}: {name} has no layer; add it to LAYERS"
        for name, path in modules(root)
        if name not in (LAZY, REGISTRY, DEFERRED, "flows") and layer(name) is None
    ]


def steps_up(found: list[Import]) -> list[str]:
    """Imports of a later row."""
    problems = []
    for imp in found:
        own, other = layer(imp.importer), layer(imp.target)
        if own and other and other[0] > own[0]:
            problems.append(f"{imp.where}: {own[1]} imports {imp.target}, of a later layer")
    return problems


def circles(found: list[Import]) -> list[str]:
    """A circle between the packages of one row, if there is one: its imports."""
    own = {imp: (layer(imp.importer), layer(imp.target)) for imp in found}
    between = {
        imp: (a[1], b[1]) for imp, (a, b) in own.items() if a and b and a[0] == b[0] and a != b
    }
    return _in_a_circle(between, "of one layer")


def file_circles(found: list[Import]) -> list[str]:
    """A circle between files, under TYPE_CHECKING and in strings too, if there is one.

    The root package and the registry name all others, to load them on first use: they are in no
    circle.
    """
    between = {
        imp: (imp.importer, imp.target)
        for imp in found
        if not {LAZY, REGISTRY} & {imp.importer, imp.target} and imp.importer != imp.target
    }
    return _in_a_circle(between, "of files")


def _in_a_circle(hops: Mapping[Import, tuple[str, str]], of: str) -> list[str]:
    """The imports, each a hop from one name to another, that close the first circle found."""
    uses: dict[str, set[str]] = {}
    for importer, target in hops.values():
        uses.setdefault(importer, set()).add(target)
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        circle = error.args[1]
        closing = set(zip(circle[1:], circle, strict=False))
        return [
            f"{imp.where}: {imp.importer} imports {imp.target}, in a circle {of}"
            for imp, hop in hops.items()
            if hop in closing
        ]
    return []


def below_the_top(found: list[Import]) -> list[str]:
    """First-party imports that stand inside a function or a class."""
    return [
        f"{imp.where}: import of {imp.target} inside a function; move it to the top of the module"
        for imp in found
        if imp.nested
        and imp.importer != LAZY
        and (imp.importer, imp.target) not in LATE
        and imp.target.split(".")[0] in ("evdist", "flows")
    ]


def private_names(root: Path) -> list[str]:
    """Names with an underscore that are imported from another package: they are not for others."""
    return [
        f"{path.relative_to(root).as_posix()}:{node.lineno}: {alias.name} belongs to {node.module}"
        for name, path in modules(root)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("evdist.")
        for alias in node.names
        if re.match("_[^_]", alias.name)
        and node.module.rpartition(".")[0] != name.rpartition(".")[0]
    ]


def strangers(found: list[Import]) -> list[str]:
    """Imports of a dependency by a module that does not own it."""
    problems = []
    for imp in found:
        package = imp.target.split(".")[0]
        if package in sys.stdlib_module_names or package in ("evdist", "flows"):
            continue
        owners = OWNERS.get(package)
        if owners is not None and not any(within(imp.importer, owner) for owner in owners):
            problems.append(f"{imp.where}: {package} belongs to {', '.join(owners)}")
        for name, allowed in ONLY.items():
            if within(imp.importer, name) and package not in allowed:
                problems.append(f"{imp.where}: {name} may import only {', '.join(allowed)}")
    return problems

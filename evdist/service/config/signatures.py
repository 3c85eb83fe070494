"""What a function takes, read from the function or, before it is loaded, from its source.

An estimator's module takes seconds to load (scikit-learn, compiled code). Whoever only checks a
configuration needs no more than names, defaults and types, and those stand in the source file.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

from numpy.typing import ArrayLike

from evdist.belief import FocalSets
from evdist.engine.progress import Progress
from evdist.partition import CredalPartition

__all__ = ["Parameter", "of_function", "of_method"]

#: What annotations may name; a method that names something else is loaded instead.
_NAMES: dict[str, Any] = {
    "Any": Any, "ArrayLike": ArrayLike, "Callable": Callable, "CredalPartition": CredalPartition,
    "FocalSets": FocalSets, "Literal": Literal, "Path": Path, "Progress": Progress,
    "Sequence": Sequence, "bool": bool, "float": float, "int": int, "list": list, "str": str,
    "tuple": tuple,
}  # fmt: skip


class Parameter(NamedTuple):
    """Default and type of one parameter; `inspect.Parameter.empty` where there is none."""

    default: Any
    kind: Any


@functools.cache
def of_function(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Parameters of a function by name, `self` left out."""
    types = get_type_hints(function)
    return {
        name: Parameter(found.default, types.get(name, Any))
        for name, found in inspect.signature(function).parameters.items()
        if name != "self"
    }


@functools.cache
def of_method(module: str, cls: str, method: str) -> Mapping[str, Parameter]:
    """Parameters of a method, from the source of its class where that is enough."""
    found = _definition(module, cls, method)
    try:
        if found is not None:
            return _parameters(found)
    except (NameError, ValueError):
        pass  # a type or a default that only the module itself knows
    return of_function(getattr(getattr(import_module(module), cls), method))


def _definition(module: str, cls: str, method: str) -> ast.FunctionDef | None:
    """The method where its class stands in the module and has it itself."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return None
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == cls:
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and one.name == method:
                    return one
    return None


def _parameters(found: ast.FunctionDef) -> dict[str, Parameter]:
    given = found.args
    if given.vararg is not None or given.kwarg is not None:
        raise ValueError("any number of arguments")
    in_order = [*given.posonlyargs, *given.args]
    unset: list[ast.expr | None] = [None] * (len(in_order) - len(given.defaults))
    defaults = [*unset, *given.defaults, *given.kw_defaults]
    return {
        one.arg: Parameter(_default(default), _type(one.annotation))
        for one, default in zip([*in_order, *given.kwonlyargs], defaults, strict=True)
        if one.arg != "self"
    }


def _default(node: ast.expr | None) -> Any:
    return inspect.Parameter.empty if node is None else ast.literal_eval(node)


def _type(node: ast.expr | None) -> Any:
    """The annotation of our own source, evaluated with the names above and no others."""
    if node is None:
        return Any
    return eval(ast.unparse(node), {"__builtins__": {}}, _NAMES)

"""The codes of mistakes that the source tells: what is given as `code` to a `Diagnostic`, or to a function that makes one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from dlog.engine.runtime.static.worker import VALUES

_SLUG = re.compile(r"[a-z]+(-[a-z]+)*")
ROOT = Path(__file__).parents[1]
HEARD_BY_DLOG = {
    "heavier-than-estimated": "has a job of Spark's cut its input into smaller pieces",
    "peer-failed": "a worker that stops because another one has failed, whose mistake is told",
}
"""Codes that nobody is told, and who hears them."""


@cache
def diagnostic_codes() -> Mapping[str, str]:
    """The codes, each with a place where it is told."""
    nodes = {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in _sources()}
    tellers = {"Diagnostic": 0} | {name: place for found in nodes.values() for name, place in _tellers(found)}
    told = {code: "VALUES" for code, _ in VALUES.values()}
    for path, found in nodes.items():
        constants = dict(_constants(found))
        for node in found:
            for given in _given(node, tellers):
                code = given.value if isinstance(given, ast.Constant) else constants.get(getattr(given, "id", ""))
                if isinstance(code, str) and _SLUG.fullmatch(code):
                    told.setdefault(code, f"{path.relative_to(ROOT)}:{given.lineno}")
    return told


def _sources() -> Iterator[Path]:
    """All modules but those of kernels, which tell by numbers."""
    for name in ("grammar", "engine", "dlog"):
        for path in sorted((ROOT / name).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            if parts[:2] not in (("dlog", "grammar"), ("dlog", "engine"), ("engine", "kernels")):
                yield path


def _tellers(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Functions and methods that have a parameter `code`, a text, and its place."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            names = [a for a in (*node.args.posonlyargs, *node.args.args) if a.arg not in ("self", "cls")]
            for place, name in enumerate(names):
                if name.arg == "code" and getattr(name.annotation, "id", "") == "str":
                    yield node.name, place


def _constants(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name))


def _given(node: ast.AST, tellers: Mapping[str, int]) -> Iterator[ast.expr]:
    """What a node gives for a code: the argument of a call, or the value of a variable `code`."""
    if isinstance(node, ast.Call):
        place = tellers.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
        if place is not None and len(node.args) > max(place, 1):
            yield from _choices(node.args[place])
        yield from (chosen for keyword in node.keywords if keyword.arg == "code" for chosen in _choices(keyword.value))
    elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "code" for t in node.targets):
        yield from _choices(node.value)


def _choices(given: ast.expr) -> Iterator[ast.expr]:
    if isinstance(given, ast.IfExp):
        yield from _choices(given.body)
        yield from _choices(given.orelse)
    else:
        yield given

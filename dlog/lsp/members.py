"""What an instance of a component has: the relations and instances of the component and of those that it inherits from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from dlog.lsp.names import Occurrence, Role

_MADE_OF: Final = re.compile(r"\.init\s+[\w?]+\s*=\s*([\w?]+)")
_BASES: Final = re.compile(r"\.comp\s+[\w?]+\s*(?:<[^<>{]*>\s*)?:([^{]*)")
_BASE: Final = re.compile(r"([\w?]+)\s*(?:<[^<>{]*>)?")
_DEEPEST: Final = 100
"""Instances within each other that are looked into: their components may have no end."""

_Components: TypeAlias = Mapping[tuple[str, str], Occurrence]
"""By the scope around and the name."""


def members(text: str, names: Sequence[Occurrence], path: Sequence[str]) -> list[Occurrence]:
    """The declarations of what stands behind `a.b.`, the path being `a` and `b`; where a component is a parameter, none."""
    components = {(o.scope, o.name): o for o in names if o.declares and o.role is Role.COMPONENT}
    scopes = {""} if len(path) <= _DEEPEST else set()
    for name in path:
        found = [o for o in names if o.declares and o.role is Role.INSTANCE and o.name == name and o.scope in scopes]
        made_of = [(o.scope, m[1]) for o in found if (m := _MADE_OF.match(text, o.statement.start, o.statement.end))]
        scopes = set(_layers(text, components, made_of))
    return [o for o in names if o.declares and o.role in (Role.RELATION, Role.INSTANCE) and o.scope in scopes]


def _layers(text: str, components: _Components, named: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The scopes of components that are named in some scopes, and of all that they inherit from."""
    waiting, seen = list(named), set[str]()
    while waiting:
        declared = _component(components, *waiting.pop())
        inner = "" if declared is None else f"{declared.scope}.{declared.name}".lstrip(".")
        if declared is None or inner in seen:
            continue
        seen.add(inner)
        yield inner
        if bases := _BASES.match(text, declared.statement.start, declared.statement.end):
            waiting += [(declared.scope, base) for base in _BASE.findall(bases[1])]


def _component(components: _Components, around: str, name: str) -> Occurrence | None:
    """The component of a name that is declared in a scope, or in the next one outwards."""
    while (found := components.get((around, name))) is None and around:
        around = around.rpartition(".")[0]
    return found

"""What may be written at a place of a text: directives, relations, types, variables of the clause, words of the language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lsprotocol.types import CompletionItem, CompletionItemKind

from dlog.engine.ir.functors import written_functors
from dlog.grammar.words import AGGREGATES, DIRECTIVES, QUALIFIERS, WORD_OPERATORS
from dlog.lsp.hover import comment_above
from dlog.lsp.members import members
from dlog.lsp.names import Occurrence, Role
from dlog.lsp.places import word_start

_BUILT_IN_TYPES: Final = ("number", "unsigned", "float", "symbol")
_CONDITIONS: Final = ("match", "contains", "true", "false", "nil", "as")


def completions(text: str, offset: int, names: list[Occurrence]) -> list[CompletionItem]:
    """The candidates that begin with the word before the place, the closest first."""
    before, typed = text[: (start := word_start(text, offset))], text[start:offset]
    path, dot, last = typed.rpartition(".")
    if path and dot:
        given, typed = list(_listed(members(text, names, path.split(".")), text)), last
    else:
        given = list(_candidates(text, before, typed, offset, names))
    found = {item.label: item for item in reversed(given)}
    return [item for item in reversed(found.values()) if item.label.startswith(typed) and item.label != typed]


def _candidates(text: str, before: str, typed: str, offset: int, names: list[Occurrence]) -> Iterator[CompletionItem]:
    line = before.rpartition("\n")[2]
    if typed.startswith(".") and not line.strip():
        yield from (CompletionItem(word, kind=CompletionItemKind.Keyword) for word in DIRECTIVES)
        return
    declaring = re.match(r"\s*\.(decl|type|functor|comp|init)\b", line)
    if declaring and line.rstrip().endswith((":", "|", "=", "<")):
        yield from _types(names, text)
        yield from _of_role(names, text, Role.COMPONENT, CompletionItemKind.Class)
    elif declaring:
        yield from (CompletionItem(word, kind=CompletionItemKind.Keyword) for word in sorted(QUALIFIERS))
    elif re.match(r"\s*\.(input|output|printsize|limitsize|override)\b", line):
        yield from _of_role(names, text, Role.RELATION, CompletionItemKind.Function)
    else:
        yield from _in_clause(text, offset, names)


def _in_clause(text: str, offset: int, names: list[Occurrence]) -> Iterator[CompletionItem]:
    scope = next((o.scope for o in names if o.role is Role.VARIABLE and _around(o, offset)), None)
    variables = {o.name for o in names if o.role is Role.VARIABLE and o.scope == scope and o.span.end != offset}
    yield from (CompletionItem(name, kind=CompletionItemKind.Variable) for name in sorted(variables))
    yield from _of_role(names, text, Role.RELATION, CompletionItemKind.Function)
    yield from _of_role(names, text, Role.BRANCH, CompletionItemKind.EnumMember)
    yield from _of_role(names, text, Role.FUNCTOR, CompletionItemKind.Function)
    yield from (CompletionItem(word, kind=CompletionItemKind.Operator) for word in (*sorted(AGGREGATES), *written_functors()))
    yield from (CompletionItem(word, kind=CompletionItemKind.Keyword) for word in (*sorted(WORD_OPERATORS), *_CONDITIONS))


def _around(used: Occurrence, offset: int) -> bool:
    return used.statement.start <= offset <= used.statement.end + 1


def _types(names: list[Occurrence], text: str) -> Iterator[CompletionItem]:
    yield from (CompletionItem(name, kind=CompletionItemKind.Struct) for name in _BUILT_IN_TYPES)
    yield from _of_role(names, text, Role.TYPE, CompletionItemKind.Struct)


def _of_role(names: list[Occurrence], text: str, role: Role, kind: CompletionItemKind) -> Iterator[CompletionItem]:
    """The declared names of a role, each with its declaration and the comment above it."""
    yield from _listed((o for o in names if o.declares and o.role is role), text, kind)


def _listed(declared: Iterable[Occurrence], text: str, kind: CompletionItemKind | None = None) -> Iterator[CompletionItem]:
    for one in declared:
        detail = text[one.statement.start : one.statement.end].partition("{")[0].strip()
        comment = comment_above(text, one.statement.start) or None
        shown = kind or (CompletionItemKind.Function if one.role is Role.RELATION else CompletionItemKind.Module)
        yield CompletionItem(one.name, kind=shown, detail=detail, documentation=comment)

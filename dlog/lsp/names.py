"""The names of a program's text: where each stands and what it names. Goes by tokens, so an unfinished text has names, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum
from itertools import pairwise
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.ir.functors import written_functors
from dlog.grammar.source import Span
from dlog.grammar.words import RESERVED
from dlog.repl.statements import Token, forced, tokens


class Role(Enum):
    """What a name names."""

    RELATION = "relation"
    TYPE = "type"
    BRANCH = "branch"
    FUNCTOR = "functor"
    COMPONENT = "component"
    INSTANCE = "instance"
    ATTRIBUTE = "attribute"
    VARIABLE = "variable"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at its place. `scope` is what a name is known in: the path of components (`A.B`) around its declaration, of a
    variable the offset of its clause. `statement` is the text around it, `within` the path of the components it stands in."""

    name: str
    role: Role
    span: Span
    declares: bool
    scope: str
    statement: Span
    within: str = ""

    def same_name(self, other: Occurrence) -> bool:
        """Whether both are the same name of the same thing, as far as their scopes tell."""
        return (self.name, self.role, self.scope) == (other.name, other.role, other.scope)


_BUILT_IN_TYPES: Final = frozenset({"number", "unsigned", "float", "symbol"})
_OPEN, _CLOSE = "([{", ")]}"
_SOFT_QUALIFIERS: Final = frozenset({"choice", "history", "retract"})
"""Words that go on with a declaration, and may be names elsewhere."""
_RELATIONS_FOLLOW: Final = frozenset({".input", ".output", ".printsize", ".limitsize", ".override"})


DEEPEST = 16
"""Components around each other in whose innermost one names are looked for: all of its text is read again for each."""


def find_names(text: str) -> list[Occurrence]:
    """All names of a text in its order."""
    found = list(_in_items(text, 0, ""))
    own = {role: {o.name for o in found if o.declares and o.role is role} for role in (Role.FUNCTOR, Role.RELATION)}
    coming = own[Role.RELATION] - own[Role.FUNCTOR]
    found = [replace(o, role=Role.RELATION) if o.role is Role.FUNCTOR and _last(o.name) in coming else o for o in found]
    declared = {(o.name, o.role, o.scope) for o in found if o.declares}
    relations = {name for name, role, _ in declared if role is Role.RELATION}
    functors = frozenset(written_functors()) - relations
    return [_settled(o, declared) for o in found if o.role is not Role.RELATION or o.name not in functors]


def _last(name: str) -> str:
    """The name within the innermost component instance that it is qualified by."""
    return name.rpartition(".")[2]


def _settled(used: Occurrence, declared: set[tuple[str, Role, str]]) -> Occurrence:
    """The use with the scope of its declaration: the innermost component around it that has one."""
    if used.declares or used.role is Role.VARIABLE:
        return used
    scope = used.scope
    while scope and (used.name, used.role, scope) not in declared:
        scope = scope.rpartition(".")[0]
    return replace(used, scope=scope)


def at_offset(found: list[Occurrence], offset: int) -> Occurrence | None:
    """The name at, or just before, a place."""
    touching = [o for o in found if o.span.start <= offset <= o.span.end]
    return touching[-1] if touching else None


def declaration(found: list[Occurrence], used: Occurrence) -> Occurrence | None:
    """Where a name is declared in the same text. A qualified name is that of its last component's declaration."""
    exact = next((o for o in found if o.declares and o.same_name(used)), None)
    last = _last(used.name)
    return exact or next((o for o in found if o.declares and o.role is used.role and o.name == last and o.scope), None)


def _in_items(text: str, base: int, scope: str) -> Iterator[Occurrence]:
    for statement in forced(text) if scope.count(".") < DEEPEST else ():
        for start, end in _pieces(statement.text):
            piece = statement.text[start:end]
            span = Span(base + statement.start + start, base + statement.start + end)
            yield from _Statement(_words(piece), piece, span, scope).names()


def _words(text: str) -> list[Token]:
    return [t for t in tokens(text) if t.kind not in ("space", "comment")]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where a statement begins and ends, and others behind a declaration on the same line."""
    words = _words(text)
    start = depth = 0
    for before, token in pairwise(words if words and words[0].kind == "directive" else ()):
        depth += (before.text in _OPEN) - (before.text in _CLOSE)
        if depth == 0 and _begins(token, before):
            yield start, before.end
            start = token.start
    yield start, len(text)


def _begins(token: Token, before: Token) -> bool:
    """Whether a word behind a complete declaration begins another statement."""
    if token.kind == "directive":
        return True
    complete = before.text in ("}", ")", "]", ">") or (before.kind == "name" and before.text != "domain")
    return complete and token.kind == "name" and token.text not in RESERVED and token.text not in _SOFT_QUALIFIERS


@dataclass
class _Statement:
    """One statement: its tokens without blanks, its text, where it is, and the components around it."""

    words: list[Token]
    text: str
    span: Span
    scope: str
    stack: list[str] = field(default_factory=list)
    """What opened each bracket that is open: the word before it."""

    def names(self) -> Iterator[Occurrence]:
        first = self.words[0].text if self.words else ""
        match first:
            case ".comp":
                yield from self._component()
            case ".decl":
                yield from self._declaration(Role.RELATION)
            case ".type" | ".number_type" | ".symbol_type":
                yield from self._type()
            case ".functor":
                yield from self._declaration(Role.FUNCTOR)
            case ".init":
                yield from self._init()
            case ".lattice":
                yield from self._lattice()
            case _ if first in _RELATIONS_FOLLOW:
                yield from self._directive()
            case _ if first.startswith(".") or first == "#":
                return
            case _:
                yield from self._clause()

    def _name(self, token: Token, role: Role, declares: bool = False, scope: str | None = None) -> Occurrence:
        start = self.span.start + token.start
        place = Span(start, start + len(token.text))
        own = self.scope if scope is None else scope
        within = self.scope if own.isdecimal() else own
        return Occurrence(token.text, role, place, declares, own, self.span, within)

    def _follows(self, index: int) -> str:
        return self.words[index + 1].text if index + 1 < len(self.words) else ""

    def _declaration(self, role: Role) -> Iterator[Occurrence]:
        """`.decl a, b(x: number, y: T) inline choice-domain x`, `.functor f(number): symbol`."""
        depth = 0
        for index, token in enumerate(self.words[1:], 1):
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
            before = self.words[index - 1].text
            if token.kind != "name":
                continue
            if depth == 0 and before in (".decl", ".functor", ",") and self._follows(index) in ("(", ",", "=", ""):
                yield self._name(token, role, declares=True)
            elif depth and self._follows(index) == ":":
                yield self._name(token, Role.ATTRIBUTE, declares=True, scope=str(self.span.start))
            elif before == ":" or (depth and role is Role.FUNCTOR):
                yield self._name(token, Role.TYPE)
            elif depth and before in ("(", ","):
                yield self._name(token, Role.ATTRIBUTE, scope=str(self.span.start))

    def _type(self) -> Iterator[Occurrence]:
        for index, token in enumerate(self.words[1:], 1):
            if token.kind != "name":
                continue
            if index == 1:
                yield self._name(token, Role.TYPE, declares=True)
            elif self._follows(index) == "{":
                yield self._name(token, Role.BRANCH, declares=True)
            elif self._follows(index) == ":":
                yield self._name(token, Role.ATTRIBUTE, declares=True, scope=str(self.span.start))
            else:
                yield self._name(token, Role.TYPE)

    def _directive(self) -> Iterator[Occurrence]:
        for token in self.words[1:]:
            if token.text == "(":
                return
            if token.kind == "name":
                yield self._name(token, Role.RELATION)

    def _init(self) -> Iterator[Occurrence]:
        roles = {1: Role.INSTANCE, 3: Role.COMPONENT}
        for index, token in enumerate(self.words[1:], 1):
            if token.kind == "name":
                yield self._name(token, roles.get(index, Role.TYPE), declares=index == 1)

    def _lattice(self) -> Iterator[Occurrence]:
        """`.lattice T<> { Bottom -> $B(), Lub -> @f(_, _) }`."""
        roles = {"@": Role.FUNCTOR, "$": Role.BRANCH, ".lattice": Role.TYPE}
        for before, token in pairwise(self.words):
            if token.kind == "name" and before.text in roles:
                yield self._name(token, roles[before.text])

    def _component(self) -> Iterator[Occurrence]:
        """`.comp A<T> : B<T> { items }`: parameters are types that are known in the component."""
        opening = next((i for i, t in enumerate(self.words) if t.text == "{"), len(self.words))
        own = self.words[1].text if len(self.words) > 1 else ""
        inside = f"{self.scope}.{own}" if self.scope else own
        based = False
        for index, token in enumerate(self.words[1:opening], 1):
            based = based or token.text == ":"
            if token.kind != "name":
                continue
            if index == 1:
                yield self._name(token, Role.COMPONENT, declares=True)
            elif not based:
                yield self._name(token, Role.TYPE, declares=True, scope=inside)
            else:
                role = Role.COMPONENT if self.words[index - 1].text in (":", ",") and not self._in_angles(index) else Role.TYPE
                yield self._name(token, role, scope=inside)
        if opening < len(self.words):
            start = self.words[opening].end
            closed = self.words[-1].text == "}" and len(self.words) > opening + 1
            body = self.text[start : self.words[-1].start if closed else len(self.text)]
            yield from _in_items(body, self.span.start + start, inside)

    def _in_angles(self, index: int) -> bool:
        before = [t.text for t in self.words[:index]]
        return before.count("<") > before.count(">")

    def _clause(self) -> Iterator[Occurrence]:
        clause = str(self.span.start)
        for index, token in enumerate(self.words):
            before = self.words[index - 1].text if index else ""
            if token.text in _OPEN:
                self.stack.append(before)
            elif token.text in _CLOSE and self.stack:
                self.stack.pop()
            if token.kind != "name" or token.text == "_" or before == "=" == self._follows(index):
                continue
            if before == "@":
                yield self._name(token, Role.FUNCTOR)
            elif before == "$":
                yield self._name(token, Role.BRANCH)
            elif self._follows(index) == "(":
                if token.text not in RESERVED:
                    yield self._name(token, Role.RELATION)
            elif self.stack and self.stack[-1] == "as" and before == ",":
                yield self._name(token, Role.TYPE)
            elif token.text not in RESERVED:
                yield self._name(token, Role.VARIABLE, scope=clause)


def is_built_in(used: Occurrence) -> bool:
    """Whether the language itself has the name."""
    return used.role is Role.TYPE and used.name in _BUILT_IN_TYPES

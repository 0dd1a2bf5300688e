"""Relations that nothing fills or nobody reads, and rules that cannot fire because of it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq, ge, gt, le, lt, ne
from typing import Final

from dlog.engine.compile.prints import prints
from dlog.engine.compile.walk import Node, walk
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.literal_facts import LiteralFact, without_literal_facts
from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    And,
    Atom,
    Body,
    Clause,
    Constraint,
    Directive,
    Number,
    Or,
    Program,
    RelationDecl,
    String,
    Subsumption,
    Term,
    Truth,
)

_COMPARISONS: Final = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_PRINTING_QUALIFIERS: Final = frozenset({"output", "printsize"})


class Usage:
    """The declarations of a program, what fills its relations, and who reads them."""

    def __init__(self, tree: Program) -> None:
        self._declared: dict[str, Span] = {}
        self._with_rows: set[str] = set()
        self._printed: set[str] = set()
        self._read_relations: set[str] = set()
        self._rules: list[Clause] = []
        self._retention_bodies: list[Body] = []
        """The bodies that say which rows stay."""
        self._with_rows.update([item.name for item in tree.items if type(item) is LiteralFact])
        for item in without_literal_facts(tree.items):
            self._note(item)
        self._derived = {head.name for rule in self._rules for head in rule.heads}
        bodies = [*map(_body, self._rules), *self._retention_bodies]
        self._read_relations |= {n.name for body in bodies for n in walk(body) if isinstance(n, Atom)}
        self._filled = self._possibly_filled()

    def _note(self, item: object) -> None:
        match item:
            case RelationDecl():
                self._declared |= dict(zip(item.names, item.name_spans or (item.span,) * len(item.names), strict=True))
                self._with_rows |= set(item.names) if "input" in item.qualifiers else set()
                self._printed |= set(item.names) if _PRINTING_QUALIFIERS & set(item.qualifiers) else set()
                if item.debug_delta is not None:
                    self._with_rows |= set(item.names)
                    self._read_relations.add(item.debug_delta.relation)
            case Subsumption(body=body):
                self._retention_bodies.append(body)
            case Directive(kind="input"):
                self._with_rows |= set(item.relations)
            case Directive(kind=kind) if kind in _PRINTING_QUALIFIERS:
                self._printed |= set(item.relations)
            case Clause(body=None):
                self._with_rows |= {head.name for head in item.heads}
            case Clause():
                self._rules.append(item)
                self._printed |= {head.name for head in item.heads} if prints(item) else set()
            case _:
                pass

    def _possibly_filled(self) -> set[str]:
        """The least set that has what is given, and the heads of the rules whose bodies can hold by it."""
        readers: dict[str, list[Clause]] = {}
        for rule in self._rules:
            for name in {n.name for n in walk(_body(rule)) if isinstance(n, Atom)}:
                readers.setdefault(name, []).append(rule)
        found, waiting = set(self._with_rows), list(self._rules)
        while waiting:
            rule = waiting.pop()
            heads = {head.name for head in rule.heads} - found
            if heads and _can_hold(_body(rule), found):
                found |= heads
                waiting += [reader for name in heads for reader in readers.get(name, ())]
        return found

    def warnings(self, silent: frozenset[str]) -> Iterator[Diagnostic]:
        """Warnings but for those about `silent` relations and their rules."""
        yield from map(self._never_filled, self._unfilled() - silent)
        if self._printed:
            unread = self._declared.keys() - self._read_relations - self._printed - silent
            yield from map(self._never_read, unread)
        elif self._declared:
            notes = ("write `.output` and the name of a relation",)
            yield Diagnostic("without-output", "the program has no output: running it shows nothing", notes=notes)
        for rule in self._rules:
            if not _can_hold(_body(rule), self._filled) and not silent.issuperset(head.name for head in rule.heads):
                yield from self._never_fires(rule)

    def _unfilled(self) -> set[str]:
        """Relations that are read or shown, with nothing to fill them."""
        return (self._declared.keys() & (self._read_relations | self._printed)) - self._derived - self._with_rows

    def _never_filled(self, name: str) -> Diagnostic:
        notes = (f"write `.input {name}` if its rows are in a file",)
        message = f"relation `{name}` has no rules, facts or input: it is empty"
        return Diagnostic("never-filled", message, (Label(self._declared[name]),), notes)

    def _never_read(self, name: str) -> Diagnostic:
        notes = (f"write `.output {name}` to see its rows",)
        message = f"relation `{name}` is neither read nor an output"
        return Diagnostic("never-read", message, (Label(self._declared[name]),), notes)

    def _never_fires(self, rule: Clause) -> Iterator[Diagnostic]:
        """One warning at the first literal that cannot hold; none where that reads what other rules fail to derive, as these
        have one of their own."""
        obstacles = list(_obstacles(_body(rule), self._filled))
        at = next((found for found in obstacles if not (isinstance(found, Atom) and found.name in self._derived)), obstacles[0])
        head = rule.heads[0].name
        if isinstance(at, Atom) and at.name in self._derived and at.name not in {h.name for h in rule.heads}:
            return
        message = f"this rule for `{head}` derives nothing"
        if not isinstance(at, Atom):
            label = Label(at.span, "this never holds")
        elif at.name in self._derived:
            label = Label(at.span, f"`{at.name}` has no row to begin with")
        else:
            label = Label(at.span, f"`{at.name}` is always empty")
        yield Diagnostic("never-fires", message, (label,))


def _body(rule: Clause) -> Body:
    assert rule.body is not None
    return rule.body


def _can_hold(body: Body, filled: set[str]) -> bool:
    """Whether a body may have a solution if these relations have rows. Negations and aggregates may always have one."""
    return next(_obstacles(body, filled), None) is None


def _obstacles(body: Body, filled: set[str]) -> Iterator[Node]:
    """The literals because of which a body cannot hold, in the order of the text."""
    match body:
        case Atom(name=name):
            if name not in filled:
                yield body
        case Truth(value=False):
            yield body
        case Constraint(op=op, left=left, right=right):
            if op in _COMPARISONS and _differs(op, left, right):
                yield body
        case And(parts=parts):
            for part in parts:
                yield from _obstacles(part, filled)
        case Or(parts=parts):
            if not any(_can_hold(part, filled) for part in parts):
                yield body
        case _:
            pass


def _differs(op: str, left: Term, right: Term) -> bool:
    """Whether a comparison of two literals of one kind does not hold. Texts have no order that could be said here."""
    match left, right:
        case Number(), Number():
            if left.text.isdecimal() and right.text.isdecimal():
                return not _COMPARISONS[op](int(left.text), int(right.text))
        case String(), String():
            if op in ("=", "!="):
                return not _COMPARISONS[op](left.value, right.value)
        case _:
            pass
    return False

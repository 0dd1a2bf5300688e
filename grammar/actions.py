"""The parser's actions at each rule of datalog.lark: each builds the syntax node from the rule's children.

A callback gets the children of its rule, tokens included, and returns a node with its span. Lists under construction are plain
Python lists owned by the parse. What is wrong but parses (an unknown escape in a string) is noted in the `Reading` of the
running parse and reported after it, with everything else of that kind.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any

from lark import Token

from dlog.dataclass import dataclass
from dlog.grammar import syntax
from dlog.grammar.automaton import Word
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.literal_facts import ESCAPES
from dlog.grammar.operators import BINDING, PREFIX_BINDING, RIGHT_ASSOCIATIVE
from dlog.grammar.source import Source, Span
from dlog.grammar.words import STORAGE

Children = list[Any]


@dataclass(slots=True)
class Reading:
    """One run of the parser: its text, and the mistakes found that do not stop it."""

    source: Source
    problems: list[Diagnostic] = field(default_factory=list)

    def problem(self, code: str, message: str, span: Span, *notes: str) -> None:
        self.problems.append(Diagnostic(code, message, (Label(span),), notes, self.source))


READING: ContextVar[Reading] = ContextVar("reading")

ESCAPE = re.compile(r"\\(.)", re.DOTALL)


TOKENS = frozenset({Word, Token})
"""What tokens are: `Word` where a text is parsed, Lark's own where it is read again."""


def _start(child: Any) -> int:
    return child.start_pos if type(child) in TOKENS else child.span.start  # type: ignore[no-any-return]


def _end(child: Any) -> int:
    return child.end_pos if type(child) in TOKENS else child.span.end  # type: ignore[no-any-return]


def _place(token: Word) -> Span:
    return Span(token.start_pos, token.end_pos)


def _whole(c: Children) -> Span:
    first, last = c[0], c[-1]
    start = first.start_pos if type(first) in TOKENS else first.span.start
    return Span(start, last.end_pos if type(last) in TOKENS else last.span.end)


MAX_NUMBER = 10**20
"""More than there is of anything that has a number."""


def _numbered(digits: str) -> int:
    """The number of something, as written; `MAX_NUMBER` for all that are greater, however long they are."""
    if digits.startswith(("0x", "0b")):
        return min(int(digits, 0), MAX_NUMBER)
    plain = digits.replace("_", "").lstrip("0")
    return int(plain or "0") if len(plain) <= 20 else MAX_NUMBER


def _unescape(token: Word) -> str:
    """The value of a string token; an unknown escape is a problem and stands for the character after the backslash."""
    text = token.value[1:-1]
    if "\\" not in text:
        return str(text)

    def one(match: re.Match[str]) -> str:
        known = ESCAPES.get(match[1])
        if known is None:
            at = token.start_pos + 1 + match.start()
            note = "known escapes are " + " ".join("\\" + c for c in ESCAPES) + '; write "\\\\" for a backslash'
            READING.get().problem("escape", f"unknown escape `{match[0]}` in a string", Span(at, at + 2), note)
            return match[1]
        return known

    return ESCAPE.sub(one, text)


def _value_of_atom(atom: syntax.Atom) -> syntax.Call:
    """What was read as an atom, until what stands behind it showed that it is a value."""
    if atom.round is not None:
        READING.get().problem("syntax", f"`{atom.name}@{atom.round}(...)` is about a relation, and no value", atom.span)
    return syntax.Call(f"@{atom.name}" if atom.event else atom.name, atom.args, span=atom.span)


def _climb(chain: Children, at: int, floor: int) -> tuple[syntax.Term, int]:
    """The term that starts at `chain[at]` of operators no looser than `floor`, and where it ends (precedence climbing)."""
    first = chain[at]
    left: syntax.Term
    if type(first) in TOKENS:
        operand, at = _climb(chain, at + 1, PREFIX_BINDING)
        left = syntax.Call(first.value, (operand,), span=Span(_start(first), operand.span.end))
    else:
        left, at = first, at + 1
    while at < len(chain):
        operator = chain[at].value
        binding = BINDING[operator]
        if binding < floor:
            break
        right, at = _climb(chain, at + 1, binding if operator in RIGHT_ASSOCIATIVE else binding + 1)
        left = syntax.Call(operator, (left, right), span=Span(left.span.start, right.span.end))
    return left, at


class Actions:
    """The callbacks, named as the rules and aliases of datalog.lark."""

    # lists --------------------------------------------------------------------------------------------------------------

    def none(self, c: Children) -> list[Any]:
        return []

    def one(self, c: Children) -> list[Any]:
        return [c[0]]

    def more(self, c: Children) -> list[Any]:
        c[0].append(c[1])
        return c[0]  # type: ignore[no-any-return]

    def another(self, c: Children) -> list[Any]:
        c[0].append(c[2])
        return c[0]  # type: ignore[no-any-return]

    def same(self, c: Children) -> Any:
        return c[0]

    def second(self, c: Children) -> Any:
        return c[1]

    def program(self, c: Children) -> syntax.Program:
        return syntax.Program(tuple(c[0]), span=Span(0, len(READING.get().source.text)))

    # relations and directives -------------------------------------------------------------------------------------------

    def relation_decl(self, c: Children) -> syntax.RelationDecl:
        names, attributes, qualifiers, choice = c[1], c[3], c[5], c[6]
        self._check_qualifiers(qualifiers)
        last = choice[-1] if choice else qualifiers[-1] if qualifiers else c[4]
        return syntax.RelationDecl(
            tuple(n.value for n in names),
            tuple(attributes),
            tuple("".join(q.value.split()) for q in qualifiers),
            tuple(choice),
            span=Span(_start(c[0]), _end(last)),
            name_spans=tuple(_place(n) for n in names),
        )

    def _check_qualifiers(self, qualifiers: Children) -> None:
        seen: dict[str, Word] = {}
        for qualifier in qualifiers:
            storage = qualifier.value in STORAGE
            group = "storage" if storage else qualifier.value.partition("(")[0].strip()
            if group in seen:
                first = seen[group].value
                same = first == qualifier.value
                message = f"`{qualifier.value}` is given twice" if same else f"`{qualifier.value}` contradicts `{first}`"
                READING.get().problem("qualifier", message, _place(qualifier))
            seen.setdefault(group, qualifier)

    def debug_delta(self, c: Children) -> syntax.RelationDecl:
        self._check_qualifiers(c[7])
        return syntax.RelationDecl(
            (c[1].value,),
            (),
            tuple(q.value for q in c[7]),
            span=Span(_start(c[0]), _end(c[7][-1] if c[7] else c[6])),
            name_spans=(_place(c[1]),),
            debug_delta=syntax.DebugDelta(c[5].value, span=_place(c[5])),
        )

    def attribute(self, c: Children) -> syntax.Attribute:
        return syntax.Attribute(c[0].value, c[2].value, span=_whole(c), type_span=_place(c[2]))

    def lattice_attribute(self, c: Children) -> syntax.Attribute:
        return syntax.Attribute(c[0].value, c[2].value + "<>", span=_whole(c), type_span=Span(_start(c[2]), _end(c[4])))

    def unnamed_param(self, c: Children) -> syntax.Attribute:
        return syntax.Attribute("", c[0].value, span=_whole(c), type_span=_whole(c))

    def simple_dependency(self, c: Children) -> syntax.FunctionalDependency:
        return syntax.FunctionalDependency((c[0].value,), span=_whole(c))

    def dependency(self, c: Children) -> syntax.FunctionalDependency:
        return syntax.FunctionalDependency(tuple(k.value for k in c[1]), span=_whole(c))

    def directive(self, c: Children) -> syntax.Directive:
        params = c[3] if len(c) == 5 else []
        last = c[-1] if len(c) > 2 else c[1][-1]
        return syntax.Directive(
            c[0].value[1:],
            tuple(r.value for r in c[1]),
            tuple(params),
            span=Span(_start(c[0]), _end(last)),
            relation_spans=tuple(_place(r) for r in c[1]),
        )

    def parameter(self, c: Children) -> tuple[str, str]:
        return c[0].value, _unescape(c[2]) if c[2].type == "STRING" else c[2].value

    def pragma(self, c: Children) -> syntax.Pragma:
        return syntax.Pragma(_unescape(c[1]), _unescape(c[2]) if len(c) > 2 else "", span=_whole(c))

    # types --------------------------------------------------------------------------------------------------------------

    def subtype_decl(self, c: Children) -> syntax.SubtypeDecl:
        return syntax.SubtypeDecl(c[1].value, c[3].value, span=_whole(c))

    def legacy_type(self, c: Children) -> syntax.SubtypeDecl:
        return syntax.SubtypeDecl(c[1].value, "number" if c[0].type == "NUMBER_TYPE" else "symbol", span=_whole(c))

    def union_decl(self, c: Children) -> syntax.UnionDecl:
        span = Span(_start(c[0]), _end(c[3][-1]))
        return syntax.UnionDecl(c[1].value, tuple(m.value for m in c[3]), span=span)

    def record_decl(self, c: Children) -> syntax.RecordDecl:
        return syntax.RecordDecl(c[1].value, tuple(c[4]), span=_whole(c))

    def adt_decl(self, c: Children) -> syntax.AdtDecl:
        return syntax.AdtDecl(c[1].value, tuple(c[3]), span=Span(_start(c[0]), _end(c[3][-1])))

    def branch(self, c: Children) -> syntax.Branch:
        return syntax.Branch(c[0].value, tuple(c[2]), span=_whole(c))

    def functor_decl(self, c: Children) -> syntax.FunctorDecl:
        return syntax.FunctorDecl(c[1].value, tuple(c[3]), c[6].value, len(c) == 8, span=_whole(c))

    def lattice_decl(self, c: Children) -> syntax.LatticeDecl:
        return syntax.LatticeDecl(c[1].value, tuple(c[5]), span=_whole(c))

    def lattice_entry(self, c: Children) -> tuple[str, syntax.Term]:
        return c[0].value, c[2]

    # components ---------------------------------------------------------------------------------------------------------

    def component_type(self, c: Children) -> syntax.ComponentType:
        return syntax.ComponentType(c[0].value, tuple(p.value for p in c[2]) if len(c) > 1 else (), span=_whole(c))

    def component_decl(self, c: Children) -> syntax.ComponentDecl:
        return syntax.ComponentDecl(c[1], tuple(c[2]), tuple(c[4]), span=_whole(c))

    def component_init(self, c: Children) -> syntax.ComponentInit:
        return syntax.ComponentInit(c[1].value, c[3], span=_whole(c))

    def override(self, c: Children) -> syntax.Override:
        return syntax.Override(c[1].value, span=_whole(c))

    # clauses ------------------------------------------------------------------------------------------------------------

    def fact(self, c: Children) -> syntax.Clause:
        return syntax.Clause((c[0],), span=_whole(c))

    def rule(self, c: Children) -> syntax.Clause:
        span = Span(_start(c[0][0]), _end(c[-1]))
        return syntax.Clause(tuple(c[0]), c[2], c[4] if len(c) > 4 else None, span=span)

    def subsumption(self, c: Children) -> syntax.Subsumption:
        return syntax.Subsumption(c[0], c[2], c[4], c[6] if len(c) > 6 else None, span=_whole(c))

    def plan(self, c: Children) -> syntax.ExecutionPlan:
        orders, spans = tuple((version, order) for version, order, _ in c[1]), tuple(span for _, _, span in c[1])
        return syntax.ExecutionPlan(orders, span=Span(_start(c[0]), spans[-1].end), order_spans=spans)

    def plan_order(self, c: Children) -> tuple[int, tuple[int, ...], Span]:
        numbers = c[3] if len(c) == 5 else []
        return _numbered(c[0].value), tuple(_numbered(n.value) for n in numbers), _whole(c)

    def disjunction(self, c: Children) -> syntax.Or:
        return syntax.Or(tuple(c[::2]), span=_whole(c))

    def conjunction(self, c: Children) -> syntax.And:
        return syntax.And(tuple(c[::2]), span=_whole(c))

    def negation(self, c: Children) -> syntax.Not:
        return syntax.Not(c[1], span=_whole(c))

    def constraint(self, c: Children) -> syntax.Constraint:
        return syntax.Constraint(c[1].value, c[0], c[2], span=_whole(c))

    def predicate(self, c: Children) -> syntax.Constraint:
        return syntax.Constraint(c[0].value, c[2], c[4], span=_whole(c))

    def truth(self, c: Children) -> syntax.Truth:
        return syntax.Truth(c[0].value == "true", span=_whole(c))

    def group(self, c: Children) -> Any:
        """A term or a body in parentheses: the node's span takes the parentheses in."""
        return replace(c[1], span=_whole(c))

    def atom(self, c: Children) -> syntax.Atom:
        return syntax.Atom(c[0].value, tuple(c[2]), span=_whole(c))

    def past_atom(self, c: Children) -> syntax.Atom:
        return syntax.Atom(c[0].value, tuple(c[3]), span=_whole(c), round=syntax.round_number(c[1].value[1:]))

    def word_atom(self, c: Children) -> syntax.Atom:
        """`history(10)` or `retract(now)` where an atom is meant, at the end of an aggregate's body."""
        name, _, argument = c[0].value.rstrip(")").partition("(")
        at = c[0].start_pos + c[0].value.index(argument.strip(), len(name))
        span, text = Span(at, at + len(argument.strip())), argument.strip()
        value: syntax.Term = syntax.Number(text, span=span) if text.isdigit() else syntax.Variable(text, span=span)
        return syntax.Atom(name.strip(), (value,), span=_whole(c))

    def event(self, c: Children) -> syntax.Atom:
        return syntax.Atom(c[1].value, tuple(c[3]), span=_whole(c), event=True)

    # terms --------------------------------------------------------------------------------------------------------------

    def operation(self, c: Children) -> syntax.Term:
        return _climb(c, 0, 0)[0]

    def variable(self, c: Children) -> syntax.Variable:
        return syntax.Variable(c[0].value, span=_whole(c))

    def wildcard(self, c: Children) -> syntax.Wildcard:
        return syntax.Wildcard(span=_whole(c))

    def number(self, c: Children) -> syntax.Number:
        return syntax.Number(c[0].value, span=_whole(c))

    def address(self, c: Children) -> syntax.Number:
        """`127.0.0.1` is the number of its 32 bits."""
        if max(_numbered(p) for p in c[0].value.split(".")) > 255:
            READING.get().problem("address", f"`{c[0].value}` is not an IP address: each part is at most 255", _whole(c))
        return syntax.Number(c[0].value, span=_whole(c))

    def string(self, c: Children) -> syntax.String:
        return syntax.String(_unescape(c[0]), span=_whole(c))

    def nil(self, c: Children) -> syntax.Nil:
        return syntax.Nil(span=_whole(c))

    def counter(self, c: Children) -> syntax.Counter:
        return syntax.Counter(span=_whole(c))

    def record(self, c: Children) -> syntax.RecordTerm:
        return syntax.RecordTerm(tuple(c[1]), span=_whole(c))

    def branch_term(self, c: Children) -> syntax.BranchTerm:
        name = "".join(c[0].value[1:].split())
        return syntax.BranchTerm(name, tuple(c[2]) if len(c) > 1 else (), span=_whole(c))

    def cast(self, c: Children) -> syntax.Cast:
        return syntax.Cast(c[2], c[4].value, span=_whole(c))

    def file_name(self, c: Children) -> syntax.String:
        return syntax.String(READING.get().source.locate(_start(c[0])).file, span=_whole(c))

    def line_number(self, c: Children) -> syntax.Number:
        return syntax.Number(str(READING.get().source.locate(_start(c[0])).line), span=_whole(c))

    def call(self, c: Children) -> syntax.Call:
        return syntax.Call(c[0].value, tuple(c[2]), span=_whole(c))

    def wrapped_call(self, c: Children) -> syntax.Call:
        return _value_of_atom(c[0])

    def user_call(self, c: Children) -> syntax.Call:
        return syntax.Call("@" + c[1].value, tuple(c[3]), span=_whole(c))

    def minmax_call(self, c: Children) -> syntax.Call:
        if c[0].value not in ("min", "max"):
            READING.get().problem("syntax", f"`{c[0].value}` aggregates: write `{c[0].value} x : {{ ... }}`", _whole(c))
        first = _value_of_atom(c[2]) if isinstance(c[2], syntax.Atom) else c[2]
        return syntax.Call(c[0].value, (first, *c[4]), span=_whole(c))

    def aggregate(self, c: Children) -> syntax.AggregateTerm:
        op, target = c[0].value, c[1] if len(c) == 4 else None
        if op == "count" and target is not None:
            READING.get().problem("syntax", "`count` takes no expression: write `count : { ... }`", target.span)
        if op != "count" and target is None:
            READING.get().problem("syntax", f"`{op}` needs an expression: write `{op} x : {{ ... }}`", _place(c[0]))
        return syntax.AggregateTerm(op, target, c[-1], span=_whole(c))

    def user_aggregate(self, c: Children) -> syntax.AggregateTerm:
        target = c[3] if len(c) == 8 else None
        return syntax.AggregateTerm("@@" + c[2].value, target, c[-1], c[-3], span=_whole(c))

    def braced(self, c: Children) -> Any:
        """An aggregate's body in braces: the node's span takes the braces in, so that the aggregate ends where they do."""
        return replace(c[1], span=_whole(c))

    def longer(self, c: Children) -> Word:
        return Word("IDENT", f"{c[0].value}.{c[2].value}", _start(c[0]), _end(c[2]))

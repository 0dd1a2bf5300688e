"""Questions: `?- path(1, X), X != 3.` compiled against a program's declarations.

A question is a rule whose head has the variables of its body. It may have rules of its own before it, for relations that they
declare; with relations of the program that are not there yet, its program has their rules too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dlog.arguments import text as argument_text
from dlog.dataclass import dataclass
from dlog.engine.compile.normal.disjunction import flatten_clause
from dlog.engine.compile.normal.inline import inlined
from dlog.engine.compile.problems import Problems
from dlog.engine.compile.resolve import resolve
from dlog.engine.compile.safety import check_safety
from dlog.engine.compile.scope import scope
from dlog.engine.compile.strata.dependencies import dependencies
from dlog.engine.compile.typing.subtypes import calendar_types
from dlog.engine.compile.typing.typecheck import typecheck
from dlog.engine.compile.walk import children, parts, walk
from dlog.engine.ir import rules
from dlog.engine.ir.rules import NOW, Kind
from dlog.engine.optimize.rewriting import with_rules
from dlog.grammar import syntax
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Source, Span
from dlog.pipeline import stage
from dlog.sessions.mistakes import bad_query, mistake
from dlog.sessions.text import Text, relations

NAME = "?"
"""The relation that a question's answers are rows of; no program can declare it."""
_HEAD = "query() :-\n"
_MARK = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<mark>\?-)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Question:
    """A compiled question: a rule for each alternative. `computed` are the relations of the session whose rules are in the
    program too, `own` those that the question declares. It `makes_records` if evaluating it enters new ones."""

    program: rules.Program
    alternatives: tuple[rules.Rule, ...]
    computed: frozenset[str]
    own: frozenset[str]
    makes_records: bool

    @property
    def relation(self) -> rules.Relation:
        return self.program.relations[NAME]

    @property
    def evaluates(self) -> bool:
        """Whether relations have to be computed before there are answers."""
        return bool(self.computed or self.own)


def compile_question(text: Text, question: str, pending: frozenset[str] = frozenset()) -> Question:
    """`pending` are the relations with rules that are to be computed. Raises DlogError for whatever is wrong with it."""
    clause, local, source = _parts(text, question)
    _refuse_time((*local, clause), source)
    program = text.placed_in(source)
    with stage("compiler"):
        names = _variables(clause)
        types = _types(clause, program, local)
        head = syntax.Atom(NAME, tuple(names.values()), span=clause.span)
        attributes = tuple(syntax.Attribute(name, types[name]) for name in names)
        declared = syntax.RelationDecl((NAME,), attributes, span=clause.span)
        asked = (*local, declared, replace(clause, heads=(head,)))
        typed = program.compiled((*text.declarations, *asked))
        if not pending.isdisjoint(_read_relations(typed)):
            typed = program.compiled((*text.declarations, *_rules(text), *asked))
    if NAME in typed.at_once or not typed.at_once.keys().isdisjoint(relations(Text(source, local))):
        note = "ask for a relation whose rule reads that one"
        raise mistake("bad-query", "the question reads an inline relation whose rules have `now()`", note)
    inline = {n for i in text.expanded if isinstance(i, syntax.RelationDecl) and "inline" in i.qualifiers for n in i.names}
    own = frozenset(relations(Text(source, local))).union(inline & typed.relations.keys())  # inline, but counted: has rows here
    return _question(typed, pending, own)


def _question(typed: rules.Program, pending: frozenset[str], own: frozenset[str]) -> Question:
    """Without the relations that the question does not come upon, and rules of those that are there."""
    by_head = {r: [rule for s in typed.strata for rule in s.rules if rule.head.relation == r] for r in (*pending, *own, NAME)}
    used, queue = {NAME}, [NAME]
    while queue:
        more = {d.on for rule in by_head.get(queue.pop(), ()) for d in dependencies(rule)} - used
        used |= more
        queue += more
    limits = tuple(io for io in typed.io if io.relation in used and io.action == "limitsize")
    kept = {name: relation for name, relation in typed.relations.items() if name in used}
    facts = {name: rows for name, rows in typed.facts.items() if name in used & {*own, NAME}}
    needed = {name: found for name, found in by_head.items() if name in used}
    program = with_rules(replace(typed, relations=kept, facts=facts, io=limits), needed)
    found = tuple(needed[NAME])
    every = (rule for listed in needed.values() for rule in listed)
    return Question(
        program, found, pending & used, own & used, any(_has_record(rule.head.args, rule.body) for rule in every)
    )


def _read_relations(program: rules.Program) -> set[str]:
    return {d.on for stratum in program.strata for rule in stratum.rules for d in dependencies(rule)}


def _rules(text: Text) -> list[syntax.Item]:
    """The rules of a program, and the limits of its relations."""
    return [
        item
        for item in text.expanded
        if (isinstance(item, syntax.Clause) and item.body is not None)
        or (isinstance(item, syntax.Directive) and item.kind == "limitsize")
    ]


# --------------------------------------------------------------------------------------------------------------------- parse


def _parts(text: Text, question: str) -> tuple[syntax.Clause, tuple[syntax.Item, ...], Source]:
    """The question as a clause without a head, the items before it, and the text that their spans are in."""
    asked = argument_text("question", question, "the text of a query: ?- path(1, X).").rstrip()
    marks = [found for found in _MARK.finditer(asked) if found["mark"]]
    before, body = (asked[: marks[-1].start()], asked[marks[-1].end() :]) if marks else ("", asked)
    if len(marks) > 1 or not body.strip(" \n\t."):
        raise bad_query()
    body = body if body.endswith(".") else f"{body}."
    written = before if before.strip() else ""  # spaces and lines before the mark are kept with the body
    margin = " " * (len(before) - before.rfind("\n") + 1) if written else before + "  " * bool(marks)
    place = 1 + written.count("\n")
    placed = f"{written} {_HEAD}{margin}{body}"
    numbers = [*range(1, place + 1), *range(place, place + (margin + body).count("\n") + 1)]
    origins = [("<query>", number) for number in numbers]
    parsed = text.parsed(Source(placed, "<query>", origins, {"<query>": question.split("\n")}))
    *local, clause = parsed.items
    if not isinstance(clause, syntax.Clause) or [head.name for head in clause.heads] != ["query"]:
        raise bad_query()
    own = Text(parsed.source, tuple(local))
    _check_local(own)
    begin = clause.span.start + len(_HEAD) + len(margin) + len(body) - len(body.lstrip())
    return replace(clause, span=Span(begin, clause.span.end)), own.expanded, parsed.source


def _check_local(local: Text) -> None:
    """Rules of a question are for relations of its own, and nothing is read or written for it."""
    declared = relations(local)
    for item in local.expanded:
        if isinstance(item, syntax.Directive):
            raise mistake("bad-query", f"a query has no directives: `.{item.kind} {', '.join(item.relations)}`")
        for head in item.heads if isinstance(item, syntax.Clause) else ():
            if head.name not in declared:
                note = "declare one for it: .decl near(x: number)"
                raise mistake("bad-query", f"the rules of a query are for relations that it declares, not `{head.name}`", note)


def _refuse_time(items: tuple[syntax.Item, ...], source: Source) -> None:
    """A question is about rows, which do not come or go while it is answered."""
    nodes = [n for item in items if isinstance(item, syntax.Clause) for part in parts(item) for n in walk(part)]
    for node in nodes:
        if isinstance(node, syntax.Call) and (node.name, node.args) == (NOW, ()):
            message, note = "`now()` in a question", "write the number of the round, or ask for a relation whose rule has it"
        elif isinstance(node, syntax.Atom) and node.event:
            message = f"the event `@{node.name}` in a question"
            note = f"ask for `{node.name}`, or for a relation whose rule has it"
        else:
            continue
        raise DlogError(Diagnostic("bad-query", message, (Label(node.span),), (note,), source))


def _variables(clause: syntax.Clause) -> dict[str, syntax.Variable]:
    """The variables of the body outside of aggregates in the order of the text, but for those that begin with `_`."""
    found: dict[str, syntax.Variable] = {}
    for node in _outside(clause.body or syntax.Truth(True)):
        if isinstance(node, syntax.Variable) and not node.name.startswith("_"):
            found.setdefault(node.name, node)
    return found


def _outside(node: syntax.Term | syntax.Body) -> Iterator[syntax.Term | syntax.Body]:
    yield node
    if not isinstance(node, syntax.AggregateTerm):
        for child in children(node):
            yield from _outside(child)


def _types(clause: syntax.Clause, text: Text, local: tuple[syntax.Item, ...]) -> dict[str, str]:
    """The type of each variable, from the question with an empty head."""
    declared = syntax.RelationDecl((NAME,), (), span=clause.span)
    bare = replace(clause, heads=(syntax.Atom(NAME, (), span=clause.span),))
    own = Text(text.source, local).declarations
    resolved = resolve(syntax.Program((*text.declarations, *own, declared, bare)), text.source)
    problems = Problems(text.source)
    found: dict[str, str] = {}
    asked = next(clause for clause in inlined(resolved, problems).clauses if clause.heads[0].name == NAME)
    for flat in flatten_clause(asked, text.source, problems):
        scoped = scope(flat, problems)
        check_safety(scoped, problems)
        typed = typecheck(scoped, resolved, problems)
        dates = calendar_types(typed, resolved, problems)
        for name, slot in typed.slots.items():
            kind = typed.kinds[slot]
            found.setdefault(name, (typed.records[slot] or "number") if kind is Kind.RECORD else dates.get(name, kind.value))
    problems.check()
    return found


def _has_record(terms: Iterable[rules.Term | None], body: tuple[rules.Literal, ...]) -> bool:
    """Whether any of the terms, or one in the body, constructs a record."""
    for literal in body:
        match literal:
            case rules.Compare(left=left, right=right):
                terms = (*terms, left, right)
            case rules.Generator(args=args):
                terms = (*terms, *args)
            case rules.Aggregate(target=target, alternatives=alternatives):
                terms = (*terms, target)
                if any(_has_record((), alternative) for alternative in alternatives):
                    return True
            case rules.Atom() | rules.Negation() | rules.Unpack():
                pass
    return any(_constructs(term) for term in terms)


def _constructs(term: rules.Term | None) -> bool:
    return isinstance(term, rules.Record) or (isinstance(term, rules.Functor) and any(_constructs(arg) for arg in term.args))

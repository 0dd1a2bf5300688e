"""Questions: `?- path(1, X), X != 3.` asked of relations as they are.

A question is a rule whose head has the variables of its body. It is compiled against the program's declarations only. One atom
is answered by selecting rows; anything else by the static executor, over those rows of the mentioned relations that
the question's constants leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dlog.api import Relation
from dlog.arguments import text as argument_text
from dlog.engine.embedded.executor import Executor
from dlog.engine.program import rules
from dlog.engine.program.dependencies import dependencies
from dlog.engine.program.disjunction import flatten_clause
from dlog.engine.program.problems import Problems
from dlog.engine.program.resolve import resolve
from dlog.engine.program.rules import Kind
from dlog.engine.program.safety import check_safety
from dlog.engine.program.scope import scope
from dlog.engine.program.typecheck import typecheck
from dlog.engine.program.walk import children
from dlog.engine.values.differences import row_groups, words
from dlog.engine.values.table import Table
from dlog.grammar import syntax
from dlog.grammar.source import Source
from dlog.pipeline import stage
from dlog.sessions.mistakes import bad_query
from dlog.sessions.text import Text
from dlog.values import Codec

NAME = "?"
"""The relation that a question's answers are rows of; no program can declare it."""

Tables = Callable[[str], Table]


@dataclass(frozen=True, slots=True)
class Question:
    """A compiled question: a rule for each alternative. It `makes_records` if evaluating it enters new ones."""

    program: rules.Program
    alternatives: tuple[rules.Rule, ...]
    makes_records: bool

    @property
    def relation(self) -> rules.Relation:
        return self.program.relations[NAME]


# ------------------------------------------------------------------------------------------------------------------- compile


def compile_question(text: Text, question: str) -> Question:
    """Raises DlogError for whatever is wrong with it."""
    clause, source = _clause(text, question)
    program = replace(text, source=source)
    with stage("compiler"):
        names = _variables(clause)
        types = _types(clause, program)
        head = syntax.Atom(NAME, tuple(names.values()), span=clause.span)
        attributes = tuple(syntax.Attribute(name, types[name]) for name in names)
        declared = syntax.RelationDecl((NAME,), attributes, span=clause.span)
        typed = program.compiled((*text.declarations, declared, replace(clause, heads=(head,))))
    found = tuple(rule for stratum in typed.strata for rule in stratum.rules)
    return Question(_reduced(typed, found), found, any(_has_record(rule.head.args, rule.body) for rule in found))


def _clause(text: Text, question: str) -> tuple[syntax.Clause, Source]:
    """The question as a clause without a head, and the text its spans are in."""
    asked = argument_text("question", question, "the text of a query: ?- path(1, X).").rstrip()
    start = len(asked) - len(asked.lstrip())
    if asked.startswith("?-", start):
        asked = f"{asked[:start]}  {asked[start + 2:]}"
    if not asked.strip(" \n\t."):
        raise bad_query()
    asked = asked if asked.endswith(".") else f"{asked}."
    lines = asked.split("\n")
    origins = [("<query>", 1), *(("<query>", number) for number in range(1, len(lines) + 1))]
    parsed = text.parsed(Source(f"query() :-\n{asked}", "<query>", origins, {"<query>": question.split("\n")}))
    if len(parsed.items) != 1 or not isinstance(parsed.items[0], syntax.Clause) or len(parsed.items[0].heads) != 1:
        raise bad_query()
    return parsed.items[0], parsed.source


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


def _types(clause: syntax.Clause, text: Text) -> dict[str, str]:
    """The type of each variable, from the question with an empty head."""
    declared = syntax.RelationDecl((NAME,), (), span=clause.span)
    bare = replace(clause, heads=(syntax.Atom(NAME, (), span=clause.span),))
    resolved = resolve(syntax.Program((*text.declarations, declared, bare)), text.source)
    problems = Problems(text.source)
    found: dict[str, str] = {}
    for flat in flatten_clause(bare, text.source, problems):
        scoped = scope(flat, problems)
        check_safety(scoped, resolved.inline, problems)
        typed = typecheck(scoped, resolved, problems)
        for name, slot in typed.slots.items():
            kind = typed.kinds[slot]
            found.setdefault(name, (typed.records[slot] or "number") if kind is Kind.RECORD else kind.value)
    problems.check()
    return found


def _reduced(program: rules.Program, found: tuple[rules.Rule, ...]) -> rules.Program:
    """Without the relations that the question does not mention."""
    used = {NAME, *(d.on for rule in found for d in dependencies(rule))}
    kept = {name: relation for name, relation in program.relations.items() if name in used}
    return replace(program, relations=kept, io=())


def _has_record(terms: Iterable[rules.Term | None], body: tuple[rules.Literal, ...]) -> bool:
    """Whether any of the terms, or one in the body, constructs a record."""
    for literal in body:
        match literal:
            case rules.Compare(left=left, right=right):
                terms = (*terms, left, right)
            case rules.Aggregate(target=target, alternatives=alternatives):
                terms = (*terms, target)
                if any(_has_record((), alternative) for alternative in alternatives):
                    return True
            case _:
                pass
    return any(_constructs(term) for term in terms)


def _constructs(term: rules.Term | None) -> bool:
    return isinstance(term, rules.Record) or (isinstance(term, rules.Functor) and any(_constructs(arg) for arg in term.args))


# -------------------------------------------------------------------------------------------------------------------- answer


def answer(question: Question, tables: Tables, codec: Codec, threads: int, memory: int | None) -> Relation:
    """The rows of the variables for which the question's body holds."""
    codec = Codec(question.program, codec.symbols, codec.records)
    if len(question.alternatives) == 1:
        [rule] = question.alternatives
        match rule.body:
            case (rules.Atom() as atom,) if all(isinstance(arg, rules.Variable) for arg in rule.head.args):
                return Relation(question.relation, _select(rule, atom, tables(atom.relation), codec), codec)
    return Relation(question.relation, _execute(question, tables, codec, threads, memory), codec)


def _select(rule: rules.Rule, atom: rules.Atom, table: Table, codec: Codec) -> Table:
    """The rows of one atom, projected to the head's variables."""
    places = np.flatnonzero(_matching(atom, table, codec))
    at = {arg.id: column for column, arg in reversed(list(enumerate(atom.args))) if isinstance(arg, rules.Variable)}
    columns = tuple(table.columns[at[arg.id]][places] for arg in rule.head.args if isinstance(arg, rules.Variable))
    if len(columns) < len(atom.args):
        order, starts = row_groups(tuple(map(words, columns)), len(places))
        columns = tuple(column[order[starts]] for column in columns)
    return Table(tuple(rule.kinds[v.id] for v in rule.head.args if isinstance(v, rules.Variable)), columns, min(len(places), 1))


def _matching(atom: rules.Atom, table: Table, codec: Codec) -> np.ndarray:
    """Which rows agree with the atom's constants and repeated variables."""
    mask = np.ones(table.rows, bool)
    first: dict[int, np.ndarray] = {}
    for arg, column in zip(atom.args, table.columns, strict=True):
        match arg:
            case rules.Constant():
                mask &= column == _value(arg, codec)
            case rules.Variable(id=number) if number in first:
                mask &= column == first[number]
            case rules.Variable(id=number):
                first[number] = column
            case None:
                pass
    return mask


def _value(constant: rules.Constant, codec: Codec) -> int | float:
    match constant.value:
        case None:
            return 0
        case str(text):
            return codec.symbols.find(text)
        case value:
            return float(value) if constant.kind is Kind.FLOAT else value


def _execute(question: Question, tables: Tables, codec: Codec, threads: int, memory: int | None) -> Table:
    """Runs the question's rules over the relations they mention."""
    executor = Executor(question.program, threads=threads, memory=memory, on_progress=None)
    executor.catalog.symbols = codec.symbols
    executor.catalog.records = codec.records  # type: ignore[assignment]
    for name in question.program.relations:
        if name != NAME:
            executor.load(name, _needed(question, name, tables(name), codec))
    with stage("evaluation"):
        executor.run()
    return executor.table(NAME)


def _needed(question: Question, name: str, table: Table, codec: Codec) -> Table:
    """The rows of a relation that some atom of the question could match."""
    atoms = [d for rule in question.alternatives for d in _atoms(rule.body) if d.relation == name]
    if not atoms or not all(any(isinstance(arg, rules.Constant) for arg in atom.args) for atom in atoms):
        return table
    mask = np.zeros(table.rows, bool)
    for atom in atoms:
        mask |= _matching(atom, table, codec)
    return Table(table.kinds, tuple(column[mask] for column in table.columns), int(mask.sum()))


def _atoms(body: tuple[rules.Literal, ...]) -> Iterator[rules.Atom]:
    for literal in body:
        match literal:
            case rules.Atom():
                yield literal
            case rules.Negation(atom=atom):
                yield atom
            case rules.Aggregate(alternatives=alternatives):
                for alternative in alternatives:
                    yield from _atoms(alternative)
            case _:
                pass

"""Names to declarations: every type, relation and functor a program mentions exists, once, and is used with its arity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Final, Literal, cast

from dlog.dataclass import dataclass
from dlog.engine.compile.functors import check_user_aggregate, check_user_call, declared_functors
from dlog.engine.compile.iteration_counter import with_counter
from dlog.engine.compile.known_clauses import KnownClauses
from dlog.engine.compile.lattice_types import NO_LATTICES, Lattices, joining_clause, without_lattices
from dlog.engine.compile.past import with_moments
from dlog.engine.compile.plans import check_plans
from dlog.engine.compile.pragmas import check_pragmas, inline_relations, is_short, options, values
from dlog.engine.compile.prints import CALL, PRINT, with_prints
from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.compile.retention import ITERATION, check_subsumption, choice_keys, debug_relation, dominated_clause
from dlog.engine.compile.timed.clock import refuse
from dlog.engine.compile.timed.events import ORIGINAL, with_events
from dlog.engine.compile.typing.types import TypeDecl, TypeTable, resolve_types
from dlog.engine.compile.walk import parts, walk
from dlog.engine.ir.aggregates import is_user_aggregate
from dlog.engine.ir.functors import find_functor, written_functors
from dlog.engine.ir.options import NO_OPTIONS, Options
from dlog.engine.ir.rules import NOW, Io, Kind, Relation, Type, UserFunctor
from dlog.engine.ir.table_functions import CALLED_ELSEWHERE, TABLE_FUNCTIONS, TableFunction
from dlog.grammar.alike_clauses import AlikeClause
from dlog.grammar.source import NOWHERE, Source, Span
from dlog.grammar.suggest import closest
from dlog.grammar.syntax import (
    AdtDecl,
    AggregateTerm,
    And,
    Atom,
    Attribute,
    BranchTerm,
    Call,
    Cast,
    Clause,
    Constraint,
    Counter,
    Directive,
    Nil,
    Not,
    Number,
    Or,
    Program,
    RecordDecl,
    RecordTerm,
    RelationDecl,
    String,
    Subsumption,
    SubtypeDecl,
    Truth,
    UnionDecl,
    Variable,
    Wildcard,
)

_LEGACY_IO: Final = ("input", "output", "printsize")


_UNNAMED: Final = frozenset({Variable, Wildcard, Number, String, Nil, And, Or, Not, Constraint, Truth, RecordTerm})
"""Nodes that name nothing that is declared."""
MAX_GUESSES = 100
"""Findings up to which it is guessed which relation an unknown one is: of a flood, which takes its time, few are shown."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A program whose names are all known. `attributes` keeps the declared attributes of each relation for messages, `inline`
    the relations whose bodies are to take the places of their atoms, `eqrels` those that are equivalence relations."""

    source: Source
    table: TypeTable
    relations: dict[str, Relation]
    attributes: dict[str, tuple[Attribute, ...]]
    clauses: tuple[Clause, ...]
    io: tuple[Io, ...]
    inline: frozenset[str]
    subsumptions: tuple[Clause, ...] = ()
    """Their heads are dominated rows (retention)."""
    choices: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """The keys of choice domains, by relation."""
    functors: dict[str, UserFunctor] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
    """By `debug_delta` relation, the one whose rows it has."""
    options: Options = NO_OPTIONS
    is_legacy: bool = False
    """Whether a value may go where one of a subtype is declared."""
    eqrels: frozenset[str] = frozenset()
    lattices: Lattices = NO_LATTICES
    joins: tuple[Clause, ...] = ()
    """For each relation with lattice columns the clause that joins two of its rows."""
    original: frozenset[str] = frozenset()
    """The relations of which an event that goes takes back what it had met."""


def resolve(program: Program, source: Source) -> Resolved:
    """
    .decl edge(x: number, y: number)    ->   relations["edge"] = Relation("edge", (x: number, y: number))
    .output edge                        ->   Io("output", "edge")
    """
    problems = Problems(source)
    program = with_moments(with_events(program, source, problems), source, problems)
    program = with_prints(with_counter(program, source), problems)
    program, lattices = without_lattices(program, problems)
    clauses = tuple([i for i in program.items if isinstance(i, Clause)])
    program = replace(program, items=tuple([i for i in program.items if not isinstance(i, Clause)]))
    types: list[TypeDecl] = [i for i in program.items if isinstance(i, SubtypeDecl | UnionDecl | RecordDecl | AdtDecl)]
    decls = [i for i in program.items if isinstance(i, RelationDecl)]
    check_pragmas(program.items, problems)
    pragmas = values(program.items)
    table = resolve_types(types, problems, is_short(pragmas))
    relations, attributes = _relations(decls, types, table, problems)
    io = _io(program, relations, problems)
    inline = inline_relations(decls, pragmas)
    subsumptions = _subsumptions(program, decls, problems)
    choices = _choices(decls, {c.heads[0].name for c in subsumptions}, problems)
    functors = declared_functors(program, table, problems)
    logs = {d.names[0]: d.debug_delta.relation for d in decls if d.debug_delta is not None}
    resolved = Resolved(
        source,
        table,
        relations,
        attributes,
        clauses,
        io,
        inline,
        subsumptions,
        choices,
        functors,
        logs,
        options(decls, pragmas),
        "legacy" in pragmas,
        _eqrels(decls, relations, problems),
        lattices,
        _joins(decls, lattices, {c.heads[0].name for c in subsumptions}, problems),
        frozenset(name for d in decls if ORIGINAL in d.qualifiers for name in d.names),
    )
    for call in (n for d in lattices.declared.values() for _, term in d.entries for n in walk(term) if isinstance(n, Call)):
        _check_call(call, resolved, problems)
        if call.name == NOW:
            refuse(call.span, problems)
    known = KnownClauses(relations, logs)
    for clause in (*clauses, *subsumptions, *resolved.joins):
        if not known.covers(clause):
            before = len(problems)
            _check_clause(clause, resolved, problems)
            if type(clause) is AlikeClause and len(problems) == before:
                known.add(clause)
    problems.check()
    shown = {each.relation for each in io if each.action in ("output", "printsize")}
    inputs = {each.relation for each in io if each.action == "input"}
    check_plans((*clauses, *subsumptions), inputs, shown, inline, problems)
    problems.check()
    return resolved


# ----------------------------------------------------------------------------------------------------------- declarations


def _relations(
    decls: list[RelationDecl], types: list[TypeDecl], table: TypeTable, problems: Problems
) -> tuple[dict[str, Relation], dict[str, tuple[Attribute, ...]]]:
    relations: dict[str, Relation] = {}
    attributes: dict[str, tuple[Attribute, ...]] = {}
    type_spans = {t.name: t.span for t in reversed(types)}
    known: dict[tuple[tuple[str, str], ...], tuple[tuple[str, Type], ...]] = {}
    for decl in sorted(decls, key=lambda d: d.debug_delta is not None):
        if decl.debug_delta is not None and (made := debug_relation(decl, relations, problems)) is not None:
            columns = made.attributes
            declared = (*attributes[decl.debug_delta.relation], Attribute(*ITERATION, span=decl.debug_delta.span))
        else:
            declared = decl.attributes
            said, before = tuple([(a.name, a.type) for a in declared]), len(problems)
            columns = known.get(said) or _columns(decl, table, problems)
            if len(problems) == before:
                known[said] = columns
        for index, name in enumerate(decl.names):
            span = _name_span(decl.name_spans, index, decl.span)
            if name in relations:
                labels = (Label(span), Label(relations[name].span, "first declared here"))
                problems.add("duplicate-relation", f"relation `{name}` is declared twice", *labels)
                continue
            if name in type_spans:
                labels = (Label(span), Label(type_spans[name], "the type is declared here"))
                problems.add("name-clash", f"`{name}` names both a relation and a type", *labels)
            relations[name] = Relation(name, columns, span)
            attributes[name] = declared
    return relations, attributes


def _eqrels(decls: list[RelationDecl], relations: dict[str, Relation], problems: Problems) -> frozenset[str]:
    """The equivalence relations, which relate the values of one type."""
    found = [decl for decl in decls if "eqrel" in decl.qualifiers]
    for decl in found:
        name, attributes = decl.names[0], decl.attributes
        if len(attributes) != 2:
            message = f"the equivalence relation `{name}` has {_count(len(attributes), 'attribute')}, and must have two"
            problems.add("bad-eqrel", message, Label(relations[name].span), notes=["an eqrel says which values are equivalent"])
        elif attributes[0].type != attributes[1].type:
            labels = (Label(attributes[1].span, "must have the type of the first"), Label(attributes[0].span, "the first"))
            message = f"the attributes of the equivalence relation `{name}` have two types"
            problems.add("bad-eqrel", message, *labels, notes=["every value is equivalent to itself: both columns have it"])
        if "inline" in decl.qualifiers:
            note = "an inline relation has no rows of which others could follow"
            message = f"the equivalence relation `{name}` cannot be inline"
            problems.add("bad-eqrel", message, Label(relations[name].span), notes=[note])
    return frozenset(name for decl in found for name in decl.names)


def _columns(decl: RelationDecl, table: TypeTable, problems: Problems) -> tuple[tuple[str, Type], ...]:
    seen: dict[str, Attribute] = {}
    for a in decl.attributes:
        if a.name in seen:
            labels = (Label(a.span), Label(seen[a.name].span, "first declared here"))
            problems.add("duplicate-attribute", f"attribute `{a.name}` is declared twice in `{decl.names[0]}`", *labels)
        seen.setdefault(a.name, a)
        if a.type not in table.types:
            span = a.type_span if a.type_span != NOWHERE else a.span
            message = f"unknown type `{a.type}` of attribute `{a.name}` of `{decl.names[0]}`"
            problems.add("unknown-type", message, Label(span), notes=[suggestion(a.type, table.types)])
    unknown = Type("number", Kind.NUMBER)
    return tuple((a.name, table.types.get(a.type, unknown)) for a in decl.attributes)


def _subsumptions(program: Program, decls: list[RelationDecl], problems: Problems) -> tuple[Clause, ...]:
    by_name = {name: decl for decl in decls for name in decl.names}
    found = [i for i in program.items if isinstance(i, Subsumption) and check_subsumption(i, by_name, problems)]
    return tuple(map(dominated_clause, found))


def _joins(decls: list[RelationDecl], lattices: Lattices, subsumptive: set[str], problems: Problems) -> tuple[Clause, ...]:
    for name in lattices.columns.keys() & subsumptive:
        message = f"`{name}` has a lattice column: it cannot have a subsumption, too"
        problems.add("lattice", message, Label(lattices.place(name)))
    names = [name for decl in decls for name in decl.names]
    found = ((decl, name) for decl in decls for name in decl.names if lattices.columns.get(name) and names.count(name) == 1)
    return tuple(joining_clause(decl, name, lattices) for decl, name in found if lattices.joins(name))


def _choices(decls: list[RelationDecl], subsumptive: set[str], problems: Problems) -> dict[str, tuple[tuple[int, ...], ...]]:
    found = {name: choice_keys(decl, subsumptive, problems) for decl in decls if decl.choice_domain for name in decl.names}
    return {name: keys for name, keys in found.items() if keys}


def _name_span(spans: tuple[Span, ...], index: int, default: Span) -> Span:
    return spans[index] if index < len(spans) else default


def _io(program: Program, relations: dict[str, Relation], problems: Problems) -> tuple[Io, ...]:
    """All directives in the order of the text; parameters are the business of whoever reads and writes."""
    found: list[Io] = []
    for item in program.items:
        match item:
            case RelationDecl():
                for action in _LEGACY_IO:
                    if action in item.qualifiers:
                        names = enumerate(item.names)
                        found += [Io(_action(action), n, (), _name_span(item.name_spans, i, item.span)) for i, n in names]
            case Directive():
                for index, name in enumerate(item.relations):
                    span = _name_span(item.relation_spans, index, item.span)
                    if name in relations:
                        found.append(Io(item.kind, name, item.params, span))
                    else:
                        _unknown_relation(name, span, relations, problems)
            case _:
                pass
    _check_repeated(found, problems)
    return tuple(found)


def _check_repeated(found: list[Io], problems: Problems) -> None:
    """A relation has one size to print and one limit; it may well be written to several places."""
    first: dict[tuple[str, str], Io] = {}
    for io in found:
        earlier = first.setdefault((io.action, io.relation), io)
        if earlier is not io and io.action in ("printsize", "limitsize"):
            labels = (Label(io.span), Label(earlier.span, "first here"))
            problems.add("duplicate-directive", f".{io.action} of `{io.relation}` is given twice", *labels)


def _action(name: str) -> Literal["input", "output", "printsize", "limitsize"]:
    return cast(Literal["input", "output", "printsize"], name)


# ---------------------------------------------------------------------------------------------------------------- clauses


def _check_clause(clause: Clause, resolved: Resolved, problems: Problems) -> None:
    for head in clause.heads:
        if head.name in resolved.logs:
            message = f"`{head.name}` gets its rows by debug_delta: it can have no rules and no facts"
            problems.add("debug-delta", message, Label(head.span))
    for root in parts(clause):
        for node in walk(root):
            if type(node) in _UNNAMED:  # most nodes
                continue
            match node:
                case Atom():
                    _check_atom(node, resolved, problems)
                case Call(name=name, args=()) if name == NOW and clause.body is None:
                    notes = ["a fact says what its values are; a rule may compare with the round: `from <= now()`"]
                    problems.add("now", "`now()` in a fact", Label(node.span), notes=notes)
                case Call():
                    _check_call(node, resolved, problems)
                case AggregateTerm(op=op) if is_user_aggregate(op):
                    check_user_aggregate(node, resolved.functors, problems)
                case BranchTerm():
                    _check_branch(node, resolved, problems)
                case Counter() if clause.body is None:
                    notes = ["a fact says what its values are; a rule may number rows: `n(autoinc(), x) :- p(x).`"]
                    problems.add("counter-in-fact", "`autoinc()` in a fact", Label(node.span), notes=notes)
                case Cast(type=name) if name not in resolved.table.types:
                    note = suggestion(name, resolved.table.types)
                    problems.add("unknown-type", f"unknown type `{name}` in `as`", Label(node.span), notes=[note])
                case _:
                    pass


def _check_atom(atom: Atom, resolved: Resolved, problems: Problems) -> None:
    relation = resolved.relations.get(atom.name)
    if relation is None:
        _unknown_relation(atom.name, atom.span, resolved.relations, problems)
    elif relation.arity != len(atom.args):
        columns = ", ".join(f"{a.name}: {a.type}" for a in resolved.attributes[atom.name])
        message = f"`{atom.name}` has {_count(relation.arity, 'attribute')}, but {_count(len(atom.args), 'argument')} here"
        labels = (Label(atom.span), Label(relation.span, "declared here"))
        problems.add("wrong-arity", message, *labels, notes=[f"it is declared as {atom.name}({columns})"])


def _check_branch(term: BranchTerm, resolved: Resolved, problems: Problems) -> None:
    known = resolved.table.branches
    if term.branch not in known:
        close = closest(term.branch, known)
        hint = f"did you mean `${close}`?" if close else "declare it as a branch of an algebraic data type"
        if term.branch in resolved.table.types:
            hint = f"`{term.branch}` is a type; `$` stands before the name of a branch"
        problems.add("unknown-branch", f"unknown branch `${term.branch}`", Label(term.span), notes=[hint])
        return
    adt, branch = known[term.branch]
    if len(branch.fields) != len(term.args):
        message = f"`${branch.name}` has {_count(len(branch.fields), 'field')}, but {_count(len(term.args), 'argument')} here"
        fields = ", ".join(f"{f.name}: {f.type}" for f in branch.fields)
        labels = (Label(term.span), Label(branch.span, f"declared here, in `{adt}`"))
        problems.add("wrong-arity", message, *labels, notes=[f"it is declared as {branch.name} {{{fields}}}"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _unknown_relation(name: str, span: Span, relations: Iterable[str], problems: Problems) -> None:
    guess = suggestion(name, relations) if len(problems) < MAX_GUESSES else ""
    hint = guess or _declaration_hint(name, relations)
    if name in written_functors():
        hint = f"`{name}` is a functor: compare its value, as in `y = {name}(x)`"
    if name == NOW:
        hint = "`now()` is the round: compare it, as in `from <= now()`"
    problems.add("unknown-relation", f"unknown relation `{name}`", Label(span), notes=[hint])


def _declaration_hint(name: str, relations: Iterable[str]) -> str:
    """How there could be a relation of a name; one with dots is of an instance of a component."""
    instance, dot, _ = name.rpartition(".")
    if not dot:
        return f"declare it with .decl {name}(...)"
    own = [known for known in relations if known.rpartition(".")[0] == instance]
    if own:
        return f"the relations of `{instance}` are {', '.join(f'`{known}`' for known in own)}"
    return f"there is no instance `{instance}`: it needs `.init {instance} = ...`"


def _check_call(call: Call, resolved: Resolved, problems: Problems) -> None:
    if call.name.startswith("@"):
        check_user_call(call, resolved.functors, problems)
        return
    if call.name == CALL or (call.name == NOW and not call.args):
        return
    table_function = TABLE_FUNCTIONS.get(call.name)
    if table_function is not None:
        _check_table_call(call, table_function, problems)
        return
    row = find_functor(call.name, len(call.args))
    if row is None:
        _unknown_functor(call, resolved, problems)
        return
    signature = row.signature
    if not signature.accepts(len(call.args)):
        least = "at least " if signature.variadic else ""
        expected = f"{least}{_count(len(signature.args), 'argument')}"
        message = f"`{call.name}` takes {expected}, but {len(call.args)} given"
        problems.add("wrong-arity", message, Label(call.span))


def _check_table_call(call: Call, row: TableFunction, problems: Problems) -> None:
    if not row.accepts(len(call.args)):
        most = len(row.args)
        expected = f"{most - row.optional} or {_count(most, 'argument')}" if row.optional else _count(most, "argument")
        problems.add("wrong-arity", f"`{call.name}` takes {expected}, but {len(call.args)} given", Label(call.span))


def _unknown_functor(call: Call, resolved: Resolved, problems: Problems) -> None:
    note = CALLED_ELSEWHERE.get(call.name) or suggestion(call.name, written_functors())
    note = note or "a relation is read by a condition of its own: `p(x), y = x + 1`"
    if call.name == NOW:
        note = "`now()`, the round, takes no arguments"
    if call.name == PRINT:
        note = f"`{PRINT}(...)` has no value: it stands beside the conditions of a body"
    if call.name in resolved.relations:
        note = "a relation is not a function: bind its column with an atom in the body, or use an aggregate"
    start = problems.source.text.find(call.name, call.span.start)  # behind parentheses that the span takes in
    place = Span(start, start + len(call.name))
    problems.add("unknown-functor", f"there is no functor `{call.name}`", Label(place), notes=[note])

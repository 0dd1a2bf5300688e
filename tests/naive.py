"""A naive bottom-up evaluator over the syntax tree: the oracle that every executor is compared with.

It is slow and short on purpose: strata by naive reachability, every rule over all rows again until nothing changes, a body by
trying every row of every atom. It reads the grammar's tree and nothing of the engine. Values are Python's: int, float, str, a
tuple for a record, None for nil, a `Branch`. Recursion through aggregates (`min`, `max`, or a `count` or `sum` that is compared
with a bound which more rows only make truer) recomputes the stratum from its previous rows until they stay. Relations that do
not keep all of their rows are evaluated iteration by iteration (naive_retention).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from dlog.branch import Branch
from dlog.grammar.syntax import (
    AdtDecl,
    AggregateTerm,
    And,
    Atom,
    Body,
    BranchTerm,
    Call,
    Cast,
    Clause,
    Constraint,
    FunctorDecl,
    Nil,
    Not,
    Number,
    Pragma,
    Program,
    RecordDecl,
    RecordTerm,
    RelationDecl,
    String,
    SubtypeDecl,
    Term,
    Truth,
    UnionDecl,
    Variable,
    Wildcard,
)
from tests.naive_bodies import (
    Goal,
    Ungrounded,
    alternatives,
    free_variables,
    in_order,
    is_known,
    used_relations,
    variables,
    walk,
)
from tests.naive_components import without_components
from tests.naive_functors import (
    BITS,
    CALENDAR,
    DAY,
    DivisionByZero,
    aggregated,
    apply,
    days,
    literal,
    microseconds,
    moment,
    result_type,
    rounded,
)
from tests.naive_generators import is_call, rows_of, without_calls
from tests.naive_retention import Iterations, retentions

USER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "other": lambda x: x ^ 5,
    "near": lambda x, y: int(abs(x - y) < 3),
    "text": lambda x, y: y * (x % 4) + str(x),
    "chain": lambda state, x: (state * 3 + x) % 1009,
    "joined": lambda state, x: f"{state}{x % 7},",
    "last": lambda state, pair: pair if state is None or state[0] != pair[1] else (pair[1], state[0]),
}
"""Those of the functors that random programs call, or aggregate with."""

__all__ = ["DivisionByZero", "NotSettled", "TooBig", "Ungrounded", "evaluate"]

Row = tuple[Any, ...]
Binding = dict[str, Any]
Facts = Mapping[str, Iterable[Row]]


MAX_SUM = 1 << 61
"""Numbers that come up in such a recursion from which on engines may say that they will not stay the same."""
MAX_PASSES = 60
"""Passes after which a recursion through negation or aggregates is taken to have no end."""


class NotSettled(Exception):
    """A row depends on its own negation, or on an aggregate over itself, so that passes go on changing something."""


class TooBig(Exception):
    """The evaluation looked at more rows than its budget allows."""


def evaluate(program: Program, facts: Facts | None = None, budget: int | None = None) -> dict[str, set[Row]]:
    """All relations of the program over the given facts. `budget` bounds the number of rows looked at (`TooBig`)."""
    short = Pragma("word-size", "32") in program.items
    token = BITS.set(32 if short else 64)
    try:
        return _evaluated(program, facts, budget)
    finally:
        BITS.reset(token)


def _evaluated(program: Program, facts: Facts | None, budget: int | None) -> dict[str, set[Row]]:
    evaluation = _Evaluation(without_components(program), facts or {}, budget)
    found = evaluation.run()
    types = evaluation.types
    return {
        name: {tuple(evaluation.shown(v, t) for v, t in zip(row, types[name], strict=True)) for row in rows}
        for name, rows in found.items()
    }


class _Evaluation:
    def __init__(self, program: Program, facts: Facts, budget: int | None) -> None:
        self.names = {i.name: i for i in program.items if isinstance(i, SubtypeDecl | UnionDecl | RecordDecl | AdtDecl)}
        self.branches = {
            b.name: (i.name, [f.type for f in b.fields]) for i in program.items if isinstance(i, AdtDecl) for b in i.branches
        }
        self.functors = {f"@{i.name}": i for i in program.items if isinstance(i, FunctorDecl)}
        decls = [i for i in program.items if isinstance(i, RelationDecl)]
        self.types = {name: [a.type.removesuffix("<>") for a in d.attributes] for d in decls for name in d.names}
        self.types |= {d.names[0]: [*self.types[d.debug_delta.relation], "unsigned"] for d in decls if d.debug_delta}
        self.clauses = [without_calls(i) for i in program.items if isinstance(i, Clause)]
        self.eqrels = {name for d in decls if "eqrel" in d.qualifiers for name in d.names}
        self.retentions = retentions(program)
        self.given = {name: {self.row(row, types) for row in facts.get(name, ())} for name, types in self.types.items()}
        self.rows: dict[str, set[Row]] = {name: set(rows) for name, rows in self.given.items()}
        self.budget = budget
        self.variable_types: dict[str, str] = {}
        self.before: dict[str, set[Row]] = {}
        """What negations and aggregates read of some relations."""
        self.inside = 0
        """In how many of these a body is."""

    # ------------------------------------------------------------------------------------------------------------ types

    def kind(self, type_name: str | None) -> str:
        """number, unsigned, float, symbol or record (an algebraic data type is one, too); what nothing says anything about is a
        number."""
        match self.names.get(type_name or "number"):
            case SubtypeDecl(base=base):
                return self.kind(base)
            case UnionDecl(members=members):
                return self.kind(members[0])
            case RecordDecl() | AdtDecl():
                return "record"
            case _:
                return "number" if type_name is None or type_name in CALENDAR else type_name

    def base(self, type_name: str | None) -> str:
        match self.names.get(type_name or ""):
            case SubtypeDecl(base=base) | UnionDecl(members=(base, *_)):
                return self.base(base)
            case _:
                return type_name or ""

    def fields(self, type_name: str | None, width: int) -> list[str | None]:
        match self.names.get(type_name or ""):
            case RecordDecl(fields=declared):
                return [f.type for f in declared]
            case SubtypeDecl(base=base) | UnionDecl(members=(base, *_)):
                return self.fields(base, width)
            case _:
                return [None] * width

    def enumeration(self, term: Term) -> list[str]:
        """The names of the branches of a term's type, sorted, where none of these has fields."""
        match self.names.get(self.base(self.type_of(term))):
            case AdtDecl(branches=branches) if not any(b.fields for b in branches):
                return sorted(b.name for b in branches)
            case _:
                return []

    def row(self, values: Row, types: list[str]) -> Row:
        return tuple(self.typed(v, t) for v, t in zip(values, types, strict=True))

    def typed(self, value: Any, type_name: str | None) -> Any:
        if isinstance(value, tuple | list) and isinstance(self.names.get(self.base(type_name)), AdtDecl):
            name, *args = value
            return Branch(name, *(self.typed(v, t) for v, t in zip(args, self.branches[name][1], strict=True)))
        if isinstance(value, tuple | list):
            return tuple(self.typed(v, t) for v, t in zip(value, self.fields(type_name, len(value)), strict=True))
        if isinstance(value, datetime):
            return microseconds(value)
        if isinstance(value, date):
            return days(value)
        return rounded(float(value)) if self.kind(type_name) == "float" else value

    def shown(self, value: Any, type_name: str | None) -> Any:
        """A value as dlog gives it: days and microseconds as what Python has for them."""
        match value:
            case Branch(name, args):
                return Branch(name, *(self.shown(v, t) for v, t in zip(args, self.branches[name][1], strict=True)))
            case tuple():
                return tuple(self.shown(v, t) for v, t in zip(value, self.fields(type_name, len(value)), strict=True))
        name = self.base(type_name)
        if name not in CALENDAR:
            return value
        found, years = moment(value, DAY if name == "date" else 1)
        if not 1 <= found.year + years <= 9999:
            return value
        found = found.replace(year=found.year + years)
        return found.date() if name == "date" else found

    def type_of(self, term: Term) -> str | None:
        match term:
            case Variable(name=name):
                return self.variable_types.get(name)
            case Number(text=text):
                return "float" if re.search(r"^[^xX]*[.eE]", text) else "unsigned" if text.endswith("u") else None
            case String():
                return "symbol"
            case Cast(type=type_name):
                return type_name
            case BranchTerm(branch=branch):
                return self.branches[branch][0]
            case AggregateTerm(op=op) if op.startswith("@@"):
                return self.functors[op[1:]].result
            case AggregateTerm(op=op, target=target):
                fixed = {"count": "number", "mean": "float"}.get(op)
                return fixed or (self.type_of(target) if target else None)
            case Call(name=name) if name in self.functors:
                return self.functors[name].result
            case Call(name=name, args=args):
                return result_type(name) or next((t for a in args if (t := self.type_of(a))), None)
            case _:
                return None

    def expect(self, term: Term, type_name: str | None) -> None:
        """Notes the types of the term's variables, given its own."""
        match term:
            case Variable(name=name) if type_name:
                self.variable_types.setdefault(name, type_name)
            case RecordTerm(args=args):
                for arg, t in zip(args, self.fields(type_name, len(args)), strict=True):
                    self.expect(arg, t)
            case BranchTerm(branch=branch, args=args):
                for arg, t in zip(args, self.branches[branch][1], strict=True):
                    self.expect(arg, t)
            case Call(name=name, args=args) if name in self.functors:
                for arg, param in zip(args, self.functors[name].params, strict=True):
                    self.expect(arg, param.type)
            case AggregateTerm(op=op, target=target, init=init) if op.startswith("@@") and target and init:
                for arg, param in zip((init, target), self.functors[op[1:]].params, strict=True):
                    self.expect(arg, param.type)
            case Call(name=name, args=args) if result_type(name) is None:
                for arg in args:
                    self.expect(arg, type_name)
            case _:
                pass

    def infer(self, clause: Clause) -> None:
        """Gives every variable of the clause its type: from the atoms first, then along comparisons until nothing is new."""
        self.variable_types, known = {}, -1
        while known != len(self.variable_types):
            known = len(self.variable_types)
            for node in walk(clause):
                if isinstance(node, Atom):
                    for arg, t in zip(node.args, self.types[node.name], strict=True):
                        self.expect(arg, t)
            for node in walk(clause):
                if isinstance(node, Constraint):
                    t = self.type_of(node.left) or self.type_of(node.right)
                    self.expect(node.left, t)
                    self.expect(node.right, t)

    # ----------------------------------------------------------------------------------------------------------- strata

    def run(self) -> dict[str, set[Row]]:
        for stratum, inner in self.strata():
            if not self.retentions.keys().isdisjoint(stratum):
                Iterations(self, stratum).run()
            elif inner <= {"plain", "min", "max", "bounded"}:
                self.close(stratum, through_aggregate=bool(inner - {"plain"}))
            else:
                self.alternate(stratum)
        return self.rows

    def close(self, stratum: set[str], through_aggregate: bool) -> None:
        """The least fixed point of a stratum."""
        while True:
            before = {name: self.rows[name] for name in stratum}
            derived = self.derive(stratum)
            base = self.given if through_aggregate else before
            self.rows |= {name: self.closed(name, base[name] | derived[name]) for name in stratum}
            if all(self.rows[name] == before[name] for name in stratum):
                return

    def alternate(self, stratum: set[str]) -> None:
        """Least fixed points, one after the other: negations and aggregates read the one before, at first nothing."""
        seen: list[dict[str, set[Row]]] = []
        known = numbers(self.rows.values())
        self.before = {name: set() for name in stratum}
        while True:
            self.rows |= {name: self.closed(name, self.given[name]) for name in stratum}
            self.close(stratum, through_aggregate=False)
            found = {name: self.rows[name] for name in stratum}
            if any(abs(number) >= MAX_SUM for number in numbers(found.values()) - known):
                raise TooBig
            if found == self.before:
                break
            if found in seen or len(seen) == MAX_PASSES:
                raise NotSettled(f"{sorted(stratum)}")
            seen.append(found)
            self.before = found
        self.before = {}

    def closed(self, name: str, rows: set[Row]) -> set[Row]:
        """The rows, and those of an equivalence relation that follow from them."""
        while name in self.eqrels:
            more = {(x, x) for row in rows for x in row} | {(y, x) for x, y in rows}
            more |= {(x, z) for x, y in rows for w, z in rows if w == y}
            if more <= rows:
                break
            self.spend()
            rows = rows | more
        return rows

    def strata(self) -> list[tuple[set[str], set[str]]]:
        """The strongly connected components in order of evaluation, each with how its relations read one another."""
        uses: dict[str, dict[str, set[str]]] = {name: {} for name in self.types}
        for clause in self.clauses:
            for head in clause.heads:
                for name, how in used_relations(clause):
                    uses[head.name].setdefault(name, set()).add(how)
        for name, kept in self.retentions.items():
            for subsumption in kept.subsumptions:
                for read, how in used_relations(subsumption.body):
                    uses[name].setdefault(read, set()).add(how)
            for log in kept.logs:
                uses[name].setdefault(log, set()).add("plain")
                uses[log].setdefault(name, set()).add("plain")
        reach = {name: set(used) for name, used in uses.items()}
        while (further := {n: ys.union(*(reach[y] for y in ys)) for n, ys in reach.items()}) != reach:
            reach = further
        components = {frozenset({n} | {m for m in reach[n] if n in reach[m]}) for n in reach}
        found = []
        for component in sorted(components, key=lambda c: (len({z for n in c for z in reach[n]} | c), min(c))):
            inner = {how for n in component for m, hows in uses[n].items() if m in component for how in hows}
            found.append((set(component), inner))
        return found

    def derive(self, stratum: set[str]) -> dict[str, set[Row]]:
        """One application of all rules of the stratum to the present rows."""
        return self.derived(self.clauses, stratum)

    def derived(self, clauses: Iterable[Clause], stratum: set[str]) -> dict[str, set[Row]]:
        derived: dict[str, set[Row]] = {name: set() for name in stratum}
        for clause in clauses:
            heads = [h for h in clause.heads if h.name in stratum]
            if heads:
                self.infer(clause)
                scope = variables(clause, inside_aggregates=False)
                for binding in self.solutions(clause.body or Truth(True), {}, scope):
                    for head in heads:
                        row = self.values(head.args, self.types[head.name], binding, scope)
                        derived[head.name] |= set() if FAILED in row else {row}
        return derived

    # ----------------------------------------------------------------------------------------------------------- bodies

    def solutions(self, body: Body, binding: Binding, scope: set[str]) -> Iterator[Binding]:
        """One binding for each combination of rows that satisfies the body, alternative after alternative."""
        for goals in alternatives(body):
            yield from self.solve(in_order(goals, set(binding), scope), binding, scope)

    def solve(self, goals: list[Goal], binding: Binding, scope: set[str]) -> Iterator[Binding]:
        if not goals:
            yield binding
            return
        for extended in self.satisfy(goals[0], binding, scope):
            yield from self.solve(goals[1:], extended, scope)

    def satisfy(self, goal: Goal, binding: Binding, scope: set[str]) -> Iterator[Binding]:
        """The extensions of the binding that make the goal true, one for each row in the case of an atom."""
        match goal:
            case Truth(value=True):
                yield binding
            case Truth():
                return
            case Not(body=body):
                self.inside += 1
                found = next(self.solutions(body, binding, scope), None)
                self.inside -= 1
                if found is None:
                    yield binding
            case Constraint(op="=", left=left, right=Call(name=name, args=args) as call) if is_call(call):
                t = self.type_of(left) or self.type_of(call)
                kinds = [t if name == "range" else self.type_of(a) for a in args]
                given = self.values(args, kinds, binding, scope)
                for row in () if FAILED in given else rows_of(name, list(given), self.kind(t)):
                    self.spend()
                    named = left.args if len(row) > 1 and isinstance(left, RecordTerm) else (left,)
                    types = [t if name == "range" else None] * len(named)
                    yield from self.unify(named, types, row[-len(named) :], binding, scope)
            case Constraint(op=op, left=left, right=right):
                t = self.type_of(left) or self.type_of(right)
                unknown = [side for side in (left, right) if not is_known(side, set(binding), scope)]
                if op == "=" and unknown:
                    known = right if unknown == [left] else left
                    yield from self.unify(unknown, [t], (self.value(known, t, binding, scope),), binding, scope)
                    return
                a, b = self.values((left, right), (t, t), binding, scope)
                if a is not FAILED and b is not FAILED and compare(op, a, b):
                    yield binding
            case Atom(name=name, args=args):
                rows = self.before.get(name, self.rows[name]) if self.inside else self.rows[name]
                for row in rows:
                    self.spend()
                    yield from self.unify(args, self.types[name], row, binding, scope)

    def unify(
        self, terms: Iterable[Term], types: Iterable[str | None], values: Row, binding: Binding, scope: set[str]
    ) -> Iterator[Binding]:
        """The binding, extended so that the terms have these values; nothing if that cannot be."""
        bound, computed = dict(binding), []
        todo = list(zip(terms, types, values, strict=True))
        while todo:
            term, t, value = todo.pop()
            match term:
                case _ if value is FAILED:
                    return
                case Wildcard():
                    continue
                case Variable(name=name):
                    if bound.setdefault(name, value) != value:
                        return
                case RecordTerm(args=args):
                    if value is None:
                        return
                    todo.extend(zip(args, self.fields(t, len(args)), value, strict=True))
                case BranchTerm(branch=branch, args=args):
                    if value[0] != branch:
                        return
                    todo.extend(zip(args, self.branches[branch][1], value[1:], strict=True))
                case _:
                    computed.append((term, t, value))
        if all(self.value(term, t, bound, scope) == value for term, t, value in computed):
            yield bound

    def spend(self) -> None:
        if self.budget is not None:
            self.budget -= 1
            if self.budget < 0:
                raise TooBig

    # ------------------------------------------------------------------------------------------------------------ terms

    def values(self, terms: Iterable[Term], types: Iterable[str | None], binding: Binding, scope: set[str]) -> Row:
        return tuple(self.value(term, t, binding, scope) for term, t in zip(terms, types, strict=True))

    def value(self, term: Term, type_name: str | None, binding: Binding, scope: set[str]) -> Any:
        """The value of a term whose variables are bound; an aggregate of nothing may be `FAILED`."""
        match term:
            case Variable(name=name):
                return binding[name]
            case Number(text=text):
                return literal(text, self.kind(type_name or self.type_of(term)))
            case String(value=value):
                return value
            case Nil():
                return None
            case RecordTerm(args=args):
                found = self.values(args, self.fields(type_name, len(args)), binding, scope)
                return FAILED if FAILED in found else found
            case BranchTerm(branch=branch, args=args):
                found = self.values(args, self.branches[branch][1], binding, scope)
                return FAILED if FAILED in found else Branch(branch, *found)
            case Cast(term=inner, type="number") | Call(name="ord", args=(inner,)) if self.enumeration(inner):
                [name] = self.value(inner, None, binding, scope)
                return self.enumeration(inner).index(name)
            case Cast(term=inner, type=t):
                return apply("as", [self.value(inner, self.type_of(inner), binding, scope)], self.kind(t))
            case Call(name=name, args=args) if name in self.functors:
                given = self.values(args, [p.type for p in self.functors[name].params], binding, scope)
                return FAILED if FAILED in given else USER_FUNCTIONS[name[1:]](*given)
            case Call(name=name, args=args):
                common = None if result_type(name) else self.type_of(term) or type_name
                operands = [self.value(a, common or self.type_of(a), binding, scope) for a in args]
                return FAILED if FAILED in operands else apply(name, operands, self.kind(common or result_type(name)))
            case AggregateTerm():
                return self.aggregate(term, binding, scope)
            case _:
                raise NotImplementedError(f"the naive evaluator does not know {term}")

    def folded(
        self, term: AggregateTerm, matches: list[Binding], binding: Binding, scope: set[str], inner_scope: set[str]
    ) -> Any:
        """What a user's functor makes of a first state and the values, one after the other, ascending."""
        state_type, value_type = (p.type for p in self.functors[term.op[1:]].params)
        assert term.init is not None and term.target is not None
        state = self.value(term.init, state_type, binding, scope)
        values = [self.value(term.target, value_type, m, inner_scope) for m in matches]
        for value in sorted((v for v in values if v is not FAILED), key=in_order_of_values):
            state = state if state is FAILED else USER_FUNCTIONS[term.op[2:]](state, value)
        return state

    def aggregate(self, term: AggregateTerm, binding: Binding, scope: set[str]) -> Any:
        """Over all combinations of rows of the body, given the outer variables that it mentions."""
        outer = free_variables(term) & scope
        given = {name: binding[name] for name in outer}
        inner_scope = outer | variables(term.body, inside_aggregates=False) | variables(term.target, inside_aggregates=False)
        self.inside += 1
        matches = list(self.solutions(term.body, given, inner_scope))
        self.inside -= 1
        branches = [variables(And(tuple(goals)), inside_aggregates=False) for goals in alternatives(term.body)]
        if len(branches) > 1 or counts_bindings(term.body):
            shared = set.intersection(*branches) | outer
            matches = [dict(m) for m in {tuple(sorted((n, m[n]) for n in shared)) for m in matches}]
        if term.op == "count" or term.target is None:
            return len(matches)
        if term.op.startswith("@@"):
            return self.folded(term, matches, binding, scope, inner_scope)
        t = self.type_of(term.target)
        values = [v for m in matches if (v := self.value(term.target, t, m, inner_scope)) is not FAILED]
        value = aggregated(term.op, values, self.kind("float" if term.op == "mean" else t))
        return FAILED if value is None else value


def numbers(relations: Iterable[set[Row]]) -> set[int]:
    """The numbers in columns."""
    return {value for rows in relations for row in rows for value in row if isinstance(value, int)}


def in_order_of_values(value: Any) -> Any:
    """A key by which values of one type ascend: nil comes before all records."""
    if value is None:
        return ()
    return (True, *map(in_order_of_values, value)) if isinstance(value, tuple) else value


def counts_bindings(body: Body) -> bool:
    """Souffle counts the distinct bindings of the named variables of a body of several atoms, with a repeated variable or with
    another aggregate or a table function; of one plain atom it counts the rows."""
    goals = next(iter(alternatives(body)))
    atoms = [g for g in goals if isinstance(g, Atom)]
    names = [[n.name for n in walk(a) if isinstance(n, Variable)] for a in atoms]
    repeated = any(len(set(n)) < len(n) for n in names)
    apart = any(isinstance(n, AggregateTerm) or is_call(n) for n in walk(body))
    return len(atoms) > 1 or repeated or apart


FAILED = object()
"""The value of `min`, `max` and `mean` of nothing, and of any term around them: no constraint holds for it."""


def compare(op: str, left: Any, right: Any) -> bool:
    match op:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case "match":
            return re.fullmatch(left, right) is not None
        case "contains":
            return left in right
        case _:
            raise NotImplementedError(f"the naive evaluator does not know the constraint {op}")

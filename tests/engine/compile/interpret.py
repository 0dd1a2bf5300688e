"""What a typed program means: a slow evaluator over Python sets that also checks the promises of rules.py while it runs.

Values are Python's (a tuple for a record, None for nil, a `Branch`), functors those of the naive evaluator over the syntax
tree, so that the two can be compared: what resolving, typing and normalizing make of a program means what the text says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dlog.branch import Branch
from dlog.engine.ir.rules import (
    PAD,
    Aggregate,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Literal,
    Negation,
    Program,
    Record,
    Rule,
    Term,
    Unpack,
    Variable,
)
from tests.naive import compare
from tests.naive_functors import aggregated, apply, result_type
from tests.naive_generators import rows_of

Row = tuple[Any, ...]
Env = dict[int, Any]


def run(program: Program, facts: Mapping[str, Sequence[Row]]) -> dict[str, set[Row]]:
    rows = {name: {tuple(r) for r in facts.get(name, ())} for name in program.relations}
    for name, found in program.facts.items():
        rows[name] |= {tuple(value(t, {}) for t in row) for row in found}
    for stratum in program.strata:
        given = {r: set(rows[r]) for r in stratum.relations}
        while True:
            new = {r: set(given[r]) for r in stratum.relations}
            for rule in stratum.rules:
                new[rule.head.relation] |= derive(rule, rows)
            for name in stratum.relations:
                if name not in program.lattices:
                    new[name] |= rows[name]
            if all(new[r] == rows[r] for r in stratum.relations):
                break
            rows |= new
            assert stratum.recursive or all(new[r] == derive_all(stratum.rules, given, rows)[r] for r in new)
    return rows


def derive_all(rules: Sequence[Rule], given: dict[str, set[Row]], rows: dict[str, set[Row]]) -> dict[str, set[Row]]:
    made = {r: set(found) for r, found in given.items()}
    for rule in rules:
        made[rule.head.relation] |= derive(rule, rows)
    return made


def derive(rule: Rule, rows: dict[str, set[Row]]) -> set[Row]:
    return {tuple(value(t, env) for t in rule.head.args) for env in solve(list(rule.body), {}, rows)}


def solve(body: list[Literal], env: Env, rows: dict[str, set[Row]]) -> Iterator[Env]:
    """Every way to make the literals hold, a literal being taken as soon as it can be."""
    if not body:
        yield env
        return
    literal = next((x for x in body if is_ready(x, env)), None)
    assert literal is not None, f"nothing can be evaluated next: {body}"
    rest = [x for x in body if x is not literal]
    for new in hold(literal, env, rows):
        yield from solve(rest, new, rows)


def variables(term: Term | None) -> set[int]:
    match term:
        case Variable(id=i):
            return {i}
        case Functor(args=args) | Record(args=args):
            return set().union(*map(variables, args))
        case _:
            return set()


def is_ready(literal: Literal, env: Env) -> bool:
    match literal:
        case Atom():
            return True
        case Negation(atom=atom):
            return all(v in env for a in atom.args for v in variables(a))
        case Compare(op=op, left=left, right=right):
            missing = (variables(left) | variables(right)) - set(env)
            one = isinstance(left, Variable) and left.id in missing and variables(right) <= set(env)
            return not missing or (op == "=" and one)
        case Unpack(value=v):
            return v.id in env
        case Generator(args=args):
            return all(v in env for a in args for v in variables(a))
        case Aggregate(outer=outer):
            return all(v.id in env for v in outer)


def hold(literal: Literal, env: Env, rows: dict[str, set[Row]]) -> Iterator[Env]:
    match literal:
        case Atom(relation=relation, args=args):
            for row in rows[relation]:
                yield from match_row(args, row, env)
        case Negation(atom=Atom(relation=relation, args=args)):
            if not any(True for row in rows[relation] for _ in match_row(args, row, env)):
                yield env
        case Compare(op="=", left=Variable(id=i), right=right) if i not in env:
            yield env | {i: value(right, env)}
        case Compare(op=op, left=left, right=right):
            positive = compare(op.removeprefix("not_"), value(left, env), value(right, env))
            if positive != op.startswith("not_"):
                yield env
        case Unpack(value=Variable(id=i), type=name, fields=fields) if name.startswith("$"):
            if env[i].name == name[1:]:
                yield from match_row([f for f in fields[1:] if f != PAD], env[i].args, env)
        case Unpack(value=Variable(id=i), fields=fields):
            if env[i] is not None:
                yield from match_row(fields, env[i], env)
        case Generator(function=name, args=args, results=results, kind=kind):
            for made in rows_of(name, [value(a, env) for a in args], kind.value):
                yield from match_row(results, made, env)
        case Aggregate(result=Variable(id=i)):
            assert i not in env, "the result of an aggregate is bound by the aggregate"
            yield from ({**env, i: result} for result in aggregate(literal, env, rows))


def match_row(args: Sequence[Term | None], row: Row, env: Env) -> Iterator[Env]:
    new = dict(env)
    for arg, found in zip(args, row, strict=True):
        match arg:
            case None:
                pass
            case Variable(id=i) if i not in new:
                new[i] = found
            case Variable() | Constant():
                if value(arg, new) != found:
                    return
            case _:
                raise AssertionError("arguments of body atoms are variables and constants")
    yield new


def aggregate(literal: Aggregate, env: Env, rows: dict[str, set[Row]]) -> list[Any]:
    outer = {v.id: env[v.id] for v in literal.outer}
    alternatives = [list(solve(list(body), outer, rows)) for body in literal.alternatives]
    if len(alternatives) == 1 and not counts_bindings(literal.alternatives[0]):
        matches = alternatives[0]
    else:
        shared = set.intersection(*(mentioned(body) for body in literal.alternatives))
        keys = {tuple(sorted((v, e[v]) for v in shared)): e for found in alternatives for e in found}
        matches = list(keys.values())
    if literal.op == "count":
        return [len(matches)]
    assert literal.target is not None
    values = [value(literal.target, m) for m in matches]
    found = aggregated(literal.op, values, literal.kind.value)
    return [] if found is None else [found]


def counts_bindings(body: Sequence[Literal]) -> bool:
    """Whether matches are the distinct bindings of the named variables: of a body of several atoms, with a repeated variable
    with another aggregate or a generator."""
    atoms = [x for x in body if isinstance(x, Atom)]
    names = [[a for a in x.args if isinstance(a, Variable)] for x in atoms]
    repeated = any(len(set(n)) < len(n) for n in names)
    return len(atoms) > 1 or repeated or any(isinstance(x, Aggregate | Generator) for x in body)


def mentioned(body: Sequence[Literal]) -> set[int]:
    found: set[int] = set()
    for literal in body:
        match literal:
            case Atom(args=args) | Negation(atom=Atom(args=args)):
                found |= set().union(*map(variables, args))
            case Compare(left=left, right=right):
                found |= variables(left) | variables(right)
            case Unpack(value=v, fields=fields):
                found |= {v.id}.union(*map(variables, fields))
            case Generator(args=args, results=results):
                found |= set().union(*map(variables, (*args, *results)))
            case Aggregate(result=result):
                found |= {result.id}
    return found


def value(term: Term, env: Env) -> Any:
    match term:
        case Variable(id=i):
            return env[i]
        case Constant(value=v):
            return v
        case Functor(op="neg", args=(arg,), kind=kind):
            return apply("-", [value(arg, env)], kind.value)
        case Functor(op=op, args=args, kind=kind, result=result):
            return apply(op, [value(a, env) for a in args], (result if result_type(op) else kind).value)
        case Record(type=name, args=args) if name.startswith("$"):
            return Branch(name[1:], *(value(a, env) for a in args[1:] if a != PAD))
        case Record(args=args):
            return tuple(value(a, env) for a in args)

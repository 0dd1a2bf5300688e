"""explain: a scope as text for people: what it computes, the indexes its paths share, and each path drawn as a list of steps.

    stratum path, recursive
      arrangements
        edge[0]                 1 path
      loop: path(x, z) :- path(x, y), edge(y, z).
        changes path(x, y)
        join edge[0](y, z)      ~3 rows each
        insert path(x, z)

`edge[0](y, z)` is a lookup by column 0; `[0; 1]` says that the rows of one key are sorted by column 1,
`[0 | node[0]]` that it has rows only with values which a later step finds in column 0 of `node`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

from dlog.engine.ir.functors import is_infix
from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Arrangement,
    Bind,
    Connection,
    Extend,
    Filter,
    Fold,
    Generate,
    HalfJoin,
    Insert,
    LookUp,
    Map,
    Model,
    Nested,
    Path,
    Scan,
    Scope,
    SemiJoin,
    Step,
    Unit,
    UnpackRecord,
    View,
)
from dlog.engine.ir.rules import Constant, Functor, Lattice, Program, Record, Rule, Term, Variable, printed_types
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS, is_aggregate
from dlog.engine.plan.arities import Arities

NOTES_AT = 44


def explain(scope: Scope, program: Program) -> str:
    """The scope, drawn; the same scope always gives the same text."""
    return _scope_text(scope, program, rules_of(scope, program))


def _scope_text(scope: Scope, program: Program, rules: Sequence[Rule]) -> str:
    arities = Arities(program, scope)
    lines = [f"{heading(scope)}{_over(scope.model)}"]
    lines += [f"  {x.relation} {_lattice_text(x)}" for x in scope.lattices]
    lines += [f"  {x.classes} has the classes of {x.pairs}: united, after each iteration" for x in scope.unions]
    if scope.connection is not None:
        lines.append(f"  {connected(scope.connection)}")
    lines += [f"  {_folds(fold)}" for fold in scope.folds]
    if shared := _arrangements(scope):
        lines += ["  arrangements", *(with_note(f"    {a}", n) for a, n in shared)]
    for title, paths in _parts(scope):
        for path in paths:
            drawer = Drawer(arities, rules[path.rule].variables if rules else (), scope)
            lines.append(f"  {title}: {' '.join(scope.rules[path.rule].split())}")
            lines += [f"    {line}" for line in drawer.path(path)]
    for nested in scope.nested:
        lines += _nested(nested, program, rules)
    return "\n".join(lines) + "\n"


def rules_of(scope: Scope, program: Program) -> tuple[Rule, ...]:
    """The rules that the scope's paths evaluate, if the program has its stratum."""
    stratum = program.stratum_of.get(scope.relations[0]) if scope.relations else None
    return stratum.rules if stratum is not None and stratum.relations == scope.relations else ()


def heading(scope: Scope) -> str:
    """The heading of the scope."""
    return f"stratum {', '.join(scope.relations)}{', recursive' if scope.variables else ''}"


def _over(model: Model) -> str:
    return {"static": "", "total": ", over rounds", "partial": ", over rounds and iterations"}[model]


def _lattice_text(lattice: Lattice) -> str:
    if lattice.dominance is None:
        return f"sums what column {lattice.column} gets, and changes where that exceeds column {lattice.column - 1}"
    return f"keeps the {lattice.dominance.name.lower()} value of column {lattice.column}"


def _folds(fold: Fold) -> str:
    per = "" if fold.groups is None else f", for each row of {fold.groups}"
    return f"{fold.relation} is what @@{fold.functor} makes of the values in {fold.matches}{per}"


def connected(connection: Connection) -> str:
    edges = ", ".join(f"{name}({left}, {right})" for name, left, right in connection.edges)
    return f"{connection.relation} has one value per component of {edges}: united, where keys are dense, in the loop's place"


def _nested(nested: Nested, program: Program, rules: Sequence[Rule]) -> Iterator[str]:
    """An aggregate for bindings as they come, with its paths."""
    yield f"  {nested.name} gives {nested.result} for the rows of {nested.groups.relation}, block by block"
    yield from (f"  {line}" for line in _scope_text(nested.scope, program, rules).splitlines()[1:])


def _parts(scope: Scope) -> Iterator[tuple[str, tuple[Path, ...]]]:
    yield from zip(titled(scope), (*scope.stages, scope.enter, scope.loop), strict=True)


def titled(scope: Scope) -> list[str]:
    """The titles of a scope's parts: its stages, what enters, the loop."""
    return [*(f"stage {number}" for number in range(1, len(scope.stages) + 1)), "enter", "loop"]


def _arrangements(scope: Scope) -> list[tuple[str, str]]:
    """Each arrangement and how many paths read it, by name."""
    users: Counter[str] = Counter()
    for _, paths in _parts(scope):
        for path in paths:
            users.update({_index(a) for step in path.steps for a in _read_arrangements(step)})
    return [(name, f"{n} path{'s' if n > 1 else ''}") for name, n in sorted(users.items())]


def _read_arrangements(step: Step) -> tuple[Arrangement, ...]:
    match step:
        case HalfJoin(arrangement=arrangement):
            return (arrangement,)
        case Extend(proposers=proposers):
            return tuple(p.arrangement for p in proposers)
        case SemiJoin() | AntiJoin() | Filter() | Map() | UnpackRecord() | Generate() | LookUp():
            return ()


def _index(arrangement: Arrangement) -> str:
    order = "; " + ", ".join(map(str, arrangement.order)) if arrangement.order else ""
    only = f" | {arrangement.only.relation}[{arrangement.only.of}]" if arrangement.only else ""
    return f"{arrangement.relation}[{', '.join(map(str, arrangement.key))}{order}{only}]"


def with_note(line: str, note: str) -> str:
    """A line with a remark in the right column."""
    return f"{line:<{NOTES_AT}} {note}" if note else line


def _at(view: View) -> str:
    return "" if view == "all" else f" at {view}"


def _each(rows: float) -> str:
    return f"~{rows:.2g} rows each" if rows < 1000 else f"~{rows:,.0f} rows each"


def _scanning(seed: Scan) -> str:
    if not seed.changes:
        return "scan"
    return "changes not" if seed.negated else "changes missing" if seed.missing else "changes"


class Drawer:
    """Draws the paths of one rule with the names of its variables."""

    def __init__(self, arities: Arities, names: Sequence[str], scope: Scope) -> None:
        self.arities = arities
        self.names = names
        self.operations = {r.relation: r.op for r in scope.reductions}

    def seed(self, seed: Scan | Unit) -> str:
        match seed:
            case Unit():
                return "once"
            case Scan(relation=relation, binds=binds, sorted_by=order):
                by = f" sorted by {', '.join(map(str, order))}" if order else ""
                return f"{_scanning(seed)} {self.atom(relation, binds)}{by}"
            case _:
                assert_never(seed)

    def path(self, path: Path) -> Iterator[str]:
        yield self.seed(path.seed)
        for step in path.steps:
            yield self.step(step)
        notes = ["an iteration later"] if path.advance else []
        notes += ["small values first"] if path.delayed != "no" else []
        for sink in path.sinks:
            yield with_note(self.sink(sink), ", ".join(notes))

    def sink(self, sink: Insert | Accumulate) -> str:
        match sink:
            case Insert(relation=relation, terms=terms, weight=weight) if weight is not None:
                line = f"weigh {relation}({self.terms(terms)}) by {self.term(weight)}"
                return with_note(line, "above its last column it holds")
            case Insert(relation=relation, terms=terms, distinct=distinct):
                return with_note(f"insert {relation}({self.terms(terms)})", "" if distinct else "no row twice")
            case Accumulate(relation=relation, key=key, value=value):
                what = self.operations.get(relation, "") + (f" {self.term(value)}" if value is not None else "")
                return f"accumulate {relation}[{self.terms(key)}] with {what}"
            case _:
                assert_never(sink)

    def step(self, step: Step) -> str:
        match step:
            case HalfJoin(arrangement=arrangement, key=key, binds=binds, view=view, rows=rows):
                return with_note(f"join {self.lookup(arrangement, key, binds)}{_at(view)}", _each(rows))
            case Extend(variable=variable, proposers=proposers, rows=rows):
                found = [self.lookup(p.arrangement, p.key, ((p.column, variable),)) + _at(p.view) for p in proposers]
                return with_note(f"extend {self.name(variable)} by {' and '.join(found)}", _each(rows))
            case SemiJoin(relation=relation, args=args, view=view):
                return f"if {relation}({self.terms(args)}){_at(view)}"
            case AntiJoin(relation=relation, args=args, view=view):
                return f"if not {relation}({self.terms(args)}){_at(view)}"
            case Filter(compare=compare):
                return f"if {self.term(compare.left)} {compare.op} {self.term(compare.right)}"
            case Map(variable=variable, term=term):
                return f"let {self.name(variable)} = {self.term(term)}"
            case UnpackRecord(variable=variable, type=type, binds=binds):
                return f"unpack {self.name(variable)} as {type}: {', '.join(f'{f} = {self.name(v)}' for f, v in binds)}"
            case Generate(function=function, args=args, binds=binds):
                width = 1 if is_aggregate(function) else len(TABLE_FUNCTIONS[function].columns)
                names = [self.name(dict(binds)[c]) if c in dict(binds) else "_" for c in range(width)]
                shown = names[0] if width == 1 else f"[{', '.join(names)}]"
                return f"generate {shown} = {function}({self.terms(args)})"
            case LookUp(relation=relation, key=key, variable=variable, default=default, view=view):
                otherwise = "" if default is None else f" or {default}"
                return f"let {self.name(variable)} = {relation}[{self.terms(key)}]{otherwise}{_at(view)}"
            case _:
                assert_never(step)

    def name(self, variable: int) -> str:
        return self.names[variable] if variable < len(self.names) else f"#{variable}"

    def term(self, term: Term | None) -> str:
        match term:
            case None:
                return "_"
            case Variable(id=i):
                return self.name(i)
            case Constant(value=value):
                return "nil" if value is None else f'"{value}"' if isinstance(value, str) else str(value)
            case Functor(op=op, args=(left, right)) if is_infix(op):
                return f"({self.term(left)} {op} {self.term(right)})"
            case Functor(op=op, args=args):
                return f"{op if printed_types(op) is None else 'print'}({self.terms(args)})"
            case Record(args=args):
                return f"[{self.terms(args)}]"
            case _:
                assert_never(term)

    def terms(self, terms: Sequence[Term | None]) -> str:
        return ", ".join(self.term(t) for t in terms)

    def atom(self, relation: str, binds: tuple[Bind, ...]) -> str:
        bound = {c: self.name(v) for c, v in binds}
        return f"{relation}({', '.join(bound.get(c, '_') for c in range(self.arities[relation]))})"

    def lookup(self, arrangement: Arrangement, key: Sequence[Term], binds: tuple[Bind, ...]) -> str:
        args = {c: self.name(v) for c, v in binds} | {c: self.term(t) for c, t in zip(arrangement.key, key, strict=True)}
        all_args = ", ".join(args.get(c, "_") for c in range(self.arities[arrangement.relation]))
        return f"{_index(arrangement)}({all_args})"

"""Declared types: kinds, subtypes, unions, equivalence types, records, algebraic data types.

`TypeTable.types` has every declared name, the four primitive ones, and `date` and `timestamp`. An equivalence type of a record
is that record (one table of values), so its entry is the record's own `Type`; and so are a subtype and an equivalence type of
an algebraic data type. The branches of algebraic data types are among them as `$Branch`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never, cast

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.ir.kinds import NUMERIC
from dlog.engine.ir.rules import Domain, Kind, Type
from dlog.grammar.source import Span
from dlog.grammar.syntax import AdtDecl, Attribute, Branch, RecordDecl, SubtypeDecl, UnionDecl

TypeDecl: TypeAlias = SubtypeDecl | UnionDecl | RecordDecl | AdtDecl

PRIMITIVES = {k.value: Type(k.value, k) for k in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL)}
CALENDAR = {d.value: Type(d.value, Kind.NUMBER, domain=d) for d in (Domain.DATE, Domain.TIMESTAMP)}
"""Subtypes of `number` that need no declaration. Souffle does not have them: a program may declare others of these names."""


class TypeTable:
    """Answers what a type name means and which types are below which."""

    def __init__(self, short: bool = False) -> None:
        self.short = short
        """Whether numbers have 32 bits."""
        self.types: dict[str, Type] = dict(PRIMITIVES)
        if short:
            self.types |= {n: replace(t, domain=Domain.SHORT) for n, t in PRIMITIVES.items() if t.kind in NUMERIC}
        self.parents: dict[str, str] = {}
        """Subtype to base."""
        self.members: dict[str, tuple[str, ...]] = {}
        """Union to members, at least two."""
        self.same: dict[str, str] = {}
        """Equivalence type to what it stands for."""
        self.branches: dict[str, tuple[str, Branch]] = {}
        """The algebraic data type of each branch, and how it is declared."""
        self.narrowed = False
        """Whether there are subtypes of algebraic data types, of which a branch alone is none."""
        self._below: dict[tuple[str, str], bool] = {}

    def canonical(self, name: str) -> str:
        while name in self.same:
            name = self.same[name]
        return name

    def is_subtype(self, lower: str, upper: str) -> bool:
        """Whether every value of `lower` is one of `upper`, as declared."""
        key = (self.canonical(lower), self.canonical(upper))
        found = self._below.get(key)
        if found is None:
            found = self._below[key] = self._is_subtype(*key)
        return found

    def _is_subtype(self, lower: str, upper: str) -> bool:
        if lower == upper:
            return True
        if lower in self.members:
            return all(self.is_subtype(m, upper) for m in self.members[lower])
        if upper in self.members and any(self.is_subtype(lower, m) for m in self.members[upper]):
            return True
        return lower in self.parents and self.is_subtype(self.parents[lower], upper)

    def common(self, left: str, right: str) -> frozenset[str]:
        """The greatest types below both: empty where no value can be in both."""
        left, right = self.canonical(left), self.canonical(right)
        if self.is_subtype(left, right):
            return frozenset({left})
        if self.is_subtype(right, left):
            return frozenset({right})
        if left in self.members:
            return frozenset().union(*(self.common(m, right) for m in self.members[left]))
        if right in self.members:
            return frozenset().union(*(self.common(left, m) for m in self.members[right]))
        return frozenset()


def resolve_types(decls: list[TypeDecl], problems: Problems, short: bool = False) -> TypeTable:
    """Check the type declarations and give each name its meaning. After an error a type still gets some meaning (number), so
    that later findings are not its echo; the stage fails anyway."""
    return _Resolver(decls, problems, short).run()


class _Resolver:
    def __init__(self, decls: list[TypeDecl], problems: Problems, short: bool) -> None:
        self.problems = problems
        self.table = TypeTable(short)
        self.decls: dict[str, TypeDecl] = {}
        for decl in decls:
            self._enter(decl)
        for name, found in CALENDAR.items():
            if name not in self.decls and not (short and found.domain is Domain.TIMESTAMP):
                self.table.types[name] = found
                self.table.parents[name] = Kind.NUMBER.value
        self.open: list[str] = []

    def _enter(self, decl: TypeDecl) -> None:
        if decl.name in PRIMITIVES:
            self.problems.add("redefined-type", f"`{decl.name}` is a predefined type", Label(decl.span))
        elif decl.name in self.decls:
            first = Label(self.decls[decl.name].span, "first declared here")
            self.problems.add("duplicate-type", f"type `{decl.name}` is declared twice", Label(decl.span), first)
        else:
            self.decls[decl.name] = decl

    def run(self) -> TypeTable:
        for decl in self.decls.values():
            self._resolve(decl)
        for decl in self.decls.values():
            if isinstance(decl, RecordDecl):
                self._check_fields(decl)
            elif isinstance(decl, AdtDecl):
                for branch in decl.branches:
                    self._check_branch(decl, branch)
        return self.table

    def _resolve(self, decl: TypeDecl) -> Type:
        known = self.table.types.get(decl.name)
        if known is not None:
            return known
        if decl.name in self.open:
            cycle = " -> ".join([*self.open[self.open.index(decl.name) :], decl.name])
            self.problems.add("cyclic-type", f"type `{decl.name}` is defined by itself", Label(decl.span), notes=[cycle])
            return self._remember(Type(decl.name, Kind.NUMBER))
        self.open.append(decl.name)
        match decl:
            case SubtypeDecl():
                found = self._subtype(decl)
            case UnionDecl():
                found = self._union(decl)
            case RecordDecl():
                found = Type(decl.name, Kind.RECORD, tuple((f.name, f.type) for f in decl.fields))
            case AdtDecl():
                found = self._adt(decl)
            case _:
                assert_never(decl)
        self.open.pop()
        return self.table.types.get(decl.name) or self._remember(found, decl.name)

    def _remember(self, found: Type, name: str = "") -> Type:
        self.table.types[name or found.name] = found
        return found

    def _named(self, name: str, span: Span, where: str) -> Type | None:
        if name in self.table.types and name not in self.decls:
            return self.table.types[name]
        if name in self.decls:
            return self._resolve(self.decls[name])
        note = suggestion(name, [*PRIMITIVES, *CALENDAR, *(d for d in self.decls if d not in self.open[-1:])])
        self.problems.add("unknown-type", f"unknown type `{name}` in {where}", Label(span), notes=[note])
        return None

    def _subtype(self, decl: SubtypeDecl) -> Type:
        base = self._named(decl.base, decl.span, f"the base of `{decl.name}`")
        if base is None:
            return Type(decl.name, Kind.NUMBER)
        what = self._underived(decl.base, base)
        if what:
            message = f"`{decl.name}` cannot be a subtype of the {what} type `{decl.base}`"
            notes = ["subtypes are of primitive types or their subtypes"]
            self.problems.add("bad-subtype", message, Label(decl.span), notes=notes)
        else:
            self.table.parents[decl.name] = decl.base
            self.table.narrowed |= bool(base.branches)
        return base if base.branches else replace(base, name=decl.name)

    def _underived(self, name: str, base: Type) -> str:
        if base.kind is Kind.RECORD and not base.branches:
            return "record"
        return "union" if self.table.canonical(name) in self.table.members else ""

    def _union(self, decl: UnionDecl) -> Type:
        members = [(m, self._named(m, decl.span, f"the definition of `{decl.name}`")) for m in decl.members]
        if any(t is None for _, t in members):
            return Type(decl.name, Kind.NUMBER)
        types = [cast(Type, t) for _, t in members]
        if len(types) == 1:
            self.table.same[decl.name] = decl.members[0]
            only = types[0]
            return only if only.kind is Kind.RECORD else replace(only, name=decl.name)
        kinds = {(t.kind, t.domain) for t in types}
        if len(kinds) > 1 or types[0].kind is Kind.RECORD:
            shown = ", ".join(f"`{m}` is {_sort(t)}" for (m, _), t in zip(members, types, strict=True))
            sorts = "algebraic data types" if types[0].branches else "records"
            message = f"union `{decl.name}` mixes representations" if len(kinds) > 1 else f"union `{decl.name}` is of {sorts}"
            notes = [shown, "members of a union have the same primitive base"]
            self.problems.add("bad-union", message, Label(decl.span), notes=notes)
        else:
            self.table.members[decl.name] = decl.members
        return Type(decl.name, types[0].kind, domain=types[0].domain)

    def _adt(self, decl: AdtDecl) -> Type:
        """The type, whose branches become types beside it. Tags are in the order of the branches' names, as in Souffle."""
        width = max(len(branch.fields) for branch in decl.branches)
        number = Kind.NUMBER.value
        names = sorted({branch.name for branch in decl.branches})
        for branch in decl.branches:
            own = tuple((f.name, f.type) for f in branch.fields)
            fields = (("", number), *own, *((("", number),) * (width - len(own))))
            found = Type(f"${branch.name}", Kind.RECORD, fields, adt=decl.name, arity=len(own))
            self.table.types.setdefault(found.name, found)
        return Type(decl.name, Kind.RECORD, (("", number),) * (width + 1), tuple(f"${name}" for name in names))

    def _check_branch(self, decl: AdtDecl, branch: Branch) -> None:
        first = self.table.branches.get(branch.name)
        if first is None:
            self.table.branches[branch.name] = (decl.name, branch)
        else:
            labels = (Label(branch.span), Label(first[1].span, f"first declared here, in `{first[0]}`"))
            notes = ["the name of a branch alone says which type it is of"]
            self.problems.add("duplicate-branch", f"branch `{branch.name}` is declared twice", *labels, notes=notes)
        for field in branch.fields:
            self._named(field.type, _type_span(field), f"field `{field.name}` of the branch `{branch.name}`")

    def _check_fields(self, decl: RecordDecl) -> None:
        seen: dict[str, Attribute] = {}
        for field in decl.fields:
            self._named(field.type, _type_span(field), f"field `{field.name}` of `{decl.name}`")
            if field.name in seen:
                labels = (Label(field.span), Label(seen[field.name].span, "first declared here"))
                self.problems.add("duplicate-field", f"field `{field.name}` is declared twice in `{decl.name}`", *labels)
            seen.setdefault(field.name, field)


def _sort(found: Type) -> str:
    if found.is_calendar:
        return found.domain.value
    return "an algebraic data type" if found.branches else found.kind.value


def _type_span(attribute: Attribute) -> Span:
    return attribute.type_span if attribute.type_span.start >= 0 else attribute.span

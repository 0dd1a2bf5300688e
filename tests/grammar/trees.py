"""Hypothesis strategies for syntax trees that a text can say: every node, every nesting, no meaning."""

from __future__ import annotations

from hypothesis import strategies as st

from dlog.grammar import syntax as s
from dlog.grammar.operators import BINDING, PREFIX
from dlog.grammar.words import FUNCTORS, QUALIFIERS, STORAGE

names = st.sampled_from(["x", "Y", "edge", "?v", "_t", "__", "a_1", "counts", "landing", "e5", "u", "decl", "plan"])
# As in Souffle, `.decl` and a space is a directive even behind a name: no part of a qualified name is such a word.
qualified = names | st.tuples(names, st.sampled_from(["x", "path", "_1", "Types"])).map(".".join)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.sampled_from(
    ["0", "7", "42u", "0x1F", "0b101", "0xau", "1.5", "0.25e-3", "18446744073709551615u", "1_000", "0xf_fu", "1e-3", "1_0.5E6"]
)


def few(strategy: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


terms = st.deferred(lambda: st.one_of(_leaves, _leaves, _leaves, _compounds))
bodies = st.deferred(lambda: st.one_of(_literals, _literals, _compound_bodies))

_leaves = st.one_of(
    st.builds(s.Variable, names),
    st.just(s.Wildcard()),
    st.builds(s.Number, numbers),
    st.builds(s.String, texts),
    st.just(s.Nil()),
    st.just(s.Counter()),
)
_operations = st.one_of(
    st.builds(s.Call, st.sampled_from(sorted(BINDING)), st.tuples(terms, terms)),
    st.builds(s.Call, st.sampled_from(sorted(PREFIX)), st.tuples(terms)),
)
_compounds = st.one_of(
    _operations,
    _operations.flatmap(lambda o: st.builds(s.Call, st.sampled_from(sorted(BINDING)), st.tuples(st.just(o), _operations))),
    st.builds(s.RecordTerm, few(terms)),
    st.builds(s.BranchTerm, qualified, few(terms)),
    st.builds(s.Call, st.sampled_from(sorted(FUNCTORS)) | names, few(terms)),
    st.builds(s.Call, st.sampled_from(["min", "max"]), few(terms, 2)),
    st.builds(s.Call, names.map("@{}".format), few(terms)),
    st.builds(s.Cast, terms, qualified),
    st.builds(s.AggregateTerm, st.just("count"), st.none(), bodies),
    st.builds(s.AggregateTerm, st.sampled_from(["sum", "min", "max", "mean"]), terms, bodies),
    st.builds(s.AggregateTerm, names.map("@@{}".format), st.none() | terms, bodies, terms),
)
_literals = st.one_of(
    st.builds(s.Atom, qualified, few(terms)),
    st.builds(s.Atom, qualified, few(terms), event=st.just(True)),
    st.builds(s.Constraint, st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "match", "contains"]), terms, terms),
    st.builds(s.Truth, st.booleans()),
)
_compound_bodies = st.one_of(st.builds(s.Not, bodies), st.builds(s.And, few(bodies, 2)), st.builds(s.Or, few(bodies, 2)))

atoms = st.builds(s.Atom, qualified, few(terms))

small = st.integers(0, 9)
plans = st.builds(s.ExecutionPlan, few(st.tuples(small, few(small)), 1))
clauses = st.one_of(
    st.builds(s.Clause, st.tuples(atoms)),
    st.builds(s.Clause, few(atoms, 1), bodies, st.none() | plans),
    st.builds(s.Subsumption, atoms, atoms, bodies, st.none() | plans),
)

attributes = st.builds(s.Attribute, names, qualified)
attribute_lists = few(attributes)
components = st.builds(s.ComponentType, names, few(names))
values = st.one_of(texts, names, st.integers(0, 99).map(str), st.sampled_from(["true", "false", "count"]))
_said = st.sampled_from(["retract(original)", "retract(now)", "history(7)"])
storages = st.builds(
    lambda words, said: (*sorted(words), *said),
    st.sets(st.sampled_from(sorted(QUALIFIERS - STORAGE)), max_size=3),
    few(_said, 0, 1),
)
keys = st.builds(s.FunctionalDependency, few(names, 1))

types = st.one_of(
    st.builds(s.SubtypeDecl, names, qualified),
    st.builds(s.UnionDecl, names, few(qualified, 1)),
    st.builds(s.RecordDecl, names, attribute_lists),
    st.builds(s.AdtDecl, names, few(st.builds(s.Branch, names, attribute_lists), 1)),
)
directives = st.builds(
    s.Directive,
    st.sampled_from(["input", "output", "printsize", "limitsize"]),
    few(qualified, 1),
    few(st.tuples(names, values)),
)
relations = st.builds(
    s.RelationDecl,
    few(names, 1),
    few(attributes | st.builds(s.Attribute, names, qualified.map("{}<>".format))),
    storages,
    few(keys),
)
functors = st.builds(
    s.FunctorDecl, names, few(st.builds(s.Attribute, names | st.just(""), qualified)), qualified, st.booleans()
)
pragmas = st.builds(s.Pragma, texts, texts)
lattices = st.builds(s.LatticeDecl, names, few(st.tuples(names, terms), 1))
inits = st.builds(s.ComponentInit, names, components)

component_items = st.one_of(clauses, relations, types, directives, inits, lattices, st.builds(s.Override, names))
component_decls = st.recursive(
    st.builds(s.ComponentDecl, components, few(components), few(component_items)),
    lambda inner: st.builds(s.ComponentDecl, components, few(components), few(component_items | inner)),
    max_leaves=2,
)
items = st.one_of(clauses, relations, types, directives, functors, pragmas, lattices, inits, component_decls)
programs = st.builds(s.Program, few(items, 0, 4))

"""The reserved words of the dialect: no relation, variable, type or attribute may have such a name."""

from __future__ import annotations

STORAGE = frozenset({"brie", "btree", "btree_delete", "eqrel"})
QUALIFIERS = STORAGE | {"input", "output", "printsize", "overridable", "inline", "no_inline", "magic", "no_magic"}
AGGREGATES = frozenset({"count", "sum", "min", "max", "mean", "bit_xor"})
# Souffle's, and no others: what dlog has besides is a name like any other, which relations may have, too.
FUNCTORS = frozenset(
    {"cat", "ord", "range", "strlen", "substr", "to_float", "to_number", "to_string", "to_unsigned"}
    | {"itof", "itou", "utoi", "utof", "ftoi", "ftou", "recursive_iteration_cnt"}
)
WORD_OPERATORS = frozenset({"land", "lor", "lxor", "lnot", "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru"})
RESERVED = (
    QUALIFIERS
    | AGGREGATES
    | FUNCTORS
    | WORD_OPERATORS
    | {"match", "contains", "true", "false", "nil", "as", "autoinc", "stateful", "debug_delta", "__FILE__", "__LINE__"}
)

DIRECTIVES = (
    *(".decl", ".type", ".input", ".output", ".printsize", ".limitsize", ".functor", ".pragma", ".plan", ".lattice"),
    *(".comp", ".init", ".override", ".include", ".once", ".number_type", ".symbol_type"),
)

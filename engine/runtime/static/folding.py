"""Aggregates of users: a relation with the value of each group, which Python computes."""

from __future__ import annotations

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind
from dlog.engine.runtime.lowering.external import function_of
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.differences import row_groups
from dlog.engine.values.table import typed


def folded(fold: nodes.Fold, catalog: Catalog) -> None:
    """Fills the relation of a fold, whose groups and matches are complete."""
    matches = catalog.relations[fold.matches]
    keys: list[np.ndarray] = []
    count, numbers = 1, np.zeros(matches.rows, np.int64)
    if fold.groups is not None:
        groups = catalog.relations[fold.groups]
        count, keys = groups.rows, [_words(groups, c) for c in range(groups.arity)]
        numbers = group_numbers(keys, [_words(matches, c) for c in range(groups.arity)], count, matches.rows)
    functor, function = function_of(fold.functor, catalog)
    values = typed(_words(matches, matches.arity - 1), matches.kinds[-1])
    found = function.fold(functor, _first(fold, keys, count, catalog), values, numbers, catalog)
    catalog.relations[fold.relation].load([*keys, found], count)
    catalog.complete.add(fold.relation)


def _words(relation: StoredRelation, column: int) -> np.ndarray:
    return relation.column(column).astype(np.int64)


def _first(fold: nodes.Fold, keys: list[np.ndarray], count: int, catalog: Catalog) -> np.ndarray:
    """What each group begins with."""
    init = fold.init
    words = np.full(count, catalog.encoder.word(init), np.int64) if isinstance(init, Constant) else keys[init]
    return typed(words, Kind(fold.kind))


def group_numbers(groups: list[np.ndarray], matches: list[np.ndarray], count: int, rows: int) -> np.ndarray:
    """Which group each match is in, which has its keys; there is one."""
    order, starts = row_groups([np.concatenate(both) for both in zip(groups, matches, strict=True)], count + rows)
    classes = np.empty(count + rows, np.int64)
    classes[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, count + rows)))
    of_class = np.empty(len(starts), np.int64)
    of_class[classes[:count]] = np.arange(count)
    numbers: np.ndarray = of_class[classes[count:]]
    return numbers

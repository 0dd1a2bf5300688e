"""Pairs (pairs.py) as columns of their values."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.incremental.store.pairs import first_of, fresh_pairs, second_of
from dlog.engine.kernels.machine_structs import Numbers, WordColumns, Words
from dlog.engine.kernels.round_structs import Collection


@kernel
def unpack_column(words: Words, number, n, target: Words, step):
    """target[i] = the value of a column in the row whose word is i * step words from `words`."""
    if number == 0:
        for i in range(n):
            target[i] = first_of(words[i * step])
    else:
        for i in range(n):
            target[i] = second_of(words[i * step])


@entry()
def copy_pairs(collection: Collection, words: Words):
    """Writes the words of all pairs; returns how many."""
    return fresh_pairs(collection, 0, collection.pair_homes.room, words)


@entry()
def split_pairs(words: Words, count, first: Numbers, second: Numbers):
    """Writes the values (int32) of rows with these words."""
    for i in range(count):
        word = words[i]
        first[i] = first_of(word)
        second[i] = second_of(word)


@entry()
def count_pairs(collection: Collection, first, last):
    """How many pairs there are in places [first, last)."""
    pairs = collection.pairs
    count = 0
    for at in range(first, last):
        count += 1 if pairs[at] != 0 else 0
    return count


@entry()
def list_pairs(collection: Collection, first, last, columns: WordColumns, row):
    """Writes the values of the pairs in places [first, last) to two columns, from a row on. Always true."""
    lefts = columns[0]
    rights = columns[1]
    pairs = collection.pairs
    for at in range(first, last):
        word = pairs[at]
        if word != 0:
            lefts[row] = first_of(word)
            rights[row] = second_of(word)
            row += 1
    return True

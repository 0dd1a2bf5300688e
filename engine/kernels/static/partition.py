"""Partitions rows for the exchange between workers: the owner of a value, each worker's rows side by side, room where they
arrive.

The owner follows from a value's content alone, so all workers agree on it: numbers by their bits, strings by their bytes.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import Numbers, Relation, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.hashes import grow_hash
from dlog.engine.kernels.static.storage import reserve
from dlog.engine.kernels.values.words import hash_bytes


@kernel
def mix(value):
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014): every bit of the result depends on every bit of the value."""
    z = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def owner(hashed, workers):
    """The worker, 0 to `workers` - 1, for a hash of 64 bits."""
    return np.int64(((hashed >> np.uint64(32)) * np.uint64(workers)) >> np.uint64(32))


@entry("i64[:]", "i64", "i32[:]")
def owners_of_values(values, workers, out):
    """The owner of each value of an integer column."""
    for i in range(values.size):
        out[i] = owner(mix(np.int64(values[i])), workers)


@entry("i64[:]", "u64[:]", "i64", "i32[:]")
def owners_of_ids(ids, hashes, workers, out):
    """The owner of each string or record, by the hash of its id."""
    for i in range(ids.size):
        out[i] = owner(hashes[ids[i]], workers)


@entry("i32[:]", "i64[:]", "i64[:]")
def group_by_owner(owners, starts, order):
    """Places of the rows of each owner, ascending: owner w's are `order[starts[w]:starts[w + 1]]`. `starts` is zero before."""
    for i in range(owners.size):
        starts[owners[i] + 1] += 1
    for w in range(starts.size - 1):
        starts[w + 1] += starts[w]
    for i in range(owners.size):
        w = owners[i]
        order[starts[w]] = i
        starts[w] += 1
    for w in range(starts.size - 1, 0, -1):
        starts[w] = starts[w - 1]
    starts[0] = 0


@entry("i32[:]", "i64[:]", "i64[:]", "i64[:]", "i64[:]", "i64[:]")
def lay_apart(owners, columns, widths, targets, starts, at):
    """Copies columns, of 4 bytes or 8, to targets as long as they are (all by address) so that the rows of each owner lie
    together, in their order: owner w's from `starts[w]` to `starts[w + 1]`. `starts` is zero before; `at` has a word for each
    owner."""
    workers = at.size
    for i in range(owners.size):
        starts[owners[i] + 1] += 1
    for w in range(workers):
        starts[w + 1] += starts[w]
    for c in range(columns.size):
        source, target = columns[c], targets[c]
        for w in range(workers):
            at[w] = starts[w]
        if widths[c] == 4:
            for i in range(owners.size):
                w = owners[i]
                Numbers(target)[at[w]] = Numbers(source)[i]
                at[w] += 1
        else:
            for i in range(owners.size):
                w = owners[i]
                Words(target)[at[w]] = Words(source)[i]
                at[w] += 1


@entry()
def make_room(ctl: Control, relation: Relation, extra):
    """Room for `extra` more rows, in columns and hash set, at once: sets enter all their rows anew whenever they grow. False
    with ctl.error set when out of memory."""
    if not reserve(ctl, relation, extra):
        return False
    return relation.set != SetKind.HASH or grow_hash(ctl, relation, relation.rows + extra)


@entry("u8[:]", "i64[:]", "i64", "u64[:]")
def hash_strings(heap, offsets, start, out):
    """Hashes of the strings `heap[offsets[i]:offsets[i + 1]]` from `start` on, to `out[i]`."""
    base = np.int64(heap.ctypes.data)
    limit = base + heap.size
    for i in range(start, out.size):
        out[i] = mix(hash_bytes(base + offsets[i], offsets[i + 1] - offsets[i], limit))


@entry("u64[:]", "i64[:]")
def hash_together(hashes, values):
    """Mixes a column into row hashes, in place."""
    for i in range(values.size):
        hashes[i] = mix(hashes[i] ^ mix(values[i]))

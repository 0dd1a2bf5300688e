"""Core numbers by peeling: of the vertices left, one with the fewest neighbours goes next (Batagelj and Zaversnik 2003).

Vertices stand in the order of how many neighbours they have left, those of one number together; `firsts` says where each
number's begin. One that loses a neighbour changes places with the first of its number: then it is the last of the number below.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.machine_structs import Words


@entry()
def peel(count, offsets: Words, neighbours: Words, numbers: Words, order: Words, places: Words, firsts: Words):
    """numbers[v] = the core number of each of `count` vertices, whose neighbours are those from offsets[v] to offsets[v + 1].
    There is room for `count` words in `order` and `places`, and for one more in `firsts`, which are 0."""
    for v in range(count):
        numbers[v] = offsets[v + 1] - offsets[v]
        firsts[numbers[v]] += 1
    begin = 0
    for number in range(count + 1):
        some = firsts[number]
        firsts[number] = begin
        begin += some
    for v in range(count):
        place = firsts[numbers[v]]
        firsts[numbers[v]] = place + 1
        places[v] = place
        order[place] = v
    for number in range(count, 0, -1):
        firsts[number] = firsts[number - 1]
    firsts[0] = 0
    for i in range(count):
        v = order[i]
        number = numbers[v]
        for at in range(offsets[v], offsets[v + 1]):
            u = neighbours[at]
            left = numbers[u]
            if left > number:
                place = places[u]
                first = firsts[left]
                other = order[first]
                order[place] = other
                places[other] = place
                order[first] = u
                places[u] = first
                firsts[left] = first + 1
                numbers[u] = left - 1

"""An order of the vertices of a graph that keeps their core numbers: that in which they could be peeled off.

Those with lesser numbers come first, and no vertex has more neighbours later in the order than its number says. An edge that
comes raises numbers only where its earlier end has more then: most change nothing and take no time (the k-order of Zhang, Yu,
Zhang and Qin 2017). The vertices of one number are a list, a *level*; labels tell which of two comes first.
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.graph_structs import Cores
from dlog.engine.kernels.graphs.neighbours import neighbour_at
from dlog.engine.kernels.machine_structs import Numbers, Words

GAP = 1 << 32
"""Between the labels of two that were put last or first one after the other."""
FARTHEST = 1 << 61
"""Labels beyond are given anew."""


@kernel
def precedes(cores: Cores, left, right):
    """Whether one vertex comes before another one."""
    if cores.numbers[left] != cores.numbers[right]:
        return cores.numbers[left] < cores.numbers[right]
    return cores.labels[left] < cores.labels[right]


@kernel
def link(cores: Cores, vertex, level, before, after):
    """Puts a vertex between two others of a level; each is given plus one, 0 for none."""
    cores.before[vertex] = before
    cores.after[vertex] = after
    if before != 0:
        cores.after[before - 1] = vertex + 1
    else:
        cores.first[level] = vertex + 1
    if after != 0:
        cores.before[after - 1] = vertex + 1
    else:
        cores.last[level] = vertex + 1


@kernel
def unlink(cores: Cores, vertex, level):
    before = cores.before[vertex]
    after = cores.after[vertex]
    if before != 0:
        cores.after[before - 1] = after
    else:
        cores.first[level] = after
    if after != 0:
        cores.before[after - 1] = before
    else:
        cores.last[level] = before


@kernel
def label_anew(cores: Cores, level):
    at = cores.first[level]
    label = 0
    while at != 0:
        cores.labels[at - 1] = label
        label += GAP
        at = cores.after[at - 1]


@kernel
def put_last(cores: Cores, vertex, level):
    last = cores.last[level]
    link(cores, vertex, level, last, 0)
    cores.labels[vertex] = cores.labels[last - 1] + GAP if last != 0 else 0
    if cores.labels[vertex] > FARTHEST:
        label_anew(cores, level)


@kernel
def put_first(cores: Cores, vertex, level):
    first = cores.first[level]
    link(cores, vertex, level, 0, first)
    cores.labels[vertex] = cores.labels[first - 1] - GAP if first != 0 else 0
    if cores.labels[vertex] < -FARTHEST:
        label_anew(cores, level)


@kernel
def put_behind(cores: Cores, vertices: Numbers, count, other, level):
    """Puts some vertices behind another one of a level, one after the other."""
    after = cores.after[other]
    at = other
    for i in range(count):
        link(cores, vertices[i], level, at + 1, after)
        at = vertices[i]
    label_behind(cores, other, count, level)


@kernel
def label_behind(cores: Cores, vertex, count, level):
    """Labels so many vertices behind one, and as many more as it takes until theirs and the next one are far enough apart: the
    more there are, the farther (Dietz and Sleator 1987)."""
    low = cores.labels[vertex]
    at = cores.after[vertex]
    for _ in range(count):
        at = cores.after[at - 1]
    while at != 0 and (cores.labels[at - 1] - low) >> 1 <= count * count:
        at = cores.after[at - 1]
        count += 1
    if at == 0 and low > FARTHEST:
        label_anew(cores, level)
        return
    step = GAP if at == 0 else (cores.labels[at - 1] - low) // (count + 1)
    at = cores.after[vertex]
    for i in range(count):
        cores.labels[at - 1] = low + step * (i + 1)
        at = cores.after[at - 1]


@kernel
def note(cores: Cores, vertex):
    """Keeps the number of a vertex, which is about to change, where it is the first time."""
    if cores.former[vertex] == 0:
        cores.former[vertex] = cores.numbers[vertex] + 1
        cores.changed[cores.changed_count] = vertex
        cores.changed_count += 1


@entry()
def order_vertices(cores: Cores, order: Words, places: Words):
    """Makes the order from that in which vertices were peeled: order[places[v]] = v. Levels are empty."""
    for i in range(cores.vertices):
        vertex = order[i]
        put_last(cores, vertex, cores.numbers[vertex])
        later = 0
        start = cores.starts[vertex]
        for at in range(start, start + cores.counts[vertex]):
            later += 1 if places[neighbour_at(cores, at)] > i else 0
        cores.later[vertex] = later


@entry()
def put_new(cores: Cores, begin, end):
    """Puts vertices without neighbours into the order."""
    for vertex in range(begin, end):
        put_last(cores, vertex, 0)


@entry()
def forget_changes(cores: Cores):
    """Takes all numbers for what was read, and begins to count the work of another commit."""
    cores.work = 0
    for i in range(cores.changed_count):
        cores.former[cores.changed[i]] = 0
    cores.changed_count = 0

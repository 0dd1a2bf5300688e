"""What arcs that come and go do to core numbers and their order (core_order.py).

An edge that goes. Vertices of the lesser number of its two ends that have too few neighbours of that number or a greater one
fall by one, and by that their neighbours may; they go to the end of the level below, in the order in which they fall.

An edge that comes. Of two ends the earlier one has one more neighbour later. If these are more than its number says, it may
rise, with others of its level: they are looked at in the order, from it on. Each that has more neighbours later, or earlier and
to rise, than its number says is to rise for now. One that has not stays, and those before it that counted on it stay behind it.
Who is left rises by one, to the front of the level above. (`OrderInsert` of Zhang, Yu, Zhang and Qin 2017.)
"""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.graph_structs import Cores
from dlog.engine.kernels.graphs.core_order import note, precedes, put_behind, put_first, put_last, unlink
from dlog.engine.kernels.graphs.neighbours import IN, OUT, drop_arc, enter_arc, may_enter, neighbour_at
from dlog.engine.kernels.machine_structs import Words

WAITING, RISING, STAYING = 1, 2, 3
"""Marks: in the heap; to rise; to stay, after all."""
COUNTED, FALLING = 4, 5
"""Marks: its neighbours of its level or above are counted; to fall."""


@entry()
def remove_arcs(cores: Cores, src: Words, dst: Words, count):
    """Removes arcs; those that are not there do not matter. False where that takes too long: nothing is right then."""
    for i in range(count):
        if src[i] != dst[i] and drop_arc(cores, src[i], dst[i], OUT):
            drop_arc(cores, dst[i], src[i], IN)
            separate(cores, src[i], dst[i])
        elif src[i] != dst[i]:
            drop_arc(cores, dst[i], src[i], IN)
        if cores.work > cores.limit:
            return False
    return True


@entry()
def add_arcs(cores: Cores, src: Words, dst: Words, begin, count):
    """Adds the arcs from one on; returns how many are there then: fewer than `count` where the pool has no room or there may be
    too few levels, -1 where it takes too long: nothing is right then. Those that are there already do not matter."""
    for i in range(begin, count):
        if cores.work > cores.limit:
            return -1
        left, right = src[i], dst[i]
        if left == right:
            continue
        if min(cores.numbers[left], cores.numbers[right]) + 2 > cores.levels:
            return i
        if not may_enter(cores, left) or not may_enter(cores, right):
            return i
        if enter_arc(cores, left, right, OUT):
            enter_arc(cores, right, left, IN)
            connect(cores, left, right)
        else:
            enter_arc(cores, right, left, IN)
    return count if cores.work <= cores.limit else -1


# ----------------------------------------------------------------------------------------------------------------- going


@kernel
def separate(cores: Cores, left, right):
    """Has numbers follow two that are no neighbours any more."""
    cores.later[left if precedes(cores, left, right) else right] -= 1
    level = min(cores.numbers[left], cores.numbers[right])
    counted = fallen = falling = 0
    for vertex in (left, right):
        if cores.numbers[vertex] == level:
            counted, falling = count_at(cores, vertex, level, counted, falling)
    while fallen < falling and cores.work <= cores.limit:
        vertex = cores.queue[fallen]
        fallen += 1
        note(cores, vertex)
        cores.numbers[vertex] = level - 1
        start = cores.starts[vertex]
        cores.work += cores.counts[vertex]
        for at in range(start, start + cores.counts[vertex]):
            other = neighbour_at(cores, at)
            if cores.numbers[other] == level:
                if cores.labels[other] < cores.labels[vertex]:
                    cores.later[other] -= 1
                if cores.marks[other] == 0:
                    counted, falling = count_at(cores, other, level, counted, falling)
                else:
                    cores.earlier[other] -= 1
                    falling = have_fall(cores, other, level, falling)
        cores.later[vertex] = cores.earlier[vertex]
        unlink(cores, vertex, level)
        put_last(cores, vertex, level - 1)
    for i in range(counted):
        cores.marks[cores.candidates[i]] = 0
        cores.earlier[cores.candidates[i]] = 0


@kernel
def count_at(cores: Cores, vertex, level, counted, falling):
    """Counts a vertex's neighbours of its level or above; how many are counted, and how many are to fall."""
    if cores.marks[vertex] != 0:
        return counted, falling
    start = cores.starts[vertex]
    cores.work += cores.counts[vertex]
    held = 0
    for at in range(start, start + cores.counts[vertex]):
        held += 1 if cores.numbers[neighbour_at(cores, at)] >= level else 0
    cores.earlier[vertex] = held
    cores.marks[vertex] = COUNTED
    cores.candidates[counted] = vertex
    return counted + 1, have_fall(cores, vertex, level, falling)


@kernel
def have_fall(cores: Cores, vertex, level, falling):
    """Queues a vertex that has too few neighbours for its number; how many are queued."""
    if cores.marks[vertex] != COUNTED or cores.earlier[vertex] >= level:
        return falling
    cores.marks[vertex] = FALLING
    cores.queue[falling] = vertex
    return falling + 1


# ---------------------------------------------------------------------------------------------------------------- coming


@kernel
def connect(cores: Cores, left, right):
    """Has numbers follow two that have become neighbours."""
    vertex = left if precedes(cores, left, right) else right
    level = cores.numbers[vertex]
    cores.later[vertex] += 1
    if cores.later[vertex] <= level:
        return
    push(cores, vertex)
    rising = 0
    while cores.heap_count > 0 and cores.work <= cores.limit:
        vertex = pop(cores)
        if cores.earlier[vertex] + cores.later[vertex] > level:
            cores.marks[vertex] = RISING
            cores.candidates[rising] = vertex
            rising += 1
            await_later(cores, vertex, level)
        elif cores.earlier[vertex] > 0:
            settle(cores, vertex, level)
    for i in range(rising - 1, -1, -1):
        vertex = cores.candidates[i]
        if cores.marks[vertex] == RISING:
            note(cores, vertex)
            unlink(cores, vertex, level)
            cores.numbers[vertex] = level + 1
            put_first(cores, vertex, level + 1)
            cores.marks[vertex] = 0
            cores.earlier[vertex] = 0


@kernel
def await_later(cores: Cores, vertex, level):
    """Has later neighbours of a vertex that is to rise looked at."""
    start = cores.starts[vertex]
    cores.work += cores.counts[vertex]
    for at in range(start, start + cores.counts[vertex]):
        other = neighbour_at(cores, at)
        if cores.numbers[other] == level and cores.labels[other] > cores.labels[vertex]:
            cores.earlier[other] += 1
            if cores.marks[other] == 0:
                push(cores, other)


@kernel
def settle(cores: Cores, vertex, level):
    """A vertex stays, and those of its neighbours, and theirs, that were to rise and now have too few; these go behind it."""
    cores.later[vertex] += cores.earlier[vertex]
    cores.earlier[vertex] = 0
    staying = done = 0
    start = cores.starts[vertex]
    cores.work += cores.counts[vertex]
    for at in range(start, start + cores.counts[vertex]):
        other = neighbour_at(cores, at)
        if cores.marks[other] == RISING:
            cores.later[other] -= 1
            staying = have_stay(cores, other, level, staying)
    while done < staying:
        gone = cores.queue[done]
        done += 1
        cores.marks[gone] = 0
        cores.later[gone] += cores.earlier[gone]
        cores.earlier[gone] = 0
        start = cores.starts[gone]
        cores.work += cores.counts[gone]
        for at in range(start, start + cores.counts[gone]):
            other = neighbour_at(cores, at)
            if cores.numbers[other] != level:
                continue
            if cores.labels[other] > cores.labels[vertex]:
                cores.earlier[other] -= 1
            elif cores.marks[other] == RISING or cores.marks[other] == STAYING:
                if cores.labels[other] > cores.labels[gone]:
                    cores.earlier[other] -= 1
                else:
                    cores.later[other] -= 1
                staying = have_stay(cores, other, level, staying)
    # Labels are those of before until all are known.
    for i in range(staying):
        unlink(cores, cores.queue[i], level)
    if staying > 0:
        put_behind(cores, cores.queue, staying, vertex, level)


@kernel
def have_stay(cores: Cores, vertex, level, staying):
    """Queues a vertex that was to rise and has too few neighbours for that; how many are queued."""
    if cores.marks[vertex] != RISING or cores.earlier[vertex] + cores.later[vertex] > level:
        return staying
    cores.marks[vertex] = STAYING
    cores.queue[staying] = vertex
    return staying + 1


# ------------------------------------------------------------------------------------------------------------------ heap


@kernel
def push(cores: Cores, vertex):
    """Has a vertex wait for its turn in the order."""
    heap, labels = cores.heap, cores.labels
    cores.marks[vertex] = WAITING
    at = cores.heap_count
    cores.heap_count = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if labels[heap[above]] <= labels[vertex]:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = vertex


@kernel
def pop(cores: Cores):
    """Of those that wait the first one."""
    heap, labels = cores.heap, cores.labels
    found = heap[0]
    cores.marks[found] = 0
    count = cores.heap_count - 1
    cores.heap_count = count
    vertex = heap[count]
    at = 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and labels[heap[below + 1]] < labels[heap[below]]:
            below += 1
        if labels[heap[below]] >= labels[vertex]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = vertex
    return found

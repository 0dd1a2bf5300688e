"""Programs over collections that the seeds speak of."""

from __future__ import annotations

from dlog.dataflow import Collection, col, lit


def distances(roots: Collection, edges: Collection) -> Collection:
    """Breadth-first search: the least number of edges from any root (node) to each node that is reached, over edges (src,
    dst)."""
    nodes = roots.map("node", distance=lit(0))

    def step(inner: Collection) -> Collection:
        proposed = inner.join_map(edges.enter(inner.scope), on={"node": "src"}, node="dst", distance=col("distance") + 1)
        return proposed.concat(nodes.enter(inner.scope)).min("distance", by="node")

    return nodes.iterate(step)


def least_labels(edges: Collection, labels: Collection) -> Collection:
    """For each node (node, label) the least label of those that reach it."""

    def step(inner: Collection) -> Collection:
        moved = inner.join_map(edges.enter(inner.scope), "label", on={"node": "src"}, node="dst")
        return moved.concat(labels.enter(inner.scope)).min("label", by="node")

    return labels.iterate(step)


def _same_label(cycles: Collection, edges: Collection) -> Collection:
    """The edges whose ends have the same label, when labels move along `cycles`."""
    nodes = edges.map(node="dst", label="dst").distinct()
    labels = least_labels(cycles, nodes)
    with_one = edges.join_map(labels, "src", "dst", one="label", on={"src": "node"})
    with_both = with_one.join(labels, on={"dst": "node"})
    return with_both.filter(col("one") == col("label")).map("src", "dst")


def _reversed(edges: Collection) -> Collection:
    return edges.map(src="dst", dst="src")


def component_edges(edges: Collection) -> Collection:
    """The edges within strongly connected components: a loop, in which labels move forth and back in loops of their own."""

    def step(inner: Collection) -> Collection:
        every = edges.enter(inner.scope)
        forth = _same_label(inner, every)
        return _reversed(_same_label(_reversed(forth), _reversed(every)))

    return edges.iterate(step)


def truss(edges: Collection, k: int) -> Collection:
    """The k-truss of edges (a, b), a < b: each is in at least k - 2 triangles of the others."""

    def step(inner: Collection) -> Collection:
        corners = inner.join(inner.rename(a="a", c="b"), on="a").semijoin(inner, on={"b": "a", "c": "b"})
        sides = corners.map("a", "b").concat(corners.map("a", b="c"), corners.map(a="b", b="c"))
        strong = sides.count().filter(col("count") >= k - 2)
        return edges.enter(inner.scope).semijoin(strong.map("a", "b"))

    return edges.iterate(step)


def page_ranks(edges: Collection, mass: int) -> Collection:
    """PageRank in whole numbers: each node keeps `mass`, and passes five sixths of what it has to its successors in equal
    parts, rounded down. What nodes have is how often they are there: their diffs."""
    nodes = edges.map(node="src").concat(edges.map(node="dst")).distinct()
    kept, degrees = nodes.explode("node", diff=mass), edges.count("degree", by="src")

    def step(inner: Collection) -> Collection:
        shares = inner.count("has").join_map(
            degrees.enter(inner.scope), "node", on={"node": "src"}, share=col("has") * 5 // (col("degree") * 6)
        )
        passed = shares.join(edges.enter(inner.scope), on={"node": "src"}).explode(node="dst", diff="share")
        return passed.concat(kept.enter(inner.scope)).consolidate()

    return kept.iterate(step).count("rank")


def generations(cells: Collection, last: int) -> Collection:
    """The game of life: cells (generation, x, y) up to a generation, from those of the first, 0."""
    around = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]

    def step(inner: Collection) -> Collection:
        moved = [inner.map("generation", x=col("x") + dx, y=col("y") + dy) for dx, dy in around]
        counted = moved[0].concat(*moved[1:]).count()
        born = counted.filter(col("count") == 3).map("generation", "x", "y")
        kept = counted.filter(col("count") == 2).map("generation", "x", "y").semijoin(inner)
        following = born.concat(kept).map("x", "y", generation=col("generation") + 1).filter(col("generation") <= last)
        return following.concat(cells.enter(inner.scope)).distinct()

    return cells.iterate(step)

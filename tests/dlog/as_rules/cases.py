"""Programs over collections that rules can say."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from dlog.dataflow import Collection, Dataflow, apply, col, lit
from tests.dlog.as_rules.compared import Compared, pairs, singles
from tests.dlog.dataflow.algorithms import distances, least_labels


def searches(*sets: str) -> Compared:
    """Breadth-first search, and reachability."""
    flow = Dataflow()
    roots, edges = flow.input("roots", node=int), flow.input("edges", src=int, dst=int)

    def step(inner: Collection) -> Collection:
        moved = inner.join_map(edges.enter(inner.scope), on={"node": "src"}, node="dst")
        return moved.concat(roots.enter(inner.scope)).distinct()

    outputs = {"distance": distances(roots, edges), "reached": roots.iterate(step)}
    return Compared(flow, [roots, edges], outputs, {"roots": singles(9), "edges": pairs(9)}, *sets)


def degrees(*sets: str) -> Compared:
    """Degrees, and how many nodes have each."""
    flow = Dataflow()
    edges = flow.input("edges", src=int, dst=int)
    degree = edges.count("degree", by="src")
    both = edges.map(node="src").concat(edges.map(node="dst")).count("degree")
    outputs = {"degree": degree, "distribution": degree.map("degree").count("nodes"), "both": both}
    return Compared(flow, [edges], outputs, {"edges": pairs(7)}, *sets)


def triangles(*sets: str) -> Compared:
    flow = Dataflow()
    edges = flow.input("edges", src=int, dst=int)
    ab, bc, ac = edges.rename(a="src", b="dst"), edges.rename(b="src", c="dst"), edges.rename(a="src", c="dst")
    found = ab.join(bc, on="b").join(ac, on=("a", "c"))
    loops = edges.filter(col("src") == col("dst"))
    outputs = {"triangles": found, "corners": found.map("a").count("triangles"), "loops": loops}
    return Compared(flow, [edges], outputs, {"edges": pairs(6)}, *sets)


def reports(*sets: str) -> Compared:
    """Sums of what is computed, as query 1 of TPC-H."""
    flow = Dataflow()
    lines = flow.input("lines", flag=str, status=str, quantity=int, cents=int, percent=int)
    kept = lines.filter((col("quantity") < 40) | (col("flag") == "R"))
    charge = col("cents") * (100 - col("percent"))
    report = kept.sum(by=("flag", "status"), quantity="quantity", cents="cents", charge=charge)
    weighted = kept.explode("flag", diff=(1, col("quantity") - 20)).count("orders", "over")
    dear, first = kept.max("cents", by="flag"), kept.min("status", by="flag")
    bands = lines.map("status", band=apply(lambda quantity, cents: quantity // 10 - cents, "quantity", "cents")).count()
    outputs = {"report": report, "weighted": weighted, "dear": dear, "first": first, "bands": bands}

    def line(rng: random.Random) -> tuple[str, str, int, int, int]:
        return rng.choice("ANR"), rng.choice("OF"), rng.randrange(18, 50), rng.randrange(-3, 3), rng.randrange(10)

    return Compared(flow, [lines], outputs, {"lines": line}, *sets)


def differences(*sets: str) -> Compared:
    """What takes rows away, and thresholds of what is left."""
    flow = Dataflow()
    left, right = flow.input("lefts", k=int, x=int), flow.input("rights", k=int, y=int)
    keys = right.map("k")
    outputs = {
        "met": left.semijoin(right, on="k"),
        "lonely": left.antijoin(keys.distinct(), on="k"),
        "counted_away": left.antijoin(right, on="k"),
        "difference": left.concat(right.rename(x="y").negate()),
        "more": left.concat(right.rename(x="y").negate()).distinct(),
        "twice": left.map("k").concat(keys).threshold(col("count") >= 2),
        "halved": left.map("k").concat(keys).threshold(col("count") // 2),
        "least": left.concat(right.rename(x="y").negate()).min("x", by="k"),
        "pairs": left.join(left, on="k").map("x", "x_right"),
        "series": right.filter(col("y") < 4).generate_series("y", col("k"), "n").repeat_row(col("n") - 2).map("n"),
        "squares": left.map("k", square=col("x") * col("x"), even=col("x") % 2 == 0),
    }
    return Compared(flow, [left, right], outputs, {"lefts": pairs(5), "rights": pairs(5)}, *sets)


def changes(*sets: str) -> Compared:
    """A stream of changes, unpacked."""
    flow = Dataflow()
    log = flow.input("log", old=int, new=int, had=bool, has=bool)
    rows = log.unpack_changes({"x": "old"}, {"x": "new"}, ("had", "has"))

    def change(rng: random.Random) -> tuple[int, int, bool, bool]:
        return rng.randrange(4), rng.randrange(4), rng.random() < 0.4, rng.random() < 0.8

    return Compared(flow, [log], {"rows": rows, "flags": log.filter(~col("had")).map("has")}, {"log": change}, *sets)


def labels(*sets: str) -> Compared:
    """Labels that move along edges, from nodes of which some are taken out; and, of two loops, one in the other."""
    flow = Dataflow()
    edges, hidden = flow.input("edges", src=int, dst=int), flow.input("hidden", node=int)
    nodes = edges.map(node="src").concat(edges.map(node="dst")).distinct().antijoin(hidden.distinct(), on="node")
    own = nodes.map("node", label="node")

    def outer(inner: Collection) -> Collection:
        around = edges.enter(inner.scope)

        def step(deeper: Collection) -> Collection:
            moved = deeper.join_map(around.enter(deeper.scope), "src", on={"dst": "src"}, dst="dst_right")
            return moved.concat(inner.enter(deeper.scope)).distinct()

        closed = inner.iterate(step)
        back = closed.filter(col("src") > col("dst")).map(src="dst", dst="src")
        return closed.concat(back, around).distinct()

    pairs_met = edges.antijoin(hidden.distinct(), on={"src": "node"}).distinct()
    outputs = {"labels": least_labels(edges, own), "closed": edges.iterate(outer), "met": pairs_met}
    rows = {"edges": pairs(6), "hidden": singles(40)}
    return Compared(flow, [edges, hidden], outputs, rows, *sets)


def floats(*sets: str) -> Compared:
    """Floats: zeros of both signs, NaN and infinity in keys, in what is computed and in the greatest."""
    flow = Dataflow()
    values = flow.input("numbers", k=int, x=float)
    zeros = values.map("k", x=col("x") * 0.0, y=col("x") / col("k"))
    by_value = zeros.map(x="y", k="k").join_map(values, "x", "k", k2="k_right", on="x")
    outputs = {
        "zeros": zeros.count("n", by="x"),
        "least": values.map("k", x=col("x") - 1).min("x", by="k"),
        "greatest": values.max("x"),
        "same": by_value.filter(col("x") == col("x")).map("k", "k2", half=col("x") / 2),
        "is_nan": values.filter(col("x") != col("x")).map("k", one=lit(1.0), text=lit('a "b"')),
    }

    def number(rng: random.Random) -> tuple[int, float]:
        return rng.randrange(-2, 3), rng.choice([0.0, -0.0, 1.0, -1.0, 2.5, math.inf, math.nan])

    return Compared(flow, [values], outputs, {"numbers": number}, *sets)


def rankings(*sets: str) -> Compared:
    """The first rows of groups, of which some are there several times or equal by the order."""
    flow = Dataflow()
    scores = flow.input("scores", k=int, points=float, name=str, n=int)
    outputs = {
        "best": scores.top_k(3, ["points", "name"], by="k", descending=True),
        "worst": scores.top_k(2, "points", by=["k", "name"]),
        "one": scores.map("name").top_k(1, "name"),
        "fewest": scores.map("k").count("n").top_k(2, "n"),
        "kept": scores.map("k", "n").concat(scores.map("k", n=col("n") + 1).negate()).top_k(4, "n", by="k"),
    }

    def score(rng: random.Random) -> tuple[int, float, str, int]:
        points, names = [-1.0, 0.0, 2.5, math.inf, math.nan], ["b", "a", "é", ""]
        return rng.randrange(2), rng.choice(points), rng.choice(names), rng.randrange(3)

    return Compared(flow, [scores], outputs, {"scores": score}, *sets)


LAST = 2**63 - 21
"""No window of 20 around it goes beyond 64 bits."""


def windows(*sets: str) -> Compared:
    """Counts of windows of numbers, as far as 64 bits have room for their bounds."""
    flow = Dataflow()
    events = flow.input("events", at=int, amount=int)
    inner = events.filter((col("at") <= LAST) & (col("at") >= -LAST))
    outputs = {
        "tumbling": inner.tumbling_window("at", 10, 3).sum(by=("window_start", "window_end"), amount="amount"),
        "sliding": inner.sliding_window("at", 20, 8, -5).count(by=("window_start", "window_end")),
        "gaps": inner.sliding_window("at", 3, 8).map("at", "window_start"),
        "rows": inner.sliding_window("at", 7, 2, names=("low", "high")).filter(col("low") > 3),
        "near": events.generate_series("at", col("at") + col("amount"), "next").filter(col("next") > 0),
    }

    def event(rng: random.Random) -> tuple[int, int]:
        ends = 2**63 - 2, 2**63 - 1, -(2**63), 1 - 2**63, LAST, LAST - 3, -LAST, 4 - LAST
        return rng.choice([*range(-20, 20), *ends]), rng.randrange(4)

    return Compared(flow, [events], outputs, {"events": event}, *sets)


def roads(*sets: str) -> Compared:
    """Loops to the least of floats, of texts, and to the greatest."""
    flow = Dataflow()
    ways = flow.input("ways", src=str, dst=str, km=float)
    places = ways.map(place="src").concat(ways.map(place="dst")).distinct()
    start = ways.filter(col("src") == "a").map(place="src", km=lit(0.0))
    named = places.map("place", first="place")
    wide = places.map("place", width=lit(9.0))

    def shortest(inner: Collection) -> Collection:
        moved = inner.join_map(ways.enter(inner.scope), on={"place": "src"}, place="dst", km=col("km") + col("km_right"))
        return moved.concat(start.enter(inner.scope)).min("km", by="place")

    def firsts(inner: Collection) -> Collection:
        moved = inner.join_map(ways.enter(inner.scope), "first", on={"place": "src"}, place="dst")
        return moved.concat(named.enter(inner.scope)).min("first", by="place")

    def widest(inner: Collection) -> Collection:
        moved = inner.join_map(ways.enter(inner.scope), on={"place": "src"}, place="dst", width=col("width") - col("km"))
        return moved.concat(inner).max("width", by="place")

    outputs = {"km": start.iterate(shortest), "firsts": named.iterate(firsts), "widest": wide.iterate(widest)}

    def way(rng: random.Random) -> tuple[str, str, float]:
        return rng.choice("abcdef"), rng.choice("abcdef"), rng.choice([0.1, 0.2, 0.7, 3.0, 0.0])

    return Compared(flow, [ways], outputs, {"ways": way}, *sets)


CASES: dict[str, Callable[..., Compared]] = {
    "searches": searches,
    "degrees": degrees,
    "triangles": triangles,
    "reports": reports,
    "differences": differences,
    "changes": changes,
    "labels": labels,
    "floats": floats,
    "rankings": rankings,
    "roads": roads,
    "windows": windows,
}
INPUTS = {
    "searches": ("roots", "edges"),
    "degrees": ("edges",),
    "triangles": ("edges",),
    "reports": ("lines",),
    "differences": ("lefts", "rights"),
    "changes": ("log",),
    "labels": ("edges", "hidden"),
    "floats": ("numbers",),
    "rankings": ("scores",),
    "roads": ("ways",),
    "windows": ("events",),
}
"""The inputs of each, which may be sets."""

"""Queries 1 and 13 while their tables come in batches, a round each: as rules, and as collections.

As collections they are counts: the first one of tuples of sums, the other one of how many orders a customer has, and then of
how many customers have so many. Counts are by the operator for rounds alone, or by the general one, for times in partial order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import dlog
from dlog.dataflow import Collection, Dataflow, col
from tests.tpch.data import Tables
from tests.tpch.queries import Query

TABLE = {"q1": "lineitem", "q13": "orders"}
"""What comes in batches."""
COLUMNS = {
    "q1": {
        "l_quantity": int, "l_extendedprice": int, "l_discount": int, "l_tax": int, "l_returnflag": str, "l_linestatus": str,
        "l_shipdate": int,
    },
    "q13": {"o_custkey": int, "o_comment": str},
}  # fmt: skip
"""What the collections need of it."""


LAST = (date(1998, 9, 2) - date(1970, 1, 1)).days
"""The last day of shipping that counts in the first query."""


class Fed(Protocol):
    """What follows a table that comes in batches."""

    def fed_columns(self, table: pa.Table) -> pa.Table:
        """What is fed of a table."""

    def feed(self, rows: pa.Table, diff: int = 1) -> None:
        """Does a round that inserts these rows, or removes them."""

    def rows(self) -> pa.Table:
        """The answer, with the columns that the SQL names."""

    def close(self) -> None: ...


class Rules:
    def __init__(self, name: str, tables: Tables) -> None:
        self.table = TABLE[name]
        program = Query(name, 1.0)
        others = {relation: tables[relation] for relation in program.inputs if relation != self.table}
        self.session = dlog.session(program.program, others, threads=1)

    def fed_columns(self, table: pa.Table) -> pa.Table:
        return table

    def feed(self, rows: pa.Table, diff: int = 1) -> None:
        (self.session.insert if diff > 0 else self.session.remove)(self.table, rows)
        self.session.commit()

    def rows(self) -> pa.Table:
        return self.session["answer"].to_arrow()

    def close(self) -> None:
        self.session.close()


class Counts:
    """Collections; `general` has their counts in a scope of loops, where times are partially ordered."""

    def __init__(self, general: bool, name: str, tables: Tables) -> None:
        self.flow = Dataflow()
        self.columns = list(COLUMNS[name])
        self.input = self.flow.input(**COLUMNS[name])
        scope = self.flow.scope.loop() if general else None
        customers = self.flow.input(customer=int)
        customers.insert(tables["customer"].select(["c_custkey"]) if name == "q13" else [])
        found = pricing(_in(scope, self.input)) if name == "q1" else orders_made(_in(scope, customers), _in(scope, self.input))
        self.found = (found if scope is None else found.leave()).capture()

    def fed_columns(self, table: pa.Table) -> pa.Table:
        return pa.table({name: _days(table[name]) for name in self.columns})

    def feed(self, rows: pa.Table, diff: int = 1) -> None:
        self.input.update(rows, diff)
        self.flow.commit()

    def rows(self) -> pa.Table:
        return self.found.to_arrow()

    def close(self) -> None:
        pass


def _in(scope: Any, collection: Collection) -> Collection:
    return collection if scope is None else collection.enter(scope)


def _days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates as days since 1970: collections have no kind of dates."""
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column


def pricing(items: Collection) -> Collection:
    """Query 1."""
    price, off = col("l_extendedprice"), col("l_discount")
    discounted = price * (100 - off)
    sums = (1, col("l_quantity"), price, discounted, discounted * (100 + col("l_tax")), off)
    shipped = items.filter(col("l_shipdate") <= LAST).explode("l_returnflag", "l_linestatus", diff=sums)
    total = shipped.count("count_order", "sum_qty", "sum_base_price", "sum_disc_price", "sum_charge", "sum_disc")
    means = {"avg_qty": "sum_qty", "avg_price": "sum_base_price", "avg_disc": "sum_disc"}
    kept = ("l_returnflag", "l_linestatus", "sum_qty", "sum_base_price", "sum_disc_price", "sum_charge")
    found = {name: col(of) / (100.0 * col("count_order")) for name, of in means.items()}
    return total.map(*kept, **found, count_order=col("count_order"))


def orders_made(customers: Collection, orders: Collection) -> Collection:
    """Query 13. A customer is counted once more than there are orders: those without orders are there, too."""
    plain = orders.map_batches(_plain, customer=int, plain=bool).filter(col("plain")).map("customer")
    made = customers.concat(plain).count("times").map(c_count=col("times") - 1)
    return made.count("custdist")


def _plain(rows: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    special = pc.match_like(pa.array(rows["o_comment"], pa.string()), "%special%requests%")
    return {"customer": rows["o_custkey"], "plain": ~special.to_numpy(zero_copy_only=False)}


WAYS: dict[str, Callable[[str, Tables], Fed]] = {
    "rules": Rules,
    "collections": partial(Counts, False),
    "general": partial(Counts, True),
}


def feed_all(fed: Fed, table: pa.Table, batch: int) -> None:
    """Does as many rounds as the table has batches."""
    rows = fed.fed_columns(table)
    for start in range(0, rows.num_rows, batch):
        fed.feed(rows.slice(start, batch))

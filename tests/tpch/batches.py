"""Queries 1 and 13 while their tables come in batches, a round each: as rules, and as collections.

As collections they are counts: the first one of tuples of sums, the other one of how many orders a customer has, and then of
how many customers have so many. Counts are by the operator for rounds alone, or by the general one, for times in partial order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

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


_TYPES = {"int64": "number", "string": "symbol", "date32[day]": "date"}
"""Of rules, by those of Arrow."""
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
    """The query's program: its relation has the table's key and the columns that are read, which are found by their names among
    all that are fed. With `whole` it has all of them."""

    def __init__(self, whole: bool, name: str, tables: Tables) -> None:
        query, table = Query(name, 1.0), TABLE[name]
        others = {relation: tables[relation] for relation in query.inputs if relation != table}
        text = query.program.read_text(encoding="ascii")
        self.table = table
        self.session = dlog.session(with_all_columns(text, table, tables[table].schema) if whole else text, others, threads=1)

    def fed_columns(self, table: pa.Table) -> pa.Table:
        return table

    def feed(self, rows: pa.Table, diff: int = 1) -> None:
        (self.session.insert if diff > 0 else self.session.remove)(self.table, rows)
        self.session.commit()

    def rows(self) -> pa.Table:
        return self.session["answer"].to_arrow()

    def close(self) -> None:
        self.session.close()


def with_all_columns(text: str, table: str, schema: pa.Schema) -> str:
    """The program with all columns of a table in its relation, behind those that are read. Aggregates have a variable for each:
    of rows that are alike in some columns, they count all."""
    [attributes] = re.findall(rf"\.decl {table}\(([^)]*)\)", text)
    left = [field for field in schema if f"{field.name}:" not in attributes]
    declared = "".join(f", {field.name}: {_TYPES[str(field.type)]}" for field in left)

    def widened(atom: re.Match[str]) -> str:
        arguments = [f"other_{field.name}" if atom[1][0] != "_" else "_" for field in left]
        return f"{table}({', '.join([atom[1], *arguments])})"

    text = text.replace(attributes, attributes + declared)
    return re.sub(rf"\b{table}\(([^:()]*)\)", widened, text)


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
    plain = orders.filter(~col("o_comment").str.like("%special%requests%")).map(customer="o_custkey")
    made = customers.concat(plain).count("times").map(c_count=col("times") - 1)
    return made.count("custdist")


WAYS: dict[str, Callable[[str, Tables], Fed]] = {
    "rules": partial(Rules, False),
    "rules, all columns": partial(Rules, True),
    "collections": partial(Counts, False),
    "general": partial(Counts, True),
}


def feed_all(fed: Fed, table: pa.Table, batch: int) -> None:
    """Does as many rounds as the table has batches."""
    rows = fed.fed_columns(table)
    for start in range(0, rows.num_rows, batch):
        fed.feed(rows.slice(start, batch))

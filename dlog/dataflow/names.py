"""What methods are called here that a collection has under another name."""

NAMES_HERE = {
    "arrange": "arrange_by_key", "as_collection": "join_function", "count_total": "count", "count_total_core": "count",
    "count_total_u": "count", "count_u": "count", "group": "reduce", "group_arranged": "reduce", "inner": "join_function",
    "neg": "negate", "scoped": "scope.loop", "unary_stream": "map_batches",
}  # fmt: skip
"""Methods of differential dataflow: `docs/coming-from/differential-dataflow.md` has them in a table."""
TABLES_HERE = {
    "agg": "reduce", "drop_duplicates": "distinct", "group_by": "reduce", "groupby": "reduce",
    "merge": "join", "select": "map", "union": "concat", "unique": "distinct", "where": "filter",
}  # fmt: skip
"""Those of tables: Polars, pandas, SQL."""


def no_attribute(kind: str, name: str, instead: str, whole: type) -> AttributeError:
    """That something, of which `instead` makes a `whole`, has no attribute of a name; where the whole has it, that says so."""
    found = f": write `{instead}.{name}`" if hasattr(whole, name) and not name.startswith("_") else ""
    return AttributeError(f"{kind} no attribute `{name}`{found}")

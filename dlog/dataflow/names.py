"""What methods of differential dataflow are called here, where a collection has them under another name.

`docs/coming-from/differential-dataflow.md` has them in a table."""

NAMES_HERE = {
    "arrange": "arrange_by_key", "as_collection": "join_function", "count_total": "count", "count_total_core": "count",
    "count_total_u": "count", "count_u": "count", "group": "reduce", "group_arranged": "reduce", "inner": "join_function",
    "neg": "negate", "scoped": "scope.loop", "unary_stream": "map_batches",
}  # fmt: skip


def no_attribute(kind: str, name: str, instead: str, whole: type) -> AttributeError:
    """That something, of which `instead` makes a `whole`, has no attribute of a name; where the whole has it, that says so."""
    found = f": write `{instead}.{name}`" if hasattr(whole, name) and not name.startswith("_") else ""
    return AttributeError(f"{kind} no attribute `{name}`{found}")

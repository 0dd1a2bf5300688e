"""`python -m tests.bench [BENCH]`: one command for each figure that is claimed.

suite   W1-W9 on every engine: times, ratios, memory, answers
rivals  W1-W9 beside differential dataflow, Ascent and datafrog (built by cargo), DuckDB, Souffle, datatoad and FlowLog, in turn
load    five million edges from text            write   the same, written
start   start-up of each command                plan    compiling a thousand rules
opening programs of 500 to 10,000 rules in ten shapes: a session, check, plan, run
chain   200,000 iterations of one tuple each    growth  time per derived tuple over three decades
orders  the same rules with their atoms in every order
rounds  programs maintained while their inputs change
rounds-rivals  single rounds and many in a call, a session and its engine, beside differential dataflow (by cargo) and FlowLog
latency single rounds, ten million of them: whether their times and the memory stay as they were, with a picture
strings rules heavy in string functors
memory  peak memory of closures over sparse keys; bytes of sessions after ten million updates, and of their stages
equivalence  equivalence relations beside Souffle's
skew    a vertex with a tenth of the edges among 16 workers
spark   programs on Spark against GraphFrames, DataFrame loops and the recursive CTE ($DLOG_GRAPHFRAMES: JARs or coordinates)
spark-bulk  one worker and two on work of seconds
spark-steps  what an exchange among workers costs, and its growth
spark-rounds  small rounds of warm sessions on Spark
spark-graph  graphs in Spark, of integers and of strings, against GraphFrames
graph   the graph library on a million edges, beside NetworkX and igraph
late    streams that begin with one row, beside the same streams all at once
workers bulk rounds on one thread and on two: loads, batches, rules that are added; changes of one row
together  as many rounds in a commit as it has changes, beside one round of these
live    sessions that are opened again, and rules that come and go beside a large closure
collections  breadth-first search and degrees by collections, beside the same by rules
wide    single rounds that touch one chain of rules among many
tails   commits of 64 rows to relations that grow to millions: the longest
tpch    the 22 queries of TPC-H (q1 ... q22) maintained while orders come and go, beside DuckDB computing them anew (--scale)
tpch-batches  queries 1 and 13 while their tables come in batches: rules, collections, and with the general operator (--scale)
history sessions with a history: commits, reads of past rounds of relations of several shapes, a million rounds
history-spine  the past of sessions as they keep it, beside the same in a spine: commits, bytes, reads, checkpoints
intervals  commits while a million or ten million intervals wait for the clock: what is due, and the longest
events  commits with events in rules: one, many, many rounds in a call, a changed price, beside the same join without time
activation  a graph of operators in static order, by the queue, and fused: where changes touch a growing share of it
spine   inserts into a trace that grows to four million rows: the longest, with merges at once and in steps

The exit code is 1 when an answer is wrong or a bound of dlog's is missed. Souffle, datatoad and the compiler of FlowLog are
found through $SOUFFLE, $DATATOAD and $FLOWLOG, or PATH; inputs, built rivals and figures are kept in $DLOG_WORKLOADS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench import (
    activation,
    collections,
    equivalence,
    events,
    files,
    graph,
    history,
    history_spine,
    intervals,
    late,
    latency,
    live,
    memory,
    opening,
    orders,
    rivals,
    rounds,
    rounds_rivals,
    scaling,
    skew,
    spark,
    spark_bulk,
    spark_graph,
    spark_rounds,
    spark_steps,
    spark_workloads,
    spine,
    starting,
    strings,
    suite,
    tails,
    together,
    tpch,
    tpch_batches,
    wide,
    workers,
)
from tests.bench.process import ROUNDS, Options
from tests.bench.workloads import WORKLOADS

BENCHES: dict[str, Callable[[Options], bool]] = {
    "suite": suite.run,
    "rivals": rivals.run,
    "load": files.run_load,
    "write": files.run_write,
    "start": starting.run_start,
    "plan": starting.run_plan,
    "opening": opening.run,
    "chain": scaling.run_chain,
    "growth": scaling.run_growth,
    "orders": orders.run,
    "rounds": rounds.run,
    "rounds-rivals": rounds_rivals.run,
    "latency": latency.run,
    "strings": strings.run,
    "memory": memory.run,
    "equivalence": equivalence.run,
    "skew": skew.run,
    "spark": spark.run,
    "spark-bulk": spark_bulk.run,
    "spark-steps": spark_steps.run,
    "spark-rounds": spark_rounds.run,
    "spark-graph": spark_graph.run,
    "graph": graph.run,
    "live": live.run,
    "wide": wide.run,
    "workers": workers.run,
    "together": together.run,
    "late": late.run,
    "collections": collections.run,
    "activation": activation.run,
    "history": history.run,
    "history-spine": history_spine.run,
    "intervals": intervals.run,
    "events": events.run,
    "spine": spine.run,
    "tails": tails.run,
    "tpch": tpch.run,
    "tpch-batches": tpch_batches.run,
}


def arguments() -> tuple[Callable[[Options], bool], Options]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", nargs="?", default="suite", choices=BENCHES)
    own: dict[str, Iterable[str]] = {
        "rounds": rounds.WORKLOADS,
        "rounds-rivals": rounds_rivals.WORKLOADS,
        "latency": latency.GRAPHS,
        "intervals": intervals.SIZES,
        "equivalence": equivalence.WORKLOADS,
        "spark": spark_workloads.WORKLOADS,
        "spark-bulk": spark_bulk.WORKLOADS,
        "wide": wide.CHAINS,
        "workers": workers.WORKLOADS,
        "tails": tails.WORKLOADS,
        "tpch": tpch.WORKLOADS,
        "tpch-batches": tpch_batches.WORKLOADS,
    }
    named = "; ".join(f"{', '.join(workloads)} for {bench}" for bench, workloads in own.items())
    told = f"W1 ... W9 for suite, rivals, growth and orders; {named}; all by default"
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=told)
    listed = f"comma-separated: of {', '.join(suite.ENGINES)}; for rivals of {', '.join(rivals.ENGINES)}"
    parser.add_argument("--engines", help=listed)
    parser.add_argument("--repeat", type=int, default=3, help="best of so many runs (%(default)s)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds before a run is given up (%(default)s)")
    least = f"{ROUNDS:,}; latency: {latency.ROUNDS:,}; tpch: {tpch.ROUNDS}"
    parser.add_argument("--rounds", type=int, help=f"rounds measured one by one ({least})")
    parser.add_argument("--scale", type=float, default=tpch.SCALE, help="tpch, tpch-batches: the scale factor (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where the figures go; a new file of the cache by default")
    given = parser.parse_args()
    known = own.get(given.bench, WORKLOADS)
    there = rivals.ENGINES if given.bench == "rivals" else suite.ENGINES
    workloads, engines = tuple(given.workloads or known), tuple(given.engines.split(",") if given.engines else there)
    if unknown := set(workloads) - set(known) | set(engines) - set(there):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    each = given.rounds or {"tpch": tpch.ROUNDS, "latency": latency.ROUNDS}.get(given.bench, ROUNDS)
    return BENCHES[given.bench], Options(workloads, engines, given.repeat, given.timeout, given.json, each, given.scale)


def main() -> int:
    run, options = arguments()
    return 0 if run(options) else 1


if __name__ == "__main__":
    sys.exit(main())

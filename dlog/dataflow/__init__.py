"""Dataflows: collections that change over time, and programs over them that keep up with the changes.

    from dlog.dataflow import Dataflow, col

A `Dataflow` has inputs; methods of collections make others of them; `commit` does a round, after which outputs are up to date.
It stands on `dlog.engine.operators`.
"""

from dlog.dataflow import group, moving, semigroup
from dlog.dataflow.applied import apply
from dlog.dataflow.clock import now
from dlog.dataflow.collection import Arrangement, Collection, Variable
from dlog.dataflow.conditions import when
from dlog.dataflow.expressions import Expression, col, lit
from dlog.dataflow.flow import Dataflow, Input, OperatorStatistics
from dlog.dataflow.linear import linear
from dlog.dataflow.outputs import Captured, Probe
from dlog.dataflow.scopes import Scope
from dlog.dataflow.traces import Batch, Cursor, TraceReader
from dlog.dataflow.watermarks import Watermarked
from dlog.engine.times.altneu import AltNeu

__all__ = [
    "AltNeu",
    "Arrangement",
    "Batch",
    "Captured",
    "Collection",
    "Cursor",
    "Dataflow",
    "Expression",
    "Input",
    "OperatorStatistics",
    "Probe",
    "Scope",
    "TraceReader",
    "Variable",
    "Watermarked",
    "apply",
    "col",
    "group",
    "linear",
    "lit",
    "moving",
    "now",
    "semigroup",
    "when",
]

"""dlog: a declarative Datalog and graph query engine.

Importing this package is cheap: the public names are imported when they are first asked for.
"""

import sys

# `python -m dlog` looks into the current folder before all others. Before anything else is imported: in no other.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    _started = sys.orig_argv[-len(sys.argv)]  # the name after `-m`, or the options that end in it
    if (_started.partition("m")[2] if _started.startswith("-") else _started).partition(".")[0] == "dlog":
        del sys.path[0]

from importlib import import_module
from os.path import abspath, dirname, isdir, join
from typing import TYPE_CHECKING, Any

from dlog.version import __version__

if TYPE_CHECKING:
    from dlog.api import Result, run, run_text
    from dlog.as_rules import Rules, rules
    from dlog.branch import Branch
    from dlog.functors import functor
    from dlog.grammar.diagnostics import DlogError, InternalError
    from dlog.graphs import Graph, graph
    from dlog.relation import Relation
    from dlog.sessions import ChangeEvents, Changes, Round, Session, Subscription, Upserts, session
    from dlog.streaming import stream

__all__ = [
    "Branch",
    "ChangeEvents",
    "Changes",
    "DlogError",
    "Graph",
    "InternalError",
    "Relation",
    "Result",
    "Round",
    "Rules",
    "Session",
    "Subscription",
    "Upserts",
    "__version__",
    "functor",
    "graph",
    "rules",
    "run",
    "run_text",
    "session",
    "stream",
]

_HOMES = {
    "Branch": "dlog.branch",
    "ChangeEvents": "dlog.sessions",
    "Changes": "dlog.sessions",
    "DlogError": "dlog.grammar.diagnostics",
    "Graph": "dlog.graphs",
    "InternalError": "dlog.grammar.diagnostics",
    "Relation": "dlog.relation",
    "Result": "dlog.api",
    "Round": "dlog.sessions",
    "Rules": "dlog.as_rules",
    "Session": "dlog.sessions",
    "Subscription": "dlog.sessions",
    "Upserts": "dlog.sessions",
    "functor": "dlog.functors",
    "graph": "dlog.graphs",
    "rules": "dlog.as_rules",
    "run": "dlog.api",
    "run_text": "dlog.api",
    "session": "dlog.sessions",
    "stream": "dlog.streaming",
}

# `spark-submit --py-files` has it in a zip file; the links to ../grammar and ../engine are missing in some archives and on
# Windows.
if not isdir(dirname(__file__)):
    __path__[:] = [import_module("dlog.zipped").unpacked(dirname(__file__))]
elif not isdir(join(dirname(__file__), "engine")):
    __path__.append(dirname(dirname(abspath(__file__))))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dlog' has no attribute {name!r}")
    value = getattr(_imported(_HOMES[name]), name)
    globals()[name] = value
    return value


def _imported(module: str) -> Any:
    from dlog.engine.garbage import uncollected  # what is imported is no garbage

    return uncollected(import_module)(module)


def __dir__() -> list[str]:
    return sorted(__all__)

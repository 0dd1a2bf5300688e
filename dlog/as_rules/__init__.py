"""Collections as rules: what `dlog.dataflow` builds, compiled for the engine of rules.

`rules` goes through the graph of collections (`graph`) and makes bodies of rules of them (`collections`, `linear`,
`expressions`, `loops`), relations where bodies do not do (`grouping`), and a program of all (`program`). It reads `Definition`s
alone: nothing of the dataflow runs. Every collection has exactly the rows of the dataflow, or is refused (`refusals`).
"""

from dlog.as_rules.compiled import Rules, rules
from dlog.as_rules.session import CollectionsSession

__all__ = ["CollectionsSession", "Rules", "rules"]

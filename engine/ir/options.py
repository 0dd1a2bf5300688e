"""What a program's pragmas say to those who execute it."""

from __future__ import annotations

from typing import Final

from dlog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """`by_demand` are the relations that need only the rows that others ask for. Folders are empty where no pragma says.
    `explains`: proofs are asked for when it has run."""

    by_demand: frozenset[str] = frozenset()
    facts: str = ""
    output: str = ""
    explains: bool = False


NO_OPTIONS: Final = Options()

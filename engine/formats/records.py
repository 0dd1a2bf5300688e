"""The tables of records, as the formats see them."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class RecordTables(Protocol):
    """Records of each arity by id: fields are raw 64 bits (ids, numbers, bits of doubles), id 0 is nil."""

    def fields(self, arity: int, ids: np.ndarray) -> list[np.ndarray]: ...

    def pack(self, arity: int, columns: list[np.ndarray]) -> np.ndarray: ...

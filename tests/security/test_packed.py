"""Small files that hold much are refused before they take the memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog
from dlog.grammar.diagnostics import DlogError


@pytest.mark.parametrize("line", [b"a" * 40_000_000, b"\n" * 40_000_000], ids=["one text", "empty lines"])
def test_packed_text_is_refused_above_the_limit(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "r.facts").write_bytes(gzip.compress(line) + gzip.compress(b"b\n"))
    program = ".decl r(x: symbol)\n.input r\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.facts holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")


def test_members_of_packed_text_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"".join(gzip.compress(f"{i}\n".encode()) for i in range(2000)) + b"ignored")
    program = ".decl r(x: number)\n.input r\n.output r\n"
    assert list(dlog.run(program, facts=tmp_path, output=tmp_path, memory="32M")["r"]) == [(i,) for i in range(2000)]
    (tmp_path / "r.facts").write_bytes(gzip.compress(b"1\n" * 1000)[:-9])
    with pytest.raises(DlogError, match="is not whole gzip: it ends before its end mark"):
        dlog.run(program, facts=tmp_path)


def test_a_parquet_file_of_many_equal_numbers_is_refused_above_the_limit(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.ones(5_000_000, np.int64)}), tmp_path / "r.parquet", compression="zstd")
    assert (tmp_path / "r.parquet").stat().st_size < 100_000
    program = ".decl r(x: number)\n.input r(IO=parquet)\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.parquet holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")

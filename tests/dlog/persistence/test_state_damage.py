"""A damaged state is never believed: it is right all the same, or refused by the name of the file."""

from __future__ import annotations

import json
import random
import zipfile
import zlib
from pathlib import Path

import pytest

import dlog
from tests.dlog.persistence.state_damage import SEED, SHAPES, of_each_kind, outcome, shape_of, written, wrong_outcomes
from tests.dlog.persistence.state_frames import taking_frames
from tests.dlog.persistence.state_model import PROGRAM, all_rows, commit, expected
from tests.dlog.persistence.state_sessions import crash


@pytest.mark.parametrize("shape", SHAPES)
def test_a_state_is_what_it_was(tmp_path: Path, shape: str) -> None:
    found = shape_of(shape, tmp_path / "state")
    with taking_frames():
        assert outcome(written(found.files, tmp_path / "again"), found, torn=False) == "right"


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_flips_and_truncations_are_never_believed(tmp_path: Path, shape: str) -> None:
    found = shape_of(shape, tmp_path / "state")
    with taking_frames():
        some = of_each_kind(found.files, random.Random(shape))
        assert wrong_outcomes(found, tmp_path / "damaged", some, 2, 1) == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES)
def test_flips_and_truncations_at_every_offset_are_never_believed(tmp_path: Path, shape: str) -> None:
    found = shape_of(shape, tmp_path / "state")
    with taking_frames():
        assert wrong_outcomes(found, tmp_path / "damaged", sorted(found.files), 1 << 40, random.randrange(1 << 30)) == {}


@pytest.mark.parametrize("version", [1, 2])
def test_a_state_of_a_former_version_goes_on(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "state"
    with zipfile.ZipFile(Path(__file__).with_name("state_version2.zip")) as packed:
        packed.extractall(folder)
    told = json.loads((folder / "manifest.json").read_text())
    assert told.pop("checksum") and told["version"] == 2
    told["version"] = version
    summed = {**told, "checksum": zlib.crc32(json.dumps(told, sort_keys=True).encode())}
    (folder / "manifest.json").write_text(json.dumps(summed))
    for round in (12, 13, 14):
        session = dlog.session(PROGRAM, state=folder, threads=1)
        assert session.round == round
        assert all_rows(session) == expected(SEED, round)
        commit(session, SEED, 1)
        session.close() if round == 13 else crash(session)
    assert '"version": 3' in (folder / "manifest.json").read_text()
    assert b"dloglog1" not in b"".join(path.read_bytes()[:8] for path in folder.glob("*.log"))

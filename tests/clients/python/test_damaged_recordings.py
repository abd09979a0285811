"""Recordings that were damaged at random: words, or what can be read. The long form: `tests/fuzz/fuzz_recording.py`."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from sinew import errors

pytest.importorskip("mcap")

from sinew.record import Recording

FUZZ = Path(__file__).parents[2] / "fuzz"


def test_each_ends_in_words_or_is_read() -> None:
    done = subprocess.run(
        [sys.executable, FUZZ / "fuzz_recording.py", "--runs", "400"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ read", done.stdout)
    assert re.search(r"\d+ refused by FormatError", done.stdout)


@pytest.mark.parametrize("size", [2**31, 2**40, 2**63, 2**64 - 1])
def test_a_length_beyond_the_file_is_damage_or_a_cut(tmp_path: Path, size: int) -> None:
    sys.path.insert(0, str(FUZZ))
    try:
        from fuzz_recording import chunks_of, make
    finally:
        sys.path.remove(str(FUZZ))
    data = bytearray(make(tmp_path / "whole.mcap"))
    at, length = chunks_of(bytes(data))[1]
    name = struct.unpack_from("<I", data, at + 28)[0]
    struct.pack_into("<Q", data, at + 32 + name, size)  # the bytes of the chunk's contents
    (tmp_path / "long.mcap").write_bytes(data)
    recording = Recording(tmp_path / "long.mcap")
    try:
        assert len(list(recording.entries())) >= 20
        assert recording.cut
    except errors.FormatError as error:
        assert "is damaged at byte" in str(error)
    (tmp_path / "cut.mcap").write_bytes(data[: at + length // 2])
    recording = Recording(tmp_path / "cut.mcap")
    assert len(list(recording.entries())) >= 20
    assert recording.cut

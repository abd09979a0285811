#!/usr/bin/env python3
"""Damages recordings and reads them: each one ends in a FormatError with words, or in records that can be read.

  tests/fuzz/fuzz_recording.py [--runs N] [--seconds S] [--seed S] [--folder FOLDER]

It needs a Python with the package sinew and its extra `record`. Two kinds of damage: to bytes of the file, and to
bytes within a chunk, whose checksum is made right again, so that what lies behind it is reached. What ends in any
other way is kept in FOLDER. The last line counts; exit status 1 when something was kept.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sinew.client.records import parse
from sinew.errors import SinewError
from sinew.record import Recording
from sinew.record.layout import KINDS
from sinew.record.writer import RecordingWriter

SLOW = 0.1  # processor time for one file that is thought to be too much [s]
CHUNK, HEAD = (
    6,
    9,
)  # of a record of MCAP: the opcode of chunks; bytes of opcode and length


def make(path: Path) -> bytes:
    """Write a recording of every kind of record, in three chunks, and return its bytes."""
    writer = RecordingWriter(path, {"recorder": "0.1.0"}, force=True)
    for number in range(60):
        record = parse(b"")
        kind = KINDS[number % len(KINDS)]
        getattr(record, kind).SetInParent()
        record.session, record.number = 7, number
        if kind == "plan":
            record.plan.ctrl = struct.pack("<12d", *[0.5] * 12)
        writer.add(7 + number % 2, kind, record.SerializeToString(), number, number * 1000000)
        if number % 20 == 19:
            writer.flush()
    writer.close()
    return path.read_bytes()


def chunks_of(data: bytes) -> list[tuple[int, int]]:
    """Return place and length of the contents of every chunk."""
    at, found = 8, []
    while at + HEAD <= len(data) - 8:
        kind, size = struct.unpack_from("<BQ", data, at)
        if kind == CHUNK:
            found.append((at + HEAD, size))
        at += HEAD + size
    return found


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the file with some bytes changed, moved, left out, or its end cut off."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, run = rng.randrange(len(out)), rng.randint(1, 16)
        match rng.randrange(6):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at : at + run] = rng.randbytes(run)
            case 2:
                del out[at : at + run]
            case 3:
                out[at:at] = out[at : at + run]
            case 4:
                out[at : at + 8] = struct.pack("<Q", rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]))
            case _:
                del out[at:]
        if len(out) < 16:
            break
    return bytes(out)


def damaged_within(data: bytes, rng: random.Random) -> bytes:
    """Return the file with a chunk, stored as it is, whose contents are damaged and whose checksum is right."""
    import lz4.frame
    import zstandard

    at, size = rng.choice(chunks_of(data))
    start, end, length, _, text = struct.unpack_from("<QQQII", data, at)
    compression = data[at + 32 : at + 32 + text].decode()
    packed = data[at + 40 + text : at + size]
    match compression:
        case "zstd":
            plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=length)
        case "lz4":
            plain = lz4.frame.decompress(packed)
        case _:
            plain = packed
    plain = damaged(plain, rng)
    chunk = struct.pack("<QQQII", start, end, len(plain), zlib.crc32(plain), 0) + struct.pack("<Q", len(plain)) + plain
    return data[: at - 8] + struct.pack("<Q", len(chunk)) + chunk + data[at + size :]


def read(path: Path) -> str:
    """Read all of a file and return how that ends."""
    try:
        recording = Recording(path)
        entries = list(recording.entries())
        for entry in entries[:3]:
            recording.entries_at(entry.at)
        for entry in entries:
            str(entry.body)[:10]
    except SinewError as error:
        assert str(error)
        return f"refused by {type(error).__name__}"
    return "read, cut" if recording.cut else "read"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=20260711)
    parser.add_argument("--folder", type=Path, help="where what is found is kept")
    options = parser.parse_args(arguments)
    rng, ends, began = random.Random(options.seed), Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.mcap"
        whole, kept = make(path), options.folder or Path(folder)
        for run in range(options.runs):
            if time.monotonic() - began > options.seconds:
                break
            data = (damaged if run % 2 else damaged_within)(whole, rng)
            path.write_bytes(data)
            before = time.process_time()
            try:
                end = read(path)
            except Exception:  # noqa: BLE001  # that is what is looked for
                traceback.print_exc()
                end = "FAILED"
            end = f"SLOW, {end}" if time.process_time() - before > SLOW and run else end
            ends[end] += 1
            if end.isupper() or end.startswith("SLOW"):
                (kept / f"{end.split(',')[0].lower()}-{run}.mcap").write_bytes(data)
    bad = sum(n for end, n in ends.items() if end[:4] in ("FAIL", "SLOW"))
    print(
        f"seed {options.seed}, {sum(ends.values())} files: " + ", ".join(f"{n} {end}" for end, n in ends.most_common())
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

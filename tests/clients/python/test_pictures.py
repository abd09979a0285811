"""clients/python/animate.py and bench_view.py run; how fast they do is nobody's criterion."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parents[3] / "clients/python"

pytest.importorskip("mjviser")
pytest.importorskip("fast_simplification")


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, CLIENTS / program, "--task=arm_reach", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_an_animated_picture_of_a_task(tmp_path: Path) -> None:
    from PIL import Image, ImageChops

    picture = tmp_path / "arm.webp"
    done = run("animate.py", "--picture", picture, "--seconds=0.2", "--speed=0.5", "--size", "120", "90")
    if done.returncode and "GL" in done.stderr:
        pytest.skip(f"MuJoCo cannot draw here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    image = Image.open(picture)
    assert image.size == (120, 90)
    assert image.n_frames == 9, "0.2 s at half speed, 20 a second, both ends"
    first = image.convert("RGB")
    assert len(first.getcolors(1 << 16)) > 50, "something is drawn"
    image.seek(8)
    assert max(high for _, high in ImageChops.difference(first, image.convert("RGB")).getextrema()) > 50, "it moves"


def test_moments_side_by_side_and_the_cost_over_time(tmp_path: Path) -> None:
    from PIL import Image

    picture, costs = tmp_path / "arm.png", tmp_path / "costs.txt"
    arguments = ["--seconds=0.2", "--strip=3", "--execute=8", "--costs", costs, "--size", "80", "60"]
    done = run("animate.py", "--picture", picture, *arguments)
    if done.returncode and "GL" in done.stderr:
        pytest.skip(f"MuJoCo cannot draw here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    image = Image.open(picture).convert("RGB")
    assert image.size == (240, 60)
    parts = [image.crop((80 * i, 0, 80 * i + 80, 60)).tobytes() for i in range(3)]
    assert len(set(parts)) == 3, "three moments"
    rows = [line.split() for line in costs.read_text().splitlines()]
    assert [float(time) for time, _ in rows] == pytest.approx([0.04 * i for i in range(5)]), "a row a plan"
    assert all(float(cost) > 0 for _, cost in rows)


def test_a_short_gallery(tmp_path: Path) -> None:
    """Pictures, costs over time and their plot; what is there is not made again, and what is no task is told."""
    from PIL import Image

    script = CLIENTS.parent / "scripts/gallery.sh"
    command = [script, "--tasks", "cart_pole,billiard", "--seconds", "0.1", "--python", sys.executable, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode and "GL" in done.stderr:
        pytest.skip(f"MuJoCo cannot draw here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    for task in ("cart_pole", "billiard"):
        image = Image.open(tmp_path / f"{task}.webp").convert("RGB")
        assert image.size == (960, 200), "four moments"
        assert len(image.getcolors(1 << 18)) > 50, "something is drawn"
        times = [float(line.split()[0]) for line in (tmp_path / f"{task}.txt").read_text().splitlines()]
        assert times[0] == 0 and times[-1] < 0.1 and len(times) > 1
    assert shutil.which("gnuplot") is None or (tmp_path / "costs.png").stat().st_size > 1000
    before = (tmp_path / "billiard.webp").stat().st_mtime_ns
    (tmp_path / "cart_pole.webp").unlink()
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and "cart_pole: 0.1 s" in again.stderr and "billiard: " not in again.stderr
    assert (tmp_path / "billiard.webp").stat().st_mtime_ns == before and (tmp_path / "cart_pole.webp").exists()
    wrong = subprocess.run([script, "--tasks", "guess", tmp_path / "none"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2 and "guess is none of arm_reach billiard" in wrong.stderr


def test_figures_of_the_view() -> None:
    for seconds in (1, 4, 16):  # more, where the machine is busy with other things
        done = run("bench_view.py", "--no-browser", f"--seconds={seconds}", "--warm=1", "--poses=8", "--json")
        assert done.returncode == 0, done.stderr
        figures = json.loads(done.stdout[done.stdout.index("{") :])
        if figures["new plans a second"] > 0:
            break
    assert 0 < figures["frames a second, shown"] <= 31
    assert figures["frames a second, drawn by the browser"] is None
    assert figures["new plans a second"] > 0
    assert figures["kB sent a frame"] == 0, "nobody looks"
    assert figures["cores used"]["daemon"] > 0

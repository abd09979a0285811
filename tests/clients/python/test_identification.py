"""The command sinew identify: what it reads, finds, writes and refuses, and that it goes on after an interrupt."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import cli, errors
from sinew.identification import recordings
from sinew.identification.order import Order
from sinew.identify import PoseLoss
from sinew.parameters import Parameters

pytest.importorskip("yaml")
pytest.importorskip("tqdm")
pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

from sinew.client import Daemon

SEED = 20261125
ARM = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="j" axis="0 1 0" damping="{}"/>
  <geom name="g" size="0.05" pos="0 0 -0.4" mass="{}"/></body></worldbody>
  <actuator><motor name="m" joint="j"/></actuator></mujoco>"""
FILE = """
model: arm.xml
parameters:
  damping: {attribute: "joint.j.damping[0]", bounds: [0.01, 0.5]}
  mass: {attribute: geom.g.mass, bounds: [0.3, 3], transform: log}
recordings: [run*]
segments: {steps: 8, stride: 8}
optimizer: {kind: lbfgs, iterations: 20}
loss: {kind: state, velocity: 0.01}
held_out: 0.2
"""


def runs(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write the model and the file, and return motions of the true arm: ctrl, qpos, qvel (2, 41, 1)."""
    (folder / "arm.xml").write_text(ARM.format(0.05, 1.0), encoding="utf-8")
    (folder / "arm.yaml").write_text(FILE, encoding="utf-8")
    rng = np.random.default_rng(SEED)
    ctrl = rng.standard_normal((2, 41, 1))
    made = sinew.rollout(
        sinew.Model.from_string(ARM.format(0.13, 0.7)), {"qpos": rng.standard_normal((2, 1))}, ctrl, gradients=False
    )
    return ctrl, made.qpos[:, :-1], made.qvel[:, :-1]


def write_csv(path: Path, rows: list[list[Any]], head: list[str] | None = None) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head or ["motion", "time", "qpos.j", "qvel.j", "ctrl.m"], *rows])


def rows_of(ctrl: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> list[list[Any]]:
    return [[k, 0.01 * i, qpos[k, i, 0], qvel[k, i, 0], ctrl[k, i, 0]] for k in range(2) for i in range(41)]


def test_what_is_found_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ctrl, qpos, qvel = runs(tmp_path)
    write_csv(tmp_path / "run.csv", rows_of(ctrl, qpos, qvel))
    np.savez(tmp_path / "run2.npz", time=0.01 * np.arange(41), qpos=qpos[0], qvel=qvel[0], ctrl=ctrl[0])
    command = ["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / "out"), "--seed", "7"]
    assert cli.main(command) == 0
    said = capsys.readouterr().out
    assert re.search(r"\| damping \| 0\.05 \| 0\.13\d* \| \S+ \| 0\.01 to 0\.5 \|", said), said
    assert "seed 7" in said
    assert cli.main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["values"] == pytest.approx({"damping": 0.13, "mass": 0.7}, rel=1e-3)
    assert found["held_out"] < 1e-8
    assert found["errors"]["mass"] < 1e-2
    out = tmp_path / "out"
    names = {"report.md", "result.json", "identified.xml", "history.png", "residuals.png", "motion.png"}
    assert names <= {x.name for x in out.iterdir()}
    pictures = re.findall(r"\((\w+\.png)\)", (out / "report.md").read_text(encoding="utf-8"))
    assert len(pictures) == 3 and all((out / x).stat().st_size > 1000 for x in pictures)
    model = sinew.Model.load(out / "identified.xml")
    assert model.body_mass[1] == pytest.approx(0.7, rel=1e-3)
    assert json.loads((out / "result.json").read_text(encoding="utf-8"))["values"] == list(found["values"].values())


def test_recordings_of_muscles_without_activations_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = sinew.Model.load(sinew.share("models/arm_reach.xml"))
    ctrl = np.random.default_rng(SEED).uniform(0, 1, (30, model.nu))
    made = sinew.rollout(model, {"qpos": model.key_qpos[0]}, ctrl, gradients=False)
    head = ["time", *(f"{x}.{joint}" for x in ("qpos", "qvel") for joint in ("shoulder", "elbow"))]
    head += [f"{x}.{model.actuator(i).name}" for x in ("ctrl", "act") for i in range(model.nu)]
    rows = np.column_stack([made.time[:-1], made.qpos[:-1], made.qvel[:-1], ctrl, made.act[:-1]])
    sought = f"""
    model: {sinew.share("models/arm_reach.xml")}
    recordings: [run.csv]
    segments: {{steps: 5, stride: 5}}
    parameters: {{biceps: {{attribute: "actuator.biceps.gainprm[2]", bounds: [400, 1600], start: 600}}}}
    optimizer: {{iterations: 1}}
    """
    (tmp_path / "arm.yaml").write_text(sought, encoding="utf-8")

    def identify(out: str, columns: int) -> tuple[int, str]:
        write_csv(tmp_path / "run.csv", rows[:, :columns].tolist(), head[:columns])
        status = cli.main(["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / out), "--json"])
        return status, capsys.readouterr().err

    assert identify("with", len(head)) == (0, "")
    status, said = identify("without", len(head) - model.nu)
    assert status == 0 and said.startswith("note: the recordings have no activations")
    assert said.strip() in (tmp_path / "without" / "report.md").read_text(encoding="utf-8")
    assert "note:" not in (tmp_path / "with" / "report.md").read_text(encoding="utf-8")
    status, said = identify("some", len(head) - 1)  # one of them is missing
    assert status == 1 and "no columns act.triceps_long" in said


def test_it_goes_on_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sinew.identification import command

    write_csv(tmp_path / "run.csv", rows_of(*runs(tmp_path)))
    text = FILE.replace("kind: lbfgs, iterations: 20", "kind: adam, iterations: 8") + "starts: 2\n"
    (tmp_path / "arm.yaml").write_text(text, encoding="utf-8")
    file, out = str(tmp_path / "arm.yaml"), tmp_path / "out"
    assert cli.main(["identify", file, "-o", str(tmp_path / "whole"), "--json"]) == 0
    whole = capsys.readouterr().out
    real, count = command.identify, 0

    def interrupted(*arguments: Any, **settings: Any) -> Any:
        show = settings.pop("progress")

        def stop(step: Any) -> None:
            nonlocal count
            count += 1
            show(step)
            if count == 12:
                raise KeyboardInterrupt

        return real(*arguments, progress=stop, **settings)

    monkeypatch.setattr(command, "identify", interrupted)
    assert cli.main(["identify", file, "-o", str(out)]) == 130
    assert not (out / "result.json").exists()
    lines = len((out / "journal.jsonl").read_text(encoding="utf-8").splitlines())
    assert lines >= 12
    monkeypatch.setattr(command, "identify", real)
    assert cli.main(["identify", file, "-o", str(out), "--json"]) == 0
    assert capsys.readouterr().out == whole
    assert cli.main(["identify", file, "-o", str(out), "--seed", "9"]) == 1
    assert "belongs to another identification" in capsys.readouterr().err


def test_a_change_in_an_included_file_is_another_identification(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(tmp_path / "run.csv", rows_of(*runs(tmp_path)))
    part = '<mujoco><option timestep="0.01" gravity="0 0 {}"/></mujoco>'
    text = ARM.format(0.05, 1.0).replace('<option timestep="0.01"/>', '<include file="part.xml"/>')
    (tmp_path / "arm.xml").write_text(text, encoding="utf-8")
    (tmp_path / "part.xml").write_text(part.format(-9.81), encoding="utf-8")
    command = ["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / "out")]
    assert cli.main(command) == 0
    assert cli.main(command) == 0
    (tmp_path / "part.xml").write_text(part.format(-9.8), encoding="utf-8")
    assert cli.main(command) == 1
    assert "belongs to another identification" in capsys.readouterr().err


def test_a_model_with_a_mesh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file with the values finds the mesh from another folder, and from any working one."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "t.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n", encoding="utf-8"
    )
    write_csv(tmp_path / "run.csv", rows_of(*runs(tmp_path)))
    text = ARM.format(0.05, 1.0).replace(
        "<worldbody>",
        '<compiler meshdir="assets"/><asset><mesh name="t" file="t.obj"/></asset><worldbody>'
        '<geom type="mesh" mesh="t" contype="0" conaffinity="0"/>',
    )
    (tmp_path / "arm.xml").write_text(text, encoding="utf-8")
    assert cli.main(["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / "far" / "out")]) == 0
    model = sinew.Model.load(tmp_path / "far" / "out" / "identified.xml")
    assert model.body_mass[1] == pytest.approx(0.7, rel=1e-3)
    capsys.readouterr()
    (tmp_path / "block").write_text("", encoding="utf-8")
    assert cli.main(["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / "block")]) == 1
    assert "block" in capsys.readouterr().err
    with pytest.raises(errors.FileError, match=r"none/x.xml"):
        Parameters(tmp_path / "arm.xml", {"mass": "geom.g.mass"}).save(tmp_path / "none" / "x.xml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("damping[0]", "dampness[0]"), "no attribute 'dampness'"),
        (("joint.j.damping[0]", "joint.j.type"), "type is discrete"),
        (("geom.g.mass", "geom.g.condim"), "condim is discrete"),
        (("[0.3, 3]", "[3, 0.3]"), "mass: bounds are"),
        (("[0.3, 3]", "[-1, 3]"), r"mass: bounds\[0\] is -1.0, above 0"),
        (("[0.01, 0.5]", "[0.1, 0.5]"), "damping: starts at 0.05, outside of its bounds"),
        (("[0.01, 0.5]", "much"), "parameters.damping.bounds: 'much', expected two numbers"),
        (("model: arm.xml", "model: leg.xml"), "leg.xml"),
        (("model: arm.xml", "model:"), "model: not given"),
        (("held_out: 0.2", "held_out: 1"), "held_out 1"),
        (("held_out: 0.2", "hold_out: 0.2"), "'hold_out' is not known; did you mean 'held_out'"),
        (("kind: lbfgs", "kind: newton"), "optimizer: 'newton', allowed are"),
        (("iterations: 20", "iterations: 0"), "optimizer.iterations: 0"),
        (("kind: state", "kind: pose"), "loss: 'velocity' is not known"),
        (("velocity: 0.01", "velocity: -1"), "velocity of at least 0"),
        (("steps: 8", "steps: 50"), "none has 51 rows"),
        (("held_out: 0.2", "integrator: {rtol: 0}"), "integrator.rtol: 0, allowed is above 0 to 1"),
        (("held_out: 0.2", "integrator: {atol: small}"), "integrator.atol: 'small', expected a number"),
        (("held_out: 0.2", "substeps: 2"), "rows are 0.01 s apart, 2 steps of the model are 0.02 s"),
        (("held_out: 0.2", "held_out: 0.99"), "held_out: 0.99 of 10 segments leaves none"),
        (("held_out: 0.2", "cfd: {solimp: much}"), "cfd.solimp: 'much', expected five numbers"),
        (("held_out: 0.2", "cfd: {solimp: [0, 1, 1, 1, much]}"), "cfd.solimp: 'much', expected a number"),
        (("held_out: 0.2", "cfd: {smooth: little}"), "cfd.smooth: 'little', expected a number"),
        (("held_out: 0.2", "cfd: {friction: 2}"), "cfd.friction: 2, expected true or false"),
        (("held_out: 0.2", "cfd: {bodies: arm}"), "cfd.bodies: 'arm', expected a list of names"),
        (
            ("geom.g.mass, bounds: [0.3, 3]", "geom.g.mass, start: 0"),
            "mass: 0.0 is not above 0, as transform log wants it",
        ),
        (("kind: state, velocity: 0.01", "kind: pose, scale: 1, joint: 3"), "joint 3, the model has 1, from 0 on"),
        (("[run*]", "[walk*]"), "there is no"),
        (("[run*]", "[arm.xml]"), "a recording ends in .csv, .npz, .mcap"),
        (("model: arm.xml", "model: [arm.xml"), "expected"),
    ],
)
def test_a_bad_file(change: tuple[str, str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(tmp_path / "run.csv", rows_of(*runs(tmp_path)))
    assert change[0] in FILE
    (tmp_path / "arm.yaml").write_text(FILE.replace(*change), encoding="utf-8")
    assert cli.main(["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert re.search(words, said), said


def test_a_bound_that_mujoco_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(tmp_path / "run.csv", rows_of(*runs(tmp_path)))
    text = FILE.replace("geom.g.mass, bounds: [0.3, 3], transform: log", "geom.g.size, bounds: [-1, 0.1], start: -0.5")
    (tmp_path / "arm.yaml").write_text(text, encoding="utf-8")
    assert cli.main(["identify", str(tmp_path / "arm.yaml"), "-o", str(tmp_path / "out")]) == 1
    assert "MuJoCo refuses damping = 0.05, mass = -0.5" in capsys.readouterr().err


@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_bad_recordings(tmp_path: Path) -> None:
    ctrl, qpos, qvel = runs(tmp_path)
    model, path = sinew.Model.load(tmp_path / "arm.xml"), tmp_path / "run.csv"
    rows = rows_of(ctrl, qpos, qvel)

    def refused(words: str, rows: list[list[Any]], head: list[str] | None = None) -> None:
        write_csv(path, rows, head)
        with pytest.raises(errors.SinewError, match=words):
            recordings.read_motions(path, model)

    refused(r"run.csv, motion 0: a gap at row 11: 0.02 s to the next, elsewhere 0.01 s", rows[:12] + rows[13:])
    refused(r"motion 1: qpos\[3\] is not finite", [*rows[:44], [1, 0.03, "", 0, 0], *rows[45:]])
    refused(r"motion 1: qvel\[3\] is not finite", [*rows[:44], [1, 0.03, 0, "fast", 0], *rows[45:]])
    refused(
        r"no columns qvel\.j, ctrl\.m; there are motion, time, qpos\.j",
        [x[:3] for x in rows],
        ["motion", "time", "qpos.j"],
    )
    refused("line 5 has 4 fields, expected 5", [*rows[:3], rows[3][:4], *rows[4:]])
    refused("1 lines, expected names", [])
    np.savez(tmp_path / "run.npz", time=np.arange(3.0), qpos=np.zeros((3, 1)), qvel=np.zeros((3, 1)))
    with pytest.raises(errors.ArgumentError, match="no ctrl, and the model has 1 controls"):
        recordings.read_motions(tmp_path / "run.npz", model)
    np.savez(tmp_path / "run.npz", time=np.arange(3.0), qpos=np.zeros((3, 2)), qvel=np.zeros((3, 1)))
    with pytest.raises(errors.ArgumentError, match=r"qpos has shape \(3, 2\), expected \(3, 1\)"):
        recordings.read_motions(tmp_path / "run.npz", model)
    np.savez(tmp_path / "run.npz", time=np.arange(3.0))
    with pytest.raises(errors.ArgumentError, match="no arrays qpos, qvel"):
        recordings.read_motions(tmp_path / "run.npz", model)
    whole = (tmp_path / "run.npz").read_bytes()
    for content in (b"", whole[:50], whole[:-30], b"motion,time"):
        (tmp_path / "run.npz").write_bytes(content)
        with pytest.raises(errors.FileError, match=r"run.npz: \S+"):
            recordings.read_motions(tmp_path / "run.npz", model)
    np.save(tmp_path / "run.npy", np.zeros(3))
    (tmp_path / "run.npy").rename(tmp_path / "run.npz")
    with pytest.raises(errors.FormatError, match="one array, expected an archive"):
        recordings.read_motions(tmp_path / "run.npz", model)
    np.savez(tmp_path / "run.npz", time=[], qpos=np.zeros((0, 1)), qvel=np.zeros((0, 1)), ctrl=np.zeros((0, 1)))
    with pytest.raises(errors.ArgumentError, match="its arrays have no rows"):
        recordings.read_motions(tmp_path / "run.npz", model)
    np.savez(tmp_path / "run.npz", time=np.arange(3.0), qpos=[], qvel=np.zeros((3, 1)), ctrl=np.zeros((3, 1)))
    with pytest.raises(errors.ArgumentError, match=r"qpos has shape \(0,\), expected \(3, 1\)"):
        recordings.read_motions(tmp_path / "run.npz", model)


def test_what_a_file_says() -> None:
    content = {
        "model": "arm.xml", "parameters": {"side": "geom.g.size"}, "recordings": __file__, "segments": "whole",
        "loss": {"kind": "pose", "scale": 0.1}, "cfd": True, "integrator": {"rtol": 1e-3, "method": "bosh3"},
    }  # fmt: skip
    order = Order.of(content, Path("/"))
    assert order.whole and order.settings["integrator"] == {"rtol": 1e-3, "method": "bosh3"}
    assert order.settings["cfd"] == sinew.CFD()
    assert order.loss == PoseLoss(0.1)
    with pytest.raises(errors.ArgumentError, match="needs scale"):
        Order.of(content | {"loss": {"kind": "pose"}}, Path("/"))


def test_columns_are_those_of_export(daemon: Daemon, tmp_path: Path) -> None:
    """What sinew record writes is read, and what sinew export makes of it has the columns that are expected."""
    pytest.importorskip("mcap")
    pytest.importorskip("foxglove_schemas_protobuf")
    from sinew.record.export import table
    from sinew.record.reader import Recording

    from recordings import Arm, record

    with daemon.client(20) as client:
        record(Arm(client), tmp_path / "arm.mcap", 20, daemon)
    model = sinew.Model.load(sinew.share("models/arm_reach.xml"))
    states = table(Recording(tmp_path / "arm.mcap"), "states")
    states.write_csv(tmp_path / "states.csv")
    with (tmp_path / "states.csv").open(encoding="utf-8") as file:
        head = file.readline().strip().split(",")
    names = recordings.column_names(model)
    assert {*names["qpos"], *names["qvel"], *names["act"], "time"} <= set(head)
    (motion,) = recordings.read_motions(tmp_path / "arm.mcap", model)
    np.testing.assert_array_equal(motion.qpos, np.array(states.columns["qpos"])[: len(np.asarray(motion.qpos))])
    assert np.asarray(motion.ctrl).shape == (len(np.asarray(motion.qpos)), 6)
    assert np.any(np.asarray(motion.ctrl) != 0)
    with pytest.raises(errors.ArgumentError, match="its body has nq, nv, nu = 2, 2, 6, the model 7, 6, 0"):
        recordings.read_motions(tmp_path / "arm.mcap", sinew.Model.load(sinew.share("models/cube_table.xml")))


def test_it_is_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from sinew.identification import command

    monkeypatch.setattr("sys.argv", ["sinew-identify", "--help"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    example = said[said.index("  model: cube.xml") : said.index("A CSV file")]
    import yaml

    content = yaml.safe_load(example)
    assert Order.of(content | {"recordings": [__file__]}, Path("/")).settings["starts"] == 3

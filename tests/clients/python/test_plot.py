"""Pictures of closed loops and of tables: what is in them, that it can be seen, and files that are something else."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import sinew
from sinew.client import Daemon
from sinew.errors import ArgumentError, FormatError, NotFoundError

for name in ("matplotlib", "pandas", "pyarrow", "scipy", "tqdm", "yaml"):
    pytest.importorskip(name)

import matplotlib.colors  # noqa: E402
import matplotlib.image  # noqa: E402
import pandas as pd  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from sinew import cli  # noqa: E402
from sinew.plot import Loop, read_loop  # noqa: E402
from sinew.plot.loop import Series  # noqa: E402
from sinew.plot.panels import PANELS, available  # noqa: E402
from sinew.plot.single import draw_loops  # noqa: E402
from sinew.plot.style import COLOURS, lines, pictures  # noqa: E402
from sinew.plot.table import draw_table  # noqa: E402
from sinew.sweep import read, summary  # noqa: E402

import scenes  # noqa: E402

# As sinew-plant --data writes them.
COLUMNS = """time cost "hand_at_target" ctrl0 ctrl1 age jump qpos0
0 0.25 0.2 0.1 0 0 0 1
0.005 0.2 0.15 0.2 0.1 0.005 0 1.1
0.01 0 0.01 0.1 0.3 0.01 0.2 1.2
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small sweep with traces."""
    folder = tmp_path_factory.mktemp("swept")
    arguments = "--tasks arm_reach --planners adam,sampling-8 --seeds 1-3 --seconds 0.3 --iterations 2 --keep"
    assert cli.main(["sweep", "-o", str(folder), *arguments.split()]) == 0
    return folder


def traces(folder: Path) -> list[Path]:
    return sorted((folder / "traces").iterdir())


def labels(figure: Figure) -> list[tuple[str, str]]:
    return [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]


# ---- one loop ----


def test_panels_of_a_trace(swept: Path) -> None:
    loop = read_loop(traces(swept)[0])
    assert available(loop) == list(PANELS)
    with pictures():
        figure = draw_loops([loop])
    found = labels(figure)
    for expected in [
        ("time [s]", "cost of the state"),
        ("time [s]", "plan's cost by term"),
        ("time [s]", "measures of success"),
        ("time [s]", "controls"),
        ("", "activation"),  # the scale of the map
        ("latency of a plan [ms]", "plans"),
        ("x [m]", "z [m]"),  # the arm moves in this plane
    ]:
        assert expected in found
    assert figure.get_suptitle().startswith("arm_reach, ")
    panels = {axes.get_ylabel(): axes for axes in figure.axes}
    (cost,) = panels["cost of the state"].lines
    np.testing.assert_array_equal(cost.get_ydata(), np.load(traces(swept)[0])["cost"])
    bounds = [line for line in panels["measures of success"].lines if list(line.get_ydata()) == [0.02, 0.02]]
    assert len(bounds) == 2 and list(bounds[1].get_xdata()) == [0, pytest.approx(0.3)]
    names = [text.get_text() for text in panels["plan's cost by term"].get_legend().get_texts()]
    assert names == list(scenes.REACH_TERMS)
    counts = [patch.get_height() for patch in panels["plans"].patches]
    assert sum(counts) == len(np.load(traces(swept)[0])["plan_latency"])
    assert [text.get_text() for text in panels["plans"].get_legend().get_texts()] == [
        "between two plans in real time: 80 ms"
    ]


def test_loops_side_by_side_have_the_same_scales(swept: Path, tmp_path: Path) -> None:
    (tmp_path / "adam, cfd").write_text(COLUMNS)
    loops = [read_loop(traces(swept)[0]), read_loop(tmp_path / "adam, cfd")]
    with pictures():
        figure = draw_loops(loops)
    left, right = (axes for axes in figure.axes if axes.get_ylabel() == "cost of the state")
    assert left.get_ylim() == right.get_ylim() and left.get_xlim() == right.get_xlim()
    assert (left.get_title(), right.get_title()) == (loops[0].name, "adam, cfd")
    assert len([axes for axes in figure.axes if axes.axison]) == len(PANELS) + 3 + 1  # and the scale of the map


def test_long_names_of_lines_do_not_make_panels_narrow() -> None:
    time, names = np.linspace(0, 1, 5), ("triceps_long", "triceps_lat", "brachialis", "biceps", "delt_ant", "delt_post")
    controls = Series(time, names, np.tile(np.arange(6.0), (5, 1)))
    loop = Loop("loop", Series(time, ("cost",), np.ones((5, 1))), controls=controls, activations=controls)
    with pictures():
        figure = draw_loops([loop, loop], [])
        figure.draw_without_rendering()
    assert figure.axes[0].get_position().width > 0.25  # of half of the picture


def test_names_of_loops_stand_above_those_of_lines(swept: Path) -> None:
    loops = [read_loop(path) for path in traces(swept)[:2]]
    with pictures():
        figure = draw_loops(loops, ["terms"])
        figure.draw_without_rendering()
    assert [axes.get_title() for axes in figure.axes] == [loop.name for loop in loops]
    for axes in figure.axes:
        legend = axes.get_legend()
        assert len(legend.get_texts()) > 3  # more than a line of names
        assert axes.title.get_window_extent().y0 >= legend.get_window_extent().y1


def test_columns_of_the_plant(tmp_path: Path) -> None:
    (tmp_path / "run").write_text(COLUMNS)
    loop = read_loop(tmp_path / "run")
    assert available(loop) == ["cost", "measures", "controls"]
    assert loop.measures is not None and loop.measures.names == ("hand_at_target",)
    assert loop.controls is not None and loop.controls.values.tolist() == [[0.1, 0], [0.2, 0.1], [0.1, 0.3]]
    assert loop.cost.time.tolist() == [0, 0.005, 0.01]


def test_a_recording(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcap")
    pytest.importorskip("foxglove_schemas_protobuf")
    from recordings import Arm, record

    with daemon.client(20) as client:
        arm = Arm(client)
        record(arm, tmp_path / "arm.mcap", 20, daemon)
    loop = read_loop(tmp_path / "arm.mcap")
    assert available(loop) == ["cost", "terms", "controls", "activations", "latency", "space"]
    states = np.array(arm.states)
    m, d = arm.model, arm.data
    expected = []
    import mujoco

    for qpos in states:
        d.qpos[:] = qpos
        mujoco.mj_kinematics(m, d)
        expected.append(d.site("hand").xpos.copy())
    way = loop.places["hand"]
    assert 20 <= len(way) <= len(expected)
    assert any(np.array_equal(way, expected[i : i + len(way)]) for i in range(len(expected) - len(way) + 1))
    assert loop.terms is not None and loop.terms.names == scenes.REACH_TERMS
    assert cli.main(["plot", str(tmp_path / "arm.mcap"), "-o", str(tmp_path / "arm.png")]) == 0
    monkeypatch.setattr("sinew.loop.places.find_model", lambda name, file: sinew.share("models/billiard.xml"))
    assert available(read_loop(tmp_path / "arm.mcap")) == ["cost", "terms", "controls", "activations", "latency"]


def test_many_controls_are_a_map_and_odd_numbers_are_drawn() -> None:
    time = np.linspace(0, 1, 20)
    values = np.random.default_rng(1).uniform(-1, 1, (20, 39))
    series = Series(time, tuple(f"muscle{i}" for i in range(39)), values)
    cost = Series(time, ("cost",), np.where(time > 0.5, np.nan, np.inf)[:, None])
    with pictures():
        figure = draw_loops([Loop("wide", cost, controls=series)])
        alone = draw_loops(
            [
                Loop(
                    "short",
                    Series(time[:1], ("cost",), np.zeros((1, 1))),
                    controls=Series(time[:1], ("a",), values[:1, :1]),
                )
            ]
        )
    bar = next(axes for axes in figure.axes if axes.get_ylabel() == "controls")
    np.testing.assert_allclose(bar.get_ylim(), (values.min(), values.max()))
    ticks = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert "muscle0" in ticks and len([x for x in ticks if x.startswith("muscle")]) <= 13
    assert ("time [s]", "controls") in labels(alone)


# ---- tables ----


def test_a_table(swept: Path) -> None:
    runs = read(swept)
    with pictures():
        figure = draw_table(runs)
    success, cost, latency = figure.axes
    figures = summary(runs)
    intervals = [line.get_xdata() for line in success.lines[::2]]
    np.testing.assert_array_equal(intervals, figures[["success_low", "success_high"]])
    assert [text.get_text() for text in success.get_yticklabels()] == ["adam", "sampling-8"]
    assert "Wilson" in success.get_xlabel() and cost.get_ylabel() == "cost, median and quartiles"
    curves = np.array(list(runs[runs["planner"] == "adam"]["curve_cost"]))
    np.testing.assert_array_equal(cost.lines[0].get_ydata(), np.median(curves, axis=0))
    band = cost.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == np.quantile(curves, 0.25, axis=0).min()
    assert latency.get_xlabel().startswith("latency of a plan [ms]")


def test_a_run_that_has_diverged_counts_as_the_worst(swept: Path) -> None:
    runs = read(swept)
    runs = runs[runs["planner"] == "adam"].reset_index(drop=True)
    runs = pd.concat([runs] * 5).reset_index(drop=True).head(5)
    curves = [np.asarray(curve) for curve in runs["curve_cost"]]
    half = len(curves[0]) // 2
    runs["curve_cost"] = [curve[:half] if row == 0 else curve for row, curve in enumerate(curves)]
    with pictures():
        (axes,) = draw_table(runs, ["cost"]).axes
    expected = np.array(curves)
    expected[0, half:] = 1e9
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.median(expected, axis=0))


def test_labels_of_groups_say_what_their_numbers_are(swept: Path) -> None:
    runs = read(swept)
    both = pd.concat([runs.assign(iterations=4, execute=8), runs.assign(iterations=8, execute=4)])
    with pictures():
        (axes,) = draw_table(both, ["success"]).axes
    assert axes.get_yticklabels()[0].get_text() == "adam, execute=8, iterations=4"


def test_a_table_with_errors_and_two_tasks(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(
        "{tasks: [arm_reach, billiard], seconds: 0.05, iterations: 1, planners: {ok: {planner: adam},"
        " bad: {planner: adam, max_velocity: 0.001}}, seeds: 1-2}"
    )
    cli.main(["sweep", str(tmp_path / "table.yaml"), "-o", str(tmp_path / "run")])
    assert cli.main(["plot", str(tmp_path / "run"), "-o", str(tmp_path / "both.svg"), "--what", "cost,success"]) == 0
    assert (tmp_path / "both.svg").stat().st_size > 10000


# ---- files ----


@pytest.mark.parametrize(("kind", "begin"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_numbers_are_the_same_file(swept: Path, tmp_path: Path, kind: str, begin: bytes) -> None:
    made = []
    for _ in range(2):
        out = tmp_path / f"x.{kind}"
        assert cli.main(["plot", str(swept), "-o", str(out), "--what", "cost", "--title", "a title"]) == 0
        made.append(out.read_bytes())
    assert made[0] == made[1] and made[0].startswith(begin) and len(made[0]) > 5000


def test_pictures_show_something(swept: Path, tmp_path: Path) -> None:
    for number, source in enumerate([swept, *traces(swept)[:1]]):
        out = tmp_path / f"{number}.png"
        assert cli.main(["plot", str(source), "-o", str(out)]) == 0
        pixels = matplotlib.image.imread(out)[..., :3]
        ink = (pixels < 0.9).any(axis=-1)
        assert 0.02 < ink.mean() < 0.6 and pixels.std() > 0.05
        rows, columns = (np.flatnonzero(ink.any(axis=axis)) for axis in (1, 0))
        for found, size in ((rows, ink.shape[0]), (columns, ink.shape[1])):
            assert found[0] < 0.1 * size and found[-1] > 0.9 * size  # all of the page is used
            assert found[0] > 0 and found[-1] < size - 1  # nothing is cut off at its edges


def test_lines_differ_in_grey_and_for_the_colour_blind() -> None:
    styles = lines(24)
    assert len({(x["color"], x["linestyle"]) for x in styles}) == 24
    assert len({x["linestyle"] for x in styles[:4]}) == 4
    # G. Machado et al., 2009: what is left of red, green and blue in full protanopia and deuteranopia.
    protan = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    deutan = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    colours = np.array([matplotlib.colors.to_rgb(x) for x in COLOURS])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    for matrix in (np.eye(3), protan, deutan):
        seen = np.clip(linear @ np.transpose(matrix), 0, 1) ** (1 / 2.2)
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.15


@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_what_is_refused(swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("one two\n3 4\n")
    (tmp_path / "short").write_text(COLUMNS.replace(" 1.2\n", "\n"))
    (tmp_path / "empty").write_text("")
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    (tmp_path / "cut.npz").write_bytes(traces(swept)[0].read_bytes()[:2000])
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    for seed in range(8):  # some of them within what is packed
        damaged = bytearray(traces(swept)[0].read_bytes())
        for at in np.random.default_rng(seed).integers(100, len(damaged), 20):
            damaged[at] ^= 255
        (tmp_path / f"damaged{seed}.npz").write_bytes(damaged)
    damaged_names = [f"damaged{seed}.npz" for seed in range(8)]
    for name in ("text", "short", "empty", "bytes", "cut.npz", "other.npz", *damaged_names):
        with pytest.raises(FormatError, match=rf"{name}: no trace of sinew sweep"):
            read_loop(tmp_path / name)
    with pytest.raises(NotFoundError):
        read_loop(tmp_path / "nothing")
    loop = read_loop(traces(swept)[0])
    with pytest.raises(ArgumentError, match=r"x: nothing to draw of terms; cost can be"):
        draw_loops([loop, Loop("x", loop.cost)], ["terms"])
    trace, png = str(traces(swept)[0]), str(tmp_path / "x.png")
    for arguments, text in [
        ([trace, "-o", "x.jpeg"], ".svg, .png, .pdf"),
        ([trace, "-o", png, "--what", "colour"], "--what colour: expected some of cost, terms"),
        ([str(swept), "-o", png, "--what", "terms"], "expected some of success"),
        ([str(swept), trace, "-o", png], "one sweep"),
        ([str(tmp_path), "-o", png], "no runs.parquet"),
    ]:
        assert cli.main(["plot", *arguments]) == 1
        assert text in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        cli.main(["plot", trace, "-o", str(tmp_path / "no/x.png")])
    assert ended.value.code == 2 and f"there is no folder '{tmp_path}/no'" in capsys.readouterr().err
    assert not Path(png).exists()
    assert sinew.__version__

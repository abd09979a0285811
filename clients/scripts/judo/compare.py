"""Runs judo-rai's controllers and sinew's planners on judo's own tasks, from the same states, with the same body and score.

A run is a closed loop of some seconds: judo's `Controller` with its default settings of the task, or `sinew-bench mpc` with a
task file of this folder. The body is judo's model in the MuJoCo that each has (judo-rai 0.1.0 wants 3.6). Both motions are
scored by judo's reward. Each run is a line of JSON in FOLDER/runs.jsonl; runs that have their line are not run again.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

import mujoco
import numpy as np
from judo import MODEL_PATH
from judo.app.structs import MujocoState
from judo.controller import Controller, ControllerConfig
from judo.controller.overrides import set_default_cartpole_overrides as controller_cartpole
from judo.controller.overrides import set_default_cylinder_push_overrides as controller_cylinder
from judo.optimizers import get_registered_optimizers
from judo.optimizers.overrides import set_default_cartpole_overrides as optimizer_cartpole
from judo.optimizers.overrides import set_default_cylinder_push_overrides as optimizer_cylinder
from judo.tasks import get_registered_tasks

HERE = pathlib.Path(__file__).parent
EXECUTE = {"cartpole": 1, "cylinder_push": 2}  # steps between two plans: 25 plans a second of motion
JUDO = ["ps", "cem", "mppi"]
SINEW = ["sampling", "cem", "mppi", "adam", "lbfgs", "ilqg", "hybrid"]


def initial(name: str, seed: int) -> np.ndarray:
    """Return the positions at which judo's task starts with a seed (its speeds are set to zero here)."""
    np.random.seed(seed)
    return np.array(get_registered_tasks()[name][0]().data.qpos)


def score(task: Any, states: np.ndarray, controls: np.ndarray) -> dict[str, float]:
    """Return judo's cost a step of a motion: its mean, and that over the last second."""
    last = min(round(1 / task.model.opt.timestep), len(states))
    sensors = np.zeros((1, len(states), task.model.nsensordata))
    mean = -task.reward(states[None], sensors, controls[None], {})[0] / len(states)
    end = -task.reward(states[None, -last:], sensors[:, -last:], controls[None, -last:], {})[0] / last
    return {"cost_mean": float(mean), "cost_end": float(end)}


def run_judo(name: str, optimizer: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return the result of one of judo's controllers."""
    task_type, _ = get_registered_tasks()[name]
    optimizer_type, config_type = get_registered_optimizers()[optimizer]
    settings, config = ControllerConfig(), config_type()
    settings.set_override(name)
    config.set_override(name)
    task = task_type()
    controller = Controller(settings, task, optimizer_type(config, task.nu))
    model, body = task.model, mujoco.MjData(task.model)
    body.qpos[:] = initial(name, seed)
    np.random.seed(seed)
    states, controls, took, processor = [], [], [], []
    for step in range(round(seconds / model.opt.timestep)):
        if step % EXECUTE[name] == 0:
            controller.update_states(
                MujocoState(
                    body.time,
                    body.qpos.copy(),
                    body.qvel.copy(),
                    body.xpos,
                    body.xquat,
                    body.mocap_pos,
                    body.mocap_quat,
                    {},
                )
            )
            began, used = time.perf_counter(), time.process_time()
            controller.update_action()
            took.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
        body.ctrl[:] = controller.action(body.time)
        states.append(np.concatenate([body.qpos, body.qvel]))
        controls.append(body.ctrl.copy())
        mujoco.mj_step(model, body)
    return {
        "ms_per_plan": 1e3 * statistics.median(took),
        "cpu_ms_per_plan": 1e3 * statistics.fmean(processor),
        "candidates": config.num_rollouts,
        **score(task, np.array(states), np.array(controls)),
    }


def run_sinew(bench: str, folder: pathlib.Path, name: str, planner: str, seed: int, seconds: float) -> dict[str, Any]:
    """Return the result of one of sinew's planners."""
    task = get_registered_tasks()[name][0]()
    model, place = task.model, initial(name, seed)
    joints = {model.joint(j).name: float(place[j]) for j in range(model.njnt)}
    start = folder / f"{name}-{seed}.yaml"
    start.write_text(f"base: {name}\ninitial: {{joints: {json.dumps(joints)}}}\n")
    (folder / f"{name}.yaml").write_text((HERE / f"{name}.yaml").read_text())
    data = folder / "data.txt"
    models = pathlib.Path(task.model_path).parent
    command = [
        bench,
        "mpc",
        "--task",
        str(start),
        "--models",
        str(models),
        "--planner",
        planner,
        "--seed",
        str(seed),
        "--quiet",
    ]
    command += [
        "--seconds",
        str(seconds),
        "--execute",
        str(EXECUTE[name]),
        "--json",
        "--data",
        str(data),
        "--threads",
        "2",
    ]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if not ended.stdout:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr}")
    run = json.loads(ended.stdout)
    columns = data.read_text().splitlines()
    header, rows = columns[0].split(), np.array([[float(x) for x in line.split()] for line in columns[1:]])
    control = rows[:, [i for i, h in enumerate(header) if h.startswith("ctrl")]]
    place = rows[:, [i for i, h in enumerate(header) if h.startswith("qpos")]]
    speed = (
        np.diff(place, axis=0, prepend=place[:1]) / model.opt.timestep
    )  # exact: Euler's, with hinges and slides alone
    count = round(seconds / model.opt.timestep)
    states = np.hstack([place, speed])[:count]
    keep = ["ms_per_plan", "cpu_ms_per_plan", "candidates", "iterations"]
    return {**{key: run[key] for key in keep}, **score(task, states, control[:count])}


def table(lines: list[dict[str, Any]]) -> str:
    """Return a table in Markdown: a row a task and planner, medians over the seeds."""
    out = [
        "| task | planner | judo's cost a step, median | last second: all seeds | plans a second | processor ms a plan |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    kinds = dict.fromkeys((run["task"], run["program"], run["planner"]) for run in lines)
    for task, program, planner in kinds:
        runs = [run for run in lines if (run["task"], run["program"], run["planner"]) == (task, program, planner)]
        mean = statistics.median(run["cost_mean"] for run in runs)
        ends = ", ".join(f"{run['cost_end']:.2g}" for run in runs)
        wall = statistics.median(run["ms_per_plan"] for run in runs)
        processor = statistics.median(run["cpu_ms_per_plan"] for run in runs)
        out.append(f"| `{task}` | {program} {planner} | {mean:.3g} | {ends} | {1e3 / wall:.0f} | {processor:.2f} |")
    return "\n".join(out) + "\n"


def main() -> None:
    """Run what has no line yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True, help="sinew-bench")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1 to this")
    parser.add_argument("--seconds", type=float, default=5, help="of motion")
    parser.add_argument("--tasks", default=",".join(EXECUTE), help="which of judo's tasks")
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=pathlib.Path("sinew-judo"))
    args = parser.parse_args()
    unknown = set(args.tasks.split(",")) - set(EXECUTE)
    if unknown:
        parser.error(f"--tasks: {', '.join(sorted(unknown))} is none of {', '.join(EXECUTE)}")
    for set_default in controller_cartpole, controller_cylinder, optimizer_cartpole, optimizer_cylinder:
        set_default()
    (MODEL_PATH / "meshes").mkdir(exist_ok=True)  # else judo fetches meshes, which these two tasks do not have
    args.folder.mkdir(parents=True, exist_ok=True)
    out = args.folder / "runs.jsonl"
    lines = [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")] if out.exists() else []
    done = {(run["task"], run["program"], run["planner"], run["seed"], run["seconds"]) for run in lines}
    wanted = [
        (task, program, planner, seed)
        for task in args.tasks.split(",")
        for program, planners in (("judo", JUDO), ("sinew", SINEW))
        for planner in planners
        for seed in range(1, args.seeds + 1)
    ]
    for i, (task, program, planner, seed) in enumerate(wanted):
        if (task, program, planner, seed, args.seconds) in done:
            continue
        print(f"{i + 1} of {len(wanted)}: {task}, {program} {planner}, seed {seed}", file=sys.stderr)
        if program == "judo":
            result = run_judo(task, planner, seed, args.seconds)
        else:
            result = run_sinew(args.bench, args.folder, task, planner, seed, args.seconds)
        run = {"task": task, "program": program, "planner": planner, "seed": seed, "seconds": args.seconds, **result}
        lines.append(run)
        with out.open("a") as file:
            file.write(json.dumps(run) + "\n")
    text = table([run for run in lines if run["seconds"] == args.seconds])
    (args.folder / "table.md").write_text(text)
    print(text, end="")


main()

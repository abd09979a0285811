#!/usr/bin/python3
"""The metrics of a sinewd: Prometheus's parser takes them, they count what was done, and the examples beside the
daemon name nothing that is not there.

  tests/daemon/test_metrics.py BIN SOURCE     programs of the build, folder of the sources; status 1 on failure
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

NAME = re.compile(r"\bsinew_[a-z0-9_]+")
STATE = {"time": 0, "qpos": [0.35, 1.3], "qvel": [0, 0]}


class Daemon:
    """A sinewd with an endpoint of metrics."""

    def __init__(self, binaries: pathlib.Path, source: pathlib.Path, folder: pathlib.Path) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        self.control = [binaries / "sinewctl", "--endpoint", f"ipc://{folder}/s", "--json"]
        options = [
            "--backend=cpu", f"--endpoint=ipc://{folder}/s", f"--metrics=http://127.0.0.1:{self.port}", "--sessions=2",
            f"--tasks={source}/planner/tasks", f"--models={source}/physics/models", f"--cache={folder}/cache",
        ]  # fmt: skip
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen([binaries / "sinewd", *options], stderr=self.log)
        for _ in range(600):
            if self.ask("health"):
                return
            time.sleep(0.05)
        raise SystemExit("sinewd does not answer")

    def ask(self, *words: str, text: str | None = None) -> dict | None:
        """Send a request by sinewctl; None where it is refused."""
        done = subprocess.run([*self.control, *words], input=text, capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def page(self) -> str:
        """The page as it is now: what it had up to 0.1 s ago is given again."""
        time.sleep(0.15)
        with urllib.request.urlopen(self.url, timeout=20) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
            return answer.read().decode()

    def stop(self) -> int:
        """End it; its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


class Page:
    """A page that was parsed: values by name and labels."""

    def __init__(self, text: str) -> None:
        self.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        assert set(self.types) == {m for m in re.findall(r"^# HELP (\S+) .+", text, re.M)}
        self.values: dict[tuple[str, frozenset], float] = {}
        for family in text_string_to_metric_families(text):
            for s in family.samples:
                key = (s.name, frozenset(s.labels.items()))
                assert key not in self.values, f"{key} stands there twice"
                self.values[key] = s.value
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert len(lines) == len(self.values) and text.endswith("\n")
        for name, _ in self.values:
            assert self.base(name) in self.types, f"{name} has no type"
        for name, kind in self.types.items():
            assert (kind == "counter") == name.endswith("_total"), name
            if kind == "histogram":
                self.check_histogram(name)

    def base(self, name: str) -> str:
        """The family of a sample."""
        short = re.sub(r"_(bucket|sum|count)$", "", name)
        return short if self.types.get(short) == "histogram" else name

    def check_histogram(self, name: str) -> None:
        """Buckets grow up to the count, and the sum is no less than they say."""
        buckets = sorted((float(dict(k[1])["le"]), v) for k, v in self.values.items() if k[0] == name + "_bucket")
        counts = [v for _, v in buckets]
        assert counts == sorted(counts) and buckets[-1] == (float("inf"), self[name + "_count"]), buckets
        least = sum((b - a) * bound for (bound, a), (_, b) in zip(buckets[:-1], buckets[1:], strict=True))
        assert self[name + "_sum"] >= least, (name, least)

    def __getitem__(self, name: str) -> float:
        return self.get(name)

    def get(self, name: str, **labels: str) -> float:
        """The value of a series; 0 where there is none yet."""
        return self.values.get((name, frozenset(labels.items())), 0)

    def sessions(self) -> set[str]:
        """All places of sessions that are told."""
        return {dict(labels)["session"] for _, labels in self.values if "session" in dict(labels)}


def check_processors(d: Daemon, session: str) -> None:
    """Plans take time of the planner's threads; the system counts it in ticks, and other programs may have it."""
    for _ in range(100):
        if Page(d.page()).get("sinew_cpu_seconds_total", threads="planner") > 0.01:
            return
        assert d.ask("--deadline", "0.02", "plan", session, text=json.dumps(STATE))
    raise SystemExit("100 plans of 20 ms each take no time of the planner's threads")


def check_counts(d: Daemon) -> None:
    """What is done is counted, where it belongs and nowhere else."""
    before = Page(d.page())
    assert before["sinew_sessions"] == 0 and before.get("sinew_requests_total", request="plan") == 0
    one, two = (d.ask("open", "arm_reach", "planner=sampling", "candidates=8", "lease=100") for _ in range(2))
    assert one and two
    for _ in range(3):
        assert d.ask("--deadline", "0.02", "plan", str(one["session"]), text=json.dumps(STATE))
    assert d.ask("--deadline", "0.02", "plan", str(two["session"]), text=json.dumps(STATE))
    assert d.ask("tune", str(two["session"]), "candidates=9")
    assert d.ask("plan", str(one["session"]), text='{"time": 0, "qpos": [1], "qvel": [0]}') is None
    assert d.ask("plan", "5", text=json.dumps(STATE)) is None
    assert d.ask("open", "arm_reach") is None  # two are allowed
    assert d.ask("load", "no_such_model") is None
    text = d.page()
    after = Page(text)
    for id in (one["session"], two["session"]):
        assert str(id) not in text, "the id of a session is told"
    assert after.get("sinew_requests_total", request="plan") == 6
    assert after.get("sinew_replies_total", request="plan", code="OK") == 4
    assert after.get("sinew_replies_total", request="plan", code="INVALID") == 1
    assert after.get("sinew_replies_total", request="plan", code="NOT_FOUND") == 1
    assert after.get("sinew_replies_total", request="open", code="LIMIT") == 1
    assert after.get("sinew_plans_total", status="OK") + after.get("sinew_plans_total", status="WARM_START") == 4
    assert after.get("sinew_session_replies_total", session="0", code="OK") == 3
    assert after.get("sinew_session_replies_total", session="0", code="INVALID") == 1
    assert after.get("sinew_session_replies_total", session="1", code="OK") == 2
    assert after.get("sinew_session_configuration_version", session="1") == 2
    assert after.get("sinew_model_loads_total", code="OK") == 1
    assert after.get("sinew_connections", listener="requests") <= 1
    for part in ("waiting_", "computing_", "sending_", ""):
        assert after[f"sinew_plan_{part}seconds_count"] == 4, part
    parts = sum(after[f"sinew_plan_{part}_seconds_sum"] for part in ("waiting", "computing", "sending"))
    assert abs(parts - after["sinew_plan_seconds_sum"]) < 1e-9 and parts > 0
    assert after["sinew_planner_wake_seconds_count"] > 4 and after["sinew_planner_wake_seconds_sum"] > 0
    for threads in ("event_loop", "planner", "sockets", "others"):
        assert after.get("sinew_cpu_seconds_total", threads=threads) >= before.get("sinew_cpu_seconds_total", threads=threads), threads
    assert 0 < after["sinew_memory_planners_bytes"] < after["sinew_memory_planners_limit_bytes"]
    assert after.sessions() == {"0", "1"} and after["sinew_sessions"] == 2
    check_processors(d, str(one["session"]))
    assert d.ask("close", str(one["session"])) is not None
    third = d.ask("open", "arm_reach", "lease=100")
    assert third
    again = Page(d.page())
    assert again.sessions() == {"0", "1"}, "places are taken again"
    assert again.get("sinew_session_replies_total", session="0", code="OK") == 0, "a new session begins with nothing"


def check_turns(d: Daemon) -> None:
    """A turn of the event loop ends when it waits: nothing to do for 50 ms is no long turn."""
    before = Page(d.page())
    time.sleep(1)
    after = Page(d.page())
    turns, short = (
        after.get(f"sinew_event_loop_turn_seconds{part}", **labels) - before.get(f"sinew_event_loop_turn_seconds{part}", **labels)
        for part, labels in (("_count", {}), ("_bucket", {"le": "0.03"}))
    )
    assert turns >= 5 and short > turns / 2, (turns, short)
    assert after["sinew_event_loop_turn_seconds_sum"] > before["sinew_event_loop_turn_seconds_sum"] > 0


def check_wire(d: Daemon, text: str) -> None:
    """By request on the wire it is the same page."""
    reply = d.ask("metrics")
    assert reply and Page(reply["text"]).types == Page(text).types
    plain = subprocess.run([w for w in d.control if w != "--json"] + ["metrics"], capture_output=True, text=True)
    assert Page(plain.stdout).types == Page(text).types


def check_http(d: Daemon) -> None:
    """GET of one page; the daemon goes on whatever is sent."""
    for path, data, status in (("/", None, 404), ("/metrics", b"x", 405)):
        try:
            urllib.request.urlopen(d.url.replace("/metrics", path), data=data, timeout=20)
            raise SystemExit(f"{path} is answered")
        except urllib.error.HTTPError as e:
            assert e.code == status, e
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", d.port)) as s:
            s.send(os.urandom(1000))
    assert d.ask("health")


def check_examples(source: pathlib.Path, text: str) -> None:
    """Each expression of the dashboard names metrics that there are; pages of the daemon too."""
    page = Page(text)
    board = json.loads((source / "daemon/grafana.json").read_text())
    expressions = [t["expr"] for p in board["panels"] for t in p["targets"]]
    expressions += [v["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"]) and len(expressions) > 10
    for expression in expressions:
        names = NAME.findall(expression)
        assert names, expression
        for name in names:
            assert page.base(name) in page.types, f"grafana.json: {name} is no metric"
            counted = page.types[page.base(name)] != "gauge"
            assert counted == bool(re.search(rf"(rate|increase)\({name}\b", expression)) or "failures" in name or (
                "failovers" in name
            ), expression
    for document in sorted((source / "daemon").glob("*.md")):
        for name in NAME.findall(document.read_text()):
            assert page.base(name) in page.types, f"{document.name}: {name} is no metric"
    config = (source / "daemon/prometheus.yml").read_text()
    assert re.search(r'targets: \["127\.0\.0\.1:\d+"\]', config) and "job_name: sinewd" in config


def check_refusals(binaries: pathlib.Path, folder: pathlib.Path) -> None:
    """An address that others can reach ends the start, with words."""
    for address in ("http://0.0.0.0:9464", "http://[::]:9464", "http://localhost:9464", "tcp://127.0.0.1:1"):
        done = subprocess.run(
            [binaries / "sinewd", f"--endpoint=ipc://{folder}/t", f"--metrics={address}"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1 and "allowed are http://127.0.0.1:PORT" in done.stderr, done.stderr


def main() -> None:
    """Run all checks."""
    binaries, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="sinew-metrics.") as name:
        folder = pathlib.Path(name)
        check_refusals(binaries, folder)
        d = Daemon(binaries, source, folder)
        try:
            check_counts(d)
            text = d.page()
            check_turns(d)
            check_wire(d, text)
            check_http(d)
            check_examples(source, text)
        finally:
            status = d.stop()
        assert status == 0, status
    print(f"{len(Page(text).types)} metrics, {len(Page(text).values)} series with two sessions")


if __name__ == "__main__":
    main()

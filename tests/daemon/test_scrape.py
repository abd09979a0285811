#!/usr/bin/python3
"""A Prometheus that scrapes a sinewd, as the examples beside the daemon have it: its checker takes the metrics, the
configuration and the dashboard's expressions, and each of these has an answer.

  tests/daemon/test_scrape.py BIN SOURCE     programs of the build, folder of the sources; status 1 on failure

Skipped (status 77) where Debian's package prometheus is not on the path; tests/run.sh unpacks it into the cache.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from test_metrics import STATE, Daemon

SCRAPES = 3  # before something is done, and after it: a rate takes two
PLANS = 3


def check(folder: pathlib.Path, what: str, text: str) -> str:
    """What promtool has against metrics, a configuration or rules, or that it failed; nothing where they are right."""
    file = folder / "checked.yml"
    file.write_text(text)
    words = ["promtool", "check", what] + ([str(file)] if what != "metrics" else [])
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    if done.returncode == 0 and not (what == "metrics" and done.stderr):
        return ""
    return done.stdout + done.stderr or f"{' '.join(words)} ended with status {done.returncode} and said nothing"


def expressions(source: pathlib.Path) -> list[str]:
    """The expressions of the dashboard, for the job of the example."""
    board = json.loads((source / "daemon/grafana.json").read_text())
    found = [t["expr"].replace("$job", "sinewd") for p in board["panels"] for t in p["targets"]]
    assert len(found) > 10 and not any("$" in e for e in found), found
    return found


def rules(found: list[str]) -> str:
    """A file of rules, each an expression."""
    lines = [f"      - record: panel:{i}\n        expr: {json.dumps(e)}\n" for i, e in enumerate(found)]
    return "groups:\n  - name: dashboard\n    rules:\n" + "".join(lines)


def check_files(folder: pathlib.Path, source: pathlib.Path, page: str) -> None:
    """The checker takes what we have, and refuses what is wrong."""
    example = (source / "daemon/prometheus.yml").read_text()
    found = expressions(source)
    for what, text in (("metrics", page), ("config", example), ("rules", rules(found))):
        assert not check(folder, what, text), f"{what}: {check(folder, what, text)}"
    assert check(folder, "metrics", page + "sinew_build_info{ 1\n")
    assert check(folder, "config", example.replace("scrape_interval: 5s", "scrape_interval: 5"))
    assert check(folder, "rules", rules([found[0] + ")"]))


def free_port() -> int:
    """A port of the loopback that nobody has."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Prometheus:
    """A Prometheus on the example's configuration, which scrapes the daemon every second."""

    def __init__(self, folder: pathlib.Path, source: pathlib.Path, daemon: Daemon) -> None:
        example = (source / "daemon/prometheus.yml").read_text()
        config = folder / "prometheus.yml"
        text = re.sub(r'targets: \["127\.0\.0\.1:\d+"\]', f'targets: ["127.0.0.1:{daemon.port}"]', example)
        config.write_text(text.replace("scrape_interval: 5s", "scrape_interval: 1s"))
        self.port = free_port()
        self.log = (folder / "prometheus.log").open("w+")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log
        )  # fmt: skip

    def ask(self, expression: str) -> list[dict] | None:
        """The series of an expression; None: it does not answer yet."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{query}", timeout=20) as answer:
                reply = json.load(answer)
        except urllib.error.HTTPError as e:
            assert e.code == 503, f"{expression}: {e.read().decode()}"
            return None
        except OSError:
            return None
        assert reply["status"] == "success", reply
        return list(reply["data"]["result"])

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(20)


def value(series: list[dict] | None) -> float:
    """The value of the only series; -1 where there is none."""
    return float(series[0]["value"][1]) if series else -1


def scrapes(p: Prometheus) -> float:
    """How many scrapes it has, tried ones too; -1 where there are none yet."""
    return value(p.ask('count_over_time(up{job="sinewd"}[1h])'))


def wait_scrapes(p: Prometheus, count: float) -> None:
    """Wait until it has so many scrapes."""
    until = time.monotonic() + 60
    while scrapes(p) < count:
        assert time.monotonic() < until and p.process.poll() is None, "nothing is scraped"
        time.sleep(0.1)


def check_scrape(p: Prometheus, daemon: Daemon, source: pathlib.Path) -> None:
    """It sees the daemon and what that did; no panel of the dashboard stays empty but those of failures."""
    wait_scrapes(p, SCRAPES)
    opened = daemon.ask("open", "arm_reach", "planner=sampling", "candidates=8", "lease=100")
    assert opened
    for _ in range(PLANS):
        assert daemon.ask("--deadline", "0.02", "plan", str(opened["session"]), text=json.dumps(STATE))
    wait_scrapes(p, scrapes(p) + SCRAPES)
    assert value(p.ask('up{job="sinewd"}')) == 1
    found = p.ask("sinew_build_info")
    assert found and {s["metric"]["job"] for s in found} == {"sinewd"}
    assert value(p.ask("sinew_sessions")) == 1
    assert value(p.ask("sum(sinew_plans_total)")) == PLANS
    assert value(p.ask('sum(rate(sinew_plans_total{job="sinewd"}[1m]))')) > 0
    assert p.ask("sinew_no_such_metric") == []
    for expression in expressions(source):
        assert p.ask(expression) or 'code!="OK"' in expression, f"grafana.json: {expression} has no series"


def main() -> int:
    """Run all checks."""
    missing = [x for x in ("promtool", "prometheus") if shutil.which(x) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found: Debian's package prometheus is not there")
        return 77
    binaries, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="sinew-scrape.") as name:
        folder = pathlib.Path(name)
        d = Daemon(binaries, source, folder)
        try:
            check_files(folder, source, d.page())
            p = Prometheus(folder, source, d)
            try:
                check_scrape(p, d, source)
            finally:
                p.stop()
        finally:
            status = d.stop()
        assert status == 0, status
    print(f"{len(expressions(source))} expressions of the dashboard have an answer")
    return 0


if __name__ == "__main__":
    sys.exit(main())

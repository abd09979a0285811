"""Keys: clients that are let in, those that are not and are told at once, and mistakes with files of keys."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sinew
from sinew import cli
from sinew.client.keys import Keys
from sinew.errors import ArgumentError, RefusedError, TimedOutError

from daemons import Keyed, keygen, serve_with_keys


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    folder = tmp_path_factory.mktemp("keys")
    keygen(folder / "stranger")
    with serve_with_keys(folder, {role: role for role in ("admin", "tune", "watch")}) as keyed:
        yield keyed


def test_plan_by_a_key(keyed: Keyed) -> None:
    with sinew.Client(keyed.endpoint, timeout=20, **keyed.key("tune")) as client:
        assert client.hello.role == "tune"
        assert client.hello.telemetry and not client.hello.records
        with client.open("arm_reach") as session:
            assert session.plan(session.initial, deadline=0.05).ctrl.shape[1] == 6
            with pytest.raises(RefusedError, match="needs the role admin; this key has tune") as refused:
                client.unload_model("arm_reach")
            assert refused.value.code == "PERMISSION"


def test_key_as_text(keyed: Keyed) -> None:
    key = (keyed.folder / "server.pub").read_text().splitlines()[-1]
    with sinew.Client(keyed.endpoint, timeout=20, server_key=key, key_file=keyed.folder / "watch") as client:
        assert client.health().state == "READY"


def test_telemetry_and_records(keyed: Keyed) -> None:
    with sinew.Client(keyed.endpoint, timeout=20, **keyed.key("admin")) as client, client.open("arm_reach") as session:
        telemetry = next(client.telemetry(wait=10))
        assert [s.session for s in telemetry.statistics.sessions] == [0]
        assert [s.session for s in client.statistics().sessions] == [session.id]
        with client.records(session.id) as records:
            until = time.monotonic() + 20
            while not records.receive_many(0.05) and time.monotonic() < until:
                session.plan(session.initial, deadline=0.02)
            assert time.monotonic() < until


def test_strangers_are_told_at_once(keyed: Keyed) -> None:
    cases = [
        (keyed.key("stranger"), "does not let the key"),
        ({}, "needs keys"),
        (keyed.key("tune") | {"server_key": keyed.folder / "watch.pub"}, "server_key is not its key"),
    ]
    for keys, text in cases:
        began = time.monotonic()
        with pytest.raises(RefusedError, match=text) as refused:
            sinew.Client(keyed.endpoint, timeout=30, **keys)
        assert refused.value.code == "PERMISSION"
        assert time.monotonic() - began < 10


def test_strangers_of_asyncio(keyed: Keyed) -> None:
    async def main() -> None:
        async with sinew.AsyncClient(keyed.endpoint, timeout=20, **keyed.key("tune")) as client:
            assert client.hello.role == "tune"
            telemetry = await anext(client.telemetry(wait=10))
            assert telemetry.statistics.uptime > 0
        for keys, text in (keyed.key("stranger"), "does not let the key"), ({}, "needs keys"):
            with pytest.raises(RefusedError, match=text):
                await sinew.AsyncClient.connect(keyed.endpoint, timeout=30, **keys)

    asyncio.run(main())


def test_key_that_is_taken_off_the_list(keyed: Keyed) -> None:
    path = keyed.folder / "allow"
    whole = path.read_text()
    gone = (keyed.folder / "watch.pub").read_text().splitlines()[-1]
    with sinew.Client(keyed.endpoint, timeout=3, **keyed.key("watch")) as client:
        path.write_text("".join(line for line in whole.splitlines(True) if gone not in line))
        os.kill(keyed.daemon.pid, signal.SIGHUP)
        try:
            with pytest.raises((RefusedError, TimedOutError)):
                for _ in range(1500):
                    client.health()
                    time.sleep(0.02)
            with pytest.raises(RefusedError, match="does not let the key"):
                client.health()
        finally:
            path.write_text(whole)
            os.kill(keyed.daemon.pid, signal.SIGHUP)


def test_mistakes(keyed: Keyed, tmp_path: Path) -> None:
    folder, key = keyed.folder, keyed.key("tune")
    text = tmp_path / "text"
    text.write_text("no key\n")
    text.chmod(0o600)
    cases = [
        ({"server_key": key["server_key"]}, "key_file is missing"),
        ({"key_file": key["key_file"]}, "server_key is missing"),
        (key | {"key_file": folder / "tune.pub"}, "must have mode 600"),
        (key | {"key_file": text}, "has no key"),
        (key | {"key_file": tmp_path / "none"}, "No such file"),
        (key | {"server_key": tmp_path}, "is no file of a key"),
    ]
    for keys, words in cases:
        with pytest.raises(ArgumentError, match=words):
            sinew.Client(keyed.endpoint, **keys)
    with pytest.raises(ArgumentError, match="takes no keys"):
        sinew.Client(keyed.daemon.endpoint, **key)


def test_secret_is_not_shown(keyed: Keyed) -> None:
    key = keyed.key("tune")
    keys = Keys.read(keyed.endpoint, key["server_key"], key["key_file"])
    assert keys is not None
    assert keys.secret not in repr(keys)
    assert keys.public == (keyed.folder / "tune.pub").read_text().splitlines()[-1]


# ----------------------------------------------------------------------------- the programs' command line


def words_of(keyed: Keyed, role: str) -> list[str]:
    """Return the options that show a key."""
    key = keyed.key(role)
    return ["--endpoint", keyed.endpoint, "--server-key", str(key["server_key"]), "--key", str(key["key_file"])]


def test_record_and_replay(keyed: Keyed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records need an admin's key; who may tune may replay."""
    pytest.importorskip("mcap")
    pytest.importorskip("foxglove_schemas_protobuf")
    path = tmp_path / "keyed.mcap"
    stop = threading.Event()

    def plan() -> None:
        with (
            sinew.Client(keyed.endpoint, timeout=20, **keyed.key("tune")) as client,
            client.open("arm_reach") as session,
        ):
            number = 0
            while not stop.is_set():
                session.plan({**vars_of(session.initial), "time": 0.01 * number}, iterations=2)
                number += 1
                time.sleep(0.01)

    thread = threading.Thread(target=plan)
    thread.start()
    try:
        assert (
            cli.main(["record", "all", str(path), "--seconds", "2", "--rate", "0", "--json", *words_of(keyed, "admin")])
            == 0
        )
    finally:
        stop.set()
        thread.join()
    assert json.loads(capsys.readouterr().out)["plans"] > 0
    assert cli.main(["replay", str(path), *words_of(keyed, "tune")]) == 0
    assert "all the same bits" in capsys.readouterr().out

    assert cli.main(["record", "all", str(tmp_path / "none.mcap"), *words_of(keyed, "tune")]) == 1
    assert "has no records: they need the role admin, this key has tune" in capsys.readouterr().err
    assert not (tmp_path / "none.mcap").exists()
    assert cli.main(["replay", str(path), *words_of(keyed, "stranger")]) == 1
    assert "does not let the key" in capsys.readouterr().err
    assert cli.main(["replay", str(path), "--endpoint", keyed.endpoint]) == 1
    assert "needs keys" in capsys.readouterr().err
    assert cli.main(["replay", str(path), *words_of(keyed, "tune")[2:]]) == 1
    assert "--endpoint is missing" in capsys.readouterr().err
    assert cli.main(["replay", str(path), *words_of(keyed, "tune")[:4]]) == 1
    assert "key_file is missing" in capsys.readouterr().err


def vars_of(state: sinew.State) -> dict[str, object]:
    return {"qpos": state.qpos, "qvel": state.qvel}


def test_a_body_that_is_shown(keyed: Keyed) -> None:
    """What `sinew view` shows plans, and is recorded, by keys."""
    from sinew.loop.driver import Driver

    with pytest.raises(RefusedError, match="needs keys"):
        Driver("arm_reach", endpoint=keyed.endpoint)
    driver = Driver("arm_reach", endpoint=keyed.endpoint, iterations=1, **keyed.key("tune"))
    try:
        assert driver.access == keyed.key("tune")
        driver.tune(adam_rate=0.02)
        until = time.monotonic() + 30
        while driver.latest().time < 0.1 and time.monotonic() < until:
            time.sleep(0.02)
        assert driver.latest().time >= 0.1
    finally:
        driver.close()


def test_view_takes_keys(keyed: Keyed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("viser")
    assert cli.main(["view", "--task", "arm_reach", *words_of(keyed, "stranger")]) == 1
    assert "does not let the key" in capsys.readouterr().err
    assert cli.main(["view", "--task", "arm_reach", *words_of(keyed, "tune")[2:]]) == 1
    assert "--endpoint is missing" in capsys.readouterr().err
    (tmp_path / "a.xml").write_text("<mujoco/>")
    assert cli.main(["view", str(tmp_path / "a.xml"), *words_of(keyed, "tune")]) == 1
    assert "are for --task alone" in capsys.readouterr().err

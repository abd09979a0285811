"""Checkpoints: files from which a training goes on bit for bit."""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
from pathlib import Path
from typing import Any

import torch

from sinew._files import reason
from sinew._journal import digest_of
from sinew.errors import ArgumentError, FileError, FormatError, NotFoundError
from sinew.learn.settings import Settings
from sinew.learn.shac import Shac
from sinew.learn.task import Task

__all__ = ["load", "model_digest", "read", "save", "settings_of"]

_FORMAT = "sinew SHAC 1"


def model_digest(task: Task) -> str:
    """Return a digest of all numbers of a task's model."""
    model = task.model
    return digest_of([(name, getattr(model, name)) for name in model.fields()], dataclasses.asdict(model.opt))


def _packed(x: Any) -> Any:
    """Return x with numbers as tensors: PyTorch 1.13 reads no others where a file may run no code."""
    if isinstance(x, float):
        return ("float", torch.tensor(x, dtype=torch.float64))
    if isinstance(x, dict):
        return {key: _packed(value) for key, value in x.items()}
    return type(x)(map(_packed, x)) if isinstance(x, list | tuple) else x


def _unpacked(x: Any) -> Any:
    """Return what `_packed` was given."""
    if isinstance(x, dict):
        return {key: _unpacked(value) for key, value in x.items()}
    if isinstance(x, tuple) and len(x) == 2 and x[0] == "float":
        return float(x[1])
    return type(x)(map(_unpacked, x)) if isinstance(x, list | tuple) else x


def save(path: Path, shac: Shac, notes: dict[str, Any]) -> None:
    """Write a checkpoint, all of it or nothing; `notes` are numbers and texts of the caller.

    Raises
    ------
    FileError
        It cannot be written.
    """
    part = path.with_name(path.name + ".part")
    content = {
        "format": _FORMAT,
        "task": shac.task.name,
        "model": model_digest(shac.task),
        "settings": dataclasses.asdict(shac.settings),
        "given": shac.given,
        "notes": notes,
        "state": shac.state_dict(),
    }
    try:
        torch.save(_packed(content), part)
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None


def read(path: Path) -> dict[str, Any]:
    """Return what a checkpoint has: task, model, settings, notes and state. It runs no code of the file.

    Raises
    ------
    NotFoundError, FileError
        There is none, or it cannot be read.
    FormatError
        It is no checkpoint, or is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such checkpoint") from None
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    try:
        content = torch.load(io.BytesIO(data), weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        raise FormatError(f"{path}: no checkpoint of sinew, or damaged: {str(error).split('. ')[0]}") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FormatError(f"{path}: no checkpoint of sinew, expected one with the mark {_FORMAT!r}")
    unpacked: dict[str, Any] = _unpacked(content)
    return unpacked


def settings_of(path: Path) -> Settings:
    """Return the settings of a checkpoint. Raises as `read`."""
    return Settings.of(read(path)["settings"])


def load(path: Path, shac: Shac) -> dict[str, Any]:
    """Let a training go on from a checkpoint; return its notes. Raises as `read`.

    Raises
    ------
    ArgumentError
        It is one of another task, another model, other settings, or a policy of other layers.
    """
    content = read(path)
    if content["task"] != shac.task.name:
        raise ArgumentError(f"{path}: a checkpoint of task {content['task']!r}, not of {shac.task.name!r}")
    if content["model"] != model_digest(shac.task):
        raise ArgumentError(f"{path}: a checkpoint of task {shac.task.name!r} with another model than it has now")
    now, then = (dataclasses.asdict(x) for x in (shac.settings, Settings.of(content["settings"])))
    other = [f"{name} was {then[name]}, is {now[name]}" for name in now if then[name] != now[name]]
    if other:
        raise ArgumentError(f"{path}: a checkpoint with other settings: {'; '.join(other)}")
    if bool(content.get("given")) != shac.given:
        policies = ["a new policy", "a policy that was given"]
        other_policy, policy = policies[not shac.given], policies[shac.given]
        raise ArgumentError(f"{path}: a checkpoint that began with {other_policy}, not with {policy}")
    try:
        shac.load_state_dict(content["state"])
    except RuntimeError as error:
        raise ArgumentError(f"{path}: a checkpoint of other networks: {str(error).splitlines()[-1].strip()}") from None
    notes: dict[str, Any] = content["notes"]
    return notes

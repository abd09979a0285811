"""The messages of the wire, from the schema that is installed with the package; no code is generated.

Messages become dataclasses of :mod:`sinew.client.messages` and mappings become messages, field by field as
the schema's descriptors say. One thing differs from ``proto/sinew.proto``: packed numbers (``repeated
double``) are declared as bytes, which they are on the wire (a length, then little-endian float64). So an
array is one copy of memory, not a number at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sinew.errors import ArgumentError, ProtocolError
from sinew.files import share
from sinew.names import did_you_mean

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["Schema", "fill", "load", "values"]

PACKAGE = "sinew.v1"


class Schema:
    """The message classes of ``sinew.proto``.

    Parameters
    ----------
    description : bytes
        A serialised ``FileDescriptorSet``, as ``protoc --descriptor_set_out`` writes it.
    """

    def __init__(self, description: bytes) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        files = descriptor_pb2.FileDescriptorSet.FromString(description)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            for message in file.message_type:
                _declare_bytes(message)
            pool.Add(file)
        names = [message.name for file in files.file for message in file.message_type]
        self._classes: dict[str, Callable[[], Any]] = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names
        }

    def new(self, name: str) -> Any:
        """Return an empty message of that name."""
        return self._classes[name]()

    def fields(self, name: str) -> list[str]:
        """Return the names of the fields of a message."""
        return [field.name for field in self._classes[name]().DESCRIPTOR.fields]

    def names(self) -> Iterable[str]:
        """Return the names of all messages."""
        return self._classes.keys()


def _declare_bytes(message: Any) -> None:
    """Declare packed float64 numbers as bytes."""
    for field in message.field:
        if field.type == field.TYPE_DOUBLE and field.label == field.LABEL_REPEATED:
            field.type, field.label = field.TYPE_BYTES, field.LABEL_OPTIONAL


@functools.cache
def load() -> Schema:
    """Return the installed schema."""
    return Schema(share("sinew.desc").read_bytes())


# ----------------------------------------------------------------------------------------- to the wire


def fill(message: Any, fields: Mapping[str, Any], where: str = "") -> None:
    """Set fields of a message; one that is None is left out.

    Parameters
    ----------
    message : Message
        Changed.
    fields : mapping
        By name: numbers, texts, arrays of float64, mappings (messages) and sequences of mappings.
    where : str
        Begins the text of errors.

    Raises
    ------
    ArgumentError
        A name that the message does not have, or a value of another type.
    """
    for name, value in fields.items():
        if value is None:
            continue
        kind = _kinds(message.DESCRIPTOR).get(name)
        if kind is None:
            known = sorted(_kinds(message.DESCRIPTOR))
            raise ArgumentError(f"{where}{name!r} is unknown; known are {', '.join(known)}{did_you_mean(name, known)}")
        if kind != "message":
            _fill_value(message, name, value, kind, where)
        elif isinstance(value, Mapping):
            part = getattr(message, name)
            part.SetInParent()
            fill(part, value, where)
        else:
            for item in value:
                fill(getattr(message, name).add(), item, where)


@functools.cache
def _kinds(descriptor: Descriptor) -> dict[str, str]:
    """Return what each field of a message is: numbers, another message, or a value."""
    kinds = {}
    for field in descriptor.fields:
        numbers = field.type == field.TYPE_BYTES
        kinds[field.name] = "numbers" if numbers else "message" if field.message_type is not None else "value"
    return kinds


def _fill_value(message: Any, name: str, value: Any, kind: str, where: str) -> None:
    if kind == "numbers":
        value = np.ascontiguousarray(value, "<f8").tobytes()
    elif isinstance(value, np.generic):
        value = value.item()
    try:
        setattr(message, name, value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{where}{name} is {value!r}: {error}") from None


# --------------------------------------------------------------------------------------- from the wire


def values(message: Any) -> dict[str, Any]:
    """Return all fields of a message: arrays read-only, messages as `convert` makes them, enums as names.

    What is absent is None where the schema tells: messages, and numbers that may be left out.
    """
    return {name: take(message) for name, take in _takers(message.DESCRIPTOR)}


def present(message: Any) -> dict[str, Any]:
    """Return the fields of a message that are there."""
    return {field.name: value for field, value in message.ListFields()}


def convert(message: Any) -> Any:
    """Return what stands for a message: see `messages.CLASSES`."""
    from sinew.client.messages import CLASSES

    name = message.DESCRIPTOR.name
    if name in ("PlannerSettings", "SessionSettings"):
        return present(message)
    return CLASSES[name](**values(message))


@functools.cache
def _takers(descriptor: Descriptor) -> list[tuple[str, Callable[[Any], Any]]]:
    return [(field.name, _taker(field)) for field in descriptor.fields]


def _taker(field: FieldDescriptor) -> Callable[[Any], Any]:
    """Return the function that takes this field out of a message."""
    name = field.name
    if field.message_type is not None and is_repeated(field):
        if field.message_type.name == "TermCost":
            return lambda message: {term.name: term.cost for term in getattr(message, name)}
        if field.message_type.name == "TermTarget":
            return lambda message: {term.name: _rows(term) for term in getattr(message, name)}
        return lambda message: tuple(convert(item) for item in getattr(message, name))
    if field.message_type is not None:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    if field.type == field.TYPE_BYTES:
        return lambda message: numbers(getattr(message, name), name)
    if field.enum_type is not None:
        known = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda message: known.get(getattr(message, name), str(getattr(message, name)))
    if is_repeated(field):
        return lambda message: tuple(getattr(message, name))
    if field.containing_oneof is not None:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    return lambda message: getattr(message, name)


def _rows(term: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the targets of a term, one a row."""
    target = numbers(term.target, "target")
    if term.size == 0 or target.size % term.size:
        raise ProtocolError(f"the targets of {term.name!r} are {target.size} numbers, {term.size} a row")
    return target.reshape(-1, term.size)


def is_repeated(field: Any) -> bool:
    """Return whether a field is a list, in the words of old and new protobuf."""
    known = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


def numbers(data: bytes, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return packed numbers as a read-only array."""
    if len(data) % 8:
        raise ProtocolError(f"{name} has {len(data)} bytes, which are no float64 numbers")
    return np.frombuffer(data, "<f8")

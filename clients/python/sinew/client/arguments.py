"""Where a daemon is and how it lets one in, on a command line: the same options at every command, and at `sinewctl`."""

from __future__ import annotations

import argparse

from sinew.client.keys import Access
from sinew.errors import ArgumentError

__all__ = ["add_daemon_arguments", "keys_of"]


def add_daemon_arguments(parser: argparse.ArgumentParser, endpoint: str) -> None:
    """Add ``--endpoint``, with that help, and the options of keys."""
    parser.add_argument("--endpoint", metavar="ADDRESS", help=endpoint)
    key = "the daemon's public key, or its file, where a tcp address asks for keys"
    parser.add_argument("--server-key", metavar="KEY|FILE", help=key)
    own = "file of the own secret key, as sinewctl keygen makes it"
    parser.add_argument("--key", "--key-file", dest="key_file", metavar="FILE", help=own)


def keys_of(arguments: argparse.Namespace) -> Access:
    """Return the keys that a command line names.

    Raises
    ------
    ArgumentError
        There are some, and no address to show them at.
    """
    if arguments.server_key is None and arguments.key_file is None:
        return {}
    if arguments.endpoint is None:
        raise ArgumentError("--server-key and --key are for a daemon at a tcp address: --endpoint is missing")
    return {"server_key": arguments.server_key, "key_file": arguments.key_file}

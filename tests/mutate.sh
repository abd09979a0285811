#!/usr/bin/env bash
# Puts known defects into a copy of the code, one at a time, and tells which of them the tests notice: --help.
# Needs what `tests/run.sh --setup` installs.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/mutations/mutate.py" "$@"

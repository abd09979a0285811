#!/usr/bin/env bash
# Checks the engine with random models: tests/random_models.sh --help. Derivatives need the Python package in build/python-env
# (tests/clients/python/run.sh --install), steps need sinew-check in build/release; what is there already is not built anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=build/python-env/bin/python
[ -x "$python" ] || python=python3
PYTHONPATH=tests/clients/python exec "$python" -B -m random_models "$@"

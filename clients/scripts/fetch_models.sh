#!/usr/bin/env bash
# Prints the folder of the unpacked MyoSuite models, fetching them first if needed.
set -euo pipefail
exec "$(dirname "$0")/../setup.sh" --models

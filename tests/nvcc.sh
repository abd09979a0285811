#!/usr/bin/env bash
# Compiles the engine (and the planner's shared code) with nvcc for one architecture, in double and in
# float, and looks for double arithmetic in the float PTX. Says so and succeeds when nvcc is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

ARCH=sm_75
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=$(ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
  echo "nvcc is not installed: the device compilation is skipped"
  exit 0
fi
"$nvcc" --version | sed -n 4p

out=build/nvcc
mkdir -p "$out"
flags=(-arch="$ARCH" -I. -std=c++17 --Werror cross-execution-space-call,all-warnings -diag-suppress 177)

compile() { # NAME EXTRA-FLAGS...
  local name=$1
  shift
  "$nvcc" "${flags[@]}" "$@" -ptx -o "$out/$name.ptx" cuda/physics.cu
  echo "$name: $(wc -l <"$out/$name.ptx") lines of PTX"
}

compile double
compile float -DSN_SINGLE

# Constants and conversions written without SN_R() would show as .f64 here.
if grep -nE '\.f64' "$out/float.ptx" | head -20 | grep .; then
  echo "double arithmetic in the float build" >&2
  exit 1
fi
echo "no .f64 in the float PTX"

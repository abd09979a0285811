#!/usr/bin/env bash
# Compiles the engine (and the planner's shared code) with nvcc for one architecture, in double and in
# float, and looks for double arithmetic in the float PTX. Says so and succeeds when nvcc is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
  echo "nvcc is not installed: the device compilation is skipped"
  exit 0
fi
"$nvcc" --version | sed -n 4p

# Every stage file must be part of the device unit; the rest is named here as host code.
host_only='^physics/(derive_[a-z_]+|flat|import_[a-z_]+|model[a-z_]*|status|world)\.c$'
for file in $(git ls-files 'physics/*.c' | grep -vE "$host_only"); do
  grep -q "\"$file\"" cuda/physics.cu || { echo "cuda/physics.cu does not include $file" >&2; exit 1; }
done

# So must every file of the planner with text for the device.
for file in $(git grep -l '^SN_FUNC' -- 'planner/*.c'); do
  grep -q "\"$file\"" cuda/planner.cu || { echo "cuda/planner.cu does not include $file" >&2; exit 1; }
done

out=build/nvcc
cmake --preset nvcc >/dev/null
cmake --build "$out" --target double_ptx float_ptx -- --quiet
wc -l "$out"/double.ptx "$out"/float.ptx | sed "/total$/d"  # (not head, whose early end would fail the pipe)

# Constants and conversions written without SN_R() would show as .f64 here. CUDA's own sinf and cosf use one
# double product (the constant pi/2 2^-64 below) to reduce arguments beyond 10^5: these three lines are its own.
doubles=$(grep -E '\.f64' "$out/float.ptx" | grep -vE '\.reg \.f64|cvt\.rn\.f64\.s64|mul\.f64.*0d3BF921FB54442D19' || true)
back=$(echo "$doubles" | grep -cE 'cvt\.rn\.f32\.f64' || true)
reductions=$(grep -cE 'mul\.f64.*0d3BF921FB54442D19' "$out/float.ptx" || true)
if echo "$doubles" | grep -vE 'cvt\.rn\.f32\.f64' | grep . || [ "$back" != "$reductions" ]; then
  echo "double arithmetic in the float build" >&2
  exit 1
fi
echo "no .f64 in the float PTX but for $reductions argument reductions of sinf and cosf"

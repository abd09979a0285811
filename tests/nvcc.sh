#!/usr/bin/env bash
# Compiles and links the libraries for NVIDIA devices, in float and in double, for one architecture; looks for double
# arithmetic in the float PTX, prints what each kernel takes, runs the tests that need no device. Ends with 77 (skipped)
# when nvcc is missing.
#
#   tests/nvcc.sh [COMPUTE_CAPABILITY]    90 unless told
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
  echo "skipped: nvcc is not installed"
  exit 77
fi
"$nvcc" --version | sed -n 4p

out=build/cuda
cmake --preset cuda -DSINEW_CUDA_ARCHITECTURES="${1:-90}" -DSINEW_CUDA_KEEP=ON >/dev/null
# Every file with text for devices is in the lists of CMake.
for file in $(git grep -lE '^(SN_FUNC|SN_LOCAL)' -- '*.c' ':!tests'); do
  grep -q "\"$file\"" "$out/cuda/device_text.inc" || { echo "$file is in no list of the device's text" >&2; exit 1; }
done
cmake --build "$out" --target sinew_cuda sinew_cuda_double open_device cuda_device_test_cublas -j "$(nproc)" -- --quiet

# Constants and conversions written without SN_R() would show as .f64 here. CUDA's own sinf and cosf use one
# double product (the constant pi/2 2^-64 below) to reduce arguments beyond 10^5: these three lines are its own.
ptx=("$out"/cuda/keep_cuda/*/*.ptx)
doubles=$(grep -hE '\.f64' "${ptx[@]}" | grep -vE '\.reg \.f64|cvt\.rn\.f64\.s64|mul\.f64.*0d3BF921FB54442D19' || true)
back=$(echo "$doubles" | grep -cE 'cvt\.rn(\.ftz)?\.f32\.f64' || true)
reductions=$(grep -cE 'mul\.f64.*0d3BF921FB54442D19' <(cat "${ptx[@]}") || true)
if echo "$doubles" | grep -vE 'cvt\.rn(\.ftz)?\.f32\.f64' | grep . || [ "$back" != "$reductions" ]; then
  echo "double arithmetic in the float build" >&2
  exit 1
fi
echo "no .f64 in the float PTX ($(cat "${ptx[@]}" | wc -l) lines) but for $reductions argument reductions of sinf and cosf"

# Fields of worlds and arrays of models are found where they are: by loads of that memory. A generic load may be anywhere.
for file in "${ptx[@]}"; do
  awk -v unit="$(basename "$(dirname "$file")")" '
    /[ \t]ld\.(volatile\.|v[24]\.)?[busf](8|16|32|64)[ \t]/ { ++generic }
    /[ \t]ld\.(global|shared|local)\./ { ++known }
    END {
      printf "%s: %d loads, of which %.0f %% are generic\n", unit, generic + known, 100 * generic / (generic + known)
      if (generic > 0.2 * (generic + known)) { print unit ": too many generic loads" > "/dev/stderr"; exit 1 }
    }' "$file"
done

# What a thread and a block of each kernel take. A stack that the compiler cannot bound would overflow at run time.
for name in cuda cuda_double; do
  log=("$out/cuda/kernels_$name.log" "$out/cuda/kernels_part_$name.log" "$out/cuda/kernels_thread_$name.log")
  echo "libsinew_$name.so, $(stat -c %s "$out/lib/sinew/libsinew_$name.so") bytes"
  if grep "cannot be statically determined" "${log[@]}"; then exit 1; fi
  awk 'BEGIN { printf "  %-10s %9s %11s %12s\n", "kernel", "registers", "stack [B]", "shared [B]" }
    /Function properties for/ { match($0, /sn_kernel_[a-z]+/); kernel = substr($0, RSTART + 10, RLENGTH - 10)
      if (match($0, /ILi[0-9]+/)) kernel = kernel " " substr($0, RSTART + 3, RLENGTH - 3) / 1024 "K" }
    /: used [0-9]+ registers/ && kernel != "" {
      registers = stack = shared = 0
      sub(/.*: used/, "")
      n = split($0, part, ",")
      for (i = 1; i <= n; ++i) {
        if (part[i] ~ /registers/) registers = part[i] + 0
        if (part[i] ~ /stack/) stack = part[i] + 0
        if (part[i] ~ /smem/) shared = part[i] + 0
      }
      printf "  %-10s %9d %11d %12d\n", kernel, registers, stack, shared
      kernel = ""; ++kernels
    }
    END { if (kernels == 0) { print "no kernels in the log of nvcc" > "/dev/stderr"; exit 1 } }' "${log[@]}"
done

ctest --test-dir "$out" --output-on-failure -R "^cuda/(device/test_cublas|test_library_cuda)" | grep -vE "^ *Start|^Internal|^Test project|^$"
"$out/bin/open_device" cuda "$out/lib/sinew" || [ $? = 77 ]

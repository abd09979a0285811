#!/usr/bin/env bash
# sinewd must not contain or load MuJoCo, whose loader can crash or end a process: BIN is the folder of the programs.
set -euo pipefail
BIN=$1

# Not among the libraries that it loads, nor theirs; and none of MuJoCo's functions, defined or needed, inside it.
if ldd "$BIN/sinewd" | grep -i mujoco; then
  echo "sinewd loads MuJoCo" >&2
  exit 1
fi
if nm "$BIN/sinewd" | grep -E ' (mj|mju|mjv|mjs|mjp)_[A-Za-z]+$'; then
  echo "sinewd holds functions of MuJoCo" >&2
  exit 1
fi

# The same search finds it where it is.
ldd "$BIN/sinew-import" | grep -i mujoco >/dev/null
nm "$BIN/sinew-import" | grep -E ' U mj_loadXML$' >/dev/null
echo "sinewd links no MuJoCo, sinew-import does"

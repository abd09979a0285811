#!/usr/bin/env bash
# Runs tests of the Python package on a build with the address and undefined-behaviour sanitizers (build/python-asan): the module,
# libsinew, the daemon. JAX is left out: its own library does not run under them.
#
#   tests/clients/python/asan.sh                  all tests but those of memory, which the sanitizers keep for a while
#   tests/clients/python/asan.sh --short          those of wrong inputs, of what is closed or gone, of several threads
#   tests/clients/python/asan.sh -k "bad or nan"  these arguments of pytest
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=clients/setup.sh
. clients/setup.sh
# shellcheck source=tests/clients/python/environment.sh
. tests/clients/python/environment.sh

main() {
  local environment=build/python-asan-env wheel
  case "${1:-}" in
    --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$PYTHON_TESTS/asan.sh"; return ;;
    "") set -- -k "not memory and not jax" ;;
    --short) set -- -k "(wrong or refused or lies or outlive or cannot or threads or closed or gone or diverge) and not memory and not jax" ;;
  esac
  python_main "$environment"
  wheel=$(python_wheel "$environment" build/python-asan-wheel \
    --config-settings=build-dir=../../build/python-asan --config-settings=cmake.build-type=Debug \
    --config-settings=cmake.define.SINEW_SANITIZE=address,undefined \
    --config-settings=cmake.define.CMAKE_C_FLAGS=-O1 --config-settings=cmake.define.CMAKE_CXX_FLAGS=-O1)
  python_install "$environment" "$wheel"
  # The interpreter is no program of ours: the sanitizer comes before it, and before the library of C++, whose exceptions it watches.
  # What the interpreter and other modules keep to the end is no leak of ours; PYTHONMALLOC gives each object its own memory.
  export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)"
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc
  python_pytest "$environment" -n 0 --ignore "$PYTHON_TESTS/test_jax.py" --ignore "$PYTHON_TESTS/test_bench.py" --ignore "$PYTHON_TESTS/page" "$@" "$PYTHON_TESTS"
}

main "$@"

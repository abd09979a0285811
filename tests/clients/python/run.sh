#!/usr/bin/env bash
# Builds the Python package, installs it into environments of its own (build/python-env, build/python-torch) and tests it:
# ruff, mypy, pytest; what needs PyTorch beside Debian's python3-torch. Tests with a browser (folder page) are a part of their own.
#
#   tests/clients/python/run.sh                    everything
#   tests/clients/python/run.sh --setup            installs what is missing, builds nothing
#   tests/clients/python/run.sh --install          builds, installs and stops: build/python-env/bin/python has the package
#   tests/clients/python/run.sh -k rollout -x      these arguments of pytest, in both environments, without ruff and mypy
#   tests/clients/python/run.sh --page             tests with a browser, and these arguments of pytest; 77 where there is none
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
# shellcheck source=clients/setup.sh
. clients/setup.sh
# shellcheck source=tests/clients/python/environment.sh
. tests/clients/python/environment.sh
MAIN=build/python-env TORCH=build/python-torch

# run_tests ENVIRONMENT ARGUMENT...: pytest. Arguments of a user may select no test of one environment: that is said.
run_tests() {
  local status=0
  python_pytest "$@" || status=$?
  [ "$status" = 5 ] || return "$status"
  echo "no test is selected by: ${*:2}"
}

check_style() {
  local python=$MAIN/bin/python
  "$python" -m ruff check --no-cache clients/python "$PYTHON_TESTS"
  "$python" -m ruff format --no-cache --check clients/python "$PYTHON_TESTS"
  "$python" -m mypy --config-file clients/python/pyproject.toml --cache-dir build/python-mypy -p sinew
  MYPYPATH=$PYTHON_TESTS "$python" -m mypy --config-file clients/python/pyproject.toml --cache-dir build/python-mypy -p random_models
}

# install_browser: Debian's; 1, with the reason, where it cannot be had.
install_browser() {
  # shellcheck disable=SC2086  # the list is split on purpose
  sinew_install_packages $SINEW_PACKAGES_PAGE && command -v chromium >/dev/null && return
  echo "skipped: tests of the page in a browser: Debian's chromium could not be installed"
  return 1
}

test_page() {
  install_browser || return 77
  python_main "$MAIN"
  "$MAIN/bin/python" -c 'import playwright, viser, mjviser' || return 77
  python_install "$MAIN" "$(python_wheel "$MAIN" build/python-wheel)"
  python_pytest "$MAIN" -n 0 --durations=10 "$@" "$PYTHON_TESTS/page"
}

main() {
  local have_torch=1 wheel
  case "${1:-}" in
    --help | -h) sed -n '2,10s/^# \{0,1\}//p' "$PYTHON_TESTS/run.sh"; return ;;
    --page) shift; test_page "$@"; return ;;
  esac
  python_main "$MAIN"
  python_torch "$TORCH" || have_torch=0
  if [ "${1:-}" = --setup ]; then
    install_browser || true
    return
  fi
  wheel=$(python_wheel "$MAIN" build/python-wheel)
  python_install "$MAIN" "$wheel"
  # The wheel is one for a version of Python: torch's is Debian's.
  if [ "$have_torch" = 1 ] && ! python_install "$TORCH" "$wheel"; then
    echo "skipped: tests with PyTorch: its interpreter is another one than that of the package"
    have_torch=0
  fi
  [ "${1:-}" != --install ] || return 0
  [ $# -gt 0 ] || check_style
  run_tests "$MAIN" --ignore "$PYTHON_TESTS/page" "$@" "$PYTHON_TESTS"
  # Debian's Matplotlib is the oldest that the package promises: what draws runs with it, too.
  [ "$have_torch" = 0 ] || run_tests "$TORCH" --ignore "$PYTHON_TESTS/page" -k "(torch or model or plot or pictures or examples) and not random_models" "$@" "$PYTHON_TESTS"
}

main "$@"

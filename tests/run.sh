#!/usr/bin/env bash
# Installs what is missing, builds and runs every test of sinew.
#
#   tests/run.sh                  everything
#   tests/run.sh --setup          install what is missing, then stop
#   tests/run.sh --list           the parts and what each one does
#   tests/run.sh release lanes    only these parts
#
# Each part prints its duration, and what was left out for want of something; the last line counts the parts. A part that
# ends with 77 is skipped: something that it needs is not there, which it says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=clients/setup.sh
. clients/setup.sh

JOBS=$(nproc)
PARTS="style release tidy asan tsan float lanes nvcc arm64 deb demo python page"

part_style_text="formatting, rooms, comments of headers, paths, house rules, edits of tests/mutations (no build)"
part_style() { tests/style.sh; }

part_release_text="release build, all tests"
part_release() { build release && run_tests release; }

part_tidy_text="clang-tidy, a short list, on the release build's commands"
part_tidy() {
  build release
  # The engine's adjoint is compiled twice, the second time without who calls some helpers: gcc says what is unused in the first.
  git ls-files 'physics/*.c' 'planner/*.c' 'daemon/*.c' 'proto/*.c' 'clients/*.c' 'cuda/*.c' | grep -vE '^clients/examples/|device_cuda' |
    xargs -P "$JOBS" -n 4 clang-tidy -p build/release --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-function 2>/dev/null
}

part_asan_text="address and undefined-behaviour sanitizers, all tests but the long ones (of closed loops by Adam and of floats on the emulator, the shorter siblings) and rehearsals of tests/device.sh; fewer random states (tests/support/slow.h)"
part_asan() { build asan && run_tests asan -LE long -E "test_planner_adam$|planner/test_tasks$|test_agree_emulator(_thread)?$|test_device_(sh|pack)$"; }

part_tsan_text="thread sanitizer over what of the planner has threads, the examples, mailboxes, the emulated device, its owner and sinewd on it, models that are edited, states that are replaced (a world's lanes: part lanes)"
part_tsan() {
  local selected=(-R "^planner/(backend|rollout|test)|planner/base/test_pool|optimize/test_multistart|^clients/examples|mailbox|cuda/device/|cuda/host/test_rollouts|daemon/(test_device|models/test_models|planning/test_(device_proxy|reaper|replace))"
    -E "test_planner_(adam|settings)$|planner/test_tasks$|test_cfd$|test_rollout_runner$|_vjp$")
  # The examples want all that is installed.
  build_for tsan "physics/all planner/all proto/all daemon/all cuda/all clients/all" "${selected[@]}"
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=1" run_tests tsan "${selected[@]}"
}

part_float_text="float build of the engine and the planner"
part_float() { build float && run_tests float -R "^(physics|planner|cuda)/"; }

part_lanes_text="several host threads as the lanes of one world, under the thread sanitizer"
part_lanes() {
  build_for lanes cuda_device_test_device -R "^lanes/"
  TSAN_OPTIONS="halt_on_error=1" run_tests lanes -R "^lanes/"
}

part_nvcc_text="libraries for NVIDIA devices compiled and linked by nvcc; no doubles in the float PTX; what they do without a device"
part_nvcc() { tests/nvcc.sh; }

part_arm64_text="cross-compile for arm64; short tests there, which QEMU executes"
part_arm64() { tests/cross_arm64.sh; }

part_deb_text="the Debian package: built, and looked into without installing it"
part_deb() {
  local package
  build release
  package=$(SINEW_BUILD=build/release clients/package/deb.sh "$PWD/build/package")
  clients/package/deb.sh --test "$package"
}

part_demo_text="clients/demo.sh, short: the arm, the hand in lockstep and in real time"
part_demo() {
  clients/demo.sh --seconds 2 && clients/demo.sh --task hand_pose --mode lockstep --seconds 0.2 &&
    clients/demo.sh --task hand_balls_realtime --seconds 0.5 --against none
}

part_python_text="the Python package: its wheel in an environment of its own, ruff, mypy, pytest (on Debian's PyTorch and NumPy, too), wrong inputs under sanitizers"
part_python() { tests/clients/python/run.sh; tests/clients/python/asan.sh --short; }

part_page_text="the page of \`sinew view\` in a real browser: Debian's chromium, headless, driven by Playwright"
part_page() { tests/clients/python/run.sh --page; }

# Unpacks Debian's Prometheus into the cache, once: installed, it would start as a service. Without it one test is skipped.
fetch_prometheus() {
  local target="$SINEW_CACHE/prometheus" work
  if [ ! -e "$target/usr/bin/prometheus" ]; then
    sinew_say "fetching Debian's prometheus into $target"
    mkdir -p "$SINEW_CACHE"
    work=$(mktemp -d "$SINEW_CACHE/fetch.XXXXXX")
    if (cd "$work" && apt-get download -q -oAPT::Sandbox::User="$(id -un)" prometheus >/dev/null) && dpkg -x "$work"/*.deb "$work/unpacked"; then
      mv -T "$work/unpacked" "$target" || [ -e "$target/usr/bin/prometheus" ]  # somebody else was faster
    else
      sinew_say "could not fetch Debian's prometheus"
    fi
    rm -rf "$work"
  fi
  PATH=$target/usr/bin:$PATH
}

# shellcheck disable=SC2086  # the list is split on purpose
setup() {
  # No && between them: it would switch off `set -e` inside the first, and a failed download would go unnoticed.
  sinew_setup
  sinew_install_packages $SINEW_PACKAGES_TEST
  fetch_prometheus
  # What was compiled before, here or in another folder, is not compiled again.
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
}
# Libraries for NVIDIA devices take minutes: part nvcc alone builds them.
build() { cmake --preset "$1" -DSINEW_CUDA=OFF >/dev/null && cmake --build "build/$1" -j "$JOBS" -- --quiet; }
# build_for PRESET TARGETS SELECTION...: builds the programs of the tests alone that ctest selects, what these say that they depend
# on, and more targets for tests that are scripts.
build_for() {
  local preset=$1 more=$2 wanted
  shift 2
  cmake --preset "$preset" -DSINEW_CUDA=OFF >/dev/null
  wanted=$(ctest --test-dir "build/$preset" -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p' | tr / _)
  wanted=$(cmake --build "build/$preset" --target help | sed -n 's/: phony$//p' | grep -xF "$wanted")
  # shellcheck disable=SC2086  # the list is split on purpose
  cmake --build "build/$preset" -j "$JOBS" --target $wanted $more -- --quiet
}
# Many tests wait for something most of their time: one more than there are processors is under way.
run_tests() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j $((JOBS + 1)) --timeout 600 "$@" || return
  list_left_out "build/$preset/Testing/Temporary/LastTest.log"
}
# What tests that passed have left out, for want of models, of doubles, of time: "skipped: ..." in the log of ctest, and
# functions that cmocka skipped.
list_left_out() {
  awk '/^[0-9]+\/[0-9]+ Test: / { test = $3 }
    /^\[ RUN      \] / { running = $4 }
    /^\[  SKIPPED \] / && $4 == running { print "left out, " test ": " running; running = "" }
    /(^|: )skipped[:,]/ { print "left out, " test ": " $0 }' "$1" | sort | uniq -c
}

list_parts() {
  local part text
  for part in $PARTS; do
    text=part_${part}_text
    printf '  %-8s %s\n' "$part" "${!text}"
  done
}

main() {
  local part status passed=0 failed=0 skipped=0 started wanted=$PARTS took=
  case "${1:-}" in
    --setup) setup; tests/clients/python/run.sh --setup; return ;;
    --list) list_parts; return ;;
    --help | -h) sed -n '2,10s/^# \{0,1\}//p' tests/run.sh; list_parts; return ;;
    -*) echo "tests/run.sh: unknown option $1; see --help" >&2; return 2 ;;
    "") ;;
    *) wanted=$* ;;
  esac
  for part in $wanted; do
    declare -F "part_$part" >/dev/null || { echo "tests/run.sh: no part '$part'; see --list" >&2; return 2; }
  done
  setup
  for part in $wanted; do
    local text=part_${part}_text
    printf '\n=== %s: %s\n' "$part" "${!text}"
    started=$SECONDS
    # A subshell of its own keeps `set -e` in force inside the part.
    status=0
    (exec bash -c "set -euo pipefail; PART_ONLY=1; . tests/run.sh; part_$part") || status=$?
    case $status in
      0) passed=$((passed + 1)) && printf '=== %s passed in %d s\n' "$part" $((SECONDS - started)) ;;
      77) skipped=$((skipped + 1)) && printf '=== %s skipped (see above) after %d s\n' "$part" $((SECONDS - started)) ;;
      *) failed=$((failed + 1)) && printf '=== %s FAILED after %d s\n' "$part" $((SECONDS - started)) ;;
    esac
    took+=" $part $((SECONDS - started)) s$([ "$status" = 0 ] || [ "$status" = 77 ] || echo " FAILED"),"
  done
  printf '\n%s\n' "${took%,}"
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" = 0 ]
}

[ -n "${PART_ONLY:-}" ] || main "$@"

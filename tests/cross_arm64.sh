#!/usr/bin/env bash
# Cross-compiles everything for arm64 and runs tests of it, which QEMU executes: some ten times slower than a machine of
# that kind, and rounding as one.
#
#   tests/cross_arm64.sh             builds, and runs short tests
#   tests/cross_arm64.sh -R physics  builds, and runs those tests; options of ctest
#
# The arm64 libraries are unpacked into the cache folder, and the kernel is told of QEMU in a namespace alone: nothing of
# the machine's own packages changes. Needs what `tests/run.sh --setup` installs.
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
# shellcheck source=clients/setup.sh
. clients/setup.sh

sinew_install_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
root="$SINEW_CACHE/arm64"
headers="libzmq3-dev libprotobuf-c-dev libyaml-dev libcjson-dev libxxhash-dev libccd-dev libcmocka-dev librandom123-dev
  libmicrohttpd-dev"
libraries="libzmq5 libprotobuf-c1 libyaml-0-2 libcjson1 libxxhash0 libccd2 libcmocka0 libmicrohttpd12 libstdc++6"

if [ "$(cat "$root/.complete" 2>/dev/null)" != "$headers $libraries" ]; then
  sinew_say "fetching arm64 libraries into $root"
  rm -rf "$root"
  mkdir -p "$root/lists/partial" "$root/debs/partial"
  : >"$root/installed"
  apt=(-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists="$root/lists"
    -oDir::State::status="$root/installed" -oDir::Cache::Archives="$root/debs" -oAPT::Sandbox::User=root)
  apt-get "${apt[@]}" update -q >/dev/null
  # shellcheck disable=SC2086
  {
    (cd "$root/debs" && apt-get "${apt[@]}" download -q $headers >/dev/null)
    apt-get "${apt[@]}" install -qy --download-only --no-install-recommends $libraries >/dev/null # with all that they need
  }
  for deb in "$root"/debs/*.deb; do dpkg -x "$deb" "$root/sysroot"; done
  echo "$headers $libraries" >"$root/.complete"
fi
sinew_wheel mujoco-core-arm64 4.0.0 4f132a6ae0de32ebb56058f7d31f7a489226210882957014ba54d9289cf1a674 manylinux_2_28_aarch64 mujoco-core

cat >"$root/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_FIND_ROOT_PATH $root/sysroot)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--allow-shlib-undefined")
EOF
# Private requirements matter to static linking alone, and are not unpacked.
sed -i '/^Requires.private/d' "$root"/sysroot/usr/lib/aarch64-linux-gnu/pkgconfig/*.pc
export PKG_CONFIG_LIBDIR="$root/sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$root/sysroot/usr/share/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$root/sysroot"
cmake -G Ninja -B build/arm64 -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$root/toolchain.cmake" \
  -DSINEW_MUJOCO_DIR="$SINEW_CACHE/mujoco-core-arm64-4.0.0/mujoco" >/dev/null
cmake --build build/arm64 -j "$(nproc)" -- --quiet
programs="$(find build/arm64/bin -type f | wc -l) programs built"

# What is quick of most rooms, and a daemon that plans.
short=(-R '^(physics/(base|dynamics|import/test_import.*|step/test_step$)|planner/(base|backend|cost|policy|task)|proto|daemon/(access|base|config|keep|monitor|session|wire|test_service$)|clients/(base|body|libsinew_client))')
status=0
[ $# -gt 0 ] || set -- "${short[@]}"
QEMU_LD_PREFIX="$root/sysroot" tests/qemu_arm64.sh ctest --test-dir build/arm64 -j "$(nproc)" --no-tests=error --timeout 900 --output-on-failure "$@" || status=$?
[ "$status" = 77 ] && programs="$programs; none was run"
echo "arm64: $programs"
exit "$status"

#!/usr/bin/env bash
# Cross-compiles everything for arm64: proves that it builds there, not that it runs. The arm64
# libraries are unpacked into the cache folder; nothing of the machine's own packages changes.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=clients/setup.sh
. clients/setup.sh

sinew_install_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
root="$SINEW_CACHE/arm64"
packages="libzmq3-dev libzmq5 libprotobuf-c-dev libprotobuf-c1 libyaml-dev libyaml-0-2 libcjson-dev libcjson1
  libxxhash-dev libxxhash0 libccd-dev libccd2 libcmocka-dev libcmocka0 librandom123-dev
  libmicrohttpd-dev libmicrohttpd12"

if [ "$(cat "$root/.complete" 2>/dev/null)" != "$packages" ]; then
  sinew_say "fetching arm64 libraries into $root"
  mkdir -p "$root/lists/partial" "$root/debs"
  apt=(-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists="$root/lists" -oAPT::Sandbox::User=root)
  apt-get "${apt[@]}" update -q >/dev/null
  # shellcheck disable=SC2086
  (cd "$root/debs" && apt-get "${apt[@]}" download -q $packages >/dev/null)
  for deb in "$root"/debs/*.deb; do dpkg -x "$deb" "$root/sysroot"; done
  echo "$packages" >"$root/.complete"
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
file -b build/arm64/bin/* 2>/dev/null | head -1 || true
echo "arm64: $(ls build/arm64/bin | wc -l) programs built; none was run"

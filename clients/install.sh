#!/usr/bin/env bash
# One command from nothing to an installed library: installs the Debian packages that are missing, builds, installs libraries,
# headers and programs under PREFIX, compiles an example there and runs it, and says what to set to use them.
#
#   clients/install.sh [PREFIX]     default: ~/.local
#
# The build is in build/install, without tests; an existing one is used again. Run as root, or with sudo for packages that are
# missing. A prefix that the user may not write to needs root.
set -euo pipefail
case "${1:-}" in
  -*) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit $([ "$1" = --help ] && echo 0 || echo 2) ;;
esac
prefix=$(realpath -m "${1:-$HOME/.local}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=clients/setup.sh
. clients/setup.sh

# shellcheck disable=SC2086  # the list is split on purpose
sinew_install_packages $SINEW_PACKAGES_BUILD
sinew_fetch_mujoco
cmake --preset release -B build/install -DSINEW_TESTS=OFF >/dev/null
cmake --build build/install -- --quiet | grep -v "ninja: no work to do" || [ "${PIPESTATUS[0]}" = 0 ]
if command -v doxygen >/dev/null; then
  cmake --build build/install --target reference >build/install/reference.log 2>&1 ||
    echo "no reference pages: build/install/reference.log says why" >&2
fi
cmake --install build/install --prefix "$prefix" >/dev/null

pkgconfig=$(dirname "$(find "$prefix" -name sinew.pc)")
lib=$(dirname "$pkgconfig")
examples=$(find "$prefix/share/doc" -path '*sinew/examples' -type d)
version=$(PKG_CONFIG_PATH=$pkgconfig pkg-config --modversion sinew)
echo "sinew $version is installed in $prefix. To use it:"
echo "  export PATH=$prefix/bin:\$PATH"
echo "  export PKG_CONFIG_PATH=$pkgconfig LD_LIBRARY_PATH=$lib      # CMake: -DCMAKE_PREFIX_PATH=$prefix"
export PKG_CONFIG_PATH=$pkgconfig LD_LIBRARY_PATH=$lib

# The example, outside the sources, as a user would.
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "\$ cc -std=c99 -o gradient $examples/gradient.c \$(pkg-config --cflags --libs sinew) -lm"
# shellcheck disable=SC2046  # flags are split on purpose
cc -std=c99 -o "$work/gradient" "$examples/gradient.c" $(pkg-config --cflags --libs sinew) -lm
arguments="$prefix/share/sinew/models/arm_reach.xml $prefix/share/sinew/tasks/arm_reach.yaml"
echo "\$ ./gradient $arguments"
# shellcheck disable=SC2086  # two of them
(cd "$work" && ./gradient $arguments)

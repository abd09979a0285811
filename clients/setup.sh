#!/usr/bin/env bash
# Installs what a build needs and is missing: Debian packages, and four wheels from PyPI that are pinned
# by version and SHA-256 and unpacked into a cache folder (they are data here; Python never imports them).
#
#   clients/setup.sh             everything for building, the demo and the tests
#   clients/setup.sh --python    what `pip install ./clients/python` needs
#   clients/setup.sh --models    the models of MyoSuite, dm_control and Gymnasium only; prints MyoSuite's folder
#
# Other scripts source this file and call its functions. Prints only what it has to do.
set -euo pipefail

SINEW_CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/sinew"
SINEW_PACKAGES_BUILD="gcc libc6-dev cmake ninja-build pkg-config python3 python3-pip libzmq3-dev libprotobuf-c-dev
  protobuf-c-compiler libccd-dev libcmocka-dev libyaml-dev librandom123-dev libcjson-dev libxxhash-dev libmicrohttpd-dev
  gnuplot-nox"

# What the Python package wants on top, and what the tests do; what tests of the page in a browser do.
SINEW_PACKAGES_PYTHON="python3-venv python3-dev g++"
SINEW_PACKAGES_TEST="ccache clang-format clang-tidy git file g++ abigail-tools doxygen haproxy
  python3-prometheus-client dpkg-dev help2man"
SINEW_PACKAGES_PAGE="chromium fonts-dejavu-core"

sinew_say() { printf 'setup: %s\n' "$*" >&2; }

# Installs the Debian packages of $@ that are missing. Needs root, or sudo, only when one is.
sinew_install_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = "install ok installed" ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { sinew_say "please install as root: apt-get install ${missing[*]}"; return 1; }
    as_root=(sudo)
  fi
  sinew_say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q >/dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# sinew_wheel NAME VERSION SHA256 [PLATFORM [PACKAGE]]: unpacks the wheel of PACKAGE (or NAME) into
# $SINEW_CACHE/NAME-VERSION, once.
sinew_wheel() {
  local name=$1 version=$2 sha=$3 platform=${4:-} package=${5:-$1} target="$SINEW_CACHE/$1-$2" work file
  [ -e "$target/.complete" ] && return 0
  sinew_say "fetching $name $version into $target"
  mkdir -p "$SINEW_CACHE"
  work=$(mktemp -d "$SINEW_CACHE/fetch.XXXXXX")
  if ! python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$work" \
      ${platform:+--python-version 3.12 --implementation cp --platform "$platform"} "$package==$version" >&2; then
    rm -rf "$work"
    sinew_say "could not fetch $name $version"
    return 1
  fi
  file=$(ls "$work"/*.whl)
  if ! echo "$sha  $file" | sha256sum -c --quiet - >&2; then
    rm -rf "$work"
    sinew_say "$name $version has the wrong SHA-256"
    return 1
  fi
  mkdir "$work/unpacked"
  python3 -m zipfile -e "$file" "$work/unpacked"
  touch "$work/unpacked/.complete"
  rm -rf "$target"
  mv -T "$work/unpacked" "$target"
  rm -rf "$work"
}

sinew_fetch_mujoco() {
  case "$(uname -m)" in
    x86_64) sinew_wheel mujoco-core 4.0.0 1cea4f32972ade944fef7a9b586272a83352bf0c6404455d7ea56d7f9edaa136 manylinux_2_28_x86_64 ;;
    *) sinew_say "MuJoCo is pinned for x86_64 only; build with -DSINEW_MUJOCO_DIR=... on $(uname -m)"; return 1 ;;
  esac
}

sinew_fetch_myosuite() {
  sinew_wheel myosuite 2.12.2 bec0133d9d4ba0249aeccdd7de632eead4749436ffb4e5a3c44a8f9cedafd9ea
  sinew_place_models
}

# Puts the models of clients/myosuite beside those that they include, and the left hand of MPL_sim with a racket in it.
# Leaves what is there already, as it is: models are compiled again when the time of a file changes.
sinew_place_models() {
  local from myosuite="$SINEW_CACHE/myosuite-2.12.2/myosuite" to file hand
  from=$(dirname "${BASH_SOURCE[0]}")/myosuite to=$myosuite/envs/myo/assets/sinew
  mkdir -p "$to"
  for file in "$from"/*.xml; do sinew_place "$to/${file##*/}" <"$file"; done
  hand=$(sed 's#^\( *\)<site name="prosthesis/palm_back".*#&\n\1<include file="racket.xml"/>#' "$myosuite/simhive/MPL_sim/assets/handL_chain.xml")
  [[ $hand = *racket.xml* ]] || { sinew_say "MyoSuite's handL_chain.xml has no site prosthesis/palm_back"; return 1; }
  sinew_place "$to/prosthesis_with_racket.xml" <<<"$hand"
}

# Writes a file from standard input unless it is the same already. Nobody sees half of one.
sinew_place() {
  local part
  part=$(mktemp "$1.XXXXXX")
  cat >"$part"
  chmod 644 "$part"
  if cmp -s "$part" "$1"; then rm "$part"; else mv "$part" "$1"; fi
}

# Robots of the tasks that have no muscles: dm_control (Apache 2.0) and Gymnasium (MIT).
sinew_fetch_robots() {
  sinew_wheel dm_control 1.0.50 5434e1e51ff69016867426da7df6064b18d140e4d0a628f879bbcf0e7d0a586d
  sinew_wheel gymnasium 1.4.0 1cb947c59e7c72d8eabb2c2274c00cd20948e69f8452a9ef4092223be24fdf0e
}

# Prints the folders of all fetched models, a line each, as the options of programs have them.
sinew_model_options() { printf -- '--models=%s\n' "$SINEW_CACHE"/{myosuite-2.12.2,dm_control-1.0.50,gymnasium-1.4.0}; }

sinew_setup() {
  # shellcheck disable=SC2086  # the list is split on purpose
  sinew_install_packages $SINEW_PACKAGES_BUILD
  sinew_fetch_mujoco
  sinew_fetch_myosuite
  sinew_fetch_robots
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  case "${1:-}" in
    "") sinew_setup ;;
    --python)
      # shellcheck disable=SC2086  # the lists are split on purpose
      sinew_install_packages $SINEW_PACKAGES_BUILD $SINEW_PACKAGES_PYTHON ;;
    --models)
      sinew_install_packages python3 python3-pip
      sinew_fetch_myosuite
      sinew_fetch_robots
      echo "$SINEW_CACHE/myosuite-2.12.2/myosuite" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; [ "$1" = --help ] || exit 2 ;;
  esac
fi

# Environments for the tests of the Python package. Sourced from the top of the tree by run.sh, asan.sh and wheel.sh;
# clients/setup.sh comes first.
#
# What comes from PyPI is installed once into $SINEW_CACHE/python-HASH, where HASH is that of the interpreter and the files of
# requirements. A tree works on a copy (of links where the file system has them), into which its own wheel is installed.

PYTHON_TESTS=tests/clients/python

# Prints an interpreter of 3.11 or newer that can make environments: Debian's, else that of the path.
python_base() {
  local python
  for python in /usr/bin/python3 python3; do
    if "$python" -c 'import sys, ensurepip, sysconfig, os; sys.exit(sys.version_info < (3, 11) or
        not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null; then
      command -v "$python"
      return
    fi
  done
  echo "no python3 of 3.11 or newer with venv and headers was found" >&2
  return 1
}

# python_cached BASE OPTION FILE...: makes the environment in the cache by `BASE -m venv OPTION` and pip, if it is not there;
# prints its folder. OPTION may be "". Fails, with pip's last lines, where the packages cannot be fetched.
python_cached() {
  local base=$1 option=$2 key target work file arguments=()
  shift 2
  for file in "$@"; do
    arguments+=(-r "$PYTHON_TESTS/$file")
  done
  # What Debian has beside it is older than what the versions of all packages say.
  [ -n "$option" ] && arguments+=(--no-deps) || arguments+=(-c "$PYTHON_TESTS/constraints.txt")
  key=$({ "$base" -c 'import sys; print(sys.version, sys.executable)'; echo "$option"
    cat "${@/#/$PYTHON_TESTS/}" "$PYTHON_TESTS/constraints.txt"; } | sha256sum | cut -c1-12)
  target=$SINEW_CACHE/python-$key
  if [ ! -e "$target/.complete" ]; then
    sinew_say "fetching Python packages ($*) into $target"
    mkdir -p "$SINEW_CACHE"
    work=$(mktemp -d "$SINEW_CACHE/fetch.XXXXXX")
    # shellcheck disable=SC2086  # no word where there is no option
    if ! { "$base" -m venv $option "$work" &&
        "$work/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: "${arguments[@]}"; } >"$work/.log" 2>&1; then
      grep -v '^ *$' "$work/.log" | tail -2 | cut -c1-200 >&2
      rm -rf "$work"
      return 1
    fi
    touch "$work/.complete"
    [ -e "$target/.complete" ] || { rm -rf "$target"; mv -T "$work" "$target"; }
    rm -rf "$work"
  fi
  touch "$target"  # what nobody has used for two weeks goes
  find "$SINEW_CACHE" -mindepth 1 -maxdepth 1 -name 'python-*' -mtime +14 -exec rm -rf {} +
  echo "$target"
}

# python_copy CACHED FOLDER: makes FOLDER a copy of an environment of the cache, if it is not one yet.
python_copy() {
  [ "$(cat "$2/.from" 2>/dev/null)" = "$1" ] && return
  rm -rf "$2"
  mkdir -p "$(dirname "$2")"
  cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2"; cp -a "$1" "$2"; }
  echo "$1" >"$2/.from"
}

# python_main FOLDER: makes FOLDER an environment with everything from PyPI, or with what is needed alone, and says so.
python_main() {
  local base cached
  # shellcheck disable=SC2086  # the list is split on purpose
  sinew_install_packages $SINEW_PACKAGES_PYTHON
  base=$(python_base)
  if ! cached=$(python_cached "$base" "" requirements.txt requirements-extras.txt); then
    echo "skipped: tests with jax, gymnasium, scipy, diffrax, pandas, matplotlib, notebooks, viser, mcap, ray, playwright: these packages could not be fetched"
    cached=$(python_cached "$base" "" requirements.txt)
  fi
  python_copy "$cached" "$1"
}

# python_torch FOLDER: makes FOLDER an environment over Debian's python3-torch; 1, with the reason, where that cannot be had.
python_torch() {
  local cached
  if ! /usr/bin/python3 -c 'import torch, matplotlib' 2>/dev/null && ! sinew_install_packages python3-torch python3-matplotlib; then
    echo "skipped: tests with PyTorch: Debian's python3-torch and python3-matplotlib could not be installed"
    return 1
  fi
  if ! cached=$(python_cached /usr/bin/python3 --system-site-packages requirements-torch.txt); then
    echo "skipped: tests with PyTorch: packages for an environment beside it could not be fetched"
    return 1
  fi
  python_copy "$cached" "$1"
}

# python_wheel ENVIRONMENT FOLDER [OPTION...]: builds the wheel into FOLDER with what the environment has, and prints its path.
# Options are those of pip.
python_wheel() {
  local python=$1/bin/python folder=$2
  shift 2
  rm -rf "$folder"
  CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) "$python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$folder" "$@" \
    ./clients/python >&2
  ls "$folder"/sinew-*.whl
}

# python_install ENVIRONMENT WHEEL: puts the wheel in place of the package that is there.
python_install() {
  "$1/bin/python" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "$2"
}

# python_pytest ENVIRONMENT ARGUMENT...: runs tests, as many files at once as there are processors; says what was left out, and
# where it hung if it did.
python_pytest() {
  local python=$1/bin/python
  shift
  timeout 1500 "$python" -B -m pytest -q -rsfE -p no:cacheprovider -n "$(nproc)" --dist loadfile -o faulthandler_timeout=300 --rootdir "$PYTHON_TESTS" "$@"
}

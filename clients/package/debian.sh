# Makes bare Debians for scripts that try packages in them; sourced by boot.sh, container.sh and tests/fresh_machine.sh.

# make_debian FOLDER [PACKAGE,...]: sets up a Debian 12 in a folder, from apt's own source. Says on standard error why it cannot.
make_debian() {
  local mirror log
  command -v debootstrap >/dev/null || { echo "there is no debootstrap (the package of this name)" >&2; return 1; }
  # shellcheck disable=SC2016  # apt's own variable
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' 'Component: main' | sed -n 1p)
  [ -n "$mirror" ] || { echo "the sources of apt name no Debian 12" >&2; return 1; }
  log=$(debootstrap --variant=minbase ${2:+--include="$2"} bookworm "$1" "$mirror" 2>&1) || { tail -5 <<<"$log" >&2; return 1; }
}

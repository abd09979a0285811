#!/usr/bin/env bash
# The Debian package of sinew: daemon with its user, unit and configuration, libraries, tools, pages of the manual.
#
#   clients/package/deb.sh [FOLDER]     builds it into FOLDER (build/package); prints its path. SINEW_BUILD names a build that is there,
#                                       CMAKE_ARGUMENTS are for one that is made
#   clients/package/deb.sh --test DEB   looks into one without installing it: files, unit, scripts
#   clients/package/deb.sh --try DEB    as root, on a machine for that: installs it, starts the daemon as its user, asks it for a
#                                       plan, removes and purges it, and looks that nothing is left
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() { echo "deb: $1" >&2; exit 1; }

build() {
  local folder=$1 in=${SINEW_BUILD:-build/package}
  # shellcheck disable=SC2086  # the list is split on purpose
  [ -n "${SINEW_BUILD:-}" ] || cmake --preset release -B "$in" -DSINEW_TESTS=OFF ${CMAKE_ARGUMENTS:-} >/dev/null
  cmake --build "$in" -- --quiet | grep -v "ninja: no work to do" >&2 || [ "${PIPESTATUS[0]}" = 0 ]
  mkdir -p "$folder"
  folder=$(realpath "$folder")
  (cd "$in" && cpack -G DEB -B "$folder" >cpack.log) || { cat "$in/cpack.log" >&2; exit 1; }
  rm -rf "$folder/_CPack_Packages"
  ls "$folder"/sinew_*.deb
}

look() {
  local deb work file
  deb=$(realpath "$1")
  work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-deb.XXXXXX")
  # shellcheck disable=SC2064  # its name as it is now
  trap "rm -rf '$work'" EXIT
  dpkg-deb -x "$deb" "$work/files"
  dpkg-deb -e "$deb" "$work/control"
  for file in usr/bin/{sinewd,sinewctl,sinew-import,sinew-plant} usr/lib/systemd/system/sinewd.service usr/lib/systemd/user/sinewd.service \
      usr/lib/sysusers.d/sinewd.conf etc/sinew/sinewd.yaml usr/share/sinew/{sinew.proto,sinew.desc,tasks/arm_reach.yaml} usr/include/sinew.h; do
    [ -e "$work/files/$file" ] || fail "there is no $file"
  done
  if command -v help2man >/dev/null; then
    for file in sinewd sinewctl; do
      [ -n "$(find "$work/files/usr/share/man/man1" -name "$file.1*")" ] || fail "there is no page of the manual on $file"
    done
  fi
  # Nothing lies where packages have no business, and nothing names the machine that built it.
  [ -z "$(find "$work/files" -mindepth 1 -maxdepth 1 ! -name usr ! -name etc)" ] || fail "files outside /usr and /etc"
  for file in "$work"/files/usr/lib/systemd/*/sinewd.service "$work/files/etc/sinew/sinewd.yaml"; do
    if grep -q "$PWD\|$work" "$file"; then fail "$file names a folder of the build"; fi
  done
  grep -qxF 'ExecStart="/usr/bin/sinewd" "--config=/etc/sinew/sinewd.yaml"' "$work/files/usr/lib/systemd/system/sinewd.service" || fail "the unit starts something else"
  grep -qx /etc/sinew/sinewd.yaml "$work/control/conffiles" || fail "the configuration is no conffile"
  for file in postinst prerm postrm; do sh -n "$work/control/$file" && [ -x "$work/control/$file" ] || fail "$file cannot be run"; done
  grep -q '^Depends:.*libzmq5' "$work/control/control" || fail "it does not say that it needs libzmq"
  if grep -q '^Depends:.*libmujoco' "$work/control/control"; then fail "it asks for MuJoCo's package, which there is not"; fi
  "$work/files/usr/bin/sinewd" --config="$work/files/etc/sinew/sinewd.yaml" --endpoint="ipc://$work/s" --cache="$work/cache" --state="$work/state" \
    --flight-folder="$work/flight" --check || fail "sinewd refuses the configuration"
  echo "$(dpkg-deb -f "$deb" Package Version Architecture Installed-Size | tr '\n' ' ')is as it should be"
}

try() {
  local deb left
  [ "$(id -u)" = 0 ] || fail "--try wants root"
  deb=$(realpath "$1")
  apt-get install -y -q "$deb" >/dev/null
  getent passwd sinew >/dev/null || fail "there is no user sinew"
  # As the unit does, where no service manager runs.
  install -d -o sinew -g sinew -m 755 /run/sinewd
  install -d -o sinew -g sinew -m 700 /var/cache/sinewd /var/lib/sinewd
  setpriv --reuid=sinew --regid=sinew --clear-groups env XDG_CACHE_HOME=/var/cache/sinewd /usr/bin/sinewd --config=/etc/sinew/sinewd.yaml 2>/run/sinewd.log &
  local daemon=$! session
  for _ in $(seq 100); do sinewctl -e ipc:///run/sinewd/sinewd.sock health >/dev/null 2>&1 && break; sleep 0.1; done
  session=$(sinewctl -e ipc:///run/sinewd/sinewd.sock open arm_reach | awk '/^session:/ {print $2}') || { cat /run/sinewd.log >&2; fail "no session"; }
  echo '{"time": 0, "qpos": [0.35, 1.3], "qvel": [0, 0]}' | sinewctl -e ipc:///run/sinewd/sinewd.sock plan "$session" --deadline 0.1 | grep -q '^status: OK' || fail "no plan"
  sinewctl -e ipc:///run/sinewd/sinewd.sock flight | grep -q '^path: /var/lib/sinewd/flight/' || fail "no file of the flight recorder"
  man -w sinewd >/dev/null 2>&1 || echo "deb: no page of the manual is found (no man, or it excludes them)" >&2
  kill $daemon && wait $daemon || fail "sinewd ends with $?"
  echo "# mine" >>/etc/sinew/sinewd.yaml
  apt-get remove -y -q sinew >/dev/null
  [ -e /etc/sinew/sinewd.yaml ] && [ ! -e /usr/bin/sinewd ] || fail "a removal takes the configuration, or leaves the program"
  dpkg --purge sinew >/dev/null
  rm -rf /run/sinewd /run/sinewd.log
  for left in /etc/sinew /var/cache/sinewd /var/lib/sinewd /usr/share/sinew /usr/lib/systemd/system/sinewd.service; do
    [ ! -e "$left" ] || fail "a purge leaves $left"
  done
  ! getent passwd sinew >/dev/null || fail "a purge leaves the user"
  echo "installed, planned as user sinew, removed, purged: nothing is left"
}

case "${1:-}" in
  --test) look "${2:?--test wants a package}" ;;
  --try) try "${2:?--try wants a package}" ;;
  -*) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; [ "$1" = --help ] ;;
  *) build "${1:-build/package}" ;;
esac

#!/usr/bin/env bash
# The Debian package under a systemd that runs: a Debian is set up in a folder (debootstrap) and booted as a container
# (systemd-nspawn, without a network), the package is installed in it, and its unit is tried. As root; some minutes.
#
#   clients/package/boot.sh DEB [FOLDER]     FOLDER keeps the bare Debian for the next time, which then takes half a minute
#
# Tried are: start, notification, what the process may do, a plan and its model's import under the unit's filters, reloads of good
# and bad files, a restart and a kill with a named session, the watchdog of a daemon that hangs, a stop, the unit of a user, removal.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

fail() { echo "boot: $1" >&2; exit 1; }
say() { echo "boot: $1" >&2; }
case "${1:---help}" in --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;; esac
[ "$(id -u)" = 0 ] || fail "it wants root"
for tool in debootstrap systemd-nspawn nsenter; do command -v $tool >/dev/null || fail "there is no $tool (packages debootstrap, systemd-container)"; done
deb=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-boot.XXXXXX")
bare=$(realpath -m "${2:-$work/bare}")
root=$work/root
container=
session=
leave() {
  local first
  if [ -n "$container" ]; then
    first=$(pgrep -P "$container" | head -1) || true
    kill -KILL "$container" "$first" 2>/dev/null || true
    wait "$container" 2>/dev/null || true
    while [ -n "$first" ] && kill -0 "$first" 2>/dev/null; do sleep 0.1; done
  fi
  rm -rf "$work"
}
trap leave EXIT

# inside COMMAND...: runs it in the container.
inside() {
  nsenter -t "$(pgrep -P "$container" | head -1)" -m -u -i -n -p -C -r -w -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb "$@"
}
ctl() { inside sinewctl -e ipc:///run/sinewd/sinewd.sock "$@"; }

# await SECONDS TEXT COMMAND...: until the command succeeds.
await() {
  local ends=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $ends ] || fail "$what"; sleep 0.2; done
}

main_pid() { inside systemctl show sinewd --property MainPID --value; }
is_another() { local pid; pid=$(main_pid) && [ "$pid" != 0 ] && [ "$pid" != "$1" ]; }

# The session with a name: opening it again says its number, which is another one where it has been lost.
robot() { ctl open arm_reach --name robot | awk '/^session:/ {print $2}'; }
plan() { inside sh -c "echo '{\"time\": 0, \"qpos\": [0.35, 1.3], \"qvel\": [0, 0]}' | sinewctl -e ipc:///run/sinewd/sinewd.sock plan $session --deadline 0.1" | grep -q '^status: OK'; }
keeps_robot() {
  await 10 "after $1 sinewd does not answer" ctl health
  await 10 "after $1 the session with a name does not plan" plan
  [ "$(robot)" = "$session" ] || fail "after $1 the name has another session"
}

set_up() {
  if [ ! -e "$bare/etc/debian_version" ]; then
    say "sets up a Debian in $bare"
    make_debian "$bare" systemd,systemd-sysv,dbus,libpam-systemd,procps || fail "no Debian"
  fi
  cp -a "$bare" "$root"
  cp "$deb" "$root/opt/sinew.deb"
  chroot "$root" apt-get install -y -q --no-install-recommends /opt/sinew.deb >"$work/install.log" 2>&1 || { tail -5 "$work/install.log" >&2; fail "the package is not installed"; }
  mkdir -p "$root/etc/systemd/system/sinewd.service.d"
  printf '[Service]\nWatchdogSec=3\n' >"$root/etc/systemd/system/sinewd.service.d/watchdog.conf"
  systemd-nspawn -q -D "$root" -b --register=no --keep-unit --private-network --console=pipe </dev/null >"$work/console.log" 2>&1 &
  container=$!
  await 60 "the container does not boot" sh -c "pgrep -P $container"
  await 60 "its systemd is not ready" inside systemctl is-system-running --wait
}

try_start() {
  local pid score name
  inside systemctl enable --now sinewd 2>/dev/null || { inside journalctl -u sinewd --no-pager >&2; fail "the unit does not start"; }
  [ "$(inside systemctl show sinewd --property StatusText --value)" = ready ] || fail "systemd has no status of it"
  pid=$(main_pid)
  for name in "CapEff:	0000000000000000" "NoNewPrivs:	1" "Seccomp:	2"; do
    inside grep -qxF "$name" "/proc/$pid/status" || fail "the process has not '$name'"
  done
  [ "$(inside stat -c %U "/proc/$pid")" = sinew ] || fail "it does not run as user sinew"
  score=$(inside systemd-analyze security sinewd --no-pager | sed -n 's/.*exposure level for sinewd.service: \([0-9.]*\).*/\1/p')
  awk -v s="$score" 'BEGIN { exit !(s != "" && s < 2.0) }' || fail "its exposure is '$score'; less than 2.0 is allowed"
  session=$(robot)
  plan || { inside journalctl -u sinewd --no-pager >&2; fail "no plan under the unit's filters"; }
  ctl flight | grep -q '^path: /var/lib/sinewd/flight/' || fail "no file of the flight recorder"
  say "starts, says it is ready, exposure $score of 10; plans, and imported its model under the unit's filters"
}

try_reloads() {
  local before
  before=$(main_pid)
  inside cp /etc/sinew/sinewd.yaml /opt/kept.yaml
  inside sh -c 'echo "sessions: none" >>/etc/sinew/sinewd.yaml'
  ! inside systemctl reload sinewd 2>/dev/null || fail "a bad file is reloaded without an error"
  inside journalctl -u sinewd --no-pager | grep -q "sessions is 'none'" || fail "the journal does not say what is wrong with the file"
  inside sh -c 'cp /opt/kept.yaml /etc/sinew/sinewd.yaml'
  inside systemctl reload sinewd || fail "a good file is not reloaded"
  await 5 "the journal has no reload" sh -c "$(declare -f inside); container=$container; inside journalctl -u sinewd --no-pager | grep -q event=reloaded"
  [ "$(main_pid)" = "$before" ] || fail "a reload ends the process"
  say "a bad file ends the reload with an error that names the line, a good one is taken, the process stays"
}

try_ends() {
  local pid
  inside systemctl restart sinewd
  keeps_robot "a restart"
  pid=$(main_pid)
  inside kill -KILL "$pid"
  await 15 "a killed daemon is not started again" is_another "$pid"
  keeps_robot "a kill"
  pid=$(main_pid)
  inside kill -STOP "$pid"
  await 30 "the watchdog does not end a daemon that hangs" is_another "$pid"
  inside journalctl -u sinewd --no-pager | grep -q "Watchdog timeout" || fail "it was not the watchdog that ended it"
  keeps_robot "the watchdog"
  say "after a restart, a kill and the watchdog the session with a name is there and plans"
  inside sh -c 'sinewctl -e ipc:///run/sinewd/sinewd.sock open arm_reach >/dev/null'
  inside systemctl stop sinewd
  [ "$(inside systemctl show sinewd --property Result --value)" = success ] || fail "a stop is no orderly end: $(inside systemctl show sinewd --property Result --value)"
  say "a stop is an orderly end"
}

try_user() {
  inside useradd --create-home robot
  inside loginctl enable-linger robot
  local user=(inside setpriv --reuid=robot --regid=robot --clear-groups env HOME=/home/robot "XDG_RUNTIME_DIR=/run/user/$(inside id -u robot)")
  await 10 "the user has no manager" "${user[@]}" systemctl --user is-system-running
  "${user[@]}" systemctl --user enable --now sinewd 2>/dev/null || { "${user[@]}" journalctl --user -u sinewd --no-pager >&2; fail "the unit of a user does not start"; }
  "${user[@]}" sinewctl open arm_reach >/dev/null || fail "the daemon of a user opens no session"
  "${user[@]}" systemctl --user disable --now sinewd 2>/dev/null
  [ "$("${user[@]}" systemctl --user show sinewd --property Result --value)" = success ] || fail "a stop of a user's unit is no orderly end"
  say "the unit of a user starts, opens a session and ends"
}

try_removal() {
  inside systemctl start sinewd
  inside apt-get remove -y -q sinew >/dev/null 2>&1
  ! inside systemctl is-active -q sinewd || fail "a removal leaves the service running"
  inside dpkg --purge sinew >/dev/null 2>&1
  for left in /etc/sinew /var/cache/sinewd /var/lib/sinewd /run/sinewd; do ! inside test -e "$left" || fail "a purge leaves $left"; done
  ! inside getent passwd sinew >/dev/null || fail "a purge leaves the user"
  say "removed and purged: nothing is left"
}

set_up
try_start
try_reloads
try_ends
try_user
try_removal
echo "the unit of $(basename "$deb") holds under $(inside systemctl --version | head -1)"

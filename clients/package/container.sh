#!/usr/bin/env bash
# The container file, tried: its image is built by podman from these sources, and runs as the file's head says, read-only, without
# capabilities and without a network. As root; it compiles everything, so some ten minutes.
#
#   clients/package/container.sh [IMAGE]     IMAGE is tried instead of one that is built
#
# Tried are: the health check, whose processes they are, a model's import and a plan, an orderly stop, and a session with a name
# in the container after that. Where no registry answers, the base image is made of a Debian from apt's own source (debootstrap).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. clients/package/debian.sh

fail() { echo "container: $1" >&2; exit 1; }
say() { echo "container: $1" >&2; }
case "${1:-}" in --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;; esac
[ "$(id -u)" = 0 ] || fail "it wants root"
command -v podman >/dev/null || fail "there is no podman (packages podman, netavark)"
# Where no systemd runs, podman says of each call that it cannot have its timers; what fails is said all the same.
podman() { command podman --log-level fatal "$@"; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-container.XXXXXX")
name=sinewd-$$
image=${1:-}
# podman's own limits are more than a process may give in some places.
limits=(--ulimit "nofile=$(ulimit -Hn):$(ulimit -Hn)" --ulimit nproc=30000:30000)
made=
leave() {
  local status=$?
  podman rm -f -t 1 "$name" >/dev/null 2>&1 || true
  podman volume rm -f "$name" >/dev/null 2>&1 || true
  [ -n "${1:-}" ] || podman image rm -f "$name" >/dev/null 2>&1 || true
  [ -z "$made" ] || podman image rm -f "$(base)" >/dev/null 2>&1 || true
  rm -rf "$work/base" "$work/run"
  if [ $status = 0 ]; then rm -rf "$work"; fi
}
trap 'leave "${1:-}"' EXIT

# Prints the base image of the container file.
base() { sed -n 's/^FROM \([^ ]*\).*/\1/p' daemon/service/Containerfile | tail -1; }

# Makes the base image of apt's own source, with what this machine has been told of authorities and of Python's packages.
make_base() {
  local root=$work/base
  say "no registry answers: $(base) is made by debootstrap"
  make_debian "$root" || fail "no Debian"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
  mkdir -p "$root/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp -L {} "$root/usr/local/share/ca-certificates/" ';'
  made=yes
  tar -C "$root" -c . | podman import -q - "$(base)" >/dev/null
}

build() {
  podman image exists "$(base)" || timeout 60 podman pull -q "$(base)" >/dev/null 2>&1 || make_base
  say "builds the image; its log: $work/build.log"
  podman build "${limits[@]}" --format docker --network host -f daemon/service/Containerfile -t "$name" . >"$work/build.log" 2>&1 || { tail -20 "$work/build.log" >&2; fail "no image"; }
  image=$name
}

# Starts it as the container file says, but that this script looks at its health, and no timer of systemd does.
start() {
  podman run -d "${limits[@]}" --name "$name" --read-only --cap-drop=all --network none --health-interval disable -v "$work/run:/run/sinewd:U" -v "$name:/var/lib/sinewd" "$image" >/dev/null
  local ends=$((SECONDS + 30))
  until podman healthcheck run "$name" >/dev/null 2>&1; do
    [ $SECONDS -lt $ends ] || { podman logs "$name" 2>&1 | tail -5 >&2; fail "the health check does not pass"; }
    sleep 0.2
  done
}

# Asks the daemon, with what is said to the standard input.
ctl() { podman exec -i "$name" sinewctl -e ipc:///run/sinewd/sinewd.sock "$@"; }
robot() { ctl open arm_reach --name robot </dev/null | awk '/^session:/ {print $2}'; }
plans() { echo '{"time": 0, "qpos": [0.35, 1.3], "qvel": [0, 0]}' | ctl plan "$1" --deadline 0.1 | grep -q '^status: OK'; }

stop() {
  podman stop -t 10 "$name" >/dev/null
  [ "$(podman inspect "$name" --format '{{.State.ExitCode}}')" = 0 ] || fail "it did not end in order"
}

mkdir -p "$work/run"
[ -n "$image" ] || build
start
[ "$(podman exec "$name" id -un)" = sinew ] || fail "it does not run as the user sinew"
if podman exec "$name" touch /etc/x 2>/dev/null; then fail "it can write where it must not"; fi
session=$(robot)
[ -n "$session" ] || fail "no session"
plans "$session" || fail "the session does not plan"
stop
podman rm "$name" >/dev/null
start
[ "$(robot)" = "$session" ] || fail "the session with a name is another one after a stop"
plans "$session" || fail "the session with a name does not plan after a stop"
stop
say "passed: $(podman image inspect "$image" --format '{{.Size}}' | awk '{printf "%.0f MB", $1 / 1e6}')"

#!/usr/bin/env bash
# Runs a command that starts arm64 programs, which QEMU executes. QEMU_LD_PREFIX is the folder of their libraries.
#
#   QEMU_LD_PREFIX=SYSROOT tests/qemu_arm64.sh COMMAND...
#
# The kernel hands such programs to QEMU (binfmt_misc) in namespaces of the command's own, so nothing of the machine
# changes, and what the command leaves running ends with it. That wants Linux 6.7. Exit status: the command's; 77 where
# there is no QEMU, or no such namespace.
set -euo pipefail

skip() { echo "skipped: $1" >&2; exit 77; }

# Tells the kernel about arm64 programs as soon as the namespace has its users, then becomes the command.
inside() {
  local mapped=$1
  shift
  read -r _ <"$mapped"
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null || skip "no binfmt_misc of one's own (Linux 6.7 or later)"
  printf %s "$ENTRY" >/proc/sys/fs/binfmt_misc/register || skip "binfmt_misc takes no entry"
  mount -t proc none /proc
  if [ "$OWN" = 0:0 ]; then exec "$@"; fi
  exec unshare --user --map-user="${OWN%:*}" --map-group="${OWN#*:}" "$@"
}

case "${1:-}" in --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -gt 0 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 1; }
if [ "$1" = --inside ]; then
  shift
  inside "$@"
fi

qemu=$(command -v qemu-aarch64) || skip "no qemu-aarch64"
# The head of an ELF file of 64 bits for arm64, what of it counts, who executes it (O, C, F: opened here, as the user, once).
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
OWN=$(id -u):$(id -g)
export OWN ENTRY=":arm64:M::$magic:$mask:$qemu:OCF"

# Root has all users in there, for tests that become another; others are root until the command begins.
map=(--map-root-user)
if [ "$OWN" = 0:0 ]; then map=(); fi
unshare --user "${map[@]}" --mount --pid --fork true 2>/dev/null || skip "no namespaces of users, mounts and processes"

folder=$(mktemp -d)
mkfifo "$folder/mapped"
exec 3<>"$folder/mapped" # so that nobody waits for the other end
unshare --user "${map[@]}" --mount --pid --fork "$0" --inside "$folder/mapped" "$@" 3<&- &
# Ends the first process of the namespace, and with it all others.
end() {
  rm -rf "$folder"
  # shellcheck disable=SC2046
  kill -KILL $(cat "/proc/$!/task/$!/children" 2>/dev/null) 2>/dev/null || true
}
trap end EXIT
trap 'exit 143' TERM INT
if [ "$OWN" = 0:0 ]; then
  until [ "$(readlink "/proc/$!/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.05; done
  for users in uid_map gid_map; do
    echo '0 0 65536' 2>/dev/null >"/proc/$!/$users" || skip "no namespace of all users"
  done
fi
echo >&3
wait $!

#!/usr/bin/env bash
# Runs a command that starts arm64 programs, which QEMU executes. QEMU_LD_PREFIX is the folder of their libraries.
#
#   QEMU_LD_PREFIX=SYSROOT tests/qemu_arm64.sh COMMAND...
#
# The kernel hands such programs to QEMU (binfmt_misc) in namespaces of the command's own, so nothing of the machine
# changes. That wants Linux 6.7. Exit status: the command's; 77 where namespaces or their binfmt_misc are not to be had.
set -euo pipefail

# Tells the kernel about arm64 programs as soon as the namespace has its users, then becomes the command.
inside() {
  local mapped=$1
  shift
  read -r _ <"$mapped"
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null && printf %s "$ENTRY" >/proc/sys/fs/binfmt_misc/register || {
    echo "skipped: no binfmt_misc of one's own (Linux 6.7 or later)" >&2
    exit 77
  }
  if [ "$OWN" = 0:0 ]; then exec "$@"; fi
  exec unshare --user --map-user="${OWN%:*}" --map-group="${OWN#*:}" "$@"
}

if [ "$1" = --inside ]; then
  shift
  inside "$@"
fi

# The head of an ELF file of 64 bits for arm64, what of it counts, who executes it (O, C, F: opened here, as the user, once).
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
export ENTRY=":arm64:M::$magic:$mask:$(command -v qemu-aarch64):OCF"
OWN=$(id -u):$(id -g)
export OWN
unshare --user true 2>/dev/null || { echo "skipped: no namespaces of users" >&2; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkfifo "$folder/mapped"
if [ "$OWN" = 0:0 ]; then # root has all users in there, for tests that become another
  unshare --user --mount "$0" --inside "$folder/mapped" "$@" &
  until [ "$(readlink "/proc/$!/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.05; done
  for map in uid_map gid_map; do echo '0 0 65536' >"/proc/$!/$map"; done
else
  unshare --user --map-root-user --mount "$0" --inside "$folder/mapped" "$@" &
fi
echo >"$folder/mapped"
trap 'kill $! 2>/dev/null; rm -rf "$folder"' INT TERM
wait $!

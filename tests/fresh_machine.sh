#!/usr/bin/env bash
# Proves the commands of README on a bare Debian 12 made with debootstrap in a temporary folder. Needs root
# and the package mirror of this machine; takes its apt and pip settings along. Not part of CI.
#
#   tests/fresh_machine.sh [--bring FILE] [COMMAND...]     default: clients/demo.sh, clients/install.sh, tests/run.sh release
#
# --bring copies a file to the top of the tree there, as a wheel:
#   tests/fresh_machine.sh --bring build/wheel/sinew-*.whl 'clients/python/wheel.sh --test sinew-*.whl'
set -euo pipefail
case "${1:-}" in --help | -h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
. clients/package/debian.sh

bring=
[ "${1:-}" != --bring ] || { bring=$(readlink -f "${2:?--bring wants a file}"); shift 2; }
[ "$(id -u)" = 0 ] || { echo "needs root (chroot)" >&2; exit 2; }
command -v debootstrap >/dev/null || { apt-get update -q >/dev/null; apt-get install -y -q debootstrap >/dev/null; }

root=$(mktemp -d "${TMPDIR:-/tmp}/sinew-fresh.XXXXXX")
chmod 755 "$root"
cleanup() {
  for dir in proc dev/pts dev sys; do mountpoint -q "$root/$dir" && umount -l "$root/$dir"; done
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT

echo "== bare Debian 12 in $root"
make_debian "$root" ca-certificates,git

# The machine's own settings for apt, pip and name resolution.
rm -f "$root/etc/apt/sources.list"
cp -a /etc/apt/sources.list.d/debian.sources "$root/etc/apt/sources.list.d/" 2>/dev/null || cp -a /etc/apt/sources.list "$root/etc/apt/"
for file in /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/pip.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/local/share/ca-certificates; do
  [ -e "$file" ] || continue
  mkdir -p "$root$(dirname "$file")"
  cp -aLT "$file" "$root$file" 2>/dev/null || true
done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"  # else unmounting it would unmount what lies under this machine's own /dev

git clone -q . "$root/sinew"
[ -z "$bring" ] || cp "$bring" "$root/sinew/"
commands=("$@")
[ ${#commands[@]} -gt 0 ] || commands=("clients/demo.sh" "clients/install.sh /opt/sinew" "tests/run.sh release")
for command in "${commands[@]}"; do
  echo "== $command"
  started=$SECONDS
  env -i HOME=/home PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 $(env | grep -E '^(PIP_|SSL_|https?_proxy|no_proxy)' || true) \
    chroot "$root" bash -c "cd /sinew && ./$command"
  echo "== $command: $((SECONDS - started)) s"
done

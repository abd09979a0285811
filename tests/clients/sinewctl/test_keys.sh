#!/usr/bin/env bash
# Keys from a shell: sinewctl makes them, sinewctl and sinew-plant use them, and each mistake with them is said at once.
#   test_keys.sh BIN SOURCE
set -euo pipefail
BIN=$1 SOURCE=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/sinew-keys.XXXXXX")
daemon=
trap '[ -z "$daemon" ] || kill -TERM "$daemon" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT
cd "$work"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
endpoint=tcp://127.0.0.1:$port

fail() { echo "FAIL  $*" >&2; exit 1; }
# refused TEXT WORDS...: status 1, and an error that has the text, not that of a time-out.
refused() {
  local text=$1
  shift
  if timeout 60 "$@" >out 2>error; then fail "not refused: $*"; fi
  grep -qF -- "$text" error || fail "$*: $(cat error)"
}
ctl() { timeout 20 "$BIN/sinewctl" --endpoint "$endpoint" "$@"; }

for name in server arm stranger; do "$BIN/sinewctl" keygen "$name" >"$name.out"; done
for name in server arm stranger; do
  [ "$(stat -c %a "$name")" = 600 ] || fail "mode of a secret key"
  [ "$(tail -n 1 "$name.out")" = "public key: $(tail -n 1 "$name.pub")" ] || fail "the public key that is printed"
  [ "$(tail -n 1 "$name.pub" | tr -d '\n' | wc -c)" = 40 ] || fail "length of a key"
done
[ "$(sort -u ./*.pub | grep -vc '^# ')" = 3 ] || fail "keys that are alike"
before=$(cat arm)
refused 'arm: is there already, and stays' "$BIN/sinewctl" keygen arm
[ "$(cat arm)" = "$before" ] || fail "a key was written over"
touch half.pub
refused 'half.pub: is there already' "$BIN/sinewctl" keygen half
[ ! -e half ] || fail "half a pair was left"
refused 'nowhere/key: No such file' "$BIN/sinewctl" keygen nowhere/key
"$BIN/sinewctl" --json keygen spare | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["public"]) == 40'

echo "$(tail -n 1 arm.pub) tune name=arm" >allow
"$BIN/sinewd" --backend=cpu --endpoint="ipc://$work/s" --tcp="$endpoint" --curve-key=server --allow=allow \
  --tasks="$SOURCE/planner/tasks" --models="$SOURCE/physics/models" 2>log &
daemon=$!
"$BIN/sinewctl" --endpoint "ipc://$work/s" --timeout 20 health >/dev/null  # waits until the daemon listens

ctl --server-key server.pub --key arm hello | grep -q '^role: tune$' || fail "the role"
ctl --server-key "$(tail -n 1 server.pub)" --key arm health >/dev/null || fail "a key in place of its file"
refused "does not let the key $(tail -n 1 stranger.pub) in" "$BIN/sinewctl" -e "$endpoint" --server-key server.pub --key stranger health
refused 'needs keys' "$BIN/sinewctl" -e "$endpoint" health
refused 'server_key is not its key' "$BIN/sinewctl" -e "$endpoint" --server-key stranger.pub --key arm health
refused 'key_file is missing' "$BIN/sinewctl" -e "$endpoint" --server-key server.pub health
refused 'server_key and key_file go together' "$BIN/sinewctl" -e "$endpoint" --key arm health
refused 'must have mode 600' "$BIN/sinewctl" -e "$endpoint" --server-key server.pub --key arm.pub health
refused 'has no key' "$BIN/sinewctl" -e "$endpoint" --server-key allow --key arm health
refused 'takes no keys' "$BIN/sinewctl" -e "ipc://$work/s" --server-key server.pub --key arm health
refused 'unload_model needs the role admin; this key has tune' "$BIN/sinewctl" -e "$endpoint" --server-key server.pub --key arm unload arm_reach

session=$(ctl --server-key server.pub --key arm open arm_reach | awk '/^session:/ {print $2}')
ctl --json --server-key server.pub --key arm watch "$session" --count 2 --interval 0.05 >watched
[ "$(grep -c "\"session\":$session" watched)" = 2 ] || fail "watch"
timeout 60 "$BIN/sinew-plant" -e "$endpoint" --server-key server.pub --key arm --seconds 0.2 --set adam_iterations=1 \
  --json --quiet | python3 -c 'import json, sys; assert json.load(sys.stdin)["plans"] > 0' || fail "the plant"
refused 'does not let the key' "$BIN/sinew-plant" -e "$endpoint" --server-key server.pub --key stranger --seconds 0.2
echo "sinewctl: keys, as documented"

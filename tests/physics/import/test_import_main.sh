#!/usr/bin/env bash
# sinew-import as a program: exit status, report, list of files, limits. BIN is the folder of the programs.
set -euo pipefail
BIN=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
status() { "$@" >out 2>err || echo $?; }
fail() { echo "test_import_main: $1" >&2; cat out err >&2; exit 1; }

# a model of two files
mkdir parts
echo '<mujoco><worldbody><body name="b"><freejoint/><geom size=".1"/></body></worldbody></mujoco>' >parts/body.xml
echo '<mujoco model="ball"><include file="parts/body.xml"/></mujoco>' >ball.xml
"$BIN/sinew-import" ball.xml --output ball.sinew --depends files --json >out 2>err || fail "a good model"
[ "$(head -c 8 ball.sinew)" = SINEWMDL ] || fail "no image"
[ "$(wc -l <files)" = 2 ] && grep -qx "$work/parts/body.xml" files && grep -qx "$work/ball.xml" files || fail "list of files"
grep -q '"verdict":.*"imported"' out && grep -q '"nv":.*6' out || fail "report of a good model"

# the same image whatever the time and folder
(cd parts && "$BIN/sinew-import" ../ball.xml -o ../again.sinew)
cmp ball.sinew again.sinew || fail "images differ"

# without an output file it only checks
"$BIN/sinew-import" ball.xml || fail "check only"

# 2: unsupported, all of it on standard error, or in the report
echo '<mujoco><option integrator="discrete" noslip_iterations="1"><flag ipc="enable"/></option></mujoco>' >refused.xml
[ "$(status "$BIN/sinew-import" refused.xml -o refused.sinew)" = 2 ] && [ "$(grep -vc 'no sandbox' err)" = 2 ] && [ ! -e refused.sinew ] || fail "unsupported"
[ "$(status "$BIN/sinew-import" refused.xml --json)" = 2 ] && grep -q '"unsupported":.*ipc.*discrete' out || fail "unsupported, JSON"

# 3: cannot be loaded
[ "$(status "$BIN/sinew-import" nothere.xml)" = 3 ] && grep -q 'nothere.xml: No such file' err || fail "no file"
[ "$(status "$BIN/sinew-import" .)" = 3 ] && grep -qxF '.: Is a directory' err || fail "a folder"
echo 'hello' >text.xml
[ "$(status "$BIN/sinew-import" text.xml)" = 3 ] && grep -q 'text.xml: MuJoCo cannot load it' err || fail "not XML"
[ "$(status "$BIN/sinew-import")" = 3 ] || fail "no model given"
[ "$(status "$BIN/sinew-import" ball.xml --seconds never)" = 3 ] && grep -q 'seconds' err || fail "bad limit"

# 4: limits, here on real time: a pipe that nobody writes to
mkfifo pipe.xml
[ "$(status "$BIN/sinew-import" pipe.xml --seconds 1)" = 4 ] && grep -q 'pipe.xml: importing took longer than allowed' err || fail "time"

# 5: the output cannot be written
[ "$(status "$BIN/sinew-import" ball.xml -o /proc/nothere/x)" = 5 ] && grep -q '/proc/nothere/x' err || fail "no room for the image"
[ "$(status "$BIN/sinew-import" ball.xml -d /proc/nothere/x)" = 5 ] && grep -q '/proc/nothere/x' err || fail "no room for the list"
[ "$(status "$BIN/sinew-import" ball.xml -o /dev/full)" = 5 ] && grep -qxF '/dev/full: could not be written: not a regular file' err ||
  fail "what is no file"

# MuJoCo runs in a child, in a sandbox where the system has one; a crash of it is told with the signal and the file
"$BIN/sinew-import" pipe.xml >out 2>err &
importer=$! child=""
for _ in $(seq 400); do
  read -r child _ <"/proc/$importer/task/$importer/children" || true
  if [ -n "$child" ] && grep -qE '^Seccomp:.*2' "/proc/$child/status"; then break; fi
  if grep -q 'no sandbox' err; then echo "skipped: this system has no sandbox"; break; fi
  sleep 0.02
done
grep -qE '^Seccomp:.*2' "/proc/$child/status" || grep -q 'no sandbox' err || fail "no sandbox"
kill -SEGV "$child"
code=0
wait "$importer" || code=$?
[ "$code" = 3 ] || fail "status after a crash"
grep -q 'pipe.xml: .*crashed by signal 11 on this file' err 2>/dev/null || fail "words after a crash"
[ "$(status "$BIN/sinew-import" ball.xml --sandbox never)" = 3 ] && grep -q 'wanted or required' err || fail "bad sandbox"
"$BIN/sinew-import" ball.xml --sandbox required >out 2>err || grep -q 'no sandbox' err || fail "required sandbox"

"$BIN/sinew-import" --help | grep -q Example || fail "help"
[ ! -e MUJOCO_LOG.TXT ] || fail "MuJoCo left a log"
echo "sinew-import behaves as documented"

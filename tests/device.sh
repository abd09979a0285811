#!/usr/bin/env bash
# Checks and measurements that need an NVIDIA GPU: the first 45 minutes on one, in parts that have a limit each. Builds
# what they need first. Says "skipped: no CUDA device", with exit status 77, where there is none.
#
#   tests/device.sh                        the programme
#   tests/device.sh --list                 the parts and what each one does
#   tests/device.sh agree bench            only these ("bench": step, gradient and refine; "sanitize": both halves)
#   tests/device.sh more                   what the programme has no time for: soak, models, trace
#   tests/device.sh --out FOLDER PART...   where lines of JSON go (default build/device); all of it also in FOLDER.tar
#   tests/device.sh --rehearse PART...     on the emulator, the host in place of a device, and short
#   tests/device.sh --build FOLDER PART... from a build that is there (default: build/cuda, built first)
#   tests/device.sh --pack FOLDER          copies all that the parts need; FOLDER/device.sh runs them on another machine
#   tests/device.sh --pack FOLDER daemon   what that part needs alone, which is little
#
# Each part prints its duration; the last line counts the parts. A part goes on after a measurement that fails, and the
# programme after a part. They stand in the order of what to know first: whether a device is right, in short, then how
# fast it is and why, then what takes long to check. clients/scripts/device.py draws what comes of it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The parts and their limits [s], 45 minutes together; then the others.
PARTS="agree:300 wins:90 step:480 shapes:360 kernels:270 gradient:330 refine:240 tasks:120 daemon:90 memory:210 sync:120"
MORE="soak:590 models:590 trace:120"
REGISTERS=${REGISTERS-64 255}  # of further libraries of a pack, for the part shapes
MYOSUITE=${SINEW_MYOSUITE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sinew/myosuite-2.12.2/myosuite}
[ -n "${PART_ONLY:-}" ] || OUT='' REHEARSE='' PACK='' BUILD=''

# Where things are: in a pack beside this script, else in the tree that it belongs to.
find_places() {
  if [ -d "$here/bin" ]; then
    SOURCE=$here BIN=$here/bin LIB=$here/lib/sinew MYOSUITE=$here/myosuite CHECK_DAEMON=$here/check_daemon.py
    export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SINEW_MYOSUITE_DIR=$MYOSUITE
    OUT=${OUT:-results}
  else
    SOURCE=$(dirname "$here") CHECK_DAEMON=$here/cuda/check_daemon.py
    local preset=cuda
    [ -z "$REHEARSE" ] || preset=release
    BIN=${BUILD:-$SOURCE/build/$preset}/bin LIB=${BUILD:-$SOURCE/build/$preset}/lib/sinew
    OUT=${OUT:-$SOURCE/build/device}
  fi
  export SINEW_SOURCE_DIR=$SOURCE
  HAND=$MYOSUITE/envs/myo/assets/hand/myohand_baoding.xml
  ARM=$MYOSUITE/envs/myo/assets/arm/myoarm_relocate.xml
  WHERE=(--backend-folder "$LIB")
  TASK=(--tasks "$SOURCE/planner/tasks" --models "$SOURCE/physics/models" --models "myosuite=$MYOSUITE")
}

# What a rehearsal and the device differ in.
choose() {
  if [ -n "$REHEARSE" ]; then
    FLOAT=emulator DOUBLE=emulator_double REAL_FEW=0 REAL=0 SOAK_ARM=100 SOAK_HAND=10
    WORLDS=1,4 MANY_WORLDS=2,6 CPU_WORLDS=1,2 ITEMS=1,2 SESSIONS=1,2 STARTS=2 STEPS=16 ROUNDS=2 MOST=4 WINS=3
    SHAPE_WORLDS=1,2 THREADS="8 32"
    TASK_ARM=arm_reach:0.1:1:off:2 TASKS_HAND=hand_pose:0.05:1:off:2
  else
    FLOAT=cuda DOUBLE=cuda_double REAL_FEW=4 REAL=13 SOAK_ARM=1000 SOAK_HAND=100
    WORLDS=1,16,132,528,2112,8192,16384 MANY_WORLDS=1024,8192,16896,33792,67584 CPU_WORLDS=1,528 ITEMS=1,16,128,512 SESSIONS=1,16 STARTS=4,64 STEPS=256 ROUNDS=3
    MOST=16384 WINS=20
    SHAPE_WORLDS=1,528,8192 THREADS="8 32"
    # task:seconds:seed:cfd:iterations
    TASK_ARM=arm_reach:3:1:off:16
    TASKS_HAND="hand_pose:1:1:off:16"
  fi
}

# Programs that the parts run.
programs() {
  echo sinewd sinewctl sinew-plant sinew-import
  [ "${wanted[*]}" = daemon ] || echo sinew-bench cuda_test_agree cuda_test_soak
}

build() {
  if [ -d "$here/bin" ] || [ -n "$BUILD" ]; then return; fi
  local libraries="sinew_cuda cuda_lose_device" double=sinew_cuda_double preset=cuda
  [ -z "$REHEARSE" ] || { libraries=sinew_emulator double=sinew_emulator_double preset=release; }
  [ "${wanted[*]}" = daemon ] || libraries="$libraries $double"
  # shellcheck disable=SC2046,SC2086  # the lists are split on purpose
  (cd "$SOURCE" && cmake --preset $preset >/dev/null &&
    cmake --build build/$preset --target $(programs) $libraries -- --quiet)
}

# One document of JSON on standard input becomes a line of a file, and is shown.
keep() { tr -d '\n\t' | grep . | tee -a "$OUT/$1.jsonl"; }
bench() { "$BIN/sinew-bench" "$@"; }
# measure FILE MODE ARGUMENT...: sinew-bench, whose JSON becomes a line of a file. A failure is noted, and the part goes
# on: whole tells at its end.
FAILED=0
measure() {
  local file=$1
  shift
  bench "$@" --json | keep "$file" || { echo "failed: sinew-bench $*" >&2; FAILED=$((FAILED + 1)); }
}
whole() { [ "$FAILED" = 0 ] || { echo "$FAILED measurements failed" >&2; return 1; }; }
# The numbers of threads that the cpu is measured with: one, and all.
threads() { if [ "$(nproc)" -gt 1 ]; then echo "1 $(nproc)"; else echo 1; fi; }
have_myosuite() { [ -r "$HAND" ] || { echo "left out: no models of MyoSuite in $MYOSUITE"; return 1; }; }

# agree REAL THREADS BACKEND...: all of them are checked, with so many threads a world (0: as they think), also after one
# that fails.
agree() {
  local real=$1 threads=$2 backend failed=
  shift 2
  for backend in "$@"; do
    "$BIN/cuda_test_agree" "$backend" "$LIB" "$real" "$OUT/agree.jsonl" "$threads" || failed="$failed $backend"
  done
  [ -z "$failed" ] || { echo "not as the cpu:$failed" >&2; return 1; }
}
part_agree_text="every kind of element, rollouts, gradients and refinements against the cpu, in float and in double, few models"
part_agree() {
  local status=0
  agree "$REAL_FEW" 0 "$FLOAT" "$DOUBLE" || status=1
  agree "$REAL_FEW" 8 "$FLOAT" || status=1  # a part of a warp for a world of a rollout
  agree "$REAL_FEW" 1 "$FLOAT" || status=1  # a thread
  return $status
}
part_models_text="the checks of agree on all models of the list"
part_models() { agree "$REAL" 0 "$FLOAT" "$DOUBLE"; }

# Short runs that launch every kernel once or twice: of the arm, and one step of the hand.
short_runs() {
  local arm=$SOURCE/physics/models/arm_reach.xml
  "$@" "$BIN/sinew-bench" step --model "$arm" --steps 4 --rounds 1 --worlds 2 --backend "$FLOAT" "${WHERE[@]}"
  "$@" "$BIN/sinew-bench" gradient --model "$arm" --steps 4 --rounds 1 --fd-samples 1 --items 2 --backend "$FLOAT" "${WHERE[@]}"
  "$@" "$BIN/sinew-bench" refine --task arm_reach --steps 8 --iterations 2 --rounds 1 --sessions 1,2 --starts 2 \
    --backend "$FLOAT" "${WHERE[@]}" "${TASK[@]}"
  "$@" "$BIN/sinew-bench" step --model "$arm" --steps 4 --rounds 1 --worlds 40 --block-threads 1 --backend "$FLOAT" "${WHERE[@]}"
  "$@" "$BIN/sinew-bench" step --model "$arm" --steps 4 --rounds 1 --worlds 2201 --backend "$FLOAT" "${WHERE[@]}"
  have_myosuite || return 0
  "$@" "$BIN/sinew-bench" step --model "$HAND" --steps 1 --rounds 1 --worlds 1 --backend "$FLOAT" "${WHERE[@]}"
}
# sanitize TOOL...: the short runs under tools of compute-sanitizer.
sanitize() {
  local tool program
  if [ -n "$REHEARSE" ]; then short_runs env; return; fi
  program=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) ||
    { echo "compute-sanitizer is not installed" >&2; return 1; }
  # Once without a tool, which leaves the models in the cache: importing one from memory fails under a tool.
  short_runs env >/dev/null
  for tool in "$@"; do
    echo "--- $tool"
    short_runs "$program" --tool "$tool" --error-exitcode 9
    printf '{"check":"sanitize","tool":"%s","holds":true}\n' "$tool" >>"$OUT/sanitize.jsonl"
  done
}
part_memory_text="compute-sanitizer's memcheck: arm_reach, one step of MyoHand (initcheck would see nothing: all memory is zeroed)"
part_memory() { sanitize memcheck; }
part_sync_text="compute-sanitizer's synccheck and racecheck on what memory runs"
part_sync() { sanitize synccheck racecheck; }

part_soak_text="1,000 refinements of arm_reach and 100 of MyoHand: memory stays, costs are the same to the bit"
part_soak() {
  "$BIN/cuda_test_soak" "$FLOAT" "$LIB" arm_reach "$SOAK_ARM" "$OUT/soak.jsonl"
  have_myosuite || return 0
  "$BIN/cuda_test_soak" "$FLOAT" "$LIB" hand_pose "$SOAK_HAND" "$OUT/soak.jsonl"
}

part_tasks_text="closed loops with Adam on the device and on the cpu: what the cpu solves is solved"
part_tasks() {
  local backend name seconds seed cfd iterations tasks=$TASK_ARM
  have_myosuite && tasks="$tasks $TASKS_HAND"
  rm -f "$OUT/tasks.jsonl"
  for task in $tasks; do
    IFS=: read -r name seconds seed cfd iterations <<<"$task"
    for backend in cpu $FLOAT; do
      bench mpc --task "$name" --planner adam --set "adam_iterations=$iterations" --cfd "$cfd" --seconds "$seconds" --seed "$seed" --json \
        --backend "$backend" "${WHERE[@]}" "${TASK[@]}" >>"$OUT/tasks.jsonl"
    done
  done
  python3 - "$OUT/tasks.jsonl" <<'PY'
import json, sys
runs = [json.loads(line) for line in open(sys.argv[1])]
for cpu, device in zip(runs[::2], runs[1::2]):
    assert cpu["task"] == device["task"] and cpu["backend"] == "cpu" != device["backend"], (cpu["task"], device["task"])
    for x in cpu, device:
        print("%s on %s: %s, cost %.4g at the end, %.2f ms a plan" % (
            x["task"], x["backend"], "solved" if x["success"] else "not solved", x["cost_end"], x["ms_per_plan"]))
    assert device["success"] >= cpu["success"] and not device["diverged"], "solved on the cpu alone"
PY
}

part_daemon_text="sinewd on the device: closed loops by Adam and by sampling at once, then the device is lost under them; device_loss: exit; auto"
part_daemon() {
  local lose=(--lose "${LIB%/*}/lose_device.so")
  [ -z "$REHEARSE" ] || lose=()
  "$CHECK_DAEMON" "$BIN" "$LIB" "$SOURCE" "$FLOAT" "$OUT/daemon.jsonl" "${lose[@]}"
}

part_wins_text="from how many at once the device is faster than the cpu on one thread and on all: steps, gradients, refinements"
part_wins() {
  local model
  for model in "$SOURCE/physics/models/arm_reach.xml" "$HAND" "$ARM"; do
    [ -r "$model" ] || { have_myosuite || continue; }
    measure wins device --model "$model" --steps 16 --most "$MOST" --seconds "$WINS" --backend "$FLOAT" "${WHERE[@]}"
  done
  whole
}

part_step_text="steps per second of 1 to 16384 worlds, of 1024 to 67584 with a thread each, the cpu's on 1 and on all threads and MuJoCo's on one beside them, and what the stages take"
part_step() {
  local model threads
  for model in "$SOURCE/physics/models/arm_reach.xml" "$HAND" "$ARM"; do
    [ -r "$model" ] || { have_myosuite || continue; }
    measure step step --model "$model" --steps $((STEPS / 4)) --rounds 3 --worlds "$WORLDS" --profile --backend "$FLOAT" "${WHERE[@]}"
    measure thread step --model "$model" --steps $((STEPS / 16)) --rounds 3 --worlds "$MANY_WORLDS" --block-threads 1 --backend "$FLOAT" "${WHERE[@]}"
    for threads in $(threads); do
      measure step step --model "$model" --steps $((STEPS / 4)) --rounds 2 --worlds "$CPU_WORLDS" --threads "$threads"
    done
  done
  whole
}

part_gradient_text="value and gradient of 256 steps of MyoHand, 1 to 512 at once, by both methods; the cpu's on 1 and on all threads"
part_gradient() {
  local model=$HAND threads
  have_myosuite || model=$SOURCE/physics/models/arm_reach.xml
  measure gradient gradient --model "$model" --steps "$STEPS" --rounds "$ROUNDS" --items "$ITEMS" --profile --backend "$FLOAT" "${WHERE[@]}"
  for threads in $(threads); do
    measure gradient gradient --model "$model" --steps "$STEPS" --rounds "$ROUNDS" --items 1,16 --threads "$threads"
  done
  whole
}

# What a shape gives is one line, or none where a block of it does not run.
part_shapes_text="steps per second by threads of a world, and by registers where a pack has libraries with others"
part_shapes() {
  local model=$HAND library threads
  have_myosuite || model=$SOURCE/physics/models/arm_reach.xml
  for library in "$LIB" "$LIB"-r*; do
    [ -d "$library" ] || continue
    for threads in $THREADS; do
      bench step --model "$model" --steps $((STEPS / 16)) --rounds 1 --worlds "$SHAPE_WORLDS" --block-threads "$threads" \
        --json --backend "$FLOAT" --backend-folder "$library" |
        sed "1s/^{/{\"library\":\"${library##*/}\",\"block_threads\":$threads,/" | keep shapes ||
        echo "left out: ${library##*/}, $threads threads"
    done
  done
  [ -s "$OUT/shapes.jsonl" ]
}

part_kernels_text="what bounds FORWARD, SWEEP and ROLLOUT, by ncu, where it is installed"
part_kernels() {
  local ncu model=$HAND worlds
  ncu=$(command -v ncu || ls /usr/local/cuda/bin/ncu 2>/dev/null) || { echo "left out: ncu is not installed"; return 0; }
  have_myosuite || model=$SOURCE/physics/models/arm_reach.xml
  # under_ncu NAME KERNELS COUNT MODE ARGUMENT...
  under_ncu() {
    local name=$1 kernels=$2 count=$3
    shift 3
    # Once without ncu, which leaves the model in the cache: importing one from memory fails under it.
    "$BIN/sinew-bench" "$@" --backend "$FLOAT" "${WHERE[@]}" >/dev/null ||
      { echo "failed: $name" >&2; FAILED=$((FAILED + 1)); return 0; }
    # The first launch of each kernel is on nothing, when the device is opened.
    "$ncu" --clock-control none --set full --import-source on -k "regex:$kernels" -s "$count" -c "$count" --force-overwrite -o "$OUT/$name" \
      "$BIN/sinew-bench" "$@" --backend "$FLOAT" "${WHERE[@]}" || { echo "failed: ncu of $name" >&2; FAILED=$((FAILED + 1)); return 0; }
    "$ncu" --import "$OUT/$name.ncu-rep" --page raw --csv >"$OUT/$name.csv" || FAILED=$((FAILED + 1))
  }
  for worlds in 1 2112; do
    under_ncu rollout-$worlds rollout 1 step --model "$model" --steps 4 --rounds 1 --worlds $worlds
  done
  under_ncu gradient "forward|sweep" 2 gradient --model "$model" --steps 8 --rounds 1 --fd-samples 1 --items 1
  whole
}

part_refine_text="an iteration of 256 steps for 1 to 64 sessions and starts, on the device and on the cpu; a planner's plan"
part_refine() {
  local task
  for task in arm_reach hand_pose; do
    [ $task = arm_reach ] || have_myosuite || continue
    measure refine refine --task $task --steps "$STEPS" --rounds "$ROUNDS" --sessions "$SESSIONS" --starts "$STARTS" \
      --backend "$FLOAT" "${WHERE[@]}" "${TASK[@]}"
    measure refine refine --task $task --steps "$STEPS" --rounds 2 --sessions 1,4 --starts 4 "${TASK[@]}"
  done
  whole
}

part_trace_text="a timeline by nsys, where it is installed"
part_trace() {
  local nsys
  nsys=$(command -v nsys) || { echo "left out: nsys is not installed"; return 0; }
  (cd "$OUT" && "$nsys" profile --force-overwrite true --output refine --stats true "$BIN/sinew-bench" refine --task arm_reach \
    --steps "$STEPS" --rounds 1 --sessions 1 --starts 4 --backend "$FLOAT" "${WHERE[@]}" "${TASK[@]}")
}

# Files that a model needs: what it includes, meshes and textures. Paths on standard output.
model_files() {
  python3 - "$@" <<'PY'
import os, re, sys
def read(path):
    try:
        return open(path, errors="ignore").read()
    except OSError:
        return ""
found = set()
for main in sys.argv[1:]:
    folder, pending, text, seen = os.path.dirname(main), [main], "", set()
    while pending:
        path = os.path.normpath(pending.pop())
        if path in seen or not os.path.isfile(path):
            continue
        seen.add(path)
        here = read(path)
        text += here
        for name in re.findall(r"<include[^>]*file=[\"']([^\"']+)", here):
            pending += [os.path.join(folder, name), os.path.join(os.path.dirname(path), name)]
    dirs = [folder] + [os.path.join(folder, d) for d in re.findall(r"(?:mesh|texture|asset)dir=[\"']([^\"']+)", text)]
    for name in re.findall(r"file=[\"']([^\"']+)", text):
        seen.update(os.path.normpath(p) for p in (os.path.join(d, name) for d in dirs) if os.path.isfile(p))
    found |= seen
print("\n".join(sorted(found)))
PY
}

# Libraries with other limits of registers, each in a folder of its own: sinew-r64. A rehearsal copies the one there is.
pack_registers() {
  local r build
  for r in $REGISTERS; do
    mkdir -p "$PACK/lib/sinew-r$r"
    build=$SOURCE/build/cuda-r$r
    if [ -n "$REHEARSE" ]; then
      cp "$LIB/libsinew_$FLOAT.so" "$PACK/lib/sinew-r$r/"
    else
      (cd "$SOURCE" && cmake --preset cuda -B "$build" -DSINEW_CUDA_REGISTERS="$r" >/dev/null && cmake --build "$build" --target sinew_cuda -- --quiet)
      cp "$build/lib/sinew/libsinew_cuda.so" "$PACK/lib/sinew-r$r/"
    fi
  done
}

# Everything into one folder: programs, libraries that a bare machine lacks (not CUDA's), tasks and models.
pack() {
  local program
  mkdir -p "$PACK"/{bin,lib/sinew,planner,physics,share/sinew} && cp "$here/device.sh" "$CHECK_DAEMON" "$PACK/"
  cp "$BIN/../share/sinew/sinew.desc" "$PACK/share/sinew/"
  for program in $(programs); do cp "$BIN/$program" "$PACK/bin/"; done
  cp "$LIB/libsinew_$FLOAT.so" "$PACK/lib/sinew/"
  [ -n "$REHEARSE" ] || cp "${LIB%/*}/lose_device.so" "$PACK/lib/"
  # shellcheck disable=SC2046  # programs are words
  (cd "$BIN" && ldd $(programs)) | awk '$3 ~ /^\// {print $3}' | sort -u |
    grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$PACK/lib/"
  cp -r "$SOURCE/planner/tasks" "$PACK/planner/" && cp -r "$SOURCE/physics/models" "$PACK/physics/"
  [ "${wanted[*]}" = daemon ] || pack_rest
  strip --strip-unneeded "$PACK"/bin/* "$PACK"/lib/*.so* "$PACK"/lib/sinew*/*.so
  du -sh "$PACK"
}

# What the part daemon does without.
pack_rest() {
  cp "$LIB/libsinew_$DOUBLE.so" "$PACK/lib/sinew/"
  pack_registers
  have_myosuite || return 0
  model_files "$HAND" "$ARM" "${HAND%/*}/myohand_pose.xml" | while read -r file; do
    mkdir -p "$PACK/myosuite/$(dirname "${file#"$MYOSUITE"/}")" && cp "$file" "$PACK/myosuite/${file#"$MYOSUITE"/}"
  done
}

# cuBLAS, which gradients by products open: that of a Toolkit, or of a Python package, where the linker knows none.
find_cuda() {
  local folder
  ! python3 -c 'import ctypes; ctypes.CDLL("libcublas.so.13")' 2>/dev/null || return 0
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib \
    $(python3 -c 'import glob, sys; print(*(f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib")))'); do
    [ -e "$folder/libcublas.so.13" ] || continue
    export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    echo "libcublas.so.13 is that of $folder"
    return 0
  done
  echo "no libcublas.so.13 was found: gradients by products will say so"
}

need_device() {
  [ -z "$REHEARSE" ] || return 0
  if ! { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; }; then
    echo "skipped: no CUDA device"
    exit 77
  fi
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv | tee "$OUT/machine.csv"
}

list_parts() {
  local part name text
  for part in $PARTS more $MORE; do
    name=${part%:*} text=part_${part%:*}_text
    [ "$name" != more ] || { echo "more:"; continue; }
    printf '  %-9s %3d s  %s\n' "$name" "${part#*:}" "${!text}"
  done
}

# The limit of a part [s]; a rehearsal may be on a busy machine.
limit_of() {
  local part
  [ -z "$REHEARSE" ] || { echo 590; return; }
  for part in $PARTS $MORE; do
    [ "${part%:*}" != "$1" ] || echo "${part#*:}"
  done
}

# run_part NAME LIMIT: in a shell of its own, which keeps `set -e` in force inside the part and can be timed out. A line
# of parts.jsonl says how it went.
run_part() {
  local text=part_$1_text started=$SECONDS status=0 seconds
  printf '\n=== %s: %s\n' "$1" "${!text}"
  timeout -k 10 "$2" bash -c "set -euo pipefail; PART_ONLY=1; . '${BASH_SOURCE[0]}'; find_places; choose; part_$1" || status=$?
  seconds=$((SECONDS - started))
  printf '{"part":"%s","seconds":%d,"limit":%d,"status":%d}\n' "$1" "$seconds" "$2" $status >>"$OUT/parts.jsonl"
  if [ $status = 0 ]; then
    printf '=== %s passed in %d s\n' "$1" $seconds
  else
    printf '=== %s FAILED after %d s%s\n' "$1" $seconds "$([ $status != 124 ] || echo ", its limit")"
  fi
  return $status
}

main() {
  local part passed=0 failed=0 wanted=()
  while [ $# -gt 0 ]; do
    case $1 in
      --list) list_parts; return ;;
      --help | -h) sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; list_parts; return ;;
      --out) OUT=$(mkdir -p "$2" && cd "$2" && pwd); shift ;;
      --build) BUILD=$(cd "$2" && pwd); shift ;;
      --pack) PACK=$2; shift ;;
      --rehearse) REHEARSE=1 ;;
      -*) echo "tests/device.sh: unknown option $1; see --help" >&2; return 2 ;;
      bench) wanted+=(step gradient refine) ;;
      sanitize) wanted+=(memory sync) ;;
      more) wanted+=(soak models trace) ;;
      *) declare -F "part_$1" >/dev/null || { echo "tests/device.sh: no part '$1'; see --list" >&2; return 2; }
        wanted+=("$1") ;;
    esac
    shift
  done
  find_places
  choose
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  [ -n "$PACK" ] || need_device
  build
  if [ -n "$PACK" ]; then pack; return; fi
  [ -n "$REHEARSE" ] || find_cuda
  # shellcheck disable=SC2206  # the list is split on purpose
  [ ${#wanted[@]} -gt 0 ] || wanted=($PARTS)
  export OUT REHEARSE BUILD REGISTERS
  for part in "${wanted[@]}"; do
    if run_part "${part%:*}" "$(limit_of "${part%:*}")"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  done
  tar -C "$(dirname "$OUT")" -cf "$OUT.tar" "$(basename "$OUT")"
  printf '\n%d passed, %d failed; results in %s and %s.tar\n' "$passed" "$failed" "$OUT" "$OUT"
  [ "$failed" = 0 ]
}

[ -n "${PART_ONLY:-}" ] || main "$@"

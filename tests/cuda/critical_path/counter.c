#include "tests/cuda/critical_path/counter.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 1 << 20, RANGES = 4096, SECTOR = 32, SECTORS = 1 << 18, PLACES = 1 << 14 };

typedef struct Range {
  uintptr_t from, to;
  CounterPlace place;
} Range;

typedef struct Lane {
  SnLane lane;
  ucontext_t context;
  long count, before;  // accesses in this phase, and those of them before the latest shuffle
  unsigned shuffles;
  int at[PLACES];     // accesses since the latest shuffle by where they stand in the text
  bool done, passes;  // the lane has ended; it waits at a shuffle, not at a barrier
} Lane;

static Range range[RANGES];  // by their beginnings
static int nrange;
static Lane lanes[COUNTER_LANES];
static Lane *running;  // NULL: nothing is counted
static ucontext_t caller;
static char *stacks;
static SnLaneShared shared;
static SnPassed passed[2][COUNTER_LANES];  // by odd and even shuffles: a lane may be one ahead of another
static const char *file;
static int line;
static CounterBody *body;
static void *argument;
static CounterPhase *phase;
static int nphase, capacity, unmarked;
static long touched[COUNTER_PLACES];
static uintptr_t text[PLACES];   // where an access stands, a table by addresses; 0: free
static int ntext;                // of them are taken
static int used[PLACES], nused;  // those of the text since the latest shuffle
static bool is_used[PLACES];
static uintptr_t sectors[SECTORS];  // those that were touched, a table by their numbers; 0: free

// ---- accesses

static CounterPlace place_of(uintptr_t address) {
  int low = 0, high = nrange;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (range[middle].from <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && address < range[low - 1].to ? range[low - 1].place : COUNTER_STACK;
}

static void touch(uintptr_t sector, CounterPlace place) {
  size_t k = (sector * 0x9e3779b97f4a7c15u) >> 46;
  while (sectors[k] && sectors[k] != sector) k = (k + 1) % SECTORS;
  if (sectors[k]) return;
  sectors[k] = sector;
  touched[place] += SECTOR;
}

static void count_text(uintptr_t from) {
  size_t k = (from * 0x9e3779b97f4a7c15u) >> 50;
  while (text[k] && text[k] != from) k = (k + 1) % PLACES;
  if (!text[k] && ++ntext > PLACES / 2) {
    fprintf(stderr, "more than %d places of the text have accesses: PLACES is too small\n", PLACES / 2);
    exit(1);
  }
  text[k] = from;
  running->at[k]++;
  if (is_used[k]) return;
  is_used[k] = true;
  used[nused++] = (int)k;
}

static void count(const void *p, size_t size, const void *from) {
  if (!running) return;
  count_text((uintptr_t)from);
  const uintptr_t address = (uintptr_t)p;
  const CounterPlace place = place_of(address);
  running->count++;
  touch(address / SECTOR, place);
  if ((address + size - 1) / SECTOR != address / SECTOR) touch((address + size - 1) / SECTOR, place);
}

// What the compiler calls; their names and types are its own.
void __tsan_init(void);
void __tsan_func_entry(void *from);
void __tsan_func_exit(void);
void __tsan_read_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size);
void __tsan_init(void) {}
void __tsan_func_entry(void *from) { (void)from; }
void __tsan_func_exit(void) {}
static void count_range(const char *p, size_t size, const void *from) {
  for (size_t at = 0; at < size; at += 8) count(p + at, size - at < 8 ? size - at : 8, from);
}
void __tsan_read_range(void *p, size_t size) { count_range(p, size, __builtin_return_address(0)); }
void __tsan_write_range(void *p, size_t size) { count_range(p, size, __builtin_return_address(0)); }
#define ACCESS(way, size)           \
  void __tsan_##way##size(void *p); \
  void __tsan_##way##size(void *p) { count(p, size, __builtin_return_address(0)); }
#define ACCESSES(way) ACCESS(way, 1) ACCESS(way, 2) ACCESS(way, 4) ACCESS(way, 8) ACCESS(way, 16)
ACCESSES(read)
ACCESSES(write)
ACCESSES(unaligned_read)
ACCESSES(unaligned_write)

void counter_range(CounterPlace place, const void *memory, size_t bytes) {
  if (bytes == 0) return;
  if (nrange == RANGES) abort();
  int k = nrange++;
  for (; k > 0 && range[k - 1].from > (uintptr_t)memory; k--) range[k] = range[k - 1];
  range[k] = (Range){(uintptr_t)memory, (uintptr_t)memory + bytes, place};
}

void counter_lanes(void) {
  counter_range(COUNTER_FIELDS, lanes, sizeof lanes);
  counter_range(COUNTER_FIELDS, &shared, sizeof shared);
}

// ---- lanes

static void yield(void) {
  Lane *lane = running;
  running = NULL;
  swapcontext(&lane->context, &caller);
}

// Takes the place of the weak one in physics/base/lane.c.
void sn_lane_barrier(SnLane *lane, const char *at, int number) {
  (void)lane;
  if (!running) return;
  file = at;
  line = number;
  yield();
}

// Takes the place of the weak one there, too.
SnPassed sn_lane_pass(SnLane *lane, SnPassed mine, int from) {
  Lane *me = running;
  if (!me) return mine;
  SnPassed *slot = passed[me->shuffles++ % 2];
  slot[lane->id] = mine;
  me->passes = true;
  yield();
  return slot[from];
}

static void enter(void) {
  body(&running->lane, argument);
  running->done = true;
  yield();
}

static void start(int id, int n) {
  Lane *lane = &lanes[id];
  static SnMarks marks;
  *lane = (Lane){.lane = {.id = id, .n = n, .shared = &shared, .marks = &marks}};
  getcontext(&lane->context);
  lane->context.uc_stack.ss_sp = stacks + (size_t)id * STACK;
  lane->context.uc_stack.ss_size = STACK;
  makecontext(&lane->context, enter, 0);
}

// A stage says that it is done: what was counted since the last one is its. The linker puts this in place of
// sn_mark_set.
void __wrap_sn_mark_set(SnLane *lane, SnMark mark);
void __wrap_sn_mark_set(SnLane *lane, SnMark mark) {
  if (lane->id != 0) return;
  for (; unmarked < nphase; unmarked++) phase[unmarked].mark = (int)mark;
}

// Adds what the busiest lane did since the latest shuffle to the path.
static void end_part(int n, CounterPhase *p) {
  long most = 0;
  for (int i = 0; i < n; i++) {
    const long part = lanes[i].count - lanes[i].before;
    most = part > most ? part : most;
    lanes[i].before = lanes[i].count;
  }
  p->most += most;
  for (int k = 0; k < nused; k++) {
    int issued = 0;
    for (int i = 0; i < n; i++) {
      issued = lanes[i].at[used[k]] > issued ? lanes[i].at[used[k]] : issued;
      lanes[i].at[used[k]] = 0;
    }
    p->issued += issued;
    is_used[used[k]] = false;
  }
  nused = 0;
}

static void end_phase(int n, CounterPhase p) {
  long least = lanes[0].count, most = 0;
  end_part(n, &p);
  for (int i = 0; i < n; i++) {
    most = lanes[i].count > most ? lanes[i].count : most;
    least = lanes[i].count < least ? lanes[i].count : least;
    p.all += lanes[i].count;
  }
  // What all lanes do alike, to read sizes and pointers, makes no lane an active one.
  for (int i = 0; i < n; i++) p.active += lanes[i].count > least + 2 || most <= least + 2;
  for (int i = 0; i < n; i++) lanes[i].count = lanes[i].before = 0;
  if (nphase == capacity) phase = realloc(phase, (size_t)(capacity = 2 * capacity + 1024) * sizeof *phase);
  if (!phase) abort();
  phase[nphase++] = p;
}

// Lets each lane run up to its next barrier or shuffle, the same one for all. Returns how many have not ended; -1 where
// lanes came to different ones. *pass: it is a shuffle.
static int run_lanes(int n, bool *pass) {
  int left = 0, passes = 0, number = 0;
  const char *at = NULL;
  for (int i = 0; i < n; i++) {
    lanes[i].passes = false;
    running = &lanes[i];
    swapcontext(&caller, &lanes[i].context);
    left += !lanes[i].done;
    passes += lanes[i].passes;
    if (lanes[i].done || lanes[i].passes) continue;
    if (at && (at != file || number != line)) {
      fprintf(stderr, "lane %d is at %s:%d, another at %s:%d\n", i, file, line, at, number);
      return -1;
    }
    at = file;
    number = line;
  }
  *pass = passes != 0;
  if ((left == 0 || left == n) && (passes == 0 || passes == n)) return left;
  fprintf(stderr, "of %d lanes %d have ended, %d are at a shuffle, the others wait at %s:%d\n", n, n - left, passes,
          file ? file : "the beginning", line);
  return -1;
}

bool counter_run(int n, CounterBody *run, void *arg) {
  if (!stacks) stacks = malloc((size_t)COUNTER_LANES * STACK);
  if (!stacks) abort();
  body = run;
  argument = arg;
  nphase = unmarked = 0;
  memset(touched, 0, sizeof touched);
  memset(sectors, 0, sizeof sectors);
  for (int i = 0; i < n; i++) start(i, n);
  CounterPhase p = {.mark = SN_MARK_OTHER};
  for (int left = n; left > 0;) {
    bool pass;
    left = run_lanes(n, &pass);
    if (left < 0) return false;
    if (pass) {
      end_part(n, &p);
      p.shuffles++;
      continue;
    }
    p.file = left == 0 ? "end" : file;
    p.line = left == 0 ? 0 : line;
    end_phase(n, p);
    p = (CounterPhase){.mark = SN_MARK_OTHER};
  }
  return true;
}

const CounterPhase *counter_phases(int *n) {
  *n = nphase;
  return phase;
}

long counter_touched(CounterPlace place) { return touched[place]; }

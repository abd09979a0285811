#include "tests/support/lanes.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LANES = 64, TIMEOUT_SECONDS = 30 };

// Where a lane waits.
typedef struct Place {
  const char *file;
  int line;
} Place;

typedef struct Team {
  int n;
  atomic_int waiting;
  atomic_uint generation;  // number of barriers that were passed
  Place place[MAX_LANES];  // each lane's own
  SnLaneShared shared;
} Team;

typedef struct Start {
  SnLane lane;
  SnLaneBody *body;
  void *arg;
} Start;

#ifdef SN_LANES
// A barrier that is not passed in time means that some lane took another path.
static void report_stuck(const SnLane *lane, const char *file, int line) {
  fprintf(stderr, "lane %d of %d waits for ever at %s:%d: not all lanes reach this barrier\n", lane->id, lane->n, file,
          line);
  _exit(1);
}

// On a GPU all threads of a block must come to the same barrier, not to any. The last lane looks at all.
static void check_same(const Team *team, const SnLane *lane) {
  const Place *mine = team->place + lane->id;
  for (int i = 0; i < team->n; ++i) {
    const Place *other = team->place + i;
    if (other->line == mine->line && strcmp(other->file, mine->file) == 0) continue;
    fprintf(stderr, "lane %d of %d is at the barrier %s:%d, another at %s:%d\n", lane->id, lane->n, mine->file,
            mine->line, other->file, other->line);
    _exit(1);
  }
}

// Sleeps until the generation is another. The kernel wakes each lane once; those of a condition variable would queue
// for its mutex again.
static void wait_for(Team *team, const SnLane *lane, unsigned generation, const char *file, int line) {
  const struct timespec limit = {.tv_sec = TIMEOUT_SECONDS};
  while (atomic_load(&team->generation) == generation) {
    const long failed = syscall(SYS_futex, &team->generation, FUTEX_WAIT_PRIVATE, generation, &limit, NULL, 0);
    if (failed && errno == ETIMEDOUT && atomic_load(&team->generation) == generation) report_stuck(lane, file, line);
  }
}

void sn_lane_barrier(SnLane *lane, const char *file, int line) {
  Team *team = lane->team;
  if (lane->n == 1) return;
  const unsigned generation = atomic_load(&team->generation);
  team->place[lane->id] = (Place){file, line};
  if (atomic_fetch_add(&team->waiting, 1) + 1 < team->n) {
    wait_for(team, lane, generation, file, line);
    return;
  }
  check_same(team, lane);
  atomic_store(&team->waiting, 0);
  atomic_fetch_add(&team->generation, 1);
  syscall(SYS_futex, &team->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
#endif

#if defined(SN_LANES) && defined(__SANITIZE_THREAD__)
// Of ThreadSanitizer's library.
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

// Takes the place of the weak one in physics/base/lane.c. A shuffle of a device orders no memory, so ThreadSanitizer is
// not to know of the barriers that make one here: what a lane has written is not seen for it.
SnPassed sn_lane_pass(SnLane *lane, SnPassed mine, int from) {
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  lane->shared->passed[lane->id] = mine;
  sn_lane_barrier(lane, "a shuffle", 1);
  const SnPassed theirs = lane->shared->passed[from];
  sn_lane_barrier(lane, "a shuffle", 2);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  return theirs;
}
#endif

static void *run_lane(void *p) {
  Start *start = p;
  start->body(&start->lane, start->arg);
  return NULL;
}

void sn_lanes_run(int n, SnLaneBody *body, void *arg) {
#ifdef SN_LANES
  const int most = MAX_LANES;
#else
  const int most = 1;  // barriers do nothing
#endif
  if (n < 1 || n > most) {
    fprintf(stderr, "%d lanes: 1 to %d are possible in this build\n", n, most);
    abort();
  }
  Team team = {.n = n};
  pthread_t thread[MAX_LANES];
  Start start[MAX_LANES];
  for (int i = 0; i < n; ++i) {
    start[i] = (Start){.lane = {.id = i, .n = n, .shared = &team.shared, .team = &team}, .body = body, .arg = arg};
    if (pthread_create(&thread[i], NULL, run_lane, &start[i]) != 0) abort();
  }
  for (int i = 0; i < n; ++i) pthread_join(thread[i], NULL);
}

#include "tests/support/lanes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LANES = 64, TIMEOUT_SECONDS = 30 };

typedef struct Team {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  int n, waiting;
  unsigned generation;
  const char *file;  // of the barrier that the first lane waits at
  int line;
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

// On a GPU all threads of a block must come to the same barrier, not to any.
static void check_same(Team *team, const SnLane *lane, const char *file, int line) {
  if (team->waiting == 0) {
    team->file = file;
    team->line = line;
  }
  if (team->line == line && strcmp(team->file, file) == 0) return;
  fprintf(stderr, "lane %d of %d is at the barrier %s:%d, another at %s:%d\n", lane->id, lane->n, file, line,
          team->file, team->line);
  _exit(1);
}

void sn_lane_barrier(SnLane *lane, const char *file, int line) {
  Team *team = lane->team;
  if (lane->n == 1) return;
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += TIMEOUT_SECONDS;
  pthread_mutex_lock(&team->mutex);
  check_same(team, lane, file, line);
  const unsigned generation = team->generation;
  if (++team->waiting == team->n) {
    team->waiting = 0;
    ++team->generation;
    pthread_cond_broadcast(&team->cond);
  }
  while (generation == team->generation)
    if (pthread_cond_timedwait(&team->cond, &team->mutex, &limit) != 0 && generation == team->generation)
      report_stuck(lane, file, line);
  pthread_mutex_unlock(&team->mutex);
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
  pthread_mutex_init(&team.mutex, NULL);
  pthread_cond_init(&team.cond, NULL);
  for (int i = 0; i < n; ++i) {
    start[i] = (Start){.lane = {.id = i, .n = n, .shared = &team.shared, .team = &team}, .body = body, .arg = arg};
    if (pthread_create(&thread[i], NULL, run_lane, &start[i]) != 0) abort();
  }
  for (int i = 0; i < n; ++i) pthread_join(thread[i], NULL);
  pthread_cond_destroy(&team.cond);
  pthread_mutex_destroy(&team.mutex);
}

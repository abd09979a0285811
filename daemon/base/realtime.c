#include "daemon/base/realtime.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static SnCode check_locking(SnError *err) {
  struct rlimit limit = {0};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  // With a limit the call may succeed now and make each allocation fail later.
  if (geteuid() != 0 && limit.rlim_cur != RLIM_INFINITY)
    return sn_fail(err, SN_ERR_LIMIT,
                   "lock_memory: this user may lock %llu bytes; it needs no limit (LimitMEMLOCK=infinity of the unit, "
                   "ulimit -l unlimited)",
                   (unsigned long long)limit.rlim_cur);
  return SN_OK;
}

SnCode sn_realtime_lock_memory(SnError *err) {
  const SnCode code = check_locking(err);
  if (code != SN_OK) return code;
  if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "lock_memory: memory cannot be locked: %s", strerror(errno));
}

// Adds "3" or "1-3" at *text to a set, and moves *text behind it.
static bool add_range(const char **text, cpu_set_t *set) {
  char *end;
  const unsigned long first = strtoul(*text, &end, 10);
  unsigned long last = first;
  if (end == *text || **text < '0' || **text > '9') return false;
  if (*end == '-') {
    *text = end + 1;
    last = strtoul(*text, &end, 10);
    if (end == *text || **text < '0' || **text > '9') return false;
  }
  if (first > last || last >= CPU_SETSIZE) return false;
  for (unsigned long i = first; i <= last; ++i) CPU_SET(i, set);
  *text = end;
  return true;
}

SnCode sn_realtime_processors(const char *list, SnError *err) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (!*list) return SN_OK;
  const char *p = list;
  bool good = add_range(&p, &set);
  while (good && *p == ',') {
    ++p;
    good = add_range(&p, &set);
  }
  if (!good || *p)
    return sn_fail(err, SN_ERR_ARGUMENT, "planner_processors is '%s'; allowed are numbers from 0 to %d, as 2,3 or 1-3",
                   list, CPU_SETSIZE - 1);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "planner_processors is '%s': this process can have none of them (%s)", list,
                 strerror(errno));
}

SnCode sn_realtime_priority(int priority, SnError *err) {
  if (priority == 0) return SN_OK;
  const struct sched_param param = {.sched_priority = priority};
  const int code = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
  if (code == 0) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT, "priority %d: %s; it needs LimitRTPRIO=%d of the unit (ulimit -r), or CAP_SYS_NICE",
                 priority, strerror(code), priority);
}

// What a thread that ends at once is told, and found.
typedef struct Trial {
  const char *processors;
  int priority;
  SnCode code;
  SnError *err;
} Trial;

static void *try_it(void *trial) {
  Trial *t = trial;
  t->code = sn_realtime_processors(t->processors, t->err);
  if (t->code == SN_OK) t->code = sn_realtime_priority(t->priority, t->err);
  return NULL;
}

SnCode sn_realtime_check(const char *processors, int priority, bool lock_memory, SnError *err) {
  Trial trial = {processors, priority, SN_OK, err};
  pthread_t thread;
  if (lock_memory && check_locking(err) != SN_OK) return SN_ERR_LIMIT;
  if (pthread_create(&thread, NULL, try_it, &trial) != 0) return sn_fail(err, SN_ERR_LIMIT, "cannot start a thread");
  pthread_join(thread, NULL);
  return trial.code;
}

int sn_realtime_count(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// The processes of a soak, and their pace.
//
//   soak_clients IPC TCP MODELS SEED SHARE PID
//
// Addresses of a sinewd, a folder of models to write into, the seed, how much of a processor clients and sinewd may
// take together, and sinewd's number. Reads lines: "rest" lets all clients come to rest and prints their counts as
// JSON, "go" sends them on, "end" ends them. Status 1 when a client has ended by itself, or does not come to rest.
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/daemon/soak/soak.h"
#include "tests/support/slow.h"

enum { ROLES = 12, REST_SECONDS = SN_SLOW ? 300 : 90 };

static const struct {
  const char *name;
  void (*play)(Soak *s);
  int number;
} roles[ROLES] = {{"controller", soak_controller, 0},
                  {"controller", soak_controller, 1},
                  {"tuner", soak_tuner, 0},
                  {"streamer", soak_streamer, 0},
                  {"watcher", soak_watcher, 0},
                  {"visitor", soak_visitor, 0},
                  {"visitor", soak_visitor, 1},
                  {"loader", soak_loader, 0},
                  {"hostile", soak_hostile, 0},
                  {"hostile", soak_hostile, 1},
                  {"slow", soak_slow, 0},
                  {"dying", soak_dying, 0}};

static SoakShared *shared;
static pid_t child[ROLES], daemon_pid;

// ---- numbers, time ----

// xorshift64*.
static uint64_t next_random(Soak *s) {
  s->random ^= s->random >> 12;
  s->random ^= s->random << 25;
  s->random ^= s->random >> 27;
  return s->random * 2685821657736338717ull;
}

double soak_part(Soak *s) { return (double)(next_random(s) >> 11) * 0x1p-53; }
unsigned soak_below(Soak *s, unsigned below) { return (unsigned)(soak_part(s) * below); }

void soak_sleep(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
  nanosleep(&t, NULL);
}

// Sleeps in pieces, so that the end of the soak and a rest are not waited for.
static void pause_for(const SoakShared *all, double seconds) {
  for (double until = sn_clock_now() + seconds, left; (left = until - sn_clock_now()) > 0;) {
    if (atomic_load(&all->stop) || atomic_load(&all->rest)) return;
    soak_sleep(fmin(left, 0.1));
  }
}

bool soak_goes_on(Soak *s, double mean) {
  pause_for(s->shared, -log(1 - soak_part(s)) * mean * atomic_load(&s->shared->stretch));
  if (atomic_load(&s->shared->rest)) {
    atomic_fetch_add(&s->shared->resting, 1);
    while (atomic_load(&s->shared->rest) && !atomic_load(&s->shared->stop)) soak_sleep(0.01);
    atomic_fetch_sub(&s->shared->resting, 1);
  }
  return !atomic_load(&s->shared->stop);
}

// ---- pace ----

// Processor time of a process [s]; 0 when it is gone.
static double processor_time(pid_t pid) {
  char path[64], text[1024] = "";
  unsigned long user = 0, kernel = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  const char *end = fread(text, 1, sizeof text - 1, f) > 0 ? strrchr(text, ')') : NULL;
  fclose(f);
  if (!end || sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2) return 0;
  return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static double all_processor_time(void) {
  double sum = processor_time(daemon_pid);
  for (int i = 0; i < ROLES; i++) sum += processor_time(child[i]);
  return sum;
}

// Once a second: longer pauses where more was taken than is allowed, shorter ones where less was.
static void keep_pace(double share) {
  static double before, when;
  const double now = sn_clock_now();
  if (now - when < 1 || atomic_load(&shared->rest)) return;
  const double taken = all_processor_time();
  if (when > 0 && now - when < 5) {
    const double part = (taken - before) / (now - when);
    const double by = fmin(1.3, fmax(0.8, part / share));
    atomic_store(&shared->stretch, fmin(100, fmax(0.01, atomic_load(&shared->stretch) * by)));
  }
  before = taken;
  when = now;
}

// ---- the processes ----

static bool children_live(void) {
  int status;
  const pid_t pid = waitpid(-1, &status, WNOHANG);
  if (pid <= 0) return true;
  for (int i = 0; i < ROLES; i++)
    if (child[i] == pid)
      printf("{\"failed\": \"%s %d has ended by itself, with status %#x\"}\n", roles[i].name, roles[i].number, status);
  return false;
}

static void start(int i, Soak base, uint64_t seed) {
  child[i] = fork();
  if (child[i] != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  base.number = roles[i].number;
  base.random = (seed + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)(i + 1) * 0xbf58476d1ce4e5b9ull;
  roles[i].play(&base);
  _exit(0);
}

static void print_counts(void) {
#define PRINT(name) printf("\"" #name "\": %ld, ", atomic_load(&shared->counts.name));
  printf("{");
  SOAK_COUNTS(PRINT)
  printf("\"stretch\": %.4g, \"processor\": %.2f, \"first\": \"%s\"}\n", atomic_load(&shared->stretch),
         all_processor_time(), atomic_load(&shared->told) ? shared->first : "");
#undef PRINT
}

static bool come_to_rest(void) {
  atomic_store(&shared->rest, true);
  for (double until = sn_clock_now() + REST_SECONDS; atomic_load(&shared->resting) < ROLES; soak_sleep(0.01)) {
    if (!children_live()) return false;
    if (sn_clock_now() < until) continue;
    printf("{\"failed\": \"%d of %d clients came to rest\"}\n", atomic_load(&shared->resting), ROLES);
    return false;
  }
  print_counts();
  return true;
}

static bool serve(double share) {
  char line[64];
  struct pollfd in = {STDIN_FILENO, POLLIN, 0};
  for (;;) {
    if (!children_live()) return false;
    keep_pace(share);
    if (poll(&in, 1, 200) <= 0) continue;
    if (!fgets(line, sizeof line, stdin) || !strcmp(line, "end\n")) return true;
    if (!strcmp(line, "go\n")) atomic_store(&shared->rest, false);
    if (!strcmp(line, "rest\n") && !come_to_rest()) return false;
  }
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  setvbuf(stdin, NULL, _IONBF, 0);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  atomic_store(&shared->stretch, 1);
  char telemetry[200], records[200];
  snprintf(telemetry, sizeof telemetry, "%s.telemetry", argv[1]);
  snprintf(records, sizeof records, "%s.records", argv[1]);
  const Soak base = {.shared = shared,
                     .counts = &shared->counts,
                     .ipc = argv[1],
                     .tcp = argv[2],
                     .telemetry = telemetry,
                     .records = records,
                     .models = argv[3]};
  daemon_pid = atoi(argv[6]);
  for (int i = 0; i < ROLES; i++) start(i, base, strtoull(argv[4], NULL, 10));
  bool good = serve(strtod(argv[5], NULL));
  atomic_store(&shared->stop, true);
  for (int i = 0; i < ROLES; i++) {
    int status = 0;
    if (!good) kill(child[i], SIGKILL);
    if (waitpid(child[i], &status, 0) == child[i] && status != 0) good = false;
  }
  if (good) print_counts();
  return good ? 0 : 1;
}

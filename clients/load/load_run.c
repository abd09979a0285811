// A stage of load. Requests go out when the clock says so, answered or not, and an answer's latency counts from then:
// what a slow answer delays is not left out (coordinated omission; G. Tene, "How NOT to Measure Latency").
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clients/load/load.h"
#include "physics/base/clock.h"

// [s]: before requests of a stage are counted, for answers behind its last deadline, and of the measurement of what can
// be planned.
static const double SETTLING = 0.5, LAST_ANSWERS = 1, MEASURING = 2;

// Sends what a client asks for: a controller a plan from its initial state, a watcher statistics of the daemon.
static bool run_send(LoadClient *c, double stamp, int iterations, double deadline, uint64_t *id, SinewError *err) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  Sinew__V1__PlanRequest plan = SINEW__V1__PLAN_REQUEST__INIT;
  Sinew__V1__HealthRequest health = SINEW__V1__HEALTH_REQUEST__INIT;
  if (!c->opened) {
    request.body_case = SINEW__V1__REQUEST__BODY_HEALTH;
    request.health = &health;
    return sn_wire_send(c->client, &request, id, err) == SINEW_OK;
  }
  Sinew__V1__State *state = c->opened->open->initial;
  state->time = stamp;
  plan.session = c->opened->open->session;
  plan.state = state;
  plan.deadline = deadline;
  if (iterations > 0) {
    plan.has_iterations_case = SINEW__V1__PLAN_REQUEST__HAS_ITERATIONS_ITERATIONS;
    plan.iterations = (uint32_t)iterations;
  }
  request.body_case = SINEW__V1__REQUEST__BODY_PLAN;
  request.plan = &plan;
  return sn_wire_send(c->client, &request, id, err) == SINEW_OK;
}

static LoadOutcome run_outcome(const Sinew__V1__Reply *reply) {
  if (reply->body_case == SINEW__V1__REPLY__BODY_HEALTH) return LOAD_WATCHED;
  if (reply->body_case != SINEW__V1__REPLY__BODY_PLAN) return LOAD_REFUSED;
  switch (reply->plan->status) {
    case SINEW__V1__PLAN__STATUS__OK:
      return LOAD_PLAN;
    case SINEW__V1__PLAN__STATUS__WARM_START:
      return LOAD_WARM;
    case SINEW__V1__PLAN__STATUS__REPLACED:
      return LOAD_REPLACED;
    default:
      return LOAD_REFUSED;
  }
}

// Takes the answers of a client that are there.
static bool run_receive(LoadClient *c, LoadStage *stage, SinewError *err) {
  Sinew__V1__Reply *reply;
  SinewStatus status;
  while ((status = sn_wire_receive(c->client, 0, &reply, err)) == SINEW_OK) {
    const double now = sn_clock_now();
    int i = c->latest;
    while (i >= 0 && stage->request[i].id != reply->id) i = stage->request[i].previous;
    if (i >= 0) {
      LoadRequest *r = &stage->request[i];
      stage->nanswer += r->outcome == LOAD_LOST;
      r->latency = now - r->due;
      r->outcome = run_outcome(reply);
      if (r->outcome == LOAD_PLAN) r->iterations = (int)reply->plan->iterations;
    }
    sn_free_reply(reply);
  }
  return status == SINEW_ERR_TIMEOUT;
}

static bool run_keep(LoadStage *stage, LoadClient *clients, int client, uint64_t id, double due, SinewError *err) {
  if (stage->nrequest == stage->capacity) {
    const int capacity = stage->capacity ? 2 * stage->capacity : 4096;
    LoadRequest *more = realloc(stage->request, sizeof *more * (size_t)capacity);
    if (!more) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory"), false;
    stage->request = more;
    stage->capacity = capacity;
  }
  stage->request[stage->nrequest] = (LoadRequest){.due = due,
                                                  .sent = sn_clock_now(),
                                                  .latency = NAN,
                                                  .client = client,
                                                  .id = id,
                                                  .previous = clients[client].latest};
  clients[client].latest = stage->nrequest++;
  return true;
}

// Sends all that is due by now and before `end`. Returns false, and says why, on failure; *next gets the time of the
// next one.
static bool run_send_due(LoadClient *clients, const LoadOptions *o, LoadStage *stage, double begin, double end,
                         double *next, SinewError *err) {
  *next = INFINITY;
  for (int i = 0; i < o->clients; ++i) {
    LoadClient *c = &clients[i];
    while (c->next < end && c->next <= sn_clock_now()) {
      uint64_t id;
      const double due = c->next;
      c->next += c->period;
      if (!run_send(c, due, o->iterations, o->deadline, &id, err)) return false;
      if (due >= begin && !run_keep(stage, clients, i, id, due, err)) return false;
      // What libzmq takes in while it sends makes the descriptor readable no more.
      if (!run_receive(c, stage, err)) return false;
    }
    if (c->next < end) *next = fmin(*next, c->next);
  }
  return true;
}

// Fills ready[RUN_READY] with clients that may have an answer, waiting until `until` for the first; returns how many.
// One file stands for all of theirs: the system does not look at each of hundreds of them for each answer.
enum { RUN_READY = 64 };
static int run_wait(int all, double until, struct epoll_event *ready) {
  const double left = fmin(fmax(0, until - sn_clock_now()), 0.1);
  const struct timespec wait = {0, (long)(1e9 * left)};
  struct pollfd file = {all, POLLIN, 0};
  return ppoll(&file, 1, &wait, NULL) > 0 ? (int)fmax(0, epoll_wait(all, ready, RUN_READY, 0)) : 0;
}

// Returns the file of the first n clients, to be closed, or -1.
static int run_watch(const LoadClient *clients, int n, SinewError *err) {
  const int all = epoll_create1(EPOLL_CLOEXEC);
  bool good = all >= 0;
  for (int i = 0; good && i < n; ++i) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    good = epoll_ctl(all, EPOLL_CTL_ADD, sn_wire_descriptor(clients[i].client), &event) == 0;
  }
  if (good) return all;
  sn_wire_fail(err, SINEW_ERR_MEMORY, "cannot wait for answers: %s", strerror(errno));
  if (all >= 0) close(all);
  return -1;
}

// Processor time so far [s]: the daemon's by its metrics, NaN where it does not tell them, and our own.
static bool run_processors(SinewClient *client, double seconds[LOAD_PARTS], SinewError *err) {
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  Sinew__V1__MetricsRequest metrics = SINEW__V1__METRICS_REQUEST__INIT;
  Sinew__V1__Reply *reply;
  struct rusage own;
  request.body_case = SINEW__V1__REQUEST__BODY_METRICS;
  request.metrics = &metrics;
  if (sn_wire_ask(client, &request, false, &reply, err) != SINEW_OK) return false;
  static const char name[] = "\nsinew_cpu_seconds_total{threads=\"";
  const bool told = reply->body_case == SINEW__V1__REPLY__BODY_METRICS;
  seconds[LOAD_PLANNER] = seconds[LOAD_REST] = told ? 0 : NAN;
  for (const char *at = told ? strstr(reply->metrics->text, name) : NULL; at; at = strstr(at, name)) {
    at += sizeof name - 1;
    const char *value = strchr(at, ' ');
    seconds[strncmp(at, "planner", 7) ? LOAD_REST : LOAD_PLANNER] += value ? strtod(value, NULL) : NAN;
  }
  sn_free_reply(reply);
  getrusage(RUSAGE_SELF, &own);
  seconds[LOAD_OURS] = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
                       1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
  return true;
}

bool load_run(LoadClient *clients, const LoadOptions *o, LoadStage *stage, SinewError *err) {
  double before[LOAD_PARTS], after[LOAD_PARTS], next;
  struct epoll_event ready[RUN_READY];
  const int all = run_watch(clients, o->clients, err);
  bool good = all >= 0 && run_processors(clients[0].client, before, err);
  const double now = sn_clock_now(), begin = now + SETTLING, end = begin + o->seconds;
  const double last = end + o->deadline + LAST_ANSWERS;
  unsigned short seed[3] = {(unsigned short)o->seed, (unsigned short)(o->seed >> 16), 1};
  for (int i = 0; i < o->clients; ++i) {
    clients[i].period = clients[i].opened ? o->sessions / stage->rate : 1 / o->watch;
    clients[i].next = now + erand48(seed) * clients[i].period;
    clients[i].latest = -1;
  }
  // Processors are measured until the last answer is there: what is idle behind it is no part of the stage.
  while (good && sn_clock_now() < (stage->nanswer < stage->nrequest ? last : end)) {
    good = run_send_due(clients, o, stage, begin, end, &next, err);
    const int n = good ? run_wait(all, fmin(next, sn_clock_now() < end ? end : last), ready) : 0;
    for (int i = 0; good && i < n; ++i) good = run_receive(&clients[ready[i].data.u32], stage, err);
  }
  stage->seconds = o->seconds;
  if (all >= 0) close(all);
  if (!good || !run_processors(clients[0].client, after, err)) return false;
  const double taken = sn_clock_now() - now;
  for (int k = 0; k < LOAD_PARTS; ++k) stage->busy[k] = (after[k] - before[k]) / taken;
  return true;
}

// Takes the answers of a client, and asks again after each. It goes on until there is none: see run_send_due.
static bool run_ask_again(LoadClient *c, int iterations, int *answers, SinewError *err) {
  Sinew__V1__Reply *reply;
  SinewStatus status;
  uint64_t id;
  while ((status = sn_wire_receive(c->client, 0, &reply, err)) == SINEW_OK) {
    const bool good = sn_wire_check(reply, true, err) == SINEW_OK;
    sn_free_reply(reply);
    ++*answers;
    if (!good || !run_send(c, sn_clock_now(), iterations, 0, &id, err)) return false;
  }
  return status == SINEW_ERR_TIMEOUT;
}

double load_measure_rate(LoadClient *clients, const LoadOptions *o, SinewError *err) {
  struct epoll_event ready[RUN_READY];
  const int all = run_watch(clients, o->sessions, err), iterations = o->iterations > 0 ? o->iterations : 1;
  const double now = sn_clock_now(), begin = now + SETTLING, end = begin + MEASURING;
  uint64_t id;
  int plans = 0, settling = 0;
  bool good = all >= 0;
  for (int i = 0; good && i < o->sessions; ++i)
    good =
        run_send(&clients[i], now, iterations, 0, &id, err) && run_ask_again(&clients[i], iterations, &settling, err);
  while (good && sn_clock_now() < end) {
    const int n = run_wait(all, sn_clock_now() + 0.01, ready);
    for (int i = 0; good && i < n; ++i)
      good = run_ask_again(&clients[ready[i].data.u32], iterations, sn_clock_now() < begin ? &settling : &plans, err);
  }
  if (all >= 0) close(all);
  return good ? plans / MEASURING : -1;
}

void load_stage_free(LoadStage *stage) { free(stage->request); }

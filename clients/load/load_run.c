// A stage of load. Requests go out when the clock says so, answered or not, and an answer's latency counts from then:
// what a slow answer delays is not left out (coordinated omission; G. Tene, "How NOT to Measure Latency").
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "clients/load/load.h"
#include "physics/base/clock.h"

// [s]: before requests of a stage are counted, after its last one, and of the measurement of what can be planned.
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

// Waits until an answer is there or `until`, and takes what is there.
static bool run_wait(LoadClient *clients, int n, struct pollfd *fd, double until, LoadStage *stage, SinewError *err) {
  const double left = fmin(fmax(0, until - sn_clock_now()), 0.1);
  const struct timespec wait = {0, (long)(1e9 * left)};
  if (ppoll(fd, (nfds_t)n, &wait, NULL) < 0 && errno != EINTR)
    return sn_wire_fail(err, SINEW_ERR_MEMORY, "cannot wait for answers"), false;
  for (int i = 0; i < n; ++i)
    if (fd[i].revents && !run_receive(&clients[i], stage, err)) return false;
  return true;
}

static struct pollfd *run_descriptors(const LoadClient *clients, int n, SinewError *err) {
  struct pollfd *fd = calloc((size_t)n, sizeof *fd);
  if (!fd) sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  for (int i = 0; fd && i < n; ++i) fd[i] = (struct pollfd){sn_wire_descriptor(clients[i].client), POLLIN, 0};
  return fd;
}

bool load_run(LoadClient *clients, const LoadOptions *o, LoadStage *stage, SinewError *err) {
  struct pollfd *fd = run_descriptors(clients, o->clients, err);
  if (!fd) return false;
  const double now = sn_clock_now(), begin = now + SETTLING, end = begin + o->seconds;
  unsigned short seed[3] = {(unsigned short)o->seed, (unsigned short)(o->seed >> 16), 1};
  for (int i = 0; i < o->clients; ++i) {
    clients[i].period = clients[i].opened ? o->sessions / stage->rate : 1 / o->watch;
    clients[i].next = now + erand48(seed) * clients[i].period;
    clients[i].latest = -1;
  }
  double next;
  bool good = true;
  while (good && sn_clock_now() < end + LAST_ANSWERS)
    good = run_send_due(clients, o, stage, begin, end, &next, err) &&
           run_wait(clients, o->clients, fd, fmin(next, end + LAST_ANSWERS), stage, err);
  stage->seconds = o->seconds;
  free(fd);
  return good;
}

double load_measure_rate(LoadClient *clients, const LoadOptions *o, SinewError *err) {
  struct pollfd *fd = run_descriptors(clients, o->sessions, err);
  const double now = sn_clock_now(), begin = now + SETTLING, end = begin + MEASURING;
  const int iterations = o->iterations > 0 ? o->iterations : 1;
  uint64_t id;
  int plans = 0;
  bool good = fd != NULL;
  for (int i = 0; good && i < o->sessions; ++i) good = run_send(&clients[i], now, iterations, 0, &id, err);
  while (good && sn_clock_now() < end) {
    const struct timespec wait = {0, 10000000};
    ppoll(fd, (nfds_t)o->sessions, &wait, NULL);
    for (int i = 0; good && i < o->sessions; ++i) {
      Sinew__V1__Reply *reply;
      SinewStatus status;
      while (good && (status = sn_wire_receive(clients[i].client, 0, &reply, err)) == SINEW_OK) {
        good = sn_wire_check(reply, err) == SINEW_OK;
        sn_free_reply(reply);
        plans += sn_clock_now() >= begin;
        if (good) good = run_send(&clients[i], sn_clock_now(), iterations, 0, &id, err);
      }
      good = good && status == SINEW_ERR_TIMEOUT;
    }
  }
  free(fd);
  return good ? plans / MEASURING : -1;
}

void load_stage_free(LoadStage *stage) { free(stage->request); }

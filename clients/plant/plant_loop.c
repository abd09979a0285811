// The closed loop. In lockstep the body waits for each plan, as in the paper; in real time it goes on and
// uses what has arrived, indexed by now less the plan's start; in continuous mode it also streams its states, whatever
// has arrived.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients/libsinew_client/wire.h"
#include "clients/plant/plant.h"
#include "physics/base/clock.h"

static void sleep_until(double wall) {
  const double left = wall - sn_clock_now();
  if (left <= 0) return;
  const struct timespec t = sn_clock_timespec(left);
  nanosleep(&t, NULL);
}

// A run: who moves what under which plans.
typedef struct Loop {
  SinewClient *client;
  SinewSession *session;
  PlantBody *body;
  const PlantOptions *opt;
  PlantRecord *r;
  double *ctrl;     // (nu) applied
  double *past;     // (nhistory of the session) sent
  PlantPlan force;  // copy of the plan in force
  PlantLatency latency;
  int nu, steps;  // controls; steps of the body in all
  int execute;    // steps of the body between two states sent
  int ahead;      // the same in rows of a plan
} Loop;

static Loop loop_of(SinewClient *client, SinewSession *session, PlantBody *body, const PlantOptions *opt,
                    PlantRecord *r, double *ctrl) {
  const SinewSessionInfo *info = sinew_session_info(session);
  const double h = body->m->opt.timestep;
  return (Loop){.client = client,
                .session = session,
                .body = body,
                .opt = opt,
                .r = r,
                .ctrl = ctrl,
                .past = ctrl + info->nu,
                .latency = {.told = plant_latency_of(opt), .step = info->timestep, .longest = INFINITY},
                .nu = info->nu,
                .steps = (int)lround(opt->seconds / h),
                .execute = (int)fmax(1, lround(opt->execute * info->timestep / h)),
                .ahead = opt->execute};
}

// When step i of a body that moves by the clock is due, if its first one is at `start`.
static double due(const Loop *l, double start, int i) { return start + i * l->body->m->opt.timestep / l->opt->speed; }

// The daemon's time for a plan, on the clock.
static double deadline_of(const PlantOptions *opt) { return opt->deadline / opt->speed; }

// One line that is written over itself, on a terminal; every second elsewhere.
static void show_progress(const Loop *l, bool last) {
  static double shown = -1;
  const bool terminal = isatty(STDERR_FILENO);
  const double now = sn_clock_now();
  if (l->opt->quiet || (!last && now - shown < (terminal ? 0.2 : 1.0))) return;
  shown = now;
  const SinewSessionPlan *plan = sinew_session_current_plan(l->session);
  fprintf(stderr, "%s%6.2f of %.2f s  plans %d  cost %.4g -> %.4g  age %.1f ms%s", terminal ? "\r" : "",
          l->body->d->time, l->opt->seconds, l->r->nplan, plan ? plan->cost_before : NAN, plan ? plan->cost_after : NAN,
          plan ? 1e3 * plan->age : NAN, terminal && !last ? "\033[K" : "\n");
}

// Tells the daemon of the latency that is met, if it is another one now and it shall know.
static void tell_latency(Loop *l, double age) {
  if (l->opt->measure_latency && plant_latency_note(&l->latency, age))
    plant_latency_tell(&l->latency, l->client, sinew_session_info(l->session)->id, NULL);
}

// The session's plan has come into force now.
static void take_over(Loop *l) {
  const SinewSessionPlan *p = sinew_session_current_plan(l->session);
  const PlantPlan plan = {
      .start = p->start, .step = p->step, .steps = p->steps, .lead = p->lead, .ctrl = (double *)(uintptr_t)p->ctrl};
  if (l->force.steps > 0) {
    l->latency.longest = (p->steps - p->lead) * p->step;
    tell_latency(l, l->body->d->time - p->start);
    plant_record_handover(l->r, &l->force, &plan, l->body->d->time, l->ahead, l->nu);
  }
  plant_plan_copy(&l->force, &plan, l->nu);
}

static void note_plan(Loop *l, double latency) {
  plant_record_plan(l->r, latency, sinew_session_current_plan(l->session)->deadline_met);
  take_over(l);
}

// One step under the plan in force; false when the body's state has become unusable.
static bool move(Loop *l) {
  if (sinew_session_control(l->session, l->body->d->time, l->ctrl, NULL) != SINEW_OK) ++l->r->expired;
  plant_record_sample(l->r, l->body, l->ctrl);
  l->r->diverged = !plant_body_step(l->body, l->ctrl);
  show_progress(l, false);
  return !l->r->diverged;
}

double plant_patience(const PlantOptions *opt) { return opt->answer + deadline_of(opt); }

static SinewStatus no_plan(const Loop *l, SinewError *err) {
  return sn_wire_fail(err, SINEW_ERR_TIMEOUT, "no plan from %s within %g s", sn_wire_endpoint(l->client),
                      plant_patience(l->opt));
}

// The body's state, whose buffers of controls and sensors and rests of springs go with what is sent next.
static SinewState measure(Loop *l) {
  const mjModel *m = l->body->m;
  const mjData *d = l->body->d;
  const int n = (int)(m->nhistory + m->nplastic);
  if (n > 0 && n == sinew_session_info(l->session)->nhistory) {
    mju_copy(l->past, d->history, (int)m->nhistory);
    mju_copy(l->past + m->nhistory, d->plastic, (int)m->nplastic);
    sinew_session_set_history(l->session, l->past, n, NULL);
  }
  return plant_body_state(l->body, l->opt->hide_act);
}

static SinewStatus run_lockstep(Loop *l, SinewError *err) {
  const double start = sn_clock_now();
  for (int i = 0; i < l->steps; ++i) {
    if (i % l->execute == 0) {
      const SinewState state = measure(l);
      const double sent = sn_clock_now();
      const SinewStatus status = sinew_session_plan(l->session, &state, l->opt->deadline, err);
      if (status == SINEW_OK)
        note_plan(l, sn_clock_now() - sent);
      else if (status != SINEW_ERR_NO_PLAN)
        return status;
    }
    if (!move(l)) break;
  }
  l->r->wall = sn_clock_now() - start;
  return SINEW_OK;
}

// Takes the plans that have arrived. *sent is when the state that waits for one was sent, < 0: none waits.
static SinewStatus take_arrived(Loop *l, double *sent, SinewError *err) {
  for (;;) {
    const SinewStatus status = sinew_session_receive(l->session, 0, err);
    if (status == SINEW_ERR_TIMEOUT) return SINEW_OK;
    if (status == SINEW_OK)
      note_plan(l, sn_clock_now() - *sent);
    else if (status != SINEW_ERR_NO_PLAN)
      return status;
    *sent = -1;
  }
}

static SinewStatus run_realtime(Loop *l, SinewError *err) {
  const double give_up = plant_patience(l->opt), deadline = deadline_of(l->opt);
  // The body starts with its first plan in hand.
  SinewState state = measure(l);
  SinewStatus status = sinew_session_plan(l->session, &state, l->opt->first, err);
  if (status != SINEW_OK && status != SINEW_ERR_NO_PLAN) return status;
  if (status == SINEW_OK) take_over(l);
  const double start = sn_clock_now();
  double sent = -1;
  int next_send = 0;
  for (int i = 0; i < l->steps; ++i) {
    sleep_until(due(l, start, i));
    if ((status = take_arrived(l, &sent, err)) != SINEW_OK) return status;
    if (sent >= 0 && sn_clock_now() - sent > give_up) return no_plan(l, err);
    if (sent < 0 && i >= next_send) {
      state = measure(l);
      sent = sn_clock_now();
      next_send = i + l->execute;
      // Plans are wanted at a step of the body: the deadline counts from when this one was due.
      const double left = fmax(due(l, start, i) + deadline - sent, 0.5 * deadline);
      if ((status = sinew_session_send(l->session, &state, left, err)) != SINEW_OK) return status;
    }
    if (!move(l)) break;
  }
  l->r->wall = sn_clock_now() - start;
  // The last state's plan is of no use any more, but its answer must not stay in the socket.
  if (sent >= 0 && sinew_session_receive(l->session, give_up, NULL) == SINEW_ERR_TIMEOUT) return no_plan(l, err);
  return SINEW_OK;
}

// Takes the plans of the stream that have arrived. *heard is when the daemon said something last.
static SinewStatus take_streamed(Loop *l, double wait, double *heard, SinewError *err) {
  const SinewSessionPlan *plan = sinew_session_current_plan(l->session);
  const double before = plan ? plan->state_time : -INFINITY;
  const uint64_t number = plan ? plan->stream_number : 0;
  const SinewStatus status = sinew_session_stream_receive(l->session, wait, err);
  if (status != SINEW_ERR_TIMEOUT) *heard = sn_clock_now();
  if (status == SINEW_ERR_TIMEOUT || status == SINEW_ERR_NO_PLAN) return SINEW_OK;
  if (status != SINEW_OK) return status;
  plan = sinew_session_current_plan(l->session);
  int better = (int)(plan->stream_number - number);
  if (plan->state_time > before) {
    note_plan(l, plan->age);
    --better;
  } else {
    take_over(l);
  }
  l->r->better += better;
  l->r->misses = (int)plan->stream_misses;
  return SINEW_OK;
}

// The body starts with its first plan in hand.
static SinewStatus begin_stream(Loop *l, SinewError *err) {
  const double give_up = plant_patience(l->opt);
  double heard;
  SinewStreamDef def = sinew_default_stream();
  def.deadline = def.period = deadline_of(l->opt);
  def.lease = 2 * give_up;
  const SinewState state = measure(l);
  SinewStatus status = sinew_session_stream_start(l->session, &def, err);
  if (status == SINEW_OK) status = sinew_session_stream_send(l->session, &state, err);
  for (const double until = sn_clock_now() + give_up; status == SINEW_OK && !sinew_session_current_plan(l->session);) {
    if (sn_clock_now() > until) return no_plan(l, err);
    status = take_streamed(l, 0.01, &heard, err);
  }
  return status;
}

static SinewStatus run_continuous(Loop *l, SinewError *err) {
  SinewStatus status = begin_stream(l, err);
  const double start = sn_clock_now();
  double heard = start;
  for (int i = 0; i < l->steps && status == SINEW_OK; ++i) {
    sleep_until(due(l, start, i));
    if ((status = take_streamed(l, 0, &heard, err)) != SINEW_OK) break;
    if (sn_clock_now() - heard > plant_patience(l->opt)) return no_plan(l, err);
    if (i % l->execute == 0 && i > 0) {
      const SinewState state = measure(l);
      status = sinew_session_stream_send(l->session, &state, err);
      if (status == SINEW_ERR_TIMEOUT) status = SINEW_OK;  // the next state is as good, until patience is out
      if (status != SINEW_OK) break;
    }
    if (!move(l)) break;
  }
  l->r->wall = sn_clock_now() - start;
  return status == SINEW_OK ? sinew_session_stream_stop(l->session, err) : status;
}

static SinewStatus run_zero(Loop *l) {
  const double start = sn_clock_now();
  for (int i = 0; i < l->steps && !l->r->diverged; ++i) {
    plant_record_sample(l->r, l->body, l->ctrl);
    l->r->diverged = !plant_body_step(l->body, l->ctrl);
  }
  l->r->wall = sn_clock_now() - start;
  return SINEW_OK;
}

// splitmix64: uniform in [0, 1)
static double uniform(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Tries constant controls, uniform in their range, and runs the one whose last state costs least.
static SinewStatus run_random(Loop *l, SinewClient *client, SinewError *err) {
  const SinewSessionInfo *info = sinew_session_info(l->session);
  uint64_t rng = l->opt->seed;
  double best = INFINITY;
  double *chosen = calloc((size_t)info->nu + 1, sizeof(double));
  if (!chosen) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  SinewStatus status = SINEW_OK;
  for (int k = 0; k < l->opt->random_controls && status == SINEW_OK; ++k) {
    for (int i = 0; i < info->nu; ++i) {
      const double lo = isfinite(info->ctrl_range[2 * i]) ? info->ctrl_range[2 * i] : -1;
      const double hi = isfinite(info->ctrl_range[2 * i + 1]) ? info->ctrl_range[2 * i + 1] : 1;
      l->ctrl[i] = lo + (hi - lo) * uniform(&rng);
    }
    plant_body_reset(l->body, &info->initial);
    bool alive = true;
    for (int i = 0; i < l->steps && alive; ++i) alive = plant_body_step(l->body, l->ctrl);
    if (!alive) continue;
    const SinewState state = plant_body_state(l->body, false);
    double cost;
    status = plant_judge_state(client, &state, info, &cost, NULL, 0, err);
    if (status == SINEW_OK && cost < best) {
      best = cost;
      memcpy(chosen, l->ctrl, sizeof(double) * (size_t)info->nu);
    }
    if (!l->opt->quiet && k % 100 == 99)
      fprintf(stderr, "%d of %d constant controls, best last cost %.4g\n", k + 1, l->opt->random_controls, best);
  }
  memcpy(l->ctrl, chosen, sizeof(double) * (size_t)info->nu);
  free(chosen);
  plant_body_reset(l->body, &info->initial);
  return status == SINEW_OK ? run_zero(l) : status;
}

static SinewStatus run_planned(Loop *l, SinewError *err) {
  const SinewStatus status = l->opt->mode == PLANT_LOCKSTEP   ? run_lockstep(l, err)
                             : l->opt->mode == PLANT_REALTIME ? run_realtime(l, err)
                                                              : run_continuous(l, err);
  show_progress(l, true);
  return status;
}

SinewStatus plant_run(SinewClient *client, SinewSession *session, PlantBody *body, const PlantOptions *opt,
                      PlantRecord *r, SinewError *err) {
  const SinewSessionInfo *info = sinew_session_info(session);
  double *ctrl = calloc((size_t)info->nu + (size_t)info->nhistory + 1, sizeof(double));
  if (!ctrl) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  Loop l = loop_of(client, session, body, opt, r, ctrl);
  plant_body_reset(body, &info->initial);
  const SinewStatus status = opt->controller == PLANT_ZERO     ? run_zero(&l)
                             : opt->controller == PLANT_RANDOM ? run_random(&l, client, err)
                                                               : run_planned(&l, err);
  r->simulated = body->d->time;
  plant_record_sample(r, body, ctrl);
  plant_plan_free(&l.force);
  free(ctrl);
  return status;
}

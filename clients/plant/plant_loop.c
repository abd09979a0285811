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

// One line that is written over itself, on a terminal; every second elsewhere.
static void show_progress(const PlantOptions *opt, const PlantRecord *r, const SinewSession *session, double time,
                          bool last) {
  static double shown = -1;
  const bool terminal = isatty(STDERR_FILENO);
  const double now = sn_clock_now();
  if (opt->quiet || (!last && now - shown < (terminal ? 0.2 : 1.0))) return;
  shown = now;
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  fprintf(stderr, "%s%6.2f of %.2f s  plans %d  cost %.4g -> %.4g  age %.1f ms%s", terminal ? "\r" : "", time,
          opt->seconds, r->nplan, plan ? plan->cost_before : NAN, plan ? plan->cost_after : NAN,
          plan ? 1e3 * plan->age : NAN, terminal && !last ? "\033[K" : "\n");
}

static void note_plan(PlantRecord *r, const SinewSession *session, double latency) {
  plant_record_plan(r, latency, sinew_session_current_plan(session)->deadline_met);
}

double plant_patience(const PlantOptions *opt) { return PLANT_ANSWERING + 2 * opt->deadline; }

static SinewStatus no_plan(const PlantOptions *opt, SinewError *err) {
  return sn_wire_fail(err, SINEW_ERR_TIMEOUT, "no plan within %g s", plant_patience(opt));
}

static SinewStatus run_lockstep(SinewSession *session, PlantBody *body, const PlantOptions *opt, PlantRecord *r,
                                double *ctrl, SinewError *err) {
  const int nstep = (int)lround(opt->seconds / body->m->opt.timestep);
  for (int i = 0; i < nstep; ++i) {
    if (i % opt->execute == 0) {
      const SinewState state = plant_body_state(body, opt->hide_act);
      const double sent = sn_clock_now();
      const SinewStatus status = sinew_session_plan(session, &state, opt->deadline, err);
      if (status == SINEW_OK)
        note_plan(r, session, sn_clock_now() - sent);
      else if (status != SINEW_ERR_NO_PLAN)
        return status;
    }
    if (sinew_session_control(session, body->d->time, ctrl, NULL) != SINEW_OK) ++r->expired;
    plant_record_sample(r, body, ctrl);
    if (!plant_body_step(body, ctrl)) {
      r->diverged = true;
      break;
    }
    show_progress(opt, r, session, body->d->time, false);
  }
  return SINEW_OK;
}

// Takes the plans that have arrived. *sent is when the state that waits for one was sent, < 0: none waits.
static SinewStatus take_arrived(SinewSession *session, PlantRecord *r, double *sent, SinewError *err) {
  for (;;) {
    const SinewStatus status = sinew_session_receive(session, 0, err);
    if (status == SINEW_ERR_TIMEOUT) return SINEW_OK;
    if (status == SINEW_OK)
      note_plan(r, session, sn_clock_now() - *sent);
    else if (status != SINEW_ERR_NO_PLAN)
      return status;
    *sent = -1;
  }
}

static SinewStatus run_realtime(SinewSession *session, PlantBody *body, const PlantOptions *opt, PlantRecord *r,
                                double *ctrl, SinewError *err) {
  const double h = body->m->opt.timestep, give_up = plant_patience(opt);
  const int nstep = (int)lround(opt->seconds / h);
  // The body starts with its first plan in hand.
  SinewState state = plant_body_state(body, opt->hide_act);
  SinewStatus status = sinew_session_plan(session, &state, opt->deadline, err);
  if (status != SINEW_OK && status != SINEW_ERR_NO_PLAN) return status;
  const double start = sn_clock_now();
  double sent = -1;
  int next_send = 0;
  for (int i = 0; i < nstep; ++i) {
    sleep_until(start + i * h);
    if ((status = take_arrived(session, r, &sent, err)) != SINEW_OK) return status;
    if (sent >= 0 && sn_clock_now() - sent > give_up) return no_plan(opt, err);
    if (sent < 0 && i >= next_send) {
      state = plant_body_state(body, opt->hide_act);
      sent = sn_clock_now();
      next_send = i + opt->execute;
      if ((status = sinew_session_send(session, &state, opt->deadline, err)) != SINEW_OK) return status;
    }
    if (sinew_session_control(session, body->d->time, ctrl, NULL) != SINEW_OK) ++r->expired;
    plant_record_sample(r, body, ctrl);
    if (!plant_body_step(body, ctrl)) {
      r->diverged = true;
      break;
    }
    show_progress(opt, r, session, body->d->time, false);
  }
  // The last state's plan is of no use any more, but its answer must not stay in the socket.
  if (sent >= 0) sinew_session_receive(session, give_up, NULL);
  return SINEW_OK;
}

// Takes the plans of the stream that have arrived. *heard is when the daemon said something last.
static SinewStatus take_streamed(SinewSession *session, PlantRecord *r, double wait, double *heard, SinewError *err) {
  const SinewSessionPlan *plan = sinew_session_current_plan(session);
  const double before = plan ? plan->state_time : -INFINITY;
  const uint64_t number = plan ? plan->stream_number : 0;
  const SinewStatus status = sinew_session_stream_receive(session, wait, err);
  if (status != SINEW_ERR_TIMEOUT) *heard = sn_clock_now();
  if (status == SINEW_ERR_TIMEOUT || status == SINEW_ERR_NO_PLAN) return SINEW_OK;
  if (status != SINEW_OK) return status;
  plan = sinew_session_current_plan(session);
  int better = (int)(plan->stream_number - number);
  if (plan->state_time > before) {
    note_plan(r, session, plan->age);
    --better;
  }
  r->better += better;
  r->misses = (int)plan->stream_misses;
  return SINEW_OK;
}

// The body starts with its first plan in hand.
static SinewStatus begin_stream(SinewSession *session, PlantBody *body, const PlantOptions *opt, PlantRecord *r,
                                SinewError *err) {
  const double give_up = plant_patience(opt);
  double heard;
  SinewStreamDef def = sinew_default_stream();
  def.deadline = opt->deadline;
  def.lease = 2 * give_up;
  const SinewState state = plant_body_state(body, opt->hide_act);
  SinewStatus status = sinew_session_stream_start(session, &def, err);
  if (status == SINEW_OK) status = sinew_session_stream_send(session, &state, err);
  for (const double until = sn_clock_now() + give_up; status == SINEW_OK && !sinew_session_current_plan(session);) {
    if (sn_clock_now() > until) return no_plan(opt, err);
    status = take_streamed(session, r, 0.01, &heard, err);
  }
  return status;
}

static SinewStatus run_continuous(SinewSession *session, PlantBody *body, const PlantOptions *opt, PlantRecord *r,
                                  double *ctrl, SinewError *err) {
  const double h = body->m->opt.timestep;
  const int nstep = (int)lround(opt->seconds / h);
  SinewStatus status = begin_stream(session, body, opt, r, err);
  const double start = sn_clock_now();
  double heard = start;
  for (int i = 0; i < nstep && status == SINEW_OK; ++i) {
    sleep_until(start + i * h);
    if ((status = take_streamed(session, r, 0, &heard, err)) != SINEW_OK) break;
    if (sn_clock_now() - heard > plant_patience(opt)) return no_plan(opt, err);
    if (i % opt->execute == 0 && i > 0) {
      const SinewState state = plant_body_state(body, opt->hide_act);
      if ((status = sinew_session_stream_send(session, &state, err)) != SINEW_OK) break;
    }
    if (sinew_session_control(session, body->d->time, ctrl, NULL) != SINEW_OK) ++r->expired;
    plant_record_sample(r, body, ctrl);
    if (!plant_body_step(body, ctrl)) {
      r->diverged = true;
      break;
    }
    show_progress(opt, r, session, body->d->time, false);
  }
  return status == SINEW_OK ? sinew_session_stream_stop(session, err) : status;
}

static SinewStatus run_zero(PlantBody *body, const PlantOptions *opt, PlantRecord *r, double *ctrl) {
  const int nstep = (int)lround(opt->seconds / body->m->opt.timestep);
  for (int i = 0; i < nstep; ++i) {
    plant_record_sample(r, body, ctrl);
    if (!plant_body_step(body, ctrl)) {
      r->diverged = true;
      break;
    }
  }
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
static SinewStatus run_random(SinewClient *client, PlantBody *body, const PlantOptions *opt,
                              const SinewSessionInfo *info, PlantRecord *r, double *ctrl, SinewError *err) {
  const int nstep = (int)lround(opt->seconds / body->m->opt.timestep);
  uint64_t rng = opt->seed;
  double best = INFINITY;
  double *chosen = calloc((size_t)info->nu + 1, sizeof(double));
  if (!chosen) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  SinewStatus status = SINEW_OK;
  for (int k = 0; k < opt->random_controls && status == SINEW_OK; ++k) {
    for (int i = 0; i < info->nu; ++i) {
      const double lo = isfinite(info->ctrl_range[2 * i]) ? info->ctrl_range[2 * i] : -1;
      const double hi = isfinite(info->ctrl_range[2 * i + 1]) ? info->ctrl_range[2 * i + 1] : 1;
      ctrl[i] = lo + (hi - lo) * uniform(&rng);
    }
    plant_body_reset(body, &info->initial);
    bool alive = true;
    for (int i = 0; i < nstep && alive; ++i) alive = plant_body_step(body, ctrl);
    if (!alive) continue;
    const SinewState state = plant_body_state(body, false);
    double cost;
    status = plant_judge_state(client, &state, info, &cost, NULL, 0, err);
    if (status == SINEW_OK && cost < best) {
      best = cost;
      memcpy(chosen, ctrl, sizeof(double) * (size_t)info->nu);
    }
    if (!opt->quiet && k % 100 == 99)
      fprintf(stderr, "%d of %d constant controls, best last cost %.4g\n", k + 1, opt->random_controls, best);
  }
  memcpy(ctrl, chosen, sizeof(double) * (size_t)info->nu);
  free(chosen);
  plant_body_reset(body, &info->initial);
  return status == SINEW_OK ? run_zero(body, opt, r, ctrl) : status;
}

SinewStatus plant_run(SinewClient *client, SinewSession *session, PlantBody *body, const PlantOptions *opt,
                      PlantRecord *r, SinewError *err) {
  const SinewSessionInfo *info = sinew_session_info(session);
  double *ctrl = calloc((size_t)info->nu + 1, sizeof(double));
  if (!ctrl) return sn_wire_fail(err, SINEW_ERR_MEMORY, "out of memory");
  plant_body_reset(body, &info->initial);
  const double start = sn_clock_now();
  SinewStatus status = SINEW_OK;
  switch (opt->controller) {
    case PLANT_ZERO:
      status = run_zero(body, opt, r, ctrl);
      break;
    case PLANT_RANDOM:
      status = run_random(client, body, opt, info, r, ctrl, err);
      break;
    case PLANT_SINEW:
      status = opt->mode == PLANT_LOCKSTEP   ? run_lockstep(session, body, opt, r, ctrl, err)
               : opt->mode == PLANT_REALTIME ? run_realtime(session, body, opt, r, ctrl, err)
                                             : run_continuous(session, body, opt, r, ctrl, err);
      show_progress(opt, r, session, body->d->time, true);
      break;
  }
  r->wall = sn_clock_now() - start;
  r->simulated = body->d->time;
  plant_record_sample(r, body, ctrl);
  free(ctrl);
  return status;
}

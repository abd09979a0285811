#include "clients/libsinew_client/accept_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

// Rows of a plan, and entries of a state or control vector. Far above what sinewd serves, far below what an int counts.
enum { ROWS_MAX = 1 << 16, ENTRIES_MAX = 1 << 20 };

#define CONTROL_MAX 1e10          // the engine's and MuJoCo's bound on any number
#define TIME_TO_LIVE_MAX 86400.0  // [s] the schema's bound on a session's setting
#define STEP_MIN 1e-9             // [s]

static bool refuse(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool refuse(char *why, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, size, format, args);
  va_end(args);
  return false;
}

size_t sn_first_not_finite(const double *x, size_t n) {
  size_t i = 0;
  while (i < n && isfinite(x[i])) ++i;
  return i;
}

//------------------------------------------------------------------------------------------ session

static bool accept_vector(const char *name, const double *x, size_t n, size_t wanted, char *why, size_t size) {
  if (n != wanted)
    return refuse(why, size, "the initial state has the wrong size: %zu numbers of %s, the model has %zu", n, name,
                  wanted);
  const size_t bad = sn_first_not_finite(x, n);
  return bad == n || refuse(why, size, "the initial state has %s[%zu] = %g", name, bad, x[bad]);
}

static bool accept_control(const Sinew__V1__Quantity *q, size_t i, char *why, size_t size) {
  if (q->address != i || q->size != 1)
    return refuse(why, size, "control %zu is described as %u entries from %u on", i, q->size, q->address);
  return !q->limited || (isfinite(q->min) && isfinite(q->max) && q->min <= q->max) ||
         refuse(why, size, "control %zu ranges from %g to %g", i, q->min, q->max);
}

bool sn_accept_session(const Sinew__V1__OpenReply *open, const Sinew__V1__ModelDescription *model, char *why,
                       size_t size) {
  if (!model || !open->initial) return refuse(why, size, "incomplete answer to open");
  const Sinew__V1__State *s = open->initial;
  const uint32_t entries[] = {model->nq, model->nv, model->na, model->nu, model->nmocap, model->nhistory};
  for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i)
    if (entries[i] > ENTRIES_MAX)
      return refuse(why, size, "the model has a vector of %u entries; at most %d are allowed", entries[i], ENTRIES_MAX);
  if (!(model->timestep > 0 && isfinite(model->timestep)))
    return refuse(why, size, "the model has a time step of %g s", model->timestep);
  if (!accept_vector("qpos", s->qpos, s->n_qpos, model->nq, why, size) ||
      !accept_vector("qvel", s->qvel, s->n_qvel, model->nv, why, size) ||
      !accept_vector("act", s->act, s->n_act, model->na, why, size) ||
      !accept_vector("history", s->history, s->n_history, model->nhistory, why, size) ||
      !accept_vector("mocap", s->mocap, s->n_mocap, 7 * (size_t)model->nmocap, why, size))
    return false;
  if (model->n_ctrl != model->nu)
    return refuse(why, size, "the model has %u controls and describes %zu", model->nu, model->n_ctrl);
  for (size_t i = 0; i < model->n_ctrl; ++i)
    if (!accept_control(model->ctrl[i], i, why, size)) return false;
  return true;
}

//--------------------------------------------------------------------------------------------- plan

static bool accept_times(const Sinew__V1__Plan *p, double latest, char *why, size_t size) {
  if (!(isfinite(p->state_time) && p->state_time <= latest))
    return refuse(why, size, "it answers a state of %g s, the latest one sent is of %g s", p->state_time, latest);
  if (!(p->time_to_live > 0 && p->time_to_live <= TIME_TO_LIVE_MAX))
    return refuse(why, size, "its time to live is %g s; allowed is more than 0, at most %g s", p->time_to_live,
                  TIME_TO_LIVE_MAX);
  if (!(p->step >= STEP_MIN && p->step <= TIME_TO_LIVE_MAX))
    return refuse(why, size, "its time step is %g s; allowed is %g to %g s", p->step, STEP_MIN, TIME_TO_LIVE_MAX);
  if (!(p->start <= p->state_time + p->time_to_live && p->start + p->steps * p->step >= p->state_time))
    return refuse(why, size, "its %u rows of %g s from %g s on are not of the time for which it may be used", p->steps,
                  p->step, p->start);
  return true;
}

size_t sn_accept_controls(const double *ctrl, size_t n) {
  size_t i = 0;
  while (i < n && fabs(ctrl[i]) <= CONTROL_MAX) ++i;
  return i;
}

bool sn_accept_plan(const Sinew__V1__Plan *p, const SinewSessionInfo *info, double latest, char *why, size_t size) {
  if (p->session != info->id)
    return refuse(why, size, "it is of session %llu, this is session %llu", (unsigned long long)p->session,
                  (unsigned long long)info->id);
  if (p->status != SINEW__V1__PLAN__STATUS__OK && p->status != SINEW__V1__PLAN__STATUS__WARM_START)
    return refuse(why, size, "its status is %d, which is unknown", (int)p->status);
  if (p->steps == 0 || p->steps > ROWS_MAX)
    return refuse(why, size, "it has %u rows; allowed are 1 to %d", p->steps, ROWS_MAX);
  if (p->n_ctrl != (size_t)p->steps * (size_t)info->nu)
    return refuse(why, size, "it has the wrong size: %zu controls, not %u rows of %d", p->n_ctrl, p->steps, info->nu);
  if (p->lead > p->steps) return refuse(why, size, "%u of its %u rows are those of the plan before", p->lead, p->steps);
  if (!accept_times(p, latest, why, size)) return false;
  const size_t i = sn_accept_controls(p->ctrl, p->n_ctrl);
  if (i < p->n_ctrl)
    return refuse(why, size, "control %zu of row %zu is %g", i % (size_t)info->nu, i / (size_t)info->nu, p->ctrl[i]);
  return true;
}

// Targets over time: constants, schedules, values taken at the start, values set live. Evaluated on the host
// in double precision; rollouts read the rows of a table.
#include "planner/cost/cost.h"
#include "planner/cost/cost_private.h"

#include "physics/base/number_text.h"
#include "physics/base/vec.h"
#include "physics/step/step.h"

static const SnTerm *target_term(const SnCost *c, int i) { return c->owner->term[i]; }

int sn_cost_target_size(const SnCost *cost, int i) { return cost->term_target[i + 1] - cost->term_target[i]; }

// Entry k of a list of n numbers that stands for all entries when n is 1 and for zeros when it is 0.
static double entry(const double *x, int n, int k) { return n == 0 ? 0 : x[n == 1 ? 0 : k]; }

// Entry j of the keyframes at time t.
static double keyframe_value(const SnTarget *g, int j, double t) {
  const int n = g->ntime, column = g->nvalue == 1 ? 0 : j;
  const double *x = g->time;
#define KEY(k) g->key[(k)*g->nvalue + column]
  if (g->repeat) {
    const double length = x[n - 1] - x[0];
    t = x[0] + fmod(fmod(t - x[0], length) + length, length);
  }
  if (t <= x[0]) return KEY(0);
  if (t >= x[n - 1]) return KEY(n - 1);
  int k = 0;
  while (t >= x[k + 1]) ++k;
  const double h = x[k + 1] - x[k], s = (t - x[k]) / h, a = KEY(k), b = KEY(k + 1);
  if (g->interpolation == SN_SPLINE_ZERO) return a;
  if (g->interpolation == SN_SPLINE_LINEAR) return a + s * (b - a);
  // Hermite cubic; slopes are differences over both neighbours, one-sided at the ends.
  const int lo = k > 0 ? k - 1 : k, hi = k + 2 < n ? k + 2 : k + 1;
  const double da = h * (b - KEY(lo)) / (x[k + 1] - x[lo]), db = h * (KEY(hi) - a) / (x[hi] - x[k]);
  return (2 * s * s * s - 3 * s * s + 1) * a + (s * s * s - 2 * s * s + s) * da + (3 * s * s - 2 * s * s * s) * b +
         (s * s * s - s * s) * db;
#undef KEY
}

// Rotations are unit quaternions, also between keyframes; no entries stand for the identity.
static void fix_rotations(const SnCost *c, int term, double *value) {
  for (int i = c->term_item[term]; i < c->term_item[term + 1]; ++i) {
    if (sn_item_value_size(c->item_type[i]) != 4) continue;
    double *q = value + c->item_target[i] - c->term_target[term];
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (norm < 1e-12) {
      q[0] = 1;
      q[1] = q[2] = q[3] = 0;
    } else {
      for (int k = 0; k < 4; ++k) q[k] /= norm;
    }
  }
}

void sn_cost_target(const SnCost *cost, int i, double t, double *value) {
  const SnTarget *g = &target_term(cost, i)->target;
  const int n = sn_cost_target_size(cost, i);
  const bool fixed = cost->owner->overridden[i] || (g->kind == SN_TARGET_ELEMENT && g->at_start);
  for (int k = 0; k < n; ++k) {
    if (fixed)
      value[k] = (cost->owner->overridden[i] ? cost->owner->given : cost->owner->captured)[cost->term_target[i] + k];
    else if (g->kind == SN_TARGET_ELEMENT)
      value[k] = NAN;
    else if (g->kind == SN_TARGET_KEYFRAMES)
      value[k] = keyframe_value(g, k, t);
    else
      value[k] = entry(g->value, g->nvalue, k);
    if (!fixed && g->kind == SN_TARGET_SINUSOID)
      value[k] += entry(g->amplitude, g->namplitude, k) *
                  sin(2 * 3.14159265358979323846 * t / g->period + entry(g->phase, g->nphase, k));
  }
  if (fixed || g->kind != SN_TARGET_ELEMENT) fix_rotations(cost, i, value);
}

void sn_cost_schedule(const SnCost *cost, double t0, double h, int rows, sn_real *table) {
  double *row = cost->owner->row;
  for (int t = 0; t < rows; ++t) {
    for (int i = 0; i < cost->nall + cost->ngate; ++i) sn_cost_target(cost, i, t0 + t * h, row + cost->term_target[i]);
    for (int k = 0; k < cost->ntarget; ++k) table[(size_t)t * (size_t)cost->ntarget + (size_t)k] = (sn_real)row[k];
  }
}

int sn_cost_given_targets(const SnCost *cost, int *entry) {
  int n = 0;
  for (int i = 0; i < cost->nterm; ++i) {
    const SnTarget *g = &target_term(cost, i)->target;
    const bool none = g->kind == SN_TARGET_VALUE && g->nvalue == 0;
    if (none || (g->kind == SN_TARGET_ELEMENT && !g->at_start)) continue;
    for (int k = cost->term_target[i]; k < cost->term_target[i + 1]; ++k) entry[n++] = k;
  }
  return n;
}

// Value of one item in the world, in its target's frame, into value.
static void capture_item(SnCost *c, const SnModel *m, const SnWorld *w, int i, double *value) {
  const int size = sn_item_value_size(c->item_type[i]), frame = c->item_frame[i];
  sn_real x[4] = {0}, local[4];
  sn_item_value(c, m, w, c->item_other_type[i], c->item_other_id[i], c->item_end + 8 * i + 4, x);
  if (frame >= 0 && size == 3) {
    sn_real back[4];
    if (!sn_item_is_velocity(c, i)) sn_subfrom3(x, w->xpos + 3 * frame);
    sn_negquat(back, w->xquat + 4 * frame);
    sn_rotquat(local, x, back);
    sn_copy3(x, local);
  } else if (frame >= 0 && size == 4) {
    sn_real back[4];
    sn_negquat(back, w->xquat + 4 * frame);
    sn_mulquat(local, back, x);
    sn_copy4(x, local);
  }
  for (int k = 0; k < size; ++k) value[k] = (double)x[k];
}

void sn_cost_capture(SnCost *cost, const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_forward(m, w, lane);
  for (int term = 0; term < cost->nall + cost->ngate; ++term) {
    const SnTarget *g = &target_term(cost, term)->target;
    if (g->kind != SN_TARGET_ELEMENT || !g->at_start) continue;
    for (int i = cost->term_item[term]; i < cost->term_item[term + 1]; ++i)
      capture_item(cost, m, w, i, cost->owner->captured + cost->item_target[i]);
  }
}

SnCode sn_cost_check_target(const SnCost *cost, int i, const double *value, int n, SnError *err) {
  const int size = sn_cost_target_size(cost, i);
  if (n != 0 && n != size)
    return sn_fail(err, SN_ERR_ARGUMENT, "target of '%s': %d numbers, allowed is %d, or none for the task's own",
                   sn_cost_name(cost, i), n, size);
  for (int k = 0; k < n; ++k)
    if (!isfinite(value[k]))
      return sn_fail(err, SN_ERR_ARGUMENT, "target of '%s': entry %d is not finite", sn_cost_name(cost, i), k);
  return SN_OK;
}

SnCode sn_cost_set_target(SnCost *cost, int i, const double *value, int n, SnError *err) {
  const SnTarget *g = &target_term(cost, i)->target;
  const SnCode code = sn_cost_check_target(cost, i, value, n, err);
  if (code != SN_OK) return code;
  cost->owner->overridden[i] = n > 0;
  cost->term_follows[i] = n == 0 && g->kind == SN_TARGET_ELEMENT && !g->at_start;
  if (n > 0) memcpy(cost->owner->given + cost->term_target[i], value, sizeof(double) * (size_t)n);
  return SN_OK;
}

bool sn_cost_target_is_set(const SnCost *cost, int i) { return cost->owner->overridden[i]; }

SnCode sn_cost_check_weight(const SnCost *cost, int i, double weight, double terminal, SnError *err) {
  if (i < 0 || i >= cost->nterm) return sn_fail(err, SN_ERR_ARGUMENT, "term %d has no weight", i);
  if (!(weight >= 0 && weight <= SN_TASK_MOST_WEIGHT))
    return sn_fail(err, SN_ERR_ARGUMENT, "weight of '%s': %s is out of bounds, allowed is 0 to %g",
                   sn_cost_name(cost, i), sn_number_text(weight).text, SN_TASK_MOST_WEIGHT);
  if (!(terminal >= 0 && terminal <= SN_TASK_MOST_WEIGHT))
    return sn_fail(err, SN_ERR_ARGUMENT, "terminal weight of '%s': %s is out of bounds, allowed is 0 to %g",
                   sn_cost_name(cost, i), sn_number_text(terminal).text, SN_TASK_MOST_WEIGHT);
  if (terminal > 0 && cost->owner->running_only[i])
    return sn_fail(err, SN_ERR_ARGUMENT, "terminal weight of '%s': no control acts at the end of the horizon",
                   sn_cost_name(cost, i));
  return SN_OK;
}

SnCode sn_cost_set_weight(SnCost *cost, int i, double weight, double terminal, SnError *err) {
  const SnCode code = sn_cost_check_weight(cost, i, weight, terminal, err);
  if (code != SN_OK) return code;
  cost->weight[i] = (sn_real)weight;
  cost->terminal[i] = (sn_real)terminal;
  return SN_OK;
}

void sn_cost_copy_live(SnCost *to, const SnCost *from) {
  memcpy(to->weight, from->weight, sizeof *to->weight * (size_t)to->nterm);
  memcpy(to->terminal, from->terminal, sizeof *to->terminal * (size_t)to->nterm);
  memcpy(to->term_follows, from->term_follows, sizeof *to->term_follows * (size_t)to->nall);
  memcpy(to->owner->overridden, from->owner->overridden, sizeof *to->owner->overridden * (size_t)to->nall);
  memcpy(to->owner->given, from->owner->given, sizeof *to->owner->given * (size_t)to->ntarget);
}

// Derivatives of a rollout against its differences, as a user has both: sinew_batch_vjp, sinew_batch_rollout.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/check/check.h"
#include "clients/reference/mujoco_drive.h"
#include "clients/reference/probe_task.h"

enum { DIRECTIONS = 8, MOVES = 6 };  // moves along a direction: each step forth and back

bool check_stretch_init(CheckStretch *s, const mjModel *m, int steps) {
  s->qpos = check_numbers((size_t)m->nq);
  s->qvel = check_numbers((size_t)m->nv);
  s->act = check_numbers((size_t)m->na);
  s->mocap = check_numbers(7 * (size_t)m->nmocap);
  s->history = check_numbers((size_t)(m->nhistory + m->nplastic));
  s->ctrl = check_numbers((size_t)steps * (size_t)m->nu);
  return s->qpos && s->qvel && s->act && s->mocap && s->history && s->ctrl;
}

void check_stretch_free(CheckStretch *s) {
  free(s->qpos);
  free(s->qvel);
  free(s->act);
  free(s->mocap);
  free(s->history);
  free(s->ctrl);
}

void check_mocap(const mjModel *m, const mjData *d, double *mocap) {
  for (int i = 0; i < m->nmocap; ++i) {
    mju_copy(mocap + 7 * i, d->mocap_pos + 3 * i, 3);
    mju_copy(mocap + 7 * i + 3, d->mocap_quat + 4 * i, 4);
  }
}

void check_stretch_add(CheckStretch *s, const CheckBodies *b) {
  const mjModel *m = b->mj;
  const mjData *d = b->d;
  memcpy(s->ctrl + (size_t)s->steps * (size_t)m->nu, d->ctrl, sizeof(double) * (size_t)m->nu);
  if (s->steps++ > 0) return;
  s->time = d->time;
  mju_copy(s->qpos, d->qpos, (int)m->nq);
  mju_copy(s->qvel, d->qvel, (int)m->nv);
  mju_copy(s->act, d->act, (int)m->na);
  check_mocap(m, d, s->mocap);
  mju_copy(s->history, d->history, (int)m->nhistory);
  mju_copy(s->history + m->nhistory, d->plastic, (int)m->nplastic);
}

// A check of rollouts. Directions are in (ctrl, qpos, qvel, act, history), of the latter samples and rests of hinges
// and slides alone.
typedef struct RolloutCheck {
  const mjModel *m;
  const CheckStretch *from;
  SinewTask *task;
  SinewBackend *backend;
  SinewBatch *kept, *moved;          // one rollout with its derivative; all moves along a direction
  double *time, *qpos, *qvel, *act;  // (MOVES, ..) the start, moved
  double *mocap, *ctrl;              // mocap is not moved
  double *history;                   // (MOVES, nh), nh = nhistory + nplastic
  double *sample;                    // (nh) 1: moved
  double *bar, *direction;           // (size)
  size_t size;                       // of a direction
  bool differentiable;               // the rollout has a derivative
} RolloutCheck;

static SinewBatch *make_batch(const RolloutCheck *c, const SinewModel *model, int capacity, bool gradients,
                              SinewError *err) {
  SinewBatchDef def = sinew_default_batch();
  def.model = model;
  def.task = c->task;
  def.backend = c->backend;
  def.capacity = capacity;
  def.steps = c->from->steps;
  def.gradients = gradients;
  def.max_velocity = 1e6;
  return sinew_batch_create(&def, err);
}

// The samples of a buffer lie behind its mark, cursor and times.
static void mark_samples(RolloutCheck *c, int adr, int n, int dim) {
  for (int k = 0; adr >= 0 && k < n * dim; ++k) c->sample[adr + 2 + n + k] = 1;
}

static SinewStatus open_rollout(RolloutCheck *c, const CheckBodies *b, const CheckStretch *from, const char *text,
                                SinewError *err) {
  const mjModel *m = b->mj;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, na = (size_t)m->na, nu = (size_t)from->steps * (size_t)m->nu,
               nh = (size_t)(m->nhistory + m->nplastic);
  SinewBackendOptions options = sinew_default_backend();
  options.threads = 1;
  *c = (RolloutCheck){.m = m, .from = from, .size = nu + 2 * nv + na + nh};
  if (!(c->task = sinew_task_parse(text, strlen(text), "check.yaml", err)) ||
      !(c->backend = sinew_backend_open("cpu", &options, err)) || !(c->kept = make_batch(c, b->model, 1, true, err)) ||
      !(c->moved = make_batch(c, b->model, MOVES, false, err)))
    return err->status;
  c->time = check_numbers(MOVES);
  c->qpos = check_numbers(MOVES * nq);
  c->qvel = check_numbers(MOVES * nv);
  c->act = check_numbers(MOVES * na);
  c->mocap = check_numbers(MOVES * 7 * (size_t)m->nmocap);
  c->ctrl = check_numbers(MOVES * nu);
  c->history = check_numbers(MOVES * nh);
  c->sample = check_numbers(nh);
  c->bar = check_numbers(c->size);
  c->direction = check_numbers(c->size);
  if (!c->time || !c->qpos || !c->qvel || !c->act || !c->mocap || !c->ctrl || !c->history || !c->sample || !c->bar ||
      !c->direction)
    return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  for (int i = 0; i < m->nactuator; ++i)
    mark_samples(c, m->actuator_historyadr[i], m->actuator_history[2 * i], m->actuator_ctrlnum[i]);
  for (int i = 0; i < m->nsensor; ++i)
    mark_samples(c, m->sensor_historyadr[i], m->sensor_history[2 * i], m->sensor_dim[i]);
  for (int j = 0; j < m->njnt; ++j)
    if (m->jnt_plasticadr[j] >= 0 && m->jnt_type[j] != mjJNT_BALL) c->sample[m->nhistory + m->jnt_plasticadr[j]] = 1;
  return SINEW_OK;
}

static void close_rollout(RolloutCheck *c) {
  double *const arrays[] = {c->time, c->qpos,    c->qvel,   c->act, c->mocap,
                            c->ctrl, c->history, c->sample, c->bar, c->direction};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
  sinew_batch_free(c->moved);
  sinew_batch_free(c->kept);
  sinew_backend_close(c->backend);
  sinew_task_free(c->task);
}

// The derivative of the cost by all that a direction moves.
static SinewStatus differentiate(RolloutCheck *c, SinewError *err) {
  SinewRollouts r = sinew_default_rollouts();
  SinewGradients g = sinew_default_gradients();
  const size_t nv = (size_t)c->m->nv, nu = (size_t)c->from->steps * (size_t)c->m->nu;
  int state = SINEW_ERR_DIVERGED;
  r.count = 1;
  r.steps = c->from->steps;
  r.time = &c->from->time;
  r.qpos = c->from->qpos;
  r.qvel = c->from->qvel;
  r.act = c->from->act;
  r.mocap = c->from->mocap;
  r.history = c->from->history;
  r.ctrl = c->from->ctrl;
  g.ctrl = c->bar;
  g.qpos = g.ctrl + nu;
  g.qvel = g.qpos + nv;
  g.act = g.qvel + nv;
  g.history = g.act + c->m->na;
  g.status = &state;
  SinewStatus status = sinew_batch_rollout(c->kept, &r, err);
  if (status == SINEW_OK) status = sinew_batch_vjp(c->kept, NULL, &g, err);
  c->differentiable = state == SINEW_OK;
  return status;
}

// Puts move k at the start, moved by eps along the direction.
static void move(RolloutCheck *c, int k, double eps) {
  const int nq = (int)c->m->nq, nv = (int)c->m->nv, na = (int)c->m->na, nu = c->from->steps * (int)c->m->nu;
  const double *d = c->direction;
  double *qpos = c->qpos + k * nq;
  c->time[k] = c->from->time;
  memcpy(c->mocap + 7 * k * c->m->nmocap, c->from->mocap, sizeof(double) * 7 * (size_t)c->m->nmocap);
  mju_addScl(c->ctrl + (size_t)k * (size_t)nu, c->from->ctrl, d, eps, nu);
  mju_copy(qpos, c->from->qpos, nq);
  mj_integratePos(c->m, qpos, d + nu, eps);
  mju_addScl(c->qvel + k * nv, c->from->qvel, d + nu + nv, eps, nv);
  mju_addScl(c->act + k * na, c->from->act, d + nu + 2 * nv, eps, na);
  const int nh = (int)(c->m->nhistory + c->m->nplastic);
  for (int i = 0; i < nh; ++i) c->history[k * nh + i] = c->from->history[i] + eps * d[nu + 2 * nv + na + i];
}

// The differences of the cost along the direction, by each step; not finite where a rollout diverges.
static SinewStatus differences(RolloutCheck *c, double difference[MOVES / 2], SinewError *err) {
  static const double eps[MOVES / 2] = {CHECK_FINE, CHECK_COARSE, CHECK_BETWEEN};
  SinewRollouts r = sinew_default_rollouts();
  double cost[MOVES];
  for (int k = 0; k < MOVES; ++k) move(c, k, k % 2 ? -eps[k / 2] : eps[k / 2]);
  r.count = MOVES;
  r.steps = c->from->steps;
  r.time = c->time;
  r.qpos = c->qpos;
  r.qvel = c->qvel;
  r.act = c->act;
  r.mocap = c->mocap;
  r.history = c->history;
  r.ctrl = c->ctrl;
  r.cost = cost;
  const SinewStatus status = sinew_batch_rollout(c->moved, &r, err);
  for (int i = 0; i < MOVES / 2; ++i) difference[i] = (cost[2 * i] - cost[2 * i + 1]) / (2 * eps[i]);
  return status;
}

static double along_direction(const RolloutCheck *c) {
  double sum = 0;
  for (size_t i = 0; i < c->size; ++i) sum += c->bar[i] * c->direction[i];
  return sum;
}

// Judges the directions: derivatives of ours beside differences.
static void judge(const double *ours, double (*ref)[MOVES / 2], CheckGradientReport *r) {
  double scale = 1e-6;
  for (int k = 0; k < DIRECTIONS; ++k)
    if (isfinite(ref[k][0])) scale = fmax(scale, 1e-6 + fabs(ref[k][0]));
  for (int k = 0; k < DIRECTIONS; ++k) {
    if (!(fabs(ref[k][0] - ref[k][1]) <= CHECK_CERTAIN * scale)) {
      if (!check_extrapolate(&ref[k][0], &ref[k][1], &ref[k][2], 1)) {
        ++r->rollout_skipped;
        continue;
      }
      ++r->rollout_curved;
    }
    ++r->rollout_compared;
    r->rollout_max = sn_larger(r->rollout_max, fabs(ours[k] - ref[k][0]) / scale);
  }
}

static void draw_direction(RolloutCheck *c, uint64_t *rng) {
  const size_t nh = (size_t)(c->m->nhistory + c->m->nplastic), before = c->size - nh;
  for (size_t i = 0; i < c->size; ++i) c->direction[i] = sn_mujoco_uniform(rng);
  for (size_t i = 0; i < nh; ++i) c->direction[before + i] *= c->sample[i];
}

static SinewStatus compare_rollouts(RolloutCheck *c, CheckBodies *b, CheckGradientReport *r, SinewError *err) {
  double ours[DIRECTIONS], ref[DIRECTIONS][MOVES / 2];
  SinewStatus status = differentiate(c, err);
  for (int k = 0; k < DIRECTIONS && status == SINEW_OK; ++k) {
    sn_progress_terminal("a rollout of %d steps, direction %d of %d", r->rollout_steps, k + 1, DIRECTIONS);
    draw_direction(c, &b->rng);
    ours[k] = c->differentiable ? along_direction(c) : (double)NAN;
    status = differences(c, ref[k], err);
  }
  if (status == SINEW_OK) judge(ours, ref, r);
  return status;
}

static bool probe(const mjModel *m, char *text, size_t size) {
  SnProbeSizes sizes = {.nv = (int)m->nv, .na = (int)m->na, .nu = (int)m->nu, .ntendon = (int)m->ntendon};
  for (int j = 0; j < m->njnt; ++j) sizes.joints += m->jnt_type[j] != mjJNT_FREE;
  return sn_probe_text(&sizes, text, size);
}

SinewStatus check_rollout(CheckBodies *b, CheckStretch *stretch, CheckGradientReport *r, SinewError *err) {
  enum { SHORTEST = 4 };
  char text[1000];
  if (stretch->steps == 0 || !probe(b->mj, text, sizeof text)) return SINEW_OK;
  for (;; stretch->steps /= 2) {
    RolloutCheck c;
    r->rollout_steps = stretch->steps;
    r->rollout_compared = r->rollout_skipped = r->rollout_curved = 0;
    SinewStatus status = open_rollout(&c, b, stretch, text, err);
    if (status == SINEW_OK) status = compare_rollouts(&c, b, r, err);
    close_rollout(&c);
    if (status != SINEW_OK || 4 * r->rollout_skipped <= DIRECTIONS || stretch->steps < 2 * SHORTEST) return status;
  }
}

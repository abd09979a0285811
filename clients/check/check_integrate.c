// Motions by chosen steps against fine steps of MuJoCo's Runge-Kutta integrator, and their derivatives.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/check/check.h"
#include "clients/reference/mirror.h"
#include "clients/reference/mujoco_drive.h"

enum { OUTPUTS = 4, DIRECTIONS = 4, FINEST = 32 };  // FINEST: steps of MuJoCo for one of the model's

#define MOST_UNCERTAIN 1e-3  // error of MuJoCo's own steps beyond which a motion says nothing

// A check of a motion. A state has nq + nv + na numbers, a direction 2 nv + na + nu.
typedef struct MotionCheck {
  mjModel *mj;  // RK4, with the finest step
  mjData *d;
  SinewModel *model;
  double seconds, time[OUTPUTS];
  double *start, *ctrl;                // the state at the start, and controls that are held
  double *coarse, *reference, *moved;  // (OUTPUTS, state)
  double *difference;                  // (nv) scratch
  double *weight;                      // (2 nv + na) of the last state in the scalar whose slope is taken
  double *bar, *direction;             // (2 nv + na + nu)
  int state, size;
} MotionCheck;

static void close_motion(MotionCheck *c) {
  double *const arrays[] = {c->start,      c->ctrl,   c->coarse, c->reference, c->moved,
                            c->difference, c->weight, c->bar,    c->direction};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) free(arrays[i]);
  sinew_model_free(c->model);
  if (c->d) mj_deleteData(c->d);
  if (c->mj) mj_deleteModel(c->mj);
}

static SinewStatus open_motion(MotionCheck *c, const CheckBodies *b, int steps, SinewError *err) {
  const mjModel *m = b->mj;
  const size_t state = (size_t)(m->nq + m->nv + m->na), size = (size_t)(2 * m->nv + m->na + m->nu);
  *c = (MotionCheck){.mj = mj_copyModel(NULL, m), .state = (int)state, .size = (int)size};
  if (!c->mj || !(c->d = mj_makeData(c->mj))) return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  c->seconds = steps * m->opt.timestep;
  for (int k = 0; k < OUTPUTS; ++k) c->time[k] = (k + 1) * c->seconds / OUTPUTS;
  c->mj->opt.timestep = m->opt.timestep / FINEST;
  c->mj->opt.disableflags |= mjDSBL_REFSAFE;  // the least time constant of a contact would follow the step
  if (!(c->model = sn_mirror_model(c->mj, err))) return err->status;
  c->mj->opt.integrator = mjINT_RK4;
  c->start = check_numbers(state);
  c->ctrl = check_numbers((size_t)m->nu);
  c->coarse = check_numbers(OUTPUTS * state);
  c->reference = check_numbers(OUTPUTS * state);
  c->moved = check_numbers(OUTPUTS * state);
  c->difference = check_numbers((size_t)m->nv);
  c->weight = check_numbers(size);
  c->bar = check_numbers(size);
  c->direction = check_numbers(size);
  return c->start && c->ctrl && c->coarse && c->reference && c->moved && c->difference && c->weight && c->bar &&
                 c->direction
             ? SINEW_OK
             : api_fail(err, SINEW_ERR_MEMORY, "out of memory");
}

// Takes the start from the checker's MuJoCo.
static void take_start(MotionCheck *c, const mjData *d) {
  const mjModel *m = c->mj;
  mju_copy(c->start, d->qpos, (int)m->nq);
  mju_copy(c->start + m->nq, d->qvel, (int)m->nv);
  mju_copy(c->start + m->nq + m->nv, d->act, (int)m->na);
  mju_copy(c->ctrl, d->ctrl, (int)m->nu);
  mju_copy(c->d->mocap_pos, d->mocap_pos, 3 * (int)m->nmocap);
  mju_copy(c->d->mocap_quat, d->mocap_quat, 4 * (int)m->nmocap);
}

// Runs MuJoCo with `fine` steps for one of the model's; states at the outputs, NaN where it diverges.
static void run_mujoco(MotionCheck *c, int fine, double *out) {
  const mjModel *m = c->mj;
  mjData *d = c->d;
  const int nq = (int)m->nq, nv = (int)m->nv, na = (int)m->na;
  const double finest = c->mj->opt.timestep;
  mju_copy(d->qpos, c->start, nq);
  mju_copy(d->qvel, c->start + nq, nv);
  mju_copy(d->act, c->start + nq + nv, na);
  mju_copy(d->ctrl, c->ctrl, (int)m->nu);
  mju_zero(d->qacc_warmstart, nv);
  memset(d->warning, 0, sizeof d->warning);
  c->mj->opt.timestep = finest * FINEST / fine;
  const int each = (int)lround(c->seconds / c->mj->opt.timestep / OUTPUTS);
  for (int k = 0; k < OUTPUTS; ++k) {
    for (int i = 0; i < each; ++i) mj_step(m, d);
    double *to = out + k * c->state;
    mju_copy(to, d->qpos, nq);
    mju_copy(to + nq, d->qvel, nv);
    mju_copy(to + nq + nv, d->act, na);
  }
  c->mj->opt.timestep = finest;
  const mjWarningStat *warn = d->warning;
  if (warn[mjWARN_BADQPOS].number || warn[mjWARN_BADQVEL].number || warn[mjWARN_BADQACC].number) out[0] = (double)NAN;
}

// The largest error of the motion a against b: of positions, velocities, activations, each in units of its size.
static double motion_error(MotionCheck *c, const double *a, const double *b) {
  const int nq = (int)c->mj->nq, nv = (int)c->mj->nv, na = (int)c->mj->na;
  double worst = 0;
  for (int k = 0; k < OUTPUTS; ++k, a += c->state, b += c->state) {
    mj_differentiatePos(c->mj, c->difference, 1, b, a);
    const struct {
      const double *off, *of;
      int n, m;
    } part[] = {{c->difference, b, nv, nq}, {a + nq, b + nq, nv, nv}, {a + nq + nv, b + nq + nv, na, na}};
    for (int p = 0; p < 3; ++p) {
      double off = 0, size = 1e-6;
      for (int i = 0; i < part[p].n; ++i)
        off = sn_larger(off, fabs(p ? part[p].off[i] - part[p].of[i] : part[p].off[i]));
      for (int i = 0; i < part[p].m; ++i) size = fmax(size, fabs(part[p].of[i]));
      worst = sn_larger(worst, off / size);
    }
  }
  return worst;
}

static SinewIntegrator *make_integrator(const MotionCheck *c, double tolerance, bool gradients, SinewError *err) {
  SinewIntegratorDef def = sinew_default_integrator();
  def.model = c->model;
  def.rtol = def.atol = tolerance;
  def.gradients = gradients;
  def.max_steps = 1000000;
  return sinew_integrator_create(&def, err);
}

// Our motion from the start moved by eps along the direction, states at the outputs into c->moved. A run that does not
// come to its end fails with its reason.
static SinewStatus run_ours(MotionCheck *c, SinewIntegrator *integrator, double eps, SinewIntegrationReport *report,
                            SinewError *err) {
  const mjModel *m = c->mj;
  const int nq = (int)m->nq, nv = (int)m->nv, na = (int)m->na, nu = (int)m->nu;
  const double zero = 0, *along = c->direction;
  double *from = check_numbers((size_t)c->state + (size_t)nu), *out = check_numbers(OUTPUTS * (size_t)c->state), *mocap;
  mocap = check_numbers(7 * (size_t)m->nmocap);
  if (!from || !out || !mocap) {
    free(from);
    free(out);
    free(mocap);
    return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  }
  mju_copy(from, c->start, c->state);
  mj_integratePos(m, from, along, eps);
  mju_addToScl(from + nq, along + nv, eps, nv + na);
  mju_addScl(from + c->state, c->ctrl, along + 2 * nv + na, eps, nu);
  check_mocap(m, c->d, mocap);
  SinewIntegration run = sinew_default_integration();
  const SinewState state = {.qpos = from, .qvel = from + nq, .act = from + nq + nv, .mocap = mocap};
  run.duration = c->seconds;
  run.nknot = 1;
  run.knot_time = &zero;
  run.knot = from + c->state;
  run.nout = OUTPUTS;
  run.out_time = c->time;
  run.out_qpos = out;
  run.out_qvel = out + OUTPUTS * nq;
  run.out_act = out + OUTPUTS * (nq + nv);
  SinewStatus status = sinew_integrator_run(integrator, &state, &run, report, err);
  if (status == SINEW_OK && report->end != SINEW_END_DONE)
    status = api_fail(err, SINEW_ERR_LIMIT, "integration ends at %.3g s: %s", report->reached,
                      sinew_integration_end_text(report->end));
  for (int k = 0; k < OUTPUTS; ++k) {
    mju_copy(c->moved + k * c->state, out + k * nq, nq);
    mju_copy(c->moved + k * c->state + nq, run.out_qvel + k * nv, nv);
    mju_copy(c->moved + k * c->state + nq + nv, run.out_act + k * na, na);
  }
  free(from);
  free(out);
  free(mocap);
  return status;
}

// The scalar whose slope is taken: the weighted distance of the last state from that of the reference.
static double scalar(MotionCheck *c) {
  const int nq = (int)c->mj->nq, nv = (int)c->mj->nv, na = (int)c->mj->na;
  const double *at = c->moved + (OUTPUTS - 1) * c->state, *from = c->reference + (OUTPUTS - 1) * c->state;
  mj_differentiatePos(c->mj, c->difference, 1, from, at);
  double sum = mju_dot(c->weight, c->difference, nv);
  for (int i = 0; i < nv + na; ++i) sum += c->weight[nv + i] * (at[nq + i] - from[nq + i]);
  return sum;
}

// Slopes of the scalar by all that a direction moves, into c->bar, from the integrator's last run.
static SinewStatus slopes(MotionCheck *c, SinewIntegrator *integrator, SinewError *err) {
  const int nv = (int)c->mj->nv, na = (int)c->mj->na;
  double *out = check_numbers(OUTPUTS * (size_t)(2 * nv + na));
  if (!out) return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  SinewIntegrationBars bars = sinew_default_integration_bars();
  bars.coordinates = SINEW_TANGENT;
  mju_copy(out + (OUTPUTS - 1) * nv, c->weight, nv);
  mju_copy(out + (2 * OUTPUTS - 1) * nv, c->weight + nv, nv);
  mju_copy(out + 2 * OUTPUTS * nv + (OUTPUTS - 1) * na, c->weight + 2 * nv, na);
  bars.out_qpos = out;
  bars.out_qvel = out + OUTPUTS * nv;
  bars.out_act = out + 2 * OUTPUTS * nv;
  bars.qpos = c->bar;
  bars.qvel = c->bar + nv;
  bars.act = c->bar + 2 * nv;
  bars.knot = c->bar + 2 * nv + na;
  const SinewStatus status = sinew_integrator_vjp(integrator, &bars, err);
  free(out);
  return status;
}

// Compares the slopes of the integrator's last run, from the start itself, with differences of runs at 1e-11.
static SinewStatus compare_slopes(MotionCheck *c, CheckBodies *b, SinewIntegrator *integrator,
                                  CheckIntegrationReport *r, SinewError *err) {
  static const double eps[2] = {1e-6, 1e-5};
  double ours[DIRECTIONS], ref[DIRECTIONS][2], scale = 1e-6;
  SinewIntegrationReport report = sinew_default_integration_report();
  memcpy(c->reference, c->moved, sizeof *c->moved * OUTPUTS * (size_t)c->state);
  for (int i = 0; i < 2 * c->mj->nv + c->mj->na; ++i) c->weight[i] = sn_mujoco_uniform(&b->rng);
  SinewStatus status = slopes(c, integrator, err);
  SinewIntegrator *tight = status == SINEW_OK ? make_integrator(c, 1e-11, false, err) : NULL;
  if (status == SINEW_OK && !tight) status = err->status;
  for (int k = 0; k < DIRECTIONS && status == SINEW_OK; ++k) {
    for (int i = 0; i < c->size; ++i) c->direction[i] = sn_mujoco_uniform(&b->rng);
    ours[k] = mju_dot(c->bar, c->direction, c->size);
    for (int e = 0; e < 2 && status == SINEW_OK; ++e) {
      double value[2] = {0};
      for (int side = 0; side < 2 && status == SINEW_OK; ++side) {
        sn_progress_terminal("a motion of %.3g s, its slopes: run %d of %d", c->seconds, 4 * k + 2 * e + side + 1,
                             4 * DIRECTIONS);
        status = run_ours(c, tight, side ? -eps[e] : eps[e], &report, err);
        value[side] = scalar(c);
      }
      ref[k][e] = (value[0] - value[1]) / (2 * eps[e]);
    }
    if (isfinite(ref[k][0])) scale = fmax(scale, fabs(ref[k][0]));
  }
  sinew_integrator_free(tight);
  for (int k = 0; k < DIRECTIONS && status == SINEW_OK; ++k) {
    if (!(fabs(ref[k][0] - ref[k][1]) <= 1e-4 * scale)) {
      ++r->slopes_skipped;
      continue;
    }
    ++r->slopes_compared;
    r->slope_error = sn_larger(r->slope_error, fabs(ours[k] - ref[k][0]) / scale);
  }
  return status;
}

static SinewStatus compare_motions(MotionCheck *c, CheckBodies *b, CheckIntegrationReport *r, SinewError *err) {
  static const double tolerance[CHECK_TOLERANCES] = {1e-4, 1e-6, 1e-8};
  SinewStatus status = SINEW_OK;
  sn_progress_terminal("a motion of %.3g s by MuJoCo's fine steps", c->seconds);
  run_mujoco(c, FINEST / 2, c->coarse);
  run_mujoco(c, FINEST, c->reference);
  r->uncertainty = motion_error(c, c->coarse, c->reference);
  for (int k = 0; k < CHECK_TOLERANCES && status == SINEW_OK; ++k) {
    CheckIntegrationRow *row = r->row + k;
    const bool last = k == CHECK_TOLERANCES - 1;
    sn_progress_terminal("a motion of %.3g s at tolerance %.0e", c->seconds, tolerance[k]);
    SinewIntegrationReport report = sinew_default_integration_report();
    SinewIntegrator *integrator = make_integrator(c, tolerance[k], last, err);
    status = integrator ? run_ours(c, integrator, 0, &report, err) : err->status;
    if (status == SINEW_OK) {
      *row = (CheckIntegrationRow){tolerance[k], motion_error(c, c->moved, c->reference), report.accepted,
                                   report.rejected, report.evaluations};
      if (last) status = compare_slopes(c, b, integrator, r, err);
    }
    sinew_integrator_free(integrator);
  }
  return status;
}

// Compares a motion of so many steps.
static SinewStatus check_steps(CheckBodies *b, int steps, uint64_t seed, CheckIntegrationReport *r, SinewError *err) {
  MotionCheck c;
  *r = (CheckIntegrationReport){.seconds = steps * b->mj->opt.timestep};
  SinewStatus status = open_motion(&c, b, steps, err);
  if (status == SINEW_OK) {
    check_start_moving(b, seed);
    sn_mujoco_controls(b->mj, b->d, seed, 0.1, NULL);
    take_start(&c, b->d);
    status = compare_motions(&c, b, r, err);
  }
  close_motion(&c);
  return status;
}

SinewStatus check_integration(CheckBodies *b, int steps, uint64_t seed, CheckIntegrationReport *r, SinewError *err) {
  steps = (steps + OUTPUTS - 1) / OUTPUTS * OUTPUTS;  // outputs are ends of steps
  for (;; steps = (steps / 2 + OUTPUTS - 1) / OUTPUTS * OUTPUTS) {
    const SinewStatus status = check_steps(b, steps, seed, r, err);
    if (status != SINEW_OK || r->uncertainty <= MOST_UNCERTAIN || steps <= OUTPUTS) return status;
  }
}

// What was compared is right.
static bool is_right(const CheckIntegrationReport *r) {
  return r->row[CHECK_TOLERANCES - 1].error <= 1e-6 + 4 * r->uncertainty && r->slope_error <= 1e-3;
}

bool check_integration_undecided(const CheckIntegrationReport *r) {
  return is_right(r) && !(r->uncertainty <= MOST_UNCERTAIN && 2 * r->slopes_skipped <= DIRECTIONS);
}

bool check_integration_agrees(const CheckIntegrationReport *r) {
  return is_right(r) && !check_integration_undecided(r);
}

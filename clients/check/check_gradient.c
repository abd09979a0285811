// Derivatives of steps against MuJoCo's differences.
#include "clients/check/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/reference/mirror.h"
#include "clients/reference/mujoco_drive.h"

bool check_extrapolate(double *f, const double *c, const double *b, int n) {
  const double share = (CHECK_BETWEEN * CHECK_BETWEEN - CHECK_FINE * CHECK_FINE) /
                       (CHECK_COARSE * CHECK_COARSE - CHECK_FINE * CHECK_FINE);
  double worst = 0, scale = 0;
  for (int i = 0; i < n; ++i) {
    worst = sn_larger(worst, fabs(b[i] - f[i] - share * (c[i] - f[i])));
    scale = fmax(scale, fabs(f[i]));
  }
  if (!(worst <= CHECK_CERTAIN * (scale + 1e-6))) return false;
  for (int i = 0; i < n; ++i)
    f[i] -= (c[i] - f[i]) * CHECK_FINE * CHECK_FINE / (CHECK_COARSE * CHECK_COARSE - CHECK_FINE * CHECK_FINE);
  return true;
}

double *check_numbers(size_t n) { return calloc(n + 1, sizeof(double)); }

// A check of steps. n = 2 nv + na.
typedef struct StepCheck {
  CheckBodies *b;
  double *A, *B;                          // ours (n, n), (n, nu)
  double *A_ref[3], *B_ref[3];            // MuJoCo's with the fine, the coarse and the step between
  double *A_error, *B_error;              // of the compared steps (steps)
  mjtNum *state, *before, *after, *move;  // scratch
  CheckStretch best, now;                 // the longest stretch of compared steps so far, and the present one
  int n, nu;
} StepCheck;

static SinewStatus open_steps(StepCheck *c, CheckBodies *b, int steps, SinewError *err) {
  const mjModel *m = b->mj;
  const size_t nv = (size_t)m->nv, na = (size_t)m->na, n = 2 * nv + na, nu = (size_t)m->nu;
  *c = (StepCheck){.b = b, .n = (int)n, .nu = (int)nu};
  c->A = check_numbers(n * n);
  c->B = check_numbers(n * nu);
  bool ok = c->A && c->B;
  for (int i = 0; i < 3; ++i) {
    c->A_ref[i] = check_numbers(n * n);
    c->B_ref[i] = check_numbers(n * nu);
    ok = ok && c->A_ref[i] && c->B_ref[i];
  }
  c->A_error = check_numbers((size_t)steps);
  c->B_error = check_numbers((size_t)steps);
  c->state = check_numbers((size_t)mj_stateSize(m, mjSTATE_INTEGRATION));
  c->before = check_numbers((size_t)m->nq + nv + na);
  c->after = check_numbers((size_t)m->nq + nv + na);
  c->move = check_numbers(nv);
  ok = ok && c->A_error && c->B_error && c->state && c->before && c->after && c->move &&
       check_stretch_init(&c->best, m, steps) && check_stretch_init(&c->now, m, steps);
  return ok ? SINEW_OK : api_fail(err, SINEW_ERR_MEMORY, "out of memory");
}

static void close_steps(StepCheck *c) {
  free(c->A);
  free(c->B);
  for (int i = 0; i < 3; ++i) {
    free(c->A_ref[i]);
    free(c->B_ref[i]);
  }
  free(c->A_error);
  free(c->B_error);
  free(c->state);
  free(c->before);
  free(c->after);
  free(c->move);
  check_stretch_free(&c->best);
  check_stretch_free(&c->now);
}

// MuJoCo's step from the kept state, with coordinate k of (qpos, qvel, act, ctrl) moved by eps; qpos, qvel, act after
// it.
static void moved_step(StepCheck *c, int k, double eps, double *after) {
  const mjModel *mj = c->b->mj;
  mjData *d = c->b->d;
  const int nv = (int)mj->nv, na = (int)mj->na;
  mj_setState(mj, d, c->state, mjSTATE_INTEGRATION);
  if (k < nv) {
    memset(c->move, 0, sizeof *c->move * (size_t)nv);
    c->move[k] = 1;
    mj_integratePos(mj, d->qpos, c->move, eps);
  } else if (k < 2 * nv) {
    d->qvel[k - nv] += eps;
  } else if (k < 2 * nv + na) {
    d->act[k - 2 * nv] += eps;
  } else {
    d->ctrl[k - 2 * nv - na] += eps;
  }
  mj_step(mj, d);
  memcpy(after, d->qpos, sizeof *after * (size_t)mj->nq);
  memcpy(after + mj->nq, d->qvel, sizeof *after * (size_t)nv);
  memcpy(after + mj->nq + nv, d->act, sizeof *after * (size_t)na);
}

// Computes what mjd_transitionFD does, which takes every integrator but Runge-Kutta and no history buffers: these count
// as constant. It makes no new contacts for another velocity, as those before impact need.
static void step_differences(StepCheck *c, double eps, double *A, double *B) {
  const int nq = (int)c->b->mj->nq, nv = (int)c->b->mj->nv, na = (int)c->b->mj->na;
  for (int k = 0; k < c->n + c->nu; ++k) {
    double *J = k < c->n ? A + k : B + (k - c->n);
    const int cols = k < c->n ? c->n : c->nu;
    moved_step(c, k, -eps, c->before);
    moved_step(c, k, eps, c->after);
    mj_differentiatePos(c->b->mj, c->move, 2 * eps, c->before, c->after);
    for (int i = 0; i < nv; ++i) J[i * cols] = c->move[i];
    for (int i = 0; i < nv + na; ++i) J[(nv + i) * cols] = (c->after[nq + i] - c->before[nq + i]) / (2 * eps);
  }
}

// MuJoCo's A and B at its state, which stays.
static void reference(StepCheck *c, double eps, double *A, double *B) {
  CheckBodies *b = c->b;
  const bool speculative = (b->mj->opt.enableflags & mjENBL_SPECULATIVE) != 0;
  if (b->mj->opt.integrator == mjINT_RK4 || b->mj->nhistory > 0 || b->mj->nplastic > 0 || speculative)
    step_differences(c, eps, A, B);
  else
    mjd_transitionFD(b->mj, b->d, eps, 1, A, c->nu ? B : NULL, NULL, NULL);
  mj_setState(b->mj, b->d, c->state, mjSTATE_INTEGRATION);
}

// max|a - b| / (max|b| + 1e-6), and where. NaN in either gives NaN.
static double error_of(const double *a, const double *b, int n, int *where) {
  double worst = 0, scale = 0;
  for (int i = 0; i < n; ++i) {
    const double e = fabs(a[i] - b[i]);
    if (!(e <= worst) && !isnan(worst)) {
      worst = e;
      if (where) *where = i;
    }
    scale = fmax(scale, fabs(b[i]));
  }
  return worst / (scale + 1e-6);
}

static void add_figure(CheckJacobian *f, double *list, int count, double error, int where, int cols, int step) {
  list[count] = error;
  if (f->step >= 0 && !(error > f->max) && !isnan(error)) return;
  *f = (CheckJacobian){0, error, step, cols ? where / cols : -1, cols ? where % cols : -1};
}

typedef enum Smoothness { SMOOTH, CURVED, NOT_SMOOTH } Smoothness;

// MuJoCo's derivatives at its state into the first of the references.
static Smoothness reference_step(StepCheck *c) {
  const int nA = c->n * c->n, nB = c->n * c->nu;
  reference(c, CHECK_FINE, c->A_ref[0], c->B_ref[0]);
  reference(c, CHECK_COARSE, c->A_ref[1], c->B_ref[1]);
  if (error_of(c->A_ref[1], c->A_ref[0], nA, NULL) <= CHECK_CERTAIN &&
      error_of(c->B_ref[1], c->B_ref[0], nB, NULL) <= CHECK_CERTAIN)
    return SMOOTH;
  reference(c, CHECK_BETWEEN, c->A_ref[2], c->B_ref[2]);
  return check_extrapolate(c->A_ref[0], c->A_ref[1], c->A_ref[2], nA) &&
                 check_extrapolate(c->B_ref[0], c->B_ref[1], c->B_ref[2], nB)
             ? CURVED
             : NOT_SMOOTH;
}

// Compares the step that MuJoCo is about to make; false where it is left out.
static bool compare_step(StepCheck *c, CheckGradientReport *r, int step) {
  CheckBodies *b = c->b;
  const int nA = c->n * c->n, nB = c->n * c->nu;
  mj_getState(b->mj, b->d, c->state, mjSTATE_INTEGRATION);
  const Smoothness smoothness = reference_step(c);
  if (smoothness == NOT_SMOOTH) {
    ++r->steps_skipped;
    return false;
  }
  r->steps_curved += smoothness == CURVED;
  sn_mirror_state(b->data, b->mj, b->d);
  if (sinew_step_jacobian(b->data, c->A, c->B, NULL, NULL, NULL) != SINEW_OK) c->A[0] = NAN;
  int where = 0;
  const double A = error_of(c->A, c->A_ref[0], nA, &where);
  add_figure(&r->A, c->A_error, r->steps_compared, A, where, c->n, step);
  const double B = error_of(c->B, c->B_ref[0], nB, &where);
  add_figure(&r->B, c->B_error, r->steps_compared, B, where, c->nu, step);
  ++r->steps_compared;
  return true;
}

// Whether MuJoCo has given up a state, or lets an activation stand that is beyond what it bounds others by, and the
// engine all.
static bool diverged(const mjModel *m, const mjData *d) {
  for (int i = 0; i < m->na; ++i)
    if (!(fabs(d->act[i]) <= mjMAXVAL)) return true;
  return d->warning[mjWARN_BADQPOS].number || d->warning[mjWARN_BADQVEL].number || d->warning[mjWARN_BADQACC].number;
}

// Whether the slope of actuator i changes with the sign of its input: the integrator discrete has none that would push.
static bool takes_one_side(const mjModel *m, int i) {
  const int gain = m->actuator_gaintype[i];
  return m->opt.integrator == mjINT_DISCRETE && (gain == mjGAIN_AFFINE || gain == mjGAIN_MUSCLE);
}

// Whether something may be exactly where its slope changes at qpos0: an equality, a tendon whose spring is at rest.
static bool rests_at_a_corner(const mjModel *m) {
  bool springs = false;
  for (int t = 0; t < m->ntendon; ++t) springs = springs || m->tendon_stiffness[t] != 0;
  return m->neq > 0 || (springs && m->opt.integrator == mjINT_DISCRETE);
}

// Moves late controls of actuator i inside of their ranges, by a tenth of them at least: MuJoCo starts with samples of
// 0, which is a bound of many, and a clamp has a derivative on each side.
static void leave_bounds(const mjModel *m, mjData *d, int i) {
  const int n = m->actuator_history[2 * i], dim = m->actuator_ctrlnum[i];
  double *sample = d->history + m->actuator_historyadr[i] + 2 + n;  // behind its mark, cursor and times
  for (int k = 0; k < n * dim; ++k) {
    const int u = m->actuator_ctrladr[i] + k % dim;
    const bool limited = m->actuator_ctrllimited[u], muscle = m->actuator_dyntype[i] == mjDYN_MUSCLE;
    double low = limited ? m->actuator_ctrlrange[2 * u] : 0, high = limited ? m->actuator_ctrlrange[2 * u + 1] : 1;
    if (muscle) {
      low = fmax(low, 0);
      high = fmin(high, 1);
    }
    const double inside = 0.1 * (high - low);
    if (takes_one_side(m, i) && sample[k] == 0) sample[k] = inside;
    if (limited || muscle) sample[k] = fmin(fmax(sample[k], low + inside), high - inside);
  }
}

// Starts a drive where a step is smooth. Many models rest where it is not, and without controls they would stay there:
// a joint at the very end of its range, an object that just touches a table, an equality that just holds, a muscle
// without activation, late controls or activations at a bound, a tendon as long as its spring at rest. So all has some
// velocity, equalities and such tendons have moved with it for a while, muscles are active, and joints, activations and
// samples of controls near an end of their range start inside, by up to a third of it.
void check_start_moving(CheckBodies *b, uint64_t seed) {
  const mjModel *mj = b->mj;
  sn_mujoco_start(b->mj, b->d);
  b->rng = seed + 1;
  for (int i = 0; i < mj->nv; ++i) b->d->qvel[i] += 0.1 * sn_mujoco_uniform(&b->rng);
  if (rests_at_a_corner(mj)) mj_integratePos(mj, b->d->qpos, b->d->qvel, 0.05);
  for (int j = 0; j < mj->njnt; ++j) {
    if (!mj->jnt_limited[j] || mj->jnt_type[j] < mjJNT_SLIDE) continue;
    const double *range = mj->jnt_range + 2 * j, width = range[1] - range[0];
    const double inside = (0.18 + 0.15 * sn_mujoco_uniform(&b->rng)) * width;
    double *q = b->d->qpos + mj->jnt_qposadr[j];
    *q = fmin(fmax(*q, range[0] + inside), range[1] - inside);
    b->d->qvel[mj->jnt_dofadr[j]] *= fmin(1, width);
  }
  for (int i = 0; i < mj->nactuator; ++i) {
    const bool muscle = mj->actuator_dyntype[i] == mjDYN_MUSCLE;
    for (int k = 0; k < mj->actuator_actnum[i]; ++k) {
      double *act = b->d->act + mj->actuator_actadr[i] + k;
      if (muscle) *act = 0.2 + 0.1 * sn_mujoco_uniform(&b->rng);
      if (takes_one_side(mj, i) && *act == 0) *act = 0.01;
      if (mj->actuator_actlimited[i]) {
        const double *range = mj->actuator_actrange + 2 * i, inside = 0.1 * (range[1] - range[0]);
        *act = fmin(fmax(*act, range[0] + inside), range[1] - inside);
      }
    }
  }
  for (int i = 0; i < mj->nactuator; ++i)
    if (mj->actuator_history[2 * i] > 0) leave_bounds(mj, b->d, i);
}

// Starts somewhere else: after some steps of another drive, at the first such place where the differences agree. It is
// the last place if none is found soon.
static void start_elsewhere(StepCheck *c, uint64_t seed) {
  enum { PLACES = 8 };
  CheckBodies *b = c->b;
  for (uint64_t place = 0; place < PLACES; ++place) {
    check_start_moving(b, seed + place);
    const int lead = (int)(25 * (1 + sn_mujoco_uniform(&b->rng)));
    for (int k = 0; k < lead && !diverged(b->mj, b->d); ++k) {
      sn_mujoco_controls(b->mj, b->d, seed, k * b->mj->opt.timestep, &b->rng);
      mj_step(b->mj, b->d);
    }
    if (diverged(b->mj, b->d)) check_start_moving(b, seed + place);
    mj_getState(b->mj, b->d, c->state, mjSTATE_INTEGRATION);
    if (reference_step(c) != NOT_SMOOTH) return;
  }
}

// The present stretch ends.
static void end_stretch(StepCheck *c) {
  if (c->now.steps > c->best.steps) {
    const CheckStretch longest = c->now;
    c->now = c->best;
    c->best = longest;
  }
  c->now.steps = 0;
}

// Runs MuJoCo and compares its steps. Uncertain derivatives, as those of a contact of smooth shapes, last: after a step
// without any the run starts again elsewhere.
static void compare_steps(StepCheck *c, int steps, uint64_t seed, CheckGradientReport *r) {
  CheckBodies *b = c->b;
  check_start_moving(b, seed);
  for (int step = 0; step < steps; ++step) {
    sn_progress_terminal("derivatives of step %d of %d", step + 1, steps);
    sn_mujoco_controls(b->mj, b->d, seed, step * b->mj->opt.timestep, &b->rng);
    const bool certain_step = compare_step(c, r, step);
    if (certain_step) check_stretch_add(&c->now, b);
    mj_step(b->mj, b->d);
    if (certain_step && !diverged(b->mj, b->d)) continue;
    end_stretch(c);
    start_elsewhere(c, seed + 1000 * (uint64_t)(step + 1));
  }
  end_stretch(c);
  if (r->steps_compared == 0) return;
  r->A.median = sn_median(c->A_error, r->steps_compared);
  r->B.median = sn_median(c->B_error, r->steps_compared);
}

SinewStatus check_gradient(CheckBodies *b, int steps, uint64_t seed, CheckGradientReport *r, SinewError *err) {
  *r = (CheckGradientReport){.A.step = -1, .B.step = -1};
  StepCheck c;
  SinewStatus status = open_steps(&c, b, steps, err);
  if (status == SINEW_OK) {
    compare_steps(&c, steps, seed, r);
    status = check_rollout(b, &c.best, r, err);
  }
  close_steps(&c);
  return status;
}

// What was compared is right.
static bool is_right(const CheckGradientReport *r) {
  return r->A.median <= 1e-5 && r->B.median <= 1e-5 && r->A.max <= 1e-4 && r->B.max <= 1e-4 && r->rollout_max <= 1e-4;
}

bool check_gradient_undecided(const CheckGradientReport *r) {
  const int steps = r->steps_compared + r->steps_skipped, rollouts = r->rollout_compared + r->rollout_skipped;
  return is_right(r) && (4 * r->steps_skipped > steps || 4 * r->rollout_skipped > rollouts);
}

bool check_gradient_agrees(const CheckGradientReport *r) { return is_right(r) && !check_gradient_undecided(r); }

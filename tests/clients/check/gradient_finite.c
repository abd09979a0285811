// gradient_finite MODEL.xml [COUNT [SEED [cfd]]]: gradients at random states are finite.
//
// States: joints to three times their range, velocities to 100, any activation, controls in and at the ends of their
// range; one in four of these parts is where derivatives are known for trouble instead: reference pose, ends of ranges,
// zero velocity, activations of 0 and 1, controls equal to activations. At each state the adjoint of a step is taken
// with random bars, and the gradient of a rollout of two steps. With "cfd", contacts act from a distance.
// Prints a line; exit status 0 all finite, 1 not, 2 the model is not supported, 3 it cannot be loaded or nothing moves.
#include <stdio.h>
#include <stdlib.h>

#include "clients/reference/mujoco_reference.h"
#include "clients/reference/probe_task.h"
#include "physics/step/step.h"
#include "planner/rollout/gradient.h"

enum { STEPS = 2 };

typedef struct Finite {
  SnOracle o;
  const SnModel *m;
  SnAdjoint a;
  void *memory;
  SnTask *task;
  SnCost *cost;
  SnPool *pool;
  SnGradientWork *work;
  SnGradient g;
  SnGradientSettings settings;
  sn_real *ctrl, *target, *ctrl_bar, *state_bar;
  long bad_steps, bad_rollouts, wild, diverged;  // wild: the step itself is not finite
} Finite;

static double uniform(Finite *f, double low, double high) {
  return low + (high - low) * 0.5 * (1 + sn_oracle_uniform(&f->o));
}
static bool one_in_four(Finite *f) { return uniform(f, 0, 4) < 1; }

static void random_quat(Finite *f, sn_real *q) {
  double s = 0;
  for (int k = 0; k < 4; ++k) {
    q[k] = (sn_real)sn_oracle_uniform(&f->o);
    s += (double)(q[k] * q[k]);
  }
  for (int k = 0; k < 4; ++k) q[k] = s > 1e-9 ? q[k] / (sn_real)sqrt(s) : k == 0;
}

static void random_joint(Finite *f, int j, bool special) {
  const SnModel *m = f->m;
  sn_real *q = f->o.w.qpos + m->jnt_qposadr[j];
  const int type = m->jnt_type[j];
  if (type == SN_JNT_FREE || type == SN_JNT_BALL) {
    if (special) return;
    for (int k = 0; type == SN_JNT_FREE && k < 3; ++k) *q++ += (sn_real)(0.3 * sn_oracle_uniform(&f->o));
    random_quat(f, q);
    return;
  }
  const bool limited = m->jnt_limited[j] != 0;
  const double low = limited ? (double)m->jnt_range[2 * j] : -3, high = limited ? (double)m->jnt_range[2 * j + 1] : 3;
  if (special) {
    const int pick = (int)uniform(f, 0, 3);
    if (limited && pick > 0) *q = (sn_real)(pick == 1 ? low : high);
    return;
  }
  *q = (sn_real)(0.5 * (low + high) + 1.5 * (high - low) * sn_oracle_uniform(&f->o));
}

// A random state of our world, from the reset state.
static void random_state(Finite *f) {
  const SnModel *m = f->m;
  SnWorld *w = &f->o.w;
  sn_world_reset(m, w);
  const bool pose = one_in_four(f);
  for (int j = 0; j < m->njnt; ++j) random_joint(f, j, pose || uniform(f, 0, 20) < 1);
  const double speed = one_in_four(f) ? 0 : one_in_four(f) ? 1 : 100;
  for (int i = 0; i < m->nv; ++i) w->qvel[i] = (sn_real)(speed * sn_oracle_uniform(&f->o));
  const bool edge = one_in_four(f);
  for (int i = 0; i < m->na; ++i) w->act[i] = (sn_real)(edge ? (uniform(f, 0, 2) < 1) : uniform(f, 0, 1));
  const bool follow = one_in_four(f);
  for (int i = 0; i < m->nactuator; ++i) {
    const int u = m->actuator_ctrladr[i];
    const bool limited = m->actuator_ctrllimited[u] != 0;
    const double low = limited ? (double)m->actuator_ctrlrange[2 * u] : -1;
    const double high = limited ? (double)m->actuator_ctrlrange[2 * u + 1] : 1;
    w->ctrl[u] = (sn_real)(one_in_four(f) ? (uniform(f, 0, 2) < 1 ? low : high) : uniform(f, low, high));
    if (follow && m->actuator_actnum[i]) w->ctrl[u] = w->act[m->actuator_actadr[i]];
  }
  for (int i = 0; i < 3 * m->nmocap; ++i) w->mocap_pos[i] += (sn_real)(0.3 * sn_oracle_uniform(&f->o));
}

static bool all_finite(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (!isfinite(x[i])) return false;
  return true;
}

// The adjoint of the step at the world's state. False when it is not finite though the step is.
static bool step_is_finite(Finite *f) {
  const SnModel *m = f->m;
  SnOracle *o = &f->o;
  SnAdjoint *a = &f->a;
  o->w.cfd[0] = sn_cfd(&f->settings.cfd);
  sn_forward(m, &o->w, &o->lane);
  if (!all_finite(o->w.qacc, m->nv)) {
    ++f->wild;
    return true;
  }
  for (int i = 0; i < m->nv; ++i) a->qpos_next_bar[i] = (sn_real)sn_oracle_uniform(o);
  for (int i = 0; i < m->nv; ++i) a->qvel_next_bar[i] = (sn_real)sn_oracle_uniform(o);
  for (int i = 0; i < m->na; ++i) a->act_next_bar[i] = (sn_real)sn_oracle_uniform(o);
  sn_adjoint_clear(m, a, &o->lane);
  sn_step_vjp(m, &o->w, a, &o->lane);
  sn_position_vjp(m, &o->w, a, &o->lane);
  return all_finite(a->qpos_bar, m->nv) && all_finite(a->qvel_bar, m->nv) && all_finite(a->act_bar, m->na) &&
         all_finite(a->ctrl_bar, m->nu) && all_finite(a->mocap_bar, 6 * m->nmocap);
}

static bool rollout_is_finite(Finite *f) {
  const SnModel *m = f->m;
  const SnWorld *w = &f->o.w;
  SnGradient *g = &f->g;
  for (int t = 0; t < STEPS; ++t) memcpy(f->ctrl + t * m->nu, w->ctrl, sizeof *f->ctrl * (size_t)m->nu);
  g->state = (SnState){
      .qpos = w->qpos, .qvel = w->qvel, .act = w->act, .mocap_pos = w->mocap_pos, .mocap_quat = w->mocap_quat};
  g->status = SN_GRADIENT_PENDING;
  SnGradientBatch batch = {.settings = f->settings, .item = g, .count = 1};
  const SnClock clock = sn_clock_monotonic();
  sn_gradient_run(f->work, &batch, &clock, INFINITY);
  f->diverged += g->status == SN_GRADIENT_DIVERGED;
  if (g->status == SN_GRADIENT_UNBOUNDED) return false;
  return all_finite(g->ctrl_bar, STEPS * m->nu) && all_finite(g->qpos_bar, m->nv) && all_finite(g->qvel_bar, m->nv) &&
         all_finite(g->act_bar, m->na) && isfinite(g->norm);
}

// Writes the state of the first failure, so that it can be looked at.
static void show(const Finite *f, const char *what, long sample) {
  const SnModel *m = f->m;
  const SnWorld *w = &f->o.w;
  fprintf(stderr, "%s not finite at sample %ld\nqpos", what, sample);
  for (int i = 0; i < m->nq; ++i) fprintf(stderr, " %.17g", (double)w->qpos[i]);
  fprintf(stderr, "\nqvel");
  for (int i = 0; i < m->nv; ++i) fprintf(stderr, " %.17g", (double)w->qvel[i]);
  fprintf(stderr, "\nact");
  for (int i = 0; i < m->na; ++i) fprintf(stderr, " %.17g", (double)w->act[i]);
  fprintf(stderr, "\nctrl");
  for (int i = 0; i < m->nu; ++i) fprintf(stderr, " %.17g", (double)w->ctrl[i]);
  fprintf(stderr, "\n");
}

static SnCode open_finite(Finite *f, const char *model, SnError *err) {
  mjModel *mj = sn_oracle_read_file(model, err);
  const SnCode code = mj ? sn_oracle_open(&f->o, mj, err) : SN_ERR_FORMAT;
  if (code != SN_OK) return code;
  const SnModel *m = f->m = f->o.m;
  char text[1000];
  if (!sn_probe_task(m, text, sizeof text)) return sn_fail(err, SN_ERR_ARGUMENT, "nothing in the model moves");
  if (!(f->task = sn_task_parse(text, strlen(text), "finite.yaml", err))) return err->code;
  if (!(f->cost = sn_cost_create(f->task, m, err))) return err->code;
  if (!(f->pool = sn_pool_create(1, err))) return err->code;
  if (!(f->work = sn_gradient_create(m, f->cost, STEPS, 1, SN_GRADIENT_KEEP, f->pool, err))) return err->code;
  const size_t nv = (size_t)m->nv, nu = (size_t)m->nu, na = (size_t)m->na;
  f->memory = aligned_alloc(64, (sn_adjoint_size(m) + 63) / 64 * 64);
  f->ctrl = calloc(STEPS * nu + 1, sizeof *f->ctrl);
  f->ctrl_bar = calloc(STEPS * nu + 1, sizeof *f->ctrl_bar);
  f->target = calloc((STEPS + 1) * (size_t)f->cost->ntarget + 1, sizeof *f->target);
  f->state_bar = calloc(2 * nv + na + 1, sizeof *f->state_bar);
  if (!f->memory || !f->ctrl || !f->ctrl_bar || !f->target || !f->state_bar)
    return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_adjoint_init(m, &f->a, f->memory);
  sn_cost_schedule(f->cost, 0, (double)m->opt.timestep, STEPS + 1, f->target);
  f->g = (SnGradient){.ctrl = f->ctrl,
                      .target = f->target,
                      .nstep = STEPS,
                      .max_velocity = 1e9,
                      .ctrl_bar = f->ctrl_bar,
                      .qpos_bar = f->state_bar,
                      .qvel_bar = f->state_bar + nv,
                      .act_bar = f->state_bar + 2 * nv};
  return SN_OK;
}

static void close_finite(Finite *f) {
  sn_gradient_free(f->work);
  sn_pool_free(f->pool);
  sn_cost_free(f->cost);
  sn_task_free(f->task);
  free(f->memory);
  free(f->ctrl);
  free(f->ctrl_bar);
  free(f->target);
  free(f->state_bar);
  sn_oracle_free(&f->o);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: gradient_finite MODEL.xml [COUNT [SEED [cfd]]]\n");
    return 3;
  }
  const long count = argc > 2 ? strtol(argv[2], NULL, 10) : 100;
  const long seed = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
  static Finite f;
  SnError err = {0};
  const SnCode code = open_finite(&f, argv[1], &err);
  if (code != SN_OK) {
    printf("%s: %s: %s\n", argv[1], code == SN_ERR_UNSUPPORTED ? "not supported" : "cannot be tested", err.text);
    close_finite(&f);
    return code == SN_ERR_UNSUPPORTED ? 2 : 3;
  }
  f.settings = sn_default_gradient_settings();
  if (argc > 4)
    f.settings.cfd = (SnCfdSettings){
        .on = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(1.0), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  f.o.rng = (uint64_t)seed;
  for (long i = 0; i < count; ++i) {
    random_state(&f);
    if (!step_is_finite(&f) && f.bad_steps++ == 0) show(&f, "adjoint of a step", i);
    if (!rollout_is_finite(&f) && f.bad_rollouts++ == 0) show(&f, "gradient of a rollout", i);
  }
  const bool bad = f.bad_steps + f.bad_rollouts > 0;
  printf(
      "%s: %s: seed %ld, %ld states: %ld steps and %ld rollouts not finite; %ld steps that are not finite "
      "themselves, %ld rollouts that diverged\n",
      argv[1], bad ? "NOT FINITE" : "finite", seed, count, f.bad_steps, f.bad_rollouts, f.wild, f.diverged);
  close_finite(&f);
  return bad;
}

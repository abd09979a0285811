// Springs that yield: chained steps against MuJoCo, what resets and keyframes leave, the adjoint against differences,
// derivatives by what springs bear, what is refused.
#include <stdio.h>
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/model/model_bar.h"
#include "physics/sensor/sensor.h"
#include "physics/step/horizon.h"
#include "physics/step/step.h"
#include "tests/support/model_refusals.h"
#include "tests/support/plastic_model.h"
#include "tests/support/step_fixture.h"
#include "tests/support/tolerance.h"

static const struct {
  const char *name, *xml;
} kModels[] = {{"Euler", SN_PLASTIC_MODEL("Euler", "")},
               {"implicitfast", SN_PLASTIC_MODEL("implicitfast", "")},
               {"implicit", SN_PLASTIC_MODEL("implicit", "")},
               {"no springs", SN_PLASTIC_MODEL("Euler", "<flag spring='disable'/>")}};
enum { MODELS = sizeof kModels / sizeof *kModels };

// Of the rests (14): the ball joint's first number, and that of the rope, which stays 0 while the rope is pulled.
enum { BALL = 3, ROPE = 10, NEXT = 14 };

static void draw_controls(SnOracle *o) {
  for (int i = 0; i < o->mj->nu; ++i) o->d->ctrl[i] = sn_oracle_uniform(o);
}

static void compare(const SnOracle *o, const char *name, int step) {
  char text[100];
  snprintf(text, sizeof text, "%s, step %d: plastic", name, step);
  sn_oracle_check(text, sn_plastic(o->m, o->w.past), o->d->plastic, o->m->nplastic, SN_TOL(1e-8, 1e-2));
  snprintf(text, sizeof text, "%s, step %d: qvel", name, step);
  sn_oracle_check(text, o->w.qvel, o->d->qvel, o->m->nv, SN_TOL(1e-8, 5e-2));
}

// Both engines go their own ways from one state; every rest moves where springs are on, none where they are off.
static void chained(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, kModels[i].xml);
    assert_int_equal(o.m->nplastic, NEXT);
    sn_oracle_copy_state(&o);
    double first[NEXT];
    mju_copy(first, o.d->plastic, NEXT);
    for (int step = 0; step < 300; ++step) {
      if (step % 25 == 0) draw_controls(&o);
      for (int k = 0; k < o.m->nu; ++k) o.w.ctrl[k] = (sn_real)o.d->ctrl[k];
      sn_step(o.m, &o.w, &o.lane);
      mj_step(o.mj, o.d);
      if (step % 20 == 19) compare(&o, kModels[i].name, step);
    }
    for (int k = 0; k < NEXT; ++k)
      if (k != ROPE && (o.d->plastic[k] == first[k]) != (i == 3)) fail_msg("%s: rest %d", kModels[i].name, k);
    sn_oracle_free(&o);
  }
}

static void resets(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_string(&o, kModels[0].xml);
  const int n = o.m->nplastic;
  for (int key = 0; key < 2; ++key) {
    for (int i = 0; i < sn_past_size(o.m); ++i) o.w.past[i] = 7;
    if (key) {
      for (int i = 0; i < n; ++i)
        if (i < 3) o.m->key_plastic[i] = (sn_real)(o.mj->key_plastic[i] = 0.25 * i);
      mj_resetDataKeyframe(o.mj, o.d, 0);
      sn_world_reset_key(o.m, &o.w, 0);
    } else {
      mj_resetData(o.mj, o.d);
      sn_world_reset(o.m, &o.w);
    }
    sn_oracle_check("plastic after a reset", sn_plastic(o.m, o.w.past), o.d->plastic, n, SN_TOL(1e-15, 1e-6));
  }
  int bad;
  assert_true(sn_past_good(o.m, o.w.past, &bad));
  sn_real *rest = sn_plastic(o.m, o.w.past);
  rest[8] = rest[9] + 1;
  assert_false(sn_past_good(o.m, o.w.past, &bad));
  assert_int_equal(bad, 8);
  rest[8] = rest[9];
  rest[3] = 2;
  assert_false(sn_past_good(o.m, o.w.past, &bad));
  assert_int_equal(bad, 3);
  rest[3] = (sn_real)NAN;
  assert_false(sn_past_good(o.m, o.w.past, &bad));
  sn_oracle_free(&o);
}

// ---- the adjoint ----

enum { TURNS = NEXT - 1 };  // ways in which rests move

// A state that MuJoCo has come to, so that springs have yielded, and that goes on in any direction.
static bool sample_state(void *context) {
  SnGradWorld *g = context;
  SnOracle *o = g->o;
  mj_resetData(o->mj, o->d);
  for (int round = 0; round < 3; ++round) {
    draw_controls(o);
    for (int step = 0; step < 20 + sn_oracle_pick(o, 20); ++step) mj_step(o->mj, o->d);
  }
  for (int i = 0; i < o->mj->nv; ++i) o->d->qvel[i] += 0.5 * sn_oracle_uniform(o);
  draw_controls(o);
  sn_grad_world_sample(g);
  return true;
}

// The rope's 0 is no number that moves: it says how the rope yields.
static bool stays(const SnGradWorld *g, int k) { return k == ROPE && g->past[g->m->nhistory + k] == 0; }

// dx goes on with how the rests move, that of the ball joint by a small turn.
static void move(SnGradWorld *g, const double *dx) {
  sn_real *rest = sn_plastic(g->m, g->w.past), turn[3];
  sn_grad_world_move(g, dx);
  if (!dx) return;
  dx += sn_grad_world_nx(g);
  for (int k = 0; k < BALL; ++k) rest[k] += (sn_real)dx[k];
  for (int k = 0; k < 3; ++k) turn[k] = (sn_real)dx[BALL + k];
  sn_quatintegrate(rest + BALL, turn, 1);
  for (int k = BALL + 4; k < NEXT; ++k)
    if (!stays(g, k)) rest[k] += (sn_real)dx[k - 1];
}

static bool forward(void *context, const double *dx, double *y) {
  SnGradWorld *g = context;
  move(g, dx);
  sn_step(g->m, &g->w, &g->lane);
  for (int i = 0; i < g->m->nv; ++i) *y++ = (double)g->w.qvel[i];
  for (int i = 0; i < g->m->nq; ++i) *y++ = (double)g->w.qpos[i];
  for (int k = 0; k < NEXT; ++k) *y++ = (double)sn_plastic(g->m, g->w.past)[k];
  return true;
}

// The bar of a small turn of the unit quaternion q from those of its numbers.
static void turn_bar(const sn_real *q, const sn_real *bar, sn_real turn[3]) {
  sn_real inverse[4], product[4];
  sn_negquat(inverse, q);
  sn_mulquat(product, inverse, bar);
  sn_scale3(turn, product + 1, SN_R(0.5));
}

// The bars of the next positions, those of the ball joint by its turn.
static void bar_positions(SnGradWorld *g, const double *ybar) {
  sn_real *bar = g->a.qpos_next_bar, quat[4];
  for (int k = 0; k < 4; ++k) quat[k] = (sn_real)ybar[BALL + k];
  sn_step(g->m, &g->w, &g->lane);
  for (int k = 0; k < BALL; ++k) bar[k] = (sn_real)ybar[k];
  turn_bar(g->w.qpos + BALL, quat, bar + BALL);
  bar[BALL + 3] = (sn_real)ybar[BALL + 4];
}

static void back(SnGradWorld *g, const double *ybar) {
  const SnModel *m = g->m;
  sn_adjoint_clear(m, &g->a, &g->lane);
  move(g, NULL);
  bar_positions(g, ybar + m->nv);
  move(g, NULL);
  sn_forward(m, &g->w, &g->lane);
  for (int i = 0; i < m->nv; ++i) g->a.qvel_next_bar[i] = (sn_real)*ybar++;
  ybar += m->nq;
  for (int k = 0; k < NEXT; ++k) g->a.past_next_bar[k] = (sn_real)*ybar++;
  sn_step_vjp(m, &g->w, &g->a, &g->lane);
  sn_position_vjp(m, &g->w, &g->a, &g->lane);
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  SnGradWorld *g = context;
  sn_real turn[3];
  back(g, ybar);
  sn_grad_world_result(g, xbar);
  xbar += sn_grad_world_nx(g);
  for (int k = 0; k < BALL; ++k) xbar[k] += (double)g->a.past_bar[k];
  turn_bar(g->w.past + BALL, g->a.past_bar + BALL, turn);
  for (int k = 0; k < 3; ++k) xbar[BALL + k] += (double)turn[k];
  for (int k = BALL + 4; k < NEXT; ++k)
    if (!stays(g, k)) xbar[k - 1] += (double)g->a.past_bar[k];
}

static void gradients(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    SnGradWorld g;
    SnOracle o;
    sn_oracle_load_string(&o, kModels[i].xml);
    sn_grad_world_init(&g, &o);
    const SnGradCase c = {.name = kModels[i].name,
                          .nx = sn_grad_world_nx(&g) + TURNS,
                          .ny = o.m->nv + o.m->nq + NEXT,
                          .context = &g,
                          .sample = sample_state,
                          .forward = forward,
                          .adjoint = adjoint,
                          .samples = 30};
    sn_gradcheck(&c, 1);
    sn_grad_world_free(&g);
    sn_oracle_free(&o);
  }
}

// ---- what springs bear, as parameters ----

enum { YIELDS = 8 };

static SnModel *with_yield(const SnModel *m, int p, double step) {
  SnError err;
  SnModel *moved = sn_model_copy(m, &err);
  if (!moved) fail_msg("%s", err.text);
  if (p < m->njnt)
    moved->jnt_springyield[p] += (sn_real)step;
  else
    moved->tendon_springyield[p - m->njnt] += (sn_real)step;
  return moved;
}

// The weighted sum of the rests after a step of another model from the same state.
static double rests_after(const SnModel *m, SnGradWorld *g, const double *ybar) {
  double sum = 0;
  move(g, NULL);
  sn_step(m, &g->w, &g->lane);
  for (int k = 0; k < NEXT; ++k) sum += ybar[m->nv + m->nq + k] * (double)sn_plastic(m, g->w.past)[k];
  return sum;
}

static void yields(void **state) {
  (void)state;
  sn_needs_doubles();
  const double h = 1e-6;
  SnOracle o;
  SnGradWorld g;
  SnError err;
  SnModel *moved[2][YIELDS];
  double step[YIELDS], ybar[100] = {0};
  sn_real ours[YIELDS];
  int moves[YIELDS] = {0};
  sn_oracle_load_string(&o, kModels[0].xml);
  assert_int_equal(o.m->njnt + o.m->ntendon, YIELDS);
  for (int p = 0; p < YIELDS; ++p) {
    moved[0][p] = with_yield(o.m, p, step[p] = h);
    moved[1][p] = with_yield(o.m, p, -h);
  }
  SnModelTangents *t = sn_model_tangents_create(o.m, (const SnModel *const *)moved[0], (const SnModel *const *)moved[1],
                                                step, YIELDS, &err);
  if (!t) fail_msg("%s", err.text);
  sn_grad_world_init(&g, &o);
  void *memory = aligned_alloc(64, (sn_model_bar_size(t) + 63) / 64 * 64);
  for (int round = 0; round < 40; ++round) {
    SnModelBar bar;
    sample_state(&g);
    for (int k = 0; k < NEXT; ++k) ybar[o.m->nv + o.m->nq + k] = sn_oracle_uniform(&o);
    sn_model_bar_init(t, &bar, memory);
    g.a.host->model = &bar;
    back(&g, ybar);
    g.a.host->model = NULL;
    sn_model_bar_apply(t, &bar, 0, ours);
    for (int p = 0; p < YIELDS; ++p) {
      const double difference = (rests_after(moved[0][p], &g, ybar) - rests_after(moved[1][p], &g, ybar)) / (2 * h);
      if (!(fabs((double)ours[p] - difference) <= 1e-7))
        fail_msg("round %d, parameter %d: %.10g, by differences %.10g", round, p, (double)ours[p], difference);
      moves[p] += fabs(difference) > 1e-3;
    }
  }
  for (int p = 0; p < YIELDS; ++p)
    if (moves[p] == 0) fail_msg("parameter %d moves nothing", p);
  free(memory);
  sn_model_tangents_free(t);
  for (int p = 0; p < 2 * YIELDS; ++p) sn_model_free(moved[p / YIELDS][p % YIELDS]);
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

// ---- what is refused ----

static void refusals(void **state) {
  (void)state;
  SnError err = {0};
  sn_expect_refused(SN_PLASTIC_MODEL("RK4", ""),
                    "springyield (a spring that yields) with integrator RK4 is not supported");
  SnOracle o;
  sn_oracle_load_string(&o, kModels[0].xml);
  const SnHorizonSettings settings = sn_horizon_defaults();
  assert_null(sn_horizon_create(o.m, &settings, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.text, "yields (springyield)"));
  SnModel *moved[2] = {sn_model_copy(o.m, &err), sn_model_copy(o.m, &err)};
  for (int i = 0; i < 2; ++i) moved[i]->qpos_spring[1] += SN_R(1e-3) * (sn_real)(1 - 2 * i);
  const double step = 1e-3;
  assert_null(sn_model_tangents_create(o.m, (const SnModel *const *)moved, (const SnModel *const *)(moved + 1), &step,
                                       1, &err));
  assert_non_null(strstr(err.text, "it moves the rest of joint 'fold'"));
  for (int i = 0; i < 2; ++i) sn_model_free(moved[i]);
  sn_oracle_free(&o);
  sn_oracle_load_string(&o,
                        "<mujoco><worldbody><body><joint stiffness='1' springyield='.1'/><geom size='.1'/></body>"
                        "</worldbody><sensor><e_potential/><e_kinetic/></sensor></mujoco>");
  assert_true(sn_sensor_supported(o.m, 0) && !sn_sensor_differentiable(o.m, 0) && sn_sensor_differentiable(o.m, 1));
  sn_oracle_free(&o);
}

// Numbers of a file that do not fit are named.
static void bad_numbers(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  sn_oracle_load_string(&o, kModels[0].xml);
  SnModel *m = o.m;
  const SnBadNumber cases[] = {{&m->jnt_plasticadr[1], 2, "jnt_plasticadr[1] is 2: rests follow the order of joints"},
                               {&m->jnt_plasticadr[4], -1, "tendon_plasticadr[0]"},
                               {&m->tendon_plasticadr[2], -1, "model: rests of springs have 12 numbers of 14"}};
  sn_expect_bad_numbers(m, cases, sizeof cases / sizeof *cases);
  m->key_plastic[BALL] = 2;
  assert_int_equal(sn_model_check(m, &err), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, "key_plastic[3]"));
  m->key_plastic[BALL] = 1;
  m->jnt_springyield[0] = -1;
  assert_int_equal(sn_model_check(m, &err), SN_ERR_FORMAT);
  sn_oracle_free(&o);
}

int main(void) {
  print_message("seed 1\n");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chained),  cmocka_unit_test(resets),      cmocka_unit_test(yields),
      cmocka_unit_test(refusals), cmocka_unit_test(bad_numbers), cmocka_unit_test(gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

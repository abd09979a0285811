// The adjoint of a cost: every quantity, target and norm against central differences, in the state and in the targets.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "planner/cost/cost_expand.h"
#include "tests/support/gradcheck.h"
#include "tests/planner/cost/cost_body.h"

static SnOracle o;
static SnError err;

static int setup(void **state) {
  (void)state;
  sn_oracle_load_string(&o, cost_body);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sn_oracle_free(&o);
  return 0;
}

// A cost of these terms (YAML, each with its name) on the body.
typedef struct Fixture {
  SnGradWorld g;
  SnTask *task;
  SnCost *cost;
  sn_real *target, *moved, *res, *value, *weight, *target_bar;
  sn_real *before, *moved_before, *before_bar;  // (nu)
} Fixture;

static void open_fixture(Fixture *x, const char *terms) {
  char text[3000];
  memset(x, 0, sizeof *x);
  snprintf(text, sizeof text, "model: x\nterms:\n%s", terms);
  x->task = sn_task_parse(text, strlen(text), "t.yaml", &err);
  if (!x->task) fail_msg("%s", err.text);
  x->cost = sn_cost_create(x->task, o.m, &err);
  if (!x->cost) fail_msg("%s", err.text);
  sn_grad_world_init(&x->g, &o);
  const size_t target = (size_t)x->cost->ntarget + 1, res = (size_t)x->cost->nres + 1, n = (size_t)x->cost->nall + 1;
  x->target = calloc(target, sizeof(sn_real));
  x->moved = calloc(target, sizeof(sn_real));
  x->target_bar = calloc(target, sizeof(sn_real));
  x->before = calloc((size_t)o.m->nu, sizeof(sn_real));
  x->moved_before = calloc((size_t)o.m->nu, sizeof(sn_real));
  x->before_bar = calloc((size_t)o.m->nu, sizeof(sn_real));
  for (int k = 0; k < o.m->nu; ++k) x->before[k] = SN_R(0.3) - SN_R(0.2) * (sn_real)k;
  x->res = calloc(res, sizeof(sn_real));
  x->value = calloc(n, sizeof(sn_real));
  x->weight = calloc(n, sizeof(sn_real));
  for (int i = 0; i < x->cost->nterm; ++i) x->weight[i] = SN_R(0.7) + SN_R(0.4) * (sn_real)i;
}

static void close_fixture(Fixture *x) {
  sn_real *const all[] = {x->target, x->moved,  x->target_bar,   x->res,       x->value,
                          x->weight, x->before, x->moved_before, x->before_bar};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  sn_grad_world_free(&x->g);
  sn_cost_free(x->cost);
  sn_task_free(x->task);
}

static bool sample(void *context) {
  Fixture *x = context;
  SnGradWorld *g = &x->g;
  sn_oracle_randomize(&o, 1);
  for (int i = 0; i < 3 * o.mj->nmocap; ++i) o.d->mocap_pos[i] = sn_oracle_uniform(&o);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_cost_capture(x->cost, o.m, &g->w, &g->lane);
  sn_cost_schedule(x->cost, 0.3, 0.01, 1, x->target);
  // another pose than the captured one
  sn_oracle_randomize(&o, 1);
  sn_grad_world_sample(g);
  return true;
}

static int inputs(const Fixture *x) { return sn_grad_world_nx(&x->g) + x->cost->ntarget + o.m->nu; }

// Of a step that lasted an eighth of a second.
static SnCostInput input(const sn_real *target, const sn_real *before) {
  return (SnCostInput){.target = target, .before = before, .since = SN_R(0.125)};
}

// The weighted sum of norms; x: the state, then the row of targets, then the controls of the step before.
static bool forward(void *context, const double *dx, double *y) {
  Fixture *x = context;
  SnGradWorld *g = &x->g;
  const SnCost *c = x->cost;
  const double *dt = dx + sn_grad_world_nx(g);
  for (int k = 0; k < c->ntarget; ++k) x->moved[k] = x->target[k] + (sn_real)dt[k];
  for (int k = 0; k < o.m->nu; ++k) x->moved_before[k] = x->before[k] + (sn_real)dt[c->ntarget + k];
  sn_grad_world_move(g, dx);
  sn_forward(o.m, &g->w, &g->lane);
  sn_cost_residual(c, o.m, &g->w, &g->lane, input(x->moved, x->moved_before), 0, c->nterm, x->res);
  sn_cost_norm(c, &g->lane, x->res, 0, c->nterm, x->value);
  y[0] = 0;
  for (int i = 0; i < c->nterm; ++i) y[0] += (double)(x->weight[i] * x->value[i]);
  return true;
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Fixture *x = context;
  SnGradWorld *g = &x->g;
  const int nx = sn_grad_world_nx(g);
  double *bar = calloc((size_t)nx, sizeof *bar);
  memset(x->target_bar, 0, sizeof *x->target_bar * (size_t)x->cost->ntarget);
  sn_grad_world_move(g, NULL);
  sn_forward(o.m, &g->w, &g->lane);
  sn_adjoint_clear(o.m, &g->a, &g->lane);
  sn_motion_rest(o.m, &g->w, &g->a, &g->lane);
  const SnCostVjp v = {input(x->target, x->before), x->weight, 1, x->res, x->target_bar, x->before_bar};
  memset(x->before_bar, 0, sizeof *x->before_bar * (size_t)o.m->nu);
  sn_cost_vjp(x->cost, o.m, &g->w, &g->a, &g->lane, v);
  sn_position_vjp(o.m, &g->w, &g->a, &g->lane);
  sn_grad_world_result(g, bar);
  for (int i = 0; i < nx; ++i) xbar[i] += ybar[0] * bar[i];
  for (int k = 0; k < x->cost->ntarget; ++k) xbar[nx + k] += ybar[0] * (double)x->target_bar[k];
  for (int k = 0; k < o.m->nu; ++k) xbar[nx + x->cost->ntarget + k] += ybar[0] * (double)x->before_bar[k];
  free(bar);
}

static void check(const char *terms) {
  Fixture x;
  open_fixture(&x, terms);
  const SnGradCase c = {.name = terms,
                        .nx = inputs(&x),
                        .ny = 1,
                        .context = &x,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = 8};
  sn_gradcheck(&c, 1);
  close_fixture(&x);
}

static void every_quantity(void **state) {
  (void)state;
  for (int i = 0; i < COST_QUANTITIES; ++i) {
    char text[600];
    snprintf(text, sizeof text, "  - {name: a, %s}\n", cost_quantity[i]);
    check(text);
  }
}

static void norms(void **state) {
  (void)state;
  static const char *const norm[] = {"norm: squared", "norm: euclidean", "norm: euclidean, width: 0.3",
                                     "norm: smooth_abs, width: 0.2"};
  for (size_t i = 0; i < sizeof norm / sizeof *norm; ++i) {
    char text[600];
    snprintf(text, sizeof text,
             "  - {name: a, residual: {position: {site: palm}}, %s}\n  - {name: b, residual: {joint_position: [hinge, "
             "ball]}, %s}\n",
             norm[i], norm[i]);
    check(text);
  }
}

// Terms whose entries count on one side alone, or with weights of their own.
static const char *const one_sided[] = {
    "  - {name: a, residual: {position: {site: palm}}, target: [.1, .2, .3], side: above}\n",
    "  - {name: a, residual: {position: {body: cube}}, side: below, norm: euclidean, width: .2}\n",
    "  - {name: a, residual: {position: {site: palm}}, side: below, norm: smooth_abs, width: .2, weights: [2, .5, "
    "3]}\n",
    "  - {name: a, residual: {orientation: {body: plate}}, weights: [0, 0, 1]}\n",
    "  - {name: a, residual: {velocity: {body: cube}, axis: [x, z]}, side: above, norm: euclidean, weights: [1, 4]}\n"
    "  - {name: b, residual: {joint_position: [hinge, ball]}, norm: smooth_abs, width: .3, weights: [1, 2, 3, 4]}\n"};
enum { ONE_SIDED = sizeof one_sided / sizeof *one_sided };

static void sides_and_weights(void **state) {
  (void)state;
  for (int i = 0; i < ONE_SIDED; ++i) check(one_sided[i]);
}

// Terms that act on the same numbers add up.
static void terms_add(void **state) {
  (void)state;
  check(
      "  - {name: a, residual: {position: {site: palm}}, norm: euclidean}\n"
      "  - {name: b, residual: {distance: [{site: palm}, {site: tip}]}}\n"
      "  - {name: c, residual: {joint_velocity: all}}\n"
      "  - {name: d, residual: {sensor: push}, norm: smooth_abs, width: .1}\n"
      "  - {name: e, residual: {orientation: {body: wrist}}, target: {orientation: {body: arm}}}\n");
}

// Zero residuals: finite, and 0, whatever the norm; a term of weight 0 adds nothing.
static void zero_residual(void **state) {
  (void)state;
  static const char *const norm[] = {"squared", "euclidean", "smooth_abs, width: 0.2"};
  for (size_t i = 0; i < 3; ++i) {
    char text[1000];
    snprintf(text, sizeof text,
             "  - {name: a, residual: {position: {site: palm}}, target: {position: {site: palm}}, norm: %s}\n"
             "  - {name: b, residual: {orientation: {body: cube}}, target: {orientation: {body: cube}}, norm: %s}\n"
             "  - {name: c, residual: {distance: [{site: tip}, {site: tip}]}, norm: %s}\n"
             "  - {name: d, residual: {joint_velocity: hinge}, target: {joint_velocity: hinge}, norm: %s}\n"
             "  - {name: e, residual: {control: all}, target: 7, norm: %s}\n",
             norm[i], norm[i], norm[i], norm[i], norm[i]);
    Fixture x;
    open_fixture(&x, text);
    x.weight[4] = 0;
    sample(&x);
    const int n = inputs(&x);
    double *bar = calloc((size_t)n, sizeof *bar);
    adjoint(&x, (const double[]){1}, bar);
    for (int k = 0; k < n; ++k)
      if (!(fabs(bar[k]) < 1e-12)) fail_msg("norm %s: gradient[%d] = %g", norm[i], k, bar[k]);
    free(bar);
    close_fixture(&x);
  }
}

// Half a turn off the target, where the shorter way round changes: finite.
static void half_turn(void **state) {
  (void)state;
  Fixture x;
  open_fixture(&x, "  - {name: a, residual: {joint_position: ball}, target: [0, 0, 1, 0]}\n");
  sample(&x);
  sn_real *q = x.g.qpos + o.m->jnt_qposadr[mj_name2id(o.mj, mjOBJ_JOINT, "ball")];
  q[0] = 1;
  q[1] = q[2] = q[3] = 0;
  const int n = inputs(&x);
  double *bar = calloc((size_t)n, sizeof *bar), length = 0;
  adjoint(&x, (const double[]){1}, bar);
  for (int k = 0; k < n; ++k) {
    assert_true(isfinite(bar[k]));
    length += bar[k] * bar[k];
  }
  // 2 pi along the axis of the turn, in the joint and in its target's tangent (twice, by |t_bar| = 2 |turn_bar|)
  assert_true(fabs(sqrt(length) - 0.7 * 2 * 3.14159265 * sqrt(5)) < 1e-3);
  free(bar);
  close_fixture(&x);
}

// Sensors without gradient are named, the measures are not looked at.
static void refused(void **state) {
  (void)state;
  const char *text =
      "model: x\nterms:\n  - {name: a, residual: {sensor: inside}}\n  - {name: b, residual: {control: "
      "motor}, target: {sensor: inside}}\n  - {name: d, residual: {control: motor}, gate: {residual: {sensor: inside}, "
      "above: 1, width: 1}}\nsuccess:\n  - {name: c, residual: {sensor: inside}, below: 1}\n";
  SnTask *task = sn_task_parse(text, strlen(text), "t.yaml", &err);
  if (!task) fail_msg("%s", err.text);
  SnCost *c = sn_cost_create(task, o.m, &err);
  if (!c) fail_msg("%s", err.text);
  assert_int_equal(sn_cost_check_gradient(c, o.m, &err), SN_ERR_UNSUPPORTED);
  assert_string_equal(err.text,
                      "term 'a': sensor 'inside' has no gradient\nterm 'b': sensor 'inside' has no gradient\n"
                      "gate of 'd': sensor 'inside' has no gradient");
  sn_cost_free(c);
  sn_task_free(task);
  Fixture x;
  open_fixture(&x, "  - {name: a, residual: {sensor: pull}}\n");
  assert_int_equal(sn_cost_check_gradient(x.cost, o.m, &err), SN_OK);
  close_fixture(&x);
}

// ---- quadratic models ----

// Holds the model of a state's cost, and its scratch; sizes of the body at most.
enum { MODEL = 80, RESIDUALS = 60 };

typedef struct Model {
  sn_real lx[MODEL], lxx[MODEL * MODEL], lu[MODEL], lux[MODEL * MODEL], luu[MODEL * MODEL];
  sn_real res[RESIDUALS], bar[RESIDUALS], row[MODEL], scratch[MODEL], before_lu[MODEL], before_luu[MODEL];
  int at[MODEL];
} Model;

// Parts that are asked for: 0 that of the state, 1 that of the controls, too, 2 that of the controls before, too.
static void expand(Fixture *x, Model *e, int parts) {
  SnGradWorld *g = &x->g;
  assert_true(sn_grad_world_nx(g) <= MODEL && x->cost->nres <= RESIDUALS);
  sn_grad_world_move(g, NULL);
  sn_forward(o.m, &g->w, &g->lane);
  const SnExpandInput in = {input(x->target, x->before), x->weight, 1, e->res, e->bar, e->row, e->scratch, e->at};
  SnExpansion out = {.lx = e->lx, .lxx = e->lxx};
  if (parts > 0) out.lu = e->lu, out.lux = e->lux, out.luu = e->luu;
  if (parts > 1) out.before_lu = e->before_lu, out.before_luu = e->before_luu;
  sn_cost_expand(x->cost, o.m, &g->w, &g->a, &g->lane, in, &out);
}

// Entry (i, j) of the model's matrix over state and controls.
static double curvature_of(const Model *e, int n, int nu, int i, int j) {
  if (i < n && j < n) return (double)e->lxx[i * n + j];
  if (i < n) return (double)e->lux[(j - n) * n + i];
  return j < n ? (double)e->lux[(i - n) * n + j] : (double)e->luu[(i - n) * nu + j - n];
}

// Residuals when coordinate i moves by d.
static void residuals(Fixture *x, int i, double d, sn_real *res) {
  double move[MODEL] = {0};
  move[i] = d;
  sn_grad_world_move(&x->g, move);
  sn_forward(o.m, &x->g.w, &x->g.lane);
  sn_cost_residual(x->cost, o.m, &x->g.w, &x->g.lane, input(x->target, x->before), 0, x->cost->nterm, res);
}

// The gate of a term, written out once more.
static double gate_of(const SnCost *c, int term, const sn_real *res) {
  const int gate = c->term_gate[term];
  double m = 0;
  if (gate < 0) return 1;
  for (int r = c->term_res[gate]; r < c->term_res[gate + 1]; ++r)
    if (!((double)c->term_side[gate] * (double)res[r] < 0)) m += (double)(c->res_weight[r] * res[r] * res[r]);
  if (c->term_norm[gate] == SN_NORM_EUCLIDEAN) m = sqrt(m);
  if (c->term_norm[gate] == SN_NORM_SIGNED) m = (double)res[c->term_res[gate]];
  const double x = (m - (double)c->gate_value[term]) / (double)c->gate_width[term];
  return c->gate_side[term] == 0 ? m : (1 + c->gate_side[term] * tanh(x / 2)) / 2;
}

// The curvature of entry r of the residuals in the model, written out once more.
static double weight_of(const Fixture *x, const sn_real *res, int r) {
  const SnCost *c = x->cost;
  int term = 0;
  while (c->term_res[term + 1] <= r) ++term;
  const double weight = (double)x->weight[term] * gate_of(c, term, res);
  const double width = (double)c->term_width[term];
  double s = width * width;
  const double each = (double)c->term_side[term] * (double)res[r] < 0 ? 0 : (double)c->res_weight[r];
  if (c->term_norm[term] == SN_NORM_SQUARED) return 2 * each * weight;
  for (int k = c->term_res[term]; k < c->term_res[term + 1]; ++k)
    if (c->term_norm[term] == SN_NORM_EUCLIDEAN)
      s += (double)c->term_side[term] * (double)res[k] < 0 ? 0 : (double)(c->res_weight[k] * res[k] * res[k]);
    else if (k == r)
      s += (double)(res[k] * res[k]);
  return each * weight / sqrt(s);
}

// With the controls of the step before: their slopes are those of the adjoint, and the curvatures bound those of both
// steps' controls together. Where they have no part, nothing changes.
static void check_before(Fixture *x, const Model *one, const Model *two, const double *slope) {
  const int nu = o.m->nu, first = sn_grad_world_nx(&x->g) - nu;
  const double step = 1e-4;
  sn_real up[RESIDUALS], down[RESIDUALS], at[RESIDUALS];
  double along[RESIDUALS] = {0}, model = 0, change = 0, curvature = 0;
  bool part = false;
  residuals(x, 0, 0, at);
  for (int k = 0; k < nu; ++k) {
    const double move = sn_oracle_uniform(&o), before = sn_oracle_uniform(&o);
    const sn_real was = x->before[k];
    assert_true(fabs((double)two->before_lu[k] - slope[k]) <= 1e-12 * (1 + fabs(slope[k])));
    part = part || two->before_luu[k] > 0;
    x->before[k] = was + (sn_real)step;
    residuals(x, 0, 0, up);
    x->before[k] = was;
    for (int r = 0; r < x->cost->nres; ++r) along[r] += (double)(up[r] - at[r]) / step * before;
    residuals(x, first + k, step, up);
    residuals(x, first + k, -step, down);
    for (int r = 0; r < x->cost->nres; ++r) along[r] += (double)(up[r] - down[r]) / (2 * step) * move;
    model += (double)two->before_luu[k] * before * before + (double)two->luu[k * nu + k] * move * move;
    for (int j = 0; j < nu; ++j) change += fabs((double)(two->luu[k * nu + j] - one->luu[k * nu + j]));
  }
  for (int r = 0; r < x->cost->term_res[x->cost->nterm]; ++r) curvature += weight_of(x, at, r) * along[r] * along[r];
  if (part && !(model >= curvature * (1 - 1e-6))) fail_msg("the model's curvature is %g, below %g", model, curvature);
  assert_true(part == (change > 0));
}

// Slopes are those of the adjoint, curvatures those of differences of the residuals.
static void check_expansion(const char *terms) {
  static double R[RESIDUALS][MODEL];
  Fixture x;
  Model e, alone;
  sn_real up[RESIDUALS], down[RESIDUALS], at[RESIDUALS];
  open_fixture(&x, terms);
  const int nx = sn_grad_world_nx(&x.g), nu = o.m->nu, n = nx - nu;
  const double step = 1e-6;
  double *bar = calloc((size_t)inputs(&x), sizeof *bar);
  sample(&x);
  adjoint(&x, (const double[]){1}, bar);
  expand(&x, &e, 1);
  for (int i = 0; i < nx; ++i)
    if (!(fabs((double)(i < n ? e.lx[i] : e.lu[i - n]) - bar[i]) <= 1e-12 * (1 + fabs(bar[i]))))
      fail_msg("%s: slope %d is %g, not %g", terms, i, (double)(i < n ? e.lx[i] : e.lu[i - n]), bar[i]);
  residuals(&x, 0, 0, at);
  for (int i = 0; i < nx; ++i) {
    residuals(&x, i, step, up);
    residuals(&x, i, -step, down);
    for (int r = 0; r < x.cost->nres; ++r) R[r][i] = (double)(up[r] - down[r]) / (2 * step);
  }
  for (int i = 0; i < nx; ++i)
    for (int j = 0; j < nx; ++j) {
      double sum = 0, size = 1;
      for (int r = 0; r < x.cost->term_res[x.cost->nterm]; ++r) {
        sum += weight_of(&x, at, r) * R[r][i] * R[r][j];
        size += weight_of(&x, at, r) * (fabs(R[r][i]) + fabs(R[r][j]));
      }
      if (!(fabs(curvature_of(&e, n, nu, i, j) - sum) <= 1e-6 * size))
        fail_msg("%s: curvature %d %d is %g, not %g", terms, i, j, curvature_of(&e, n, nu, i, j), sum);
    }
  expand(&x, &alone, 0);
  assert_memory_equal(alone.lx, e.lx, (size_t)n * sizeof *e.lx);
  assert_memory_equal(alone.lxx, e.lxx, (size_t)(n * n) * sizeof *e.lxx);
  expand(&x, &alone, 2);
  check_before(&x, &e, &alone, bar + nx + x.cost->ntarget);
  free(bar);
  close_fixture(&x);
}

static void expansions(void **state) {
  (void)state;
  if (sizeof(sn_real) == 4) skip();
  static const char *const norm[] = {"norm: squared", "norm: euclidean, width: 0.3", "norm: smooth_abs, width: 0.2"};
  for (int i = 0; i < COST_QUANTITIES; ++i) {
    char text[1200];
    snprintf(text, sizeof text, "  - {name: a, %s, %s}\n  - {name: b, %s, %s}\n", cost_quantity[i], norm[i % 3],
             cost_quantity[(i + 5) % COST_QUANTITIES], norm[(i + 1) % 3]);
    check_expansion(text);
  }
  for (int i = 0; i < ONE_SIDED; ++i) check_expansion(one_sided[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_quantity), cmocka_unit_test(norms),
                                     cmocka_unit_test(terms_add),      cmocka_unit_test(zero_residual),
                                     cmocka_unit_test(half_turn),      cmocka_unit_test(refused),
                                     cmocka_unit_test(expansions),     cmocka_unit_test(sides_and_weights)};
  return cmocka_run_group_tests(tests, setup, teardown);
}

// Adam's arithmetic against a plain one.
#include "planner/optimize/adam.h"
#include "planner/optimize/sampling.h"
#include "planner/optimize/spline_private.h"
#include "tests/planner/bench_body.h"

// On the controls of the bench body: a motor in [-3, 3], two muscles.

enum { NU = 3, ROWS = 30, BASE = 60, MOST = (BASE + 2) * NU };

static SnLaneShared shared;
static SnLane lane = {.n = 1, .shared = &shared};
static uint64_t draws;

static sn_real draw(void) {
  uint64_t x = 0x9e3779b97f4a7c15u * ++draws;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (sn_real)((double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
}

static SnAdamGrid grid_of(int spacing, int phase, int interpolation) {
  return (SnAdamGrid){.nstep = ROWS,
                      .knots = sn_noise_knots(ROWS, spacing, phase),
                      .spacing = spacing,
                      .phase = phase,
                      .interpolation = interpolation};
}

// The same over the 60 base steps of rows that last 1, 2 and 4 of them.
static SnAdamGrid time_grid_of(int spacing, int phase, int interpolation) {
  SnAdamGrid g = grid_of(spacing, phase, interpolation);
  SnError err = {0};
  if (sn_grid_parse("10x1,15x2,5x4", BASE, &g.time, &err) != SN_OK) fail_msg("%s", err.text);
  g.knots = sn_noise_knots(BASE, spacing, phase);
  return g;
}

static SnPart all_knots(const SnAdamGrid *g) { return (SnPart){0, g->knots}; }
static SnPart all_rows(const SnAdamGrid *g) { return (SnPart){0, g->nstep}; }

static void base_controls(sn_real *base) {
  for (int t = 0; t < ROWS; ++t) {
    base[NU * t] = 2 * draw();
    base[NU * t + 1] = SN_R(0.5) + SN_R(0.4) * draw();
    base[NU * t + 2] = SN_R(0.5) + SN_R(0.4) * draw();
  }
}

static const int grids[][3] = {{1, 0, SN_SPLINE_ZERO},   {4, 0, SN_SPLINE_ZERO},  {4, 3, SN_SPLINE_LINEAR},
                               {7, 5, SN_SPLINE_LINEAR}, {5, 2, SN_SPLINE_CUBIC}, {29, 11, SN_SPLINE_CUBIC}};

// <ctrl_bar, d ctrl> = <gradient, d offset> by differences, also where the clamp acts; without offsets the base.
static void chain_rule(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * sizeof grids / sizeof *grids; ++i) {
    const int *row = grids[i / 2];
    const SnAdamGrid g = i % 2 ? time_grid_of(row[0], row[1], row[2]) : grid_of(row[0], row[1], row[2]);
    sn_real base[ROWS * NU], ctrl[ROWS * NU], bar[ROWS * NU], offset[MOST] = {0}, gradient[MOST];
    assert_true(g.knots * NU <= MOST);
    base_controls(base);
    sn_adam_controls(body.m, &g, &lane, base, offset, all_rows(&g), ctrl);
    assert_memory_equal(ctrl, base, sizeof base);
    for (int k = 0; k < g.knots * NU; ++k) offset[k] = SN_R(0.6) * draw();
    for (int k = 0; k < ROWS * NU; ++k) bar[k] = draw();
    sn_adam_gradient(body.m, &g, &lane, base, offset, bar, all_knots(&g), gradient);
    int clamped = 0;
    for (int k = 0; k < g.knots * NU; ++k) {
      const sn_real h = SN_R(1e-4), at = offset[k];
      double slope = 0;
      for (int side = -1; side <= 1; side += 2) {
        offset[k] = at + (sn_real)side * h;
        sn_adam_controls(body.m, &g, &lane, base, offset, all_rows(&g), ctrl);
        for (int r = 0; r < ROWS * NU; ++r) slope += side * (double)bar[r] * (double)ctrl[r];
        for (int r = 0; r < ROWS * NU; ++r) clamped += r % NU > 0 && (ctrl[r] == 0 || ctrl[r] == 1);
      }
      offset[k] = at;
      slope /= 2 * (double)h;
      if (!(fabs(slope - (double)gradient[k]) < (sizeof(sn_real) == 4 ? 2e-2 : 1e-8)))
        fail_msg("grid %d, entry %d: %g, difference %g", (int)i, k, (double)gradient[k], slope);
    }
    assert_true(clamped > 0);
  }
}

// On a time grid a row has the mean of what its base steps would have.
static void means_over_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof grids / sizeof *grids; ++i) {
    const SnAdamGrid rows = time_grid_of(grids[i][0], grids[i][1], grids[i][2]);
    SnAdamGrid each = rows;
    each.nstep = BASE;
    each.time = (SnGrid){0};
    sn_real base[BASE * NU], offset[MOST], ctrl[BASE * NU], fine[BASE * NU];
    for (int k = 0; k < BASE * NU; ++k) base[k] = SN_R(0.5);
    for (int k = 0; k < rows.knots * NU; ++k) offset[k] = SN_R(0.2) * draw();  // within the ranges
    sn_adam_controls(body.m, &each, &lane, base, offset, all_rows(&each), fine);
    sn_adam_controls(body.m, &rows, &lane, base, offset, all_rows(&rows), ctrl);
    sn_grid_gather(&rows.time, BASE, NU, fine, fine);
    for (int k = 0; k < ROWS * NU; ++k) assert_true(fabs((double)(ctrl[k] - fine[k])) < 1e-6);
  }
}

static void knots_at_their_bounds(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof grids / sizeof *grids; ++i) {
    const SnAdamGrid g = grid_of(grids[i][0], grids[i][1], grids[i][2]);
    sn_real base[ROWS * NU], before[ROWS * NU], after[ROWS * NU], offset[MOST];
    base_controls(base);
    for (int k = 0; k < g.knots * NU; ++k) offset[k] = 5 * draw();
    sn_adam_controls(body.m, &g, &lane, base, offset, all_rows(&g), before);
    sn_adam_project(body.m, &g, &lane, base, all_knots(&g), offset);
    sn_adam_controls(body.m, &g, &lane, base, offset, all_rows(&g), after);
    for (int k = 0; k < g.knots * NU; ++k) assert_true(fabs((double)offset[k]) <= (k % NU ? 1.0 : 2.0));
    // where a knot belongs to one control the cut is exact: nothing changes behind the clamp
    for (int r = 0; g.spacing == 1 && r < ROWS * NU; ++r) {
      const sn_real u = base[r] + (r % NU ? 1 : 3) * offset[r];
      assert_true(fabs((double)(after[r] - before[r])) < 1e-6 && fabs((double)(u - after[r])) < 1e-6);
    }
    // and a control that was cut there, rounding or not, has the derivative inside: else it would stay
    sn_real bar[ROWS * NU], gradient[MOST];
    for (int r = 0; r < ROWS * NU; ++r) bar[r] = 1;
    sn_adam_gradient(body.m, &g, &lane, base, offset, bar, all_knots(&g), gradient);
    for (int r = 0; g.spacing == 1 && r < ROWS * NU; ++r) assert_true(gradient[r] == (r % NU ? 1 : 3));
  }
}

// Ten steps against the formulas in the paper, written out.
static void steps(void **state) {
  (void)state;
  const SnAdamGrid g = grid_of(1, 0, SN_SPLINE_ZERO);
  const SnAdamRule rule = {.rate = SN_R(0.01), .beta1 = SN_R(0.9), .beta2 = SN_R(0.999), .epsilon = SN_R(1e-8)};
  sn_real first[MOST] = {0}, second[MOST] = {0}, offset[MOST] = {0}, gradient[MOST];
  SnAdamMoments moments = {first, second, 1, 1};
  double m[MOST] = {0}, v[MOST] = {0}, y[MOST] = {0};
  for (int n = 1; n <= 10; ++n) {
    for (int k = 0; k < g.knots * NU; ++k) gradient[k] = SN_R(0.001) * draw() * (sn_real)(k + 1);
    sn_adam_step(body.m, &g, &rule, &lane, gradient, &moments, offset);
    for (int k = 0; k < g.knots * NU; ++k) {
      const double d = (double)gradient[k];
      m[k] = 0.9 * m[k] + 0.1 * d;
      v[k] = 0.999 * v[k] + 0.001 * d * d;
      y[k] -= 0.01 * (m[k] / (1 - pow(0.9, n))) / (sqrt(v[k] / (1 - pow(0.999, n))) + 1e-8);
      if (!(fabs(y[k] - (double)offset[k]) < (sizeof(sn_real) == 4 ? 1e-4 : 1e-12)))
        fail_msg("step %d, entry %d: %g, wanted %g", n, k, (double)offset[k], y[k]);
    }
  }
  // whatever comes, moments stay numbers
  for (int k = 0; k < g.knots * NU; ++k) gradient[k] = k % 2 ? SN_R(1e30) : SN_R(-1e-30);
  sn_adam_step(body.m, &g, &rule, &lane, gradient, &moments, offset);
  for (int k = 0; k < g.knots * NU; ++k)
    assert_true(isfinite((double)first[k]) && isfinite((double)second[k]) && isfinite((double)offset[k]));
}

static void clipping(void **state) {
  (void)state;
  const SnAdamGrid g = grid_of(5, 2, SN_SPLINE_LINEAR);
  SnAdamRule rule = {.clip = SN_CLIP_OFF, .clip_norm = SN_R(0.5)};
  const int n = g.knots * NU;
  const double tolerance = sizeof(sn_real) == 4 ? 1e-5 : 1e-12;
  sn_real raw[MOST], x[MOST];
  for (int k = 0; k < n; ++k) raw[k] = draw() * (k < NU ? SN_R(0.01) : SN_R(1.0));
  memcpy(x, raw, sizeof raw);
  const double norm = (double)sn_norm(&lane, raw, n);
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += (double)raw[k] * (double)raw[k];
  assert_true(fabs(norm - sqrt(sum)) < tolerance * norm && norm > 1);
  sn_adam_clip(body.m, &g, &rule, &lane, x);
  assert_memory_equal(x, raw, sizeof *raw * (size_t)n);
  rule.clip = SN_CLIP_GLOBAL;
  sn_adam_clip(body.m, &g, &rule, &lane, x);
  for (int k = 0; k < n; ++k) assert_true(fabs((double)x[k] - (double)raw[k] * 0.5 / norm) < tolerance);
  memcpy(x, raw, sizeof raw);
  rule.clip = SN_CLIP_STEP;
  sn_adam_clip(body.m, &g, &rule, &lane, x);
  assert_memory_equal(x, raw, sizeof *raw * NU);  // short enough as it is
  for (int j = 1; j < g.knots; ++j) {
    const double before = (double)sn_norm(&lane, raw + j * NU, NU), after = (double)sn_norm(&lane, x + j * NU, NU);
    assert_true(fabs(after - fmin(before, 0.5)) < tolerance);
  }
  x[1] = (sn_real)NAN;
  assert_true(isinf((double)sn_norm(&lane, x, n)));
  x[1] = SN_R(1e30);
  x[0] = SN_R(1e30);
  assert_true(isfinite((double)sn_norm(&lane, x, n)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chain_rule), cmocka_unit_test(means_over_rows),
                                     cmocka_unit_test(knots_at_their_bounds), cmocka_unit_test(steps),
                                     cmocka_unit_test(clipping)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}

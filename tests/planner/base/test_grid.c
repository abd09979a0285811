// Time grids as data: text, rows there and back, and what a model allows.
#include <stdio.h>

#include "planner/base/grid.h"
#include "tests/support/oracle.h"

static SnGrid grid_of(const char *text, int horizon) {
  SnError err = {0};
  SnGrid g;
  if (sn_grid_parse(text, horizon, &g, &err) != SN_OK) fail_msg("%s", err.text);
  return g;
}

static void refused(const char *text, int horizon, const char *why) {
  SnGrid g = {.parts = 1, .count = {7}, .length = {3}};
  SnError err = {0};
  assert_int_equal(sn_grid_parse(text, horizon, &g, &err), SN_ERR_ARGUMENT);
  if (!strstr(err.text, why)) fail_msg("'%s' is not in: %s", why, err.text);
  assert_true(g.parts == 1 && g.count[0] == 7 && g.length[0] == 3);
}

static void text_is_read_and_written(void **state) {
  (void)state;
  char text[SN_GRID_TEXT];
  const SnGrid g = grid_of(" 64x1,  32 x 2 ", 128), none = {0}, same = grid_of("64x1,32x2", 128);
  assert_int_equal(g.parts, 2);
  assert_true(sn_grid_equal(&g, &same) && !sn_grid_equal(&g, &none));
  assert_string_equal(sn_grid_write(&g, text, sizeof text), "64x1,32x2");
  assert_string_equal(sn_grid_write(&none, text, sizeof text), "");
  assert_int_equal(grid_of("", 100).parts, 0);
  assert_int_equal(grid_of("100x1", 100).parts, 0);  // the same as no grid
  assert_int_equal(grid_of("50x1,50x1", 100).parts, 0);
  const SnGrid most = grid_of("4096x4096,4096x4096,4096x4096,4096x4096,4096x4096,4096x4096", 6 * 4096 * 4096);
  assert_int_equal(most.parts, SN_GRID_PARTS);
  assert_true(strlen(sn_grid_write(&most, text, sizeof text)) < sizeof text - 1);
}

static void bad_text_is_refused(void **state) {
  (void)state;
  refused("64x1, 32x2", 256, "'64x1, 32x2' lasts 128 base steps, allowed is the horizon, 256");
  refused("64", 64, "'64' is no grid, allowed are parts like 64x1, 32x2");
  refused("64x", 64, "is no grid");
  refused("x1", 64, "is no grid");
  refused("0x1,64x1", 64, "is no grid");
  refused("64x0", 64, "is no grid");
  refused("-64x1", 64, "is no grid");
  refused("64x1,", 64, "is no grid");
  refused("32x1,,16x2", 64, "is no grid");
  refused("32x1 16x2", 64, "is no grid");
  refused("32x1.5", 48, "is no grid");
  refused("4097x1", 4097, "is no grid");
  refused("99999999999999999999x1", 64, "is no grid");
  refused("1x1,1x1,1x1,1x1,1x1,1x1,1x1", 7, "more than 6 parts");
}

// Every number of the layout, by counting.
static void steps_and_rows(void **state) {
  (void)state;
  const char *const text[] = {"", "3x1,2x2,1x5", "2x4,4x1", "6x2", "1x12"};
  for (int i = 0; i < 5; ++i) {
    const SnGrid g = grid_of(text[i], 12);
    int row = 0, t = 0;
    for (; row < 12; ++t) {
      assert_int_equal(sn_grid_begin(&g, t), row);
      for (int j = 0; j < sn_grid_length(&g, t); ++j) assert_int_equal(sn_grid_step(&g, row++), t);
    }
    assert_int_equal(row, 12);
    assert_int_equal(sn_grid_steps(&g, 12), t);
    assert_int_equal(sn_grid_begin(&g, t), 12);
  }
  const SnGrid g = grid_of("3x1,2x2,1x5", 12);
  assert_int_equal(sn_grid_steps(&g, 12), 6);
  assert_int_equal(sn_grid_length(&g, 5), 5);
  assert_int_equal(sn_grid_step(&g, 6), 4);
}

static void rows_there_and_back(void **state) {
  (void)state;
  enum { H = 12, N = 6 };
  const SnGrid g = grid_of("3x1,2x2,1x5", H);
  sn_real base[2 * H], rows[2 * H], back[2 * H];
  for (int t = 0; t < H; ++t) {
    base[2 * t] = (sn_real)(t * t);
    base[2 * t + 1] = SN_R(0.1);  // no number of the machine
  }
  sn_grid_gather(&g, H, 2, base, rows);
  const double means[N] = {0, 1, 4, 12.5, 30.5, (49 + 64 + 81 + 100 + 121) / 5.0};
  for (int t = 0; t < N; ++t) {
    assert_true(fabs((double)rows[2 * t] - means[t]) < 1e-5);
    assert_true(rows[2 * t + 1] == SN_R(0.1));
  }
  sn_grid_spread(&g, H, 2, rows, back);
  for (int t = 0; t < H; ++t) assert_memory_equal(back + 2 * t, rows + 2 * sn_grid_step(&g, t), 2 * sizeof *back);
  // rows that are constant over the steps come back bit for bit, also in place
  sn_real again[2 * H];
  memcpy(again, back, sizeof back);
  sn_grid_gather(&g, H, 2, again, again);
  assert_memory_equal(again, rows, 2 * N * sizeof *rows);
  sn_grid_spread(&g, H, 2, again, again);
  assert_memory_equal(again, back, sizeof back);
  // without a grid nothing changes
  const SnGrid none = {0};
  sn_grid_gather(&none, H, 2, base, rows);
  assert_memory_equal(rows, base, sizeof base);
  sn_grid_spread(&none, H, 2, base, rows);
  assert_memory_equal(rows, base, sizeof base);
}

static void moments_in_time(void **state) {
  (void)state;
  const SnGrid g = grid_of("2x1,2x3", 8);
  const sn_real base[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, wanted[5] = {0, 1, 2, 5, 8};
  sn_real rows[9];
  sn_grid_pick(&g, 8, 1, base, rows);
  assert_memory_equal(rows, wanted, sizeof wanted);
}

// Each kind of row in turn is the stiffest of the model.
static void the_stiffest_spring_bounds_a_step(void **state) {
  (void)state;
  static const char *const format =
      "<mujoco><option timestep='.002'/><worldbody><geom name='floor' type='plane' size='1 1 1' solref='%s'/>"
      "<body name='box' pos='0 0 1'><joint name='hinge' axis='0 1 0' limited='true' range='-1 1' solreflimit='%s'"
      " frictionloss='.1' solreffriction='%s'/><geom name='ball' size='.1' solref='%s'/><site name='s'/></body>"
      "</worldbody><equality><joint name='lock' joint1='hinge' solref='%s'/></equality></mujoco>";
  static const struct {
    const char *contact, *limit, *friction, *equality, *what;
    double time;
  } c[] = {{".02 1", ".05 1", ".05 1", ".05 1", "contacts of geoms 'floor' and 'ball'", 0.02},
           {".05 1", ".02 1", ".05 1", ".05 1", "limit of joint 'hinge'", 0.02},
           {".05 1", ".05 1", ".02 1", ".05 1", "friction of joint 'hinge'", 0.02},
           {".05 1", ".05 1", ".05 1", ".02 1", "equality 'lock'", 0.02},
           {"-900 -10", ".05 1", ".024 1", ".05 1", "friction of joint 'hinge'", 0.024}};
  for (size_t i = 0; i < sizeof c / sizeof *c; ++i) {
    char xml[1000], wanted[100];
    SnOracle o;
    SnError err = {0};
    snprintf(xml, sizeof xml, format, c[i].contact, c[i].limit, c[i].friction, c[i].contact, c[i].equality);
    sn_oracle_load_string(&o, xml);
    const SnGrid fits = grid_of("6x1,2x5", 16), not = grid_of("2x1,2x7", 16);
    if (sn_grid_check(&fits, o.m, &err) != SN_OK) fail_msg("%s", err.text);
    assert_int_equal(sn_grid_check(&not, o.m, &err), SN_ERR_ARGUMENT);
    snprintf(wanted, sizeof wanted, "model, %g s of %s", c[i].time, c[i].what);
    if (!strstr(err.text, wanted)) fail_msg("'%s' is not in: %s", wanted, err.text);
    assert_non_null(strstr(err.text, "grid: '2x1,2x7': a step of 7 x 0.002 s = 0.014 s"));
    o.m->opt.integrator = SN_INT_DISCRETE;  // which follows any spring
    assert_int_equal(sn_grid_check(&not, o.m, &err), SN_OK);
    sn_oracle_free(&o);
  }
}

static void without_springs_a_second_is_the_bound(void **state) {
  (void)state;
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o,
                        "<mujoco><option timestep='.5'/><worldbody><body><joint/><geom size='.1'/></body>"
                        "</worldbody></mujoco>");
  const SnGrid fits = grid_of("2x1,1x2", 4), not = grid_of("1x1,1x3", 4), none = {0};
  assert_int_equal(sn_grid_check(&fits, o.m, &err), SN_OK);
  assert_int_equal(sn_grid_check(&none, o.m, &err), SN_OK);
  assert_int_equal(sn_grid_check(&not, o.m, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "at most 1 s"));
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(text_is_read_and_written),
                                     cmocka_unit_test(bad_text_is_refused),
                                     cmocka_unit_test(steps_and_rows),
                                     cmocka_unit_test(rows_there_and_back),
                                     cmocka_unit_test(moments_in_time),
                                     cmocka_unit_test(the_stiffest_spring_bounds_a_step),
                                     cmocka_unit_test(without_springs_a_second_is_the_bound)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

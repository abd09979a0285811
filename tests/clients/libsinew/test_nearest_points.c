// Nearest points of many states: those of a body one by one, bit for bit on any number of threads, and MuJoCo's; their
// adjoint against differences, by positions and mocap bodies, for all types of geoms; the surrogate; refusals.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/clients/libsinew/pair_fixture.h"
#include "tests/support/convex_scene.h"

enum { SEED = 23, N = 12, TYPES = 7, PAIRS = 28, NQ = 7 * (TYPES - 1), NV = 6 * (TYPES - 1), NX = NV + 6, ROWS = 10 };

static const char scene[] = "<mujoco><asset>" SN_CONVEX_HULL
                            "</asset><worldbody><body name='floor' mocap='true'><geom name='plane' type='plane' "
                            "size='1 1 1' pos='.1 0 0'/></body>"
                            "<body><freejoint/><geom type='sphere' size='.1' pos='.02 0 .01'/></body>"
                            "<body><freejoint/><geom type='capsule' size='.06 .12'/></body>"
                            "<body><freejoint/><geom type='ellipsoid' size='.06 .1 .15' euler='20 30 40'/></body>"
                            "<body><freejoint/><geom type='cylinder' size='.08 .12'/></body>"
                            "<body><freejoint/><geom type='box' size='.06 .1 .14'/></body>"
                            "<body><freejoint/><geom type='mesh' mesh='hull'/></body></worldbody></mujoco>";

// States and every pair of different geoms, in both orders; results.
typedef struct Scene {
  BodyPair b;
  SinewBackend *backend;
  double qpos[N * NQ], mocap[N * 7];
  int pair[2 * PAIRS], npair;
  double dist[N * PAIRS], from[3 * N * PAIRS], to[3 * N * PAIRS], normal[3 * N * PAIRS];
} Scene;

static SinewBackend *open_backend(int threads) {
  SinewError err;
  SinewBackendOptions options = sinew_default_backend();
  options.threads = threads;
  SinewBackend *backend = sinew_backend_open("cpu", &options, &err);
  if (!backend) fail_msg("%s", err.text);
  return backend;
}

static void draw(SnOracle *o, double *pose, double far) {
  for (int i = 0; i < 3; ++i) pose[i] = far * sn_oracle_uniform(o);
  for (int i = 3; i < 7; ++i) pose[i] = sn_oracle_uniform(o);
  mju_normalize4(pose + 3);
}

static void open_scene(Scene *s, int threads) {
  memset(s, 0, sizeof *s);
  body_open_string(&s->b, scene);
  s->b.o.rng = SEED;
  s->backend = open_backend(threads);
  assert_int_equal(s->b.o.mj->nq, NQ);
  for (int i = 0; i < N; ++i) {
    for (int k = 0; k < TYPES - 1; ++k) draw(&s->b.o, s->qpos + NQ * i + 7 * k, 0.4);
    draw(&s->b.o, s->mocap + 7 * i, 0.2);
  }
  for (int a = 0; a < TYPES; ++a)
    for (int c = 0; c < a; ++c) {
      const int at = 2 * s->npair++;
      s->pair[at + s->npair % 2] = a;
      s->pair[at + 1 - s->npair % 2] = c;
    }
}

static void close_scene(Scene *s) {
  sinew_backend_close(s->backend);
  body_close(&s->b);
}

static SinewNearestPoints points_of(Scene *s) {
  SinewNearestPoints p = sinew_default_nearest_points();
  p.model = s->b.model;
  p.count = N;
  p.qpos = s->qpos;
  p.mocap = s->mocap;
  p.npair = s->npair;
  p.pair = s->pair;
  p.dist = s->dist;
  p.from = s->from;
  p.to = s->to;
  p.normal = s->normal;
  return p;
}

static void as_one_by_one(void **state) {
  (void)state;
  double first[N * PAIRS], worst = 0;
  for (int threads = 1; threads <= 3; ++threads) {
    Scene s;
    open_scene(&s, threads);
    const SinewNearestPoints p = points_of(&s);
    body_ok(&s.b, sinew_nearest_points(s.backend, &p, &s.b.err));
    if (threads == 1) memcpy(first, s.dist, sizeof first);
    assert_memory_equal(first, s.dist, sizeof *first * (size_t)(N * s.npair));
    for (int i = 0; i < N; ++i) {
      const SinewState at = {.qpos = s.qpos + NQ * i, .mocap = s.mocap + 7 * i};
      body_ok(&s.b, sinew_data_set_state(s.b.data, &at, &s.b.err));
      body_ok(&s.b, sinew_forward(s.b.data, &s.b.err));
      mju_copy(s.b.o.d->qpos, at.qpos, NQ);
      mju_copy3(s.b.o.d->mocap_pos, at.mocap);
      mju_copy4(s.b.o.d->mocap_quat, at.mocap + 3);
      mj_forward(s.b.o.mj, s.b.o.d);
      for (int k = 0; k < s.npair; ++k) {
        const size_t row = (size_t)i * (size_t)s.npair + (size_t)k;
        SinewDistance d;
        body_ok(&s.b, sinew_geom_distance(s.b.data, s.pair[2 * k], s.pair[2 * k + 1], INFINITY, &d, &s.b.err));
        assert_memory_equal(&d.dist, s.dist + row, sizeof d.dist);
        assert_memory_equal(d.from, s.from + 3 * row, sizeof d.from);
        assert_memory_equal(d.to, s.to + 3 * row, sizeof d.to);
        assert_memory_equal(d.normal, s.normal + 3 * row, sizeof d.normal);
        if (d.dist < 0) continue;  // MuJoCo's depths have a tolerance and a kink: test_distance
        const double ref = mj_geomDistance(s.b.o.mj, s.b.o.d, s.pair[2 * k], s.pair[2 * k + 1], 10, NULL);
        worst = sn_larger(worst, fabs(ref - d.dist));
      }
    }
    close_scene(&s);
  }
  printf("distances differ by %.2g m from MuJoCo's\n", worst);
  assert_true(worst < 1e-9);
}

// ---- the adjoint ----

// Moves state i of the scene along coordinate x by h: tangents of free bodies, then the mocap body.
static void move(const Scene *s, int i, int x, double h, double *qpos, double *mocap) {
  double step[NV] = {0}, turn[3] = {0}, back[4], local[3];
  memcpy(qpos, s->qpos + NQ * i, sizeof *qpos * NQ);
  memcpy(mocap, s->mocap + 7 * i, sizeof *mocap * 7);
  if (x < NV) {
    step[x] = h;
    mj_integratePos(s->b.o.mj, qpos, step, 1);
  } else if (x < NV + 3) {
    mocap[x - NV] += h;
  } else {
    turn[x - NV - 3] = h;
    mju_negQuat(back, mocap + 3);
    mju_rotVecQuat(local, turn, back);
    mju_quatIntegrate(mocap + 3, local, 1);
  }
}

// Results (ROWS) of one pair of state i with every coordinate moved by h both ways: y (NX, 2, ROWS).
static void moved(Scene *s, int i, int k, double h, double *y) {
  static double qpos[2 * NX * NQ], mocap[2 * NX * 7], dist[2 * NX], point[3][6 * NX];
  for (int x = 0; x < NX; ++x)
    for (int e = 0; e < 2; ++e) {
      const int at = 2 * x + e;
      move(s, i, x, e == 0 ? h : -h, qpos + NQ * at, mocap + 7 * at);
    }
  SinewNearestPoints p = sinew_default_nearest_points();
  p.model = s->b.model;
  p.count = 2 * NX;
  p.qpos = qpos;
  p.mocap = mocap;
  p.npair = 1;
  p.pair = s->pair + 2 * k;
  p.dist = dist;
  p.from = point[0];
  p.to = point[1];
  p.normal = point[2];
  body_ok(&s->b, sinew_nearest_points(s->backend, &p, &s->b.err));
  for (int at = 0; at < 2 * NX; ++at) {
    y[ROWS * at] = dist[at];
    for (int part = 0; part < 3; ++part) mju_copy3(y + ROWS * at + 1 + 3 * part, point[part] + 3 * at);
  }
}

// Weights of a pair's results.
typedef struct Weights {
  double dist, part[3][3];
} Weights;

// Central differences (NX) of a weighted sum; false near a kink.
static bool difference(Scene *s, int i, int k, const Weights *w, double *d) {
  static double y[2][2 * NX * ROWS];
  const double h[2] = {1e-6, 4e-6};
  double largest = 1e-3, doubt = 0;
  for (int e = 0; e < 2; ++e) moved(s, i, k, h[e], y[e]);
  for (int x = 0; x < NX; ++x) {
    double value[2] = {0};
    for (int e = 0; e < 2; ++e)
      for (int row = 0; row < ROWS; ++row) {
        const double *at = y[e] + 2 * ROWS * x + row,
                     weight = row == 0 ? w->dist : w->part[(row - 1) / 3][(row - 1) % 3];
        value[e] += weight * (at[0] - at[ROWS]) / (2 * h[e]);
      }
    d[x] = value[0];
    largest = sn_larger(largest, fabs(d[x]));
    doubt = sn_larger(doubt, fabs(value[0] - value[1]));
  }
  return doubt < 1e-6 * largest;
}

// The adjoint of one pair of state i, (NX).
static void adjoint(Scene *s, int i, int k, const Weights *w, bool surrogate, double *bar) {
  SinewNearestPoints p = points_of(s);
  SinewNearestBars bars = sinew_default_nearest_bars();
  p.count = 1;
  p.qpos += NQ * i;
  p.mocap += 7 * i;
  p.npair = 1;
  p.pair += 2 * k;
  bars.surrogate = surrogate;
  bars.dist = &w->dist;
  bars.from = w->part[0];
  bars.to = w->part[1];
  bars.normal = w->part[2];
  bars.qpos = bar;
  bars.mocap = bar + NV;
  body_ok(&s->b, sinew_nearest_points_vjp(s->backend, &p, &bars, &s->b.err));
}

static Weights draw_weights(SnOracle *o) {
  Weights w = {.dist = sn_oracle_uniform(o)};
  for (int part = 0; part < 3; ++part)
    for (int i = 0; i < 3; ++i) w.part[part][i] = sn_oracle_uniform(o);
  return w;
}

static double relative(const double *a, const double *b) {
  double largest = 1e-3, worst = 0;
  for (int x = 0; x < NX; ++x) {
    largest = sn_larger(largest, fabs(b[x]));
    worst = sn_larger(worst, fabs(a[x] - b[x]));
  }
  return worst / largest;
}

static void against_differences(void **state) {
  (void)state;
  Scene s;
  int compared = 0, kinks = 0;
  double worst = 0;
  open_scene(&s, 2);
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < s.npair; ++k) {
      double bar[NX], d[NX];
      const Weights w = draw_weights(&s.b.o);
      adjoint(&s, i, k, &w, false, bar);
      if (!difference(&s, i, k, &w, d)) {
        ++kinks;
        continue;
      }
      ++compared;
      worst = sn_larger(worst, relative(bar, d));
    }
  printf("%d pairs differ by %.2g from differences, %d near a kink\n", compared, worst, kinks);
  assert_true(compared > 0.8 * N * s.npair);
  assert_true(worst < 1e-5);
  close_scene(&s);
}

// The adjoint of all pairs of all states at once is the sum over pairs, in either coordinates.
static void of_all(void **state) {
  (void)state;
  Scene s;
  static double dist[N * PAIRS], part[3][3 * N * PAIRS], tangent[N * NV], array[N * NQ], mocap[N * 6];
  open_scene(&s, 2);
  double sum[NX] = {0}, bar[NX];
  for (int at = 0; at < N * s.npair; ++at) {
    const Weights w = draw_weights(&s.b.o);
    dist[at] = w.dist;
    for (int k = 0; k < 3; ++k) mju_copy3(part[k] + 3 * at, w.part[k]);
    if (at / s.npair != 5) continue;
    adjoint(&s, 5, at % s.npair, &w, false, bar);
    mju_addTo(sum, bar, NX);
  }
  const SinewNearestPoints p = points_of(&s);
  SinewNearestBars bars = sinew_default_nearest_bars();
  bars.dist = dist;
  bars.from = part[0];
  bars.to = part[1];
  bars.normal = part[2];
  bars.mocap = mocap;
  for (int coordinates = 0; coordinates < 2; ++coordinates) {
    bars.coordinates = (SinewCoordinates)coordinates;
    bars.qpos = coordinates == SINEW_ARRAY ? array : tangent;
    body_ok(&s.b, sinew_nearest_points_vjp(s.backend, &p, &bars, &s.b.err));
  }
  mju_copy(bar, tangent + 5 * NV, NV);
  mju_copy(bar + NV, mocap + 5 * 6, 6);
  assert_true(relative(bar, sum) < 1e-12);
  for (int k = 0; k < 3; ++k) assert_true(array[5 * NQ + k] == tangent[5 * NV + k]);
  assert_true(fabs(mju_dot(array + 5 * NQ + 3, s.qpos + 5 * NQ + 3, 4)) < 1e-12);
  close_scene(&s);
}

// By all sizes of geoms at once, of a state after another: as differences of two bodies have it.
static void by_sizes(void **state) {
  (void)state;
  static const char *const sizes[] = {"geom_size"};
  static const int pair[] = {0, 1, 1, 2, 2, 0};
  static const double qpos[2 * 21] = {.4,  0,   0,  1,  0, 0,  0, 0,   .45, .1, .8, .6, 0,  0,
                                      -.5, -.1, .2, .6, 0, .8, 0, .3,  -.2, .1, .6, 0,  .8, 0,
                                      .1,  .55, .3, .6, 0, .8, 0, -.4, .2,  .1, .8, 0,  0,  .6};
  static const double weight[6] = {1, -2, 3, .5, 2, 1};
  BodyPair b;
  body_open_string(
      &b,
      "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body><body><freejoint/><geom type='capsule' "
      "size='.06 .12'/></body><body><freejoint/><geom type='box' size='.06 .1 .14'/></body></worldbody>"
      "</mujoco>");
  SinewBackend *backend = open_backend(1);
  double dist[2][6], got[2], step = 1e-6;
  SinewNearestPoints p = sinew_default_nearest_points();
  p.count = 2;
  p.qpos = qpos;
  p.npair = 3;
  p.pair = pair;
  for (int side = 0; side < 2; ++side) {
    SinewModel *moved = body_moved(b.model, "geom_size", side ? -step : step, &b.err);
    p.model = moved;
    p.dist = dist[side];
    body_ok(&b, sinew_nearest_points(backend, &p, &b.err));
    sinew_model_free(moved);
  }
  p.model = b.model;
  SinewNearestBars bars = sinew_default_nearest_bars();
  SinewParameters *by = body_parameters(b.model, sizes, 1, &b.err);
  bars.dist = weight;
  bars.parameters = by;
  bars.parameter = got;
  body_ok(&b, sinew_nearest_points_vjp(backend, &p, &bars, &b.err));
  for (int i = 0; i < 2; ++i) {
    double want = 0;
    for (int k = 3 * i; k < 3 * i + 3; ++k) want += weight[k] * (dist[0][k] - dist[1][k]) / (2 * step);
    if (!(fabs(got[i] - want) < 1e-6)) fail_msg("state %d: %.9g by sizes, difference %.9g", i, got[i], want);
  }
  sinew_parameters_free(by);
  sinew_backend_close(backend);
  body_close(&b);
}

// The surrogate is right for distances, and for points that are corners; else it is not.
static void carried(void **state) {
  (void)state;
  Scene s;
  double far = 0, wrong = 0;
  open_scene(&s, 1);
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < s.npair; ++k) {
      double bar[NX], exact[NX];
      Weights w = {.dist = 1};
      adjoint(&s, i, k, &w, true, bar);
      adjoint(&s, i, k, &w, false, exact);
      far = sn_larger(far, relative(bar, exact));
      w = draw_weights(&s.b.o);
      adjoint(&s, i, k, &w, true, bar);
      adjoint(&s, i, k, &w, false, exact);
      wrong = sn_larger(wrong, relative(bar, exact));
    }
  printf("by the surrogate distances differ by %.2g, the rest by up to %.2g\n", far, wrong);
  assert_true(far < 1e-9);
  assert_true(wrong > 0.1);
  close_scene(&s);
}

static void beyond_the_limit(void **state) {
  (void)state;
  Scene s;
  double bar[N * NV];
  open_scene(&s, 1);
  SinewNearestPoints p = points_of(&s);
  SinewNearestBars bars = sinew_default_nearest_bars();
  p.limit = -10;
  body_ok(&s.b, sinew_nearest_points(s.backend, &p, &s.b.err));
  for (int k = 0; k < N * s.npair; ++k) assert_true(s.dist[k] == -10 && s.from[3 * k] == 0 && s.normal[3 * k] == 0);
  bars.dist = s.dist;
  bars.qpos = bar;
  body_ok(&s.b, sinew_nearest_points_vjp(s.backend, &p, &bars, &s.b.err));
  for (int k = 0; k < N * NV; ++k) assert_true(bar[k] == 0);
  close_scene(&s);
}

static void refused(const Scene *s, SinewStatus status, SinewStatus want, const char *text) {
  assert_int_equal(status, want);
  if (!strstr(s->b.err.text, text)) fail_msg("'%s' does not say '%s'", s->b.err.text, text);
}

static void refusals(void **state) {
  (void)state;
  Scene s;
  open_scene(&s, 2);
  SinewError *err = &s.b.err;
  SinewNearestPoints p = points_of(&s), bad = p;
  SinewNearestBars bars = sinew_default_nearest_bars();
  refused(&s, sinew_nearest_points(NULL, &p, err), SINEW_ERR_ARGUMENT, "backend is NULL");
  refused(&s, sinew_nearest_points(s.backend, NULL, err), SINEW_ERR_ARGUMENT, "SinewNearestPoints");
  bad.model = NULL;
  refused(&s, sinew_nearest_points(s.backend, &bad, err), SINEW_ERR_ARGUMENT, "model is NULL");
  bad = p;
  bad.count = -1;
  refused(&s, sinew_nearest_points(s.backend, &bad, err), SINEW_ERR_ARGUMENT, "count is -1");
  bad = p;
  bad.pair = NULL;
  refused(&s, sinew_nearest_points(s.backend, &bad, err), SINEW_ERR_ARGUMENT, "pair is NULL");
  bad = p;
  bad.limit = NAN;
  refused(&s, sinew_nearest_points(s.backend, &bad, err), SINEW_ERR_ARGUMENT, "limit");
  s.pair[3] = TYPES;
  refused(&s, sinew_nearest_points(s.backend, &p, err), SINEW_ERR_ARGUMENT, "pair[3] is 7; the model has 7 geoms");
  s.pair[3] = 0;
  s.pair[2] = 0;
  refused(&s, sinew_nearest_points(s.backend, &p, err), SINEW_ERR_UNSUPPORTED, "state 0: distance of geom 0 'plane'");
  s.pair[2] = 1;
  s.qpos[NQ * 3 + 2] = NAN;
  refused(&s, sinew_nearest_points(s.backend, &p, err), SINEW_ERR_DIVERGED, "state 3");
  s.qpos[NQ * 3 + 2] = 0;
  bars.dist = s.dist;
  body_ok(&s.b, sinew_nearest_points(s.backend, &p, err));
  body_ok(&s.b, sinew_nearest_points_vjp(s.backend, &p, &bars, err));
  s.dist[4] = INFINITY;
  refused(&s, sinew_nearest_points_vjp(s.backend, &p, &bars, err), SINEW_ERR_ARGUMENT, "dist[4] is inf");
  s.dist[4] = 0;
  bars.coordinates = (SinewCoordinates)7;
  refused(&s, sinew_nearest_points_vjp(s.backend, &p, &bars, err), SINEW_ERR_ARGUMENT, "coordinates is 7");
  bars.coordinates = SINEW_TANGENT;
  bars.parameter = s.dist;
  refused(&s, sinew_nearest_points_vjp(s.backend, &p, &bars, err), SINEW_ERR_ARGUMENT, "parameters is NULL");
  close_scene(&s);
}

static bool had_enough(void *asked) { return ++*(int *)asked == 2; }

// Many pairs, and so many states, take long enough to be asked about twice.
static void interrupted(void **state) {
  (void)state;
  enum { MANY = 400000 };
  for (int threads = 1; threads <= 2; ++threads)
    for (int of_states = 0; of_states < 2; ++of_states) {
      Scene s;
      open_scene(&s, threads);
      SinewNearestPoints p = points_of(&s);
      SinewNearestBars bars = sinew_default_nearest_bars();
      const int npair = of_states ? 1 : MANY;
      int *pair = malloc(sizeof *pair * 2 * (size_t)npair), asked = 0;
      assert_non_null(pair);
      for (int k = 0; k < 2 * npair; ++k) pair[k] = s.pair[k % (2 * s.npair)];
      p.count = of_states ? MANY : 1;
      p.qpos = p.mocap = NULL;
      p.npair = npair;
      p.pair = pair;
      p.dist = p.from = p.to = p.normal = NULL;
      p.interrupt = had_enough;
      p.interrupt_user = &asked;
      refused(&s, sinew_nearest_points(s.backend, &p, &s.b.err), SINEW_ERR_INTERRUPTED, "interrupted by its caller");
      assert_int_equal(asked, 2);
      asked = 0;
      refused(&s, sinew_nearest_points_vjp(s.backend, &p, &bars, &s.b.err), SINEW_ERR_INTERRUPTED, "interrupted");
      assert_int_equal(asked, 2);
      p.count = p.npair = 1;
      body_ok(&s.b, sinew_nearest_points(s.backend, &p, &s.b.err));
      free(pair);
      close_scene(&s);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_by_one), cmocka_unit_test(against_differences),
                                     cmocka_unit_test(of_all),        cmocka_unit_test(by_sizes),
                                     cmocka_unit_test(carried),       cmocka_unit_test(beyond_the_limit),
                                     cmocka_unit_test(refusals),      cmocka_unit_test(interrupted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

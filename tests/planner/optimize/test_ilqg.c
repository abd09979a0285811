// The backward pass on linear steps with quadratic costs: gains and values of a Riccati recursion, and controls against
// the one large quadratic programme that all of them make.
#include "planner/optimize/ilqg.h"

#include "tests/support/oracle.h"

// A random system that changes with time: NV velocities, as many positions that follow them, NA activations.
enum { NV = 3, NA = 2, N = 2 * NV + NA, NU = 4, STEPS = 12, ALL = STEPS * NU, WIDE = N + NU };

static uint64_t draws;

static sn_number draw(void) {
  uint64_t x = 0x9e3779b97f4a7c15u * ++draws;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (sn_number)((double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
}

static const double close_to = sizeof(sn_number) == 4 ? 2e-3 : 1e-9;
static const sn_number h = SN_R(0.1);

typedef struct Problem {
  sn_number A[STEPS][N * N], B[STEPS][N * NU], lx[STEPS + 1][N], lu[STEPS][NU], lxx[STEPS + 1][N * N];
  sn_number lux[STEPS][NU * N], luu[STEPS][NU * NU], lo[NU], hi[NU], weight[NU];
  sn_number k[STEPS][NU], K[STEPS][NU * N];
} Problem;

// Row i < NV is q + h v', with a turn where it is not tied (i = 0); the last NA rows have few entries.
static void make_dynamics(sn_number *A, sn_number *B, bool ties) {
  for (int i = NV; i < N; ++i)
    for (int j = 0; j < N; ++j) A[i * N + j] = i < 2 * NV ? (i == j) + SN_R(0.3) * draw() : (i == j) * SN_R(0.8);
  for (int i = NV; i < N; ++i)
    for (int j = 0; j < NU; ++j) B[i * NU + j] = i < 2 * NV ? draw() : (sn_number)(i - 2 * NV == j);
  for (int i = 0; i < NV; ++i) {
    for (int j = 0; j < N; ++j) A[i * N + j] = ties || i > 0 ? (i == j) + h * A[(NV + i) * N + j] : draw();
    for (int j = 0; j < NU; ++j) B[i * NU + j] = ties || i > 0 ? h * B[(NV + i) * NU + j] : draw();
  }
}

// A cost of residuals of state and control, R'R, so that it is positive semidefinite, cross terms included.
static void make_cost(Problem *p, int t) {
  enum { ROWS = 9 };
  sn_number R[ROWS][WIDE], L[WIDE][WIDE] = {{0}};
  for (int r = 0; r < ROWS; ++r)
    for (int j = 0; j < WIDE; ++j) R[r][j] = draw();
  for (int i = 0; i < WIDE; ++i)
    for (int j = 0; j < WIDE; ++j)
      for (int r = 0; r < ROWS; ++r) L[i][j] += R[r][i] * R[r][j];
  for (int i = 0; i < N; ++i) p->lx[t][i] = draw();
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) p->lxx[t][i * N + j] = L[i][j];
  if (t == STEPS) return;
  for (int i = 0; i < NU; ++i) p->lu[t][i] = draw();
  for (int i = 0; i < NU; ++i)
    for (int j = 0; j < N; ++j) p->lux[t][i * N + j] = L[N + i][j];
  for (int i = 0; i < NU; ++i)
    for (int j = 0; j < NU; ++j) p->luu[t][i * NU + j] = L[N + i][N + j] + (i == j);
}

static void make_problem(Problem *p, bool ties, double limit) {
  memset(p, 0, sizeof *p);
  for (int t = 0; t < STEPS; ++t) make_dynamics(p->A[t], p->B[t], ties);
  for (int t = 0; t <= STEPS; ++t) make_cost(p, t);
  for (int i = 0; i < NU; ++i) {
    p->lo[i] = (sn_number)(-limit * (1 + i));
    p->hi[i] = (sn_number)(limit * (2 - i % 2));
    p->weight[i] = (sn_number)(1 + i);
  }
}

static const int tie_of[N] = {NV, NV + 1, NV + 2, -1, -1, -1, -1, -1};
static const int tie_rest[N] = {-1, NV + 1, NV + 2, -1, -1, -1, -1, -1};

static bool pass_back(Problem *p, SnIlqg *w, double mu) {
  sn_ilqg_begin(w, p->lx[STEPS], p->lxx[STEPS]);
  for (int t = STEPS - 1; t >= 0; --t) {
    const SnIlqgStep s = {.A = p->A[t],
                          .B = p->B[t],
                          .lx = p->lx[t],
                          .lu = p->lu[t],
                          .lxx = p->lxx[t],
                          .lux = p->lux[t],
                          .luu = p->luu[t],
                          .lo = p->lo,
                          .hi = p->hi,
                          .weight = p->weight,
                          .mu = (sn_number)mu,
                          .duration = h};
    if (!sn_ilqg_step(w, &s, p->k[t], p->K[t])) return false;
  }
  return true;
}

// Solves a x = b in place for `cols` right-hand sides behind the n columns of a.
static void eliminate(double *a, int n, int cols) {
  const int w = n + cols;
  for (int r = 0; r < n; ++r) {
    int pivot = r;
    for (int s = r + 1; s < n; ++s)
      if (fabs(a[s * w + r]) > fabs(a[pivot * w + r])) pivot = s;
    for (int k = 0; k < w; ++k) {
      const double x = a[r * w + k];
      a[r * w + k] = a[pivot * w + k];
      a[pivot * w + k] = x;
    }
    for (int s = 0; s < n; ++s) {
      const double f = s == r ? 0 : a[s * w + r] / a[r * w + r];
      for (int k = r; k < w; ++k) a[s * w + k] -= f * a[r * w + k];
    }
  }
  for (int r = 0; r < n; ++r)
    for (int k = n; k < w; ++k) a[r * w + k] /= a[r * w + r];
}

// One step of the finite-horizon Riccati recursion in its textbook's form: P (N, N), p (N) of t from those of t + 1,
// gains and offsets of the controls.
static void riccati(const Problem *x, int t, double P[N][N], double p[N], double gain[NU][N], double offset[NU]) {
  double S[NU * (NU + N + 1)] = {0}, PA[N][N] = {{0}}, PB[N][NU] = {{0}}, next[N][N], grown[N], Qux[NU][N], qu[NU];
  const sn_number *A = x->A[t], *B = x->B[t];
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < N; ++k) {
      for (int j = 0; j < N; ++j) PA[i][j] += P[i][k] * (double)A[k * N + j];
      for (int j = 0; j < NU; ++j) PB[i][j] += P[i][k] * (double)B[k * NU + j];
    }
  for (int i = 0; i < NU; ++i) {
    qu[i] = (double)x->lu[t][i];
    for (int k = 0; k < N; ++k) qu[i] += (double)B[k * NU + i] * p[k];
    for (int j = 0; j < N; ++j) {
      Qux[i][j] = (double)x->lux[t][i * N + j];
      for (int k = 0; k < N; ++k) Qux[i][j] += (double)B[k * NU + i] * PA[k][j];
      S[i * (NU + N + 1) + NU + j] = -Qux[i][j];
    }
    for (int j = 0; j < NU; ++j) {
      double sum = (double)x->luu[t][i * NU + j];
      for (int k = 0; k < N; ++k) sum += (double)B[k * NU + i] * PB[k][j];
      S[i * (NU + N + 1) + j] = sum;
    }
    S[i * (NU + N + 1) + NU + N] = -qu[i];
  }
  eliminate(S, NU, N + 1);
  for (int i = 0; i < NU; ++i) {
    for (int j = 0; j < N; ++j) gain[i][j] = S[i * (NU + N + 1) + NU + j];
    offset[i] = S[i * (NU + N + 1) + NU + N];
  }
  for (int i = 0; i < N; ++i) {
    grown[i] = (double)x->lx[t][i];
    for (int k = 0; k < N; ++k) grown[i] += (double)A[k * N + i] * p[k];
    for (int k = 0; k < NU; ++k) grown[i] += Qux[k][i] * offset[k];
    for (int j = 0; j < N; ++j) {
      next[i][j] = (double)x->lxx[t][i * N + j];
      for (int k = 0; k < N; ++k) next[i][j] += (double)A[k * N + i] * PA[k][j];
      for (int k = 0; k < NU; ++k) next[i][j] += Qux[k][i] * gain[k][j];
    }
  }
  memcpy(P, next, sizeof next);
  memcpy(p, grown, sizeof grown);
}

// Relative to the size of what is compared.
static void assert_near(double a, double b, double size, const char *what, int t) {
  if (!(fabs(a - b) <= close_to * (1 + size))) fail_msg("%s of step %d: %.15g, not %.15g", what, t, a, b);
}

static void riccati_gains(void **state) {
  (void)state;
  static Problem p;
  for (int form = 0; form < 3; ++form) {
    double P[N][N], v[N], gain[NU][N], offset[NU];
    make_problem(&p, form == 1, (double)INFINITY);
    SnIlqg *w = sn_ilqg_create(N, NU, form == 0 ? NULL : (form == 1 ? tie_of : tie_rest), NULL);
    assert_true(pass_back(&p, w, 0));
    for (int i = 0; i < N; ++i) {
      v[i] = (double)p.lx[STEPS][i];
      for (int j = 0; j < N; ++j) P[i][j] = (double)p.lxx[STEPS][i * N + j];
    }
    for (int t = STEPS - 1; t >= 0; --t) {
      riccati(&p, t, P, v, gain, offset);
      for (int i = 0; i < NU; ++i) {
        assert_near((double)p.k[t][i], offset[i], fabs(offset[i]), "offset", t);
        for (int j = 0; j < N; ++j) assert_near((double)p.K[t][i * N + j], gain[i][j], fabs(gain[i][j]), "gain", t);
      }
    }
    sn_ilqg_free(w);
  }
}

// ---- all controls at once ----

// The states of the linear system under controls u, from x = 0.
static void simulate(const Problem *p, const double *u, double x[STEPS + 1][N]) {
  memset(x[0], 0, sizeof x[0]);
  for (int t = 0; t < STEPS; ++t)
    for (int i = 0; i < N; ++i) {
      x[t + 1][i] = 0;
      for (int j = 0; j < N; ++j) x[t + 1][i] += (double)p->A[t][i * N + j] * x[t][j];
      for (int j = 0; j < NU; ++j) x[t + 1][i] += (double)p->B[t][i * NU + j] * u[t * NU + j];
    }
}

static double quadratic(const sn_number *M, const double *a, const double *b, int n, int m) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) sum += a[i] * (double)M[i * m + j] * b[j];
  return sum;
}

static double cost_of(const Problem *p, const double *u) {
  double x[STEPS + 1][N], sum = 0;
  simulate(p, u, x);
  for (int t = 0; t <= STEPS; ++t) {
    for (int i = 0; i < N; ++i) sum += (double)p->lx[t][i] * x[t][i];
    sum += quadratic(p->lxx[t], x[t], x[t], N, N) / 2;
    if (t == STEPS) break;
    for (int i = 0; i < NU; ++i) sum += (double)p->lu[t][i] * u[t * NU + i];
    sum += quadratic(p->lux[t], u + t * NU, x[t], NU, N) + quadratic(p->luu[t], u + t * NU, u + t * NU, NU, NU) / 2;
  }
  return sum;
}

// The slope of a quadratic by differences, exact but for rounding.
static double slope_of(const Problem *p, double *u, int i) {
  const double step = 1e-3, at = u[i];
  u[i] = at + step;
  const double up = cost_of(p, u);
  u[i] = at - step;
  const double down = cost_of(p, u);
  u[i] = at;
  return (up - down) / (2 * step);
}

// Controls with feedback from x = 0, clamped.
static void apply(const Problem *p, double *u) {
  double x[STEPS + 1][N];
  memset(u, 0, ALL * sizeof *u);
  for (int t = 0; t < STEPS; ++t) {
    simulate(p, u, x);
    for (int i = 0; i < NU; ++i) {
      double to = (double)p->k[t][i];
      for (int j = 0; j < N; ++j) to += (double)p->K[t][i * N + j] * x[t][j];
      u[t * NU + i] = fmin(fmax(to, (double)p->lo[i]), (double)p->hi[i]);
    }
  }
}

// Without limits the controls have no slope left, and the cost falls by what the pass foretells, also a part of it.
static void least_cost(void **state) {
  (void)state;
  static Problem p;
  double u[ALL];
  make_problem(&p, true, (double)INFINITY);
  SnIlqg *w = sn_ilqg_create(N, NU, tie_of, NULL);
  assert_true(pass_back(&p, w, 0));
  apply(&p, u);
  const double least = cost_of(&p, u);
  for (int i = 0; i < ALL; ++i) assert_near(slope_of(&p, u, i), 0, 100 * fabs(least), "slope", i / NU);
  assert_near(sn_ilqg_expected(w, 1), least, fabs(least), "change", 0);
  // half the way: every change halves, and so do the states
  for (int i = 0; i < STEPS * NU; ++i) (&p.k[0][0])[i] /= 2;
  apply(&p, u);
  assert_near(sn_ilqg_expected(w, 0.5), cost_of(&p, u), fabs(least), "change of a half", 0);
  sn_ilqg_free(w);
}

// The linear and quadratic model about controls u, whose states are x.
static void move_model(const Problem *p, const double *u, double x[STEPS + 1][N], Problem *about) {
  *about = *p;
  for (int t = 0; t <= STEPS; ++t) {
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) about->lx[t][i] += p->lxx[t][i * N + j] * (sn_number)x[t][j];
    for (int i = 0; t < STEPS && i < NU; ++i) {
      for (int j = 0; j < N; ++j) {
        about->lu[t][i] += p->lux[t][i * N + j] * (sn_number)x[t][j];
        about->lx[t][j] += p->lux[t][i * N + j] * (sn_number)u[t * NU + i];
      }
      for (int j = 0; j < NU; ++j) about->lu[t][i] += p->luu[t][i * NU + j] * (sn_number)u[t * NU + j];
    }
  }
}

// A pass about controls u within their limits.
static void pass_about(const Problem *p, const double *u, double x[STEPS + 1][N], SnIlqg *w, Problem *about) {
  move_model(p, u, x, about);
  for (int i = 0; i < STEPS * NU * N; ++i) (&about->K[0][0])[i] = 1000;  // left by a pass before
  sn_ilqg_begin(w, about->lx[STEPS], about->lxx[STEPS]);
  for (int t = STEPS - 1; t >= 0; --t) {
    sn_number lo[NU], hi[NU];
    for (int i = 0; i < NU; ++i) {
      lo[i] = p->lo[i] - (sn_number)u[t * NU + i];
      hi[i] = p->hi[i] - (sn_number)u[t * NU + i];
    }
    const SnIlqgStep s = {p->A[t],   p->B[t], about->lx[t], about->lu[t], p->lxx[t], p->lux[t],
                          p->luu[t], lo,      hi,           p->weight,    0,         h};
    assert_true(sn_ilqg_step(w, &s, about->k[t], about->K[t]));
  }
}

// The controls u with a part of the change and the feedback about the states x.
static void try_change(const Problem *about, const double *u, double x[STEPS + 1][N], double alpha, double *trial) {
  double y[STEPS + 1][N];
  memcpy(trial, u, ALL * sizeof *trial);
  for (int t = 0; t < STEPS; ++t) {
    simulate(about, trial, y);
    for (int i = 0; i < NU; ++i) {
      double to = u[t * NU + i] + alpha * (double)about->k[t][i];
      for (int j = 0; j < N; ++j) to += (double)about->K[t][i * N + j] * (y[t][j] - x[t][j]);
      trial[t * NU + i] = fmin(fmax(to, (double)about->lo[i]), (double)about->hi[i]);
    }
  }
}

// With limits, repeated about the controls of before: those inside have no slope, at a limit it points outwards.
static void least_within_limits(void **state) {
  (void)state;
  static Problem p, about;
  double u[ALL] = {0}, change[ALL], trial[ALL], x[STEPS + 1][N];
  int held = 0;
  make_problem(&p, true, 0.2);
  SnIlqg *w = sn_ilqg_create(N, NU, tie_of, NULL);
  double best = cost_of(&p, u);
  for (int iteration = 0; iteration < 60; ++iteration) {
    simulate(&p, u, x);
    pass_about(&p, u, x, w, &about);
    memcpy(change, u, sizeof change);
    for (double alpha = 1; alpha > 1e-4; alpha /= 2) {
      try_change(&about, u, x, alpha, trial);
      if (!(cost_of(&p, trial) < best)) continue;
      best = cost_of(&p, trial);
      memcpy(change, trial, sizeof change);
    }
    memcpy(u, change, sizeof u);
  }
  for (int i = 0; i < ALL; ++i) {
    const double lo = (double)p.lo[i % NU], hi = (double)p.hi[i % NU], slope = slope_of(&p, u, i);
    held += u[i] == lo || u[i] == hi;
    if (!(u[i] == lo ? slope > -1e-4 : (u[i] == hi ? slope < 1e-4 : fabs(slope) < 1e-4 * (1 + fabs(best)))))
      fail_msg("control %d, %g: slope %g", i, u[i], slope);
  }
  assert_in_range(held, 4, ALL - 4);
  sn_ilqg_free(w);
}

// Regularisation shortens the change and keeps what is not definite from failing; its schedule is the paper's.
static void regularisation(void **state) {
  (void)state;
  static Problem p;
  double plain = 0, slow = 0;
  make_problem(&p, false, (double)INFINITY);
  SnIlqg *w = sn_ilqg_create(N, NU, NULL, NULL);
  assert_true(pass_back(&p, w, 0));
  for (int i = 0; i < NU; ++i) plain += fabs((double)p.k[STEPS - 1][i]);
  assert_true(pass_back(&p, w, 100));
  for (int i = 0; i < NU; ++i) slow += fabs((double)p.k[STEPS - 1][i]);
  assert_true(slow < plain / 2);
  p.luu[4][0] = -1000;
  assert_false(pass_back(&p, w, 0));
  assert_true(pass_back(&p, w, 3000));
  sn_ilqg_free(w);

  SnIlqgMu s = sn_ilqg_more((SnIlqgMu){0, 1});
  assert_true(s.mu == 1e-6 && s.factor == 2);
  s = sn_ilqg_more(s);
  assert_true(s.mu == 4e-6 && s.factor == 4);
  s = sn_ilqg_less(s);
  assert_true(s.mu == 2e-6 && s.factor == 0.5);
  s = sn_ilqg_less(s);
  assert_true(s.mu == 0 && s.factor == 0.25);
  assert_false(sn_ilqg_beyond(s));
  assert_true(sn_ilqg_beyond((SnIlqgMu){2e10, 2}));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(riccati_gains), cmocka_unit_test(least_cost),
                                     cmocka_unit_test(least_within_limits), cmocka_unit_test(regularisation)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

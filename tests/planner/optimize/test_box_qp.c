// Quadratic programmes with limits against all sets of held unknowns, and against a plain solution without limits.
#include "planner/optimize/box_qp_private.h"

#include "tests/support/oracle.h"

enum { MOST = 6 };

static uint64_t draws;

static sn_number draw(void) {
  uint64_t x = 0x9e3779b97f4a7c15u * ++draws;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (sn_number)((double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
}

static const double close_to = sizeof(sn_number) == 4 ? 1e-3 : 1e-9;

typedef struct Case {
  sn_number H[MOST * MOST], g[MOST], lo[MOST], hi[MOST], x[MOST];
  sn_number L[MOST * MOST], slope[MOST], step[MOST], trial[MOST];
  int free[MOST];
  SnBoxQp qp;
} Case;

static void bind_case(Case *c, int n) {
  c->qp = (SnBoxQp){.n = n,
                    .H = c->H,
                    .g = c->g,
                    .lo = c->lo,
                    .hi = c->hi,
                    .x = c->x,
                    .free = c->free,
                    .L = c->L,
                    .slope = c->slope,
                    .step = c->step,
                    .trial = c->trial};
}

static void make_case(Case *c, int n, double limit) {
  sn_number half[MOST * MOST];
  memset(c, 0, sizeof *c);
  for (int i = 0; i < n * n; ++i) half[i] = draw();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) c->H[i * n + j] += half[i * n + k] * half[j * n + k];
    c->H[i * n + i] += SN_R(0.02);
    c->g[i] = draw();
    c->lo[i] = (sn_number)(-limit * (0.5 + fabs((double)draw())));
    c->hi[i] = (sn_number)(limit * (0.5 + fabs((double)draw())));
    c->x[i] = draw();
  }
  bind_case(c, n);
}

static double value(const Case *c, const double *x) {
  const int n = c->qp.n;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += (double)c->g[i] * x[i];
    for (int j = 0; j < n; ++j) sum += x[i] * (double)c->H[i * n + j] * x[j] / 2;
  }
  return sum;
}

// Gauss elimination of the unknowns that are not held (side 0), others at their limits.
static void solve_face(const Case *c, const int *side, double *x) {
  const int n = c->qp.n;
  double a[MOST][MOST + 1] = {0};
  int at[MOST], m = 0;
  for (int i = 0; i < n; ++i) {
    x[i] = side[i] < 0 ? (double)c->lo[i] : (side[i] > 0 ? (double)c->hi[i] : 0);
    if (side[i] == 0) at[m++] = i;
  }
  for (int r = 0; r < m; ++r) {
    a[r][m] = -(double)c->g[at[r]];
    for (int j = 0; j < n; ++j) a[r][m] -= (double)c->H[at[r] * n + j] * x[j];
    for (int k = 0; k < m; ++k) a[r][k] = (double)c->H[at[r] * n + at[k]];
  }
  for (int r = 0; r < m; ++r)
    for (int s = 0; s < m; ++s) {
      const double f = s == r ? 0 : a[s][r] / a[r][r];
      for (int k = r; k <= m; ++k) a[s][k] -= f * a[r][k];
    }
  for (int r = 0; r < m; ++r) x[at[r]] = a[r][m] / a[r][r];
}

// The least value over all 3^n sets whose solution keeps to the limits.
static void solve_by_force(const Case *c, double *best) {
  const int n = c->qp.n;
  double least = (double)INFINITY;
  int sets = 1;
  for (int i = 0; i < n; ++i) sets *= 3;
  for (int set = 0; set < sets; ++set) {
    int side[MOST];
    double x[MOST];
    bool inside = true;
    for (int i = 0, rest = set; i < n; ++i, rest /= 3) side[i] = rest % 3 - 1;
    solve_face(c, side, x);
    for (int i = 0; i < n; ++i) inside = inside && x[i] >= (double)c->lo[i] - 1e-12 && x[i] <= (double)c->hi[i] + 1e-12;
    if (!inside || !(value(c, x) < least)) continue;
    least = value(c, x);
    memcpy(best, x, sizeof *best * (size_t)n);
  }
}

static void by_force(void **state) {
  (void)state;
  int held = 0, free_ones = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Case c;
    double best[MOST] = {0};
    make_case(&c, 1 + trial % MOST, trial % 4 == 0 ? 10.0 : 0.3);
    solve_by_force(&c, best);
    assert_true(sn_box_qp(&c.qp));
    for (int i = 0; i < c.qp.n; ++i)
      if (!(fabs((double)c.x[i] - best[i]) < close_to))
        fail_msg("case %d, x[%d] is %.15g, not %.15g", trial, i, (double)c.x[i], best[i]);
    free_ones += c.qp.nfree;
    held += c.qp.n - c.qp.nfree;
    for (int a = 0; a < c.qp.nfree; ++a) assert_true(fabs((double)c.qp.slope[c.free[a]]) < close_to);
  }
  assert_true(held > 100 && free_ones > 100);
}

// Without limits one step is the solution; limits that meet leave no choice; a saddle is refused.
static void borders(void **state) {
  (void)state;
  Case c;
  double best[MOST];
  const int none[MOST] = {0};
  make_case(&c, MOST, 1);
  for (int i = 0; i < MOST; ++i) c.lo[i] = (sn_number)-INFINITY, c.hi[i] = (sn_number)INFINITY;
  solve_face(&c, none, best);
  assert_true(sn_box_qp(&c.qp));
  for (int i = 0; i < MOST; ++i) assert_true(fabs((double)c.x[i] - best[i]) < close_to);
  assert_int_equal(c.qp.nfree, MOST);
  for (int i = 0; i < MOST; ++i) c.lo[i] = c.hi[i] = SN_R(0.25);
  assert_true(sn_box_qp(&c.qp));
  assert_int_equal(c.qp.nfree, 0);
  for (int i = 0; i < MOST; ++i) assert_true(c.x[i] == SN_R(0.25));
  make_case(&c, 2, 1);
  c.H[0] = -1;
  c.H[1] = c.H[2] = 0;
  c.x[0] = c.x[1] = 0;
  assert_false(sn_box_qp(&c.qp));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_force), cmocka_unit_test(borders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

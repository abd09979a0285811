// Dense products and Cholesky factors against loops in the textbook's order.
#include "planner/base/dense.h"

#include "tests/support/oracle.h"

enum { MOST = 23 };

static uint64_t draws;

static sn_number draw(void) {
  uint64_t x = 0x9e3779b97f4a7c15u * ++draws;  // splitmix64, S. Vigna
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (sn_number)((double)((x ^ (x >> 31)) >> 11) * 0x1p-52 - 1);
}

static const double close_to = sizeof(sn_number) == 4 ? 1e-4 : 1e-12;

static void fill(sn_number *x, int n) {
  for (int i = 0; i < n; ++i) x[i] = draw();
}

// Any sizes, picked rows, a transposed left factor, the upper half alone: entry by entry.
static void products(void **state) {
  (void)state;
  static const int sizes[][3] = {{1, 1, 1}, {3, 5, 4}, {7, 7, 9}, {8, 16, 23}, {13, 2, 6}};
  for (size_t c = 0; c < 4 * sizeof sizes / sizeof *sizes; ++c) {
    const int *size = sizes[c / 4], rows = size[0], inner = size[2];
    const bool upper = c % 2 == 1, transposed = c / 2 % 2 == 1;
    const int cols = upper ? rows : size[1], count = inner - inner / 3;
    sn_number left[MOST * MOST], right[MOST * MOST], z[MOST * MOST], before[MOST * MOST];
    int pick[MOST];
    fill(left, MOST * MOST);
    fill(right, MOST * MOST);
    fill(z, MOST * MOST);
    memcpy(before, z, sizeof z);
    for (int k = 0; k < count; ++k) pick[k] = inner - 1 - k;
    const SnStrided a = transposed ? (SnStrided){left, 1, (size_t)rows} : (SnStrided){left, (size_t)inner, 1};
    sn_dense_add_product(z, rows, cols, upper, a, right, c % 3 ? pick : NULL, c % 3 ? count : inner);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) {
        double sum = (double)before[i * cols + j];
        for (int k = 0; k < (c % 3 ? count : inner); ++k) {
          const int row = c % 3 ? pick[k] : k;
          sum += (double)(transposed ? left[row * rows + i] : left[i * inner + row]) * (double)right[row * cols + j];
        }
        if (upper && j < i) sum = (double)before[i * cols + j];
        if (!(fabs(sum - (double)z[i * cols + j]) < close_to))
          fail_msg("case %d, entry %d %d: %g, not %g", (int)c, i, j, (double)z[i * cols + j], sum);
      }
  }
}

// The solution of a positive definite system, put into it, gives the right-hand sides; others are told apart.
static void factors(void **state) {
  (void)state;
  enum { N = 11, COLS = 3 };
  sn_number half[N * N], x[N * N] = {0}, L[N * N], y[N * COLS], b[N * COLS];
  fill(half, N * N);
  for (int i = 0; i < N; ++i)
    for (int j = i; j < N; ++j)
      for (int k = 0; k < N; ++k) x[i * N + j] += half[i * N + k] * half[j * N + k];
  for (int i = 0; i < N; ++i) x[i * N + i] += 1;
  sn_dense_mirror(x, N);
  memcpy(L, x, sizeof x);
  assert_true(sn_dense_factor(L, N));
  fill(y, N * COLS);
  memcpy(b, y, sizeof b);
  sn_dense_solve(L, N, y, COLS);
  for (int i = 0; i < N; ++i)
    for (int c = 0; c < COLS; ++c) {
      double sum = 0;
      for (int j = 0; j < N; ++j) sum += (double)x[i * N + j] * (double)y[j * COLS + c];
      assert_true(fabs(sum - (double)b[i * COLS + c]) < close_to);
    }
  x[(N - 1) * N + N - 1] = -1;
  assert_false(sn_dense_factor(x, N));
  sn_number bad = (sn_number)NAN, infinite = (sn_number)INFINITY;
  assert_false(sn_dense_factor(&bad, 1));
  assert_false(sn_dense_factor(&infinite, 1));
  sn_number turned[6] = {0};
  const sn_number plain[6] = {1, 2, 3, 4, 5, 6}, expected[6] = {1, 4, 2, 5, 3, 6};
  sn_dense_transpose(turned, plain, 2, 3);
  assert_memory_equal(turned, expected, sizeof turned);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(factors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

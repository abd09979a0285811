// Products go four inner rows at a time: one pass over a row of the result adds four of the right factor's, so that the
// result is loaded and stored once for eight operations a number.
#include "planner/base/dense.h"

// Rows of the right factor that are added in one pass, and their coefficients.
typedef struct Four {
  const sn_number *x[4];
  sn_number a[4];
} Four;

static void add_four(sn_number *SN_RESTRICT y, Four f, int n) {
  const sn_number *SN_RESTRICT x0 = f.x[0], *SN_RESTRICT x1 = f.x[1], *SN_RESTRICT x2 = f.x[2],
                               *SN_RESTRICT x3 = f.x[3];
  const sn_number a0 = f.a[0], a1 = f.a[1], a2 = f.a[2], a3 = f.a[3];
  for (int j = 0; j < n; ++j) y[j] += (a0 * x0[j] + a1 * x1[j]) + (a2 * x2[j] + a3 * x3[j]);
}

static void add_one(sn_number *SN_RESTRICT y, sn_number a, const sn_number *SN_RESTRICT x, int n) {
  for (int j = 0; j < n; ++j) y[j] += a * x[j];
}

void sn_dense_add_product(sn_number *z, int rows, int cols, bool upper, SnStrided left, const sn_number *right,
                          const int *pick, int count) {
  for (int i = 0; i < rows; ++i) {
    const int from = upper ? i : 0, n = cols - from;
    const sn_number *a = left.x + (size_t)i * left.row;
    sn_number *y = z + (size_t)i * (size_t)cols + from;
    int k = 0;
    for (; k + 4 <= count; k += 4) {
      Four f;
      for (int e = 0; e < 4; ++e) {
        const size_t row = (size_t)(pick ? pick[k + e] : k + e);
        f.x[e] = right + row * (size_t)cols + from;
        f.a[e] = a[row * left.column];
      }
      add_four(y, f, n);
    }
    for (; k < count; ++k) {
      const size_t row = (size_t)(pick ? pick[k] : k);
      add_one(y, a[row * left.column], right + row * (size_t)cols + from, n);
    }
  }
}

void sn_dense_mirror(sn_number *z, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) z[(size_t)j * (size_t)n + (size_t)i] = z[(size_t)i * (size_t)n + (size_t)j];
}

void sn_dense_transpose(sn_number *y, const sn_number *x, int rows, int cols) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) y[(size_t)j * (size_t)rows + (size_t)i] = x[(size_t)i * (size_t)cols + (size_t)j];
}

bool sn_dense_factor(sn_number *x, int n) {
  for (int j = 0; j < n; ++j) {
    sn_number *row = x + (size_t)j * (size_t)n, sum = row[j];
    for (int k = 0; k < j; ++k) sum -= row[k] * row[k];
    // Also false where it is infinite or no number.
    if (!(sum > 0) || !(sum - sum == 0)) return false;
    const sn_number diagonal = row[j] = sn_sqrt(sum);
    for (int i = j + 1; i < n; ++i) {
      sn_number *other = x + (size_t)i * (size_t)n, rest = other[j];
      for (int k = 0; k < j; ++k) rest -= other[k] * row[k];
      other[j] = rest / diagonal;
    }
  }
  return true;
}

static void divide(sn_number *y, sn_number a, int n) {
  for (int j = 0; j < n; ++j) y[j] /= a;
}

void sn_dense_solve(const sn_number *L, int n, sn_number *y, int cols) {
  const size_t size = (size_t)n, width = (size_t)cols;
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < i; ++k) add_one(y + i * width, -L[i * size + k], y + k * width, cols);
    divide(y + i * width, L[i * size + i], cols);
  }
  for (size_t i = size; i-- > 0;) {
    for (size_t k = i + 1; k < size; ++k) add_one(y + i * width, -L[k * size + i], y + k * width, cols);
    divide(y + i * width, L[i * size + i], cols);
  }
}

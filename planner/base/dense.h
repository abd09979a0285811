// Dense matrices, row-major: products whose inner loops run along rows, which a compiler turns into vectors, and
// Cholesky factors. The order of every sum is fixed, so results do not depend on threads or machines' vectors.
#ifndef SINEW_PLANNER_BASE_DENSE_H_
#define SINEW_PLANNER_BASE_DENSE_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/real.h"

// Shows a matrix, or its transpose, by strides: entry (i, k) is x[i * row + k * column].
typedef struct SnStrided {
  const sn_number *x;
  size_t row, column;
} SnStrided;

// Adds a product: z (rows, cols) += left(:, pick) right(pick, :). `right` has rows of `cols` numbers, of which the
// `count` rows named by `pick` take part; NULL: the first ones. `upper` leaves out what is below the diagonal.
void sn_dense_add_product(sn_number *z, int rows, int cols, bool upper, SnStrided left, const sn_number *right,
                          const int *pick, int count);

// Copies what is above the diagonal of z (n, n) below it.
void sn_dense_mirror(sn_number *z, int n);

// Writes the transpose of x (rows, cols) into y (cols, rows).
void sn_dense_transpose(sn_number *y, const sn_number *x, int rows, int cols);

// Computes the Cholesky factor of a symmetric matrix in place, x = L L', in its lower half. Returns false where it is
// not positive definite.
bool sn_dense_factor(sn_number *x, int n);

// Solves L L' y = y in place for all columns of y (n, cols), L (n, n) from sn_dense_factor.
void sn_dense_solve(const sn_number *L, int n, sn_number *y, int cols);

#endif

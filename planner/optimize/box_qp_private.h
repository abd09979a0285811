// Quadratic programmes with limits on each unknown, as a backward pass of iLQG meets one at every step.
#ifndef SINEW_PLANNER_OPTIMIZE_BOX_QP_PRIVATE_H_
#define SINEW_PLANNER_OPTIMIZE_BOX_QP_PRIVATE_H_

#include <stdbool.h>

#include "physics/base/real.h"

// Holds a programme: the least of x' H x / 2 + g' x over lo <= x <= hi.
typedef struct SnBoxQp {
  int n;
  const sn_number *H;   // (n, n) symmetric
  const sn_number *g;   // (n)
  const sn_number *lo;  // (n) may be -INFINITY
  const sn_number *hi;  // (n) at least lo; may be INFINITY
  sn_number *x;         // (n) in: where to begin; out: the solution
  // Left by the solution, scratch meanwhile.
  int *free;         // (n) unknowns that are not held by a limit, ascending
  int nfree;         // how many
  sn_number *L;      // (nfree, nfree) Cholesky factor of H of those
  sn_number *slope;  // (n) H x + g
  sn_number *step;   // (n) scratch
  sn_number *trial;  // (n) scratch
} SnBoxQp;

// Solves it. Returns false where H of the free unknowns is not positive definite.
bool sn_box_qp(SnBoxQp *q);

#endif

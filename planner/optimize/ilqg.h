// The backward pass of iLQG (Gauss-Newton on a trajectory) with limits on the controls. It takes a linear model of each
// step and a quadratic one of its cost, and finds a change of the controls and a feedback. ilqg.c has the mathematics.
#ifndef SINEW_PLANNER_OPTIMIZE_ILQG_H_
#define SINEW_PLANNER_OPTIMIZE_ILQG_H_

#include <stdbool.h>

#include "physics/base/real.h"
#include "physics/base/status.h"

// Describes a step about the trajectory: x' = A x + B u, cost lx'x + lu'u + x'lxx x/2 + u'lux x + u'luu u/2, x and u
// being differences to it. Matrices are row-major.
typedef struct SnIlqgStep {
  const sn_number *A;       // (n, n)
  const sn_number *B;       // (n, nu)
  const sn_number *lx;      // (n)
  const sn_number *lu;      // (nu)
  const sn_number *lxx;     // (n, n) symmetric, positive semidefinite
  const sn_number *lux;     // (nu, n)
  const sn_number *luu;     // (nu, nu)
  const sn_number *lo;      // (nu) least change of each control; -INFINITY: no limit
  const sn_number *hi;      // (nu) largest one
  const sn_number *weight;  // (nu) of each control in the regularisation
  sn_number mu;             // the regularisation: half of mu * weight * u^2 is added to the cost of changes
  sn_number duration;       // length of the step [s], read where there are ties
} SnIlqgStep;

// Holds one backward pass. V is the cost to go from the steps that it has been through: v'x + x'V x/2.
typedef struct SnIlqg SnIlqg;

// Allocates a pass for states of n and controls of nu numbers. `tie` (n), or NULL, says what is known of A and B: row i
// with tie[i] = j >= 0 is e_i + duration * row j of A, and duration * row j of B. -1: nothing is known. Row j itself
// must not be tied. Returns NULL and err when out of memory.
SnIlqg *sn_ilqg_create(int n, int nu, const int *tie, SnError *err);
void sn_ilqg_free(SnIlqg *w);

// Begins a pass with the cost of the last state: lx (n), lxx (n, n).
void sn_ilqg_begin(SnIlqg *w, const sn_number *lx, const sn_number *lxx);

// Goes back through a step. Writes the change of its controls within their limits, k (nu), and the feedback to the
// state before it, K (nu, n). Rows of controls that stay at a limit are 0. Returns false where the curvature along
// the controls is not positive definite; the pass has to begin anew then, with a larger mu.
bool sn_ilqg_step(SnIlqg *w, const SnIlqgStep *s, sn_number *k, sn_number *K);

// Returns the change of the cost that the model foretells when the changes of the controls are taken `alpha` times.
double sn_ilqg_expected(const SnIlqg *w, double alpha);

// Holds the regularisation and how fast it changes.
typedef struct SnIlqgMu {
  double mu, factor;
} SnIlqgMu;

// Returns a larger one, faster with each call in a row.
SnIlqgMu sn_ilqg_more(SnIlqgMu s);
// Returns a smaller one, faster with each call in a row; 0 below the least that is worth its name.
SnIlqgMu sn_ilqg_less(SnIlqgMu s);
// Returns whether it is beyond the most that is tried.
bool sn_ilqg_beyond(SnIlqgMu s);

#endif

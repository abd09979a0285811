// L-BFGS with limits: a quasi-Newton method on the controls of a plan. The curvature of the cost is known by the last
// few moves and by what they did to the gradient. It asks for one value and gradient at a time. Runs on the host only.
#ifndef SINEW_PLANNER_OPTIMIZE_LBFGS_H_
#define SINEW_PLANNER_OPTIMIZE_LBFGS_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/real.h"

typedef struct SnLbfgsRule {
  int memory;       // pairs that are remembered, at least 1
  int trials;       // points along a direction that are tried at most
  sn_real first;    // most that a move without a memory changes a number by
  sn_real longest;  // most that any move does
} SnLbfgsRule;

typedef struct SnLbfgs {
  SnLbfgsRule rule;
  int n, room;       // numbers, and pairs that there is memory for
  sn_real *lo, *hi;  // (n) limits, or infinities; lo <= hi. Written by the caller before sn_lbfgs_begin
  sn_real *trial;    // (n) the point that is measured next
  // Read by nobody else.
  sn_real *x, *gradient;   // (n) the best point that was accepted, and the gradient there
  sn_real *direction;      // (n)
  sn_real *move, *change;  // (memory, n) moves that were accepted, and what the gradient changed by; a ring
  sn_real *share;          // (memory)
  unsigned char *loose;    // (n) 1: the number is not held at its limit by the gradient
  sn_real cost;            // at x
  sn_real length;          // how far along the direction the trial is
  sn_real first;           // rule.first, less where it was too long
  int pairs, newest;       // pairs in the ring, and the place of the latest
  int tried;               // trials along this direction
  bool begun;              // x was measured
} SnLbfgs;

// Makes room for n numbers and `room` pairs. Returns false when there is none; then l is as before. Free it with
// sn_lbfgs_free, which accepts zeros.
bool sn_lbfgs_create(SnLbfgs *l, int n, int room);
void sn_lbfgs_free(SnLbfgs *l);

// Begins at zeros, cut to the limits, with nothing remembered: `trial` is the point to measure. rule->memory is at most
// l->room.
void sn_lbfgs_begin(SnLbfgs *l, const SnLbfgsRule *rule);

// Takes what was measured at `trial`: its cost, and its gradient (n), or NULL where it has none. Writes the next trial.
// Returns false when there is none: the gradient leads nowhere within the limits, or no point along it was better.
bool sn_lbfgs_take(SnLbfgs *l, sn_real cost, const sn_real *gradient);

#endif

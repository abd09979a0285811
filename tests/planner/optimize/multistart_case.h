// Starts of a multistart on the bench body, as plain data. The body has a motor in [-3, 3], whose unit is 3, and two
// muscles in [0, 1], whose unit is 1.
#ifndef SINEW_TESTS_PLANNER_OPTIMIZE_MULTISTART_CASE_H_
#define SINEW_TESTS_PLANNER_OPTIMIZE_MULTISTART_CASE_H_

#include "planner/optimize/multistart.h"
#include "planner/optimize/sampling.h"
#include "tests/planner/bench_body.h"

enum { NU = 3, ROWS = 6, KNOTS = ROWS + 2, N = KNOTS * NU, STARTS = 3 };

typedef struct Memory {
  sn_real base[ROWS * NU], offset[N], best[N], gradient[N], first[N], second[N];
  sn_real ctrl[ROWS * NU], ctrl_bar[ROWS * NU], term[4];
} Memory;

typedef struct Case {
  Memory memory[STARTS];
  SnMultistartStart start[STARTS];
  sn_real nominal[ROWS * NU], initial[NU], best_term[4], scratch[15 * KNOTS];
  SnMultistart r;
} Case;

// Makes a case for up to 7 lanes. It has a knot a step; the nominal is 0.3 for the motor and 0.5 for muscles.
static inline void make_case(Case *x) {
  memset(x, 0, sizeof *x);
  for (int i = 0; i < STARTS; ++i) {
    Memory *y = &x->memory[i];
    x->start[i] = (SnMultistartStart){.base = y->base,
                                      .offset = y->offset,
                                      .best = y->best,
                                      .gradient = y->gradient,
                                      .moments = {y->first, y->second, 1, 1},
                                      .ctrl = y->ctrl,
                                      .ctrl_bar = y->ctrl_bar,
                                      .term = y->term};
  }
  for (int k = 0; k < ROWS * NU; ++k) x->nominal[k] = k % NU ? SN_R(0.5) : SN_R(0.3);
  x->initial[0] = SN_R(0.1);
  x->initial[1] = x->initial[2] = SN_R(0.25);
  x->r = (SnMultistart){.grid = {ROWS, KNOTS - 1, 1, 0, SN_SPLINE_ZERO},
                        .rule = {SN_R(0.1), SN_R(0.9), SN_R(0.99), SN_R(1e-8), SN_CLIP_OFF, SN_R(1.0)},
                        .noise = {.seed = 5,
                                  .plan = 2,
                                  .spacing = 3,
                                  .phase = 1,
                                  .knots = sn_noise_knots(ROWS, 3, 1),
                                  .interpolation = SN_SPLINE_LINEAR,
                                  .scale = SN_R(0.4)},
                        .initial_ctrl = x->initial,
                        .starts = STARTS,
                        .nominal = x->nominal,
                        .best_cost = (sn_real)NAN,
                        .gradient_norm = (sn_real)NAN,
                        .best_term = x->best_term};
}

#endif

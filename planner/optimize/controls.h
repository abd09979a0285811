// Controls of a plan over a horizon, moved in time.
#ifndef SINEW_PLANNER_OPTIMIZE_CONTROLS_H_
#define SINEW_PLANNER_OPTIMIZE_CONTROLS_H_

#include "planner/base/control_range.h"
#include "planner/task/settings.h"

// Shifts a plan of nstep rows by k >= 0 steps in place. Row t becomes row t + k, and the rows that are
// left without one repeat the last row (SN_TAIL_HOLD) or take `initial` (nu).
void sn_controls_shift(sn_real *ctrl, int nstep, int nu, int k, SnTail tail, const sn_real *initial);

#endif

// Controls in their ranges, and the unit that they are counted in. Compiles for the GPU, but for what says otherwise.
#ifndef SINEW_PLANNER_BASE_CONTROL_RANGE_H_
#define SINEW_PLANNER_BASE_CONTROL_RANGE_H_

#include "physics/model/model.h"

// Normalised controls run over [-1, 1] where a control is limited to [lo, hi], except that [0, 1] (muscles) stays as it
// is, and unlimited controls stay as they are.

// Returns the physical units of control i in one normalised one: half its range; 1 for [0, 1] and where it is
// unlimited.
SN_INLINE sn_real sn_ctrl_unit(const SnModel *m, int i) {
  const sn_real lo = m->ctrl_range[2 * i], hi = m->ctrl_range[2 * i + 1];
  return !m->ctrl_limited[i] || (lo == 0 && hi == 1) ? SN_R(1.0) : SN_R(0.5) * (hi - lo);
}
// Returns half the range of control i; 1 when it is unlimited.
SN_INLINE sn_real sn_ctrl_half_range(const SnModel *m, int i) {
  return m->ctrl_limited[i] ? SN_R(0.5) * (m->ctrl_range[2 * i + 1] - m->ctrl_range[2 * i]) : SN_R(1.0);
}
// Returns control i, which wants to be `u`, within its range.
SN_INLINE sn_real sn_ctrl_clip(const SnModel *m, int i, sn_real u) {
  return m->ctrl_limited[i] ? sn_clip(u, m->ctrl_range[2 * i], m->ctrl_range[2 * i + 1]) : u;
}
// Clamps `n` rows of controls (n, nu) to their ranges, in place. Runs on the host only.
void sn_ctrl_clamp(const SnModel *m, sn_real *ctrl, int n);

#endif

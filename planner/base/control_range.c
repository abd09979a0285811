#include "planner/base/control_range.h"

void sn_ctrl_clamp(const SnModel *m, sn_real *ctrl, int n) {
  for (int t = 0; t < n; ++t)
    for (int i = 0; i < m->nu; ++i) ctrl[t * m->nu + i] = sn_ctrl_clip(m, i, ctrl[t * m->nu + i]);
}

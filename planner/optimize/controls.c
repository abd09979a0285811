#include "planner/optimize/controls.h"

void sn_controls_shift(sn_real *ctrl, int nstep, int nu, int k, SnTail tail, const sn_real *initial) {
  if (k <= 0 || nstep <= 0) return;
  const int kept = k < nstep ? nstep - k : 0;
  const size_t row = sizeof *ctrl * (size_t)nu;
  // The last row stays where it is until the others have moved; it also fills the tail.
  const sn_real *fill = tail == SN_TAIL_INITIAL ? initial : ctrl + (size_t)(nstep - 1) * (size_t)nu;
  memmove(ctrl, ctrl + (size_t)(nstep - kept) * (size_t)nu, row * (size_t)kept);
  for (int t = kept; t < nstep; ++t)
    if (ctrl + (size_t)t * (size_t)nu != fill) memcpy(ctrl + (size_t)t * (size_t)nu, fill, row);
}

#include "planner/optimize/controls.h"

const char *sn_plan_status_text(SnPlanStatus status) {
  switch (status) {
#define SN_PLAN_TEXT(code, text) \
  case code:                     \
    return text;
    SN_PLAN_STATUSES(SN_PLAN_TEXT)
#undef SN_PLAN_TEXT
  }
  return "unknown status";
}

// Control = centre + half * unit.
static void control_scale(const SnModel *m, int i, sn_real *centre, sn_real *half) {
  const sn_real lo = m->ctrl_range[2 * i], hi = m->ctrl_range[2 * i + 1];
  const bool as_it_is = !m->ctrl_limited[i] || (lo == 0 && hi == 1);
  *centre = as_it_is ? 0 : SN_R(0.5) * (lo + hi);
  *half = sn_ctrl_unit(m, i);
}

void sn_ctrl_normalise(const SnModel *m, sn_real *out, const sn_real *ctrl, int n) {
  for (int i = 0; i < m->nu; ++i) {
    sn_real centre, half;
    control_scale(m, i, &centre, &half);
    for (int k = i; k < n * m->nu; k += m->nu) out[k] = (ctrl[k] - centre) / half;
  }
}

void sn_ctrl_denormalise(const SnModel *m, sn_real *out, const sn_real *unit, int n) {
  for (int i = 0; i < m->nu; ++i) {
    sn_real centre, half;
    control_scale(m, i, &centre, &half);
    for (int k = i; k < n * m->nu; k += m->nu) out[k] = centre + half * unit[k];
  }
}

void sn_ctrl_clamp(const SnModel *m, sn_real *ctrl, int n) {
  for (int t = 0; t < n; ++t)
    for (int i = 0; i < m->nu; ++i) ctrl[t * m->nu + i] = sn_ctrl_clip(m, i, ctrl[t * m->nu + i]);
}

void sn_plan_shift(sn_real *ctrl, int nstep, int nu, int k, SnTail tail, const sn_real *initial) {
  if (k <= 0 || nstep <= 0) return;
  const int kept = k < nstep ? nstep - k : 0;
  const size_t row = sizeof *ctrl * (size_t)nu;
  // The last row stays where it is until the others have moved; it also fills the tail.
  const sn_real *fill = tail == SN_TAIL_INITIAL ? initial : ctrl + (size_t)(nstep - 1) * (size_t)nu;
  memmove(ctrl, ctrl + (size_t)(nstep - kept) * (size_t)nu, row * (size_t)kept);
  for (int t = kept; t < nstep; ++t)
    if (ctrl + (size_t)t * (size_t)nu != fill) memcpy(ctrl + (size_t)t * (size_t)nu, fill, row);
}

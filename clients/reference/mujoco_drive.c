#include "clients/reference/mujoco_reference.h"

void sn_drive_start(SnOracle *o) {
  if (o->mj->nkey > 0)
    mj_resetDataKeyframe(o->mj, o->d, 0);
  else
    mj_resetData(o->mj, o->d);
}

void sn_drive_controls(SnOracle *o, uint64_t seed, double t) {
  for (int i = 0; i < o->m->nu; ++i) {
    o->rng = (seed + 1) * 0xd1342543de82ef95u + (uint64_t)i;
    double u = 0;
    for (int k = 0; k < 3; ++k) {
      const double frequency = 1.65 + 1.35 * sn_oracle_uniform(o), phase = mjPI * sn_oracle_uniform(o);
      u += sin(2 * mjPI * frequency * t + phase) / 3;
    }
    const double *range = o->mj->actuator_ctrlrange + 2 * i;
    o->d->ctrl[i] = o->mj->actuator_ctrllimited[i] ? range[0] + (range[1] - range[0]) * 0.5 * (1 + u) : u;
  }
}

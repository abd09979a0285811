#include "clients/reference/mujoco_drive.h"

#include "clients/reference/mujoco_reference.h"

const char *sn_mujoco_solver(const mjModel *m) {
  return m->opt.solver == mjSOL_PGS ? "PGS" : m->opt.solver == mjSOL_CG ? "CG" : "Newton";
}

// splitmix64 (S. Vigna, public domain)
double sn_mujoco_uniform(uint64_t *rng) {
  uint64_t z = (*rng += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (double)(z >> 11) * 0x1p-52 - 1.0;
}

double sn_oracle_uniform(SnOracle *o) { return sn_mujoco_uniform(&o->rng); }

void sn_mujoco_start(const mjModel *m, mjData *d) {
  if (m->nkey > 0)
    mj_resetDataKeyframe(m, d, 0);
  else
    mj_resetData(m, d);
  if (m->opt.enableflags & mjENBL_SLEEP) mj_forward(m, d);  // wakes sleepers that the keyframe has moved
}

void sn_mujoco_controls(const mjModel *m, mjData *d, uint64_t seed, double t, uint64_t *rng) {
  uint64_t own;
  if (!rng) rng = &own;
  for (int i = 0; i < m->nu; ++i) {
    *rng = (seed + 1) * 0xd1342543de82ef95u + (uint64_t)i;
    double u = 0;
    for (int k = 0; k < 3; ++k) {
      const double frequency = 1.65 + 1.35 * sn_mujoco_uniform(rng), phase = mjPI * sn_mujoco_uniform(rng);
      u += sin(2 * mjPI * frequency * t + phase) / 3;
    }
    const double *range = m->actuator_ctrlrange + 2 * i;
    d->ctrl[i] = m->actuator_ctrllimited[i] ? range[0] + (range[1] - range[0]) * 0.5 * (1 + u) : u;
  }
}

void sn_drive_start(SnOracle *o) { sn_mujoco_start(o->mj, o->d); }

void sn_drive_controls(SnOracle *o, uint64_t seed, double t) { sn_mujoco_controls(o->mj, o->d, seed, t, &o->rng); }

#include "tests/support/convex_scene.h"

#include <stdio.h>

void sn_convex_scene(SnOracle *o, const char *bodies) {
  char xml[3000];
  snprintf(xml, sizeof xml,
           "<mujoco><asset>" SN_CONVEX_HULL
           "</asset><worldbody>%s"
           "<body><freejoint/><geom type='cylinder' size='.1 .2'/></body>"
           "<body><freejoint/><geom type='box' size='.1 .2 .3'/></body>"
           "<body><freejoint/><geom type='mesh' mesh='hull'/></body></worldbody></mujoco>",
           bodies);
  sn_oracle_load_string(o, xml);
}

void sn_convex_scatter(SnOracle *o, double far) {
  sn_oracle_randomize(o, 0);
  for (int i = 0; i < o->m->njnt; ++i)
    for (int k = 0; k < 3; ++k) o->d->qpos[7 * i + k] = far * sn_oracle_uniform(o);
  mj_kinematics(o->mj, o->d);
  sn_oracle_fill_stage(o, SN_STAGE_KINEMATICS);
}

void sn_convex_pair(const SnOracle *o, SnCcd *c, int g1, int g2, sn_real cutoff) {
  const SnShape a = sn_shape(o->m, &o->w, g1), b = sn_shape(o->m, &o->w, g2);
  sn_convex_init(&c->a, o->m, &a, 0);
  sn_convex_init(&c->b, o->m, &b, 0);
  c->tolerance = sizeof(sn_real) == sizeof(float) ? SN_R(1e-6) : SN_R(1e-12);
  c->iterations = 500;
  c->cutoff = cutoff;
}

void sn_random_geom(SnOracle *o, int geom, double far, SnPlacedGeom *g) {
  double quat[4], mat[9];
  for (int i = 0; i < 4; ++i) quat[i] = sn_oracle_uniform(o);
  mju_normalize4(quat);
  mju_quat2Mat(mat, quat);
  g->geom = geom;
  for (int i = 0; i < 3; ++i) g->pos[i] = (sn_real)(far * sn_oracle_uniform(o));
  for (int i = 0; i < 9; ++i) g->mat[i] = (sn_real)mat[i];
}

void sn_moved_geom(const SnPlacedGeom *base, const double *dx, SnPlacedGeom *g) {
  double axis[3] = {dx[0], dx[1], dx[2]}, quat[4], turn[9];
  const double angle = mju_normalize3(axis);
  mju_axisAngle2Quat(quat, axis, angle);
  mju_quat2Mat(turn, quat);
  *g = *base;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) sum += turn[3 * i + k] * (double)base->mat[3 * k + j];
      g->mat[3 * i + j] = (sn_real)sum;
    }
  for (int i = 0; i < 3; ++i) g->pos[i] += (sn_real)dx[3 + i];
}

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

// Which sensors of force and torque have tendons that lead out of their body's subtree.
#include "physics/model/model_private.h"

// The body of entry i of a spatial tendon's path; -1: a pulley.
static int path_body(const SnModel *m, int i) {
  if (m->wrap_type[i] == SN_WRAP_PULLEY) return -1;
  return m->wrap_type[i] == SN_WRAP_SITE ? m->site_bodyid[m->wrap_objid[i]] : m->geom_bodyid[m->wrap_objid[i]];
}

// How tendon t lies to some bodies.
static SnTendonsOut tendon_out(const SnModel *m, int t, SnBodies bodies) {
  if (m->tendon_type[t] != SN_TENDON_SPATIAL) return SN_TENDONS_NONE;
  const int adr = m->tendon_adr[t], end = adr + m->tendon_num[t];
  SnTendonsOut out = SN_TENDONS_NONE;
  for (int i = adr; i < end; ++i)
    for (int j = adr; j < i; ++j) {
      const int a = path_body(m, i), b = path_body(m, j);
      if (a < 0 || b < 0 || sn_bodies_have(bodies, a) == sn_bodies_have(bodies, b)) continue;
      if (m->body_weldid[a] == m->body_weldid[b]) return SN_TENDONS_SPLIT;
      out = SN_TENDONS_OUT;
    }
  return out;
}

SnCode sn_setup_sensor(SnModel *m, SnError *err) {
  m->sensor_tendons = sn_model_alloc(m, sizeof *m->sensor_tendons * (size_t)m->nsensor);
  if (!m->sensor_tendons) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->nsensortendon = 0;
  for (int i = 0; i < m->nsensor; ++i) {
    SnTendonsOut out = SN_TENDONS_NONE;
    if (m->sensor_type[i] == SN_SENS_FORCE || m->sensor_type[i] == SN_SENS_TORQUE) {
      const SnBodies bodies = sn_force_bodies(m, m->site_bodyid[m->sensor_objid[i]]);
      for (int t = 0; t < m->ntendon; ++t) {
        const SnTendonsOut one = tendon_out(m, t, bodies);
        out = one > out ? one : out;
      }
    }
    m->sensor_tendons[i] = (int)out;
    m->nsensortendon += out != SN_TENDONS_NONE;
  }
  return SN_OK;
}

// Which sensors of force and torque have spatial tendons that lead out of their body's subtree.
#include "physics/model/model_private.h"

// Whether tendon t has places on some bodies and on others.
static bool tendon_leads_out(const SnModel *m, int t, SnBodies bodies) {
  if (m->tendon_type[t] != SN_TENDON_SPATIAL) return false;
  bool in = false, out = false;
  for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i) {
    const int body = sn_wrap_body(m, i);
    in = in || (body >= 0 && sn_bodies_have(bodies, body));
    out = out || (body >= 0 && !sn_bodies_have(bodies, body));
  }
  return in && out;
}

SnCode sn_setup_sensor(SnModel *m, SnError *err) {
  m->sensor_tendons = sn_model_alloc(m, sizeof *m->sensor_tendons * (size_t)m->nsensor);
  if (!m->sensor_tendons) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->nsensortendon = 0;
  for (int i = 0; i < m->nsensor; ++i) {
    bool any = false;
    if (m->sensor_type[i] == SN_SENS_FORCE || m->sensor_type[i] == SN_SENS_TORQUE) {
      const SnBodies bodies = sn_force_bodies(m, m->site_bodyid[m->sensor_objid[i]]);
      for (int t = 0; t < m->ntendon && !any; ++t) any = tendon_leads_out(m, t, bodies);
    }
    m->sensor_tendons[i] = any;
    m->nsensortendon += any;
  }
  return SN_OK;
}

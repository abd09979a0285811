// Sensors of the distance of two geoms, or of the nearest geoms of two bodies (mj_geomDistance): the distance, below 0
// a depth; the direction from the nearest point of the first to that of the second; both points. A cutoff is the
// distance beyond which nothing is looked for.
//
// Nearest points and their adjoint are those of collision/distance.c, which says how far they are MuJoCo's. Where
// several pairs of geoms are equally near the first counts, and its derivative.
#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// The geoms of an object: those of a body, or one.
SN_LOCAL int distance_geoms(const SnModel *m, int type, int id, int *first) {
  *first = type == SN_OBJ_BODY ? m->body_geomadr[id] : id;
  return type == SN_OBJ_BODY ? m->body_geomnum[id] : 1;
}

SN_FUNC bool sn_distance_sensor_supported(const SnModel *m, int i) {
  const int type1 = m->sensor_objtype[i], type2 = m->sensor_reftype[i];
  int g1, g2;
  if ((type1 != SN_OBJ_GEOM && type1 != SN_OBJ_BODY) || (type2 != SN_OBJ_GEOM && type2 != SN_OBJ_BODY)) return false;
  if (m->sensor_refid[i] < 0) return false;
  const int n1 = distance_geoms(m, type1, m->sensor_objid[i], &g1);
  const int n2 = distance_geoms(m, type2, m->sensor_refid[i], &g2);
  for (int a = g1; a < g1 + n1; ++a)
    for (int b = g2; b < g2 + n2; ++b)
      if (sn_geoms_collider(m, a, b) == SN_COLLIDER_NONE || !sn_geom_has_surface(m, a) || !sn_geom_has_surface(m, b))
        return false;
  return true;
}

// The nearest pair of geoms of sensor i. False: none is nearer than the cutoff.
SN_LOCAL bool distance_find(const SnModel *m, const SnWorld *w, int i, SnPlacedGeom *near, SnDistance *r) {
  int first[2];
  const int n1 = distance_geoms(m, m->sensor_objtype[i], m->sensor_objid[i], first);
  const int n2 = distance_geoms(m, m->sensor_reftype[i], m->sensor_refid[i], first + 1);
  sn_real best = m->sensor_cutoff[i];
  bool found = false;
  for (int a = first[0]; a < first[0] + n1; ++a)
    for (int b = first[1]; b < first[1] + n2; ++b) {
      SnPlacedGeom pair[2];
      SnDistance next;
      pair[0].geom = a;
      pair[1].geom = b;
      for (int k = 0; k < 2; ++k) sn_object_pose(m, w, SN_OBJ_GEOM, pair[k].geom, pair[k].pos, pair[k].mat);
      if (!sn_geoms_nearest(m, pair, pair + 1, best, &next) || !next.within) continue;
      found = true;
      best = next.dist;
      near[0] = pair[0];
      near[1] = pair[1];
      *r = next;
    }
  return found;
}

SN_FUNC void sn_distance_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int type = m->sensor_type[i];
  SnPlacedGeom near[2];
  SnDistance r;
  for (int k = 0; k < m->sensor_dim[i]; ++k) value[k] = 0;
  const bool found = distance_find(m, w, i, near, &r);
  if (type == SN_SENS_GEOMDIST) value[0] = found ? r.dist : m->sensor_cutoff[i];
  if (!found || type == SN_SENS_GEOMDIST) return;
  if (type == SN_SENS_GEOMNORMAL) {
    sn_scale3(value, r.normal, r.dist > 0 ? SN_R(1.0) : r.dist < 0 ? SN_R(-1.0) : 0);
    return;
  }
  sn_copy3(value, r.from);
  sn_copy3(value + 3, r.to);
}

SN_FUNC void sn_distance_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar) {
  const int type = m->sensor_type[i];
  SnPlacedGeom near[2];
  SnDistance r;
  SnDistanceBar to = {0, {0}, {0}, {0}};
  sn_real wrench[12] = {0};
  if (!distance_find(m, w, i, near, &r)) return;
  if (type == SN_SENS_GEOMDIST) {
    to.dist = bar[0];
  } else if (type == SN_SENS_GEOMNORMAL) {
    sn_scale3(to.normal, bar, r.dist > 0 ? SN_R(1.0) : r.dist < 0 ? SN_R(-1.0) : 0);
  } else {
    sn_copy3(to.from, bar);
    sn_copy3(to.to, bar + 3);
  }
  sn_geom_distance_vjp(m, near, near + 1, &r, &to, wrench);
  for (int k = 0; k < 2; ++k)
    sn_object_pose_vjp(m, w, a, SN_OBJ_GEOM, near[k].geom, wrench + 6 * k + 3, wrench + 6 * k);
#if defined(SN_MODEL_BARS)
  const SnModelBar *model = sn_model_bar(a);
  if (!model || !model->geom_size || !(model->geom_sized[near[0].geom] || model->geom_sized[near[1].geom])) return;
  sn_real size_bar[6] = {0};
  sn_geom_distance_size_vjp(m, near, near + 1, &r, &to, size_bar);
  for (int k = 0; k < 6; ++k) model->geom_size[3 * near[k / 3].geom + k % 3] += size_bar[k];
#endif
}

// Sensors with a zone: touch, insidesite. Zones that are meshes are their hulls.
//
// Touch adds up the normal forces of the contacts of a site's body whose ray from the contact, along the force on the
// other body, meets the site's zone; a contact inside of it always does.
//
// Adjoint. A normal force of touch hands its bar to efc_force.
//
// Not smooth: a contact that enters or leaves the zone; the gradient is that of what counts now.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// Room for a pose that a zone points to.
typedef struct ShapePose {
  sn_real pos[3], mat[9];
} ShapePose;

SN_LOCAL SnRayShape shape_of_site(const SnModel *m, const SnWorld *w, int site, ShapePose *pose) {
  sn_object_pose(m, w, SN_OBJ_SITE, site, pose->pos, pose->mat);
  const SnRayShape s = {m->site_type[site], m->site_dataid[site], pose->pos, pose->mat, m->site_size + 3 * site};
  return s;
}

SN_FUNC bool sn_site_contains(const SnModel *m, const SnWorld *w, int site, const sn_real *point) {
  ShapePose pose;
  const SnRayShape zone = shape_of_site(m, w, site, &pose);
  return sn_shape_contains(m, &zone, point);
}

// ---- touch ----

// Whether contact i counts for a touch sensor on `site`.
SN_LOCAL bool shape_touches(const SnModel *m, const SnWorld *w, int site, const SnRayShape *zone, int i) {
  const SnContact *con = w->contact + i;
  const int body = m->site_bodyid[site];
  const bool first = m->geom_bodyid[con->geom[0]] == body, second = m->geom_bodyid[con->geom[1]] == body;
  sn_real force[6], ray[3];
  if (con->efc_address < 0 || !(first || second)) return false;
  sn_contact_force(w, i, force);
  if (force[0] <= 0) return false;
  sn_scale3(ray, con->frame, second ? SN_R(-1.0) : SN_R(1.0));
  return sn_ray(m, zone, con->pos, ray, NULL) >= 0;
}

SN_LOCAL sn_real shape_touch_value(const SnModel *m, const SnWorld *w, int site) {
  ShapePose pose;
  const SnRayShape zone = shape_of_site(m, w, site, &pose);
  sn_real sum = 0, force[6];
  for (int i = 0; i < w->ncon[0]; ++i) {
    if (!shape_touches(m, w, site, &zone, i)) continue;
    sn_contact_force(w, i, force);
    sum += force[0];
  }
  return sum;
}

SN_LOCAL void shape_touch_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int site, sn_real bar) {
  ShapePose pose;
  const SnRayShape zone = shape_of_site(m, w, site, &pose);
  const sn_real force_bar[6] = {bar};
  for (int i = 0; i < w->ncon[0]; ++i)
    if (shape_touches(m, w, site, &zone, i)) sn_contact_force_vjp(w, a, i, force_bar);
}

// ---- insidesite ----

SN_LOCAL bool shape_inside(const SnModel *m, const SnWorld *w, int i) {
  const int type = m->sensor_objtype[i], id = m->sensor_objid[i];
  sn_real pos[3];
  if (type == SN_OBJ_BODY && id > 0 && m->body_mass[id] < SN_MINVAL && m->body_subtreemass[id] >= SN_MINVAL)
    sn_subtree_com(m, w, id, pos);
  else
    sn_object_pose(m, w, type, id, pos, NULL);
  return sn_site_contains(m, w, m->sensor_refid[i], pos);
}

SN_FUNC bool sn_site_is_zone(const SnModel *m, int site) {
  const int mesh = m->site_dataid[site];
  if (m->site_type[site] == SN_GEOM_MESH) return mesh >= 0 && m->mesh_polynum[mesh] > 0;
  return sn_ray_meets(m->site_type[site]);
}

SN_FUNC bool sn_shape_sensor_supported(const SnModel *m, int i) {
  const int id = m->sensor_objid[i], data = m->sensor_intprm[SN_NSENS * i];
  if (m->sensor_type[i] == SN_SENS_TOUCH) return sn_ray_meets(m->site_type[id]);
  // data: 1 where the whole object shall be inside
  return data == 0 && sn_object_has_frame(m, m->sensor_objtype[i], id) && sn_site_is_zone(m, m->sensor_refid[i]);
}

SN_FUNC void sn_shape_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  if (m->sensor_type[i] == SN_SENS_TOUCH)
    value[0] = shape_touch_value(m, w, m->sensor_objid[i]);
  else
    value[0] = shape_inside(m, w, i) ? SN_R(1.0) : 0;
}

SN_FUNC void sn_touch_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real bar) {
  shape_touch_vjp(m, w, a, m->sensor_objid[i], bar);
}

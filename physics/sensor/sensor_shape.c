// Sensors with a zone or a ray: touch, insidesite, rangefinder.
//
// Touch adds up the normal forces of the contacts of a site's body whose ray from the contact, along the force on the
// other body, meets the site's zone; a contact inside of it always does. Rangefinder is the distance from a site along
// its z axis to the first geom that is drawn and not of its own body, -1 where there is none.
//
// Adjoint. A normal force hands its bar to efc_force. Of a distance x along the unit vector v to a surface with normal
// n, a displacement e of the point p + x v with the site, or d with the geom, changes x by n . (d - e) / (n . v), so
// the bar b is the force b n / (n . v) there on the geom and its opposite on the site.
//
// Not smooth: a contact that enters or leaves the zone, a ray that passes the edge of a geom; the gradient is that of
// what counts now. A grazing ray (n . v = 0) has the gradient 0.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// What a ray of sensor i's data has, as bits of sensor_intprm (mjtRayDataField), and how many numbers each takes.
enum { SHAPE_DIST, SHAPE_DIR, SHAPE_ORIGIN, SHAPE_POINT, SHAPE_NORMAL, SHAPE_DEPTH };

// Room for a pose that a zone points to.
typedef struct ShapePose {
  sn_real pos[3], mat[9];
} ShapePose;

SN_LOCAL SnRayShape shape_of_site(const SnModel *m, const SnWorld *w, int site, ShapePose *pose) {
  sn_object_pose(m, w, SN_OBJ_SITE, site, pose->pos, pose->mat);
  const SnRayShape s = {m->site_type[site], pose->pos, pose->mat, m->site_size + 3 * site};
  return s;
}

SN_LOCAL SnRayShape shape_of_geom(const SnModel *m, const SnWorld *w, int geom, ShapePose *pose) {
  sn_object_pose(m, w, SN_OBJ_GEOM, geom, pose->pos, pose->mat);
  const SnRayShape s = {m->geom_type[geom], pose->pos, pose->mat, m->geom_size + 3 * geom};
  return s;
}

SN_FUNC bool sn_site_contains(const SnModel *m, const SnWorld *w, int site, const sn_real *point) {
  ShapePose pose;
  const SnRayShape zone = shape_of_site(m, w, site, &pose);
  return sn_shape_contains(&zone, point);
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
  return sn_ray(zone, con->pos, ray, NULL) >= 0;
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

// ---- rangefinder ----

// Whether a ray from a site of `body` sees geom g.
SN_LOCAL bool shape_sees(const SnModel *m, int body, int g) {
  return m->geom_bodyid[g] != body && m->geom_rgba[4 * g + 3] != 0;
}

// A ray from a site and what it meets first.
typedef struct ShapeHit {
  int geom;  // -1: nothing
  sn_real dist, from[3], along[3], normal[3];
} ShapeHit;

SN_LOCAL void shape_range(const SnModel *m, const SnWorld *w, int site, ShapeHit *hit) {
  sn_real mat[9], normal[3];
  sn_object_pose(m, w, SN_OBJ_SITE, site, hit->from, mat);
  sn_set3(hit->along, mat[2], mat[5], mat[8]);
  hit->geom = -1;
  hit->dist = -1;
  sn_zero(hit->normal, 3);
  for (int g = 0; g < m->ngeom; ++g) {
    ShapePose pose;
    if (!shape_sees(m, m->site_bodyid[site], g)) continue;
    const SnRayShape shape = shape_of_geom(m, w, g, &pose);
    const sn_real x = sn_ray(&shape, hit->from, hit->along, normal);
    if (x < 0 || (hit->geom >= 0 && x >= hit->dist)) continue;
    hit->geom = g;
    hit->dist = x;
    sn_copy3(hit->normal, normal);
  }
}

// Writes a vector of a ray, 0 where nothing is met; returns the place behind it.
SN_LOCAL sn_real *shape_vector(sn_real *value, const ShapeHit *hit, const sn_real *v) {
  if (hit->geom >= 0)
    sn_copy3(value, v);
  else
    sn_zero(value, 3);
  return value + 3;
}

SN_LOCAL void shape_range_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int data = m->sensor_intprm[SN_NSENS * i];
  ShapeHit hit;
  sn_real point[3];
  shape_range(m, w, m->sensor_objid[i], &hit);
  sn_addscl3(point, hit.from, hit.along, hit.dist);
  if (data >> SHAPE_DIST & 1) *value++ = hit.dist;
  if (data >> SHAPE_DIR & 1) value = shape_vector(value, &hit, hit.along);
  if (data >> SHAPE_ORIGIN & 1) {
    sn_copy3(value, hit.from);
    value += 3;
  }
  if (data >> SHAPE_POINT & 1) value = shape_vector(value, &hit, point);
  if (data >> SHAPE_NORMAL & 1) value = shape_vector(value, &hit, hit.normal);
  if (data >> SHAPE_DEPTH & 1) *value = hit.dist;
}

#if defined(SN_MODEL_BARS)
// Sizes of the geom that a ray meets, by differences of the ray alone.
SN_LOCAL void shape_range_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const ShapeHit *hit,
                                    sn_real bar) {
  const SnModelBar *to = sn_model_bar(a);
  ShapePose pose;
  if (!to || !to->geom_size || !to->geom_sized[hit->geom]) return;
  SnRayShape shape = shape_of_geom(m, w, hit->geom, &pose);
  for (int k = 0; k < 3; ++k) {
    const sn_real *own = m->geom_size + 3 * hit->geom, h = SN_DIFFERENCE * own[k];
    sn_real size[3], x[2];
    for (int e = 0; e < 2; ++e) {
      sn_copy3(size, own);
      size[k] += e == 0 ? h : -h;
      shape.size = size;
      x[e] = sn_ray(&shape, hit->from, hit->along, NULL);
    }
    if (h > 0 && x[0] >= 0 && x[1] >= 0) to->geom_size[3 * hit->geom + k] += bar * (x[0] - x[1]) / (2 * h);
  }
}
#endif

SN_LOCAL void shape_range_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int site, sn_real bar) {
  ShapeHit hit;
  shape_range(m, w, site, &hit);
  if (hit.geom < 0) return;
  const sn_real slope = sn_dot3(hit.normal, hit.along);
  sn_real point[3], force[3];
  if (slope == 0) return;
  sn_addscl3(point, hit.from, hit.along, hit.dist);
  sn_scale3(force, hit.normal, bar / slope);
  sn_object_push(m, w, a, SN_OBJ_GEOM, hit.geom, point, force);
  sn_scale3(force, force, -1);
  sn_object_push(m, w, a, SN_OBJ_SITE, site, point, force);
#if defined(SN_MODEL_BARS)
  shape_range_model_vjp(m, w, a, &hit, bar);
#endif
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

SN_FUNC bool sn_shape_sensor_supported(const SnModel *m, int i) {
  const int id = m->sensor_objid[i], data = m->sensor_intprm[SN_NSENS * i];
  switch (m->sensor_type[i]) {
    case SN_SENS_TOUCH:
      return sn_ray_meets(m->site_type[id]);
    case SN_SENS_INSIDESITE:
      // data: 1 where the whole object shall be inside
      return data == 0 && sn_object_has_frame(m, m->sensor_objtype[i], id) &&
             sn_ray_meets(m->site_type[m->sensor_refid[i]]);
    default:
      break;
  }
  const int size = (data >> SHAPE_DIST & 1) + (data >> SHAPE_DEPTH & 1) +
                   3 * ((data >> SHAPE_DIR & 1) + (data >> SHAPE_ORIGIN & 1) + (data >> SHAPE_POINT & 1) +
                        (data >> SHAPE_NORMAL & 1));
  if (m->sensor_objtype[i] != SN_OBJ_SITE || m->sensor_dim[i] != size) return false;
  for (int g = 0; g < m->ngeom; ++g)
    if (shape_sees(m, m->site_bodyid[id], g) && !sn_ray_meets(m->geom_type[g])) return false;
  return true;
}

SN_FUNC bool sn_shape_sensor_differentiable(const SnModel *m, int i) {
  if (m->sensor_type[i] == SN_SENS_INSIDESITE) return false;
  return m->sensor_type[i] == SN_SENS_TOUCH || m->sensor_dim[i] == 1;
}

SN_FUNC void sn_shape_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  switch (m->sensor_type[i]) {
    case SN_SENS_TOUCH:
      value[0] = shape_touch_value(m, w, m->sensor_objid[i]);
      break;
    case SN_SENS_INSIDESITE:
      value[0] = shape_inside(m, w, i) ? SN_R(1.0) : 0;
      break;
    default:
      shape_range_value(m, w, i, value);
      break;
  }
}

SN_FUNC void sn_shape_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real bar) {
  if (m->sensor_type[i] == SN_SENS_TOUCH)
    shape_touch_vjp(m, w, a, m->sensor_objid[i], bar);
  else
    shape_range_vjp(m, w, a, m->sensor_objid[i], bar);
}

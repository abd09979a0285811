// Tactile sensors: at each vertex of a mesh in the frame of a geom, how deep it lies in what touches the geom's body,
// and how fast that slides along two tangents. What touches are the geoms of contacts with any geom of the same rigid
// body; each counts once.
//
// With x a vertex in the world, l the same in the frame of a geom that touches, and s(l) the signed distance to it,
//
//   depth    max over geoms of -s,                 slide_k   sum over geoms with s < 0 of |t_k . (v_pad - v_geom)|
//
// both velocities those at x. Meshes with three vectors per vertex, a normal and two tangents, slide. s is MuJoCo's: of
// an ellipsoid an estimate, in a box the distance along a ray that leads from its middle to the corners. Meshes count
// where they have a signed distance field, which the engine does not compute: see sn_tactile_sensor_supported.
#include "physics/base/vec.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// Signed distance inside a box, a: how far beyond each pair of faces, all below 0.
SN_LOCAL sn_real tactile_in_box(const sn_real *a, const sn_real *size) {
  sn_real b[3], nearest = SN_MAXVAL;
  for (int k = 0; k < 3; ++k) b[k] = -size[k] / a[k];
  sn_normalize3(b);
  for (int k = 0; k < 3; ++k) nearest = sn_min(nearest, -a[k] / sn_abs(b[k]));
  return -nearest * sn_norm3(b);
}

// Signed distance of a point in the frame of geom g; 0 where it has none.
SN_LOCAL sn_real tactile_distance(const SnModel *m, int g, const sn_real *x) {
  const sn_real *size = m->geom_size + 3 * g;
  sn_real a[3], b[3];
  switch (m->geom_type[g]) {
    case SN_GEOM_PLANE:
      return x[2];
    case SN_GEOM_SPHERE:
      return sn_norm3(x) - size[0];
    case SN_GEOM_CAPSULE:
      sn_set3(a, x[0], x[1], x[2] - sn_clip(x[2], -size[1], size[1]));
      return sn_norm3(a) - size[0];
    case SN_GEOM_ELLIPSOID:
      for (int k = 0; k < 3; ++k) {
        a[k] = x[k] / size[k];
        b[k] = a[k] / size[k];
      }
      return sn_norm3(a) * (sn_norm3(a) - 1) / sn_norm3(b);
    case SN_GEOM_CYLINDER:
      a[0] = sn_sqrt(x[0] * x[0] + x[1] * x[1]) - size[0];
      a[1] = sn_abs(x[2]) - size[1];
      sn_set3(b, sn_max(a[0], 0), sn_max(a[1], 0), 0);
      return sn_min(sn_max(a[0], a[1]), 0) + sn_norm3(b);
    case SN_GEOM_BOX:
      for (int k = 0; k < 3; ++k) a[k] = sn_abs(x[k]) - size[k];
      for (int k = 0; k < 3; ++k) b[k] = sn_max(a[k], 0);
      return a[0] >= 0 || a[1] >= 0 || a[2] >= 0 ? sn_norm3(b) : tactile_in_box(a, size);
    default:
      return 0;
  }
}

// The geom of contact i that touches the rigid body `weld`; -1: none.
SN_LOCAL int tactile_touches(const SnModel *m, const SnWorld *w, int weld, int i) {
  const int *geom = w->contact[i].geom;
  if (m->body_weldid[m->geom_bodyid[geom[0]]] == weld) return geom[1];
  return m->body_weldid[m->geom_bodyid[geom[1]]] == weld ? geom[0] : -1;
}

// Adds what a geom does to the vertices of the mesh; value: depths, slides along both tangents.
SN_LOCAL void tactile_geom(const SnModel *m, const SnWorld *w, int i, int g, sn_real *value) {
  const int mesh = m->sensor_objid[i], pad = m->sensor_refid[i], n = m->mesh_vertnum[mesh];
  const bool slides = m->mesh_normalnum[mesh] == 3 * n;
  sn_real pos[3], mat[9], other[3], turn[9];
  sn_object_pose(m, w, SN_OBJ_GEOM, pad, pos, mat);
  sn_object_pose(m, w, SN_OBJ_GEOM, g, other, turn);
  for (int j = 0; j < n; ++j) {
    sn_real x[3], d[3], l[3], own[6], its[6], t[3];
    sn_mulmatvec3(x, mat, m->mesh_vert + 3 * (m->mesh_vertadr[mesh] + j));
    sn_addto3(x, pos);
    sn_sub3(d, x, other);
    sn_mulmattvec3(l, turn, d);
    const sn_real distance = tactile_distance(m, g, l);
    if (!(distance < 0)) continue;
    value[j] = sn_max(value[j], -distance);
    if (!slides) continue;
    sn_point_velocity(m, w, m->geom_bodyid[pad], x, own);
    sn_point_velocity(m, w, m->geom_bodyid[g], x, its);
    sn_sub3(d, own + 3, its + 3);
    for (int k = 1; k < 3; ++k) {
      sn_mulmatvec3(t, mat, m->mesh_normal + 3 * (m->mesh_normaladr[mesh] + 3 * j + k));
      value[k * n + j] += sn_abs(sn_dot3(d, t));
    }
  }
}

SN_FUNC void sn_tactile_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int weld = m->body_weldid[m->geom_bodyid[m->sensor_refid[i]]];
  sn_zero(value, m->sensor_dim[i]);
  for (int k = 0; k < w->ncon[0]; ++k) {
    const int g = tactile_touches(m, w, weld, k);
    bool seen = g < 0;
    for (int e = 0; e < k && !seen; ++e) seen = tactile_touches(m, w, weld, e) == g;
    if (!seen) tactile_geom(m, w, i, g, value);
  }
}

SN_FUNC bool sn_tactile_sensor_supported(const SnModel *m, int i) {
  const int mesh = m->sensor_objid[i];
  if (mesh < 0 || mesh >= m->nmesh || m->sensor_dim[i] != 3 * m->mesh_vertnum[mesh]) return false;
  if (m->sensor_reftype[i] != SN_OBJ_GEOM || m->sensor_refid[i] < 0 || m->mesh_vertnum[mesh] == 0) return false;
  for (int g = 0; g < m->ngeom; ++g) {
    const int type = m->geom_type[g];
    if (type == SN_GEOM_SDF || type == SN_GEOM_HFIELD) return false;
    if (type == SN_GEOM_MESH && m->mesh_octadr[m->geom_dataid[g]] >= 0) return false;
  }
  return true;
}

// Rangefinders: what a ray meets first of the geoms that are drawn and not of its own body. It starts at a site, along
// its z axis; or there is one for each pixel of a camera, row by row from the top left, through the pixel's centre.
// With the focal lengths f and the principal point c [pixels], a pixel is (x, y) = (column + 1/2, row + 1/2) - c off
// the centre, and the ray in the camera's frame
//
//   perspective    from 0, along (x / f_x, -y / f_y, -1)
//   orthographic   from (x / f_x, -y / f_y, 0) times half the height of the view, along -z
//
// Adjoint. Of a ray o + x v that meets a surface with normal n at p, a displacement e of p with the ray, or d with the
// geom, changes x by n . (d - e) / (n . v). So a bar b of x is the force b n / (n . v) on the geom at p, and its
// opposite for o, x times its opposite for v. The rest are bars of x, o and v: of p = o + x v, of the depth, which is x
// times what v has of the camera's axis. A normal turns with its geom, and along a curved surface: with D of SnRayHit
// in the world's axes its bar b is the force D (b - n (n . b)) for p, and its opposite on the geom there.
//
// Not smooth: a ray that passes the edge of a geom; the gradient is that of what it meets now. A grazing ray (n . v =
// 0) has no gradient. What meets nothing has only the gradient of its origin.
#include "physics/base/vec.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// What of a ray is reported, as bits of sensor_intprm (mjtRayDataField), in this order.
enum { RANGE_DIST, RANGE_DIR, RANGE_ORIGIN, RANGE_POINT, RANGE_NORMAL, RANGE_DEPTH, RANGE_FIELDS };
enum { RANGE_NUMBERS = 14 };  // of a ray with all of them

// How many numbers a field has.
SN_LOCAL int range_width(int field) { return field == RANGE_DIST || field == RANGE_DEPTH ? 1 : 3; }

SN_LOCAL int range_numbers(int data) {
  int n = 0;
  for (int f = 0; f < RANGE_FIELDS; ++f) n += (data >> f & 1) * range_width(f);
  return n;
}

// Where the rays of a sensor come from.
typedef struct RangeView {
  int type, id, body;  // site or camera, and its body
  int width, height;   // pixels
  sn_real pos[3], mat[9];
  sn_real f[2], c[2];  // focal lengths, principal point [pixels]
  sn_real half;        // half the height of an orthographic view [m]; 0: perspective
} RangeView;

// Whether a ray from `body` sees geom g.
SN_LOCAL bool range_sees(const SnModel *m, int body, int g) {
  return m->geom_bodyid[g] != body && m->geom_rgba[4 * g + 3] != 0;
}

SN_LOCAL void range_camera(const SnModel *m, int id, RangeView *view) {
  view->width = m->cam_resolution[2 * id];
  view->height = m->cam_resolution[2 * id + 1];
  sn_camera_lens(m, id, view->f, view->c);
  if (!m->cam_projection[id]) return;
  view->half = m->cam_fovy[id] * SN_R(0.5);
  view->f[0] = view->c[0] = (sn_real)view->width * SN_R(0.5);
  view->f[1] = view->c[1] = (sn_real)view->height * SN_R(0.5);
}

SN_LOCAL void range_view(const SnModel *m, const SnWorld *w, int i, RangeView *view) {
  const int id = m->sensor_objid[i], type = m->sensor_objtype[i];
  const RangeView site = {.type = type, .id = id, .width = 1, .height = 1};
  *view = site;
  view->body = type == SN_OBJ_CAMERA ? m->cam_bodyid[id] : m->site_bodyid[id];
  sn_object_pose(m, w, type, id, view->pos, view->mat);
  if (type == SN_OBJ_CAMERA) range_camera(m, id, view);
}

// A ray and what it meets first.
typedef struct RangeRay {
  int geom;  // -1: nothing
  sn_real dist, from[3], along[3];
  sn_real deep;  // depth of a point at the distance 1 along the ray
  SnRayHit hit;
} RangeRay;

SN_LOCAL void range_ray(const RangeView *view, int pixel, RangeRay *ray) {
  sn_real local[3] = {0, 0, 1};
  sn_copy3(ray->from, view->pos);
  ray->deep = 1;
  if (view->type == SN_OBJ_CAMERA) {
    const int column = pixel % view->width, row = pixel / view->width;
    const sn_real x = (sn_real)column + SN_R(0.5) - view->c[0], y = (sn_real)row + SN_R(0.5) - view->c[1];
    sn_set3(local, x / view->f[0], -y / view->f[1], -1);
    if (view->half > 0) {
      sn_real across[3] = {local[0] * view->half, local[1] * view->half, 0}, shift[3];
      sn_mulmatvec3(shift, view->mat, across);
      sn_addto3(ray->from, shift);
      sn_set3(local, 0, 0, -1);
    }
    ray->deep = SN_R(1.0) / sn_norm3(local);
  }
  sn_mulmatvec3(ray->along, view->mat, local);
  sn_normalize3(ray->along);
}

SN_LOCAL SnRayShape range_shape(const SnModel *m, const SnWorld *w, int g, sn_real *pos, sn_real *mat) {
  sn_object_pose(m, w, SN_OBJ_GEOM, g, pos, mat);
  const SnRayShape s = {m->geom_type[g], m->geom_dataid[g], pos, mat, m->geom_size + 3 * g};
  return s;
}

// What the ray of a pixel meets.
SN_LOCAL void range_meet(const SnModel *m, const SnWorld *w, const RangeView *view, int pixel, RangeRay *ray) {
  range_ray(view, pixel, ray);
  ray->geom = -1;
  ray->dist = -1;
  for (int g = 0; g < m->ngeom; ++g) {
    sn_real pos[3], mat[9];
    SnRayHit hit;
    if (!range_sees(m, view->body, g)) continue;
    const SnRayShape shape = range_shape(m, w, g, pos, mat);
    const sn_real x = sn_ray(m, &shape, ray->from, ray->along, &hit);
    if (x < 0 || (ray->geom >= 0 && x >= ray->dist)) continue;
    ray->geom = g;
    ray->dist = x;
    ray->hit = hit;
  }
}

// Writes what is reported of a ray.
SN_LOCAL void range_report(const RangeRay *ray, int data, sn_real *value) {
  sn_real point[3];
  sn_addscl3(point, ray->from, ray->along, ray->dist);
  for (int f = 0; f < RANGE_FIELDS; ++f) {
    if (!(data >> f & 1)) continue;
    const sn_real *v = f == RANGE_DIR      ? ray->along
                       : f == RANGE_ORIGIN ? ray->from
                       : f == RANGE_POINT  ? point
                                           : ray->hit.normal;
    if (range_width(f) == 1)
      *value = ray->geom < 0 || f == RANGE_DIST ? ray->dist : ray->dist * ray->deep;
    else if (ray->geom < 0 && f != RANGE_ORIGIN)
      sn_zero(value, 3);
    else
      sn_copy3(value, v);
    value += range_width(f);
  }
}

SN_FUNC void sn_range_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const int data = m->sensor_intprm[SN_NSENS * i];
  RangeView view;
  RangeRay ray;
  range_view(m, w, i, &view);
  for (int k = 0; k < view.width * view.height; ++k) {
    range_meet(m, w, &view, k, &ray);
    range_report(&ray, data, value + k * range_numbers(data));
  }
}

// ---- adjoint ----

// Bars of a ray.
typedef struct RangeBar {
  sn_real dist, along[3], from[3], point[3], normal[3];
} RangeBar;

// Takes bars of what is reported of a ray.
SN_LOCAL void range_take(const RangeRay *ray, int data, const sn_real *value_bar, RangeBar *bar) {
  sn_zero(bar->along, 3);
  sn_zero(bar->from, 3);
  sn_zero(bar->point, 3);
  sn_zero(bar->normal, 3);
  bar->dist = 0;
  for (int f = 0; f < RANGE_FIELDS; ++f) {
    if (!(data >> f & 1)) continue;
    if (f == RANGE_DIST || f == RANGE_DEPTH) bar->dist += f == RANGE_DIST ? *value_bar : *value_bar * ray->deep;
    if (f == RANGE_DIR) sn_copy3(bar->along, value_bar);
    if (f == RANGE_ORIGIN) sn_copy3(bar->from, value_bar);
    if (f == RANGE_POINT) sn_copy3(bar->point, value_bar);
    if (f == RANGE_NORMAL) sn_copy3(bar->normal, value_bar);
    value_bar += range_width(f);
  }
}

#if defined(SN_MODEL_BARS)
// Sizes of the geom that a ray meets, by differences of the ray alone: a closed form has no sizes of its own. `bar` are
// those of the distance, to which the point's have been added, and of the normal.
SN_LOCAL void range_model_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const RangeRay *ray,
                              const RangeBar *bar) {
  const SnModelBar *to = sn_model_bar(a);
  sn_real pos[3], mat[9];
  if (!to || !to->geom_size || !to->geom_sized[ray->geom] || !sn_ray_meets(m->geom_type[ray->geom])) return;
  SnRayShape shape = range_shape(m, w, ray->geom, pos, mat);
  for (int k = 0; k < 3; ++k) {
    const sn_real *own = m->geom_size + 3 * ray->geom, h = SN_DIFFERENCE * own[k];
    sn_real size[3], y[2] = {0, 0};
    bool met = h > 0;
    for (int e = 0; e < 2 && met; ++e) {
      SnRayHit hit;
      sn_copy3(size, own);
      size[k] += e == 0 ? h : -h;
      shape.size = size;
      const sn_real x = sn_ray(m, &shape, ray->from, ray->along, &hit);
      met = x >= 0;
      if (met) y[e] = bar->dist * x + sn_dot3(bar->normal, hit.normal);
    }
    if (met) to->geom_size[3 * ray->geom + k] += (y[0] - y[1]) / (2 * h);
  }
}
#endif

// A normal: turns with its geom, and with the point that is met. Adds to the bar of that point.
SN_LOCAL void range_normal_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const RangeRay *ray,
                               const sn_real *point, RangeBar *bar) {
  const sn_real *n = ray->hit.normal;
  sn_real pos[3], mat[9], turn[3], across[3], local[3], force[3];
  range_shape(m, w, ray->geom, pos, mat);
  sn_cross(turn, n, bar->normal);
  sn_object_pose_vjp(m, w, a, SN_OBJ_GEOM, ray->geom, NULL, turn);
  sn_addscl3(across, bar->normal, n, -sn_dot3(n, bar->normal));
  sn_mulmattvec3(local, mat, across);
  for (int k = 0; k < 3; ++k) local[k] *= ray->hit.bend[k];
  sn_mulmatvec3(force, mat, local);
  sn_addto3(bar->point, force);
  sn_scale3(force, force, -1);
  sn_object_push(m, w, a, SN_OBJ_GEOM, ray->geom, point, force);
}

// Adds the adjoint of a ray that meets a geom; leaves bars of its origin and direction.
SN_LOCAL void range_hit_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const RangeRay *ray, RangeBar *bar) {
  const sn_real slope = sn_dot3(ray->hit.normal, ray->along);
  sn_real point[3], force[3];
  sn_addscl3(point, ray->from, ray->along, ray->dist);
#if defined(SN_MODEL_BARS)
  RangeBar sizes = *bar;
  sizes.dist += sn_dot3(bar->point, ray->along);
  range_model_vjp(m, w, a, ray, &sizes);
#endif
  range_normal_vjp(m, w, a, ray, point, bar);
  sn_addto3(bar->from, bar->point);
  sn_addtoscl3(bar->along, bar->point, ray->dist);
  bar->dist += sn_dot3(bar->point, ray->along);
  if (slope == 0) return;
  sn_scale3(force, ray->hit.normal, bar->dist / slope);
  sn_object_push(m, w, a, SN_OBJ_GEOM, ray->geom, point, force);
  sn_subfrom3(bar->from, force);
  sn_addtoscl3(bar->along, force, -ray->dist);
}

// Adds the adjoint of the ray of a pixel, value_bar those of its numbers.
SN_LOCAL void range_ray_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, const RangeView *view, int data,
                            const RangeRay *ray, const sn_real *value_bar) {
  RangeBar bar;
  sn_real turn[3];
  range_take(ray, data, value_bar, &bar);
  if (ray->geom < 0)
    sn_zero(bar.along, 3);
  else
    range_hit_vjp(m, w, a, ray, &bar);
  sn_object_push(m, w, a, view->type, view->id, ray->from, bar.from);
  sn_cross(turn, ray->along, bar.along);
  sn_object_pose_vjp(m, w, a, view->type, view->id, NULL, turn);
}

SN_FUNC void sn_range_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar,
                                 sn_real low, sn_real high) {
  const int data = m->sensor_intprm[SN_NSENS * i], n = range_numbers(data);
  RangeView view;
  RangeRay ray;
  range_view(m, w, i, &view);
  for (int k = 0; k < view.width * view.height; ++k) {
    sn_real own[RANGE_NUMBERS], value[RANGE_NUMBERS];
    bool any = false;
    for (int e = 0; e < n; ++e) any = any || bar[k * n + e] != 0;
    if (!any) continue;
    range_meet(m, w, &view, k, &ray);
    range_report(&ray, data, value);
    for (int e = 0; e < n; ++e) own[e] = value[e] < low || value[e] > high ? 0 : bar[k * n + e];
    range_ray_vjp(m, w, a, &view, data, &ray, own);
  }
}

SN_FUNC bool sn_range_sensor_supported(const SnModel *m, int i) {
  const int id = m->sensor_objid[i], type = m->sensor_objtype[i], data = m->sensor_intprm[SN_NSENS * i];
  int64_t pixels = 1;
  int body = 0;
  if (type == SN_OBJ_CAMERA) {
    pixels = (int64_t)m->cam_resolution[2 * id] * m->cam_resolution[2 * id + 1];
    body = m->cam_bodyid[id];
    if (!sn_object_has_frame(m, type, id) || m->cam_resolution[2 * id] < 1) return false;
  } else if (type == SN_OBJ_SITE) {
    body = m->site_bodyid[id];
  } else {
    return false;
  }
  if (pixels < 1 || data <= 0 || data >> RANGE_FIELDS || m->sensor_dim[i] != pixels * range_numbers(data)) return false;
  for (int g = 0; g < m->ngeom; ++g)
    if (range_sees(m, body, g) && !sn_ray_meets_geom(m, g)) return false;
  return true;
}

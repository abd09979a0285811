// Parts of sensor.c, private to it: a file for each kind of sensor.
#ifndef SINEW_PHYSICS_SENSOR_SENSOR_PRIVATE_H_
#define SINEW_PHYSICS_SENSOR_SENSOR_PRIVATE_H_

#include "physics/base/vec.h"
#include "physics/collision/ray.h"
#include "physics/world/adjoint.h"

// ---- sensor_frame.c ----

// Returns true for framepos, -quat, -xaxis, -yaxis, -zaxis, -linvel, -angvel, gyro, velocimeter, magnetometer,
// subtreecom, subtreelinvel, subtreeangmom.
SN_FUNC bool sn_sensor_is_frame(int type);
// Writes the value of sensor i of these types, without its cutoff, into value[sensor_dim[i]].
SN_FUNC void sn_frame_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
// Adds the adjoint of sensor i of these types, as sn_sensor_vjp.
SN_FUNC void sn_frame_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real bar[3]);
// Computes the centre of mass of a body's subtree [m].
SN_FUNC void sn_subtree_com(const SnModel *m, const SnWorld *w, int body, sn_real *value);
// Computes focal lengths and principal point, from the top left, of a perspective camera [pixels].
SN_FUNC void sn_camera_lens(const SnModel *m, int cam, sn_real focal[2], sn_real centre[2]);
// Computes r = I x in world axes: I the inertia of a body about its centre of mass, R its principal axes.
SN_FUNC void sn_sensor_inertia(const SnModel *m, int body, const sn_real *R, const sn_real *x, sn_real *r);

#if defined(SN_MODEL_BARS)
// Adds the derivatives of x' I y by the principal inertias of a body, R its principal axes.
SN_INLINE void sn_inertia_model_bar(const SnAdjoint *a, int body, const sn_real *R, const sn_real *x,
                                    const sn_real *y) {
  sn_real u[3], v[3];
  if (!sn_model_bar(a) || !sn_model_bar(a)->body_inertia) return;
  sn_mulmattvec3(u, R, x);
  sn_mulmattvec3(v, R, y);
  for (int k = 0; k < 3; ++k) sn_model_bar(a)->body_inertia[3 * body + k] += u[k] * v[k];
}
// Adds the derivative of a scalar by the mass of a body.
SN_INLINE void sn_mass_model_bar(const SnAdjoint *a, int body, sn_real bar) {
  if (sn_model_bar(a) && sn_model_bar(a)->body_mass) sn_model_bar(a)->body_mass[body] += bar;
}
#endif

// ---- sensor_force.c ----

// Returns true for accelerometer, framelinacc, frameangacc, force, torque.
SN_FUNC bool sn_sensor_is_force(int type);
// Returns whether sensor i of these types is supported.
SN_FUNC bool sn_force_sensor_supported(const SnModel *m, int i);
// Write the value, and add the adjoint, of sensor i of these types. The adjoint stands between sn_acceleration_begin
// and sn_acceleration_vjp.
SN_FUNC void sn_force_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
SN_FUNC void sn_force_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real bar[3]);

// ---- sensor_force_tendon.c ----

// Adds the part of spatial tendons to r: (torque about p, force) that bodies pass to the others, in world axes.
SN_FUNC void sn_force_of_tendons(const SnModel *m, const SnWorld *w, SnBodies bodies, const sn_real *p, sn_real *r);
// Adds its adjoint from the bar of r, and to p_bar what p gets.
SN_FUNC void sn_force_of_tendons_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnBodies bodies,
                                     const sn_real *p, const sn_real *bar, sn_real *p_bar);

// ---- sensor_shape.c ----

// Returns whether sensor i, touch or insidesite, is supported.
SN_FUNC bool sn_shape_sensor_supported(const SnModel *m, int i);
// Writes the value of sensor i of these types.
SN_FUNC void sn_shape_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
// Adds the adjoint of a touch sensor, as those of sensor_force.c.
SN_FUNC void sn_touch_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, sn_real bar);

// Returns whether a site has a zone that the engine knows.
SN_FUNC bool sn_site_is_zone(const SnModel *m, int site);
// Returns whether a point of the world is in the zone of a site.
SN_FUNC bool sn_site_contains(const SnModel *m, const SnWorld *w, int site, const sn_real *point);

// ---- sensor_range.c ----

// Returns whether sensor i, a rangefinder, is supported.
SN_FUNC bool sn_range_sensor_supported(const SnModel *m, int i);
// Writes its value.
SN_FUNC void sn_range_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
// Adds its adjoint; numbers below low or above high have none.
SN_FUNC void sn_range_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar,
                                 sn_real low, sn_real high);

// ---- sensor_tactile.c ----

// Returns whether sensor i, a tactile one, is supported. It is not where a geom of the model is a height field, or has
// a signed distance field.
SN_FUNC bool sn_tactile_sensor_supported(const SnModel *m, int i);
// Writes its value.
SN_FUNC void sn_tactile_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);

// ---- sensor_distance.c ----

// Returns whether sensor i, of the distance of two geoms (geomdist, geomnormal, geomfromto), is supported.
SN_FUNC bool sn_distance_sensor_supported(const SnModel *m, int i);
// Write its value, and add its adjoint.
SN_FUNC void sn_distance_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
SN_FUNC void sn_distance_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar);

// ---- sensor_contact.c ----

// Returns whether sensor i, a contact sensor, is supported, and which stage it needs.
SN_FUNC bool sn_contact_sensor_supported(const SnModel *m, int i);
SN_FUNC SnStage sn_contact_sensor_stage(const SnModel *m, int i);
// Writes its value.
SN_FUNC void sn_contact_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);

// ---- sensor_energy.c ----

// Returns whether a sensor of this type, e_potential or e_kinetic, has a gradient.
SN_FUNC bool sn_energy_differentiable(const SnModel *m, int type);
// Compute the value [J], and add the adjoint, of such a sensor.
SN_FUNC sn_real sn_energy_value(const SnModel *m, const SnWorld *w, int type);
SN_FUNC void sn_energy_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, sn_real bar);

#endif

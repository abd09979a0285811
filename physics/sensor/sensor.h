// Sensors, and the frames of objects that a sensor or a cost can refer to. Values are computed when somebody asks for
// them: a step computes none.
#ifndef SINEW_PHYSICS_SENSOR_SENSOR_H_
#define SINEW_PHYSICS_SENSOR_SENSOR_H_

#include "physics/world/adjoint.h"

// ---- sensor.c ----

// Returns true when the engine can compute sensor i. Others do no harm in a model: whoever asks for their value refuses
// them. Supported are:
//
//   clock, jointpos, jointvel, ballquat, ballangvel, tendonpos, tendonvel, actuatorpos, actuatorvel, actuatorfrc,
//   jointactuatorfrc, tendonactuatorfrc, jointlimitpos, -vel, -frc, tendonlimitpos, -vel, -frc, framepos, framequat,
//   framexaxis, -yaxis, -zaxis, framelinvel, frameangvel (of bodies, geoms, sites and fixed cameras, also relative to
//   one of those), camprojection (fixed cameras); velocimeter, gyro, magnetometer, subtreecom, subtreelinvel,
//   subtreeangmom, e_potential, e_kinetic; accelerometer, framelinacc, frameangacc; force; torque (of a site
//   that is not the world's); touch (zones but meshes), insidesite
//   (not `enclosed`); rangefinder of a site or a fixed camera, unless a ray might meet a signed distance field;
//   contact; geomdist, geomnormal, geomfromto of geoms that the engine can collide; tactile, where
//   no geom is a height field or has a signed distance field; user, which is 0 without a callback
SN_FUNC bool sn_sensor_supported(const SnModel *m, int i);

// Returns the stage whose fields sensor i, a supported one, reads. All stages that sn_forward runs before it must have
// run.
SN_FUNC SnStage sn_sensor_stage(const SnModel *m, int i);

// Writes the value of sensor i, a supported one, into value[sensor_dim[i]]: cut off as the model says, units as in
// MuJoCo's sensordata. One with a delay, or not due, answers from its buffer in `past`. Any thread may call it on a
// world that nobody writes.
SN_FUNC void sn_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
// Writes what sensor i measures now, whatever its buffer holds: a new sample of that.
SN_FUNC void sn_sensor_sample(const SnModel *m, const SnWorld *w, int i, sn_real *value);

// Writes the values of all sensors into data (nsensordata), in the order of MuJoCo's sensordata; those of a sensor that
// is not supported are NaN. All stages of sn_forward must have run. Ends with a sync.
SN_FUNC void sn_sensor_data(const SnModel *m, const SnWorld *w, SnLane *lane, sn_real *data);

// Returns whether the value is a quaternion.
SN_FUNC bool sn_sensor_is_quat(const SnModel *m, int i);

// Returns false for sensors whose gradient the engine does not know. They are insidesite, contact, tactile, user, and
// kinetic energy where tendons have armature. Forces of actuators on a joint have none with compensation of gravity in
// them.
SN_FUNC bool sn_sensor_differentiable(const SnModel *m, int i);
// Returns whether the adjoint of sensor i adds to force_bar: sn_actuator_force_vjp has to follow.
SN_FUNC bool sn_sensor_uses_actuators(const SnModel *m, int i);
// Adds the adjoint of sensor i, which must be differentiable. bar has the sensor's numbers. A quaternion has the 3 of a
// small turn of the value about the axes that it turns in (q <- exp(t / 2) q). Adds to wrench, twist_bar[SN_VEL],
// ten_length_bar, ten_rate_bar[SN_VEL], trn_length_bar, trn_rate_bar[SN_VEL], force_bar, qpos_bar, qvel_bar, past_bar,
// and to the motion of saturation.c.
// One lane calls it. Sensors of the stage SN_STAGE_SOLVER need sn_acceleration_begin before and sn_acceleration_vjp
// after (step.h); they add to qacc_bar, row_pos, acc_bar, twist_bar[SN_ACC] and bars of contacts, too.
SN_FUNC void sn_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar);
// Returns whether a bar (the sensor's numbers) is not 0 and sensor i has a gradient.
SN_FUNC bool sn_sensor_asked(const SnModel *m, int i, const sn_real *bar);
// Adds the adjoint of sensor i as sn_sensor_vjp, of any sensor and from the bars of its numbers, four of a quaternion.
SN_FUNC void sn_sensor_numbers_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar);
// Does the same for sn_sensor_sample.
SN_FUNC void sn_sensor_sample_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar);

// ---- frame.c ----

// Objects are given by type (SN_OBJ_BODY: a body's inertial frame, SN_OBJ_XBODY: the body itself, SN_OBJ_GEOM,
// SN_OBJ_SITE, SN_OBJ_CAMERA) and index. Any thread may call these on a world that nobody writes. All read fields that
// sn_kinematics and, for velocities, sn_com_pos and sn_velocity have written.

// Returns true for the types above, of a camera where it is fixed to its body.
SN_FUNC bool sn_object_has_frame(const SnModel *m, int type, int id);
// Computes position [m] and orientation (row major) in the world; pos or mat may be NULL.
SN_FUNC void sn_object_pose(const SnModel *m, const SnWorld *w, int type, int id, sn_real *pos, sn_real *mat);
// Adds bars of an object's position and of a small turn of it about the world's axes; either may be NULL. One lane
// at a time may add to one body, here and in the adjoints below.
SN_FUNC void sn_object_pose_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                const sn_real *pos_bar, const sn_real *turn_bar);
// Computes the orientation in the world as a unit quaternion.
SN_FUNC void sn_object_quat(const SnModel *m, const SnWorld *w, int type, int id, sn_real *quat);
// Computes the velocity (rotation [rad/s], translation [m/s]) of the object's frame, in world axes.
SN_FUNC void sn_object_velocity(const SnModel *m, const SnWorld *w, int type, int id, sn_real *vel);
// Adds the bar of an object's velocity (6): to twist_bar of qvel's motion, and a wrench, because the object moves with
// its body.
SN_FUNC void sn_object_velocity_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                    const sn_real vel_bar[6]);
// Computes the velocity, as sn_object_velocity, of the point p [m] that moves with a body.
SN_FUNC void sn_point_velocity(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *vel);

// Computes the acceleration (rotation [rad/s^2], translation [m/s^2]) of the point p that moves with a body, in world
// axes. It is what an accelerometer feels: gravity counts as an acceleration upwards. Reads qacc.
SN_FUNC void sn_point_acceleration(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *acc);
// Adds its adjoint: to qacc_bar, acc_bar, twist_bar, and to p_bar what the place of the point gets. Call
// it between sn_acceleration_begin and sn_acceleration_vjp.
SN_FUNC void sn_point_acceleration_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *p,
                                       const sn_real acc_bar[6], sn_real *p_bar);
// Computes the acceleration of an object's frame, as MuJoCo's mj_objectAcceleration.
SN_FUNC void sn_object_acceleration(const SnModel *m, const SnWorld *w, int type, int id, sn_real *acc);
// Adds its adjoint, likewise.
SN_FUNC void sn_object_acceleration_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                        const sn_real acc_bar[6]);

// Adds a force and a torque (NULL: none) on a body at the world point p. They are a function's bars of that point and
// of a small turn. So the wrench is the derivative for a small displacement of the body.
SN_FUNC void sn_point_wrench(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *p,
                             const sn_real *force, const sn_real *torque);
// Adds a force on an object at the world point p that it carries.
SN_FUNC void sn_object_push(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id, const sn_real *p,
                            const sn_real *force);
// Adds the bar of a small turn of the rotation of a ball joint (qpos, dof: its addresses), about its parent's axes.
SN_FUNC void sn_ball_turn_vjp(const SnWorld *w, SnAdjoint *a, int qpos, int dof, const sn_real *turn_bar);

#endif

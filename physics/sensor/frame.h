// Poses and velocities of what a sensor, a cost or an actuator can refer to.
#ifndef SINEW_PHYSICS_SENSOR_FRAME_H_
#define SINEW_PHYSICS_SENSOR_FRAME_H_

#include "physics/world/adjoint.h"

// Objects are given by type (SN_OBJ_BODY: a body's inertial frame, SN_OBJ_XBODY: the body itself, SN_OBJ_GEOM,
// SN_OBJ_SITE) and index. Any thread may call these on a world that nobody writes; all read fields that
// sn_kinematics and, for velocities, sn_com_pos and sn_velocity have written.

// True for the four types above.
SN_FUNC bool sn_object_has_frame(int type);
// Position [m] and orientation (row major) in the world; pos or mat may be NULL.
SN_FUNC void sn_object_pose(const SnModel *m, const SnWorld *w, int type, int id, sn_real *pos, sn_real *mat);
// Orientation in the world as a unit quaternion.
SN_FUNC void sn_object_quat(const SnModel *m, const SnWorld *w, int type, int id, sn_real *quat);
// Velocity (rotation [rad/s], translation [m/s]) of the object's frame, in world axes.
SN_FUNC void sn_object_velocity(const SnModel *m, const SnWorld *w, int type, int id, sn_real *vel);
// The same of the point p [m] that moves with a body.
SN_FUNC void sn_point_velocity(const SnModel *m, const SnWorld *w, int body, const sn_real *p, sn_real *vel);

// Adjoints; each adds. One lane at a time may add to one body.
// A force and a torque (NULL: none) on a body at the world point p: the derivative for a small displacement of the body
// with a function's bars of that point and of a small turn.
SN_FUNC void sn_point_wrench(const SnModel *m, const SnWorld *w, SnAdjoint *a, int body, const sn_real *p,
                             const sn_real *force, const sn_real *torque);
// Bars of an object's position and of a small turn of it about the world's axes; either may be NULL.
SN_FUNC void sn_object_pose_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                const sn_real *pos_bar, const sn_real *turn_bar);
// Bar of an object's velocity (6): twist_bar of qvel's motion, and a wrench, because the object moves with its body.
SN_FUNC void sn_object_velocity_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                    const sn_real vel_bar[6]);
// Bar of a small turn of the rotation of a ball joint (qpos, dof: its addresses), about its parent's axes.
SN_FUNC void sn_ball_turn_vjp(const SnWorld *w, SnAdjoint *a, int qpos, int dof, const sn_real *turn_bar);

#endif

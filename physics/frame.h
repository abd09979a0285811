// Poses and velocities of what a sensor, a cost or an actuator can refer to.
#ifndef SINEW_PHYSICS_FRAME_H_
#define SINEW_PHYSICS_FRAME_H_

#include "physics/world.h"

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

#endif

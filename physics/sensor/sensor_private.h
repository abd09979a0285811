// Sensors of frames: parts of sensor.c, private to it.
#ifndef SINEW_PHYSICS_SENSOR_SENSOR_PRIVATE_H_
#define SINEW_PHYSICS_SENSOR_SENSOR_PRIVATE_H_

#include "physics/world/adjoint.h"

// Returns true for framepos, -quat, -xaxis, -yaxis, -zaxis, -linvel, -angvel, gyro, velocimeter, subtreecom,
// subtreelinvel.
SN_FUNC bool sn_sensor_is_frame(int type);
// Writes the value of sensor i of these types, without its cutoff, into value[sensor_dim[i]].
SN_FUNC void sn_frame_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);
// Adds the adjoint of sensor i of these types, as sn_sensor_vjp.
SN_FUNC void sn_frame_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real bar[3]);

#endif

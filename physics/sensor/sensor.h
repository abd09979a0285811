// Values of a model's sensors, computed when somebody asks for them: a step computes none.
#ifndef SINEW_PHYSICS_SENSOR_SENSOR_H_
#define SINEW_PHYSICS_SENSOR_SENSOR_H_

#include "physics/world/adjoint.h"

// True when the engine can compute sensor i. Those that it cannot do no harm in a model: they are refused by
// whoever asks for their value. Supported: clock, jointpos, jointvel, ballquat, ballangvel, tendonpos, tendonvel,
// actuatorpos, actuatorvel, actuatorfrc, jointactuatorfrc, tendonactuatorfrc, jointlimitpos, -vel, -frc,
// tendonlimitpos, -vel, -frc, framepos, framequat, framexaxis, -yaxis, -zaxis, framelinvel, frameangvel (of bodies,
// geoms and sites, also relative to one of those), velocimeter, gyro, subtreecom.
SN_FUNC bool sn_sensor_supported(const SnModel *m, int i);

// The stage whose fields sensor i reads; all stages that sn_forward runs before it must have run. The sensor
// must be supported.
SN_FUNC SnStage sn_sensor_stage(const SnModel *m, int i);

// Value of sensor i, cut off as the model says, in value[sensor_dim[i]]; units as in MuJoCo's sensordata. The sensor
// must be supported. Any thread, on a world that nobody writes.
SN_FUNC void sn_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value);

// False for sensors whose gradient the engine does not know: forces of limits; the force of actuators on a joint whose
// moment arms move (tendons, sites), on a ball or free joint, or with gravity compensation in it.
SN_FUNC bool sn_sensor_differentiable(const SnModel *m, int i);
// Adds the adjoint of sensor i, which must be differentiable: its bar, 1 or 3 numbers; of a quaternion the 3 of a small
// turn of the value about the axes that it turns in (q <- exp(t / 2) q). Adds to wrench, twist_bar[SN_VEL],
// ten_length_bar, ten_rate_bar[SN_VEL], trn_length_bar, trn_rate_bar[SN_VEL], force_bar, qpos_bar, qvel_bar. One lane.
SN_FUNC void sn_sensor_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, const sn_real *bar);

#endif

// Values of a model's sensors, computed when somebody asks for them: a step computes none.
#ifndef SINEW_PHYSICS_SENSOR_H_
#define SINEW_PHYSICS_SENSOR_H_

#include "physics/world.h"

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

#endif

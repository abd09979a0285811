// Sensors and buffers in a step: between sense.c, past.c, integrate.c and step.c.
#ifndef SINEW_PHYSICS_STEP_SENSE_PRIVATE_H_
#define SINEW_PHYSICS_STEP_SENSE_PRIVATE_H_

#include "physics/world/adjoint.h"

// Tells what a bar of a sensor belongs to: its answer, or what it measures now, a new sample of its buffer.
typedef enum SnSensorAdjoint { SN_SENSOR_ANSWER, SN_SENSOR_SAMPLE } SnSensorAdjoint;

// ---- sense.c ----

// Adds the adjoint of all sensors, as sn_sensor_data_vjp.
SN_FUNC void sn_sense_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnSensorAdjoint one,
                          const sn_real *bar);

// ---- past.c ----

// Puts the controls of this step and what sensors measure into their buffers. It comes before the state moves.
SN_FUNC void sn_past_advance(const SnModel *m, SnWorld *w, SnLane *lane);
// Adds what past_next_bar gives to past_bar and ctrl_bar, and sets sample_bar, which sn_past_sense_vjp hands on.
SN_FUNC void sn_past_advance_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane);
// Adds the adjoint of the new samples of sensors; sn_forward_vjp has run.
SN_FUNC void sn_past_sense_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane);

#endif

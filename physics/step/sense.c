// The adjoint of all sensors at once: it is part of a step's, because what depends on accelerations goes back through
// the stages once more. sensor/sensor.c has the derivation.
#include "physics/actuator/actuator.h"
#include "physics/sensor/sensor.h"
#include "physics/step/sense_private.h"
#include "physics/step/step.h"

SN_FUNC void sn_sense_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnSensorAdjoint one,
                          const sn_real *bar) {
  bool force = false, acceleration = false;  // every lane looks
  for (int i = 0; i < m->nsensor; ++i) {
    const SnStage stage = sn_sensor_stage(m, i);
    if (stage < SN_STAGE_ACTUATION) continue;
    force = force || sn_sensor_uses_actuators(m, i);
    acceleration = acceleration || (stage == SN_STAGE_SOLVER && sn_sensor_asked(m, i, bar + m->sensor_adr[i]));
  }
  if (acceleration) sn_acceleration_begin(m, w, a, lane);
  SN_ONE(lane) {
    for (int i = 0; i < m->nsensor; ++i) {
      if (one == SN_SENSOR_ANSWER)
        sn_sensor_numbers_vjp(m, w, a, i, bar + m->sensor_adr[i]);
      else
        sn_sensor_sample_vjp(m, w, a, i, bar + m->sensor_adr[i]);
    }
  }
  SN_SYNC(lane);
  if (force) sn_actuator_force_vjp(m, w, a, lane);
  if (acceleration) sn_acceleration_vjp(m, w, a, lane);
}

SN_FUNC void sn_sensor_data_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, const sn_real *bar) {
  sn_sense_vjp(m, w, a, lane, SN_SENSOR_ANSWER, bar);
}

// What a step leaves in the buffers of controls and sensors, and its adjoint (history.h says how a buffer lies).
//
// A step puts the controls in force, before their ranges, and each due sensor's new sample into their buffers, under
// the time of its start. The oldest sample goes. Times and places are constant for the adjoint: the bar of a sample
// that stays goes to that sample, the bar of the new one to the controls or to the sensor, that of the one that went is
// 0.
#include "physics/sensor/sensor.h"
#include "physics/step/sense_private.h"

// Whether sensor i gets a new sample.
SN_LOCAL bool past_takes(const SnModel *m, const SnWorld *w, int i) {
  if (m->sensor_history[2 * i] == 0) return false;
  return !(m->sensor_interval[2 * i] > 0) || sn_sensor_due(m, w->past, i, w->time[0]);
}

SN_LOCAL void past_take(const SnModel *m, SnWorld *w, int i) {
  const int dim = m->sensor_dim[i];
  sn_real *buffer = w->past + m->sensor_historyadr[i], *sample = w->sample + m->sensor_adr[i];
  if (!past_takes(m, w, i)) return;
  for (int k = 0; k < dim; ++k) sample[k] = 0;  // of a sensor that is not supported
  if (sn_sensor_supported(m, i)) sn_sensor_sample(m, w, i, sample);
  if (m->sensor_interval[2 * i] > 0) buffer[0] += m->sensor_interval[2 * i];
  sn_history_insert(buffer, m->sensor_history[2 * i], dim, w->time[0], sample);
}

SN_FUNC void sn_past_advance(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(i, m->nactuator) {
    if (m->actuator_history[2 * i] > 0) sn_actuator_insert(m, w->past, i, w->time[0], w->ctrl);
  }
  if (m->nsensorbuffer > 0) SN_FOR(i, m->nsensor) past_take(m, w, i);
  SN_SYNC(lane);
}

// Hands the bars of a buffer after the step to those before it and to the new sample.
SN_LOCAL void past_insert_vjp(const sn_real *buffer, int n, int dim, sn_real time, const sn_real *next_bar,
                              sn_real *bar, sn_real *sample_bar) {
  const SnHistorySlot slot = sn_history_slot(buffer, n, time);
  const sn_real *from = next_bar + 2 + n;
  sn_real *to = bar + 2 + n;
  const int cursor = slot.shift > 0 ? slot.cursor : 0;
  for (int k = 0; k < n; ++k) {
    // the k-th oldest sample was the one behind it, where those before the new one made room
    const int place = sn_history_place(cursor, n, k),
              before = k < slot.shift ? sn_history_place(cursor, n, k + 1) : place;
    for (int d = 0; d < dim; ++d) {
      if (place == slot.at)
        sample_bar[d] += from[place * dim + d];
      else
        to[before * dim + d] += from[place * dim + d];
    }
  }
}

SN_FUNC void sn_past_advance_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  (void)lane;
  SN_FOR(i, m->nactuator) {
    const int adr = m->actuator_historyadr[i];
    if (m->actuator_history[2 * i] == 0) continue;
    past_insert_vjp(w->past + adr, m->actuator_history[2 * i], m->actuator_ctrlnum[i], w->time[0],
                    a->past_next_bar + adr, a->past_bar + adr, a->ctrl_bar + m->actuator_ctrladr[i]);
  }
  SN_FOR(i, m->nsensorbuffer > 0 ? m->nsensor : 0) {
    const int adr = m->sensor_historyadr[i], n = m->sensor_history[2 * i], dim = m->sensor_dim[i];
    for (int d = 0; d < dim; ++d) a->sample_bar[m->sensor_adr[i] + d] = 0;
    if (past_takes(m, w, i))
      past_insert_vjp(w->past + adr, n, dim, w->time[0], a->past_next_bar + adr, a->past_bar + adr,
                      a->sample_bar + m->sensor_adr[i]);
    else
      for (int k = 2 + n; n > 0 && k < sn_history_size(n, dim); ++k) a->past_bar[adr + k] += a->past_next_bar[adr + k];
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_past_sense_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_sense_vjp(m, w, a, lane, SN_SENSOR_SAMPLE, a->sample_bar);
}

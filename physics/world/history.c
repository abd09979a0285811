// Buffers of samples, read and written as MuJoCo does (manual, Modeling, "Delays"; functions mj_readCtrl,
// mj_readSensor).
//
// Between samples x_1, x_2 at t_1 < t_2, with s = (t - t_1) / (t_2 - t_1): the older one is held; or x_1 + s (x_2 -
// x_1); or Hermite's cubic with the slopes of chords over the neighbours,
//   m_1 = (x_2 - x_0) / (t_2 - t_0),   m_2 = (x_3 - x_1) / (t_3 - t_1),   0 where there is no neighbour
//   x = (2 s^3 - 3 s^2 + 1) x_1 + (s^3 - 2 s^2 + s) T m_1 + (3 s^2 - 2 s^3) x_2 + (s^3 - s^2) T m_2,   T = t_2 - t_1.
// A reading is a weighted sum of samples whose weights depend on times alone, which have no derivative but by the
// delay: so the same weights serve the adjoint.
#include "physics/world/history.h"

// The first of the samples, in the order of their times, that is not before `time`; n: all are.
SN_LOCAL int history_find(const sn_real *times, int n, int cursor, sn_real time) {
  int low = 0, high = n - 1;
  if (time <= times[sn_history_place(cursor, n, 0)]) return 0;
  if (time > times[sn_history_place(cursor, n, n - 1)]) return n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (times[sn_history_place(cursor, n, middle)] < time)
      low = middle;
    else
      high = middle;
  }
  return high;
}

SN_LOCAL void history_one(SnHistoryRead *read, int at) {
  read->count = 1;
  read->at[0] = at;
  read->weight[0] = 1;
  read->rate[0] = 0;
}

// Adds x times a chord's slope, and rate times it, to the weights of its ends.
SN_LOCAL void history_chord(SnHistoryRead *read, int first, int last, sn_real x, sn_real rate, sn_real span) {
  read->weight[first] -= x / span;
  read->weight[last] += x / span;
  read->rate[first] -= rate / span;
  read->rate[last] += rate / span;
}

// The cubic between samples 0 and 1 of the reading. The neighbours are its samples 2 and 3.
SN_LOCAL void history_cubic(SnHistoryRead *read, const sn_real *times, sn_real s, bool before, bool behind) {
  const sn_real T = times[read->at[1]] - times[read->at[0]], s2 = s * s, s3 = s2 * s;
  read->weight[0] = 2 * s3 - 3 * s2 + 1;
  read->weight[1] = 3 * s2 - 2 * s3;
  read->rate[0] = 6 * (s2 - s) / T;
  read->rate[1] = -read->rate[0];
  read->count = 4;
  for (int k = 2; k < 4; ++k) read->weight[k] = read->rate[k] = 0;
  if (before)
    history_chord(read, 2, 1, (s3 - 2 * s2 + s) * T, 3 * s2 - 4 * s + 1, times[read->at[1]] - times[read->at[2]]);
  if (behind) history_chord(read, 0, 3, (s3 - s2) * T, 3 * s2 - 2 * s, times[read->at[3]] - times[read->at[0]]);
}

SN_FUNC void sn_history_read(const sn_real *buffer, int n, sn_real time, int interp, SnHistoryRead *read) {
  const int cursor = sn_history_cursor(buffer, n);
  const sn_real *times = buffer + 2, same = sn_history_same(time);
  const int oldest = sn_history_place(cursor, n, 0), newest = sn_history_place(cursor, n, n - 1);
  if (time <= times[oldest] + same) {
    history_one(read, oldest);
    return;
  }
  if (time > times[newest] + same || (time >= times[newest] - same && interp == SN_INTERP_ZOH)) {
    history_one(read, newest);
    return;
  }
  const int high = sn_mini(history_find(times, n, cursor, time), n - 1);
  const int first = sn_history_place(cursor, n, high - 1), last = sn_history_place(cursor, n, high);
  const bool known = sn_abs(time - times[last]) < same || time >= times[newest] - same;
  if (interp == SN_INTERP_ZOH) {
    history_one(read, known ? last : first);
    return;
  }
  const sn_real T = times[last] - times[first], s = known ? SN_R(1.0) : (time - times[first]) / T;
  read->count = 2;
  read->at[0] = first;
  read->at[1] = last;
  read->at[2] = high > 1 ? sn_history_place(cursor, n, high - 2) : first;
  read->at[3] = high < n - 1 ? sn_history_place(cursor, n, high + 1) : last;
  read->weight[0] = 1 - s;
  read->weight[1] = s;
  read->rate[0] = -1 / T;
  read->rate[1] = 1 / T;
  if (interp == SN_INTERP_CUBIC) history_cubic(read, times, s, high > 1, high < n - 1);
}

SN_FUNC void sn_history_value(const sn_real *buffer, int n, int dim, const SnHistoryRead *read, sn_real *value) {
  const sn_real *values = buffer + 2 + n;
  for (int d = 0; d < dim; ++d) {
    sn_real sum = 0;
    for (int k = 0; k < read->count; ++k) sum += read->weight[k] * values[read->at[k] * dim + d];
    value[d] = sum;
  }
}

SN_FUNC SnHistorySlot sn_history_slot(const sn_real *buffer, int n, sn_real time) {
  const int cursor = sn_history_cursor(buffer, n);
  const int i = history_find(buffer + 2, n, cursor, time);
  SnHistorySlot slot = {sn_history_place(cursor, n, sn_mini(i, n - 1)), cursor, 0, false};
  slot.known = i < n && sn_abs(time - buffer[2 + slot.at]) < sn_history_same(time);
  if (slot.known || i == 0) return slot;
  if (i == n) {
    slot.at = slot.cursor = sn_history_place(cursor, n, 0);  // the oldest one's place
  } else {
    slot.at = sn_history_place(cursor, n, i - 1);
    slot.shift = i - 1;
  }
  return slot;
}

SN_FUNC void sn_history_insert(sn_real *buffer, int n, int dim, sn_real time, const sn_real *value) {
  const SnHistorySlot slot = sn_history_slot(buffer, n, time);
  sn_real *times = buffer + 2, *values = times + n;
  for (int k = 0; k < slot.shift; ++k) {
    const int to = sn_history_place(slot.cursor, n, k), from = sn_history_place(slot.cursor, n, k + 1);
    times[to] = times[from];
    for (int d = 0; d < dim; ++d) values[to * dim + d] = values[from * dim + d];
  }
  if (!slot.known) times[slot.at] = time;
  buffer[1] = (sn_real)slot.cursor;
  for (int d = 0; d < dim; ++d) values[slot.at * dim + d] = value[d];
}

SN_FUNC void sn_actuator_read(const SnModel *m, const sn_real *past, int i, sn_real time, SnHistoryRead *read) {
  sn_history_read(past + m->actuator_historyadr[i], m->actuator_history[2 * i], time - m->actuator_delay[i],
                  m->actuator_history[2 * i + 1], read);
}

SN_FUNC void sn_actuator_insert(const SnModel *m, sn_real *past, int i, sn_real time, const sn_real *ctrl) {
  sn_history_insert(past + m->actuator_historyadr[i], m->actuator_history[2 * i], m->actuator_ctrlnum[i], time,
                    ctrl + m->actuator_ctrladr[i]);
}

SN_FUNC void sn_sensor_read(const SnModel *m, const sn_real *past, int i, sn_real time, SnHistoryRead *read) {
  sn_history_read(past + m->sensor_historyadr[i], m->sensor_history[2 * i], time - m->sensor_delay[i],
                  m->sensor_history[2 * i + 1], read);
}

SN_FUNC bool sn_sensor_due(const SnModel *m, const sn_real *past, int i, sn_real time) {
  const sn_real due = past[m->sensor_historyadr[i]] + m->sensor_interval[2 * i];
#if defined(SN_SINGLE)
  time += sn_history_same(time);
#endif
  return due <= time;
}

SN_FUNC bool sn_sensor_reads(const SnModel *m, const sn_real *past, int i, sn_real time) {
  if (m->sensor_history[2 * i] == 0) return false;
  if (m->sensor_delay[i] > 0) return true;
  return m->sensor_interval[2 * i] > 0 && !sn_sensor_due(m, past, i, time);
}

// A buffer after a reset: `last` is the time of its newest sample, `period` [s] that between two, 0: a step; times are
// rounded up to whole steps h.
SN_LOCAL void history_reset(sn_real *buffer, int n, int dim, sn_real mark, sn_real last, sn_real period, sn_real h) {
  buffer[0] = mark;
  buffer[1] = (sn_real)(n - 1);
  for (int k = 0; k < n; ++k) {
    const sn_real time = last - (sn_real)(n - 1 - k) * period;
    buffer[2 + k] = period > 0 ? -sn_floor(-time / h) * h : (sn_real)(k - n) * h;
  }
  for (int k = 0; k < n * dim; ++k) buffer[2 + n + k] = 0;
}

SN_FUNC void sn_past_reset(const SnModel *m, const SnLane *lane, sn_real *past) {
  const sn_real h = m->opt.timestep;
  sn_real *rests = sn_plastic(m, past);
  (void)lane;
  SN_FOR(j, m->nplastic > 0 ? m->njnt : 0) {
    const int adr = m->jnt_plasticadr[j], n = m->jnt_type[j] == SN_JNT_BALL ? 4 : 1;
    for (int k = 0; adr >= 0 && k < n; ++k) rests[adr + k] = m->qpos_spring[m->jnt_qposadr[j] + k];
  }
  SN_FOR(t, m->nplastic > 0 ? m->ntendon : 0) {
    const int adr = m->tendon_plasticadr[t];
    for (int k = 0; adr >= 0 && k < 2; ++k) rests[adr + k] = m->tendon_lengthspring[2 * t + k];
  }
  if (m->nhistory == 0) return;
  SN_FOR(i, m->nactuator) {
    const int n = m->actuator_history[2 * i], dim = m->actuator_ctrlnum[i];
    sn_real *buffer = past + m->actuator_historyadr[i];
    if (n > 0) history_reset(buffer, n, dim, 0, 0, 0, h);
    for (int k = 0; k < n && sn_ctrl_is_quat(m, i); ++k) buffer[2 + n + k * dim] = 1;
  }
  SN_FOR(i, m->nsensor) {
    const sn_real period = m->sensor_interval[2 * i], phase = m->sensor_interval[2 * i + 1];
    const sn_real mark = period > 0 ? (phase == 0 ? -period : phase) : -h;
    // no sample is taken more often than once a step
    const sn_real apart = period > h ? period : phase == 0 ? 0 : h;
    if (m->sensor_history[2 * i] > 0)
      history_reset(past + m->sensor_historyadr[i], m->sensor_history[2 * i], m->sensor_dim[i], mark, mark, apart, h);
  }
}

SN_LOCAL void history_shift(sn_real *buffer, int n, sn_real dt) {
  if (n == 0) return;
  buffer[0] += dt;
  for (int k = 0; k < n; ++k) buffer[2 + k] += dt;
}

SN_FUNC void sn_past_shift(const SnModel *m, sn_real *past, sn_real dt) {
  if (m->nhistory == 0) return;
  for (int i = 0; i < m->nactuator; ++i)
    history_shift(past + m->actuator_historyadr[i], m->actuator_history[2 * i], dt);
  for (int i = 0; i < m->nsensor; ++i) history_shift(past + m->sensor_historyadr[i], m->sensor_history[2 * i], dt);
}

// The first wrong number of a buffer; -1: there is none.
SN_LOCAL int history_bad(const sn_real *buffer, int n, int dim) {
  for (int k = 0; k < sn_history_size(n, dim); ++k)
    if (sn_is_bad(buffer[k])) return k;
  if (n == 0) return -1;
  const int cursor = sn_history_cursor(buffer, n);
  if (buffer[1] != (sn_real)cursor) return 1;
  for (int k = 1; k < n; ++k) {
    const int place = sn_history_place(cursor, n, k);
    if (!(buffer[2 + place] > buffer[2 + sn_history_place(cursor, n, k - 1)])) return 2 + place;
  }
  return -1;
}

// The same of the rests of springs: a quaternion's begins one of about unit length, a range does not end before it
// begins.
SN_LOCAL int plastic_bad(const SnModel *m, const sn_real *rest) {
  for (int k = 0; k < m->nplastic; ++k)
    if (sn_is_bad(rest[k])) return m->nhistory + k;
  for (int j = 0; j < m->njnt; ++j) {
    const sn_real *q = rest + m->jnt_plasticadr[j];
    if (m->jnt_plasticadr[j] < 0 || m->jnt_type[j] != SN_JNT_BALL) continue;
    const sn_real length2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    if (!(sn_abs(length2 - 1) < SN_R(1e-3))) return m->nhistory + m->jnt_plasticadr[j];
  }
  for (int t = 0; t < m->ntendon; ++t)
    if (m->tendon_plasticadr[t] >= 0 && rest[m->tendon_plasticadr[t]] > rest[m->tendon_plasticadr[t] + 1])
      return m->nhistory + m->tendon_plasticadr[t];
  return -1;
}

SN_FUNC bool sn_past_good(const SnModel *m, const sn_real *past, int *bad) {
  int k = -1;
  for (int i = 0; k < 0 && m->nhistory > 0 && i < m->nactuator; ++i) {
    k = history_bad(past + m->actuator_historyadr[i], m->actuator_history[2 * i], m->actuator_ctrlnum[i]);
    if (k >= 0) k += m->actuator_historyadr[i];
  }
  for (int i = 0; k < 0 && m->nhistory > 0 && i < m->nsensor; ++i) {
    k = history_bad(past + m->sensor_historyadr[i], m->sensor_history[2 * i], m->sensor_dim[i]);
    if (k >= 0) k += m->sensor_historyadr[i];
  }
  if (k < 0 && m->nplastic > 0) k = plastic_bad(m, past + m->nhistory);
  *bad = k;
  return k < 0;
}

// Buffers of what controls and sensors were: MuJoCo's delays (manual, Modeling, "Delays"). They are part of `past`, the
// state beside positions, velocities and activations.
//
// A buffer of n samples of `dim` numbers is a row of numbers: mark (1), cursor (1), times (n), values (n, dim). Samples
// stand in a ring in the order of their times, the newest one at the cursor. The mark is the time that a sensor with an
// interval was last due.
#ifndef SINEW_PHYSICS_WORLD_HISTORY_H_
#define SINEW_PHYSICS_WORLD_HISTORY_H_

#include "physics/base/lane.h"
#include "physics/model/model.h"

// Holds what a reading is made of: the sum of weight[k] times the sample at[k], k < count.
typedef struct SnHistoryRead {
  int count;
  int at[4];
  sn_real weight[4];
  sn_real rate[4];  // derivatives of the weights by the time that is read [1/s]
} SnHistoryRead;

// Says where a sample goes.
typedef struct SnHistorySlot {
  int at;      // place of the sample
  int cursor;  // place of the newest sample then
  int shift;   // how many samples from the oldest on make room, each taken over by the one before it
  bool known;  // the time is there already: the values alone are replaced
} SnHistorySlot;

// Returns the place of the k-th oldest sample. A cursor that is none counts as 0.
SN_INLINE int sn_history_place(int cursor, int n, int k) { return (cursor + 1 + k) % n; }
SN_INLINE int sn_history_cursor(const sn_real *buffer, int n) {
  const sn_real c = buffer[1];
  return c >= 0 && c < (sn_real)n ? (int)c : 0;
}
// Returns how far apart two times are that count as one [s].
SN_INLINE sn_real sn_history_same(sn_real time) {
#if defined(SN_SINGLE)
  return 16 * SN_EPS * sn_max(SN_R(1.0), sn_abs(time));  // sums of steps
#else
  (void)time;
  return SN_MINVAL;  // MuJoCo's
#endif
}

// Finds how a buffer is read at a time: held before the oldest and behind the newest sample, in between by `interp`
// (SnInterp). At a sample it is the sample; rates are those of the span before it there.
SN_FUNC void sn_history_read(const sn_real *buffer, int n, sn_real time, int interp, SnHistoryRead *read);
// Writes what is read (dim).
SN_FUNC void sn_history_value(const sn_real *buffer, int n, int dim, const SnHistoryRead *read, sn_real *value);
// Finds where a sample of this time goes.
SN_FUNC SnHistorySlot sn_history_slot(const sn_real *buffer, int n, sn_real time);
// Puts a sample (dim) into a buffer, in place of the oldest one or of one of the same time.
SN_FUNC void sn_history_insert(sn_real *buffer, int n, int dim, sn_real time, const sn_real *value);

// Reads the buffer of actuator i at the time at which its controls act, or of sensor i at that of its answer.
SN_FUNC void sn_actuator_read(const SnModel *m, const sn_real *past, int i, sn_real time, SnHistoryRead *read);
SN_FUNC void sn_sensor_read(const SnModel *m, const sn_real *past, int i, sn_real time, SnHistoryRead *read);
// Returns whether sensor i, one with an interval, is due for a new sample.
SN_FUNC bool sn_sensor_due(const SnModel *m, const sn_real *past, int i, sn_real time);
// Returns whether sensor i answers from its buffer, not with what it measures.
SN_FUNC bool sn_sensor_reads(const SnModel *m, const sn_real *past, int i, sn_real time);

// Puts controls (nu) into the buffer of actuator i, which has one.
SN_FUNC void sn_actuator_insert(const SnModel *m, sn_real *past, int i, sn_real time, const sn_real *ctrl);

// Returns the numbers of `past`: those of all buffers, then the rests of springs that yield.
SN_INLINE int sn_past_size(const SnModel *m) { return m->nhistory + m->nplastic; }
// Returns these rests (nplastic), MuJoCo's mjData.plastic.
SN_INLINE sn_real *sn_plastic(const SnModel *m, sn_real *past) { return past + m->nhistory; }
// Returns where the spring of joint j is at rest, as its positions, and between which lengths that of tendon t is
// slack.
SN_INLINE const sn_real *sn_joint_rest(const SnModel *m, const sn_real *past, int j) {
  const int adr = m->jnt_plasticadr[j];
  return adr < 0 ? m->qpos_spring + m->jnt_qposadr[j] : past + m->nhistory + adr;
}
SN_INLINE const sn_real *sn_tendon_rest(const SnModel *m, const sn_real *past, int t) {
  const int adr = m->tendon_plasticadr[t];
  return adr < 0 ? m->tendon_lengthspring + 2 * t : past + m->nhistory + adr;
}
// Writes what `past` is after a reset: buffers of zeros, with times before 0, and rests as the model has them. Samples
// of a control that is a quaternion turn nothing. Ends with no sync.
SN_FUNC void sn_past_reset(const SnModel *m, const SnLane *lane, sn_real *past);
// Moves all times of `past` by dt [s], for who counts time anew.
SN_FUNC void sn_past_shift(const SnModel *m, sn_real *past, sn_real dt);
// Returns whether numbers can be a `past`: times ascend, cursors are places. Else *bad is the first that is wrong.
SN_FUNC bool sn_past_good(const SnModel *m, const sn_real *past, int *bad);

#endif

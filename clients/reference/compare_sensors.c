// Sensors and history buffers beside MuJoCo's.
#include <stdio.h>

#include "clients/reference/compare_private.h"
#include "physics/sensor/sensor.h"

int sn_compare_sensors_left(const SnModel *m, char *text, size_t size) {
  int left = 0;
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < m->nsensor; ++i) {
    if (sn_sensor_supported(m, i)) continue;
    if (used < size)
      used += (size_t)snprintf(text + used, size - used, "%s%d '%s'", left ? ", " : "", i,
                               sn_model_name(m, SN_NAME_SENSOR, i));
    ++left;
  }
  return left;
}

// Whether sensor i is an e_kinetic that MuJoCo computes after its sensors.
static bool is_late_energy(const SnModel *m, int i) {
  return m->sensor_type[i] == SN_SENS_E_KINETIC && (m->opt.enableflags & mjENBL_ENERGY);
}

// Whether the engine computes sensor i, and MuJoCo of this state and more exactly than to ccd_tolerance.
static bool sensor_is_known(const SnModel *m, int i) {
  const int type = m->sensor_type[i];
  if (is_late_energy(m, i) && m->sensor_history[2 * i] > 0) return false;
  return sn_sensor_supported(m, i) && !(type >= SN_SENS_GEOMDIST && type <= SN_SENS_GEOMFROMTO);
}

// Whether sensor i looks at the length of a tendon that sleeps: MuJoCo leaves that of the begin of the step in which it
// fell asleep.
static bool looks_at_sleeper(const SnModel *m, const SnWorld *w, int i) {
  const int type = m->sensor_type[i], id = m->sensor_objid[i];
  if (type == SN_SENS_TENDONPOS) return sn_tendon_asleep(m, w, id);
  if (type == SN_SENS_ACTUATORPOS)
    return m->actuator_trntype[id] == SN_TRN_TENDON && sn_tendon_asleep(m, w, m->actuator_trnid[2 * id]);
  for (int t = 0; type == SN_SENS_E_POTENTIAL && t < m->ntendon; ++t)
    if (sn_tendon_asleep(m, w, t)) return true;
  return false;
}

// Whether sensor i is compared, and among which: 0 those of the body alone, 1 those of contacts and of the solver.
static bool compares_sensor(const SnModel *m, const SnWorld *w, int i, int *kind) {
  const int type = m->sensor_type[i];
  if (!sensor_is_known(m, i)) return false;
  const SnStage stage = sn_sensor_stage(m, i);
  *kind = type == SN_SENS_CONTACT || stage > SN_STAGE_ACTUATION;
  // what MuJoCo leaves of sleepers: forces and accelerations of another step
  if (sn_any_asleep(m, w) && (*kind == 1 || stage == SN_STAGE_ACTUATION || looks_at_sleeper(m, w, i))) return false;
  return !(m->opt.disableflags & SN_DSBL_SENSOR);
}

// MuJoCo's values of sensor i. With flag energy its e_kinetic is that of the evaluation before, which is no function of
// the state; d->energy is.
static void sensor_reference(const SnOracle *o, int i, double *ref) {
  const double cutoff = (double)o->m->sensor_cutoff[i], energy = o->d->energy[1];
  if (is_late_energy(o->m, i))
    ref[0] = cutoff > 0 ? fmin(energy, cutoff) : energy;
  else
    memcpy(ref, o->d->sensordata + o->m->sensor_adr[i], sizeof(double) * (size_t)o->m->sensor_dim[i]);
}

// Values of sensors; elements are those of sensordata. Those of the body alone are each compared at its own size: a
// large one would hide the others.
void sn_compare_sensors(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  const size_t n = (size_t)m->nsensordata;
  if (n == 0 || !sn_compare_reserve(c, n)) return;
  bool forces = false;
  for (int i = 0, kind; i < m->nsensor; ++i) {
    if (!compares_sensor(m, &o->w, i, &kind)) continue;
    const int adr = m->sensor_adr[i], dim = m->sensor_dim[i];
    sn_sensor_value(m, &o->w, i, c->ours + adr);
    sensor_reference(o, i, c->ref + adr);
    int element = 0;
    forces = forces || kind == 1;
    if (kind == 1) continue;
    const double rel = sn_oracle_error_at(c->ours + adr, c->ref + adr, dim, &element);
    sn_compare_record(c, SN_CMP_sensordata, rel, sn_compare_tolerance(SN_CMP_sensordata), step, adr + element);
    memset(c->ours + adr, 0, sizeof *c->ours * (size_t)dim);
    memset(c->ref + adr, 0, sizeof *c->ref * (size_t)dim);
  }
  const double tol = c->loose ? 1e-4 : sn_compare_tolerance(SN_CMP_sensordata_forces);
  if (forces) sn_compare_numbers(c, SN_CMP_sensordata_forces, c->ours, c->ref, m->nsensordata, tol, step);
}

// Buffers, but for those of sensors whose values are not compared.
void sn_compare_history(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  if (!sn_compare_reserve(c, (size_t)m->nhistory)) return;
  for (int i = 0; i < m->nhistory; ++i) {
    c->ours[i] = o->w.past[i];
    c->ref[i] = o->d->history[i];
  }
  for (int i = 0; i < m->nsensor; ++i) {
    const int n = m->sensor_history[2 * i], address = m->sensor_historyadr[i];
    if (n == 0 || sensor_is_known(m, i)) continue;
    const size_t size = 2 + (size_t)n * (1 + (size_t)m->sensor_dim[i]);  // a user's number, a cursor; times and values
    memset(c->ours + address, 0, size * sizeof *c->ours);
    memset(c->ref + address, 0, size * sizeof *c->ref);
  }
  sn_compare_numbers(c, SN_CMP_next_history, c->ours, c->ref, m->nhistory, c->loose ? 1e-4 : 1e-8, step);
}

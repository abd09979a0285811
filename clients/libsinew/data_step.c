// Steps of one body, and numbers that no step can begin with.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clients/libsinew/data_private.h"
#include "physics/sensor/sensor.h"

SinewStatus api_data_enter(SinewData *data, const char *who, SinewError *err) {
  if (!data) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: data is NULL", who);
  return api_enter(&data->guard, "body", err);
}

bool api_find_bad(ApiBadNumber *bad, const char *array, const double *x, int n) {
  for (int i = 0; x && i < n; ++i) {
    if (!sn_is_bad(x[i])) continue;
    *bad = (ApiBadNumber){array, i, x[i]};
    return true;
  }
  return false;
}

SinewStatus api_check_array(const char *who, const char *array, const double *x, int n, SinewError *err) {
  ApiBadNumber bad;
  if (!x && n > 0) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, array);
  if (!api_find_bad(&bad, array, x, n)) return SINEW_OK;
  return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s[%d] is %g; numbers have to be finite and at most 1e10 in size", who,
                  array, bad.index, bad.value);
}

static bool find_bad_state(ApiBadNumber *bad, const SnModel *m, const SnWorld *w) {
  return api_find_bad(bad, "time", w->time, 1) || api_find_bad(bad, "qpos", w->qpos, m->nq) ||
         api_find_bad(bad, "qvel", w->qvel, m->nv) || api_find_bad(bad, "act", w->act, m->na);
}

// Whether there is any in x[n]: sooner than api_find_bad, which tells which one.
static inline bool any_bad(const double *x, int n) {
  for (int i = 0; i < n; ++i)
    if (!(fabs(x[i]) <= SN_MAXVAL)) return true;
  return false;
}

// A number of the buffers that cannot be: not finite, no place, or a time that does not ascend.
static bool find_bad_past(ApiBadNumber *bad, const SnModel *m, const SnWorld *w) {
  int k;
  if (sn_past_good(m, w->past, &k)) return false;
  *bad = (ApiBadNumber){"history", k, w->past[k]};
  return true;
}

static bool find_bad_input(ApiBadNumber *bad, const SnModel *m, const SnWorld *w) {
  return find_bad_state(bad, m, w) || api_find_bad(bad, "ctrl", w->ctrl, m->nu) ||
         api_find_bad(bad, "mocap_pos", w->mocap_pos, 3 * m->nmocap) ||
         api_find_bad(bad, "mocap_quat", w->mocap_quat, 4 * m->nmocap) ||
         api_find_bad(bad, "qacc_warmstart", w->qacc_warmstart, m->nv) || find_bad_past(bad, m, w);
}

static inline bool any_bad_input(const SnModel *m, const SnWorld *w) {
  return any_bad(w->time, 1) || any_bad(w->qpos, m->nq) || any_bad(w->qvel, m->nv) || any_bad(w->act, m->na) ||
         any_bad(w->ctrl, m->nu) || any_bad(w->mocap_pos, 3 * m->nmocap) || any_bad(w->mocap_quat, 4 * m->nmocap) ||
         any_bad(w->qacc_warmstart, m->nv) || (sn_past_size(m) > 0 && find_bad_past(&(ApiBadNumber){0}, m, w));
}

SinewStatus api_fail_diverged(const ApiBadNumber *bad, const char *place, SinewError *err) {
  if (strcmp(bad->array, "history") == 0)
    return api_fail(err, SINEW_ERR_DIVERGED, "%s: history[%d] is %g; " API_HISTORY_RULE, place, bad->index, bad->value);
  return api_fail(err, SINEW_ERR_DIVERGED, "%s: %s[%d] is %g; numbers have to be finite and at most 1e10 in size",
                  place, bad->array, bad->index, bad->value);
}

SinewStatus api_data_forward(SinewData *data, const char *who, SinewError *err) {
  SnGrowingWorld *g = data->body;
  ApiBadNumber bad;
  SnError why;
  if (find_bad_input(&bad, &g->model, &g->world)) {
    *g->world.warn |= SN_WARN_BAD_STATE;
    return api_fail_diverged(&bad, who, err);
  }
  if (sn_growing_world_forward(g, &why) != SN_OK) return api_hand_on(err, &why);
  data->computed = true;
  if (!api_find_bad(&bad, "qacc", g->world.qacc, g->model.nv)) return SINEW_OK;
  *g->world.warn |= SN_WARN_BAD_STATE;
  return api_fail_diverged(&bad, who, err);
}

void api_data_keep_warmstart(SinewData *data) {
  memcpy(data->warmstart, data->body->world.qacc_warmstart, sizeof(double) * (size_t)data->body->model.nv);
}

void api_data_restore_warmstart(SinewData *data) {
  memcpy(data->body->world.qacc_warmstart, data->warmstart, sizeof(double) * (size_t)data->body->model.nv);
}

SinewStatus sinew_forward(SinewData *data, SinewError *err) {
  SinewStatus status = api_data_enter(data, "sinew_forward", err);
  if (status != SINEW_OK) return status;
  api_data_keep_warmstart(data);
  status = api_data_forward(data, "sinew_forward", err);
  api_data_restore_warmstart(data);
  if (status == SINEW_OK) {
    sn_sensor_data(&data->body->model, &data->body->world, &data->body->lane, data->sensordata);
    api_ok(err);
  }
  return api_leave(&data->guard, status);
}

// Tells why a step has failed, and leaves the body where it was before: `code` is what the world said.
static SinewStatus fail_step(SnGrowingWorld *g, SnCode code, int step, int steps, const char *who, SinewError *err) {
  const SnModel *m = &g->model;
  ApiBadNumber bad = {"qacc", 0, (double)NAN}, next = bad;
  char place[100];
  snprintf(place, sizeof place, "%s: step %d of %d", who, step + 1, steps);
  if (code != SN_OK) return api_fail(err, (SinewStatus)code, "%s: no memory for contacts and their rows", place);
  find_bad_state(&next, m, &g->world);
  sn_growing_world_undo(g);
  *g->world.warn |= SN_WARN_BAD_STATE;
  if (!find_bad_input(&bad, m, &g->world) && !api_find_bad(&bad, "qacc", g->world.qacc, m->nv)) bad = next;
  return api_fail_diverged(&bad, place, err);
}

// A step that stops at the accelerations for the sensors.
static SnCode step_with_sensors(SinewData *data) {
  SnGrowingWorld *g = data->body;
  const SnCode code = sn_growing_world_forward(g, NULL);
  if (code != SN_OK) return code;
  if (any_bad(g->world.qacc, g->model.nv)) {
    *g->world.warn |= SN_WARN_BAD_STATE;
    return SN_OK;
  }
  sn_sensor_data(&g->model, &g->world, &g->lane, data->sensordata);
  return sn_growing_world_integrate(g, NULL);
}

SinewStatus api_data_step(SinewData *data, int step, int steps, const char *who, SinewError *err) {
  SnGrowingWorld *g = data->body;
  const SnModel *m = &g->model;
  const SnWorld *w = &g->world;
  const bool sensors = data->sensors && step == steps - 1;
  const SnCode code = sensors ? step_with_sensors(data) : sn_growing_world_step(g, NULL);
  if (code == SN_OK && !(*w->warn & SN_WARN_BAD_STATE) && !any_bad(w->qpos, m->nq) && !any_bad(w->qvel, m->nv) &&
      !any_bad(w->act, m->na))
    return SINEW_OK;
  return fail_step(g, code, step, steps, who, err);
}

SinewStatus sinew_step(SinewData *data, int steps, SinewError *err) {
  const char *const who = "sinew_step";
  if (data && steps < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: steps is %d; it has to be at least 0", who, steps);
  SinewStatus status = api_data_enter(data, who, err);
  if (status != SINEW_OK) return status;
  int *warn = data->body->world.warn;
  const int before = *warn;
  ApiBadNumber bad;
  *warn = 0;
  // the engine would take a bad control for none at all, and go on
  if (any_bad_input(&data->body->model, &data->body->world)) {
    find_bad_input(&bad, &data->body->model, &data->body->world);
    *warn = SN_WARN_BAD_STATE;
    status = api_fail_diverged(&bad, who, err);
  }
  for (int i = 0; status == SINEW_OK && i < steps; ++i) {
    status = api_data_step(data, i, steps, who, err);
    if (status == SINEW_OK) data->computed = true;
  }
  *warn |= before;
  return api_leave(&data->guard, status == SINEW_OK ? api_ok(err) : status);
}

void sinew_data_set_sensors(SinewData *data, bool on) {
  if (data) data->sensors = on;
}

// One body: its life, its state, what happened in its steps.
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/data_private.h"

_Static_assert((int)SINEW_WARN_CONTACTS == (int)SN_WARN_CONTACT_FULL &&
                   (int)SINEW_WARN_CONSTRAINTS == (int)SN_WARN_EFC_FULL &&
                   (int)SINEW_WARN_BAD_STATE == (int)SN_WARN_BAD_STATE &&
                   (int)SINEW_WARN_NOT_CONVERGED == (int)SN_WARN_NOT_CONVERGED &&
                   (int)SINEW_WARN_INERTIA == (int)SN_WARN_INERTIA,
               "warnings of the engine and of the library differ");

// ---- life ----

// Zeroed memory for n ints, at least one.
static int *int_array(int n) { return calloc((size_t)n + 1, sizeof(int)); }

// Allocates what the body has beside its world.
static bool make_arrays(SinewData *data) {
  const SnModel *m = data->model->model;
  data->sensordata = calloc((size_t)m->nsensordata + 1, sizeof *data->sensordata);
  data->mocap = calloc(7 * (size_t)m->nmocap + 1, sizeof *data->mocap);
  data->warmstart = calloc((size_t)m->nv + 1, sizeof *data->warmstart);
  data->moment_rownnz = int_array(m->nout);
  data->moment_rowadr = int_array(m->nout);
  data->moment_colind = int_array(m->nmom);
  if (!data->sensordata || !data->mocap || !data->warmstart || !data->moment_rownnz || !data->moment_rowadr ||
      !data->moment_colind)
    return false;
  api_fill_nan(data->sensordata, (size_t)m->nsensordata);
  memcpy(data->moment_rownnz, m->mom_rownnz, sizeof(int) * (size_t)m->nout);
  memcpy(data->moment_rowadr, m->mom_rowadr, sizeof(int) * (size_t)m->nout);
  memcpy(data->moment_colind, m->mom_colind, sizeof(int) * (size_t)m->nmom);
  return true;
}

SinewData *sinew_data_create(const SinewModel *model, SinewError *err) {
  SnError why = {.code = SN_OK};
  if (!model) {
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_data_create: model is NULL");
    return NULL;
  }
  SinewData *data = calloc(1, sizeof *data);
  if (data) {
    data->model = model;
    data->body = sn_growing_world_create(model->model, &why);
    if (data->body && sn_has_sleep(model->model)) data->body->world.sleep_on[0] = 1;
  }
  if (data && data->body && make_arrays(data)) {
    api_ok(err);
    return data;
  }
  if (why.code != SN_OK)
    api_hand_on(err, &why);
  else
    api_fail(err, SINEW_ERR_MEMORY, "sinew_data_create: out of memory");
  sinew_data_free(data);
  return NULL;
}

void sinew_data_free(SinewData *data) {
  if (!data) return;
  sn_growing_world_free(data->body);
  sn_model_free(data->all);
  api_cfd_clear(&data->cfd);
  free(data->sensordata);
  free(data->moment_rownnz);
  free(data->moment_rowadr);
  free(data->moment_colind);
  free(data->mocap);
  free(data->warmstart);
  free(data->scratch);
  free(data);
}

const SinewModel *sinew_data_model(const SinewData *data) { return data ? data->model : NULL; }

size_t sinew_data_memory(const SinewData *data, int *grown) {
  if (grown) *grown = data ? data->body->grown : 0;
  if (!data) return 0;
  const SnModel *m = data->model->model;
  const size_t doubles = (size_t)m->nsensordata + 7 * (size_t)m->nmocap + (size_t)m->nv + data->nscratch;
  const size_t ints = 2 * (size_t)m->nout + (size_t)m->nmom;
  return sizeof *data + sn_growing_world_bytes(data->body) + doubles * sizeof(double) + ints * sizeof(int);
}

// ---- state ----

SinewStatus sinew_data_reset(SinewData *data, SinewError *err) {
  const SinewStatus status = api_data_enter(data, "sinew_data_reset", err);
  if (status != SINEW_OK) return status;
  sn_world_reset(&data->body->model, &data->body->world);
  return api_leave(&data->guard, api_ok(err));
}

SinewStatus sinew_data_reset_keyframe(SinewData *data, int key, SinewError *err) {
  const SinewStatus status = api_data_enter(data, "sinew_data_reset_keyframe", err);
  if (status != SINEW_OK) return status;
  const SnModel *m = &data->body->model;
  if (key < 0 || key >= m->nkey)
    return api_leave(&data->guard,
                     api_fail(err, SINEW_ERR_ARGUMENT,
                              "sinew_data_reset_keyframe: there is no keyframe %d; the model has %d", key, m->nkey));
  sn_world_reset_key(m, &data->body->world, key);
  return api_leave(&data->guard, api_ok(err));
}

// Poses of mocap bodies: the state's, else those that the model gives them.
static void set_mocap(const SnModel *m, SnWorld *w, const double *mocap) {
  for (int i = 0; i < m->nbody; ++i) {
    const int k = m->body_mocapid[i];
    if (k < 0) continue;
    memmove(w->mocap_pos + 3 * k, mocap ? mocap + 7 * k : m->body_pos + 3 * i, 3 * sizeof *mocap);
    memmove(w->mocap_quat + 4 * k, mocap ? mocap + 7 * k + 3 : m->body_quat + 4 * i, 4 * sizeof *mocap);
  }
}

// Copies n numbers; `from`, which may be `to`, NULL: zero.
static void set_numbers(double *to, const double *from, int n) {
  if (from)
    memmove(to, from, sizeof *to * (size_t)n);
  else
    memset(to, 0, sizeof *to * (size_t)n);
}

SinewStatus api_set_state(const SnModel *m, SnWorld *w, const SinewState *state, const char *who, SinewError *err) {
  ApiBadNumber bad;
  if (api_find_bad(&bad, "time", &state->time, 1) || api_find_bad(&bad, "qpos", state->qpos, m->nq) ||
      api_find_bad(&bad, "qvel", state->qvel, m->nv) || api_find_bad(&bad, "act", state->act, m->na) ||
      api_find_bad(&bad, "mocap", state->mocap, 7 * m->nmocap))
    return api_fail_diverged(&bad, who, err);
  *w->time = state->time;
  set_numbers(w->qpos, state->qpos ? state->qpos : m->qpos0, m->nq);
  set_numbers(w->qvel, state->qvel, m->nv);
  set_numbers(w->act, state->act, m->na);
  sn_past_reset(m, &(SnLane){.n = 1}, w->past);
  set_numbers(w->qacc_warmstart, NULL, m->nv);
  set_mocap(m, w, state->mocap);
  return api_ok(err);
}

SinewStatus sinew_data_set_state(SinewData *data, const SinewState *state, SinewError *err) {
  const char *const who = "sinew_data_set_state";
  if (data && !state) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: state is NULL", who);
  const SinewStatus status = api_data_enter(data, who, err);
  if (status != SINEW_OK) return status;
  return api_leave(&data->guard, api_set_state(&data->body->model, &data->body->world, state, who, err));
}

SinewState sinew_data_state(SinewData *data) {
  if (!data) return (SinewState){.time = 0};
  const SnWorld *w = &data->body->world;
  for (int k = 0; k < data->body->model.nmocap; ++k) {
    memcpy(data->mocap + 7 * k, w->mocap_pos + 3 * k, 3 * sizeof *data->mocap);
    memcpy(data->mocap + 7 * k + 3, w->mocap_quat + 4 * k, 4 * sizeof *data->mocap);
  }
  return (SinewState){.time = *w->time, .qpos = w->qpos, .qvel = w->qvel, .act = w->act, .mocap = data->mocap};
}

SinewStatus sinew_data_copy_state(SinewData *to, const SinewData *from, SinewError *err) {
  if (to && !from) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_data_copy_state: from is NULL");
  const SinewStatus status = api_data_enter(to, "sinew_data_copy_state", err);
  if (status != SINEW_OK) return status;
  if (to->model != from->model)
    return api_leave(&to->guard, api_fail(err, SINEW_ERR_ARGUMENT,
                                          "sinew_data_copy_state: the two bodies were made of different models"));
  if (to != from) {
    const int warn = *to->body->world.warn;
    sn_world_copy_state(&to->body->model, &to->body->world, &from->body->world);
    *to->body->world.warn = warn;
  }
  return api_leave(&to->guard, api_ok(err));
}

double sinew_data_time(const SinewData *data) { return data ? *data->body->world.time : 0; }

// ---- warnings ----

unsigned sinew_data_warnings(const SinewData *data) { return data ? (unsigned)*data->body->world.warn : 0; }

void sinew_data_clear_warnings(SinewData *data) {
  if (data) *data->body->world.warn = 0;
}

// ---- contacts from distance ----

void api_data_use_cfd(SinewData *data, bool on) {
  SnCfdSettings settings = data->cfd.settings;
  settings.on = on;
  *data->body->world.cfd = sn_cfd(&settings);
}

SinewStatus sinew_data_set_cfd(SinewData *data, const SinewCfd *cfd, SinewError *err) {
  SinewStatus status = api_data_enter(data, "sinew_data_set_cfd", err);
  if (status != SINEW_OK) return status;
  status = api_cfd_read(data->model, cfd, &data->cfd, err);
  if (status == SINEW_OK && data->cfd.use != SINEW_CFD_NONE && sn_has_sleep(&data->body->model)) {
    data->cfd.use = SINEW_CFD_NONE;
    status = api_fail(err, SINEW_ERR_UNSUPPORTED,
                      "sinew_data_set_cfd: the model has flag sleep, under which contacts do not act from a distance; "
                      "take mjENBL_SLEEP out of enableflags by sinew_model_with_options");
  }
  if (status == SINEW_OK) {
    api_data_use_cfd(data, data->cfd.use == SINEW_CFD_FORWARD);
    api_ok(err);
  }
  return api_leave(&data->guard, status);
}

// Snapshots on the wire: what a planner says of itself, and with which task, model, settings, weights and targets.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/session/pack.h"

enum { VERSION = 1 };  // of the message

// ---- to the wire ----

static Sinew__V1__WarmStart *pack_warm_start(SnScratch *scratch, const SnSession *session, const SnPlannerSnapshot *s) {
  Sinew__V1__WarmStart *out = sn_scratch_alloc(scratch, sizeof *out);
  if (!out) return NULL;
  sinew__v1__warm_start__init(out);
  const size_t n = (size_t)sn_planner_settings(session->planner)->horizon * (size_t)session->nu;
  out->time = s->warm_time;
  out->ctrl = sn_pack_reals(scratch, s->warm_ctrl, n, &out->n_ctrl);
  out->exists = s->begun;
  out->phase = (uint32_t)s->phase;
  return out;
}

static Sinew__V1__ActivePlan *pack_active_plan(SnScratch *scratch, const SnSession *session,
                                               const SnPlannerSnapshot *s) {
  Sinew__V1__ActivePlan *out = sn_scratch_alloc(scratch, sizeof *out);
  if (!out) return NULL;
  sinew__v1__active_plan__init(out);
  out->time = s->active_time;
  out->ctrl = sn_pack_reals(scratch, s->active_ctrl, (size_t)s->active_rows * (size_t)session->nu, &out->n_ctrl);
  return out;
}

static Sinew__V1__AdamMemory *pack_adam(SnScratch *scratch, const SnAdamSnapshot *s) {
  Sinew__V1__AdamMemory *out = s->used ? sn_scratch_alloc(scratch, sizeof *out) : NULL;
  if (!out) return NULL;
  sinew__v1__adam_memory__init(out);
  out->moved = (uint32_t)s->moved;
  out->phase = (uint32_t)s->phase;
  out->knots = (uint32_t)s->knots;
  out->interpolation = (uint32_t)s->interpolation;
  out->starts = (uint32_t)s->starts;
  out->capacity = (uint32_t)s->capacity;
  out->known = s->known;
  char *grid = sn_scratch_alloc(scratch, SN_GRID_TEXT);
  if (grid) out->grid = (char *)(uintptr_t)sn_grid_write(&s->grid, grid, SN_GRID_TEXT);
  if (!s->known) return out;
  out->first = sn_pack_reals(scratch, s->moments.first, (size_t)s->moments.size, &out->n_first);
  out->second = sn_pack_reals(scratch, s->moments.second, (size_t)s->moments.size, &out->n_second);
  out->power1 = s->moments.power1;
  out->power2 = s->moments.power2;
  return out;
}

SnCode sn_pack_snapshot(SnScratch *scratch, const SnSession *session, Sinew__V1__Snapshot *out, SnError *err) {
  SnPlannerSnapshot s;
  SnCode code = sn_planner_snapshot(session->planner, &s, err);
  if (code != SN_OK) return code;
  const SnVersion *version = sn_history_find(&session->history, 0);
  out->version = VERSION;
  out->task = session->task->name;
  out->checksum = (char *)(uintptr_t)session->checksum;
  out->number = sn_pack_number_type();
  out->seed = session->seed;
  out->plan = s.number;
  out->planner = sn_pack_settings(scratch, &version->planner);
  out->session = sn_pack_session_settings(scratch, &version->session);
  out->terms = sn_pack_term_settings(scratch, sn_planner_cost(session->planner), version, &out->n_terms);
  out->state = sn_pack_state(scratch, sn_planner_model(session->planner), &s.state);
  out->act_known = s.act_known;
  out->warm_start = pack_warm_start(scratch, session, &s);
  out->active_plan = pack_active_plan(scratch, session, &s);
  out->adam = pack_adam(scratch, &s.adam);
  return scratch->failed ? sn_fail(err, SN_ERR_MEMORY, "out of memory") : SN_OK;
}

// ---- from the wire ----

SnCode sn_check_snapshot(const Sinew__V1__Snapshot *in, const char *task, SnError *err) {
  if (in->version != VERSION)
    return sn_fail(err, SN_ERR_ARGUMENT, "snapshot: of version %u; this daemon reads version %d", in->version, VERSION);
  if (strcmp(in->task, task))
    return sn_fail(err, SN_ERR_ARGUMENT, "snapshot: of the task '%.80s'; this session's is '%.80s'", in->task, task);
  if (strcmp(in->number, sn_pack_number_type()))
    return sn_fail(err, SN_ERR_ARGUMENT, "snapshot: of an engine that computes in %.32s; this one computes in %s",
                   in->number, sn_pack_number_type());
  return SN_OK;
}

static SnCode check_size(const char *what, size_t n, size_t expected, SnError *err) {
  if (n == expected) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT, "snapshot: %s has %zu numbers; this session needs %zu", what, n, expected);
}

static SnCode check_sizes(const Sinew__V1__Snapshot *in, const SnModel *m, size_t horizon, SnError *err) {
  const size_t nu = (size_t)m->nu, rows = nu > 0 ? in->active_plan->n_ctrl / nu : 0;
  const Sinew__V1__AdamMemory *adam = in->adam;
  const size_t moments = adam && adam->known ? (size_t)sn_multistart_knots((int)horizon) * nu : 0;
  SnCode code = check_size("state.qpos", in->state->n_qpos, (size_t)m->nq, err);
  if (code == SN_OK) code = check_size("state.qvel", in->state->n_qvel, (size_t)m->nv, err);
  if (code == SN_OK) code = check_size("state.act", in->state->n_act, (size_t)m->na, err);
  if (code == SN_OK) code = check_size("state.mocap", in->state->n_mocap, 7 * (size_t)m->nmocap, err);
  if (code == SN_OK) code = check_size("state.history", in->state->n_history, (size_t)sn_past_size(m), err);
  if (code == SN_OK) code = check_size("warm_start.ctrl", in->warm_start->n_ctrl, horizon * nu, err);
  if (code == SN_OK) code = check_size("active_plan.ctrl", in->active_plan->n_ctrl, rows * nu, err);
  if (code == SN_OK && adam) code = check_size("adam.first", adam->n_first, moments, err);
  if (code == SN_OK && adam) code = check_size("adam.second", adam->n_second, moments, err);
  SnGrid grid;
  return code == SN_OK && adam ? sn_grid_parse(adam->grid, (int)horizon, &grid, err) : code;
}

static SnAdamSnapshot read_adam(SnScratch *scratch, const Sinew__V1__AdamMemory *in, int horizon) {
  SnGrid grid = {0};
  if (!in) return (SnAdamSnapshot){0};
  sn_grid_parse(in->grid, horizon, &grid, NULL);  // check_sizes has read it
  return (SnAdamSnapshot){.used = true,
                          .known = in->known,
                          .moved = (int)in->moved,
                          .phase = (int)in->phase,
                          .knots = (int)in->knots,
                          .interpolation = (int)in->interpolation,
                          .starts = (int)in->starts,
                          .grid = grid,
                          .capacity = (int)in->capacity,
                          .moments = {.size = (int)in->n_first,
                                      .first = sn_unpack_reals(scratch, in->first, in->n_first),
                                      .second = sn_unpack_reals(scratch, in->second, in->n_second),
                                      .power1 = in->power1,
                                      .power2 = in->power2}};
}

static SnPlannerSnapshot read_planner(SnScratch *scratch, const Sinew__V1__Snapshot *in, const SnPlanner *planner) {
  const Sinew__V1__State *state = in->state;
  const size_t nu = (size_t)sn_planner_model(planner)->nu;
  SnPlannerSnapshot s = {.number = in->plan,
                         .act_known = in->act_known,
                         .begun = in->warm_start->exists,
                         .warm_time = in->warm_start->time,
                         .warm_ctrl = sn_unpack_reals(scratch, in->warm_start->ctrl, in->warm_start->n_ctrl),
                         .phase = (int)in->warm_start->phase,
                         .active_time = in->active_plan->time,
                         .active_rows = nu > 0 ? (int)(in->active_plan->n_ctrl / nu) : 0,
                         .active_ctrl = sn_unpack_reals(scratch, in->active_plan->ctrl, in->active_plan->n_ctrl),
                         .adam = read_adam(scratch, in->adam, sn_planner_settings(planner)->horizon)};
  s.state.time = state->time;
  s.state.qpos = sn_unpack_reals(scratch, state->qpos, state->n_qpos);
  s.state.qvel = sn_unpack_reals(scratch, state->qvel, state->n_qvel);
  s.state.act = sn_unpack_reals(scratch, state->act, state->n_act);
  s.state.past = sn_unpack_reals(scratch, state->history, state->n_history);
  sn_unpack_mocap(scratch, state, &s.state.mocap_pos, &s.state.mocap_quat);
  return s;
}

SnCode sn_restore_snapshot(const Sinew__V1__Snapshot *in, const char *checksum, SnPlanner *planner, SnError *err) {
  const SnModel *m = sn_planner_model(planner);
  if (strcmp(in->checksum, checksum))
    return sn_fail(err, SN_ERR_ARGUMENT,
                   "snapshot: of a model with the checksum %.32s; that of this session's model is %s", in->checksum,
                   checksum);
  SnCode code = check_sizes(in, m, (size_t)sn_planner_settings(planner)->horizon, err);
  if (code == SN_OK) code = sn_check_terms(planner, in->terms, in->n_terms, err);
  if (code == SN_OK) code = sn_apply_terms(planner, in->terms, in->n_terms, err);
  if (code != SN_OK) return code;
  SnScratch scratch = {0};
  const SnPlannerSnapshot s = read_planner(&scratch, in, planner);
  SnError why = {0};
  code = scratch.failed ? sn_fail(&why, SN_ERR_MEMORY, "out of memory") : sn_planner_restore(planner, &s, &why);
  if (code != SN_OK) sn_fail(err, code, "snapshot: %.3900s", why.text);
  sn_scratch_free(&scratch);
  return code;
}

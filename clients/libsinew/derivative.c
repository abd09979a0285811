// Derivatives of a step and of its sensors.
//
// They are taken through the stages at the present state, which run again: the user may have written to it. With
// contacts from distance in derivatives only, those stages are of the world in which they act, at the same state
// (straight-through); what follows a step, and the point at which the derivative by it is given, is of the world as it
// is.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/coordinates_private.h"
#include "clients/libsinew/data_private.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "planner/rollout/linearize.h"

// Scratch of n numbers that stays with the body; NULL when out of memory.
static double *scratch(SinewData *data, size_t n) {
  if (n <= data->nscratch) return data->scratch;
  double *larger = realloc(data->scratch, n * sizeof *larger);
  if (!larger) return NULL;
  data->scratch = larger;
  data->nscratch = n;
  return larger;
}

// Begins a call.
static SinewStatus enter(SinewData *data, const char *who, SinewError *err) {
  const SinewStatus status = api_data_enter(data, who, err);
  if (status == SINEW_OK) api_data_keep_warmstart(data);
  return status;
}

// Runs the stages that are differentiated.
static SinewStatus evaluate(SinewData *data, const char *who, SinewError *err) {
  api_data_use_cfd(data, data->cfd.use != SINEW_CFD_NONE);
  return api_data_forward(data, who, err);
}

// Ends a call: contacts act as in steps again.
static SinewStatus leave(SinewData *data, SinewStatus status, SinewError *err) {
  api_data_use_cfd(data, data->cfd.use == SINEW_CFD_FORWARD);
  api_data_restore_warmstart(data);
  return api_leave(&data->guard, status == SINEW_OK ? api_ok(err) : status);
}

SinewStatus api_check_sensors(const SnModel *m, const double *bar, const char *who, SinewError *err) {
  for (int i = 0; i < m->nsensor; ++i) {
    bool asked = !bar;
    for (int k = 0; bar && k < m->sensor_dim[i]; ++k) asked = asked || bar[m->sensor_adr[i] + k] != 0;
    if (!asked || (sn_sensor_supported(m, i) && sn_sensor_differentiable(m, i))) continue;
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "%s: sensor %d '%s' has no derivative; sinew_model_sensor tells", who,
                    i, sn_model_name(m, SN_NAME_SENSOR, i));
  }
  return SINEW_OK;
}

// Refuses an array of the caller with a number that is not finite; x may be NULL.
static SinewStatus check_bar(const char *who, const char *name, const double *x, int n, SinewError *err) {
  for (int i = 0; x && i < n; ++i)
    if (!isfinite(x[i]))
      return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s[%d] is %g; it has to be finite", who, name, i, x[i]);
  return SINEW_OK;
}

// Tells of a result, which may be NULL, that left the range of numbers.
static SinewStatus check_result(const char *who, const char *name, const double *x, size_t n, SinewError *err) {
  int bad = 0;
  for (size_t i = 0; x && i < n; ++i) bad |= !(fabs(x[i]) <= DBL_MAX);
  for (size_t i = 0; bad && i < n; ++i)
    if (!isfinite(x[i]))
      return api_fail(err, SINEW_ERR_DIVERGED, "%s: the derivative leaves the range of numbers: %s[%zu] is %g", who,
                      name, i, x[i]);
  return SINEW_OK;
}

// ---- Jacobians ----

// A and B, at the state that has been evaluated.
static SinewStatus step_jacobian(SinewData *data, double *A, double *B, SinewError *err) {
  SnGrowingWorld *g = data->body;
  SnError why;
  bool again = true;
  while (again) {
    SnAdjoint *a = sn_growing_world_adjoint(g, &why);
    if (!a) return api_hand_on(err, &why);
    sn_step_jacobian(&g->model, &g->world, a, &g->lane, A, B);
    if (sn_growing_world_settle(g, &again, &why) != SN_OK) return api_hand_on(err, &why);
  }
  return SINEW_OK;
}

// C and D, each NULL or wanted. bar is scratch, (nsensordata).
static SinewStatus sensor_jacobian(SinewData *data, double *C, double *D, double *bar, SinewError *err) {
  SnGrowingWorld *g = data->body;
  SnError why;
  SnAdjoint *a = sn_growing_world_adjoint(g, &why);
  if (!a) return api_hand_on(err, &why);
  sn_sensor_jacobian(&g->model, &g->world, a, &g->lane, &(SnSensorJacobian){.C = C, .D = D, .bar = bar});
  return SINEW_OK;
}

// The four matrices of a state that has been evaluated.
static SinewStatus all_jacobians(SinewData *data, double *A, double *B, double *C, double *D, const char *who,
                                 SinewError *err) {
  const SnModel *m = &data->body->model;
  const size_t n = 2 * (size_t)m->nv + (size_t)m->na, nu = (size_t)m->nu, ns = (size_t)m->nsensordata;
  const size_t room = (A ? 0 : n * n) + (B ? 0 : n * nu);  // the two come together
  double *spare = scratch(data, room > ns ? room : ns + 1);
  SinewStatus status = SINEW_OK;
  if (!spare) return api_fail(err, SINEW_ERR_MEMORY, "%s: out of memory", who);
  if (A || B) status = step_jacobian(data, A ? A : spare, B ? B : spare + (A ? 0 : n * n), err);
  if (status == SINEW_OK && (C || D)) status = sensor_jacobian(data, C, D, spare, err);
  if (status == SINEW_OK) status = check_result(who, "A", A, n * n, err);
  if (status == SINEW_OK) status = check_result(who, "B", B, n * nu, err);
  if (status == SINEW_OK) status = check_result(who, "C", C, ns * n, err);
  if (status == SINEW_OK) status = check_result(who, "D", D, ns * nu, err);
  return status;
}

SinewStatus sinew_step_jacobian(SinewData *data, double *A, double *B, double *C, double *D, SinewError *err) {
  const char *const who = "sinew_step_jacobian";
  SinewStatus status = enter(data, who, err);
  if (status != SINEW_OK) return status;
  if (C || D) status = api_check_sensors(&data->body->model, NULL, who, err);
  if (status == SINEW_OK) status = evaluate(data, who, err);
  if (status == SINEW_OK) status = all_jacobians(data, A, B, C, D, who, err);
  return leave(data, status, err);
}

// ---- vector-Jacobian products ----

// A product that is asked for. Parts that are NULL are zero, or not wanted.
typedef struct Product {
  SinewCoordinates coordinates;
  SinewStateBar next, state;
  const double *sensordata;
  double *ctrl;
  double *qpos_next;  // scratch (nq), positions after the step
} Product;

static bool has_quaternions(const SnModel *m) { return m->nq != m->nv; }

// Whether the bar of the next positions has to be turned to their tangent: there the next positions count.
static bool needs_next(const SnModel *m, const Product *p) {
  return p->coordinates == SINEW_ARRAY && p->next.qpos && has_quaternions(m);
}

// Fills in positions after the step; the body stays where it is.
static SinewStatus find_next(SinewData *data, Product *p, const char *who, SinewError *err) {
  SnGrowingWorld *g = data->body;
  const SinewStatus status = api_data_step(data, 0, 1, who, err);
  if (status != SINEW_OK) return status;
  memcpy(p->qpos_next, g->world.qpos, sizeof *p->qpos_next * (size_t)g->model.nq);
  sn_growing_world_undo(g);
  return SINEW_OK;
}

static void copy_or_zero(double *to, const double *from, int n) {
  if (from)
    memcpy(to, from, sizeof *to * (size_t)n);
  else
    memset(to, 0, sizeof *to * (size_t)n);
}

// Hands the bars of the next state to the adjoint.
static void set_next_bar(const SnModel *m, SnAdjoint *a, const Product *p) {
  if (p->coordinates == SINEW_ARRAY && p->next.qpos)
    api_bar_of_tangent(m, p->qpos_next, p->next.qpos, a->qpos_next_bar);
  else
    copy_or_zero(a->qpos_next_bar, p->next.qpos, m->nv);
  copy_or_zero(a->qvel_next_bar, p->next.qvel, m->nv);
  copy_or_zero(a->act_next_bar, p->next.act, m->na);
  copy_or_zero(a->past_next_bar, NULL, sn_past_size(m));
}

// The results of the adjoint, as they are asked for.
static void take_result(const SnModel *m, const SnWorld *w, const SnAdjoint *a, const Product *p) {
  if (p->state.qpos && p->coordinates == SINEW_ARRAY)
    api_bar_of_array(m, w->qpos, a->qpos_bar, p->state.qpos);
  else if (p->state.qpos)
    memcpy(p->state.qpos, a->qpos_bar, sizeof(double) * (size_t)m->nv);
  if (p->state.qvel) memcpy(p->state.qvel, a->qvel_bar, sizeof(double) * (size_t)m->nv);
  if (p->state.act) memcpy(p->state.act, a->act_bar, sizeof(double) * (size_t)m->na);
  if (p->ctrl) memcpy(p->ctrl, a->ctrl_bar, sizeof(double) * (size_t)m->nu);
}

// The product, at the state that has been evaluated.
static SinewStatus multiply(SinewData *data, const Product *p, SinewError *err) {
  SnGrowingWorld *g = data->body;
  const SnModel *m = &g->model;
  SnError why;
  SnAdjoint *a = NULL;
  bool again = true;
  while (again) {
    a = sn_growing_world_adjoint(g, &why);
    if (!a) return api_hand_on(err, &why);
    sn_adjoint_clear(m, a, &g->lane);
    set_next_bar(m, a, p);
    sn_step_vjp(m, &g->world, a, &g->lane);
    if (p->sensordata) sn_sensor_data_vjp(m, &g->world, a, &g->lane, p->sensordata);
    sn_position_vjp(m, &g->world, a, &g->lane);
    if (sn_growing_world_settle(g, &again, &why) != SN_OK) return api_hand_on(err, &why);
  }
  take_result(m, &g->world, a, p);
  return SINEW_OK;
}

// Checks what the caller has handed in.
static SinewStatus check_product(const SnModel *m, const Product *p, const char *who, SinewError *err) {
  if (p->coordinates != SINEW_TANGENT && p->coordinates != SINEW_ARRAY)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: coordinates is %d; allowed are SINEW_TANGENT and SINEW_ARRAY", who,
                    (int)p->coordinates);
  const int nqpos = p->coordinates == SINEW_ARRAY ? m->nq : m->nv;
  SinewStatus status = check_bar(who, "next.qpos", p->next.qpos, nqpos, err);
  if (status == SINEW_OK) status = check_bar(who, "next.qvel", p->next.qvel, m->nv, err);
  if (status == SINEW_OK) status = check_bar(who, "next.act", p->next.act, m->na, err);
  if (status == SINEW_OK) status = check_bar(who, "sensordata_bar", p->sensordata, m->nsensordata, err);
  if (status == SINEW_OK && p->sensordata) status = api_check_sensors(m, p->sensordata, who, err);
  return status;
}

static SinewStatus check_product_result(const SnModel *m, const Product *p, const char *who, SinewError *err) {
  const size_t nqpos = (size_t)(p->coordinates == SINEW_ARRAY ? m->nq : m->nv);
  SinewStatus status = check_result(who, "state_bar.qpos", p->state.qpos, nqpos, err);
  if (status == SINEW_OK) status = check_result(who, "state_bar.qvel", p->state.qvel, (size_t)m->nv, err);
  if (status == SINEW_OK) status = check_result(who, "state_bar.act", p->state.act, (size_t)m->na, err);
  if (status == SINEW_OK) status = check_result(who, "ctrl_bar", p->ctrl, (size_t)m->nu, err);
  return status;
}

SinewStatus sinew_step_vjp(SinewData *data, SinewCoordinates coordinates, const SinewStateBar *next,
                           const double *sensordata_bar, const SinewStateBar *state_bar, double *ctrl_bar,
                           SinewError *err) {
  const char *const who = "sinew_step_vjp";
  Product p = {.coordinates = coordinates, .sensordata = sensordata_bar, .ctrl = ctrl_bar};
  if (next) p.next = *next;
  if (state_bar) p.state = *state_bar;
  SinewStatus status = enter(data, who, err);
  if (status != SINEW_OK) return status;
  const SnModel *m = &data->body->model;
  status = check_product(m, &p, who, err);
  if (status != SINEW_OK) return leave(data, status, err);
  p.qpos_next = scratch(data, (size_t)m->nq + 1);
  if (!p.qpos_next) status = api_fail(err, SINEW_ERR_MEMORY, "%s: out of memory", who);
  if (status == SINEW_OK && needs_next(m, &p)) status = find_next(data, &p, who, err);
  if (status == SINEW_OK) status = evaluate(data, who, err);
  if (status == SINEW_OK) status = multiply(data, &p, err);
  if (status == SINEW_OK) status = check_product_result(m, &p, who, err);
  return leave(data, status, err);
}

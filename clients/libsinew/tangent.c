// Positions and their tangents: a small step along one, and the one between two.
#include <string.h>

#include "clients/libsinew/coordinates_private.h"
#include "clients/libsinew/data_private.h"
#include "physics/base/vec.h"
#include "physics/step/step.h"

// Refuses arrays that are NULL, or hold numbers that no body can have.
static SinewStatus check_array(const char *who, const char *array, const double *x, int n, SinewError *err) {
  ApiBadNumber bad;
  if (!x && n > 0) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, array);
  if (!api_find_bad(&bad, array, x, n)) return SINEW_OK;
  return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s[%d] is %g; numbers have to be finite and at most 1e10 in size", who,
                  array, bad.index, bad.value);
}

SinewStatus sinew_model_integrate(const SinewModel *model, const double *qpos, const double *tangent, double scale,
                                  double *moved, SinewError *err) {
  const char *const who = "sinew_model_integrate";
  if (!model || !moved) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, model ? "moved" : "model");
  const SnModel *m = model->model;
  SinewStatus status = check_array(who, "qpos", qpos, m->nq, err);
  if (status == SINEW_OK) status = check_array(who, "tangent", tangent, m->nv, err);
  if (status == SINEW_OK) status = check_array(who, "scale", &scale, 1, err);
  if (status != SINEW_OK) return status;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  memmove(moved, qpos, sizeof(double) * (size_t)m->nq);
  sn_integrate_pos(m, &lane, moved, tangent, scale);
  return api_ok(err);
}

// The rotation vector, about axes of the body, that turns q1 into q2, of any lengths.
static void turn_between(const double *q1, const double *q2, double *turn) {
  double inverse[4], from[4], to[4], q[4];
  sn_copy4(from, q1);
  sn_copy4(to, q2);
  sn_normalize4(from);
  sn_normalize4(to);
  sn_negquat(inverse, from);
  sn_mulquat(q, inverse, to);
  sn_quat2vel(turn, q);
}

SinewStatus sinew_model_difference(const SinewModel *model, const double *qpos1, const double *qpos2, double *tangent,
                                   SinewError *err) {
  const char *const who = "sinew_model_difference";
  if (!model || !tangent) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, model ? "tangent" : "model");
  const SnModel *m = model->model;
  SinewStatus status = check_array(who, "qpos1", qpos1, m->nq, err);
  if (status == SINEW_OK) status = check_array(who, "qpos2", qpos2, m->nq, err);
  if (status != SINEW_OK) return status;
  for (int j = 0; j < m->njnt; ++j) {
    const int q = m->jnt_qposadr[j], v = m->jnt_dofadr[j];
    bool quaternion;
    const int plain = api_plain_numbers(m, j, &quaternion);
    for (int k = 0; k < plain; ++k) tangent[v + k] = qpos2[q + k] - qpos1[q + k];
    if (quaternion) turn_between(qpos1 + q + plain, qpos2 + q + plain, tangent + v + plain);
  }
  return api_ok(err);
}

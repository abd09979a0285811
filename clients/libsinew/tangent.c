// Positions and their tangents: a small step along one, and the one between two.
#include <string.h>

#include "clients/libsinew/data_private.h"
#include "physics/step/step.h"

SinewStatus sinew_model_integrate(const SinewModel *model, const double *qpos, const double *tangent, double scale,
                                  double *moved, SinewError *err) {
  const char *const who = "sinew_model_integrate";
  if (!model || !moved) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, model ? "moved" : "model");
  const SnModel *m = model->model;
  SinewStatus status = api_check_array(who, "qpos", qpos, m->nq, err);
  if (status == SINEW_OK) status = api_check_array(who, "tangent", tangent, m->nv, err);
  if (status == SINEW_OK) status = api_check_array(who, "scale", &scale, 1, err);
  if (status != SINEW_OK) return status;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  memmove(moved, qpos, sizeof(double) * (size_t)m->nq);
  sn_integrate_pos(m, &lane, moved, tangent, scale);
  return api_ok(err);
}

SinewStatus sinew_model_difference(const SinewModel *model, const double *qpos1, const double *qpos2, double *tangent,
                                   SinewError *err) {
  const char *const who = "sinew_model_difference";
  if (!model || !tangent) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, model ? "tangent" : "model");
  const SnModel *m = model->model;
  SinewStatus status = api_check_array(who, "qpos1", qpos1, m->nq, err);
  if (status == SINEW_OK) status = api_check_array(who, "qpos2", qpos2, m->nq, err);
  if (status != SINEW_OK) return status;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  sn_difference_pos(m, &lane, qpos1, qpos2, tangent);
  return api_ok(err);
}

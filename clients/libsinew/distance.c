// The distance of two geoms, of a body or at any poses, and its derivatives.
#include <math.h>
#include <string.h>

#include "clients/libsinew/data_private.h"
#include "clients/libsinew/model_private.h"
#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"

// Finds the distance and its derivatives by both poses (SN_DISTANCE_ROWS, 12); by_pose may be NULL.
static SinewStatus find(const SnModel *m, const SnPlacedGeom g[2], double limit, SinewDistance *distance,
                        double *by_pose, SinewError *err) {
  SnDistance r;
  SnError why;
  if (sn_geom_distance(m, g, g + 1, limit, &r, &why) != SN_OK) return api_hand_on(err, &why);
  if (distance) {
    distance->dist = r.dist;
    memcpy(distance->from, r.from, sizeof r.from);
    memcpy(distance->to, r.to, sizeof r.to);
    memcpy(distance->normal, r.normal, sizeof r.normal);
  }
  if (by_pose) sn_geom_distance_jacobian(m, g, g + 1, &r, by_pose);
  return SINEW_OK;
}

// Where row 0 <= row < SN_DISTANCE_ROWS of n numbers goes; NULL: it is not wanted.
static double *row_of(const SinewDistanceJacobian *jacobian, int row, int n) {
  double *const part[4] = {jacobian->dist, jacobian->from, jacobian->to, jacobian->normal};
  double *to = part[(row + 2) / 3];
  return to && row > 0 ? to + (size_t)n * (size_t)((row - 1) % 3) : to;
}

static SinewStatus distance_of_body(SinewData *data, const char *who, const int geom[2], double limit,
                                    SinewDistance *distance, const SinewDistanceJacobian *jacobian, SinewError *err) {
  const SnModel *m = &data->body->model;
  const SnWorld *w = &data->body->world;
  SnPlacedGeom g[2];
  double by_pose[SN_DISTANCE_ROWS * 12];
  if (!data->computed)
    return api_fail(err, SINEW_ERR_STATE, "%s: there are no poses yet; call sinew_forward before", who);
  for (int i = 0; i < 2; ++i) {
    if (geom[i] < 0 || geom[i] >= m->ngeom)
      return api_fail(err, SINEW_ERR_ARGUMENT, "%s: geom%d is %d; the model has %d geoms", who, i + 1, geom[i],
                      m->ngeom);
    g[i].geom = geom[i];
    sn_geom_pose(m, w, geom[i], g[i].pos, g[i].mat);
  }
  const SinewStatus status = find(m, g, limit, distance, jacobian ? by_pose : NULL, err);
  for (int row = 0; status == SINEW_OK && jacobian && row < SN_DISTANCE_ROWS; ++row) {
    double *to = row_of(jacobian, row, m->nv);
    if (!to) continue;
    memset(to, 0, sizeof *to * (size_t)m->nv);
    sn_geom_distance_by_qpos(m, w, g, g + 1, by_pose + 12 * row, to);
  }
  return status == SINEW_OK ? api_ok(err) : status;
}

SinewStatus sinew_geom_distance(SinewData *data, int geom1, int geom2, double limit, SinewDistance *distance,
                                SinewError *err) {
  const char *const who = "sinew_geom_distance";
  const int geom[2] = {geom1, geom2};
  if (data && !distance) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: distance is NULL", who);
  const SinewStatus status = api_data_enter(data, who, err);
  if (status != SINEW_OK) return status;
  return api_leave(&data->guard, distance_of_body(data, who, geom, limit, distance, NULL, err));
}

SinewStatus sinew_geom_distance_jacobian(SinewData *data, int geom1, int geom2, double limit, SinewDistance *distance,
                                         const SinewDistanceJacobian *jacobian, SinewError *err) {
  const char *const who = "sinew_geom_distance_jacobian";
  const int geom[2] = {geom1, geom2};
  if (data && !jacobian) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: jacobian is NULL", who);
  const SinewStatus status = api_data_enter(data, who, err);
  if (status != SINEW_OK) return status;
  return api_leave(&data->guard, distance_of_body(data, who, geom, limit, distance, jacobian, err));
}

// ---- at any poses ----

static SinewStatus place(const SnModel *m, const SinewGeomPose *pose, const char *name, SnPlacedGeom *g,
                         SinewError *err) {
  const char *const who = "sinew_geom_distance_at";
  double quat[4], length = 0;
  if (!pose) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, name);
  if (pose->geom < 0 || pose->geom >= m->ngeom)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s->geom is %d; the model has %d geoms", who, name, pose->geom,
                    m->ngeom);
  for (int i = 0; i < 4; ++i) length = fmax(length, fabs(pose->quat[i]));
  bool good = length > 0;
  for (int i = 0; i < 3; ++i) good = good && !sn_is_bad(pose->pos[i]);
  for (int i = 0; i < 4; ++i) good = good && !sn_is_bad(pose->quat[i]);
  if (!good)
    return api_fail(err, SINEW_ERR_ARGUMENT,
                    "%s: %s: numbers have to be finite and at most 1e10 in size, the quaternion not zero", who, name);
  for (int i = 0; i < 4; ++i) quat[i] = pose->quat[i] / length;
  sn_normalize4(quat);
  g->geom = pose->geom;
  sn_copy3(g->pos, pose->pos);
  sn_quat2mat(g->mat, quat);
  return SINEW_OK;
}

SinewStatus sinew_geom_distance_at(const SinewModel *model, const SinewGeomPose *first, const SinewGeomPose *second,
                                   double limit, SinewDistance *distance, const SinewDistanceJacobian *jacobian,
                                   SinewError *err) {
  SnPlacedGeom g[2];
  double by_pose[SN_DISTANCE_ROWS * 12];
  if (!model) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_geom_distance_at: model is NULL");
  SinewStatus status = place(model->model, first, "first", g, err);
  if (status == SINEW_OK) status = place(model->model, second, "second", g + 1, err);
  if (status == SINEW_OK) status = find(model->model, g, limit, distance, jacobian ? by_pose : NULL, err);
  if (status != SINEW_OK) return status;
  for (int row = 0; jacobian && row < SN_DISTANCE_ROWS; ++row) {
    double *to = row_of(jacobian, row, 12);
    for (int i = 0; to && i < 12; ++i) to[i] = by_pose[12 * row + (i < 6 ? (i + 3) % 6 : 6 + (i - 3) % 6)];
  }
  return api_ok(err);
}

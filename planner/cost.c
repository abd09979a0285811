// Residuals and norms of the terms of a cost.
//
// A term compares items (points, rotations, scalars) with targets of the same kind:
//
//   point     r = p - p*                            [m], world frame
//   rotation  r = log(q*^-1 q)                      rotation vector [rad] in the frame of the target
//   distance  r = |p1 - p2| - d*
//   scalar    r = x - x*
//
// A target in the frame of body B with pose (xB, qB) is p* = xB + R(qB) t, q* = qB t. Norms of a residual r:
//
//   squared     n = sum r_i^2                        dn/dr_i = 2 r_i
//   euclidean   n = sqrt(s + w^2) - w, s = sum r_i^2  dn/dr_i = r_i / sqrt(s + w^2); 0 where w = 0 and r = 0
//   smooth_abs  n = sum sqrt(r_i^2 + w^2) - w         dn/dr_i = r_i / sqrt(r_i^2 + w^2), w > 0
//
// Not smooth: the logarithm at a rotation by pi (the shorter way round changes), a distance at 0 and the euclidean
// norm without width at 0 (both have the derivative 0 there).
//
// Weights are applied by the caller: a gradient is that of the norm, times that of the residual.
#include "planner/cost.h"

#include "physics/sensor.h"
#include "physics/vec.h"
#include "planner/cost_owner.h"

// World position of a site, body or geom; a sensor of three numbers.
SN_LOCAL void sn_item_point(const SnModel *m, const SnWorld *w, int type, int id, sn_real pos[3]) {
  if (type == SN_ITEM_SITE_POS)
    sn_site_pose(m, w, id, pos, NULL);
  else if (type == SN_ITEM_GEOM_POS)
    sn_geom_pose(m, w, id, pos, NULL);
  else if (type == SN_ITEM_SENSOR_POINT)
    sn_sensor_value(m, w, id, pos);
  else
    sn_copy3(pos, w->xpos + 3 * id);
}

// World orientation of a site, body or geom; the quaternion of a ball joint or of a sensor.
SN_LOCAL void sn_item_quat(const SnModel *m, const SnWorld *w, int type, int id, sn_real quat[4]) {
  if (type == SN_ITEM_SITE_QUAT)
    sn_mulquat(quat, w->xquat + 4 * m->site_bodyid[id], m->site_quat + 4 * id);
  else if (type == SN_ITEM_GEOM_QUAT)
    sn_mulquat(quat, w->xquat + 4 * m->geom_bodyid[id], m->geom_quat + 4 * id);
  else if (type == SN_ITEM_BODY_QUAT)
    sn_copy4(quat, w->xquat + 4 * id);
  else if (type == SN_ITEM_SENSOR_QUAT)
    sn_sensor_value(m, w, id, quat);
  else
    sn_copy4(quat, w->qpos + id);
  sn_normalize4(quat);
}

SN_LOCAL sn_real sn_item_distance(const SnModel *m, const SnWorld *w, const int end[4]) {
  sn_real a[3], b[3];
  sn_item_point(m, w, end[0], end[1], a);
  sn_item_point(m, w, end[2], end[3], b);
  return sn_dist3(a, b);
}

SN_LOCAL sn_real sn_item_scalar(const SnModel *m, const SnWorld *w, int type, int id, const int end[4]) {
  sn_real value = 0;
  switch (type) {
    case SN_ITEM_DISTANCE:
      return sn_item_distance(m, w, end);
    case SN_ITEM_QPOS:
      return w->qpos[id];
    case SN_ITEM_QVEL:
      return w->qvel[id];
    case SN_ITEM_ACT:
      return w->act[id];
    case SN_ITEM_CTRL:
      return w->ctrl[id];
    case SN_ITEM_TENDON:
      return w->ten_length[id];
    default:
      sn_sensor_value(m, w, id, &value);
      return value;
  }
}

SN_FUNC void sn_item_value(const SnModel *m, const SnWorld *w, int type, int id, const int end[4], sn_real *value) {
  if (type <= SN_ITEM_SENSOR_POINT)
    sn_item_point(m, w, type, id, value);
  else if (type <= SN_ITEM_SENSOR_QUAT)
    sn_item_quat(m, w, type, id, value);
  else
    value[0] = sn_item_scalar(m, w, type, id, end);
}

SN_LOCAL void sn_point_residual(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                                sn_real *r) {
  const int frame = c->item_frame[i];
  sn_real p[3], goal[3];
  sn_item_point(m, w, c->item_type[i], c->item_id[i], p);
  if (c->term_follows[c->item_term[i]]) {
    sn_item_point(m, w, c->item_other_type[i], c->item_other_id[i], goal);
  } else if (frame >= 0) {
    sn_rotquat(goal, target + c->item_target[i], w->xquat + 4 * frame);
    sn_addto3(goal, w->xpos + 3 * frame);
  } else {
    sn_copy3(goal, target + c->item_target[i]);
  }
  sn_sub3(r, p, goal);
}

SN_LOCAL void sn_quat_residual(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                               sn_real *r) {
  const int frame = c->item_frame[i];
  sn_real q[4], goal[4], back[4], error[4];
  sn_item_quat(m, w, c->item_type[i], c->item_id[i], q);
  if (c->term_follows[c->item_term[i]])
    sn_item_quat(m, w, c->item_other_type[i], c->item_other_id[i], goal);
  else if (frame >= 0)
    sn_mulquat(goal, w->xquat + 4 * frame, target + c->item_target[i]);
  else
    sn_copy4(goal, target + c->item_target[i]);
  sn_negquat(back, goal);
  sn_mulquat(error, back, q);
  sn_quat2vel(r, error);
}

// Residual of item i into r (its own entries).
SN_LOCAL void sn_item_residual(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                               sn_real *r) {
  const int type = c->item_type[i];
  const int *end = c->item_end + 8 * i;
  if (type <= SN_ITEM_SENSOR_POINT) {
    sn_point_residual(c, m, w, i, target, r);
  } else if (type <= SN_ITEM_SENSOR_QUAT) {
    sn_quat_residual(c, m, w, i, target, r);
  } else {
    const sn_real goal = c->term_follows[c->item_term[i]]
                             ? sn_item_scalar(m, w, c->item_other_type[i], c->item_other_id[i], end + 4)
                             : target[c->item_target[i]];
    r[0] = sn_item_scalar(m, w, type, c->item_id[i], end) - goal;
  }
}

SN_FUNC void sn_cost_residual(const SnCost *cost, const SnModel *m, const SnWorld *w, SnLane *lane,
                              const sn_real *target, int first, int last, sn_real *res) {
  const int from = cost->term_item[first], count = cost->term_item[last] - from;
  SN_FOR(k, count) sn_item_residual(cost, m, w, from + k, target, res + cost->item_res[from + k]);
  SN_SYNC(lane);
}

SN_FUNC sn_real sn_norm_value(int norm, sn_real width, const sn_real *r, int n) {
  const sn_real w2 = width * width;
  sn_real s = 0;
  if (norm == SN_NORM_SMOOTH_ABS) {
    for (int i = 0; i < n; ++i) s += sn_sqrt(r[i] * r[i] + w2) - width;
    return s;
  }
  for (int i = 0; i < n; ++i) s += r[i] * r[i];
  return norm == SN_NORM_SQUARED ? s : sn_sqrt(s + w2) - width;
}

SN_FUNC void sn_cost_norm(const SnCost *cost, SnLane *lane, const sn_real *res, int first, int last, sn_real *value) {
  SN_FOR(k, last - first) {
    const int i = first + k, at = cost->term_res[i];
    value[i] = sn_norm_value(cost->term_norm[i], cost->term_width[i], res + at, cost->term_res[i + 1] - at);
  }
  SN_SYNC(lane);
}

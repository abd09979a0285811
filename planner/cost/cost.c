// Residuals of the terms of a cost, and their adjoints.
//
// A term compares items (points, rotations, scalars) with targets of the same kind:
//
//   point     r = p - p*                            [m], world frame
//   rotation  r = log(q*^-1 q)                      rotation vector [rad] in the frame of the target
//   velocity  r = v - v*                            [m/s, rad/s], world frame: handled as a point
//   distance  r = |p1 - p2| - d*
//   scalar    r = x - x*                            a component of a point among them
//
// The rate of a control, a scalar, is x = (u - u_before) / h, h the duration of the step before: dx/du = 1/h,
// dx/du_before = -1/h.
//
// A target in the frame of body B with pose (xB, qB) is p* = xB + R(qB) t, q* = qB t, v* = R(qB) t. Norms of residuals
// and gates are those of cost_norm.c. The residual of a gate is handled as that of a term.
//
// Not smooth: the logarithm at a rotation by pi (the shorter way round changes), a distance at 0 and the euclidean
// norm without width at 0 (both have the derivative 0 there).
//
// Weights are applied by the caller of the norms. The adjoint turns a term's weight into bars of its residual, these
// into bars of what the items look at. A small turn t of a rotation and t* of its target (about the world's axes)
// change r = log(q*^-1 q) by A R(q*)'(t - t*), A the inverse left Jacobian of rotations at r (sn_rotvec_vjp). A target
// given in the frame of a body is carried by it: the force -r_bar at p*, the torque of -t. Bars of a target's
// quaternion are tangent to the unit sphere.
//
// Terms come one after the other, and of each first what it looks at, then its target: so lanes that share the items of
// a term never add to the same number (where they would, term_serial leaves the term to one lane), and the order of all
// sums is that of one lane.
#include "planner/cost/cost.h"

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/sensor/sensor.h"
#include "physics/step/step.h"
#include "planner/cost/cost_private.h"

SN_LOCAL bool cost_is_velocity(int type) { return type >= SN_ITEM_SITE_VEL && type <= SN_ITEM_GEOM_ANGVEL; }

SN_FUNC bool sn_item_is_velocity(const SnCost *cost, int i) {
  const int type = cost->item_type[i];
  return cost_is_velocity(type == SN_ITEM_MEAN ? cost->member[cost->item_id[i] + 1] : type);
}

// The kind of object (SN_OBJ_*) that an item of a pose or a velocity looks at.
SN_LOCAL int cost_item_object(int type) {
  switch (type) {
    case SN_ITEM_SITE_POS:
    case SN_ITEM_SITE_QUAT:
    case SN_ITEM_SITE_VEL:
    case SN_ITEM_SITE_ANGVEL:
      return SN_OBJ_SITE;
    case SN_ITEM_GEOM_POS:
    case SN_ITEM_GEOM_QUAT:
    case SN_ITEM_GEOM_VEL:
    case SN_ITEM_GEOM_ANGVEL:
      return SN_OBJ_GEOM;
    default:
      return SN_OBJ_XBODY;
  }
}

// First entry of a velocity among the six of sn_object_velocity.
SN_LOCAL int cost_item_motion(int type) { return type >= SN_ITEM_SITE_ANGVEL ? 0 : 3; }

// World position or velocity of a site, body or geom; a sensor of three numbers.
SN_LOCAL void cost_single_point(const SnModel *m, const SnWorld *w, int type, int id, sn_real pos[3]) {
  if (cost_is_velocity(type)) {
    sn_real motion[6];
    sn_object_velocity(m, w, cost_item_object(type), id, motion);
    sn_copy3(pos, motion + cost_item_motion(type));
  } else if (type == SN_ITEM_SITE_POS) {
    sn_site_pose(m, w, id, pos, NULL);
  } else if (type == SN_ITEM_GEOM_POS) {
    sn_geom_pose(m, w, id, pos, NULL);
  } else if (type == SN_ITEM_SENSOR_POINT) {
    sn_sensor_value(m, w, id, pos);
  } else {
    sn_copy3(pos, w->xpos + 3 * id);
  }
}

// The same, or the mean of several.
SN_LOCAL void cost_item_point(const SnCost *c, const SnModel *m, const SnWorld *w, int type, int id, sn_real pos[3]) {
  if (type != SN_ITEM_MEAN) {
    cost_single_point(m, w, type, id, pos);
    return;
  }
  const int *list = c->member + id, n = list[0];
  sn_real sum[3] = {0}, one[3];
  for (int k = 0; k < n; ++k) {
    cost_single_point(m, w, list[1], list[2 + k], one);
    sn_addto3(sum, one);
  }
  sn_scale3(pos, sum, SN_R(1.0) / (sn_real)n);
}

// World orientation of a site, body or geom; the quaternion of a ball joint or of a sensor.
SN_LOCAL void cost_item_quat(const SnModel *m, const SnWorld *w, int type, int id, sn_real quat[4]) {
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

SN_LOCAL sn_real cost_item_distance(const SnCost *c, const SnModel *m, const SnWorld *w, const int end[4]) {
  sn_real a[3], b[3];
  cost_item_point(c, m, w, end[0], end[1], a);
  cost_item_point(c, m, w, end[2], end[3], b);
  return sn_dist3(a, b);
}

SN_LOCAL sn_real cost_item_component(const SnCost *c, const SnModel *m, const SnWorld *w, const int end[4]) {
  sn_real p[3];
  cost_item_point(c, m, w, end[0], end[1], p);
  return p[end[2]];
}

// Whether the control of the step before is known.
SN_LOCAL bool cost_knows(const SnCostInput *in, int id) { return in->before && in->before[id] - in->before[id] == 0; }

SN_LOCAL sn_real cost_item_scalar(const SnCost *c, const SnModel *m, const SnWorld *w, const SnCostInput *in, int type,
                                  int id, const int end[4]) {
  sn_real value = 0;
  switch (type) {
    case SN_ITEM_DISTANCE:
      return cost_item_distance(c, m, w, end);
    case SN_ITEM_COMPONENT:
      return cost_item_component(c, m, w, end);
    case SN_ITEM_QPOS:
      return w->qpos[id];
    case SN_ITEM_QVEL:
      return w->qvel[id];
    case SN_ITEM_ACT:
      return w->act[id];
    case SN_ITEM_CTRL:
      return w->ctrl[id];
    case SN_ITEM_CTRL_RATE:
      return cost_knows(in, id) ? (w->ctrl[id] - in->before[id]) / in->since : 0;
    case SN_ITEM_TENDON:
      return w->ten_length[id];
    default:
      sn_sensor_value(m, w, id, &value);
      return value;
  }
}

SN_FUNC void sn_item_value(const SnCost *c, const SnModel *m, const SnWorld *w, int type, int id, const int end[4],
                           sn_real *value) {
  const SnCostInput still = {NULL, NULL, 0};
  if (type <= SN_ITEM_SENSOR_POINT)
    cost_item_point(c, m, w, type, id, value);
  else if (type <= SN_ITEM_SENSOR_QUAT)
    cost_item_quat(m, w, type, id, value);
  else
    value[0] = cost_item_scalar(c, m, w, &still, type, id, end);
}

SN_LOCAL void cost_point_residual(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                                  sn_real *r) {
  const int frame = c->item_frame[i];
  sn_real p[3], goal[3];
  cost_item_point(c, m, w, c->item_type[i], c->item_id[i], p);
  if (c->term_follows[c->item_term[i]]) {
    cost_item_point(c, m, w, c->item_other_type[i], c->item_other_id[i], goal);
  } else if (frame >= 0) {
    sn_rotquat(goal, target + c->item_target[i], w->xquat + 4 * frame);
    if (!sn_item_is_velocity(c, i)) sn_addto3(goal, w->xpos + 3 * frame);
  } else {
    sn_copy3(goal, target + c->item_target[i]);
  }
  sn_sub3(r, p, goal);
}

// Where the rotation of item i shall be, in the world.
SN_LOCAL void cost_quat_goal(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                             sn_real *goal) {
  const int frame = c->item_frame[i];
  if (c->term_follows[c->item_term[i]])
    cost_item_quat(m, w, c->item_other_type[i], c->item_other_id[i], goal);
  else if (frame >= 0)
    sn_mulquat(goal, w->xquat + 4 * frame, target + c->item_target[i]);
  else
    sn_copy4(goal, target + c->item_target[i]);
}

SN_LOCAL void cost_quat_residual(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                                 sn_real *r) {
  sn_real q[4], goal[4], back[4], error[4];
  cost_item_quat(m, w, c->item_type[i], c->item_id[i], q);
  cost_quat_goal(c, m, w, i, target, goal);
  sn_negquat(back, goal);
  sn_mulquat(error, back, q);
  sn_quat2vel(r, error);
}

// Residual of item i into r (its own entries).
SN_LOCAL void cost_item_residual(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const SnCostInput *in,
                                 sn_real *r) {
  const int type = c->item_type[i];
  const int *end = c->item_end + 8 * i;
  const sn_real *target = in->target;
  if (type <= SN_ITEM_SENSOR_POINT) {
    cost_point_residual(c, m, w, i, target, r);
  } else if (type <= SN_ITEM_SENSOR_QUAT) {
    cost_quat_residual(c, m, w, i, target, r);
  } else {
    const sn_real goal = c->term_follows[c->item_term[i]]
                             ? cost_item_scalar(c, m, w, in, c->item_other_type[i], c->item_other_id[i], end + 4)
                             : target[c->item_target[i]];
    r[0] = cost_item_scalar(c, m, w, in, type, c->item_id[i], end) - goal;
  }
}

SN_FUNC void sn_cost_residual(const SnCost *cost, const SnModel *m, const SnWorld *w, SnLane *lane, SnCostInput in,
                              int first, int last, sn_real *res) {
  // Behind the items of all terms and measures stand those of gates, which terms alone have.
  const int from = cost->term_item[first], count = cost->term_item[last] - from, gates = cost->term_item[cost->nall];
  const int more = first < cost->nterm ? cost->nitem - gates : 0;
  SN_FOR(k, count + more) {
    const int i = k < count ? from + k : gates + k - count;
    cost_item_residual(cost, m, w, i, &in, res + cost->item_res[i]);
  }
  SN_SYNC(lane);
}

// ---- adjoint ----

SN_LOCAL void cost_single_point_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                    const sn_real *bar) {
  if (type == SN_ITEM_SENSOR_POINT) {
    sn_sensor_vjp(m, w, a, id, bar);
  } else if (cost_is_velocity(type)) {
    sn_real motion[6] = {0};
    sn_copy3(motion + cost_item_motion(type), bar);
    sn_object_velocity_vjp(m, w, a, cost_item_object(type), id, motion);
  } else {
    sn_object_pose_vjp(m, w, a, cost_item_object(type), id, bar, NULL);
  }
}

SN_LOCAL void cost_item_point_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id,
                                  const sn_real *bar) {
  if (type != SN_ITEM_MEAN) {
    cost_single_point_vjp(m, w, a, type, id, bar);
    return;
  }
  const int *list = c->member + id, n = list[0];
  sn_real share[3];
  sn_scale3(share, bar, SN_R(1.0) / (sn_real)n);
  for (int k = 0; k < n; ++k) cost_single_point_vjp(m, w, a, list[1], list[2 + k], share);
}

// Bar of a small turn, about the world's axes (those that a sensor's value turns in).
SN_LOCAL void cost_item_quat_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int type, int id, int dof,
                                 const sn_real *turn_bar) {
  if (type == SN_ITEM_SENSOR_QUAT)
    sn_sensor_vjp(m, w, a, id, turn_bar);
  else if (type == SN_ITEM_QPOS_QUAT)
    sn_ball_turn_vjp(w, a, id, dof, turn_bar);
  else
    sn_object_pose_vjp(m, w, a, cost_item_object(type), id, NULL, turn_bar);
}

SN_LOCAL void cost_item_distance_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a,
                                     const int end[4], sn_real bar) {
  sn_real p[3], q[3], d[3];
  cost_item_point(c, m, w, end[0], end[1], p);
  cost_item_point(c, m, w, end[2], end[3], q);
  sn_sub3(d, p, q);
  const sn_real length = sn_norm3(d);
  sn_scale3(d, d, length > 0 ? bar / length : 0);
  cost_item_point_vjp(c, m, w, a, end[0], end[1], d);
  sn_scale3(d, d, -1);
  cost_item_point_vjp(c, m, w, a, end[2], end[3], d);
}

SN_LOCAL void cost_item_component_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a,
                                      const int end[4], sn_real bar) {
  sn_real p_bar[3] = {0};
  p_bar[end[2]] = bar;
  cost_item_point_vjp(c, m, w, a, end[0], end[1], p_bar);
}

// Says what a scalar item looks at, as the arrays of the cost have it.
typedef struct CostScalar {
  int type, id, dof;
  const int *end;
} CostScalar;

SN_LOCAL void cost_item_scalar_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, CostScalar x,
                                   sn_real bar) {
  switch (x.type) {
    case SN_ITEM_DISTANCE:
      cost_item_distance_vjp(c, m, w, a, x.end, bar);
      break;
    case SN_ITEM_COMPONENT:
      cost_item_component_vjp(c, m, w, a, x.end, bar);
      break;
    case SN_ITEM_QPOS:
      a->qpos_bar[x.dof] += bar;
      break;
    case SN_ITEM_QVEL:
      a->qvel_bar[x.id] += bar;
      break;
    case SN_ITEM_ACT:
      a->act_bar[x.id] += bar;
      break;
    case SN_ITEM_CTRL:
      a->ctrl_bar[x.id] += bar;
      break;
    case SN_ITEM_TENDON:
      a->ten_length_bar[x.id] += bar;
      break;
    default:
      sn_sensor_vjp(m, w, a, x.id, &bar);
      break;
  }
}

// The controls of a step and of the one before, from the bar of a rate.
SN_LOCAL void cost_rate_vjp(SnAdjoint *a, const SnCostVjp *v, int id, sn_real bar) {
  if (!cost_knows(&v->in, id)) return;
  a->ctrl_bar[id] += bar / v->in.since;
  if (v->before_bar) v->before_bar[id] -= bar / v->in.since;
}

// Torque on the rotation of item i from its residual's bar; its goal gets the opposite one.
SN_LOCAL void cost_quat_torque(const SnCost *c, const SnModel *m, const SnWorld *w, int i, const sn_real *target,
                               const sn_real *bar, sn_real *torque) {
  sn_real r[3], goal[4], local[3];
  cost_quat_residual(c, m, w, i, target, r);
  cost_quat_goal(c, m, w, i, target, goal);
  sn_rotvec_vjp(local, r, bar);
  sn_rotquat(torque, local, goal);
}

// What item i looks at, from the bar of its residual.
SN_LOCAL void cost_item_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                            const SnCostVjp *v, const sn_real *bar) {
  const int type = c->item_type[i], id = c->item_id[i], dof = c->item_dof[2 * i];
  if (type <= SN_ITEM_SENSOR_POINT) {
    cost_item_point_vjp(c, m, w, a, type, id, bar);
  } else if (type <= SN_ITEM_SENSOR_QUAT) {
    sn_real torque[3];
    cost_quat_torque(c, m, w, i, v->in.target, bar, torque);
    cost_item_quat_vjp(m, w, a, type, id, dof, torque);
  } else if (type == SN_ITEM_CTRL_RATE) {
    cost_rate_vjp(a, v, id, bar[0]);
  } else {
    const CostScalar x = {type, id, dof, c->item_end + 8 * i};
    cost_item_scalar_vjp(c, m, w, a, x, bar[0]);
  }
}

// Its target, where that is another element.
SN_LOCAL void cost_item_followed_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                                     const SnCostVjp *v, const sn_real *bar) {
  const int type = c->item_other_type[i], id = c->item_other_id[i], dof = c->item_dof[2 * i + 1];
  sn_real back[3];
  if (type <= SN_ITEM_SENSOR_POINT) {
    sn_scale3(back, bar, -1);
    cost_item_point_vjp(c, m, w, a, type, id, back);
  } else if (type <= SN_ITEM_SENSOR_QUAT) {
    cost_quat_torque(c, m, w, i, v->in.target, bar, back);
    sn_scale3(back, back, -1);
    cost_item_quat_vjp(m, w, a, type, id, dof, back);
  } else if (type == SN_ITEM_CTRL_RATE) {
    cost_rate_vjp(a, v, id, -bar[0]);
  } else {
    const CostScalar x = {type, id, dof, c->item_end + 8 * i + 4};
    cost_item_scalar_vjp(c, m, w, a, x, -bar[0]);
  }
}

// A target point from the row of targets, and the body that carries it.
SN_LOCAL void cost_point_target_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                                    const sn_real *target, const sn_real *bar, sn_real *out) {
  const int frame = c->item_frame[i];
  sn_real back[3], goal[3], quat[4], local[3];
  sn_scale3(back, bar, -1);
  if (frame < 0) {
    if (out) sn_addto3(out, back);
    return;
  }
  sn_rotquat(goal, target + c->item_target[i], w->xquat + 4 * frame);
  if (sn_item_is_velocity(c, i)) {
    sn_real torque[3];
    sn_cross(torque, goal, back);
    sn_point_wrench(m, w, a, frame, w->xpos + 3 * frame, NULL, torque);
  } else {
    sn_addto3(goal, w->xpos + 3 * frame);
    sn_point_wrench(m, w, a, frame, goal, back, NULL);
  }
  sn_negquat(quat, w->xquat + 4 * frame);
  sn_rotquat(local, back, quat);
  if (out) sn_addto3(out, local);
}

// The same of a rotation.
SN_LOCAL void cost_quat_target_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                                   const sn_real *target, const sn_real *bar, sn_real *out) {
  const int frame = c->item_frame[i];
  const sn_real *t = target + c->item_target[i];
  sn_real back[3], quat[4], turn[4] = {0}, t_bar[4];
  cost_quat_torque(c, m, w, i, target, bar, back);
  sn_scale3(back, back, -1);
  sn_copy3(turn + 1, back);
  if (frame >= 0) {
    sn_point_wrench(m, w, a, frame, w->xpos + 3 * frame, NULL, back);
    sn_negquat(quat, w->xquat + 4 * frame);
    sn_rotquat(turn + 1, back, quat);
  }
  sn_mulquat(t_bar, turn, t);
  for (int k = 0; out && k < 4; ++k) out[k] += 2 * t_bar[k];
}

SN_LOCAL void cost_item_target_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                                   const SnCostVjp *v, const sn_real *bar) {
  const int type = c->item_type[i];
  sn_real *out = v->target_bar ? v->target_bar + c->item_target[i] : NULL;
  if (c->term_follows[c->item_term[i]])
    cost_item_followed_vjp(c, m, w, a, i, v, bar);
  else if (type <= SN_ITEM_SENSOR_POINT)
    cost_point_target_vjp(c, m, w, a, i, v->in.target, bar, out);
  else if (type <= SN_ITEM_SENSOR_QUAT)
    cost_quat_target_vjp(c, m, w, a, i, v->in.target, bar, out);
  else if (out)
    out[0] -= bar[0];
}

SN_FUNC void sn_cost_item_vjp(const SnCost *cost, const SnModel *m, const SnWorld *w, SnAdjoint *a, int i,
                              const SnCostVjp *v, const sn_real *bar) {
  cost_item_vjp(cost, m, w, a, i, v, bar);
  cost_item_target_vjp(cost, m, w, a, i, v, bar);
}

// Bars of the residuals of term i and of its gate, in place of them.
SN_LOCAL void cost_norms_vjp(const SnCost *c, int i, sn_real weight, sn_real *res) {
  const int at = c->term_res[i];
  const sn_real gate = sn_cost_gate(c, i, res);
  if (c->term_gate[i] >= 0) sn_cost_gate_vjp(c, i, gate, weight, res);
  sn_norm_vjp(sn_cost_penalty(c, i), gate * weight, res + at, c->term_res[i + 1] - at);
}

// Takes the bars of term or gate i back to what its items and their targets look at.
SN_LOCAL void cost_items_vjp(const SnCost *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane, int i,
                             const SnCostVjp *v) {
  // a serial term is one job, which runs over all items
  const int from = c->term_item[i], n = c->term_item[i + 1] - from;
  const int jobs = c->term_serial[i] ? 1 : n, each = c->term_serial[i] ? n : 1;
  SN_FOR(job, jobs)
  for (int k = from + job * each; k < from + (job + 1) * each; ++k)
    cost_item_vjp(c, m, w, a, k, v, v->res + c->item_res[k]);
  SN_SYNC(lane);
  SN_FOR(job, jobs)
  for (int k = from + job * each; k < from + (job + 1) * each; ++k)
    cost_item_target_vjp(c, m, w, a, k, v, v->res + c->item_res[k]);
  SN_SYNC(lane);
}

SN_FUNC void sn_cost_vjp(const SnCost *cost, const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, SnCostVjp v) {
  sn_cost_residual(cost, m, w, lane, v.in, 0, cost->nterm, v.res);
  SN_FOR(i, cost->nterm) if (v.weight[i] != 0) cost_norms_vjp(cost, i, v.factor * v.weight[i], v.res);
  SN_SYNC(lane);
  if (cost->uses_acceleration) sn_acceleration_begin(m, w, a, lane);
  for (int i = 0; i < cost->nterm; ++i) {
    if (v.weight[i] == 0) continue;
    cost_items_vjp(cost, m, w, a, lane, i, &v);
    if (cost->term_gate[i] >= 0) cost_items_vjp(cost, m, w, a, lane, cost->term_gate[i], &v);
  }
  if (cost->uses_force) sn_actuator_force_vjp(m, w, a, lane);
  if (cost->uses_acceleration) sn_acceleration_vjp(m, w, a, lane);
}

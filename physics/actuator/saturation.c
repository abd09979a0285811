// Joints whose actuator forces are beyond their limit (actfrcrange), in the adjoint.
//
// There lambda' qfrc_actuator has no derivative by the forces on that dof d: actuators work on lambda with lambda_d =
// 0. All else works on lambda, so the difference is a motion of its own, -lambda_d on saturated dofs: actuators, and
// through them tendons, also get bars for their rates in it (sat_trn_bar, sat_ten_bar; tendon.c and transmission.c know
// it where sat_on says so). The motion turns with the axes of its few dofs: what moves dof d's axis, by S x
// (sat_motion_d T), T the sum of sat_twist_bar over d's subtree, is what sn_kinematics_vjp does for the other motions.
// Gravity compensation that counts as actuation is saturated with its joint (passive.c).
//
// A sensor of the force of all actuators on dof d asks for bar qfrc_actuator_d, which is that force's work on the
// motion bar e_d: it is added to this one.
#include "physics/actuator/actuator.h"
#include "physics/actuator/actuator_private.h"
#include "physics/base/vec.h"

// Twists of link i in the motion; those of its base are done.
SN_LOCAL void sat_propagate(const SnModel *m, const SnWorld *w, SnAdjoint *a, int link) {
  sn_bar *twist = a->sat_twist + 6 * link;
  sn_copy(twist, a->sat_twist + 6 * m->body_base[link], 6);
  sn_zero(a->sat_twist_bar + 6 * link, 6);
  for (int k = m->body_dofadr[link]; k < m->body_dofadr[link] + m->body_dofnum[link]; ++k)
    for (int e = 0; e < 6; ++e) twist[e] += w->cdof[6 * k + e] * a->sat_motion[k];
}

SN_FUNC void sn_saturation_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  SN_FOR(k, m->nv) a->sat_motion[k] = sn_bar_of(0);
  SN_SYNC(lane);
  SN_FOR(k, m->nsaturable) {
    const int j = m->saturable[k], dof = m->jnt_dofadr[j];
    if (sn_joint_saturated(m, w, j)) a->sat_motion[dof] = -a->motion[SN_LAMBDA * m->nv + dof];
  }
  SN_SYNC(lane);
  bool on = false;  // every lane looks at all
  for (int k = 0; k < m->nsaturable; ++k) on = on || sn_any(a->sat_motion[m->jnt_dofadr[m->saturable[k]]]);
  SN_ONE(lane) *a->sat_on = on;
  SN_SYNC(lane);
  if (!on) return;
  SN_FOR(e, 6) a->sat_twist[e] = a->sat_twist_bar[e] = sn_bar_of(0);
  SN_SYNC(lane);
  for (int level = 0; level < m->nlevel; ++level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) sat_propagate(m, w, a, body[k]);
    SN_SYNC(lane);
  }
  SN_FOR(o, m->nout) {
    sn_bar rate = {0};
    for (int k = m->mom_rowadr[o]; k < m->mom_rowadr[o] + m->mom_rownnz[o]; ++k)
      rate += w->actuator_moment[k] * a->sat_motion[m->mom_colind[k]];
    a->force_bar[o] += rate;
    a->sat_trn_bar[o] = sn_bar_of(w->actuator_force[o]);
  }
  SN_FOR(t, m->ntendon) a->sat_ten_bar[t] = sn_bar_of(0);
  SN_SYNC(lane);
}

#if !defined(SN_PACK)
SN_FUNC void sn_actuation_motion(const SnModel *m, const SnWorld *w, SnAdjoint *a, int dof, sn_real bar) {
  if (!*a->sat_on) {
    *a->sat_on = 1;
    sn_zero(a->sat_motion, m->nv);
    sn_zero(a->sat_twist, 6 * m->nactmotion);
    sn_zero(a->sat_twist_bar, 6 * m->nactmotion);
    sn_zero(a->sat_ten_bar, m->ntendon);
    sn_copy(a->sat_trn_bar, w->actuator_force, m->nout);
  }
  a->sat_motion[dof] += bar;
  const int first = m->dof_bodyid[dof];
  for (int link = first; link <= m->body_last[first]; ++link)
    for (int e = 0; e < 6 && m->link_of_body[link] == link; ++e)
      a->sat_twist[6 * link + e] += w->cdof[6 * dof + e] * bar;
}
#endif

// The saturated dofs of a link; links behind it are done. Their axes move with the dofs before them, those of a ball
// with its own three. From here on sat_twist of a link is the wrench of its axes on what carries the link.
SN_LOCAL void sat_sweep_link(const SnModel *m, const SnWorld *w, SnAdjoint *a, int link) {
  sn_bar *T = a->sat_twist_bar + 6 * link, *carrier = a->sat_twist + 6 * link;
  sn_zero(carrier, 6);
  for (int c = m->child_adr[link]; c < m->child_adr[link + 1]; ++c) {
    const int child = m->child_body[c];
    for (int e = 0; e < 6; ++e) T[e] += a->sat_twist_bar[6 * child + e];
    for (int e = 0; e < 6; ++e) a->wrench[6 * link + e] += a->sat_twist[6 * child + e];
  }
  const int first = m->body_dofadr[link];
  for (int k = first; k < first + m->body_dofnum[link]; ++k) {
    const int type = m->jnt_type[m->dof_jntid[k]];
    if (!sn_any(a->sat_motion[k]) || type == SN_JNT_FREE) continue;
    sn_bar W[6] = {0};
    sn_addcrossforce(W, w->cdof + 6 * k, T, a->sat_motion[k]);
    for (int i = first; i < (type == SN_JNT_BALL ? k + 3 : k); ++i) a->qpos_bar[i] += sn_dot(w->cdof + 6 * i, W, 6);
    for (int e = 0; e < 6; ++e) carrier[e] += W[e];
#if defined(SN_MODEL_BARS)
    for (int e = 0; sn_model_bar(a) && e < 6; ++e) sn_model_bar(a)->dof_own[6 * k + e] += a->sat_motion[k] * T[e];
#endif
  }
}

SN_FUNC void sn_saturation_sweep(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_SYNC(lane);
  if (!*a->sat_on) return;
  for (int level = m->nlevel - 1; level >= 0; --level) {
    const int *body = m->level_body + m->level_adr[level];
    SN_FOR(k, m->level_adr[level + 1] - m->level_adr[level]) sat_sweep_link(m, w, a, body[k]);
    SN_SYNC(lane);
  }
}

// The order of the stages: this file alone knows it.
#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/sense_private.h"
#include "physics/step/step.h"

// Debug builds: before a stage its outputs are NaN.
#if !defined(NDEBUG) && !defined(__CUDACC__)
#define SN_POISON(stage)                                  \
  do {                                                    \
    SN_ONE(lane) sn_world_poison(m, w, SN_STAGE_##stage); \
    SN_SYNC(lane);                                        \
  } while (0)
#else
#define SN_POISON(stage) ((void)0)
#endif

#if !defined(SN_PACK)
// qacc_smooth: the acceleration that the body would have without constraints.
SN_LOCAL void step_smooth(const SnModel *m, SnWorld *w, SnLane *lane) {
  const bool asleep = sn_any_asleep(m, w);
  SN_FOR(i, m->nv) {
    w->qfrc_smooth[i] = w->qfrc_passive[i] - w->qfrc_bias[i] + w->qfrc_actuator[i];
    if (asleep && !w->tree_awake[m->dof_treeid[i]]) w->qfrc_smooth[i] = 0;
    w->qacc_smooth[i] = w->qfrc_smooth[i];
  }
  SN_SYNC(lane);
  if (!sn_has_metric(m)) {
    sn_solve_LD(m, lane, w->qLD, w->qLDiagInv, w->qacc_smooth);
    return;
  }
  sn_metric(m, w, lane);
  sn_metric_rows(m, w, lane);
  SN_FOR(i, m->nv) w->qacc_smooth[i] = w->qfrc_metric[i];
  SN_SYNC(lane);
  sn_solve_metric(m, w, lane, w->qacc_smooth);
}

// Contacts, and who is woken by them and by equalities.
SN_LOCAL void step_collide(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_POISON(COLLISION);
  sn_collision(m, w, lane);
  if (!sn_any_asleep(m, w)) return;
  if (sn_wake_contacts(m, w, lane)) {
    SN_POISON(COLLISION);
    sn_collision(m, w, lane);
  }
  if (sn_any_asleep(m, w)) sn_wake_equalities(m, w, lane);
}

SN_FUNC void sn_forward(const SnModel *m, SnWorld *w, SnLane *lane) {
  // position
  if (sn_has_sleep(m)) sn_sleep_begin(m, w, lane);
  SN_POISON(KINEMATICS);
  sn_kinematics(m, w, lane);
  SN_MARK(lane, KINEMATICS);
  SN_POISON(INERTIA);
  sn_com_pos(m, w, lane);
  SN_MARK(lane, INERTIA);
  SN_POISON(TENDON);
  sn_tendon(m, w, lane);
  if (sn_any_asleep(m, w)) sn_wake_tendons(m, w, lane);
  SN_MARK(lane, TENDON);
  sn_make_M(m, w, lane);
  sn_factor_M(m, w, lane);
  SN_MARK(lane, INERTIA);
  step_collide(m, w, lane);
  SN_MARK(lane, COLLISION);
  SN_POISON(CONSTRAINT);
  sn_make_constraint(m, w, lane);
  SN_MARK(lane, CONSTRAINT);
  SN_POISON(TRANSMISSION);
  sn_transmission(m, w, lane);
  SN_MARK(lane, TRANSMISSION);

  // velocity
  SN_POISON(VELOCITY);
  sn_velocity(m, w, lane);
  SN_MARK(lane, VELOCITY);
  SN_POISON(PASSIVE);
  sn_passive(m, w, lane);
  SN_MARK(lane, PASSIVE);
  sn_reference_constraint(m, w, lane);
  SN_MARK(lane, CONSTRAINT);
  sn_bias(m, w, lane);
  SN_MARK(lane, VELOCITY);

  // force, acceleration
  SN_POISON(ACTUATION);
  sn_actuation(m, w, lane);
  SN_MARK(lane, ACTUATION);
  SN_POISON(SMOOTH);
  step_smooth(m, w, lane);
  SN_MARK(lane, SMOOTH);
  SN_POISON(SOLVER);
  sn_solve(m, w, lane);
  SN_MARK(lane, SOLVER);
}

SN_FUNC void sn_forward_rows(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_POISON(KINEMATICS);
  sn_kinematics(m, w, lane);
  SN_POISON(INERTIA);
  sn_com_pos(m, w, lane);
  SN_POISON(TENDON);
  sn_tendon(m, w, lane);
  SN_POISON(COLLISION);
  sn_collision(m, w, lane);
  SN_POISON(CONSTRAINT);
  sn_make_constraint(m, w, lane);
  sn_reference_constraint(m, w, lane);
}

SN_FUNC void sn_forward_contacts(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_POISON(COLLISION);
  sn_collision(m, w, lane);
  SN_MARK(lane, COLLISION);
  SN_POISON(CONSTRAINT);
  sn_make_constraint(m, w, lane);
  sn_reference_constraint(m, w, lane);
  if (sn_has_metric(m)) sn_metric_rows(m, w, lane);
  SN_MARK(lane, CONSTRAINT);
  SN_POISON(SOLVER);
  sn_solve(m, w, lane);
  SN_MARK(lane, SOLVER);
}
#endif

// What follows the solver on the way back: the motions are there.
SN_LOCAL void step_forces_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_MARK(lane, SOLVER_VJP);
  sn_motion_propagate(m, w, a, lane);
  SN_MARK(lane, KINEMATICS_VJP);
  sn_constraint_vjp(m, w, a, lane);
  SN_MARK(lane, CONSTRAINT_VJP);
  if (sn_has_metric(m)) sn_metric_vjp(m, w, a, lane);  // leaves bars of controls that act late to sn_actuation_vjp
  sn_actuation_vjp(m, w, a, lane);
  SN_MARK(lane, ACTUATION_VJP);
  sn_bias_vjp(m, w, a, lane);
  SN_MARK(lane, BIAS_VJP);
  sn_passive_vjp(m, w, a, lane);
  SN_MARK(lane, PASSIVE_VJP);
}

// A pass of the stages that turn rates into displacements, for motions and rates of rows of its own. It uses the bars,
// which are done.
SN_LOCAL void step_pass(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_adjoint_clear_bars(m, a, lane);
  sn_adjoint_clear_contacts(w, a, lane);
  sn_motion_propagate(m, w, a, lane);
  sn_rows_vjp(m, w, a, lane);
  sn_bias_vjp(m, w, a, lane);
  sn_collision_vjp(m, w, a, lane);
  sn_tendon_vjp(m, w, a, lane);
  sn_kinematics_vjp(m, w, a, lane);
  sn_branched_vjp(m, w, a, lane, false);
}

// A pass of the stages that turn rates into displacements, for motions and rates of sn_metric_pass.
SN_LOCAL int step_metric_pass(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane, int pass) {
  pass = sn_metric_pass(m, w, a, lane, pass);
  if (pass < 0) return pass;
  const int over = sn_pass_over(m, a);
  const bool rows = !over || over & SN_PASS_ROWS, tendons = !over || over & SN_PASS_TENDONS;
  sn_motion_propagate(m, w, a, lane);
  if (rows) sn_rows_vjp(m, w, a, lane);
  if (tendons) sn_transmission_vjp(m, w, a, lane);
  if (rows) sn_collision_vjp(m, w, a, lane);
  if (tendons) sn_tendon_vjp(m, w, a, lane);
  sn_kinematics_vjp(m, w, a, lane);
  return pass;
}

// What products of rows with M^-1 leave: that of noslip's sweeps and of exact diagonals; and what the effective inertia
// of `discrete` does to impedances.
SN_LOCAL void step_passes(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  for (int pass = 0; sn_has_noslip(m) && (pass = sn_noslip_pass(m, w, a, lane, pass)) > 0;) step_pass(m, w, a, lane);
  for (int pass = 0; sn_has_exact_diagonal(m) && (pass = sn_diagonal_pass(m, w, a, lane, pass)) > 0;)
    step_pass(m, w, a, lane);
  for (int pass = 0; sn_has_metric(m) && (pass = step_metric_pass(m, w, a, lane, pass)) > 0;) continue;
}

// sn_forward backwards. What has been added to bars when it returns waits for sn_position_vjp.
SN_FUNC void sn_forward_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_solve_vjp(m, w, a, lane);
  step_forces_vjp(m, w, a, lane);
}

SN_FUNC void sn_position_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_transmission_vjp(m, w, a, lane);
  SN_MARK(lane, TRANSMISSION_VJP);
  sn_collision_vjp(m, w, a, lane);
  SN_MARK(lane, COLLISION_VJP);
  sn_tendon_vjp(m, w, a, lane);
  SN_MARK(lane, TENDON_VJP);
  sn_kinematics_vjp(m, w, a, lane);
  sn_branched_vjp(m, w, a, lane, true);
  sn_bias_slope_vjp(m, w, a, lane);
  step_passes(m, w, a, lane);
  if (sn_any_asleep(m, w)) {
    SN_FOR(i, m->nv) if (!w->tree_awake[m->dof_treeid[i]]) a->qvel_bar[i] = sn_bar_of(0);
    SN_SYNC(lane);
  }
  SN_MARK(lane, KINEMATICS_VJP);
}

SN_FUNC void sn_step_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_solve_finish(m, w, lane);  // both halves are meant for the same acceleration
  SN_MARK(lane, SOLVER_VJP);
  if (sn_has_sleep(m)) sn_sleep_vjp(m, w, a, lane);
  sn_integrate_vjp(m, w, a, lane);
  SN_MARK(lane, INTEGRATE_VJP);
  sn_forward_vjp(m, w, a, lane);
#if !defined(SN_PACK)
  if (m->nsensorbuffer > 0) sn_past_sense_vjp(m, w, a, lane);
#endif
}

SN_FUNC void sn_motion_rest(const SnModel *m, const SnWorld *w, SnAdjoint *a, SnLane *lane) {
  SN_FOR(i, SN_NMOTION * m->nv) a->motion[i] = sn_bar_of(i / m->nv == SN_VEL ? w->qvel[i % m->nv] : 0);
  sn_adjoint_clear_contacts(w, a, lane);
  sn_motion_propagate(m, w, a, lane);
}

#if !defined(SN_PACK)
// Zeroes the bars, and what of the integrator no longer counts once they have been taken back.
SN_LOCAL void step_clear_taken(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_adjoint_clear_bars(m, a, lane);
  SN_FOR(i, m->nv) a->motion[SN_Y * m->nv + i] = a->motion[SN_NEXT * m->nv + i] = 0;
  // of damping that is implicit sn_branched_vjp would read what may never have been written
  SN_FOR(t, m->ntendon) w->ten_slope[t] = 0;
  SN_FOR(i, m->nout) w->act_slope[i] = 0;
  SN_SYNC(lane);
}

// Takes back what has been added so far, with noslip: its motions have the acceleration before the sweeps, and sensors
// know that behind them.
SN_LOCAL void step_settle(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_position_vjp(m, w, a, lane);
  step_clear_taken(m, w, a, lane);
  SN_FOR(r, sn_has_exact_diagonal(m) ? w->nefc[0] : 0) a->diag_bar[r] = 0;
  SN_FOR(i, m->nv) {
    a->motion[SN_LAMBDA * m->nv + i] = 0;
    a->motion[SN_VEL * m->nv + i] = w->qvel[i];
    a->motion[SN_ACC * m->nv + i] = w->qacc[i];
  }
  sn_adjoint_clear_contacts(w, a, lane);
  sn_motion_propagate(m, w, a, lane);
}

SN_FUNC void sn_acceleration_begin(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_solve_finish(m, w, lane);
  if (sn_has_noslip(m) && w->nefc[0] > 0) step_settle(m, w, a, lane);
  SN_FOR(i, m->nv) {
    a->motion[SN_ACC * m->nv + i] = w->qacc[i];
    a->qacc_bar[i] = 0;
  }
  SN_FOR(r, w->nefc[0]) a->row_pos[r] = 0;
  SN_SYNC(lane);
  // the armature of a tendon at a sensor of force asks for twists of qacc, which are 0 at the end of a horizon
  if (m->nsensortendon > 0) sn_motion_propagate(m, w, a, lane);
}

SN_FUNC void sn_acceleration_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int kept = sn_has_passes(m) ? w->nefc[0] : 0;  // passes of what has been added so far use row_pos, too
  SN_SYNC(lane);
  SN_FOR(r, kept) a->row_kept[r] = a->row_pos[r];
  SN_SYNC(lane);
  sn_position_vjp(m, w, a, lane);
  SN_FOR(r, kept) a->row_pos[r] = a->row_kept[r];
  step_clear_taken(m, w, a, lane);
  SN_FOR(i, m->na) a->act_dot_bar[i] = 0;
  SN_SYNC(lane);
  sn_solve_force_vjp(m, w, a, lane);
  step_forces_vjp(m, w, a, lane);
}
#endif

// True on all lanes when an entry of x is NaN or beyond SN_MAXVAL. Every lane scans all of x.
SN_LOCAL bool step_any_bad(const sn_real *x, int n) {
  for (int i = 0; i < n; ++i)
    if (sn_is_bad(x[i])) return true;
  return false;
}

#if !defined(SN_PACK)
SN_FUNC void sn_step(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (step_any_bad(w->qpos, m->nq) || step_any_bad(w->qvel, m->nv)) {
    SN_ONE(lane) *w->warn |= SN_WARN_BAD_STATE;
    SN_SYNC(lane);
    return;
  }
  sn_forward(m, w, lane);
  if (step_any_bad(w->qacc, m->nv)) {
    SN_ONE(lane) *w->warn |= SN_WARN_BAD_STATE;
    SN_SYNC(lane);
    return;
  }
  SN_POISON(INTEGRATE);
  sn_integrate(m, w, lane);
  SN_MARK(lane, INTEGRATE);
}
#endif

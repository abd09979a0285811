// Smoothed hard contacts (option contact: sigmoid), after C. Schwarke et al., "Learning Quadrupedal Locomotion via
// Differentiable Simulation", arXiv 2404.02887, and J. J. Moreau, "Unilateral contact and dry friction in finite
// freedom dynamics", 1988.
//
// Moreau's time stepping knows no accelerations, but impulses P = h f of a whole step, that leave velocities
// admissible:
//
//   M (v+ - v) = h (tau - bias) + J' P,    q+ = q (+) h v+,    0 <= P_i,  0 <= g_i,  P_i g_i = 0,
//   g = J v+ + e J v,    e the restitution of Newton's law of impact.
//
// It takes positions at the midpoints of steps. Two midpoints that follow each other are h v+ apart, so the positions
// of semi-implicit Euler are these midpoints. Projected Gauss-Seidel finds P by sweeps over the rows, each at the
// latest impulses of all others. Smoothing scales what a row finds by a sigmoid of its distance r, so that bodies that
// do not touch push each other a little and bodies that do give way a little:
//
//   P_i <- s_i max(0, P_i - g_i / A_ii),    A = J M^-1 J',    s = 1 / (1 + exp(r / w)).
//
// P_i - g_i / A_ii does not depend on P_i. Where nothing changes any more, P_i > 0 means P_i = s_i (P_i - g_i / A_ii),
//
//   g_i + R_i P_i = 0,    R_i = A_ii (1 - s_i) / s_i,
//
// and P_i = 0 means g_i >= 0. So the sweeps are descents, one row at a time, of P' A P / 2 + P' (J v_free + e J v)
// + P' R P / 2 over P >= 0, with v_free the velocity without contacts. That is the dual of the solver's problem
// (solver.c) for rows of impedance s and reference -(1 + e) J v / h. It is strictly convex, as s < 1: sweeps end in one
// point whatever their order, and Newton's method finds that point to rounding. So contacts are rows as all others are,
// with another spring and impedance:
//
//   d = s,  b = 1 / h,  k = stiffness / h^2,  depth = w log(1 + exp(-r / w)),    s at most the largest impedance.
//
// Velocities alone let bodies sink: one at rest under gravity is at r = -w log(g h t / w) after a time t. So a step
// takes back a share of the depth, the stiffness, whose equilibrium is where exp(r / w) g h^2 = stiffness s depth.
//
// Friction. A row of friction is scaled as its normal is, and the solver's cones are those of Coulomb's law. But the
// solver's law is that of greatest dissipation: g lies in the dual cone, so that a body that slides leaves the ground,
// g_n = mu |g_t|. Coulomb's law is the same for g_n + mu |g_t| (G. de Saxce, Z.-Q. Feng, 1998). Here the slip is that
// before the step,
//
//   g_n -> g_n + u,   u = |(mu_j v_j)| over the directions j of friction; in a pyramid the largest |mu_j v_j|,
//
// so that g_n is 0 while a body slides, up to mu times what its slip changes by in the step.
//
// A_ii is the approximate inverse inertia of impedance.c, or exact with flag diagexact. Limits, equalities and friction
// losses keep their springs, and are rows of the same problem.
//
// Adjoint: that of the fixed point, which solver.c has for all rows. No sweep is taped, none has to be repeated, and
// the derivative is that of what a step computes. Here stand the slope of the impedance, and what the reference has of
// velocities beyond -J v / h: (e v_n + u) / h, on the normal row or on all edges of a pyramid, in which v_n is the mean
// of two opposite edges and mu_j v_j half their difference. u has slope 0 where nothing slips.
#include "physics/constraint/constraint_private.h"

#if !defined(SN_PACK)
// 1 / (1 + exp(x)), without overflow.
SN_LOCAL sn_real sigmoid_share(sn_real x) {
  const sn_real e = sn_exp(-sn_abs(x));
  return x > 0 ? e / (1 + e) : 1 / (1 + e);
}

SN_FUNC void sn_sigmoid_spring(const SnModel *m, const SnWorld *w, sn_real r, sn_real *kbip) {
  const sn_real h = sn_timestep(m, w), x = r / m->opt.contact_width;
  kbip[0] = m->opt.contact_stiffness / (h * h);
  kbip[1] = 1 / h;
  kbip[2] = SN_MAXIMP * sigmoid_share(x);
  kbip[3] = -kbip[2] * sigmoid_share(-x) / m->opt.contact_width;
}
#endif

// What a contact slips by: its rows, u, and what u changes by with the velocities of rows.
typedef struct SigmoidSlip {
  int row, num;  // rows [row, row + num)
  bool pyramid;
  sn_real u;         // [m/s]
  int most;          // of a pyramid: the first edge of the pair that slips most
  sn_real slope[6];  // of others: by the velocity of each row
} SigmoidSlip;

// Slip of a contact whose rows are edges.
SN_LOCAL void sigmoid_edges(const SnWorld *w, SigmoidSlip *s) {
  s->most = s->row;
  for (int r = s->row; r < s->row + s->num; r += 2) {
    const sn_real slip = SN_R(0.5) * sn_abs(w->efc_vel[r] - w->efc_vel[r + 1]);
    if (slip <= s->u) continue;
    s->u = slip;
    s->most = r;
  }
}

SN_LOCAL SigmoidSlip sigmoid_slip(const SnWorld *w, int i) {
  const SnContact *con = w->contact + i;
  SigmoidSlip s = {.row = con->efc_address, .num = con->dim};
  s.pyramid = w->efc_type[s.row] == SN_CNSTR_CONTACT_PYRAMIDAL;
  if (s.pyramid) {
    s.num = 2 * (con->dim - 1);
    sigmoid_edges(w, &s);
    return s;
  }
  sn_real square = 0;
  for (int j = 1; j < s.num; ++j) {
    s.slope[j] = con->friction[j - 1] * w->efc_vel[s.row + j];
    square += s.slope[j] * s.slope[j];
    s.slope[j] *= con->friction[j - 1];
  }
  s.u = sn_sqrt(square);
  for (int j = 1; j < s.num; ++j) s.slope[j] = s.u > 0 ? s.slope[j] / s.u : 0;
  return s;
}

#if !defined(SN_PACK)
SN_FUNC void sn_sigmoid_reference(const SnModel *m, SnWorld *w, int i) {
  if (w->contact[i].efc_address < 0) return;
  const SigmoidSlip s = sigmoid_slip(w, i);
  const sn_real e = m->opt.contact_restitution, h = sn_timestep(m, w);
  if (!s.pyramid) {
    w->efc_aref[s.row] -= (e * w->efc_vel[s.row] + s.u) / h;
    return;
  }
  for (int r = s.row; r < s.row + s.num; r += 2) {
    const sn_real both = (e * SN_R(0.5) * (w->efc_vel[r] + w->efc_vel[r + 1]) + s.u) / h;
    w->efc_aref[r] -= both;
    w->efc_aref[r + 1] -= both;
  }
}
#endif

SN_FUNC void sn_sigmoid_reference_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i) {
  if (w->contact[i].efc_address < 0) return;
  const SigmoidSlip s = sigmoid_slip(w, i);
  const sn_real e = m->opt.contact_restitution, h = sn_timestep(m, w);
  sn_bar *z = a->row_z + 3 * s.row + SN_VEL;
  const sn_bar *c = a->row_c + s.row;
  if (!s.pyramid) {
    z[0] -= c[0] * (e / h);
    for (int j = 1; j < s.num; ++j) z[3 * j] -= c[0] * (s.slope[j] / h);
    return;
  }
  sn_bar sum = {0};
  for (int r = 0; r < s.num; r += 2) {
    const sn_bar both = c[r] + c[r + 1];
    sum += both;
    z[3 * r] -= both * (SN_R(0.5) * e / h);
    z[3 * r + 3] -= both * (SN_R(0.5) * e / h);
  }
  if (s.u == 0) return;
  const int most = s.most - s.row;
  const sn_real slope = (w->efc_vel[s.most] > w->efc_vel[s.most + 1] ? SN_R(0.5) : SN_R(-0.5)) / h;
  z[3 * most] -= sum * slope;
  z[3 * most + 3] += sum * slope;
}

#if defined(SN_MODEL_BARS)
SN_FUNC void sn_sigmoid_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i, sn_bar *friction) {
  const SigmoidSlip s = sigmoid_slip(w, i);
  if (s.pyramid) return;
  for (int j = 1; j < s.num; ++j)
    friction[j - 1] -=
        a->row_c[s.row] * (s.slope[j] * w->efc_vel[s.row + j] / (w->contact[i].friction[j - 1] * sn_timestep(m, w)));
}
#endif

// The adjoint of a step: from the derivative of a cost with respect to the next state to that by this state and the
// controls. Every stage's `_vjp` stands behind the stage, in its file and in the header of its room; step.c runs them
// backwards.
//
// A step at state x solves M a = tau + J'f for its acceleration a. It moves the velocity by a+: a itself, or where
// damping is implicit a+ = (M + h B)^-1 M a. B has slopes of forces, and is transposed in y. With
//
//   y = (M + h B)^-T h qvel_next_bar,    qacc_bar = M y,
//   C = -df/d(J a - aref),    lambda = (M + J' C J)^-1 qacc_bar,
//
// all that is left of the derivative is that of the scalar
//
//   G = lambda' (tau - bias - M a) + y' M (a - a+) [- h y' B a+]
//       + sum_i [ f_i J_i lambda  -  c_i J_i a  -  b_i c_i J_i v  +  p_i pos_i ],     c = C J lambda,
//
// at fixed lambda, a, a+, y, f, c, b, p, with I the impedance and
//
//   p_i = -k_i (I_i + I_i' (pos_i - margin_i)) c_i + (J_i lambda) f_i I_i' / (I_i (1 - I_i)).
//
// On rows of saturated friction the last term of p_i is left out.
//
// Products of Jacobians with lambda, a, v, y, a+ are velocities of bodies, contact points and tendons if the joints
// moved so. They are five *motions* z, whose twists are propagated once (sn_motion_propagate). Stages add the
// derivative of G with respect to twists (twist_bar), rates of tendons (ten_rate_bar), lengths, and to small
// displacements of links (wrench). sn_tendon_vjp turns what tendons got into twist_bar and wrench. One sweep from the
// leaves, sn_kinematics_vjp, turns all of it into qpos_bar and, for the motion v, qvel_bar.
//
// By the numbers of the model G is differentiated likewise, at fixed motions. Every stage adds to the fields of
// SnAdjointHost.model, as far as they are there. Frames of bodies get what a joint would get that could move them.
//
// Twists and wrenches are about subtree_com of the tree's root, at its present place. The point is held FIXED while
// differentiating: nothing depends on the choice of it.
#ifndef SINEW_PHYSICS_WORLD_ADJOINT_H_
#define SINEW_PHYSICS_WORLD_ADJOINT_H_

#include "physics/base/bar.h"
#include "physics/world/world.h"

// Says that this text has derivatives by the model: that for the CPU.
#if !defined(__CUDACC__)
#define SN_MODEL_BARS
#include "physics/model/model_bar.h"

// Gives the relative step of central differences, the third root of the rounding. They serve functions of a few numbers
// without a derivative of their own, as the path of a tendon by the radius of its geom.
#ifdef SN_SINGLE
#define SN_DIFFERENCE SN_R(5e-3)
#else
#define SN_DIFFERENCE SN_R(6e-6)
#endif
#endif

// Lists the motions whose products with Jacobians are differentiated. Only qvel itself is an input of the step.
typedef enum SnMotion {
  SN_LAMBDA,  // multiplier of the equation of motion
  SN_ACC,     // qacc
  SN_VEL,     // qvel
  SN_Y,       // multiplier of the implicit damping; zero where a+ = a
  SN_NEXT,    // a+, the acceleration that moves qvel; zero where a+ = a
  SN_NMOTION
} SnMotion;

// Returns true when a+ is another acceleration than a, by implicit damping; else the motions y and a+ are zero. Under
// `discrete` it is so of free bodies that stand alone, and they are zero elsewhere.
SN_INLINE bool sn_is_damped(const SnModel *m) {
  if (m->opt.integrator == SN_INT_IMPLICITFAST || m->opt.integrator == SN_INT_IMPLICIT) return true;
  if (sn_has_metric(m)) return m->nfreebody > 0;
  return m->opt.integrator == SN_INT_EULER && m->nimplicit > 0 &&
         !(m->opt.disableflags & (SN_DSBL_EULERDAMP | SN_DSBL_DAMPER));
}

// Holds what SnAdjoint does, with a pack for each bar: the text that is compiled with SN_PACK (bar.h) knows it by that
// name.
typedef struct SnAdjointColumns SnAdjointColumns;

// Holds what an adjoint has on the CPU alone.
typedef struct SnAdjointHost {
  SnAdjointColumns *columns;  // for several rows of a Jacobian at once; NULL: one after the other
  struct SnModelBar *model;   // gets the derivatives by the model; NULL: nobody asks for them, as of columns
} SnAdjointHost;

enum {
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) SN_ADJOINT_##name,
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
  SN_NADJOINT
};
#if defined(__CUDACC__)
#define SN_ADJOINT_POINTER(type, name) SnField<type, SN_FIELD_OF_ADJOINT, SN_ADJOINT_##name> name
#else
#define SN_ADJOINT_POINTER(type, name) type *name
#endif
typedef struct SnAdjoint {
#define SN_ADJOINT_FIELD(group, type, name, rows, cols) SN_ADJOINT_POINTER(type, name);
#include "physics/world/adjoint_fields.inc"
#undef SN_ADJOINT_FIELD
#if !defined(__CUDACC__)
  SnAdjointHost *host;  // has what is for the CPU alone; NULL in the place of a device
#endif
} SnAdjoint;

// Points the fields of a into memory at `base` (64-byte aligned), or, when base is NULL, only counts. Returns the bytes
// needed, or SN_TOO_LARGE when there can be no such adjoint. The memory has room for `columns`, which a Jacobian alone
// touches, where this machine can make use of them. Adjoints on a device are made by layout.h; they have none.
size_t sn_adjoint_layout(const SnModel *m, SnAdjoint *a, void *base);
// Returns the bytes of an adjoint of this model, or SN_TOO_LARGE.
size_t sn_adjoint_size(const SnModel *m);
// Makes an adjoint in memory of at least sn_adjoint_size(m) bytes, 64-byte aligned. All fields are zero.
void sn_adjoint_init(const SnModel *m, SnAdjoint *a, void *memory);

// Does the same for an adjoint of several columns, which stands at `base` before its fields. Zeroes what a step's
// adjoint reads before it writes. Returns its bytes.
size_t sn_adjoint_columns_layout(const SnModel *m, void *base);

// Zeroes what a step's adjoint reads before it writes, in memory that holds anything: as sn_adjoint_init, on all lanes,
// after sn_adjoint_bind and a sync. Ends with a sync.
SN_FUNC void sn_adjoint_begin(const SnModel *m, SnAdjoint *a, SnLane *lane);
// Zeroes RESULT and the bars that several stages add to. Leaves those of rows and contacts to sn_constraint_vjp, which
// comes first to them. Ends with a sync.
SN_FUNC void sn_adjoint_clear(const SnModel *m, SnAdjoint *a, SnLane *lane);
// Zeroes the same bars, without RESULT. Ends with a sync.
SN_FUNC void sn_adjoint_clear_bars(const SnModel *m, SnAdjoint *a, SnLane *lane);
// Zeroes the bars of the contacts that the world has. Ends with a sync.
SN_FUNC void sn_adjoint_clear_contacts(const SnWorld *w, SnAdjoint *a, SnLane *lane);

#if defined(SN_MODEL_BARS)
// Returns what gets the derivatives by the model; NULL: nobody asks for them.
SN_INLINE SnModelBar *sn_model_bar(const SnAdjoint *a) { return a->host ? a->host->model : NULL; }
#endif

// Adds the bars (dim) of what a reading gives to those of the samples of a buffer.
SN_INLINE void sn_history_value_vjp(int n, int dim, const SnHistoryRead *read, const sn_bar *value_bar,
                                    sn_bar *buffer_bar) {
  for (int k = 0; k < read->count; ++k)
    for (int d = 0; d < dim; ++d) buffer_bar[2 + n + read->at[k] * dim + d] += read->weight[k] * value_bar[d];
}
// Returns the bar of the time that is read.
SN_INLINE sn_bar sn_history_rate_vjp(const sn_real *buffer, int n, int dim, const SnHistoryRead *read,
                                     const sn_bar *value_bar) {
  sn_bar sum = {0};
  for (int k = 0; k < read->count; ++k)
    for (int d = 0; d < dim; ++d) sum += read->rate[k] * buffer[2 + n + read->at[k] * dim + d] * value_bar[d];
  return sum;
}

// Adds the bar of a small turn of the unit quaternion q, in its frame, to the bars of its four numbers.
SN_INLINE void sn_plastic_turn_bar(const sn_real *q, const sn_real *turn_bar, sn_real *bar) {
  const sn_real t[3] = {2 * turn_bar[0], 2 * turn_bar[1], 2 * turn_bar[2]};
  bar[0] -= q[1] * t[0] + q[2] * t[1] + q[3] * t[2];
  bar[1] += q[0] * t[0] + q[2] * t[2] - q[3] * t[1];
  bar[2] += q[0] * t[1] + q[3] * t[0] - q[1] * t[2];
  bar[3] += q[0] * t[2] + q[1] * t[1] - q[2] * t[0];
}

// Says what a pass of sn_metric_pass goes over, as bits.
enum {
  SN_PASS_LINKS = 1,   // links of metric_link alone
  SN_PASS_ROWS = 2,    // rows, their contacts among them
  SN_PASS_TENDONS = 4  // tendons, and outputs of actuators on them
};
// Returns these bits of the pass under way; 0: it goes over everything, as all else does, and several lanes always.
SN_INLINE int sn_pass_over(const SnModel *m, const SnAdjoint *a) {
#if defined(SN_SERIAL)
  return sn_has_metric(m) ? a->metric_over[0] : 0;
#else
  (void)m, (void)a;
  return 0;
#endif
}
// Returns true where the pass under way has nothing on a link and those behind it.
SN_INLINE bool sn_is_left_out(const SnModel *m, const SnAdjoint *a, int link) {
  return sn_pass_over(m, a) && !a->metric_link[link];
}

// Returns the twist of a body in motion z, zeroes for a body that does not move.
SN_INLINE const sn_bar *sn_twist(const SnModel *m, const SnAdjoint *a, int body, SnMotion z) {
  return a->twist + 6 * (SN_NMOTION * m->link_of_body[body] + (int)z);
}
// Returns the place that the bar of this twist is added to. Nobody reads that of link 0.
SN_INLINE sn_bar *sn_twist_bar(const SnModel *m, SnAdjoint *a, int body, SnMotion z) {
  return a->twist_bar + 6 * (SN_NMOTION * m->link_of_body[body] + (int)z);
}
// Returns the place that a body's wrench is added to. Nobody reads that of link 0.
SN_INLINE sn_bar *sn_body_wrench(const SnModel *m, SnAdjoint *a, int body) {
  return a->wrench + 6 * m->link_of_body[body];
}
// Returns the point that twists and wrenches of a body refer to.
SN_INLINE const sn_real *sn_twist_origin(const SnModel *m, const SnWorld *w, int body) {
  return w->subtree_com + 3 * m->body_rootid[m->link_of_body[body]];
}

#endif

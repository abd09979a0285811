// SnWorld: the state of one body in motion and the workspace of its stages, in one block of memory
// that the caller owns. Nothing is allocated while stepping.
#ifndef SINEW_PHYSICS_WORLD_WORLD_H_
#define SINEW_PHYSICS_WORLD_WORLD_H_

#include "physics/base/lane.h"
#include "physics/model/model.h"
#include "physics/world/history.h"

enum { SN_LAYOUT_FIELDS = 192 };  // most fields of a world, or of an adjoint; layout.c asserts that there is enough

#if defined(__CUDACC__)
#include "physics/world/device_field_private.h"
#endif

// Holds the settings of contacts from distance (CFD; A. Paulus et al., 2025, arXiv 2506.14186): bodies that do not
// touch push each other a little. Pairs that take part and are closer than solimp[2] to touching make a row. The
// impedance goes from solimp[0] at that distance to solimp[1] at touch. Between them lies MuJoCo's spline of midpoint
// solimp[3] and power solimp[4]. The position part of the reference acceleration of all their rows, in contact too, is
// a softplus of the depth instead of the depth itself.
typedef struct SnCfd {
  int on;                     // 0: MuJoCo's contacts, and nothing below is read but `surrogate`
  int surrogate;              // 1: adjoints carry contact points rigidly (sn_collide_surrogate_vjp)
  int friction;               // 1: rows at a distance have the pair's own condim; 0: one frictionless row a pair
  float smooth;               // pairs that take part collide without choices, smoothed over this length [m]; 0: as ever
  sn_real solimp[SN_NIMP];    // impedance where bodies do not touch; solimp[2] is the reach [m], > 0
  sn_real width;              // width of the softplus [m], > 0
  const unsigned char *pair;  // 1: pair takes part (ncpair); NULL: all do
} SnCfd;

// Says what CFD makes of a contact.
typedef enum SnCfdContact {
  SN_CONTACT_HARD,     // MuJoCo's
  SN_CONTACT_TOUCHES,  // touching, the pair takes part
  SN_CONTACT_FAR       // at a distance: the nearest points of a pair that does not touch
} SnCfdContact;

// Marks the feature of a contact before impact, which is this and its number.
enum { SN_FEATURE_IMPACT = 1 << 28 };

// Holds a detected contact, with MuJoCo's mjContact conventions.
typedef struct SnContact {
  sn_real dist;           // distance between nearest points [m], negative: penetration
  sn_real pos[3];         // midpoint between the surfaces
  sn_real frame[9];       // rows: normal from geom[0] to geom[1], two tangents
  sn_real includemargin;  // rows exist where dist < includemargin
  sn_real friction[5];    // tangent 1, 2, spin, roll 1, 2
  sn_real solref[SN_NREF];
  sn_real solreffriction[SN_NREF];
  sn_real solimp[SN_NIMP];
  sn_real mu;        // friction of the regularised cone, set by sn_make_constraint
  sn_real adhesion;  // force by which it can pull [N]
  int dim;           // 1, 3, 4 or 6
  int geom[2];
  int common;       // dofs that move both bodies: the first of their chains; set by sn_make_constraint
  int exclude;      // 0: makes rows, 1: in the gap, 3: no dofs
  int cfd;          // SnCfdContact
  int efc_address;  // first row, -1: none
  int pair;         // candidate pair of the model that made it
  int feature;      // code of its collider, for the adjoint: the corner, edge, face that touches
  int corner[6];    // corners, faces and edges of that feature (SnFeatureCode) of convex pairs; else -1
} SnContact;

// Lists the values of efc_state (mjtConstraintState).
typedef enum SnConstraintState {
  SN_CSTATE_SATISFIED,
  SN_CSTATE_QUADRATIC,
  SN_CSTATE_LINEARNEG,
  SN_CSTATE_LINEARPOS,
  SN_CSTATE_CONE
} SnConstraintState;

// Lists the groups of world_fields.inc, in the order in which a step writes them.
typedef enum SnStage {
  SN_STAGE_CFD,
  SN_STAGE_STATE,
  SN_STAGE_SLEEP,
  SN_STAGE_KINEMATICS,
  SN_STAGE_INERTIA,
  SN_STAGE_TENDON,
  SN_STAGE_TRANSMISSION,
  SN_STAGE_COLLISION,
  SN_STAGE_VELOCITY,
  SN_STAGE_PASSIVE,
  SN_STAGE_ACTUATION,
  SN_STAGE_SMOOTH,
  SN_STAGE_CONSTRAINT,
  SN_STAGE_SOLVER,
  SN_STAGE_INTEGRATE
} SnStage;

// Points to the fields in the world's one block of memory. Scalars are pointers too (*w->ncon, w->time[0]): so one
// table (world_fields.inc) lays out, copies, poisons and compares all of them. All lanes of a block see what one
// writes.
enum {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) SN_WORLD_##name,
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  SN_WORLD_warn,
  SN_NWORLD
};
#if defined(__CUDACC__)
#define SN_WORLD_POINTER(type, name) SnField<type, SN_FIELD_OF_WORLD, SN_WORLD_##name> name
#else
#define SN_WORLD_POINTER(type, name) type *name
#endif
typedef struct SnWorld {
#define SN_WORLD_FIELD(stage, type, name, rows, cols) SN_WORLD_POINTER(type, name);
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  SN_WORLD_POINTER(int, warn);  // SN_WARN_* bits (1)
} SnWorld;

enum { SN_MAXSLIP = 5 };  // most rows that the noslip solver solves together: friction of a contact of condim 6
// Returns true where the solver is followed by the noslip solver.
SN_INLINE bool sn_has_noslip(const SnModel *m) { return m->opt.noslip_iterations > 0; }

// Returns true where impedances are made of the exact diagonal of J M^-1 J', not of inverse inertias at qpos0.
SN_INLINE bool sn_has_exact_diagonal(const SnModel *m) { return (m->opt.enableflags & SN_ENBL_DIAGEXACT) != 0; }
// Returns true where an adjoint has more passes than one, of products of rows with M^-1 or with themselves.
SN_INLINE bool sn_has_passes(const SnModel *m) {
  return sn_has_noslip(m) || sn_has_exact_diagonal(m) || sn_has_metric(m);
}

// Returns true where contacts are foreseen, before the geoms touch: the flag speculative.
SN_INLINE bool sn_has_speculative(const SnModel *m) { return (m->opt.enableflags & SN_ENBL_SPECULATIVE) != 0; }
// Counts the reals of a geom in geom_step: displacement, turn, the most that a point of it moves by.
enum { SN_GEOM_STEP = 7 };

// Returns true where trees can fall asleep: the flag sleep.
SN_INLINE bool sn_has_sleep(const SnModel *m) { return (m->opt.enableflags & SN_ENBL_SLEEP) != 0; }
// Returns true where they do in this world: it asks for it, and contacts do not act from a distance.
SN_INLINE bool sn_sleeps(const SnModel *m, const SnWorld *w) {
  return sn_has_sleep(m) && w->sleep_on[0] != 0 && !w->cfd->on;
}
// Returns true where some do in this step; after sn_sleep_begin.
SN_INLINE bool sn_any_asleep(const SnModel *m, const SnWorld *w) { return sn_sleeps(m, w) && w->nasleep[0] > 0; }

// Lists what sleeping makes of a body (mjtSleepState).
typedef enum SnSleepState { SN_BODY_STATIC = -1, SN_BODY_ASLEEP, SN_BODY_AWAKE } SnSleepState;
// Returns the state of a body in a world in which sn_sleeps holds, after sn_sleep_begin. Mocap bodies, and what is
// welded to them, are awake.
SN_INLINE SnSleepState sn_body_sleep(const SnModel *m, const SnWorld *w, int body) {
  const int tree = m->body_treeid[body];
  if (tree >= 0) return w->tree_awake[tree] ? SN_BODY_AWAKE : SN_BODY_ASLEEP;
  return m->body_mocapid[m->body_rootid[body]] >= 0 ? SN_BODY_AWAKE : SN_BODY_STATIC;
}
// Lists what is known of a tree that sleeps: nothing, that its frames and inertias are those of frame_qpos, or that
// this step leaves them. Nothing is known of one that is awake.
typedef enum SnFramed { SN_FRAMES_UNKNOWN, SN_FRAMES_KNOWN, SN_FRAMES_HELD } SnFramed;
// Returns whether this step leaves the frames of a body as they were. Some tree sleeps.
SN_INLINE bool sn_frames_held(const SnModel *m, const SnWorld *w, int body) {
  return m->body_treeid[body] >= 0 && w->tree_framed[m->body_treeid[body]] == SN_FRAMES_HELD;
}
// Returns whether a tendon sleeps there: all of its trees do, two at most.
SN_INLINE bool sn_tendon_asleep(const SnModel *m, const SnWorld *w, int t) {
  const int n = m->tendon_treenum[t], *tree = m->tendon_treeid + 2 * t;
  return (n == 1 || n == 2) && !w->tree_awake[tree[0]] && (n == 1 || !w->tree_awake[tree[1]]);
}

// Returns the duration of the next step [s]: what MuJoCo has as opt.timestep, in everything that reads it.
SN_INLINE sn_real sn_timestep(const SnModel *m, const SnWorld *w) {
  return w->step[0] > 0 ? w->step[0] : m->opt.timestep;
}

// Replaces a solref whose two numbers have different signs by `fallback`; refsafe bounds the time constant, but under
// the integrator `discrete`.
SN_INLINE void sn_admit_solref(const SnModel *m, const SnWorld *w, sn_real *solref, sn_real fallback0,
                               sn_real fallback1) {
  if ((solref[0] > 0) != (solref[1] > 0)) {
    solref[0] = fallback0;
    solref[1] = fallback1;
  }
  if (!(m->opt.disableflags & SN_DSBL_REFSAFE) && !sn_has_metric(m) && solref[0] > 0)
    solref[0] = sn_max(solref[0], 2 * sn_timestep(m, w));
}
// Computes stiffness and damping of a row from its solref and the largest impedance.
SN_INLINE void sn_solref_spring(const sn_real *ref, sn_real dwidth, sn_real spring[2]) {
  if (ref[0] > 0)
    spring[0] = 1 / sn_max(SN_MINVAL, dwidth * dwidth * ref[0] * ref[0] * ref[1] * ref[1]);
  else
    spring[0] = -ref[0] / sn_max(SN_MINVAL, dwidth * dwidth);
  if (ref[1] > 0)
    spring[1] = 2 / sn_max(SN_MINVAL, dwidth * ref[0]);
  else
    spring[1] = -ref[1] / sn_max(SN_MINVAL, dwidth);
}

// Returns whether passive forces act: flags spring and damper together switch all of them off.
SN_INLINE bool sn_is_passive(const SnModel *m) {
  const int off = SN_DSBL_SPRING | SN_DSBL_DAMPER;
  return (m->opt.disableflags & off) != off;
}

// Means that there can be no such world or adjoint: no allocation gives as many bytes.
#define SN_TOO_LARGE ((size_t)1 << 60)
// Points the fields of w into memory at `base` (64-byte aligned), or, when base is NULL, only counts. Returns the bytes
// needed, or SN_TOO_LARGE when there can be no such world. Worlds in two memories, and on a device, are made by
// layout.h.
size_t sn_world_layout(const SnModel *m, SnWorld *w, void *base);

// Returns the bytes of a world of this model, or SN_TOO_LARGE.
size_t sn_world_size(const SnModel *m);

// Makes a world in memory of at least sn_world_size(m) bytes, 64-byte aligned, and resets it.
void sn_world_init(const SnModel *m, SnWorld *w, void *memory);

// Makes a world, on all lanes, of fields that sn_world_bind (layout.h) has pointed into memory that holds anything. It
// is as sn_world_init leaves it, but the state is zero, `past` aside: static fields, no CFD, zero where a step reads
// before it writes. Needs a sync before, ends with one.
SN_FUNC void sn_world_begin(const SnModel *m, SnWorld *w, SnLane *lane);

// Writes the controls (nu) of a reset: 0, and for a quaternion the one that turns nothing.
void sn_ctrl_reset(const SnModel *m, sn_real *ctrl);

// Sets the state of qpos0 at time 0: zero velocity and activation, controls as sn_ctrl_reset, mocap bodies at their
// model poses.
void sn_world_reset(const SnModel *m, SnWorld *w);

// Sets the state of keyframe `key` (0 <= key < m->nkey).
void sn_world_reset_key(const SnModel *m, SnWorld *w, int key);

// Copies the STATE group (all that the next step depends on) from src to dst.
void sn_world_copy_state(const SnModel *m, SnWorld *dst, const SnWorld *src);

// Fills the fields of a stage with NaN (ints with -1), so that a read before the write shows. Debug builds call it
// before each stage.
void sn_world_poison(const SnModel *m, SnWorld *w, SnStage stage);

#endif

// SnModel: everything about a body that stays the same while it moves. Flat arrays, no pointers
// outside the model, shared read-only by any number of worlds and threads.
//
// Life: a flat image (written by sinew-import, see model_file.h) -> sn_model_create ->
// arrays filled -> sn_model_setup -> read-only use -> sn_model_free.
#ifndef SINEW_PHYSICS_MODEL_MODEL_H_
#define SINEW_PHYSICS_MODEL_MODEL_H_

#include "physics/base/muscle_curves.h"
#include "physics/base/polynomial.h"
#include "physics/base/real.h"
#include "physics/base/status.h"

enum { SN_NREF = 2, SN_NIMP = 5, SN_NEQDATA = 12, SN_NDYN = 10, SN_NGAIN = 10, SN_NBIAS = 10, SN_NSENS = 3 };
enum { SN_NFLUID = 12 };         // reals of a geom in geom_fluid
enum { SN_NCONPARAM = 16 };      // reals in a set of contact parameters, see setup_fields.inc
enum { SN_GEOM_TYPES = 9 };      // values of SnGeom
enum { SN_MAXCON_PAIR = 8 };     // most contacts of one pair of geoms that are no height field
enum { SN_MAXCON_HFIELD = 50 };  // most contacts of a height field and another geom
enum { SN_COLLIDE_BLOCK = 8 };   // pairs that the broad phase tests at a time
enum { SN_POLY_MAX = 256 };      // most corners of a face of a hull
enum { SN_RAY_LEVELS = 24 };     // most levels of a tree of triangles
enum { SN_COLLIDE_CHUNK = 32 };  // most pairs that the narrow phase takes at a time
enum { SN_COLLIDE_SLOTS = 9 };   // contact slots of each: one more than needed spreads them over the cache
// Sets the same two for a model with height fields that can touch something.
enum { SN_HFIELD_CHUNK = 8, SN_HFIELD_SLOTS = 51 };

// Sets what one lane handles together: columns of a row of the inertia matrix, geoms and sites of a link.
enum { SN_FACTOR_WIDTH = 8, SN_GEOM_BLOCK = 2, SN_SITE_BLOCK = 4 };

// Lists types of joints. Here and below the values are MuJoCo's (import_mjcf.c asserts it), so arrays are copied as
// they are.
typedef enum SnJoint { SN_JNT_FREE, SN_JNT_BALL, SN_JNT_SLIDE, SN_JNT_HINGE } SnJoint;
typedef enum SnGeom {
  SN_GEOM_PLANE,
  SN_GEOM_HFIELD,
  SN_GEOM_SPHERE,
  SN_GEOM_CAPSULE,
  SN_GEOM_ELLIPSOID,
  SN_GEOM_CYLINDER,
  SN_GEOM_BOX,
  SN_GEOM_MESH,
  SN_GEOM_SDF
} SnGeom;
typedef enum SnIntegrator {
  SN_INT_EULER,
  SN_INT_RK4,
  SN_INT_IMPLICIT,
  SN_INT_IMPLICITFAST,
  SN_INT_DISCRETE
} SnIntegrator;
typedef enum SnCone { SN_CONE_PYRAMIDAL, SN_CONE_ELLIPTIC } SnCone;
typedef enum SnEq { SN_EQ_CONNECT, SN_EQ_WELD, SN_EQ_JOINT, SN_EQ_TENDON } SnEq;
typedef enum SnTendon { SN_TENDON_FIXED, SN_TENDON_SPATIAL } SnTendon;
typedef enum SnWrap {
  SN_WRAP_NONE,
  SN_WRAP_JOINT,
  SN_WRAP_PULLEY,
  SN_WRAP_SITE,
  SN_WRAP_SPHERE,
  SN_WRAP_CYLINDER
} SnWrap;
// Says what a side point asks of a tendon that wraps.
typedef enum SnSide {
  SN_SIDE_FREE,     // no side point: the shorter way round
  SN_SIDE_OUTSIDE,  // go round the way it lies
  SN_SIDE_INSIDE,   // it lies inside: pass through the inside
  SN_NSIDE
} SnSide;
typedef enum SnTrn {
  SN_TRN_JOINT,
  SN_TRN_JOINTINPARENT,
  SN_TRN_SLIDERCRANK,
  SN_TRN_TENDON,
  SN_TRN_SITE,
  SN_TRN_BODY,
  SN_TRN_SO3  // a ball joint, or a site and a reference site: three lengths and forces
} SnTrn;
typedef enum SnDyn {
  SN_DYN_NONE,
  SN_DYN_INTEGRATOR,
  SN_DYN_FILTER,
  SN_DYN_FILTEREXACT,
  SN_DYN_MUSCLE,
  SN_DYN_DCMOTOR,
  SN_DYN_PID
} SnDyn;
typedef enum SnGain { SN_GAIN_FIXED, SN_GAIN_AFFINE, SN_GAIN_MUSCLE, SN_GAIN_DCMOTOR, SN_GAIN_SO3, SN_GAIN_PID } SnGain;
// Lists what the controls of an orientation servo (SN_GAIN_SO3) stand for, as actuator_ctrlspec says: a rotation
// vector or a quaternion.
enum { SN_CHART_EXPMAP = 1, SN_CHART_QUAT };
// Lists the controls that a controller (SN_GAIN_PID) or a motor (SN_GAIN_DCMOTOR) may have, as bits of
// actuator_ctrlspec. They are setpoints of length and velocity, a force, and of a motor a voltage, in this order.
// SN_INPUT_NONE stands for a motor without any.
enum { SN_INPUT_POS = 1, SN_INPUT_VEL = 2, SN_INPUT_FF = 4, SN_INPUT_VOLTAGE = 8, SN_INPUT_NONE = 16 };
// Says how a buffer is read between two samples.
typedef enum SnInterp { SN_INTERP_ZOH, SN_INTERP_LINEAR, SN_INTERP_CUBIC } SnInterp;
typedef enum SnBias { SN_BIAS_NONE, SN_BIAS_AFFINE, SN_BIAS_MUSCLE, SN_BIAS_DCMOTOR, SN_BIAS_SO3 } SnBias;
// Lists the sensors whose values the engine can compute (mjtSensor); see sensor.h.
typedef enum SnSensor {
  SN_SENS_TOUCH = 0,
  SN_SENS_ACCELEROMETER = 1,
  SN_SENS_VELOCIMETER = 2,
  SN_SENS_GYRO = 3,
  SN_SENS_FORCE = 4,
  SN_SENS_TORQUE = 5,
  SN_SENS_MAGNETOMETER = 6,
  SN_SENS_RANGEFINDER = 7,
  SN_SENS_CAMPROJECTION = 8,
  SN_SENS_JOINTPOS = 9,
  SN_SENS_JOINTVEL = 10,
  SN_SENS_TENDONPOS = 11,
  SN_SENS_TENDONVEL = 12,
  SN_SENS_ACTUATORPOS = 13,
  SN_SENS_ACTUATORVEL = 14,
  SN_SENS_ACTUATORFRC = 15,
  SN_SENS_JOINTACTFRC = 16,
  SN_SENS_TENDONACTFRC = 17,
  SN_SENS_BALLQUAT = 18,
  SN_SENS_BALLANGVEL = 19,
  SN_SENS_JOINTLIMITPOS = 20,
  SN_SENS_JOINTLIMITVEL = 21,
  SN_SENS_JOINTLIMITFRC = 22,
  SN_SENS_TENDONLIMITPOS = 23,
  SN_SENS_TENDONLIMITVEL = 24,
  SN_SENS_TENDONLIMITFRC = 25,
  SN_SENS_FRAMEPOS = 26,
  SN_SENS_FRAMEQUAT = 27,
  SN_SENS_FRAMEXAXIS = 28,
  SN_SENS_FRAMEYAXIS = 29,
  SN_SENS_FRAMEZAXIS = 30,
  SN_SENS_FRAMELINVEL = 31,
  SN_SENS_FRAMEANGVEL = 32,
  SN_SENS_FRAMELINACC = 33,
  SN_SENS_FRAMEANGACC = 34,
  SN_SENS_SUBTREECOM = 35,
  SN_SENS_SUBTREELINVEL = 36,
  SN_SENS_SUBTREEANGMOM = 37,
  SN_SENS_INSIDESITE = 38,
  SN_SENS_GEOMDIST = 39,
  SN_SENS_GEOMNORMAL = 40,
  SN_SENS_GEOMFROMTO = 41,
  SN_SENS_CONTACT = 42,
  SN_SENS_E_POTENTIAL = 43,
  SN_SENS_E_KINETIC = 44,
  SN_SENS_CLOCK = 45,
  SN_SENS_TACTILE = 46,
  SN_SENS_USER = 48
} SnSensor;
// Lists types of the object that an equality or sensor refers to (mjtObj).
enum { SN_OBJ_BODY = 1, SN_OBJ_XBODY = 2, SN_OBJ_JOINT = 3, SN_OBJ_GEOM = 5, SN_OBJ_SITE = 6, SN_OBJ_CAMERA = 7 };
enum {
  SN_DSBL_CONSTRAINT = 1 << 0,
  SN_DSBL_EQUALITY = 1 << 1,
  SN_DSBL_FRICTIONLOSS = 1 << 2,
  SN_DSBL_LIMIT = 1 << 3,
  SN_DSBL_CONTACT = 1 << 4,
  SN_DSBL_SPRING = 1 << 5,
  SN_DSBL_DAMPER = 1 << 6,
  SN_DSBL_GRAVITY = 1 << 7,
  SN_DSBL_CLAMPCTRL = 1 << 8,
  SN_DSBL_WARMSTART = 1 << 9,
  SN_DSBL_FILTERPARENT = 1 << 10,
  SN_DSBL_ACTUATION = 1 << 11,
  SN_DSBL_REFSAFE = 1 << 12,
  SN_DSBL_SENSOR = 1 << 13,
  SN_DSBL_MIDPHASE = 1 << 14,
  SN_DSBL_EULERDAMP = 1 << 15,
  SN_DSBL_AUTORESET = 1 << 16,
  SN_DSBL_NATIVECCD = 1 << 17,
  SN_DSBL_ISLAND = 1 << 18,
  SN_DSBL_MULTICCD = 1 << 19,
  SN_NDISABLE = 20  // flags
};
// Lists enable flags: override, sleep, diagexact and speculative act, the three between matter to MuJoCo's extra
// outputs alone, ipc is refused.
enum {
  SN_ENBL_OVERRIDE = 1 << 0,
  SN_ENBL_ENERGY = 1 << 1,
  SN_ENBL_FWDINV = 1 << 2,
  SN_ENBL_INVDISCRETE = 1 << 3,
  SN_ENBL_SLEEP = 1 << 4,
  SN_ENBL_DIAGEXACT = 1 << 5,
  SN_ENBL_IPC = 1 << 6,
  SN_ENBL_SPECULATIVE = 1 << 7,
  SN_NENABLE = 8  // flags
};
// Lists kinds of constraint rows, the values of efc_type (mjtConstraint).
typedef enum SnConstraint {
  SN_CNSTR_EQUALITY,
  SN_CNSTR_FRICTION_DOF,
  SN_CNSTR_FRICTION_TENDON,
  SN_CNSTR_LIMIT_JOINT,
  SN_CNSTR_LIMIT_TENDON,
  SN_CNSTR_CONTACT_FRICTIONLESS,
  SN_CNSTR_CONTACT_PYRAMIDAL,
  SN_CNSTR_CONTACT_ELLIPTIC
} SnConstraint;
// Says how a pair is collided: MuJoCo's table of pairs of types, see sn_collider.
typedef enum SnCollider {
  SN_COLLIDER_NONE,
  SN_COLLIDER_PLANE_SPHERE,
  SN_COLLIDER_PLANE_CAPSULE,
  SN_COLLIDER_PLANE_CYLINDER,
  SN_COLLIDER_PLANE_BOX,
  SN_COLLIDER_PLANE_CONVEX,
  SN_COLLIDER_SPHERE_SPHERE,
  SN_COLLIDER_SPHERE_CAPSULE,
  SN_COLLIDER_SPHERE_CYLINDER,
  SN_COLLIDER_SPHERE_BOX,
  SN_COLLIDER_CAPSULE_CAPSULE,
  SN_COLLIDER_CAPSULE_BOX,
  SN_COLLIDER_BOX_BOX,
  SN_COLLIDER_CONVEX,
  SN_COLLIDER_ELLIPSOID,  // an ellipsoid at a distance: never a pair's own (collide.c)
  SN_COLLIDER_HFIELD,     // a height field and a convex shape
  SN_COLLIDER_HFIELD_FAR  // height fields at a distance: never a pair's own
} SnCollider;

// Lists who says whether a tree may fall asleep (mjtSleepPolicy).
typedef enum SnSleepPolicy {
  SN_SLEEP_AUTO,
  SN_SLEEP_AUTO_NEVER,
  SN_SLEEP_AUTO_ALLOWED,
  SN_SLEEP_NEVER,
  SN_SLEEP_ALLOWED,
  SN_SLEEP_INIT
} SnSleepPolicy;
// Marks a tree that is fully awake. From -1 on it may fall asleep: it has been slow for ten steps.
enum { SN_AWAKE = -11 };
enum { SN_MAXNOSLIP = 200 };  // most sweeps of the noslip solver
// Says what a fluid takes a part of a link for.
typedef enum SnFluid { SN_FLUID_BOX, SN_FLUID_ELLIPSOID } SnFluid;
// Gives the places of the coefficients of such a part, which setup_fluid.c computes.
enum {
  SN_BOX_TURN = 0,  // times viscosity
  SN_BOX_MOVE = 1,
  SN_BOX_TORQUE = 2,  // times density, along each axis
  SN_BOX_FORCE = 5,
  SN_ELL_SCALE = 0,  // factor of the whole force
  SN_ELL_TURN = 1,   // times viscosity
  SN_ELL_MOVE = 2,
  SN_ELL_BLUNT = 3,    // drag of the projected area, beyond that of slender bodies
  SN_ELL_SLENDER = 4,  // drag of slender bodies times the largest area
  SN_ELL_KUTTA = 5,
  SN_ELL_MAGNUS = 6,   // times the volume
  SN_ELL_AREA = 7,     // square of the product of the other two half axes, for each axis
  SN_ELL_MOMENT = 10,  // angular drag, about each axis
  SN_ELL_MASS = 13,    // fluid that moves along
  SN_ELL_INERTIA = 16,
  SN_NFLUIDCOEF = 19
};
// Says how the slopes of fluid forces enter the matrix of an implicit integrator.
typedef enum SnFluidMatrix {
  SN_FLUID_SYMMETRIC,  // symmetrised
  SN_FLUID_WHOLE,      // unchanged: under `implicit`, and in the equations of a free body
  SN_FLUID_DIAGONAL    // nothing but the diagonal, like M of a simple body
} SnFluidMatrix;
// Returns the part of the sort key of a pair of geoms that tells their bodies, body1 <= body2 (collision/sweep.c).
SN_INLINE uint64_t sn_pair_key(int body1, int body2) { return (uint64_t)body1 << 37 | (uint64_t)body2 << 25; }
// Returns a number that tells a pair of geoms, in any order.
SN_INLINE uint64_t sn_geom_pair_code(int g1, int g2) {
  return (uint64_t)sn_mini(g1, g2) << 32 | (uint64_t)sn_maxi(g1, g2);
}

// Says how contacts act: as MuJoCo's, or as those of Moreau's time stepping, smoothed (constraint/sigmoid.c).
typedef enum SnContactModel { SN_CONTACT_MUJOCO, SN_CONTACT_SIGMOID } SnContactModel;
// Gives the widths of the sigmoid from touch at which its contacts begin, where 2e-9 of a force is left.
enum { SN_SIGMOID_REACH = 20 };

typedef struct SnOption {
#define SN_OPTION(type, name, count) type name SN_OPTION_DIM_##count;
#define SN_OPTION_DIM_1
#define SN_OPTION_DIM_3 [3]
#define SN_OPTION_DIM_5 [5]
#define SN_OPTION_DIM_SN_NREF [SN_NREF]
#define SN_OPTION_DIM_SN_NIMP [SN_NIMP]
#include "physics/model/option_fields.inc"
#undef SN_OPTION
} SnOption;

typedef struct SnModel {
#define SN_SIZE(name) int name;
#include "physics/model/model_sizes.inc"
#include "physics/model/setup_sizes.inc"
#undef SN_SIZE

  SnOption opt;

#define SN_MODEL_FIELD(type, name, rows, cols) SN_GLOBAL(type) name;
#include "physics/model/model_fields.inc"
#include "physics/model/setup_fields.inc"
#undef SN_MODEL_FIELD

  void **block;  // memory owned by the model, (nblock); freed by sn_model_free
  int nblock;
} SnModel;

// Returns whether the controls of actuator i are a quaternion, of an orientation servo.
SN_INLINE bool sn_ctrl_is_quat(const SnModel *m, int i) {
  return m->actuator_gaintype[i] == SN_GAIN_SO3 && m->actuator_ctrlspec[i] == SN_CHART_QUAT;
}

// Returns true where the solver finds the step itself, by an effective inertia: the integrator `discrete`.
SN_INLINE bool sn_has_metric(const SnModel *m) { return m->opt.integrator == SN_INT_DISCRETE; }

// Returns whether contacts are those of constraint/sigmoid.c, and how far from touch they begin [m], else 0.
SN_INLINE bool sn_has_sigmoid(const SnModel *m) { return m->opt.contact == SN_CONTACT_SIGMOID; }
SN_INLINE sn_real sn_sigmoid_reach(const SnModel *m) {
  return sn_has_sigmoid(m) ? (sn_real)SN_SIGMOID_REACH * m->opt.contact_width : 0;
}

// Holds the bodies first..last.
typedef struct SnBodies {
  int first, last;
} SnBodies;
SN_INLINE bool sn_bodies_have(SnBodies b, int body) { return body >= b.first && body <= b.last; }
// Returns the bodies whose forces a sensor of force on a body sums: those of its subtree, and of the world all others.
SN_INLINE SnBodies sn_force_bodies(const SnModel *m, int body) {
  const SnBodies b = {body > 0 ? body : 1, m->body_last[body]};
  return b;
}

// Returns the numbers of a buffer of n samples of `dim` numbers (world/history.h).
SN_INLINE int sn_history_size(int n, int dim) { return n > 0 ? 2 + n * (1 + dim) : 0; }

// Allocates a model whose sizes are copied from `sizes` (only fields of model_sizes.inc are read),
// with zeroed arrays. NULL and err on failure; the caller frees with sn_model_free.
SnModel *sn_model_create(const SnModel *sizes, SnError *err);

// Caps on the sizes of a model that the importer writes and the reader accepts: SN_CAP_nbody and so on.
enum {
#define SN_CAP(name, max) SN_CAP_##name = (max),
#include "physics/model/model_caps.inc"
#undef SN_CAP
};

// Checks a model whose arrays are filled but not yet trusted. After this no index of it leads outside an array, its
// tree is a tree, its numbers are finite. Returns SN_OK, or SN_ERR_FORMAT and a text that names field, index, value and
// what is allowed. Reads fields of model_sizes.inc, model_fields.inc and option_fields.inc only. Call it before
// sn_model_setup. Takes one pass.
SnCode sn_model_check(const SnModel *m, SnError *err);

// Checks options by themselves: finite, within their ranges, an integrator that the engine has. Returns SN_OK, or
// SN_ERR_FORMAT and "model: option timestep is 0: must be above 0 s".
SnCode sn_option_check(const SnOption *o, SnError *err);

// Lists what the engine lacks of an integrator and flags as MuJoCo numbers them. Returns the number of lines; each is
// complete and stays valid ("option 'ipc': incremental potential contact is not supported").
enum { SN_OPTION_LINES = 5 };
int sn_option_unsupported(int integrator, int disableflags, int enableflags, const char *line[SN_OPTION_LINES]);
// Returns whether these flags ask for a convex collision that the engine lacks, and a pair of geoms of these types
// needs it. Pairs with closed forms do without.
bool sn_option_lacks_convex(int disableflags, int type1, int type2);
// Say what the engine lacks of a sensor with a history buffer, and of a spring that yields. Integrator and flags are as
// MuJoCo numbers them. Return "a history buffer (nsample) with integrator RK4" or the like, NULL where it lacks
// nothing.
const char *sn_option_lacks_buffer(int integrator, int disableflags);
const char *sn_option_lacks_yield(int integrator);
// Lists what of other options the engine lacks under the integrator `discrete`. Returns the number of texts, each as
// "discrete with flag sleep".
enum { SN_DISCRETE_LINES = 4 };
int sn_option_lacks_discrete(int enableflags, int noslip_iterations, const char *what[SN_DISCRETE_LINES]);
// Says what the engine lacks of contacts that pull in a gap under these enable flags; NULL: nothing.
const char *sn_option_lacks_pull(int enableflags);

// Returns whether trees that sleep, of which each has the number of the next one (ntree; awake: below 0), form cycles.
bool sn_sleep_cycles_close(const int *tree_asleep, int ntree);

// Computes every size of setup_sizes.inc and every array of setup_fields.inc. Call once, after the arrays are filled
// and checked.
SnCode sn_model_setup(SnModel *m, SnError *err);

// Frees a model; NULL is allowed. No world may use it any more.
void sn_model_free(SnModel *m);

// Makes a private copy, set up again. Returns NULL and sets err on failure.
SnModel *sn_model_copy(const SnModel *m, SnError *err);

// Makes a copy with other options, which are not checked. solref (SN_NREF) and solimp (SN_NIMP) are those of all geoms,
// predefined pairs and the contact override. A number that is NaN leaves that of the model. Returns NULL and sets err
// on failure.
SnModel *sn_model_with_options(const SnModel *m, const SnOption *opt, const sn_real *solref, const sn_real *solimp,
                               SnError *err);

// Makes every step from now on compute what MuJoCo does, for comparisons. It adds the frames of all bodies' inertias,
// geoms and sites, all of subtree_com, the lists of tendons' path points. Otherwise a step computes the frames alone
// that a contact, tendon, actuator, equality or sensor reads. No world of the model may be stepping.
void sn_model_need_all(SnModel *m);

// Makes a model on which sn_model_need_all has been called. It shares all other arrays with m, which must outlive it
// and stay as it is. The caller frees it with sn_model_free. Returns NULL and sets err when out of memory.
SnModel *sn_model_view_all(const SnModel *m, SnError *err);

// Returns the collider of two geom types (type1 <= type2): SN_COLLIDER_NONE when the two never collide.
SnCollider sn_collider(int type1, int type2);

// Returns the most contacts that MuJoCo makes of geoms g1, g2 (ordered by type), multi-contact included.
int sn_collider_max(const SnModel *m, int g1, int g2);

// Lists kinds of named objects, the stems of the name_* arrays.
typedef enum SnNameKind {
  SN_NAME_BODY,
  SN_NAME_JNT,
  SN_NAME_GEOM,
  SN_NAME_SITE,
  SN_NAME_TENDON,
  SN_NAME_ACTUATOR,
  SN_NAME_SENSOR,
  SN_NAME_KEY,
  SN_NAME_EQ
} SnNameKind;
// Returns the index of the named object, or -1.
int sn_model_find(const SnModel *m, SnNameKind kind, const char *name);
// Writes "the model has no KIND 'NAME', it has A, B; did you mean 'A'?" into text[size], with names of that kind, and
// returns text.
const char *sn_model_no_name(const SnModel *m, SnNameKind kind, const char *name, char *text, size_t size);
// Returns the name of object i, "" when it has none or i is out of range.
const char *sn_model_name(const SnModel *m, SnNameKind kind, int i);
// Returns the number of objects of a kind.
int sn_model_count(const SnModel *m, SnNameKind kind);

#endif

// sinew: differentiable physics of MuJoCo's models, in this process.
//
//   SinewError err;
//   SinewModel *model = sinew_model_load("hand.xml", &err);
//   SinewData *data = sinew_data_create(model, &err);
//   double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);
//   for (int t = 0; t < 500; ++t) {
//     ctrl[0] = 0.5;
//     sinew_step(data, 1, &err);
//   }
//
// Numbers are doubles in SI units. (n, m) is an array of n rows of m numbers, row by row. Names, frames and orders are
// MuJoCo's: https://mujoco.readthedocs.io, version 4.0.0.
//
// Errors. A function that makes a handle returns NULL on failure, others return a SinewStatus. `err`, the last
// argument, gets the status and a text that names the place, the value and what is allowed; it may be NULL. Functions
// without `err` cannot fail: for a NULL handle or an index out of range they return 0, NULL or "". The library never
// prints, exits or aborts. On an error nothing has changed, unless a function says otherwise.
//
// Threads. A SinewModel and a SinewTask are read-only: any number of threads may use one at once. Every other handle
// belongs to one thread at a time; different handles are independent. Debug builds of the library answer
// SINEW_ERR_STATE when two threads are found in calls on one handle. A child of fork() may go on with models, tasks and
// bodies. Batches and planners answer SINEW_ERR_STATE there, for threads and devices do not come along.
//
// Memory. Arrays that are passed in belong to the caller and are read during the call only; outputs must not overlap
// inputs or each other. A pointer that a function returns belongs to the library, and its comment says how long it is
// valid. A handle outlives what was made of it, so free in the opposite order of creation, unless a comment says
// otherwise.
//
// Structures. Some will grow. The ones of these that a caller fills in begin with `size`. Start from the
// sinew_default_* function of the structure, which also sets all else to zero, the default. The ones that a caller
// reads belong to the library.
#ifndef SINEW_H_
#define SINEW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SINEW_API __attribute__((visibility("default")))
#else
#define SINEW_API
#endif

// ---- version and errors ----

// Says how a call ended. Values stay; new ones may come.
typedef enum SinewStatus {
  SINEW_OK = 0,                // all went well
  SINEW_ERR_ARGUMENT = 1,      // the call itself is wrong: a null pointer, a size, a value out of range
  SINEW_ERR_MEMORY = 2,        // out of memory
  SINEW_ERR_IO = 3,            // a file could not be read or written
  SINEW_ERR_FORMAT = 4,        // malformed input: XML, image, YAML
  SINEW_ERR_UNSUPPORTED = 5,   // the model uses what the engine does not have, or has no derivative of
  SINEW_ERR_LIMIT = 6,         // a documented limit is exceeded
  SINEW_ERR_NOT_FOUND = 7,     // no such name, file or device
  SINEW_ERR_TIMEOUT = 8,       // took too long
  SINEW_ERR_STATE = 9,         // not possible in this state of the handle, or two threads used it at once
  SINEW_ERR_DIVERGED = 10,     // a state or acceleration is NaN or beyond 1e10
  SINEW_ERR_DEVICE = 11,       // the device is lost for this process
  SINEW_ERR_INTERRUPTED = 12,  // the caller has interrupted the call: his function `interrupt` said so
  // The rest comes from sinew_client.h, SINEW_ERR_NO_PLAN from planners, too.
  SINEW_ERR_REFUSED = 32,    // the daemon answered with an error: its text is handed on
  SINEW_ERR_PROTOCOL = 33,   // the daemon's answer could not be understood
  SINEW_ERR_NO_PLAN = 34,    // there is no plan for this state: replaced by a newer one, or diverged
  SINEW_ERR_EXPIRED = 35,    // the plan at hand is too old to be used: the fallback's controls were given
  SINEW_ERR_ENDED = 36,      // the daemon has ended continuous mode: its lease ran out, or the session was closed
  SINEW_ERR_BAD_PLAN = 37,   // a plan that must not be used was refused; the one before stays in force
  SINEW_ERR_NO_SESSION = 38  // the daemon has no such session any more: open another one
} SinewStatus;

// Holds the status of a call and a text of one or more lines; "" when the status is SINEW_OK.
typedef struct SinewError {
  SinewStatus status;
  char text[4000];
} SinewError;

// Returns the version of the library, "0.1.0"; valid for ever.
SINEW_API const char *sinew_version(void);

// Returns the name of a status, e.g. "not found"; valid for ever.
SINEW_API const char *sinew_status_name(SinewStatus status);

// ---- handles ----

typedef struct SinewModel SinewModel;            // all of a body that stays the same while it moves (MuJoCo's mjModel)
typedef struct SinewData SinewData;              // state of one body, and all that is computed from it (mjData)
typedef struct SinewTask SinewTask;              // cost and start of a task, from YAML
typedef struct SinewBackend SinewBackend;        // threads, or a device
typedef struct SinewBatch SinewBatch;            // many rollouts of a model on a backend, and what is kept of them
typedef struct SinewIntegrator SinewIntegrator;  // a run of one body with chosen steps
typedef struct SinewParameters SinewParameters;  // how parameters of one's own move the numbers of a model
typedef struct SinewPlanner SinewPlanner;        // one body, one task, one plan that is refined

// Holds the state of a body. This structure does not grow. Who puts a body into a state may leave arrays NULL: qpos0,
// zero velocity, zero activation, mocap bodies where the model has them. A measured state, from which a plan is asked
// for, needs qpos and qvel, and quaternions of a length between 0.5 and 2. NULL act is estimated from the controls
// since the state before. NULL mocap is as in the request before, at first as in the task.
typedef struct SinewState {
  double time;          // [s]
  const double *qpos;   // (nq) quaternions need not be of unit length
  const double *qvel;   // (nv)
  const double *act;    // (na)
  const double *mocap;  // (nmocap, 7) positions [m] and quaternions
} SinewState;

// ---- model ----

// Loads a model from a file: MJCF (.xml), a model that MuJoCo 4.0.0 has compiled (.mjb), or an image of
// sinew_model_save. The ending tells a compiled model, the first bytes tell an image.
//
// The program sinew-import reads all but images, in a process of its own, under limits: 60 s, 4 GiB. It lies beside the
// running program, beside libsinew, or in bin/ of the prefix that libsinew is in. The result is kept in the user's
// cache, $XDG_CACHE_HOME/sinew/models or ~/.cache/sinew/models. It loads in about a millisecond as long as all files
// that the model was made of have the same contents. Free the model with sinew_model_free.
// Returns NULL and
//   SINEW_ERR_ARGUMENT     path is NULL; there is neither XDG_CACHE_HOME nor HOME to keep the result in
//   SINEW_ERR_IO           the file cannot be read, or the cache cannot be written
//   SINEW_ERR_FORMAT       MuJoCo's compiler refuses it: its text; or the image is damaged
//   SINEW_ERR_UNSUPPORTED  it uses what the engine does not have: a list of all of it
//   SINEW_ERR_LIMIT        it is too large, or its import takes too much memory
//   SINEW_ERR_TIMEOUT      its import takes too long
//   SINEW_ERR_NOT_FOUND    there is no such file, or no sinew-import
//   SINEW_ERR_MEMORY       out of memory
SINEW_API SinewModel *sinew_model_load(const char *path, SinewError *err);

// Loads a model from memory, `size` bytes of any of the three forms, which is told by its first bytes. They count as
// those of a file in `folder` (NULL: the current one), from where MJCF's includes and meshes are found; nothing is
// written there. The results of the last 256 or so are kept in the user's cache, too. Fails as sinew_model_load, with
// SINEW_ERR_IO for a folder that is none and SINEW_ERR_LIMIT above 1 GiB.
SINEW_API SinewModel *sinew_model_read(const void *bytes, size_t size, const char *folder, SinewError *err);

// Writes the image of a model to a file, through a temporary file beside it. It keeps every bit of the model. A build
// of another version may refuse it. Returns SINEW_ERR_IO when it cannot be written, or what is there is no regular
// file.
SINEW_API SinewStatus sinew_model_save(const SinewModel *model, const char *path, SinewError *err);

// Frees a model. Nothing made of it may be in use. Accepts NULL.
SINEW_API void sinew_model_free(SinewModel *model);

// Holds the sizes of a model, with MuJoCo's names.
typedef struct SinewSizes {
  int nq, nv, na, nu;  // positions, degrees of freedom, activations, controls
  int nbody, njnt, ngeom, nsite, ntendon, nactuator, neq, nmocap, nkey;
  int nsensor, nsensordata;
  int nstate;    // 2 nv + na: numbers of a state by its tangent
  int nhistory;  // numbers of the buffers of controls and sensors (delay, nsample), then nplastic
  int nplastic;  // numbers of the rests of springs that yield (springyield)
} SinewSizes;

// Returns the sizes; valid as long as the model. New members come at the end.
SINEW_API const SinewSizes *sinew_model_sizes(const SinewModel *model);

// Lists kinds of named objects.
typedef enum SinewObject {
  SINEW_BODY,
  SINEW_JOINT,
  SINEW_GEOM,
  SINEW_SITE,
  SINEW_TENDON,
  SINEW_ACTUATOR,
  SINEW_SENSOR,
  SINEW_KEYFRAME,
  SINEW_EQUALITY
} SinewObject;

// Returns the index of a named object, or -1.
SINEW_API int sinew_model_find(const SinewModel *model, SinewObject kind, const char *name);
// Returns the name of an object, "" where it has none; valid as long as the model.
SINEW_API const char *sinew_model_name(const SinewModel *model, SinewObject kind, int id);
// Returns the number of objects of a kind.
SINEW_API int sinew_model_count(const SinewModel *model, SinewObject kind);

// Describes an array of a model or of a body. This structure does not grow.
typedef struct SinewField {
  const char *name;  // MuJoCo's; valid for ever
  bool integer;      // int, else double
  bool input;        // written by the caller: state, controls, mocap poses; of a model: see SinewArray
  int rows, cols;    // present shape
} SinewField;

// Returns an array of a model under MuJoCo's name ("jnt_range", "body_mass", "key_qpos"). The shape goes to rows and
// cols, which may be NULL. Returns NULL and the shape (0, 0) when there is none of this name and type. The array is
// valid as long as the model. It has what MuJoCo's compiler has made, but for two things. Frames of bodies' inertias,
// geoms and sites that MuJoCo finds equal to one of the body are that one. Meshes that nothing can touch have no
// vertices. Compares names one by one: ask once, not in a loop.
SINEW_API const double *sinew_model_array(const SinewModel *model, const char *name, int *rows, int *cols);
// Returns an array of integers likewise ("jnt_qposadr", "geom_type"); MuJoCo's bytes are integers here.
SINEW_API const int *sinew_model_int_array(const SinewModel *model, const char *name, int *rows, int *cols);
// Describes array i = 0, 1, ... of a model. Returns false past the last. Arrays for looks (colours, cameras, lights)
// and those that MuJoCo alone computes with are not there.
SINEW_API bool sinew_model_field(const SinewModel *model, int i, SinewField *field);

// Holds the numbers that an array of a model shall have: doubles, whole ones where it has integers. This structure does
// not grow.
typedef struct SinewArray {
  const char *name;     // MuJoCo's, of an array whose SinewField has `input`
  const double *value;  // (rows, cols)
  int rows, cols;       // the shape of the array
} SinewArray;

// Returns a copy of a model with other numbers in n arrays: masses, sizes, stiffnesses, ranges, parameters of actuators
// and the like. It moves as MuJoCo does after the same numbers were written into its mjModel, with two differences.
// Frames act as they are given (MuJoCo's sameframe). Made anew is what follows from masses, flags and sizes of
// primitive geoms: body_subtreemass, body_contype, jnt_actuatorid, and geom_rbound and geom_aabb unless given.
//
// Constants of the dynamics at qpos0 stay unless they are given: dof_M0, dof_invweight0, body_invweight0,
// tendon_length0, tendon_invweight0, actuator_acc0. A free body takes its inertia from dof_M0. Costs about a load from
// the cache. Free the copy with sinew_model_free; it does not need the model. Returns NULL and on failure
//   SINEW_ERR_NOT_FOUND    a model has no array of that name
//   SINEW_ERR_UNSUPPORTED  this array, or entry, may not change: the reason
//   SINEW_ERR_ARGUMENT     the shape, an array named twice, a number that is not allowed: its name and index
//   SINEW_ERR_LIMIT, SINEW_ERR_MEMORY  there is no room
SINEW_API SinewModel *sinew_model_with_arrays(const SinewModel *model, const SinewArray *arrays, int n,
                                              SinewError *err);

// Returns a copy of a model with the constants that its other numbers give at qpos0, as mj_setConst makes them. They
// are those named above. In eq_data they are the second anchor of a connect between bodies, and the pose of a weld
// whose eq_data[11] is 1. Free it with sinew_model_free; it does not need the model. Returns NULL and
// SINEW_ERR_ARGUMENT (a NULL pointer), SINEW_ERR_LIMIT or SINEW_ERR_MEMORY on failure.
SINEW_API SinewModel *sinew_model_with_constants(const SinewModel *model, SinewError *err);

// Returns the ranges of the controls (nu, 2), -inf and inf where a control has none; valid as long as the model.
SINEW_API const double *sinew_model_ctrl_range(const SinewModel *model);

// Says what the engine can do with a sensor. Others have the value NaN.
typedef struct SinewSensorInfo {
  bool supported;       // computes its value
  bool differentiable;  // computes its derivative, too
} SinewSensorInfo;
// Returns what the engine can do with sensor `id`.
SINEW_API SinewSensorInfo sinew_model_sensor(const SinewModel *model, int id);

// Says how contacts act. A sigmoid (arXiv 2404.02887) lets bodies act on each other a little before they touch, so that
// derivatives know of it.
typedef enum SinewContactModel {
  SINEW_CONTACT_MUJOCO,  // like MuJoCo's
  SINEW_CONTACT_SIGMOID  // hard, as in Moreau's time stepping, and scaled by a sigmoid of their distance
} SinewContactModel;

// Holds the options of a model, with the names and meaning of MuJoCo's mjOption.
typedef struct SinewOptions {
  size_t size;
  double timestep;       // [s]
  double impratio;       // ratio of friction to normal impedance
  double tolerance;      // solver of constraints
  double ls_tolerance;   // line search of the solver
  double ccd_tolerance;  // convex collision
  double gravity[3];     // [m/s^2]
  double o_margin;       // these four act on all contacts while enableflags has mjENBL_OVERRIDE: margin [m]
  double o_solref[2];
  double o_solimp[5];
  double o_friction[5];
  // These two are not mjOption's. They replace geom_solref, geom_solimp, pair_solref, pair_solimp, o_solref, o_solimp;
  // a number that is NaN leaves theirs.
  double contact_solref[2];
  double contact_solimp[5];
  int integrator;  // mjtIntegrator
  int cone;        // mjtCone
  int iterations;  // solver of constraints
  int ls_iterations;
  int ccd_iterations;
  int disableflags;         // mjtDisableBit
  int enableflags;          // mjtEnableBit
  int disableactuator;      // a bit for each group of actuators
  int noslip_iterations;    // most sweeps of the noslip solver; 0: none
  double noslip_tolerance;  // gain of a sweep below which they end
  double density;           // fluid around everything [kg/m^3]
  double viscosity;         // [N s/m^2]
  double wind[3];           // velocity of the fluid [m/s]
  double magnetic[3];       // magnetic flux, which magnetometers measure
  double sleep_tolerance;   // velocity below which trees fall asleep under flag sleep [m/s]
  // These four are not mjOption's.
  int contact;                 // SinewContactModel; the others are read under SINEW_CONTACT_SIGMOID
  double contact_width;        // width of the sigmoid [m]: contacts begin 20 widths from touch
  double contact_stiffness;    // share of the depth that a step takes back, 0 to 1
  double contact_restitution;  // share of its velocity with which a contact opens again, 0 to 1
} SinewOptions;

// Returns options to be filled in by sinew_model_get_options.
static inline SinewOptions sinew_default_options(void) {
  SinewOptions x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}
// Fills in the options of a model; contact_solref and contact_solimp are NaN. Returns SINEW_ERR_ARGUMENT for a NULL
// pointer or a `size` that is not set.
SINEW_API SinewStatus sinew_model_get_options(const SinewModel *model, SinewOptions *options, SinewError *err);
// Returns a copy of a model with other options: start from those of sinew_model_get_options. Allowed are a timestep in
// (0, 1], an impratio above 0, tolerances of at least 0, iterations from 0 to 10000, finite numbers. The noslip
// solver has at most 200 iterations. Density and viscosity are at least 0. SINEW_ERR_ARGUMENT names the option that is
// out of range, SINEW_ERR_UNSUPPORTED an integrator or flags that the engine does not have. Costs about a
// load from the cache. Free the copy with sinew_model_free; it does not need the model.
//
// The integrator discrete (mjINT_DISCRETE) goes without noslip, fluids, electric motors, and the flags sleep, diagexact
// and speculative. It takes a model whose file asks for the solver PGS as if that were Newton.
//
// Under SINEW_CONTACT_SIGMOID the integrators RK4 and discrete, flags sleep and speculative, and adhesion are not
// supported. Contacts from distance (SinewCfd) and steps of chosen sizes are not, either. Limits, equalities and losses
// act as ever.
SINEW_API SinewModel *sinew_model_with_options(const SinewModel *model, const SinewOptions *options, SinewError *err);

// ---- one body ----

// Makes a body at qpos0. Under flag sleep its trees fall asleep and wake as MuJoCo's do. To keep such a body's state,
// keep tree_asleep and sleep_qpos, too, the positions at which trees sleep, and write all of it back. Rollouts of
// batches, planners and runs with chosen steps have all trees awake, as if the flag were off.
// The memory of a body grows with the number of its contacts, between steps. Free it with sinew_data_free. Returns NULL
// and SINEW_ERR_MEMORY or SINEW_ERR_LIMIT on failure.
SINEW_API SinewData *sinew_data_create(const SinewModel *model, SinewError *err);
// Frees a body. Accepts NULL.
SINEW_API void sinew_data_free(SinewData *data);
// Returns the model that a body was made of.
SINEW_API const SinewModel *sinew_data_model(const SinewData *data);

// Puts a body at qpos0: zero time, velocity, activation, control; mocap bodies where the model has them. Controls that
// are a quaternion turn nothing.
SINEW_API SinewStatus sinew_data_reset(SinewData *data, SinewError *err);
// Puts a body into keyframe `key`.
SINEW_API SinewStatus sinew_data_reset_keyframe(SinewData *data, int key, SinewError *err);
// Puts a body into a state, which may be views of its own. Controls stay, the solver's warm start is cleared, buffers
// of controls and sensors ("history") are as after a reset.
// SINEW_ERR_DIVERGED names a number that is NaN or beyond 1e10.
SINEW_API SinewStatus sinew_data_set_state(SinewData *data, const SinewState *state, SinewError *err);
// Returns views of the state of a body, valid until it is freed; `mocap` is a copy of the time of the call.
SINEW_API SinewState sinew_data_state(SinewData *data);
// Copies all that the next step depends on from a body of the same model: state, controls, warm start.
SINEW_API SinewStatus sinew_data_copy_state(SinewData *to, const SinewData *from, SinewError *err);
// Returns the time [s].
SINEW_API double sinew_data_time(const SinewData *data);

// Returns an array of a body under MuJoCo's name ("qpos", "xpos", "qfrc_bias", "sensordata", "efc_force"), or NULL when
// there is none of this name and type. time, qpos, qvel, act, ctrl, history, mocap_pos, mocap_quat, qacc_warmstart and,
// under flag sleep, tree_asleep and sleep_qpos are inputs: write them between calls. Others are outputs of the last
// sinew_forward or sinew_step. A step computes them at the state before it, as MuJoCo does (RK4: where it evaluates
// last). The shape goes to rows and cols, which may be NULL. Views are valid until the body is freed; those of
// contacts' rows (efc_*) until the next step, forward or derivative.
//
// A step leaves out what nothing reads, e.g. frames of geoms that touch nothing. Such an array is computed from the
// next step or forward on after it was first asked for, and NaN until then.
SINEW_API double *sinew_data_array(SinewData *data, const char *name, int *rows, int *cols);
// Returns an array of integers likewise ("ncon", "ten_wrapadr", "efc_type").
SINEW_API int *sinew_data_int_array(SinewData *data, const char *name, int *rows, int *cols);
// Describes array i = 0, 1, ... of a body. Returns false past the last.
SINEW_API bool sinew_data_field(const SinewData *data, int i, SinewField *field);

// Computes everything at the present state, sensordata included, without a step (mj_forward). Changes no input. Costs
// about a step. Returns SINEW_ERR_DIVERGED as sinew_step, or SINEW_ERR_MEMORY on failure.
SINEW_API SinewStatus sinew_forward(SinewData *data, SinewError *err);
// Makes `steps` steps under the present controls (mj_step). Computes sensordata only after sinew_data_set_sensors.
// SINEW_ERR_DIVERGED: an input, a state or an acceleration is NaN or beyond 1e10; the body stays at the last good
// state. `err` names the step and the number. SINEW_ERR_MEMORY: contacts found no room; the body stays before the step.
SINEW_API SinewStatus sinew_step(SinewData *data, int steps, SinewError *err);
// Sets whether the last step of each call computes sensordata, too, as mj_step does: at the state before it. It does
// not at first. Steps stay the same, bit for bit.
SINEW_API void sinew_data_set_sensors(SinewData *data, bool on);

// Holds a contact, with the conventions of MuJoCo's mjContact. This structure does not grow.
typedef struct SinewContact {
  double dist;         // distance of the nearest points, negative: penetration [m]
  double pos[3];       // midpoint of them [m]
  double frame[9];     // rows: normal from geom[0] to geom[1], two tangents
  double friction[5];  // tangent 1 and 2, spin [m], roll 1 and 2 [m]
  double force[6];     // by the solver, in the frame: normal, tangents [N], moments [N m]
  int dim;             // 1, 3, 4 or 6
  int geom[2];
  int efc_address;  // first row, -1: none
} SinewContact;

// Returns the number of contacts of the last step or forward.
SINEW_API int sinew_data_ncon(const SinewData *data);
// Writes contact i, 0 <= i < ncon, of the last step or forward.
SINEW_API SinewStatus sinew_data_contact(const SinewData *data, int i, SinewContact *contact, SinewError *err);

// Names what happened in steps, as bits.
enum {
  SINEW_WARN_CONTACTS = 1,       // more contacts than the model allows; the last ones were dropped
  SINEW_WARN_CONSTRAINTS = 2,    // more rows of constraints than it allows; the last ones were dropped
  SINEW_WARN_BAD_STATE = 4,      // NaN or beyond 1e10
  SINEW_WARN_NOT_CONVERGED = 8,  // the solver used all its iterations
  SINEW_WARN_INERTIA = 16        // the inertia matrix is not positive definite
};
// Returns the bits (SINEW_WARN_*) of all steps since sinew_data_clear_warnings, or a reset.
SINEW_API unsigned sinew_data_warnings(const SinewData *data);
// Clears them.
SINEW_API void sinew_data_clear_warnings(SinewData *data);

// Returns the bytes of memory of a body, and how often it has grown.
SINEW_API size_t sinew_data_memory(const SinewData *data, int *grown);

// ---- contacts from distance ----

// Says where contacts act from a distance.
typedef enum SinewCfdUse {
  SINEW_CFD_NONE,      // MuJoCo's contacts
  SINEW_CFD_BACKWARD,  // in derivatives only (straight-through)
  SINEW_CFD_FORWARD    // in steps and derivatives: bodies hover, for study
} SinewCfdUse;

// Holds the settings of contacts from distance (CFD; A. Paulus et al., 2025, arXiv 2506.14186): bodies that do not
// touch push each other a little, so that derivatives know of contacts to come.
typedef struct SinewCfd {
  size_t size;
  SinewCfdUse use;
  double solimp[5];           // impedance at the reach, at touch, reach [m], midpoint, power; 0: that of 0 0.1 1 1 4
  double softplus;            // width of the softplus that replaces the depth [m]; 0: 0.002
  bool friction;              // contacts at a distance have rows of friction
  bool surrogate;             // derivatives carry contact points rigidly with the bodies, for comparison
  const char *const *bodies;  // (.., NULL) bodies that take part, with all that hangs on them; NULL: all
  double smooth;  // length over which contacts of boxes, and of cylinders on planes, are smoothed [m]; 0: not
} SinewCfd;

// Returns settings without contacts from distance.
static inline SinewCfd sinew_default_cfd(void) {
  SinewCfd x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}
// Sets how contacts of a body act from now on; `bodies` is read during the call. Returns SINEW_ERR_ARGUMENT,
// SINEW_ERR_NOT_FOUND (a body), SINEW_ERR_UNSUPPORTED (of a model with flag sleep) or SINEW_ERR_MEMORY on failure.
SINEW_API SinewStatus sinew_data_set_cfd(SinewData *data, const SinewCfd *cfd, SinewError *err);

// ---- derivatives of a step ----
//
// All are taken at the present state and controls, which stay as they are. Outputs but sensordata are those of the
// present state afterwards, under SINEW_CFD_BACKWARD with the contacts from distance, until the next step or forward.
// They are exact: derivatives of what sinew_step computes, with the solver at its solution. A tangent of a state is
// (dqpos, dqvel, dact), nstate = 2 nv + na numbers: rotations of balls and free bodies count 3 as in qvel. A step is
// not smooth where a joint reaches a limit, bodies begin to touch or a muscle's control equals its activation. One of
// the one-sided derivatives is given there.

// Chooses how derivatives by positions are given.
typedef enum SinewCoordinates {
  SINEW_TANGENT,  // nv numbers: as qvel
  SINEW_ARRAY     // nq numbers: by the entries of qpos; the part along a quaternion is zero
} SinewCoordinates;

// Computes A (nstate, nstate) and B (nstate, nu) of a step, x' = A dx + B du. Computes C (nsensordata, nstate) and D
// (nsensordata, nu) of the sensors at its begin, too, as mjd_transitionFD does. Positions count by their tangent,
// sensors that are quaternions by their array. Each of the four may be NULL. The first call allocates. Returns
// SINEW_ERR_DIVERGED, SINEW_ERR_UNSUPPORTED (C or D of a sensor without a derivative) or SINEW_ERR_MEMORY on failure.
SINEW_API SinewStatus sinew_step_jacobian(SinewData *data, double *A, double *B, double *C, double *D, SinewError *err);

// Holds derivatives of a number by parts of a state, as inputs or outputs. An array that is NULL: zero, not wanted.
typedef struct SinewStateBar {
  double *qpos;  // (nv) or (nq)
  double *qvel;  // (nv)
  double *act;   // (na)
} SinewStateBar;

// Computes a vector-Jacobian product of a step, at the cost of about two steps, one more where the next positions have
// quaternions as arrays. Given is the derivative of a function by the next state, `next`, and by sensordata at the
// step's begin (nsensordata, or NULL). Wanted is its derivative by the present state, `state_bar`, and by the controls,
// ctrl_bar (nu, or NULL). Either structure may be NULL. Fails as sinew_step_jacobian; SINEW_ERR_ARGUMENT names a number
// that is not finite.
SINEW_API SinewStatus sinew_step_vjp(SinewData *data, SinewCoordinates coordinates, const SinewStateBar *next,
                                     const double *sensordata_bar, const SinewStateBar *state_bar, double *ctrl_bar,
                                     SinewError *err);

// Moves positions along a tangent: moved (nq) is qpos (nq), displaced by scale times tangent (nv), with quaternions of
// unit length, as mj_integratePos makes it. `moved` may be qpos itself. Any thread may call it. Returns
// SINEW_ERR_ARGUMENT, which names a NULL pointer or a number that is NaN or beyond 1e10, on failure.
SINEW_API SinewStatus sinew_model_integrate(const SinewModel *model, const double *qpos, const double *tangent,
                                            double scale, double *moved, SinewError *err);
// Computes the tangent (nv) that leads from qpos1 (nq) to qpos2 (nq), the shorter way round for rotations, as
// mj_differentiatePos does for a time of 1. Any thread may call it. Fails as sinew_model_integrate.
SINEW_API SinewStatus sinew_model_difference(const SinewModel *model, const double *qpos1, const double *qpos2,
                                             double *tangent, SinewError *err);

// ---- parameters of a model ----

// Makes parameters of whatever a model is made from: entries of arrays, attributes of MJCF, many at once. plus and
// minus (count) hold the model with parameter p moved up and down by step[p]: compiled anew, or made by
// sinew_model_with_arrays. Derivatives by the fields of the model are exact. Central differences of these models, whose
// error is of second order in the step, multiply them. A step of 1e-5 of a parameter's size does.
// sinew_batch_vjp and sinew_integrator_vjp take them. None of the models is needed afterwards. Free them with
// sinew_parameters_free. Any number of threads may share them. Returns NULL and on failure
//   SINEW_ERR_ARGUMENT     a pointer, a step that is not above 0, a model of another structure
//   SINEW_ERR_UNSUPPORTED  a parameter moves an integer, or a number without a derivative: the text names it. These are
//                          the time step, impratio, vertices of meshes, divisors of pulleys, anchors of connect and
//                          weld, actfrcrange of tendons, cranks, periods of setpoints
//   SINEW_ERR_MEMORY       there is no room
SINEW_API SinewParameters *sinew_parameters_create(const SinewModel *model, const SinewModel *const *plus,
                                                   const SinewModel *const *minus, const double *step, int count,
                                                   SinewError *err);
// Frees parameters. Accepts NULL.
SINEW_API void sinew_parameters_free(SinewParameters *parameters);
// Returns the number of parameters.
SINEW_API int sinew_parameters_count(const SinewParameters *parameters);

// ---- interrupts ----

// Returns whether the call under way shall end; `user` is what was handed in with the function. It is asked about every
// 10 ms by the thread that makes the call, and by no other. After true the call ends within about a step and returns
// SINEW_ERR_INTERRUPTED: results hold anything and none are kept. The handle goes on to work. Rollouts
// outlast the interruption of their derivatives, a plan in force that of the next. On a device it is asked between
// launches, by a planner between iterations.
typedef bool (*SinewInterrupt)(void *user);

// ---- integration with chosen steps ----

// Says how to integrate a body over a horizon by an explicit Runge-Kutta method. The state (qpos, qvel, act) moves by
// (qvel, qacc, act_dot) as sinew_forward computes them, without the implicit damping of Euler's method; positions move
// on the group. Zeros are refused where a number above 0 is asked for: begin with sinew_default_integrator.
typedef struct SinewIntegratorDef {
  size_t size;
  const SinewModel *model;   // must outlive the integrator
  const char *method;        // euler, heun, midpoint, ralston, bosh3, rk4, tsit5, dopri5 or dopri8
  double rtol, atol;         // relative and absolute tolerance, above 0, at most 1
  double fixed_step;         // above 0: all steps have this size, no error is controlled [s]; euler and rk4 need it
  double first_step;         // [s]; 0: chosen
  double smallest_step;      // [s]; 0: what rounding of the time leaves
  double largest_step;       // [s]; 0: the horizon
  double p, i, d;            // gains of the controller of the step (PID)
  double safety;             // factor of the size that it proposes
  double shrink, grow;       // least and largest factor from a step to the next
  int max_steps;             // most steps, rejected ones included
  bool linear;               // controls go linearly between knots; else each holds until the next
  bool stop_at_outputs;      // steps end at output times; else outputs are interpolated between steps
  bool gradients;            // keep what sinew_integrator_vjp needs
  size_t memory;             // most bytes for steps that are kept; pages that no step reaches are not touched. The way
                             // back computes steps again, to the same bits, where these do not hold all
  const SinewCfd *cfd;       // contacts from distance; NULL: none
  bool events;               // steps end where a contact or limit begins to act, ends with a force, sticks or slides;
                             // fixed ones do not
  SinewInterrupt interrupt;  // ends runs and ways back; of a list that of the first; NULL: nothing does
  void *interrupt_user;      // handed to it
} SinewIntegratorDef;

// Returns the defaults: tsit5, tolerances 1e-5, gains 0.2, 0.4, 0, safety 0.9, factors 0.2 to 10, 100000 steps, 1 GiB,
// events.
static inline SinewIntegratorDef sinew_default_integrator(void) {
  SinewIntegratorDef x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  x.method = "tsit5";
  x.rtol = x.atol = 1e-5;
  x.p = 0.2;
  x.i = 0.4;
  x.safety = 0.9;
  x.shrink = 0.2;
  x.grow = 10;
  x.max_steps = 100000;
  x.memory = 1u << 30;
  x.events = true;
  return x;
}

// Makes an integrator and reserves its memory. Free it with sinew_integrator_free. Returns NULL and
// SINEW_ERR_ARGUMENT, which names what is wrong and what is allowed, SINEW_ERR_NOT_FOUND (a method, a body of `cfd`) or
// SINEW_ERR_MEMORY on failure.
SINEW_API SinewIntegrator *sinew_integrator_create(const SinewIntegratorDef *def, SinewError *err);
// Frees an integrator. Accepts NULL.
SINEW_API void sinew_integrator_free(SinewIntegrator *integrator);

// Tells how an integration ended.
typedef enum SinewIntegrationEnd {
  SINEW_END_DONE,      // at the end of its horizon
  SINEW_END_STEPS,     // max_steps do not suffice: a stiff contact that rests costs steps as long as it rests
  SINEW_END_SMALLEST,  // the tolerance asks for a step below the smallest one
  SINEW_END_DIVERGED,  // a state or an acceleration is NaN or beyond 1e10 at any size of the step
  SINEW_END_MEMORY     // `memory` does not hold what the way back needs, not even with steps replayed
} SinewIntegrationEnd;

// Returns the words for an end; valid for ever.
SINEW_API const char *sinew_integration_end_text(SinewIntegrationEnd end);

// Holds the horizon of an integration, and where its results go. Times count from the initial state [s].
typedef struct SinewIntegration {
  size_t size;
  double duration;          // above 0
  int nknot;                // number of knots of the controls; 0: controls are zero
  const double *knot_time;  // (nknot) ascending; before the first and behind the last knot their controls hold
  const double *knot;       // (nknot, nu)
  int nout;                 // number of outputs
  const double *out_time;   // (nout) ascending, 0 to duration
  // Outputs, each may be NULL; NaN behind the end of a run that was not done.
  double *out_qpos;  // (nout, nq)
  double *out_qvel;  // (nout, nv)
  double *out_act;   // (nout, na)
} SinewIntegration;

// Returns zeros.
static inline SinewIntegration sinew_default_integration(void) {
  SinewIntegration x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Reports an integration.
typedef struct SinewIntegrationReport {
  size_t size;
  SinewIntegrationEnd end;
  double reached;     // time that it reached [s]
  int accepted;       // steps
  int rejected;       // attempts whose error was too large
  int evaluations;    // how often the dynamics were evaluated
  unsigned warnings;  // SINEW_WARN_* bits of all its steps, rejected ones included
} SinewIntegrationReport;

// Returns zeros.
static inline SinewIntegrationReport sinew_default_integration_report(void) {
  SinewIntegrationReport x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Integrates from a state. How it ended is data (report->end), not an error; `report` may be NULL only where the caller
// does not care. One thread, which computes the same numbers each time. Returns SINEW_ERR_ARGUMENT (times, a number
// that is NaN or beyond 1e10), SINEW_ERR_DIVERGED (such a number in `from`) or SINEW_ERR_MEMORY on failure.
SINEW_API SinewStatus sinew_integrator_run(SinewIntegrator *integrator, const SinewState *from,
                                           const SinewIntegration *run, SinewIntegrationReport *report,
                                           SinewError *err);

// Writes the starts of the last run's steps, as many as time (n) takes. Returns how many steps there were; 0 without
// gradients.
SINEW_API int sinew_integrator_steps(const SinewIntegrator *integrator, double *time, int n);

// Chooses an adjoint of an integration. SINEW_BACKSOLVE solves that of the motion by steps of its own: it is a check of
// the other, and costs several times as much.
typedef enum SinewAdjoint {
  SINEW_DISCRETE,  // adjoint of its steps
  SINEW_BACKSOLVE  // adjoint of the motion
} SinewAdjoint;

// Holds derivatives of a number by the outputs of an integration, and where those by its inputs go. Each may be NULL.
typedef struct SinewIntegrationBars {
  size_t size;
  SinewCoordinates coordinates;       // coordinates of positions, of outputs and of the initial state
  const double *out_qpos;             // (nout, nv or nq)
  const double *out_qvel;             // (nout, nv)
  const double *out_act;              // (nout, na)
  double *qpos;                       // (nv or nq) by the initial state
  double *qvel;                       // (nv)
  double *act;                        // (na)
  double *knot;                       // (nknot, nu) by the controls
  double *mocap;                      // (nmocap, 6) by displacements, then by turns about the world's axes
  const SinewParameters *parameters;  // parameters of the integrator's model
  double *parameter;                  // (count of parameters) by them
  SinewAdjoint adjoint;               // SINEW_DISCRETE
} SinewIntegrationBars;

// Returns zeros.
static inline SinewIntegrationBars sinew_default_integration_bars(void) {
  SinewIntegrationBars x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Runs the adjoint of the last run, which was done, over its steps. May be called any number of times; a run that was
// refused ends that. Outputs hold no derivatives after a failure. With `events` it knows that the moments of touch and
// release move. It does not where none was found: where a contact grazes, or the number of a pair's contacts changes at
// a depth. Corners that touch at once count as one. With fixed steps it is the derivative of what the steps compute.
// Returns SINEW_ERR_STATE (no such run, no gradients), SINEW_ERR_ARGUMENT (a bar that is not finite) or
// SINEW_ERR_DIVERGED, SINEW_ERR_INTERRUPTED on failure. SINEW_BACKSOLVE refuses, by SINEW_ERR_ARGUMENT, parameters and
// methods without an estimate of the error.
SINEW_API SinewStatus sinew_integrator_vjp(SinewIntegrator *integrator, const SinewIntegrationBars *bars,
                                           SinewError *err);

// ---- collision alone ----

// Holds what sinew_geom_distance finds. This structure does not grow.
typedef struct SinewDistance {
  double dist;       // signed distance, negative: penetration depth, the least displacement that parts the geoms [m]
  double from[3];    // nearest point on geom1 [m]
  double to[3];      // nearest point on geom2 [m]; to - from = dist normal
  double normal[3];  // out of geom1 towards geom2, unit length
} SinewDistance;

// Computes the distance of two geoms at the poses that the last sinew_forward or sinew_step has computed. The model's
// filters of contacts, margins and gaps play no role. Not nearer than `limit` [m], which may be infinity: dist is
// limit, the points and the normal are zero. Points and normal are exact, where MuJoCo's convex pairs are good to the
// options' ccd_tolerance. Costs up to some tens of microseconds. Returns SINEW_ERR_ARGUMENT, SINEW_ERR_UNSUPPORTED (no
// collider for their types, or a mesh that was left out on loading because nothing can touch it) or SINEW_ERR_STATE (no
// forward yet, or nearest points cannot be found) on failure.
SINEW_API SinewStatus sinew_geom_distance(SinewData *data, int geom1, int geom2, double limit, SinewDistance *distance,
                                          SinewError *err);

// Holds derivatives of a distance by n coordinates; each may be NULL. This structure does not grow.
typedef struct SinewDistanceJacobian {
  double *dist;    // (n)
  double *from;    // (3, n)
  double *to;      // (3, n)
  double *normal;  // (3, n)
} SinewDistanceJacobian;

// Computes the distance of two geoms as sinew_geom_distance does (distance may be NULL), and its derivatives by qpos,
// as its tangent: n = nv. They are zero beyond the limit. At a kink another feature is as near: parallel edges or
// faces, the middle of a box. Then they are those of the features found, the points being carried with them, and dist's
// lies between the one-sided ones. Fails as sinew_geom_distance.
SINEW_API SinewStatus sinew_geom_distance_jacobian(SinewData *data, int geom1, int geom2, double limit,
                                                   SinewDistance *distance, const SinewDistanceJacobian *jacobian,
                                                   SinewError *err);

// Holds a geom of a model at a pose of the caller's choice. This structure does not grow.
typedef struct SinewGeomPose {
  int geom;        // says type, sizes and mesh
  double pos[3];   // centre [m]
  double quat[4];  // orientation, of any length but zero
} SinewGeomPose;

// Computes the distance of two geoms at any poses as sinew_geom_distance does, and its derivatives by these: n = 12.
// First come the displacement (3) [m] of the first geom and its turn (3) [rad] about its centre, both along the world's
// axes. Next come those of the second. distance and jacobian may be NULL. Any number of threads may call it at once.
// Returns SINEW_ERR_ARGUMENT, SINEW_ERR_UNSUPPORTED or SINEW_ERR_STATE on failure, as sinew_geom_distance.
SINEW_API SinewStatus sinew_geom_distance_at(const SinewModel *model, const SinewGeomPose *first,
                                             const SinewGeomPose *second, double limit, SinewDistance *distance,
                                             const SinewDistanceJacobian *jacobian, SinewError *err);

// ---- tasks ----

// Loads a task from a YAML file (planner/tasks/README.md documents it). Free it with sinew_task_free. Returns NULL and
// SINEW_ERR_FORMAT (a list of every mistake as file:line:column), SINEW_ERR_NOT_FOUND, SINEW_ERR_IO, SINEW_ERR_LIMIT
// (too large a file), SINEW_ERR_ARGUMENT or SINEW_ERR_MEMORY on failure.
SINEW_API SinewTask *sinew_task_load(const char *path, SinewError *err);
// Reads a task from text[size]; `name` stands for the file in messages, and a task that it begins from is looked for
// beside that. Fails as sinew_task_load.
SINEW_API SinewTask *sinew_task_parse(const char *text, size_t size, const char *name, SinewError *err);
// Frees a task. Nothing made of it may be in use. Accepts NULL.
SINEW_API void sinew_task_free(SinewTask *task);
// Return the task's name, and the name or path of its model as the file has it; valid as long as the task.
SINEW_API const char *sinew_task_name(const SinewTask *task);
SINEW_API const char *sinew_task_model(const SinewTask *task);
// Returns the YAML that sinew_task_parse makes the same task of, valid as long as the task. It is that of the file, and
// where the task begins from others (`base`) all that they say together.
SINEW_API const char *sinew_task_text(const SinewTask *task);

// Describes a measure of success: the run is one when all of them are met. New members come at the end.
typedef struct SinewMeasure {
  const char *name;  // valid as long as the task
  double below;      // met where the value is at most this
  double during;     // for so long at the end of the run [s]; 0: at the end alone
} SinewMeasure;
// Returns measure i = 0, 1, ... of a task, NULL past the last; valid as long as the task.
SINEW_API const SinewMeasure *sinew_task_measure(const SinewTask *task, int i);

// Holds what a task says of the simulated robot that its plans move: how all of its contacts yield. NaN stands for the
// model's own. New members come at the end.
typedef struct SinewTaskPlant {
  double solref[2];  // geom_solref of all
  double solimp[5];  // geom_solimp of all
} SinewTaskPlant;
// Returns what a task says of the simulated robot; valid as long as the task.
SINEW_API const SinewTaskPlant *sinew_task_plant(const SinewTask *task);

// ---- backends ----

// Says how to open a backend. A device gives a world a warp of 32 threads. It gives 8 to the rollouts of a batch
// without gradients, if they are more than run at once with 32; last digits differ then. With block_threads 1 a thread
// has a world of a rollout alone. It makes some twenty thousand worlds and more faster, and few slower. The device then
// keeps room for all threads that it could run at once, tens of GB for a hand, until the process ends. A model whose
// world is too large for a thread is refused.
typedef struct SinewBackendOptions {
  size_t size;
  int threads;         // threads of the CPU; 0: as many as this process may use
  int device;          // index among the devices of its kind
  double memory;       // budget of device memory [bytes]; 0: what the device has
  const char *folder;  // folder of libsinew_NAME.so; NULL: sinew beside this library, or the linker's
  // To measure what is best on a device.
  const char *chain;  // not read: gradient=products multiplies Jacobians in one way
  int block_threads;  // threads of a world of a rollout: 1, 8 or 32; 0: what is best, see above; others have 32
  int block_shared;   // not read: no memory of blocks is shared
} SinewBackendOptions;

// Returns options of zeros.
static inline SinewBackendOptions sinew_default_backend(void) {
  SinewBackendOptions x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Opens a backend by name: "cpu" (in doubles), "cuda" (in floats), "cuda_double". `options` may be NULL. A backend
// serves one call at a time: batches and planners of one backend belong to one thread at a time together. Returns NULL
// and SINEW_ERR_NOT_FOUND (no such library or device), SINEW_ERR_UNSUPPORTED (a library of another version),
// SINEW_ERR_ARGUMENT or SINEW_ERR_MEMORY on failure. Close it with sinew_backend_close.
SINEW_API SinewBackend *sinew_backend_open(const char *name, const SinewBackendOptions *options, SinewError *err);
// Closes a backend, after all that uses it was freed. Accepts NULL.
SINEW_API void sinew_backend_close(SinewBackend *backend);
// Returns the names of the backends that could be opened, NULL at the end; valid for ever.
SINEW_API const char *const *sinew_backend_names(void);
// Returns one line for people: device, number type, threads; valid as long as the backend.
SINEW_API const char *sinew_backend_description(const SinewBackend *backend);

// ---- many bodies ----

// Makes steps of `count` bodies, of any models, on the threads of a CPU: each body's as sinew_step does, bit for bit.
// Who wants to stop between steps asks for few at a time. status (count) gets what becomes of each body: SINEW_OK, or
// SINEW_ERR_DIVERGED, which is data and no error of the call. Returns and changes nothing on
//   SINEW_ERR_ARGUMENT     a pointer, a size, a body that is listed twice
//   SINEW_ERR_UNSUPPORTED  the backend is no CPU
// Returns SINEW_ERR_MEMORY when a body has found no room for contacts; `status` and the text tell which.
SINEW_API SinewStatus sinew_bodies_step(SinewBackend *backend, SinewData *const *data, int count, int steps,
                                        int *status, SinewError *err);
// Computes everything at the present state of each body likewise, as sinew_forward does.
SINEW_API SinewStatus sinew_bodies_forward(SinewBackend *backend, SinewData *const *data, int count, int *status,
                                           SinewError *err);

// Integrates `count` bodies, whose models have one structure, on the threads of a CPU: each as sinew_integrator_run
// does, bit for bit. Members of `from`, but for time, have a row (count, .) for each body; so have knot (count, nknot,
// nu) and the outputs (count, nout, .) of `run`. Times are common. reports (count), each from
// sinew_default_integration_report, tell how each ended; NULL: nothing does. Returns SINEW_ERR_ARGUMENT (a pointer, a
// size, an integrator that is listed twice, models of two structures), SINEW_ERR_UNSUPPORTED (the backend is no CPU),
// SINEW_ERR_INTERRUPTED, or what
// the first of the list returned whose run was refused.
SINEW_API SinewStatus sinew_integrators_run(SinewBackend *backend, SinewIntegrator *const *integrators, int count,
                                            const SinewState *from, const SinewIntegration *run,
                                            SinewIntegrationReport *reports, SinewError *err);
// Runs the adjoints of their last runs likewise, which were one call of sinew_integrators_run. All arrays of `bars`
// have a row for each body: out_qpos (count, nout, .), qpos (count, .), knot (count, nknot, nu), parameter (count,
// count of parameters), which are common. status (count) gets what sinew_integrator_vjp returned of each: SINEW_OK,
// SINEW_ERR_STATE (a run that was not done) or SINEW_ERR_DIVERGED; rows of derivatives are then zero. Both are data and
// no error of the call. Fails as sinew_integrators_run.
SINEW_API SinewStatus sinew_integrators_vjp(SinewBackend *backend, SinewIntegrator *const *integrators, int count,
                                            const SinewIntegrationBars *bars, int *status, SinewError *err);

// Describes nearest points of K pairs of geoms at N states; each output may be NULL.
typedef struct SinewNearestPoints {
  size_t size;
  const SinewModel *model;
  int count;                 // N
  const double *qpos;        // (N, nq); NULL: qpos0
  const double *mocap;       // (N, nmocap, 7) poses of mocap bodies; NULL: the model's
  int npair;                 // K
  const int *pair;           // (K, 2) geoms
  double limit;              // distance beyond which none are looked for [m]; 0: no limit
  double *dist;              // (N, K) as SinewDistance has them, and so do the others
  double *from;              // (N, K, 3)
  double *to;                // (N, K, 3)
  double *normal;            // (N, K, 3)
  SinewInterrupt interrupt;  // ends calls, the way back too; NULL: nothing does
  void *interrupt_user;      // handed to it
} SinewNearestPoints;

// Returns zeros.
static inline SinewNearestPoints sinew_default_nearest_points(void) {
  SinewNearestPoints x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Finds nearest points as sinew_geom_distance does, on the threads of a CPU, the same bits whatever their number. The
// states need no body: only poses are computed of them. Returns SINEW_ERR_ARGUMENT, SINEW_ERR_DIVERGED (a state with a
// number that is NaN or beyond 1e10), SINEW_ERR_MEMORY or SINEW_ERR_INTERRUPTED on failure. Returns
// SINEW_ERR_UNSUPPORTED (the backend is no CPU) and SINEW_ERR_STATE too, as sinew_geom_distance. Then outputs hold
// anything, and the text tells where.
SINEW_API SinewStatus sinew_nearest_points(SinewBackend *backend, const SinewNearestPoints *points, SinewError *err);

// Holds derivatives of a number by nearest points, and where those by states go. Each may be NULL.
typedef struct SinewNearestBars {
  size_t size;
  SinewCoordinates coordinates;       // coordinates of positions
  bool surrogate;                     // points are carried rigidly by their geoms, for comparison
  const double *dist;                 // (N, K)
  const double *from;                 // (N, K, 3)
  const double *to;                   // (N, K, 3)
  const double *normal;               // (N, K, 3)
  double *qpos;                       // (N, nv or nq)
  double *mocap;                      // (N, nmocap, 6) by displacements, then by turns about the world's axes
  const SinewParameters *parameters;  // parameters of the model
  double *parameter;                  // (N, count of parameters) by them
} SinewNearestBars;

// Returns zeros.
static inline SinewNearestBars sinew_default_nearest_bars(void) {
  SinewNearestBars x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Runs the adjoint of sinew_nearest_points, which it computes again: `points` says at which states; its outputs are not
// written. At kinks it gives what sinew_geom_distance_jacobian says. Fails likewise, with SINEW_ERR_ARGUMENT for a bar
// that is not finite and SINEW_ERR_DIVERGED for a derivative that is not.
SINEW_API SinewStatus sinew_nearest_points_vjp(SinewBackend *backend, const SinewNearestPoints *points,
                                               const SinewNearestBars *bars, SinewError *err);

// ---- many rollouts ----

// Says what a batch is made of. Model, task and backend must outlive it.
typedef struct SinewBatchDef {
  size_t size;
  const SinewModel *model;
  const SinewTask *task;  // gives the cost, and options of the model; NULL: no cost, all costs are 0
  SinewBackend *backend;
  int capacity;              // most rollouts of a call
  int steps;                 // most steps of a rollout
  bool gradients;            // keep what the way back needs, and reserve memory for it
  double max_velocity;       // a faster joint means divergence [rad/s, m/s]; 0: 1e10
  const SinewCfd *cfd;       // contacts from distance; NULL: none
  SinewInterrupt interrupt;  // ends calls, on creation while the body settles; NULL: nothing does
  void *interrupt_user;      // handed to it
} SinewBatchDef;

// Returns a definition of zeros.
static inline SinewBatchDef sinew_default_batch(void) {
  SinewBatchDef x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Makes a batch and allocates all that its calls need: they allocate nothing. A task's initial state, and the targets
// that it fixes there, take as long as the body needs to settle. Free it with sinew_batch_free. Returns NULL and on
// failure
//   SINEW_ERR_ARGUMENT     a pointer, a size
//   SINEW_ERR_NOT_FOUND    names of the task, or bodies of `cfd`, that the model has not
//   SINEW_ERR_FORMAT       sizes, units or kinds in the task that do not fit the model, and such names
//   SINEW_ERR_UNSUPPORTED  the backend makes no batches, or no gradients; a term of the cost has none
//   SINEW_ERR_STATE        the body diverges before it has settled
//   SINEW_ERR_LIMIT, SINEW_ERR_MEMORY  there is no room
//   SINEW_ERR_INTERRUPTED  interrupted while the body settles
SINEW_API SinewBatch *sinew_batch_create(const SinewBatchDef *def, SinewError *err);
// Frees a batch. Accepts NULL.
SINEW_API void sinew_batch_free(SinewBatch *batch);
// Returns the model of the batch: that of the definition with the task's options. It stays valid as long as the batch.
SINEW_API const SinewModel *sinew_batch_model(const SinewBatch *batch);
// Returns the state in which the task begins, without a seed; without a task qpos0 at rest. It stays valid as long as
// the batch.
SINEW_API SinewState sinew_batch_initial(const SinewBatch *batch);
// Returns about the bytes of the program's own memory that the worlds, states and controls of a batch take at most. A
// copy of the model with a task's options comes on top. Pages that no step reaches are not touched.
SINEW_API size_t sinew_batch_memory(const SinewBatch *batch);
// Returns the number of terms of the task's cost; 0 without a task.
SINEW_API int sinew_batch_terms(const SinewBatch *batch);

// Holds rollouts: N = count initial states, N control sequences of T = steps steps, and where results go. Arrays of
// results may be NULL; results are always N. A trajectory has rows for the states 0 to T. Rows after the good states of
// a rollout that has diverged are NaN. Sensors that the engine does not have are NaN. At the last state the controls of
// the last step stand.
typedef struct SinewRollouts {
  size_t size;
  int count, steps;  // N and T
  bool one_state;    // all begin in one state: time, qpos, qvel, act, mocap, qacc_warmstart have one row
  bool one_ctrl;     // all have the same controls: (T, nu)
  // Initial states; NULL as in SinewState.
  const double *time;   // (N) [s]
  const double *qpos;   // (N, nq)
  const double *qvel;   // (N, nv)
  const double *act;    // (N, na)
  const double *mocap;  // (N, nmocap, 7)
  const double *ctrl;   // (N, T, nu); NULL: zero
  // Trajectories.
  double *out_time;        // (N, T + 1)
  double *out_qpos;        // (N, T + 1, nq)
  double *out_qvel;        // (N, T + 1, nv)
  double *out_act;         // (N, T + 1, na)
  double *out_sensordata;  // (N, T + 1, nsensordata) of each state under its controls
  // Results.
  double *cost;        // (N) of the task; infinity when diverged
  double *term;        // (N, sinew_batch_terms) weighted parts of it
  int *status;         // (N) SINEW_OK or SINEW_ERR_DIVERGED
  int *good_states;    // (N) states before the first of which itself, or the acceleration, is bad; T + 1: all good
  unsigned *warnings;  // (N) SINEW_WARN_* bits of all its steps
  // Warm starts of the solver, at the initial states (NULL: zero) and, as a result, at the last ones. A rollout from
  // the last state of another and with its warm start goes on with the bits of a longer one.
  const double *qacc_warmstart;  // (N, nv)
  double *out_qacc_warmstart;    // (N, nv) NaN when diverged
  // Models of each rollout (N), CPU alone; NULL: the batch's. They have the structure of sinew_batch_model, as copies
  // of it by sinew_model_with_arrays or sinew_model_with_options do, and options of their own. With SinewCfd.bodies the
  // same geoms can touch in all. They must outlive what is kept of the call: the next call or the batch ends it.
  const SinewModel *const *models;
  // Buffers of controls and sensors, then rests of springs that yield, of models that have some. They are as
  // sinew_data_array "history" has them: MuJoCo's mjData.history, then its mjData.plastic. NULL: as after a reset.
  // one_state says how many rows there are.
  const double *history;  // (N, nhistory)
  double *out_history;    // (N, T + 1, nhistory)
} SinewRollouts;

// Returns rollouts of zeros.
static inline SinewRollouts sinew_default_rollouts(void) {
  SinewRollouts x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Computes rollouts in parallel. Every number depends on the inputs alone, not on threads. A rollout that diverges is
// data (status), not an error. With `gradients` the batch keeps controls and states, for sinew_batch_vjp,
// sinew_batch_linearize and sinew_batch_sensitivity. Returns SINEW_ERR_ARGUMENT (sizes, a number that is NaN or beyond
// 1e10, a model of another structure), SINEW_ERR_UNSUPPORTED (models on a device), SINEW_ERR_INTERRUPTED or
// SINEW_ERR_DEVICE on failure.
SINEW_API SinewStatus sinew_batch_rollout(SinewBatch *batch, const SinewRollouts *rollouts, SinewError *err);

// Holds the derivatives of a user's cost by the entries of trajectories, each NULL: zero.
typedef struct SinewTrajectoryBars {
  size_t size;
  SinewCoordinates coordinates;  // coordinates of qpos here and in the result
  const double *qpos;            // (N, T + 1, nv or nq)
  const double *qvel;            // (N, T + 1, nv)
  const double *act;             // (N, T + 1, na)
  const double *sensordata;      // (N, T + 1, nsensordata)
  const double *ctrl;            // (N, T, nu) direct part
  const double *cost;            // (N) factor of the task's cost; NULL: 1
  const double *history;         // (N, T + 1, nhistory) of samples and rests; times, marks and cursors are constant
} SinewTrajectoryBars;

// Returns zeros: the derivative of the task's cost alone.
static inline SinewTrajectoryBars sinew_default_bars(void) {
  SinewTrajectoryBars x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Holds where derivatives go, each may be NULL.
typedef struct SinewGradients {
  size_t size;
  double *ctrl;  // (N, T, nu)
  double *qpos;  // (N, nv or nq) of the initial states
  double *qvel;  // (N, nv)
  double *act;   // (N, na)
  int *status;   // (N) SINEW_OK; SINEW_ERR_DIVERGED: the rollout diverged, or the derivative left the range of numbers
  const SinewParameters *parameters;  // parameters of a model of the batch's structure, CPU alone
  double *parameter;                  // (N, count of parameters) by them
  double *history;                    // (N, nhistory) of the initial samples and rests, 0 elsewhere
} SinewGradients;

// Returns zeros.
static inline SinewGradients sinew_default_gradients(void) {
  SinewGradients x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Computes vector-Jacobian products of the rollouts of the last sinew_batch_rollout, at about twice their cost. These
// are the derivatives, by initial states and controls, of the task's cost times its factor plus the user's cost. `bars`
// NULL stands for the task's cost alone. May be called any number of times. A rollout whose status is not SINEW_OK has
// derivatives 0; bars of one that diverged are not read. Returns SINEW_ERR_STATE (no rollouts yet, or a batch without
// gradients), SINEW_ERR_ARGUMENT (a number that is not finite), SINEW_ERR_UNSUPPORTED (a bar of a sensor without a
// derivative, parameters on a device), SINEW_ERR_MEMORY (for parameters), SINEW_ERR_INTERRUPTED or SINEW_ERR_DEVICE on
// failure. Parameters reach costs and sensors through frames of sites and geoms, masses and inertias, tendons and
// actuators. Zones of sensors and the bounds of a limit sensor count as constant.
SINEW_API SinewStatus sinew_batch_vjp(SinewBatch *batch, const SinewTrajectoryBars *bars, const SinewGradients *out,
                                      SinewError *err);

// Holds where Jacobians of rollouts go, each may be NULL. nstate numbers are a tangent of a state (dqpos, dqvel, dact).
typedef struct SinewLinearization {
  size_t size;
  double *A;    // (N, T, nstate, nstate) of the state after a step by that before
  double *B;    // (N, T, nstate, nu) of it by the controls
  double *C;    // (N, T, nsensordata, nstate) of sensordata at the step's begin by the state there
  double *D;    // (N, T, nsensordata, nu) of it by the controls
  int *status;  // (N) SINEW_OK; SINEW_ERR_DIVERGED: the rollout diverged, or a derivative left the range of numbers
} SinewLinearization;

// Returns zeros.
static inline SinewLinearization sinew_default_linearization(void) {
  SinewLinearization x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Computes the Jacobians of all steps of the last sinew_batch_rollout, with the batch's contacts from distance. They
// are those of sinew_step_jacobian at each state, where the solver starts from the rollout's acceleration there. All
// threads share the steps, also of a single rollout; only the CPU does it. Steps that a diverged rollout has not made,
// and those where a number is not finite, have zeros. May be called any number of times. Returns SINEW_ERR_STATE (no
// rollouts yet, or a batch without gradients), SINEW_ERR_ARGUMENT, SINEW_ERR_UNSUPPORTED (C or D of a sensor without a
// derivative, a device) or SINEW_ERR_INTERRUPTED on failure.
SINEW_API SinewStatus sinew_batch_linearize(SinewBatch *batch, const SinewLinearization *out, SinewError *err);

// Asks for sensitivities of rollouts: derivatives of all states and sensors by parameters, taken forward. There are
// `columns` columns: first one for each parameter, then those of `initial` alone. Each array may be NULL.
typedef struct SinewSensitivity {
  size_t size;
  const SinewParameters *parameters;  // parameters of a model of the batch's structure; NULL: none
  int columns;                        // at least the count of parameters
  const double *initial;              // (N, nstate, columns) of the initial states, as tangents; NULL: zero
  const double *sensors;              // (nsensordata) where it is 0 the number is left out, its rows 0; NULL: all count
  double *state;                      // (N, T + 1, nstate, columns) of the states, as tangents (dqpos, dqvel, dact)
  double *sensordata;                 // (N, T + 1, nsensordata, columns)
  int *status;  // (N) SINEW_OK; SINEW_ERR_DIVERGED: the rollout diverged, or a derivative left the range of numbers
} SinewSensitivity;

// Returns zeros.
static inline SinewSensitivity sinew_default_sensitivity(void) {
  SinewSensitivity x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Computes sensitivities along the rollouts of the last sinew_batch_rollout, with the batch's contacts from distance.
// From step to step S' = A S + E, with A and E the derivatives of a step by the state and by the parameters. A state
// takes an adjoint for each dof and each sensor, whatever the number of columns. For many numbers of a trajectory
// sinew_batch_vjp, once for each, takes more. All threads share the states; only the CPU does it. A rollout whose
// status is not SINEW_OK has derivatives 0. May be called any number of times. Returns SINEW_ERR_STATE (no rollouts
// yet, or a batch without gradients), SINEW_ERR_ARGUMENT (a number that is not finite, too few columns, parameters of
// another structure), SINEW_ERR_UNSUPPORTED (a sensor without a derivative, a device), SINEW_ERR_MEMORY or
// SINEW_ERR_INTERRUPTED on failure.
SINEW_API SinewStatus sinew_batch_sensitivity(SinewBatch *batch, const SinewSensitivity *out, SinewError *err);

// ---- planners ----

// Describes a setting of planners. New members come at the end.
typedef struct SinewSetting {
  const char *name, *unit, *doc;  // identifier, of values, description: planner/tasks/README.md
  const char *choices;            // names of the values 0, 1, ... joined by |; NULL: a number
  bool integer;                   // a whole number
  bool live;                      // may change while a planner runs
  double value, lowest, highest;  // default and bounds, of a choice its number
  const char *text;               // default of a text, which has no bounds; NULL: a number or a choice
} SinewSetting;
// Returns setting i = 0, 1, ..., NULL past the last; valid for ever.
SINEW_API const SinewSetting *sinew_setting(int i);

// Says what a planner is made of. All but `settings` must outlive it.
typedef struct SinewPlannerDef {
  size_t size;
  const SinewModel *model;
  const SinewTask *task;
  SinewBackend *backend;
  SinewBackend *fallback;       // plans when the device is lost, e.g. the CPU; NULL: none
  const char *const *settings;  // "name=value" (.., NULL) over those of the task; NULL: none
  uint64_t seed;                // perturbs initial pose and plan (0: not), keys the noise
  SinewInterrupt interrupt;  // ends plans, evaluations, and the time that the body needs to settle; NULL: nothing does
  void *interrupt_user;      // handed to it
} SinewPlannerDef;

// Returns a definition of zeros.
static inline SinewPlannerDef sinew_default_planner(void) {
  SinewPlannerDef x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Makes a planner: the one that sinewd runs for a session, with the same plans bit for bit. Lets the body settle for as
// long as the task says. Free it with sinew_planner_free. Returns NULL and SINEW_ERR_ARGUMENT, SINEW_ERR_NOT_FOUND (no
// such setting, or a list of names of the task that the model has not), SINEW_ERR_FORMAT (sizes, units or kinds in the
// task do not fit the model), SINEW_ERR_UNSUPPORTED (no gradients for Adam), SINEW_ERR_STATE (the body diverges before
// it has settled), SINEW_ERR_LIMIT, SINEW_ERR_MEMORY or SINEW_ERR_INTERRUPTED on failure.
SINEW_API SinewPlanner *sinew_planner_create(const SinewPlannerDef *def, SinewError *err);
// Frees a planner. Accepts NULL.
SINEW_API void sinew_planner_free(SinewPlanner *planner);
// Goes back to the initial state and plan, with the settings, weights and targets that were set. A seed other than that
// of before takes as long as the body needs to settle. Returns SINEW_ERR_STATE when it diverges, SINEW_ERR_INTERRUPTED.
SINEW_API SinewStatus sinew_planner_reset(SinewPlanner *planner, uint64_t seed, SinewError *err);
// Returns the model of the planner: that of the definition with the task's options. It stays valid as long as the
// planner.
SINEW_API const SinewModel *sinew_planner_model(const SinewPlanner *planner);
// Returns the state in which the body shall start; valid until the next reset.
SINEW_API SinewState sinew_planner_initial(const SinewPlanner *planner);

// Changes a live setting, "adam_rate=0.02", from the next plan on. Fails with:
//   SINEW_ERR_NOT_FOUND                    there is no such setting
//   SINEW_ERR_ARGUMENT                     a value is out of bounds
//   SINEW_ERR_STATE                        the setting is not live
//   SINEW_ERR_UNSUPPORTED                  there are no gradients for Adam
//   SINEW_ERR_LIMIT, SINEW_ERR_MEMORY      there is no room
SINEW_API SinewStatus sinew_planner_set(SinewPlanner *planner, const char *assignment, SinewError *err);
// Writes the value that a setting was given, as an assignment has it, into text[size]; 64 bytes are enough for any.
// Returns SINEW_ERR_NOT_FOUND or SINEW_ERR_ARGUMENT (too small) on failure.
SINEW_API SinewStatus sinew_planner_get(SinewPlanner *planner, const char *name, char *text, size_t size,
                                        SinewError *err);
// Changes the weights of a term of the cost, running and at the end of the horizon, each 0 to 1e9. Returns
// SINEW_ERR_NOT_FOUND or SINEW_ERR_ARGUMENT on failure.
SINEW_API SinewStatus sinew_planner_set_weight(SinewPlanner *planner, const char *term, double weight, double terminal,
                                               SinewError *err);
// Changes the target of a term, or of a measure of success, to value[n]; n = 0: the task's own again. Returns
// SINEW_ERR_NOT_FOUND or SINEW_ERR_ARGUMENT (the size, a number that is not finite) on failure.
SINEW_API SinewStatus sinew_planner_set_target(SinewPlanner *planner, const char *term, const double *value, int n,
                                               SinewError *err);
// Writes the targets that terms of the task give as numbers, in the order of the terms: the last inputs of a policy.
// Fills targets (rows, *count), one row for each time [s]; where it is NULL, *count alone is set. Returns
// SINEW_ERR_ARGUMENT (a time that is not finite) or SINEW_ERR_MEMORY on failure.
SINEW_API SinewStatus sinew_planner_targets(SinewPlanner *planner, const double *time, int rows, double *targets,
                                            int *count, SinewError *err);

// Asks for a plan from a measured state.
typedef struct SinewPlanRequest {
  size_t size;
  SinewState state;    // measured: act and mocap may be NULL, see SinewState
  double latency;      // time until the plan is in force [s]: the state is first rolled forward by it
  double budget;       // time to compute [s]; 0: no limit, the settings' iterations
  int max_iterations;  // 0: as the settings say
  bool want_states;    // predicted states, too
  int gain_rows;       // feedback gains of so many rows behind the lead, and the states; refused by planners without
  // (nhistory) Buffers and rests of springs in that state, as sinew_data_array "history" has them. NULL: controls
  // are those since the state before; samples of sensors and rests stay as they were.
  const double *history;  // (nhistory)
} SinewPlanRequest;

// Returns a request of zeros.
static inline SinewPlanRequest sinew_default_plan_request(void) {
  SinewPlanRequest x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  return x;
}

// Holds a plan. It belongs to the planner. New members come at the end.
typedef struct SinewPlan {
  uint64_t number;           // 1, 2, ...
  double start, step;        // time of the first row of ctrl, and between rows [s]
  int steps;                 // rows
  int lead;                  // rows before the optimised ones: those of the plan before
  const double *ctrl;        // (steps, nu)
  const double *qpos;        // (steps + 1, nq) predicted states where asked for, else NULL
  const double *qvel, *act;  // (steps + 1, nv), (steps + 1, na)
  double cost_before;        // cost of the shifted plan before; infinite: it diverged, NaN: not evaluated
  double cost_after;         // cost of this plan
  const double *term;        // weighted parts of cost_after
  int terms;                 // numbers in term
  int iterations;            // iterations that went into it; the last may be partial
  int candidates;            // candidates of the last iteration that were used; both reproduce the plan
  double gradient_norm;      // at ctrl, or, without time for that, at the iterate before; NaN: there is none
  bool refined;              // false: the shifted plan of before, there was no time
  bool deadline_met;         // it was made within the budget
  bool act_estimated;        // the state came without activations
  bool device_lost;          // the fallback made it
  unsigned warnings;         // SINEW_WARN_* bits of the rollouts that count
  const char *backend;       // name of the one that made it
  const char *remark;        // says what a user should know of how it was made, "": nothing
  double seconds;            // time that it took [s]
  const double *gain;        // (gain_rows, nu, 2 nv + na) feedback of rows from `lead` on, NULL: none, see `remark`
  int gain_rows;             // rows with feedback
  bool stuck;                // no better than the shifted plan before, and its gradient next to nothing, see `remark`
  int unimproved;            // plans in a row, up to this one, whose cost did not fall; 0: that of this one did
  bool from_policy;          // it began with the rollout of the task's policy, not with the shifted plan before
} SinewPlan;

// Makes a plan, which becomes the warm start of the next. *plan is valid until the next call of this planner, NULL on
// failure. `plan` may be NULL. Returns SINEW_ERR_ARGUMENT (a number of the request that is not allowed, neither a
// budget nor iterations), SINEW_ERR_INTERRUPTED or SINEW_ERR_DIVERGED (every candidate diverged: there is no plan) on
// failure. When a device is lost and there is no fallback, plans are no longer refined.
SINEW_API SinewStatus sinew_planner_plan(SinewPlanner *planner, const SinewPlanRequest *request, const SinewPlan **plan,
                                         SinewError *err);
// Fills ctrl (nu) with the controls of the latest plan at a time [s]: row floor((time - start) / step + 1e-6), at least
// the first, at most the last. SINEW_ERR_NO_PLAN: there is none since the last reset.
SINEW_API SinewStatus sinew_planner_control(SinewPlanner *planner, double time, double *ctrl, SinewError *err);
// Fills ctrl (nu) as sinew_planner_control does at the time of a measured state, with the plan's feedback. A row with
// gains becomes ctrl + gain (state (-) predicted state), within the ranges of the controls; other rows stay. `state`
// needs qpos, qvel and act. *corrected, which may be NULL, says whether the row had gains: none has after a plan that
// failed. Returns SINEW_ERR_NO_PLAN, or SINEW_ERR_ARGUMENT for a state with a number that is not finite.
SINEW_API SinewStatus sinew_planner_feedback(SinewPlanner *planner, const SinewState *state, double *ctrl,
                                             bool *corrected, SinewError *err);
// Computes the cost of controls (steps, nu) from a state under the weights and targets in force, and its gradient
// (steps, nu), unless that is NULL. A motion that diverges costs infinity and has gradient 0. The cost of no steps is
// that of the state alone. Plans go on as if there had been no evaluation. A longer one than any before allocates.
// Returns SINEW_ERR_ARGUMENT, SINEW_ERR_LIMIT (more than 65536 steps), SINEW_ERR_UNSUPPORTED (no gradients),
// SINEW_ERR_MEMORY, SINEW_ERR_INTERRUPTED, SINEW_ERR_DEVICE or SINEW_ERR_DIVERGED (the derivative left the range of
// numbers, gradient is 0) on failure.
SINEW_API SinewStatus sinew_planner_evaluate(SinewPlanner *planner, const SinewState *state, const double *ctrl,
                                             int steps, double *cost, double *gradient, SinewError *err);

// Computes the measures of success of the task (sinew_task_measure) in a state, value (n), under the targets in force.
// n is their number. Plans go on as if nothing had been computed. Returns SINEW_ERR_ARGUMENT on failure.
SINEW_API SinewStatus sinew_planner_measure(SinewPlanner *planner, const SinewState *state, double *value, int n,
                                            SinewError *err);

#ifdef __cplusplus
}
#endif

#endif

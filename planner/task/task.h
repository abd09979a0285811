// Tasks: what a body shall do, read from a YAML file. A task names its model, where the body starts,
// the terms of the cost and the measures of success; planner/tasks/README.md documents the fields.
//
// An SnTask is the file alone, names still unresolved: it needs no model. sn_cost_create (cost.h) binds it to one. It
// does not change after loading; any number of threads may read it.
#ifndef SINEW_PLANNER_TASK_TASK_H_
#define SINEW_PLANNER_TASK_TASK_H_

#include <stdbool.h>
#include <stddef.h>

#include "physics/base/status.h"
#include "planner/task/settings.h"
#include "planner/base/yaml.h"

// Bounds weights, of terms and of the entries of their residuals.
#define SN_TASK_MOST_WEIGHT 1e9

enum {
  SN_TASK_MAX_BYTES = 1 << 20,
  SN_TASK_MAX_ITEMS = 4096,
  SN_TASK_MAX_TERMS = 256,
  SN_TASK_MAX_MEAN = 64,
  SN_TASK_MAX_NAME = 200
};

// Says what a term looks at. Sizes are those of the value; a residual has 3 entries where the value is a quaternion.
typedef enum SnQuantity {
  SN_QTY_POSITION,          // site, body or geom [m] (3)
  SN_QTY_ORIENTATION,       // site, body or geom (4); residual: rotation vector from target to value [rad]
  SN_QTY_VELOCITY,          // velocity of a site, body or geom, in the world's axes [m/s] (3)
  SN_QTY_ANGULAR_VELOCITY,  // angular velocity of these [rad/s] (3)
  SN_QTY_DISTANCE,          // between two of these [m] (1)
  SN_QTY_JOINT_POSITION,    // hinge, slide (1 each) and ball joints (4 each) [rad, m]
  SN_QTY_JOINT_VELOCITY,    // hinge, slide (1), ball (3), free (6) joints [rad/s, m/s]
  SN_QTY_ACTIVATION,        // actuators with activation (1 each)
  SN_QTY_CONTROL,           // actuators (1 each)
  SN_QTY_CONTROL_RATE,      // change of a control from step to step, per second (1 each)
  SN_QTY_TENDON_LENGTH,     // [m] (1 each)
  SN_QTY_SENSOR             // the outputs of a sensor of the model
} SnQuantity;

// Returns the name of a quantity, as task files have it.
const char *sn_quantity_name(SnQuantity quantity);

// Names the penalty of a residual r. Gradients are finite everywhere; at r = 0 they are 0.
typedef enum SnNorm {
  SN_NORM_SQUARED,     // sum r_i^2
  SN_NORM_EUCLIDEAN,   // sqrt(sum r_i^2 + width^2) - width; width 0 allowed
  SN_NORM_SMOOTH_ABS,  // sum (sqrt(r_i^2 + width^2) - width); width > 0
  SN_NORM_SIGNED       // r itself, one number: of gates alone
} SnNorm;

// Names the norms of terms in task files, joined by '|'.
#define SN_NORM_NAMES "squared|euclidean|smooth_abs"

// Names the entries of a residual that count: all, or those on one side of the target.
typedef enum SnTermSide { SN_TERM_BOTH, SN_TERM_ABOVE, SN_TERM_BELOW } SnTermSide;

// Names the sides in task files, joined by '|'.
#define SN_TERM_SIDES "both|above|below"

typedef enum SnObject { SN_OBJECT_SITE, SN_OBJECT_BODY, SN_OBJECT_GEOM } SnObject;

// Names a quantity of named objects.
typedef struct SnElement {
  SnQuantity quantity;
  SnPlace place;
  int naxis;    // components of the value that count; 0: all
  int axis[3];  // (naxis) 0: x, 1: y, 2: z
  bool all;     // every object of the kind; names is empty
  int nname;
  char **name;         // (nname) one for pose quantities, or those of a mean; two for a distance
  SnObject object[2];  // kind of name[0], name[1]: pose quantities and distances
} SnElement;

typedef enum SnTargetKind {
  SN_TARGET_VALUE,     // constant
  SN_TARGET_ELEMENT,   // another element, as it moves, or as it was at the start
  SN_TARGET_SINUSOID,  // center + amplitude sin(2 pi t / period + phase)
  SN_TARGET_KEYFRAMES  // values at times, interpolated
} SnTargetKind;

typedef struct SnTarget {
  SnTargetKind kind;
  SnPlace place;
  char *frame;             // body in whose frame positions and orientations are given and stay; NULL: world
  bool at_start;           // ELEMENT: captured in the (settled) initial state
  SnElement element;       // ELEMENT
  int nvalue;              // VALUE, SINUSOID: entries; 0: zeros (identity for an orientation); 1: all entries alike
  double *value;           // VALUE: constant; SINUSOID: centre
  int namplitude, nphase;  // SINUSOID: as nvalue
  double *amplitude, *phase;
  double period;  // SINUSOID [s]
  int ntime;      // KEYFRAMES
  double *time;   // KEYFRAMES [s] (ntime) ascending
  double *key;    // KEYFRAMES (ntime, nvalue)
  SnSplineKind interpolation;
  bool repeat;  // KEYFRAMES: starts again after the last time
} SnTarget;

// Describes a term of the cost, a measure of success, or the gate of a term.
typedef struct SnTerm SnTerm;
struct SnTerm {
  char *name;
  SnPlace place;
  SnElement residual;
  SnTarget target;
  SnNorm norm;
  double width;  // width of the norm, in units of the residual
  SnTermSide side;
  int neach;             // 0: all entries count alike
  double *each;          // (neach) weights of the squares or absolute values of the residual's entries, in the norm
  double weight;         // running; 0 for a measure
  double terminal;       // weight at the end of the horizon; 0 for a measure
  double below;          // measure: met when the norm is at most this
  char *term;            // measure: the term whose residual and target it shares, NULL: its own
  double during;         // measure: for so long at the end of a run [s]; 0: at the end
  SnTerm *gate;          // term: its norm is multiplied by this; NULL: by nothing
  SnTermSide gate_side;  // gate: open above or below its value; BOTH: the norm itself
  double gate_value;     // gate: half open there, in the unit of its norm
  double gate_width;     // gate: opens in this width; > 0
};

// Holds a named value of the file, e.g. a joint of the initial state.
typedef struct SnNamedValue {
  char *name;
  SnPlace place;
  double value;
} SnNamedValue;

// Says where a body with a free joint starts. For a part that is NULL it stays where the model puts it, at rest.
typedef struct SnBodyState {
  char *name;
  SnPlace place;
  int nposition, norientation, nvelocity, nangular;
  double *position;     // (3) [m]
  double *orientation;  // (4) quaternion w x y z
  double *velocity;     // (3) [m/s]
  double *angular;      // (3) in the body's frame [rad/s]
} SnBodyState;

// Holds a name in the file.
typedef struct SnNamedPlace {
  char *name;
  SnPlace place;
} SnNamedPlace;

// Names the integrators of the engine, as MuJoCo does, joined by '|'.
#define SN_TASK_INTEGRATORS "Euler|RK4|implicit|implicitfast|discrete"
// Names the values of option contact, in the order of SnContactModel.
#define SN_TASK_CONTACTS "mujoco|sigmoid"

// Holds values of SnModel.opt that a task overrides. A count of 0 leaves the model's own.
typedef struct SnTaskOptions {
  double timestep, tolerance, ls_tolerance, ccd_tolerance, impratio;
  int iterations, ls_iterations, ccd_iterations;
  int integrator;  // index into SN_TASK_INTEGRATORS
  int contact;     // index into SN_TASK_CONTACTS
  double contact_width, contact_stiffness, contact_restitution;
  bool has_integrator, has_contact, has_contact_width, has_contact_stiffness, has_contact_restitution;
  bool has_timestep, has_tolerance, has_ls_tolerance, has_ccd_tolerance, has_impratio;
  bool has_iterations, has_ls_iterations, has_ccd_iterations;
  int nsolref, nsolimp;     // 0, or 2 and 5
  double *solref, *solimp;  // (nsolref), (nsolimp) for every contact
} SnTaskOptions;

// Holds the contacts of the body that plays the robot in a simulation: solref and solimp of every contact. A count of
// 0 leaves the model's own.
typedef struct SnTaskPlant {
  int nsolref, nsolimp;  // 0, or 2 and 5
  double *solref, *solimp;
} SnTaskPlant;

typedef struct SnTask {
  char *name;         // stem of the task's file
  char *description;  // one line for people, "" when absent
  char *model;        // name of a model in a repository, or a path relative to one; a string here, resolved elsewhere
  SnPlace model_place;
  char *file;  // for messages
  char *text;  // YAML that it was made of: all of it, where it begins from others

  char *policy;  // path of an ONNX file beside the task's (planner/policy/policy.h); NULL: none
  SnPlace policy_place;

  SnTaskOptions options;
  SnTaskPlant plant;

  char *keyframe;  // keyframe of the model to start from; NULL: qpos0
  SnPlace keyframe_place;
  int njoint;
  SnNamedValue *joint;  // (njoint) initial positions of hinge and slide joints [rad, m]
  int nvelocity;
  SnNamedValue *velocity;  // (nvelocity) of hinge and slide joints, given after the settling [rad/s, m/s]
  int nbody;
  SnBodyState *body;      // (nbody) put there after the settling
  double activation;      // initial activation of every muscle
  double settle;          // time under the controls of a reset before the start [s]
  double perturb_joints;  // half width of the uniform change of each hinge and slide joint by the seed [rad, m]
  double perturb_bodies;  // half width for each component of the velocity of the bodies above [m/s]
  double perturb_plan;    // half width for each control of the initial plan, in halves of its range
  int nperturb;
  SnNamedValue *perturb;  // (nperturb) half widths of named joints, in place of perturb_joints
  double plan_initial;    // initial plan: every control, clamped to its range; 0: those of a reset
  bool plan_keyframe;     // the controls of the keyframe, in place of plan_initial
  int nplan;
  SnNamedValue *plan;  // (nplan) controls of named actuators, in place of plan_initial

  int ncfd_body;
  SnNamedPlace *cfd_body;  // (ncfd_body) bodies whose contacts act from a distance, with all that hangs on them; 0: all

  SnSettings settings;  // defaults with the task's own
  int nterm;
  SnTerm *term;  // (nterm) at least one
  int nmeasure;
  SnTerm *measure;  // (nmeasure)
} SnTask;

// Reads a task from a file, or from text[size] called `file` in messages. The name of the task is the stem of `file`.
// The task that it begins from is looked for beside that. Returns NULL on failure; err then lists every mistake of the
// file, one a line:
//
//   file:line:column: what is wrong and what is allowed
//
// Free the task with sn_task_free (NULL is allowed).
SnTask *sn_task_load(const char *file, SnError *err);
SnTask *sn_task_parse(const char *text, size_t size, const char *file, SnError *err);
void sn_task_free(SnTask *task);

// Writes "the task has no term 'NAME', it has A, B; did you mean 'A'?" into text[size], and returns text.
const char *sn_task_no_term(const SnTask *task, const char *name, char *text, size_t size);

// Returns a failure to get the task's model. `why` is told with the place in the file where the model stands.
SnCode sn_task_model_fault(const SnTask *task, SnCode code, const char *why, SnError *err);

#endif

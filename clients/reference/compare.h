// Field by field comparison of a step of ours with MuJoCo's: the figures behind sinew-check.
//
// The error of a field at a step is max|ours - ref| / (max|ref| + 1e-6); the largest over all steps is kept with its
// step and element. Structural fields (which contacts, which rows, which path points) count differences instead:
// their tolerance is 0, and while they differ the values behind them are not compared.
#ifndef SINEW_CLIENTS_REFERENCE_COMPARE_H_
#define SINEW_CLIENTS_REFERENCE_COMPARE_H_

#include "clients/reference/mujoco_reference.h"

// Lists the fields compared: X(name, stage, tolerance).
#define SN_COMPARED_FIELDS(X)              \
  X(xpos, KINEMATICS, 1e-9)                \
  X(xquat, KINEMATICS, 1e-9)               \
  X(xipos, KINEMATICS, 1e-9)               \
  X(xanchor, KINEMATICS, 1e-9)             \
  X(xaxis, KINEMATICS, 1e-9)               \
  X(geom_xpos, KINEMATICS, 1e-9)           \
  X(geom_xmat, KINEMATICS, 1e-9)           \
  X(site_xpos, KINEMATICS, 1e-9)           \
  X(site_xmat, KINEMATICS, 1e-9)           \
  X(subtree_com, INERTIA, 1e-9)            \
  X(cdof, INERTIA, 1e-9)                   \
  X(M, INERTIA, 1e-9)                      \
  X(qLD, INERTIA, 1e-9)                    \
  X(ten_path, TENDON, 0)                   \
  X(wrap_xpos, TENDON, 1e-9)               \
  X(ten_length, TENDON, 1e-9)              \
  X(ten_J, TENDON, 1e-9)                   \
  X(actuator_length, TRANSMISSION, 1e-9)   \
  X(actuator_moment, TRANSMISSION, 1e-9)   \
  X(contact, COLLISION, 0)                 \
  X(contact_param, COLLISION, 1e-9)        \
  X(contact_dist_closed, COLLISION, 1e-9)  \
  X(contact_pos_closed, COLLISION, 1e-9)   \
  X(contact_frame_closed, COLLISION, 1e-9) \
  X(contact_dist_smooth, COLLISION, 1e-8)  \
  X(contact_pos_smooth, COLLISION, 1e-8)   \
  X(contact_frame_smooth, COLLISION, 1e-8) \
  X(contact_dist_edged, COLLISION, 1e-6)   \
  X(contact_pos_edged, COLLISION, 1e-6)    \
  X(contact_frame_edged, COLLISION, 1e-6)  \
  X(ten_velocity, VELOCITY, 1e-9)          \
  X(actuator_velocity, VELOCITY, 1e-9)     \
  X(qfrc_bias, VELOCITY, 1e-9)             \
  X(qfrc_passive, PASSIVE, 1e-9)           \
  X(act_dot, ACTUATION, 1e-9)              \
  X(actuator_force, ACTUATION, 1e-9)       \
  X(qfrc_actuator, ACTUATION, 1e-9)        \
  X(qacc_smooth, SMOOTH, 1e-9)             \
  X(efc, CONSTRAINT, 0)                    \
  X(efc_J, CONSTRAINT, 1e-8)               \
  X(efc_pos, CONSTRAINT, 1e-8)             \
  X(efc_D, CONSTRAINT, 1e-8)               \
  X(efc_aref, CONSTRAINT, 1e-8)            \
  X(efc_J_edged, CONSTRAINT, 1e-6)         \
  X(efc_pos_edged, CONSTRAINT, 1e-6)       \
  X(efc_D_edged, CONSTRAINT, 1e-6)         \
  X(efc_aref_edged, CONSTRAINT, 1e-6)      \
  X(qacc, SOLVER, 1e-6)                    \
  X(efc_force, SOLVER, 1e-6)               \
  X(qfrc_constraint, SOLVER, 1e-6)         \
  X(sensordata, SOLVER, 1e-8)              \
  X(sensordata_forces, SOLVER, 1e-6)       \
  X(next_time, INTEGRATE, 1e-9)            \
  X(next_qpos, INTEGRATE, 1e-9)            \
  X(next_qvel, INTEGRATE, 1e-9)            \
  X(next_act, INTEGRATE, 1e-9)             \
  X(next_history, INTEGRATE, 1e-8)         \
  X(next_plastic, INTEGRATE, 1e-8)         \
  X(next_tree_asleep, INTEGRATE, 0)

// Names a compared field; as many as SN_CMP_COUNT.
typedef enum SnCompared {
#define SN_COMPARED_ENUM(name, stage, tolerance) SN_CMP_##name,
  SN_COMPARED_FIELDS(SN_COMPARED_ENUM)
#undef SN_COMPARED_ENUM
      SN_CMP_COUNT
} SnCompared;

// Says how exactly the contacts of a pair of geom types can agree.
typedef enum SnContactClass {
  SN_CONTACT_CLOSED,  // a formula gives them
  SN_CONTACT_SMOOTH,  // the minimum of a smooth convex function
  SN_CONTACT_EDGED,   // vertices and edges, where nearly equal features compete
} SnContactClass;
// Returns the class of a pair of geom types (SnGeom), in either order.
SnContactClass sn_contact_class(int geom_type1, int geom_type2);

// Holds the errors of one field.
typedef struct SnFieldError {
  double rel;    // largest error so far, among the steps that differ if any does; NaN: ours had one; -1: never compared
  double tol;    // tolerance of the step at which it occurred
  double noise;  // change of MuJoCo's own value at that step when its state moves by rounding; -1: not measured
  int step;      // the step of the largest error
  int element;   // index in the field's array; row * nv + column for efc_J and actuator_moment
  bool differs;  // some step exceeded its tolerance
} SnFieldError;

// Holds the comparison of one step, or of a run.
typedef struct SnCompare {
  SnFieldError field[SN_CMP_COUNT];
  int steps;           // steps compared
  int loose_steps;     // steps among them with an edged contact
  int stiff_rows;      // rows of constraints whose forces were not compared, over all steps
  int singular_steps;  // steps with an inertia that is singular but for rounding
  bool loose;          // the present step is one
  char note[500];      // text on the first structural difference; empty when there is none
  double *ref;         // (capacity) scratch for gathered values of MuJoCo
  sn_real *ours;       // (capacity) scratch for ours
  size_t capacity;
} SnCompare;

// Returns the name of a field.
const char *sn_compared_name(SnCompared field);
// Returns the stage that writes it.
SnStage sn_compared_stage(SnCompared field);

// Starts with no errors seen.
void sn_compare_init(SnCompare *c);
// Frees the scratch and forgets the errors.
void sn_compare_free(SnCompare *c);

// Writes the sensors that the engine does not compute, number and name, into text; returns how many there are. Others
// are compared in two fields: those of the body alone, and those that are known after collision and the solver.
// Distances of geoms are not, of which MuJoCo's are good to ccd_tolerance alone. Buffers of either are not compared.
int sn_compare_sensors_left(const SnModel *m, char *text, size_t size);

// Begins a step; call it after mj_forward.
void sn_compare_begin(SnCompare *c, const SnOracle *o);
// Compares what a stage wrote into o->w with o->d.
void sn_compare_stage(SnCompare *c, const SnOracle *o, SnStage stage, int step);
// Compares the states after one step of each.
void sn_compare_next(SnCompare *c, const SnOracle *o, int step);

// Returns true when no field differed.
bool sn_compare_agrees(const SnCompare *c);

// Bounds what forces of rows are compared: those with a smaller D. MuJoCo's largest is 1e15, of rows with solimp 1.
#define SN_STIFF 9.99e14

// Bounds what an inertia may lose of a diagonal entry as it is factored: with less left accelerations have few digits.
#define SN_SINGULAR 1e-11

enum { SN_NOISE_FACTOR = 10 };
// Takes noise[f].rel as the noise of every field f that differs in `step`, a comparison of one step. A field that
// differs by at most SN_NOISE_FACTOR times its noise agrees from then on. Returns how many fields that concerns.
int sn_compare_allow_noise(SnCompare *step, const SnCompare *noise);
// Returns true when that would leave nothing that differs.
bool sn_compare_explained(const SnCompare *step, const SnCompare *noise);

// Adds the comparison of one step to that of a run.
void sn_compare_add(SnCompare *run, const SnCompare *step);

#endif

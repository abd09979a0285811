// Between the files of horizon.h.
#ifndef SINEW_PHYSICS_STEP_HORIZON_PRIVATE_H_
#define SINEW_PHYSICS_STEP_HORIZON_PRIVATE_H_

#include "physics/step/horizon.h"

// Points to what is kept of a step: its start, and its stages with the one at its end. The solver's warm start of a
// stage on the way back is the acceleration itself.
typedef struct SnKeptStep {
  sn_real *time;               // (2) start, size [s]
  sn_real *qpos, *qvel, *act;  // the state at its start
  sn_real *rate, *acc, *adot;  // (stages + 1, nv), (stages + 1, nv), (stages + 1, na)
} SnKeptStep;

// Holds a contact or limit that acts: who made it (joint, tendon or pair), by which feature, its first row, whether it
// has a force.
typedef struct SnEventRow {
  int key, feature, row;
  bool pushes;
  bool moved;  // on the way back: begins or ends at the event
} SnEventRow;

// Holds what acts at a state.
typedef struct SnEventRows {
  sn_real time;     // since the start of the step [s]
  SnEventRow *row;  // (nefcmax) contacts and limits
  int n;
  sn_real *jar;  // (nefcmax) residuals of all rows
  int *state;    // (nefcmax) their SnConstraintState
  int nefc;
} SnEventRows;

// Says what lies between the start of a step and a stage: a jump of the force, or of its slope alone.
typedef enum SnEvent { SN_EVENT_NONE, SN_EVENT_KINK, SN_EVENT_JUMP } SnEvent;

// Sets the credit that events begin with, and at most have (horizon_trial.c).
enum { SN_EVENT_CREDIT = 128 };

// Says where a run is: its step, the knot before, the next output.
typedef struct SnProgress {
  int step, segment, out;
  sn_real t, size;   // start of the step, the size that is proposed for it [s]
  bool first_known;  // the first stage of this step has been evaluated
  int crossed;       // steps across events that have followed each other
  int credit;        // steps that events may still cost, of those that lie between them
  bool chatters;     // events are ignored until the credit is whole again
  bool restart;      // the size of this step is chosen anew, behind an event
} SnProgress;

// Says what a trial of a step comes to.
typedef enum SnTrial { SN_TRIAL_GOOD, SN_TRIAL_BAD, SN_TRIAL_JUMP, SN_TRIAL_KINK } SnTrial;

// Says how steps come near to an event.
typedef struct SnApproach {
  bool jumps, kinks;  // trials that such an event lies in are broken off
  sn_real most;       // the longest step that is thought to end before it [s]
  int tries, cuts;    // trials that were broken off at jumps, at kinks
} SnApproach;

struct SnHorizonScratch {
  void *memory;
  SnLaneShared lane_shared;
  const SnTableau *rk;
  // Slots of kept steps: keep, or one, or with checkpoints keep + 1, the last for the step behind those that are
  // replayed.
  sn_real *record;  // (slots, stride)
  int *segment;     // (slots) the knot before each step
  int *crossing;    // (slots) 1: the step is Euler's and leads across an event
  size_t stride;
  int base;                 // the step in slot 0
  sn_real *checkpoint;      // (checkpoints, ...) time, state, first acceleration and rate of activations
  int *checkpoint_knot;     // (checkpoints) the knot before
  sn_real *begin;           // (keep checkpoints + 1) where steps begin [s]
  unsigned char *cross;     // (keep checkpoints) 1: as crossing
  sn_real *xi, *dv, *dact;  // (nv), (nv), (na) a weighted sum of stages
  sn_real *quat_error;      // (nq) error of qpos
  sn_real *moved;           // (nv) the velocity integrated in a step
  sn_real *ctrl;            // (nu) controls of a run without knots
  double *weight;           // (stages + 1)
  // the way back
  SnAdjoint adjoint;
  sn_real *start_bar, *next_bar;           // (2 nv + na) of the state at the start and at the end of a step
  sn_real *state_bar, *xi_bar;             // (2 nv + na), (nv) of a stage's state
  sn_real *rate_bar, *acc_bar, *adot_bar;  // (stages + 1, .)
  sn_real flow;                            // p of horizon_events.c
  sn_real *back, *back_input;  // (stages + 1, 2 nv + na), (stages + 1, nu + 6 nmocap) of horizon_backsolve.c
  bool done;
  SnEventRows last_start, start;  // at the start of the step before, and of this one
  SnEventRows past, now;          // at the stage before the last, and at the last one
  // the controller
  sn_real last, before;  // inverse errors of the last accepted steps
};

// ---- horizon_memory.c ----

// Says in err that an input has a value that is not allowed; returns SN_ERR_ARGUMENT.
SnCode sn_horizon_bad(SnError *err, const char *name, double value, const char *rule);
// Returns what is kept of step k; without memory for it the place of the step that is being taken.
SnKeptStep sn_horizon_kept(const SnHorizon *h, int k);
// Returns what is in a slot.
SnKeptStep sn_horizon_kept_in(const SnHorizon *h, int slot);
// Returns the slot that step k is kept in.
static inline int sn_horizon_slot(const SnHorizon *h, int k) { return k - h->scratch->base; }
// Returns the number of slots.
static inline int sn_horizon_slots(const SnHorizonSettings *s) {
  return s->keep > 0 ? s->keep + (s->checkpoints > 0) : 1;
}

// ---- horizon.c ----

// Returns whether the call shall end.
static inline bool sn_horizon_stops(const SnHorizon *h) { return h->stop && h->stop(h->stop_argument); }
// Says in err that it did; returns SN_ERR_TIMEOUT.
SnCode sn_horizon_stopped(SnError *err);
// Sets xi, dv, dact to the sums of the first n stages with these weights.
void sn_horizon_sum(SnHorizon *h, const SnKeptStep *s, const double *weight, int n);
// Sets the world's state to the start of the step moved by dt times those sums; `limit`: activations to their ranges.
void sn_horizon_move(SnHorizon *h, const SnKeptStep *s, sn_real dt, bool limit);
// Returns the knot k whose controls hold at time t, together with those of knot k + 1: *part is the share of these.
int sn_horizon_controls(const SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t, sn_real *part);
// Evaluates the dynamics of a stage at the state to which sn_horizon_move has brought the world, with its controls.
// Returns false where something is not finite.
bool sn_horizon_evaluate(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int stage,
                         sn_real dt);
// Evaluates the dynamics at the state of the world at time t, behind knot `segment`.
bool sn_horizon_evaluate_at(SnHorizon *h, const SnHorizonInput *in, int segment, sn_real t);
// Does the same as sn_horizon_evaluate and keeps what it computes.
bool sn_horizon_forward(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment, int stage,
                        sn_real dt);

// Writes the weights of the stages for the state at part theta of the step in slot k; returns their number.
int sn_horizon_dense(const SnHorizon *h, int k, double theta, double *weight);
// Returns the weights of the stages for the end of the step in slot k; *n gets their number.
const double *sn_horizon_end(const SnHorizon *h, int k, int *n);
// Returns whether a run looks for events.
static inline bool sn_horizon_watches(const SnHorizon *h) { return h->settings.events && h->settings.fixed_step == 0; }
// Brings the world to the end of step s, number k, whose stages are known. Returns false where it is not finite.
bool sn_horizon_move_to_end(SnHorizon *h, const SnKeptStep *s, int k);
// Evaluates the first stage of step s, number p->step, where it is not known.
bool sn_horizon_first_stage(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p);
// Writes the outputs up to the end `t1` of step s, out may be NULL, and leaves the world there. Returns false where the
// stage at the end, which the interpolant asks for, is not finite.
bool sn_horizon_write_outputs(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out, const SnKeptStep *s,
                              SnProgress *p, sn_real t1);
// Goes on to the step behind the accepted step s, which ended at t1, where the world is: `slot` becomes its start.
void sn_horizon_next_step(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real t1,
                          int slot);

// ---- horizon_trial.c ----

// Evaluates all other stages of step s with size dt, and leaves the world at its end. Methods without a stage there get
// one where events are looked for: the first one of the next step. Stops at the first stage behind an event, *reach
// behind the start [s]; a NULL: goes on.
SnTrial sn_horizon_take(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p, sn_real dt,
                        const SnApproach *a, sn_real *reach);
// Takes steps until one is accepted, and sets *t1 to its end [s]; or says why none is.
SnHorizonStatus sn_horizon_accept(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, SnProgress *p,
                                  sn_real *t1);

// ---- horizon_replay.c ----

// Returns the numbers of a checkpoint.
size_t sn_horizon_checkpoint_numbers(const SnModel *m);
// Keeps the start of step k, whose first stage is known, as a checkpoint where one is due.
void sn_horizon_save(const SnHorizon *h, int k, int segment);
// Takes note of the accepted step k, which ends at t1.
void sn_horizon_note_step(const SnHorizon *h, int k, sn_real t1);
// Sees to it that the slots hold step k as it was in the run, with the steps around it. Returns false where a stage is
// not finite.
bool sn_horizon_at_hand(SnHorizon *h, const SnHorizonInput *in, int k);

// ---- horizon_vjp.c ----

// Runs the adjoint of the dynamics, which have been evaluated, from the bars of acceleration (nv) and of rates of
// activations (na): RESULT.
void sn_horizon_dynamics_vjp(SnHorizon *h, const sn_real *acc_bar, const sn_real *adot_bar);
// Adds the bar of output k to bar (2 nv + na).
void sn_horizon_add_output(const SnHorizon *h, const SnHorizonBars *bars, int k, sn_real *bar);

// ---- horizon_events.c ----

// Returns the longest step that leads across an event [s].
sn_real sn_horizon_crossing(void);
// Notes what acts at the state that has been evaluated, `time` behind the start of a step.
void sn_horizon_note_rows(const SnHorizon *h, SnEventRows *rows, sn_real time);
// Copies them.
void sn_horizon_copy_rows(SnEventRows *to, const SnEventRows *from);
// Notes the same in `now`, and says what lies between the start of the step and this stage, `reach` behind it. A kink
// sets *time, its own from the start [s].
SnEvent sn_horizon_event(SnHorizon *h, sn_real reach, sn_real *time);
// Finds the first event behind the start of step s, whose first stage is known: *time, just behind it, from the start
// [s]. guess: a time behind it; curved: on a parabola, else on the path of Euler's method. Returns false where there
// is none to be found. Changes the world.
bool sn_horizon_find_event(SnHorizon *h, const SnKeptStep *s, sn_real guess, bool curved, sn_real *time);
// Takes next_bar from the end of step k, which leads across an event, to before the event. Returns false where the
// dynamics are not finite.
bool sn_horizon_jump_vjp(SnHorizon *h, const SnHorizonInput *in, const SnHorizonBars *bars, int k);

// ---- horizon_control.c ----

// Returns the error of the step, in units of the tolerance: the world is at its end.
sn_real sn_horizon_error(SnHorizon *h, const SnKeptStep *s);
// Returns the factor from this step's size to the next, and takes note of its error.
sn_real sn_horizon_factor(SnHorizon *h, sn_real error, bool accepted);
// Returns the size of a first step, at the start of a run or behind an event, with one more evaluation. The first stage
// of s has been evaluated.
sn_real sn_horizon_first(SnHorizon *h, const SnHorizonInput *in, const SnKeptStep *s, int segment);

#endif

// Integration over a whole horizon by explicit Runge-Kutta methods with chosen step sizes, and its discrete adjoint.
//
// The state y = (qpos, qvel, act) moves by y' = (qvel, qacc, act_dot) with what sn_forward computes, so without the
// implicit damping of Euler's method. Activations keep to their ranges at the ends of steps. Stages that read the
// model's time step (refsafe, actearly) go on with it. Positions move on the group: stage j of a step stands at
// q (+) xi_j from its start, as in integrate_rk4.c.
//
// Step sizes follow a PID controller (G. Soderlind, Digital filters in adaptive time-stepping, ACM TOMS 29, 2003). The
// error of a step is the root mean square of e / (atol + rtol max(|y|, |y+|)) over qpos, the velocity integrated in
// this step, qvel and act. The first step is chosen as in Hairer, Norsett, Wanner, Solving ODEs I, section II.4.
//
// A step ends at each knot of the controls, where they jump or bend. With `events` it also ends at jumps and kinks of
// the force. A contact or limit begins to act there, or ends with a force, or a row of the solver changes its state.
// Fewer steps are rejected then, and the adjoint knows that these moments move. horizon_events.c has how. A contact
// that is stiff and rests costs steps for as long as it rests: of explicit methods each is as long as stability allows.
// max_steps bounds them.
//
// A run is a loop of the host, on one lane, over the stages that devices share. It owns its memory, all of it reserved
// by sn_horizon_create.
#ifndef SINEW_PHYSICS_STEP_HORIZON_H_
#define SINEW_PHYSICS_STEP_HORIZON_H_

#include "physics/step/tableau.h"
#include "physics/world/adjoint.h"

// Says how to integrate. sn_horizon_defaults sets all of it.
typedef struct SnHorizonSettings {
  int method;             // SnRkMethod
  sn_real rtol, atol;     // relative and absolute tolerance, > 0
  sn_real fixed_step;     // > 0: step of this size and control no error [s]
  sn_real first_step;     // [s]; 0: chosen
  sn_real smallest_step;  // [s]; 0: what rounding of the time leaves
  sn_real largest_step;   // [s]; 0: the horizon
  sn_real p, i, d;        // gains of the controller
  sn_real safety;         // times the size that the controller proposes, (0, 1]
  sn_real shrink, grow;   // least (0 to 1) and largest (1 and more) factor from a step to the next
  int max_steps;          // most steps, rejected ones included
  int keep;               // accepted steps that can be kept for sn_horizon_vjp; 0: none
  int checkpoints;        // starts of every `keep` steps: keep * checkpoints steps can be gone back through; 0: keep
  bool linear;            // controls go linearly between knots; else each holds until the next
  bool stop_at_outputs;   // steps end at output times; else outputs are interpolated
  bool events;            // steps end at jumps and kinks of the force; fixed ones never do
} SnHorizonSettings;

// Says what to integrate. Times count from the start of the run [s].
typedef struct SnHorizonInput {
  sn_real duration;          // > 0
  int nknot;                 // 0: the controls of the world, held
  const sn_real *knot_time;  // (nknot) ascending; before the first knot and behind the last one their values hold
  const sn_real *knot;       // (nknot, nu)
  int nout;
  const sn_real *out_time;  // (nout) ascending, 0 to duration
} SnHorizonInput;

// Takes the states at the output times. Any array may be NULL.
typedef struct SnHorizonOutput {
  sn_real *qpos, *qvel, *act;  // (nout, nq), (nout, nv), (nout, na)
} SnHorizonOutput;

// Gives the bars of the outputs, and takes those of what the run started from. Any array may be NULL.
typedef struct SnHorizonBars {
  const sn_real *out_qpos, *out_qvel, *out_act;  // (nout, nv) tangents, (nout, nv), (nout, na)
  sn_real *qpos, *qvel, *act;                    // (nv), (nv), (na)
  sn_real *knot;                                 // (nknot, nu); without knots (nu), of the controls
  sn_real *mocap;                                // (nmocap, 6)
  struct SnModelBar *model;                      // gets added to; zeroed by the caller
} SnHorizonBars;

// Says how a run ended. sn_horizon_status_text has the words.
typedef enum SnHorizonStatus {
  SN_HORIZON_DONE,
  SN_HORIZON_STEPS,     // max_steps do not suffice
  SN_HORIZON_SMALLEST,  // the error asks for a step below the smallest one
  SN_HORIZON_BAD,       // a state or an acceleration is NaN or beyond SN_MAXVAL at any size of the step
  SN_HORIZON_KEEP,      // more steps than can be kept, or gone back through from checkpoints
  SN_HORIZON_STATUSES
} SnHorizonStatus;

typedef struct SnHorizonScratch SnHorizonScratch;

// Holds a run. Set the state, controls and mocap poses of `world` before one; after it, the world is where the run
// ended.
typedef struct SnHorizon {
  SnModel model;  // the caller's, whose arrays it shares, with options of the solver for this run
  SnWorld world;
  SnLane lane;
  SnHorizonSettings settings;
  sn_real reached;         // time that the last run reached [s]
  int accepted, rejected;  // steps of the last run
  int evaluations;         // how often the dynamics were evaluated
  // Tells, before each step and on both ways, whether the call shall end, with SN_ERR_TIMEOUT. NULL: it goes on.
  bool (*stop)(void *argument);
  void *stop_argument;
  SnHorizonScratch *scratch;
} SnHorizon;

// Returns the defaults: Tsit5, tolerances 1e-5, P 0.2, I 0.4, D 0, safety 0.9, factors 0.2 to 10, 100000 steps,
// events.
SnHorizonSettings sn_horizon_defaults(void);

// Returns how many bytes a kept step takes.
size_t sn_horizon_step_bytes(const SnModel *m, int method);
// Returns how many bytes a checkpoint takes with the times of the `keep` steps behind it.
size_t sn_horizon_checkpoint_bytes(const SnModel *m, int keep);

// Makes a run of a model, which must stay and keep its options. The caller frees it with sn_horizon_free. Returns NULL
// and sets err on failure: SN_ERR_ARGUMENT, SN_ERR_MEMORY, SN_ERR_UNSUPPORTED for a model with the noslip solver or
// buffers.
SnHorizon *sn_horizon_create(const SnModel *m, const SnHorizonSettings *settings, SnError *err);
// Frees a run; NULL is allowed.
void sn_horizon_free(SnHorizon *h);

// Integrates from the state of the world. Returns SN_ERR_ARGUMENT and sets err when the input is not as it should be;
// else *status says how the run ended. Outputs that were not reached are left alone. A run that was stopped is none.
SnCode sn_horizon_run(SnHorizon *h, const SnHorizonInput *in, const SnHorizonOutput *out, SnHorizonStatus *status,
                      SnError *err);

// Runs the adjoint of the last run, which is done and was kept. `in` is that run's. It leaves out that the moment of a
// jump moves where the jump was not found as an event. So it is where a contact grazes, the number of contacts changes
// at a depth (box on box, features of meshes), or a tendon leaps across what it wraps. Without `events` it is so for
// all jumps. Through contacts the adjoint is of use then with fixed steps alone, as the derivative of what they
// compute. cfd: how contacts act on the way back, at the states of the run; NULL: as in the run. The contacts of the
// run say what begins or ends at an event. Changes the world. Returns SN_ERR_STATE and sets err where there is no such
// run.
SnCode sn_horizon_vjp(SnHorizon *h, const SnHorizonInput *in, const SnCfd *cfd, const SnHorizonBars *bars,
                      SnError *err);

// Does the same by the continuous adjoint, integrated backwards along the run with steps of its own. It is a check of
// sn_horizon_vjp, from which it differs by the tolerances. It goes along the interpolants of the kept steps and over
// the events that were found. Returns SN_ERR_ARGUMENT where bars->model is given, which it does not have. So it does
// for a method without an estimate of the error, or whose interpolant needs more than was kept. With a cfd of its own
// the two differ through events, too: what a later time gains (head of horizon_events.c) is then no constant.
SnCode sn_horizon_backsolve(SnHorizon *h, const SnHorizonInput *in, const SnCfd *cfd, const SnHorizonBars *bars,
                            SnError *err);

// Returns how many bytes the last run takes outside of it; 0: it is not done, was not kept, or took more than `keep`
// steps.
size_t sn_horizon_run_bytes(const SnHorizon *h);
// Copies the last run to `to`, which has room for that and the alignment of numbers.
void sn_horizon_save_run(const SnHorizon *h, void *to);
// Makes such a copy the last run again. The world has the controls, mocap poses and contacts from distance that it ran
// with; the settings are those of then. sn_horizon_vjp gives the same bits.
void sn_horizon_load_run(SnHorizon *h, const void *from);

// Returns the words for a status.
const char *sn_horizon_status_text(SnHorizonStatus status);

// Returns start, size and state of step k: time [s], size [s], and qpos, qvel, act where not NULL. States are NULL
// where they are not at hand: before the last `keep` steps, and after a way back through checkpoints.
void sn_horizon_step(const SnHorizon *h, int k, sn_real time[2], const sn_real **qpos, const sn_real **qvel,
                     const sn_real **act);

#endif

// sinew_client: ask a running sinewd for plans.
//
//   connect -> open a session on a task -> for ever: send the state, take the plan, apply its controls -> disconnect
//
// Errors, structures and names are as in sinew.h, of which this header needs types alone: who includes it links
// libsinew_client, not the engine. A text of an error has no control characters but ends of lines, whatever the daemon
// sent.
//
// Threads. A SinewClient and its sessions belong to one thread at a time; several clients are independent.
//
// Memory. A pointer that a function returns belongs to the library, and its comment says how long it is valid. Arrays
// that are passed in belong to the caller and are read during the call only.
//
// Units and shapes. Times are seconds. (n, m) is an array of n rows of m numbers, row by row. Positions (nq),
// velocities (nv), activations (na) and controls (nu) are those of the session's model, in its units and order.
//
// Clocks. The stamps of states, `now` of sinew_session_control and the times of a plan are readings of one clock, the
// client's own, that sinewd never reads. It may be the time of a simulation, a count of control periods times the
// period, seconds since the task began, CLOCK_MONOTONIC. It counts the body's seconds steadily and is never set: sinewd
// moves plans and estimates activations by the difference of two stamps. Unix time will not do; a state beyond 1e9 s is
// refused. The clock may begin anywhere, unless the task's targets move: those begin at its 0. Latency and time to live
// are durations on it; deadlines, leases, timeouts and `wait` are real time.
//
// Applying a plan, as sinew_session_control does. At time t this row of ctrl acts, at least row 0, at most row
// steps - 1:
//
//   row = floor((t - start) / step + 1e-6)
//
// No row acts any more once t - state_time is more than time_to_live.
//
// Latency (SinewSessionDef.latency) is how long after its state's stamp a plan is there. The first rows, which fall
// into it, are those of the plan before. The improved rows begin behind them, so a plan may be applied as soon as it
// comes. With too short a latency the body is not where the plan expects it; with too long a one more is left to
// prediction. Choose 0 for a body that waits for its plans (a simulation in lockstep). Choose the worst case for a
// robot, from measuring a state to the tick that first applies its plan. It holds the deadline, the way there and back,
// and a period of the control loop. sinew-plant takes the deadline and 5 ms. The latency is at most the length of a
// plan. The daemon's own default is 0: set it on a robot.
#ifndef SINEW_CLIENT_H_
#define SINEW_CLIENT_H_

#include "sinew.h"

#ifdef __cplusplus
extern "C" {
#endif

// Holds a connection to a daemon.
typedef struct SinewClient SinewClient;
// Holds a session: one task, its planner at the daemon, and the plan in force.
typedef struct SinewSession SinewSession;

// ---- connection ----

// Connects to an endpoint and greets the daemon. A NULL endpoint is the daemon's default ipc endpoint of this user.
// timeout [s], above 0, is for this and every later request. A request is sent up to `retries` more times, each time
// over a fresh connection. The daemon closes a session whose answer came too late when its lease ends. Returns NULL and
//   SINEW_ERR_ARGUMENT  the timeout, the retries, or an endpoint that is none
//   SINEW_ERR_TIMEOUT   no answer in time, retries included
//   SINEW_ERR_PROTOCOL  the daemon speaks another protocol
//   SINEW_ERR_MEMORY    out of memory
// Every function below that asks the daemon fails with the last three as well, and with SINEW_ERR_REFUSED. About a
// session that is no more it returns SINEW_ERR_NO_SESSION. A request that is longer than the daemon reads is not sent:
// SINEW_ERR_LIMIT.
SINEW_API SinewClient *sinew_client_connect(const char *endpoint, double timeout, int retries, SinewError *err);

// Says how to connect.
typedef struct SinewClientDef {
  size_t size;
  const char *endpoint;    // address of the daemon; NULL: its default ipc endpoint of this user
  double timeout;          // for this and every later request [s], above 0
  int retries;             // how many more times a request is sent, each time over a fresh connection
  const char *server_key;  // the daemon's public key in Z85, or a file of it; NULL: no keys
  const char *key_file;    // file of the client's own secret key, which nobody else may read; NULL: no keys
} SinewClientDef;

// Returns a definition with a timeout of 10 s, the rest 0.
static inline SinewClientDef sinew_default_client(void) {
  SinewClientDef x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  x.timeout = 10;
  return x;
}

// Connects as sinew_client_connect does, with keys where `def` has both. Keys are for tcp endpoints of a daemon that
// asks for them (its settings curve_key and allow); `sinewctl keygen FILE` makes a pair. Returns NULL and, beside the
// codes above,
//   SINEW_ERR_ARGUMENT  one key alone, a file that has none or is open to others, keys at an ipc endpoint
//   SINEW_ERR_REFUSED   the daemon does not let this key in, has another key than server_key, or asks for keys
SINEW_API SinewClient *sinew_client_connect_by(const SinewClientDef *def, SinewError *err);

// Closes the connection and frees the client. Close its sessions first. Accepts NULL.
SINEW_API void sinew_client_disconnect(SinewClient *client);

// ---- session ----

// Chooses what to apply when there is no usable plan: fills ctrl (nu) for time `now` [s]. `last` is the latest control
// that sinew_session_control gave (nu), and `user` the pointer given with the hook. sinew_session_control calls it, in
// its thread.
typedef void SinewSessionFallback(void *user, double now, const double *last, double *ctrl, int nu);
// Gives zero controls: the muscles relax.
SINEW_API void sinew_session_fallback_zero(void *user, double now, const double *last, double *ctrl, int nu);
// Keeps the last controls.
SINEW_API void sinew_session_fallback_hold(void *user, double now, const double *last, double *ctrl, int nu);

// Says how to open a session.
typedef struct SinewSessionDef {
  size_t size;
  const char *task;             // name of the task
  uint64_t seed;                // perturbs the initial pose and plan, seeds the planner
  const char *const *settings;  // planner settings "name=value", (.., NULL); NULL: the task's own
  double latency;       // from a state to its plan in force [s], see above; 0: the body waits; < 0: as the daemon says
  double lease;         // the daemon closes the session after so long without a request [s]; <= 0: as the daemon says
  double time_to_live;  // life of a plan after its state's time [s]; <= 0: as the daemon says
  SinewSessionFallback *fallback;  // NULL: sinew_session_fallback_zero
  void *fallback_user;             // given to the fallback
  int gain_rows;  // rows behind a plan's lead that get feedback gains, in every mode: sinew_session_feedback; 0: none
  const char *name;  // the session outlasts the daemon, and is found again by this; NULL: it does not
} SinewSessionDef;

// Returns a definition that leaves everything to the daemon and the task; set at least `task`.
static inline SinewSessionDef sinew_default_session(void) {
  SinewSessionDef x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  x.latency = -1;
  return x;
}

// Describes a session: sizes of its model, and the initial state. New members come at the end.
typedef struct SinewSessionInfo {
  uint64_t id;                  // number at the daemon
  const char *model;            // name of the model
  const char *file;             // path from which the daemon has loaded the model, on its machine
  double timestep;              // time step of the plans [s]
  int nq, nv, na, nu, nmocap;   // positions, velocities, activations, controls, mocap bodies
  const double *ctrl_range;     // (nu, 2); -inf, inf where not limited
  SinewState initial;           // puts the body where the task begins; has all of its arrays
  const SinewTaskPlant *plant;  // contacts that the task gives a simulated robot; NaN: the model's own
  int nhistory;                 // numbers of buffers of controls and sensors, and of rests of springs that yield
  const double *history;        // (nhistory) of the initial state
  bool resumed;       // it was there already, under its name, as it is: the settings of `def` were passed over
  uint64_t restarts;  // restarts of the daemon that it had outlasted when it was opened here
} SinewSessionInfo;

// Opens a session on a task and waits for its initial state. The session must be closed before its client. Returns NULL
// and SINEW_ERR_ARGUMENT (`def`, a setting that does not exist), or fails as sinew_client_connect.
//
// A session with a name goes on after a restart of a daemon that keeps sessions (its setting `state`). The library
// connects again by itself. It sends a request again, within its timeout, whose connection ended or whose daemon stops.
// Continuous mode begins anew. Until then the plan in force acts, and the fallback once it has expired. A program that
// was started again, too, opens the session by its name and goes on with it. Two programs that use one name share one
// session, and each disturbs the plans of the other.
//
// A session ends with its lease and, without a name, with its daemon. From then on every request is answered with
// SINEW_ERR_NO_SESSION. Close it here, and open another.
SINEW_API SinewSession *sinew_session_open(SinewClient *client, const SinewSessionDef *def, SinewError *err);

// Closes the session at the daemon and frees it, whatever the daemon answers. Accepts NULL. One that has ended already
// is closed. Fails as sinew_client_connect.
SINEW_API SinewStatus sinew_session_close(SinewSession *session, SinewError *err);

// Frees the session here and leaves it open at the daemon, as long as its lease lasts. One with a name is found again
// by that. Accepts NULL.
SINEW_API void sinew_session_leave(SinewSession *session);

// Returns sizes and initial state; valid until the session is closed.
SINEW_API const SinewSessionInfo *sinew_session_info(const SinewSession *session);

// ---- plans ----

// Holds a plan as the daemon sent it. It belongs to the session. The library refuses (SINEW_ERR_BAD_PLAN) a plan that
// must not move a robot:
//   whose       one of another session, or for a state later than the latest one sent
//   status      an unknown one
//   times       not finite, not positive, or such that do not belong together; a time to live of more than a day
//   controls    not finite, beyond 1e10, or not (steps, nu)
// New members come at the end.
typedef struct SinewSessionPlan {
  uint64_t number;          // 1, 2, ... of the session; better plans for one state share it
  double start, step;       // time of the first row of ctrl, and between rows [s]
  int steps;                // rows
  const double *ctrl;       // (steps, nu)
  double state_time;        // the stamp that it answers [s]
  double time_to_live;      // usable for so long after state_time [s]
  double age;               // time that the daemon took [s]
  double cost_before;       // cost of the shifted plan before; infinite: it diverged, NaN: not evaluated
  double cost_after;        // cost of this plan, at most cost_before
  int iterations;           // iterations that went into it; the last may be partial
  int candidates;           // candidates of the last iteration that were used; both reproduce the plan
  double gradient_norm;     // at ctrl, or, without time for that, at the iterate before; NaN: there is none
  bool refined;             // false: the shifted plan of before, there was no time
  bool deadline_met;        // it was made within the budget
  bool act_estimated;       // the state came without activations
  bool device_lost;         // the daemon's device has failed: plans come from its CPU until it is started again
  const char *backend;      // name of the one that made it, "cpu", "cuda"
  uint64_t config_version;  // version of the settings, weights and targets that it was made with
  uint64_t stream_number;   // in continuous mode: 1, 2, ... of the plans sent; else 0
  uint64_t stream_misses;   // states so far whose first plan came late
  int lead;                 // rows before the improved ones: those of the plan before
  const double *gain;       // (gain_rows, nu, 2 nv + na) feedback of rows from `lead` on, NULL: none
  int gain_rows;            // rows with feedback
  bool stuck;               // no better than the shifted plan before, and its gradient next to nothing
  int unimproved;           // plans in a row, up to this one, whose cost did not fall; 0: that of this one did
  uint64_t restarts;        // restarts of the daemon that the session has outlasted; one more: there was a gap
  bool from_policy;         // it began with the rollout of the task's policy, not with the shifted plan before
} SinewSessionPlan;

// Gives the buffers of controls and sensors that belong to the state sent next, then the rests of springs that yield.
// These are MuJoCo's mjData.history, then its mjData.plastic. `history` (n), n = nhistory, is copied. Without them the
// daemon puts the controls that it served into those of the state before. Returns SINEW_ERR_ARGUMENT (another n, a
// number that is not finite).
SINEW_API SinewStatus sinew_session_set_history(SinewSession *session, const double *history, int n, SinewError *err);

// Sends a state and waits for its plan, which is then in force for sinew_session_control. deadline [s] is the daemon's
// time to plan. qpos and qvel are needed; the daemon estimates act where it is NULL, and leaves mocap bodies where they
// were where mocap is NULL. Returns SINEW_ERR_ARGUMENT (the state), SINEW_ERR_NO_PLAN (every candidate diverged) or
// SINEW_ERR_BAD_PLAN, or fails as sinew_client_connect. On every status but SINEW_OK the plan before stays in force.
SINEW_API SinewStatus sinew_session_plan(SinewSession *session, const SinewState *state, double deadline,
                                         SinewError *err);

// Sends a state as sinew_session_plan does and goes on; sinew_session_receive takes its plan later. Sessions of one
// client share its connection, and a call that waits for one drops what comes for the others. Give each session its own
// client if several send states without waiting.
SINEW_API SinewStatus sinew_session_send(SinewSession *session, const SinewState *state, double deadline,
                                         SinewError *err);
// Takes a plan that has come, waiting at most `wait` seconds (0: looks only). SINEW_ERR_TIMEOUT says that none has come
// yet. A plan that is older than one already received is dropped, and so is an answer to a state that a newer one
// replaced. Fails as sinew_session_plan.
SINEW_API SinewStatus sinew_session_receive(SinewSession *session, double wait, SinewError *err);

// Returns the plan in force, or NULL when there is none yet. It is valid until the session receives the next one.
SINEW_API const SinewSessionPlan *sinew_session_current_plan(const SinewSession *session);

// Fills ctrl (nu) for time `now` [s] from the plan in force, by the rule above, each limited to its ctrl_range. A plan
// is never used more than its time to live after its state's stamp, nor so long before it. Without a plan that may be
// used the fallback fills ctrl, limited likewise: returns SINEW_ERR_EXPIRED, or SINEW_ERR_NO_PLAN before the first
// plan. It neither waits, allocates, nor talks to the daemon; on success it writes nothing to `err` but the status and
// an empty text.
SINEW_API SinewStatus sinew_session_control(SinewSession *session, double now, double *ctrl, SinewError *err);

// Fills ctrl (nu) as sinew_session_control does at the time of a measured state, with the plan's feedback. A row with
// gains becomes ctrl + gain (state (-) predicted state), within the ranges of the controls. Other rows stay, and so
// does one whose gains come to a control that is not finite or beyond 1e10. `state` needs qpos, qvel and act.
// *corrected, which may be NULL, says whether gains changed the row. Returns SINEW_ERR_ARGUMENT for a state with a
// number that is not finite, else as sinew_session_control.
SINEW_API SinewStatus sinew_session_feedback(SinewSession *session, const SinewState *state, double *ctrl,
                                             bool *corrected, SinewError *err);

// Asks for the cost of controls ctrl (steps, nu) applied from a state, under the session's weights and targets. Fills
// `gradient` (steps, nu), unless it is NULL, with the derivative of the cost by the controls. A motion that diverges
// costs infinity and has gradient 0. Plans are not touched. Fails as sinew_session_plan.
SINEW_API SinewStatus sinew_session_evaluate(SinewSession *session, const SinewState *state, const double *ctrl,
                                             int steps, double *cost, double *gradient, SinewError *err);

// ---- changes while it runs ----
//
// These wait for the daemon's answer. A change is in force from the next iteration on, of plans in progress too.
// Another planner or latency is in force from the next plan on. SinewSessionPlan.config_version names the version that
// a plan was made with, one more with each change. Plans that come meanwhile are there for the next call that receives.
// Others who may steer the session can change it, too, as `sinewctl tune` does.

// Changes a setting of the planner, "adam_rate=0.02", or of the session: "latency=0.02", "lease=60", "time_to_live=1".
// Returns SINEW_ERR_ARGUMENT (there is no such setting, a value of another kind), SINEW_ERR_REFUSED (out of bounds, or
// fixed while the session is open), or fails as sinew_client_connect.
SINEW_API SinewStatus sinew_session_set(SinewSession *session, const char *assignment, SinewError *err);

// Changes the weights of a term of the cost, running and at the end of the horizon, each 0 to 1e9. Returns
// SINEW_ERR_REFUSED (no such term, out of bounds), SINEW_ERR_ARGUMENT, or fails as sinew_client_connect.
SINEW_API SinewStatus sinew_session_set_weight(SinewSession *session, const char *term, double weight, double terminal,
                                               SinewError *err);

// Changes the target of a term to the constant value[n], in the frame and unit of the task's own; n = 0: the task's own
// again. Fails as sinew_session_set_weight.
SINEW_API SinewStatus sinew_session_set_target(SinewSession *session, const char *term, const double *value, int n,
                                               SinewError *err);

// ---- continuous mode ----
//
// The daemon refines the newest state that it has and sends every better plan, while the lease holds.
//
//   sinew_session_stream_start(session, &def, &err);
//   for (;;) {                                          // the control loop: nothing here waits
//     sinew_session_stream_send(session, &state, &err);   // as often as a state is measured
//     sinew_session_stream_receive(session, 0, &err);     // the newest plan, if one has come, is now in force
//     sinew_session_control(session, now, ctrl, &err);
//   }
//   sinew_session_stream_stop(session, &err);

// Says how continuous mode goes.
typedef struct SinewStreamDef {
  size_t size;
  double lease;     // the daemon ends the mode after so long without a state [s]
  double deadline;  // from a state to its first plan; later is a miss [s]; it orders the daemon's work
  double period;    // refinement of a state before a newer one takes its place [s]; 0: one iteration
  int iterations;   // most iterations for one state; 0: until a newer one comes
} SinewStreamDef;

// Returns a lease of 0.5 s and a deadline of 0.04 s, the rest 0.
static inline SinewStreamDef sinew_default_stream(void) {
  SinewStreamDef x;
  memset(&x, 0, sizeof x);
  x.size = sizeof x;
  x.lease = 0.5;
  x.deadline = 0.04;
  return x;
}

// Begins continuous mode, or changes the terms of what runs, and waits for the daemon's answer. `def` NULL stands for
// the defaults. Returns SINEW_ERR_ARGUMENT, or fails as sinew_client_connect.
SINEW_API SinewStatus sinew_session_stream_start(SinewSession *session, const SinewStreamDef *def, SinewError *err);

// Sends a state, as sinew_session_plan takes it, and goes on. Renews the lease, and tells the daemon which plan was
// received last. A client that does not receive never has more than 32 plans on their way. Returns
// SINEW_ERR_ARGUMENT, SINEW_ERR_TIMEOUT (the connection takes nothing more) or SINEW_ERR_MEMORY on failure.
SINEW_API SinewStatus sinew_session_stream_send(SinewSession *session, const SinewState *state, SinewError *err);

// Takes all that has come, waiting at most `wait` seconds for a first plan (0: looks only). Returns
//   SINEW_OK            a newer plan is in force; on every other status the latest good one stays
//   SINEW_ERR_TIMEOUT   none has come
//   SINEW_ERR_NO_PLAN   the latest answer is that every candidate diverged
//   SINEW_ERR_BAD_PLAN  a plan was refused; there may be more to take
//   SINEW_ERR_REFUSED   a state was refused; there may be more to take
//   SINEW_ERR_ENDED, SINEW_ERR_NO_SESSION  there will be no more
SINEW_API SinewStatus sinew_session_stream_receive(SinewSession *session, double wait, SinewError *err);

// Ends continuous mode and waits for the daemon's answer. The plan in force stays until it expires. Returns SINEW_OK
// also when the mode had ended already. Fails as sinew_client_connect.
SINEW_API SinewStatus sinew_session_stream_stop(SinewSession *session, SinewError *err);

#ifdef __cplusplus
}
#endif

#endif

// Client library of sinew: ask a running sinewd for plans.
//
//   connect -> open a session on a task -> for ever: send the state, take the plan, apply its controls -> disconnect
//
// Errors. The functions never print, exit or abort. They return a SinewStatus, and sinew_error has a text that says
// what went wrong, with place and value.
//
// Threads. A SinewClient and its sessions belong to one thread at a time; several clients are independent.
//
// Memory. A pointer that a function returns belongs to the library, and its comment says how long it is valid. Arrays
// that are passed in belong to the caller and are read during the call only.
//
// Units and shapes. Times are seconds. (n, m) is a matrix of n rows of m numbers, row by row. Positions (nq),
// velocities (nv), activations (na) and controls (nu) are those of the session's model, in its units and order.
//
// Clocks. The stamps of states, `now` of sinew_control and the times of a plan are readings of one clock, the client's
// own, that sinewd never reads. It may be the time of a simulation, a count of control periods times the period,
// seconds since the task began, CLOCK_MONOTONIC. It counts the body's seconds steadily and is never set: sinewd moves
// plans and estimates activations by the difference of two stamps. Unix time will not do; a state beyond 1e9 s is
// refused. The clock may begin anywhere, unless the task's targets move: those begin at its 0. Latency and time to live
// are durations on it; deadlines, leases, timeouts and `wait` are real time.
//
// Applying a plan, as sinew_control does. At time t this row of ctrl acts, at least row 0, at most row steps - 1:
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Says how a call ended.
typedef enum SinewStatus {
  SINEW_OK,
  SINEW_ARGUMENT,  // the call itself is wrong: a null pointer, a negative time
  SINEW_MEMORY,    // out of memory
  SINEW_TIMEOUT,   // no answer in time, retries included
  SINEW_REFUSED,   // the daemon answered with an error: its text is in sinew_error
  SINEW_PROTOCOL,  // the answer could not be understood
  SINEW_NO_PLAN,   // the daemon has no plan for this state (replaced by a newer one, or diverged)
  SINEW_EXPIRED,   // the plan at hand is too old to be used: the fallback's controls were given
  SINEW_ENDED,     // the daemon has ended continuous mode: its lease ran out, or the session was closed
  SINEW_BAD_PLAN,  // a plan that must not be used was refused (see SinewPlan); the one before stays in force
} SinewStatus;

// Holds a connection to a daemon.
typedef struct SinewClient SinewClient;
// Holds a session: one task, its planner at the daemon, and the plan in force.
typedef struct SinewSession SinewSession;

// ---- connection ----

// Connects to an endpoint and greets the daemon. A NULL endpoint is the daemon's default ipc endpoint of this user.
// timeout [s], above 0, is for this and every later request. A request is sent up to `retries` more times, each time
// over a fresh connection. The daemon closes a session whose answer came too late when its lease ends. Returns NULL and
// a text in error[error_size], which may be NULL, on failure.
SinewClient *sinew_connect(const char *endpoint, double timeout, int retries, char *error, size_t error_size);

// Closes the connection and frees the client. Close its sessions first. Accepts NULL.
void sinew_disconnect(SinewClient *client);

// Returns the text of the client's latest failure, valid until its next call; "" when there was none. The text has no
// control characters but ends of lines, whatever the daemon sent.
const char *sinew_error(const SinewClient *client);

// Returns the name of a status, e.g. "timeout"; valid for ever.
const char *sinew_status_name(SinewStatus status);

// ---- session ----

// Chooses what to apply when there is no usable plan: fills ctrl (nu) for time `now` [s]. `last` is the latest control
// that sinew_control gave (nu), and `user` the pointer given with the hook. sinew_control calls it, in its thread.
typedef void SinewFallback(void *user, double now, const double *last, double *ctrl, int nu);
// Gives zero controls: the muscles relax.
void sinew_fallback_zero(void *user, double now, const double *last, double *ctrl, int nu);
// Keeps the last controls.
void sinew_fallback_hold(void *user, double now, const double *last, double *ctrl, int nu);

// Says how to open a session. Start from sinew_default_session().
typedef struct SinewSessionDef {
  const char *task;             // name of the task
  uint64_t seed;                // perturbs the initial pose and plan, seeds the planner
  const char *const *settings;  // planner settings "name=value", (.., NULL); NULL: the task's own
  double latency;       // from a state to its plan in force [s], see above; 0: the body waits; < 0: as the daemon says
  double lease;         // the daemon closes the session after so long without a request [s]; <= 0: as the daemon says
  double time_to_live;  // life of a plan after its state's time [s]; <= 0: as the daemon says
  SinewFallback *fallback;  // NULL: sinew_fallback_zero
  void *fallback_user;      // given to the fallback
} SinewSessionDef;
// Returns a definition that leaves everything to the daemon and the task; set at least `task`.
SinewSessionDef sinew_default_session(void);

// Describes a session: sizes of its model, and the initial state.
typedef struct SinewSessionInfo {
  uint64_t id;
  const char *model;  // name of the model
  const char *file;   // path from which the daemon has loaded the model, on its machine
  double timestep;    // time step of the plans [s]
  int nq, nv, na, nu, nmocap;
  const double *ctrl_range;                 // (nu, 2); -inf, inf where not limited
  const double *qpos, *qvel, *act, *mocap;  // initial state: (nq), (nv), (na), (nmocap, 7)
} SinewSessionInfo;

// Opens a session on a task and waits for its initial state. The session must be closed before its client. On failure
// *session is NULL.
SinewStatus sinew_open(SinewClient *client, const SinewSessionDef *def, SinewSession **session);

// Returns sizes and initial state; valid until the session is closed.
const SinewSessionInfo *sinew_session_info(const SinewSession *session);

// Closes the session at the daemon and frees it, whatever the daemon answers. Accepts NULL.
SinewStatus sinew_close(SinewSession *session);

// ---- plans ----

// Holds a measured state. The daemon estimates act where it is NULL. Mocap bodies stay where the task put them where
// mocap is NULL.
typedef struct SinewState {
  double time;          // stamp on the client's clock [s]
  const double *qpos;   // (nq)
  const double *qvel;   // (nv)
  const double *act;    // (na) or NULL
  const double *mocap;  // (nmocap, 7) positions and unit quaternions, or NULL
} SinewState;

// Holds a plan as the daemon sent it. The library refuses (SINEW_BAD_PLAN) a plan that must not move a robot:
//   whose       one of another session, or for a state later than the latest one sent
//   status      an unknown one
//   times       not finite, not positive, or such that do not belong together; a time to live of more than a day
//   controls    not finite, beyond 1e10, or not (steps, nu)
typedef struct SinewPlan {
  uint64_t sequence;
  double state_time;    // the stamp that it answers [s]
  double age;           // time that the daemon took [s]
  double time_to_live;  // usable for so long after state_time [s]
  double start, step;   // time of the first row of ctrl and between rows [s]
  int steps;
  const double *ctrl;  // (steps, nu)
  double cost_before;  // cost of the shifted plan before it; infinite: it diverged, NaN: not evaluated
  double cost_after;   // cost of this plan, at most cost_before
  int iterations, candidates;
  bool refined;              // false: the shifted plan in force, there was no time to refine
  bool deadline_met;         // the daemon kept the deadline
  bool act_estimated;        // the state came without activations
  double gradient_norm;      // NaN: the planner makes no gradient
  uint64_t config_version;   // version of the settings, weights and targets that it was made with
  uint64_t stream_sequence;  // in continuous mode: 1, 2, ... of the plans sent; else 0
  uint64_t stream_misses;    // states so far whose first plan came late
  const char *backend;       // name of the backend that made it: "cpu", "cuda"; as long valid as ctrl
  bool device_lost;          // the daemon's device has failed: plans come from its CPU until it is started again
} SinewPlan;

// Sends a state and waits for its plan, which is then in force for sinew_control. deadline [s] is the daemon's time to
// plan. Returns SINEW_NO_PLAN when every candidate diverged. On every status but SINEW_OK the plan before stays in
// force.
SinewStatus sinew_plan(SinewSession *session, const SinewState *state, double deadline);

// Sends a state and goes on; sinew_receive takes its plan later. Sessions of one client share its connection, and a
// call that waits for one drops what comes for the others. Give each session its own client if several send states
// without waiting.
SinewStatus sinew_send_state(SinewSession *session, const SinewState *state, double deadline);
// Takes a plan that has come, waiting at most `wait` seconds (0: looks only). SINEW_TIMEOUT says that none has come
// yet. A plan that is older than one already received is dropped, and so is an answer to a state that a newer one
// replaced.
SinewStatus sinew_receive(SinewSession *session, double wait);

// Returns the plan in force, or NULL when there is none yet. It is valid until the session receives the next one.
const SinewPlan *sinew_current_plan(const SinewSession *session);

// Fills ctrl (nu) for time `now` [s] from the plan in force, by the rule above, each limited to its ctrl_range. A plan
// is never used more than its time to live after its state's stamp, nor so long before it. Without a plan that may be
// used the fallback fills ctrl, limited likewise: returns SINEW_EXPIRED, or SINEW_NO_PLAN before the first plan. It
// neither waits nor talks to the daemon.
SinewStatus sinew_control(SinewSession *session, double now, double *ctrl);

// Asks for the cost of controls ctrl (steps, nu) applied from a state, under the session's weights and targets. Fills
// `gradient` (steps, nu), unless it is NULL, with the derivative of the cost by the controls. When the motion diverges
// the cost is infinite and the derivative 0. Plans are not touched.
SinewStatus sinew_evaluate(SinewSession *session, const SinewState *state, const double *ctrl, int steps, double *cost,
                           double *gradient);

// ---- continuous mode ----
//
// The daemon refines the newest state that it has and sends every better plan, while the lease holds.
//
//   sinew_stream_start(session, &def);
//   for (;;) {                             // the control loop: nothing here waits
//     sinew_stream_state(session, &state);        // as often as a state is measured
//     sinew_stream_poll(session, 0);              // the newest plan, if one has come, is now in force
//     sinew_control(session, now, ctrl);
//   }
//   sinew_stream_stop(session);

// Says how continuous mode goes. Start from sinew_default_stream().
typedef struct SinewStreamDef {
  double lease;     // the daemon ends the mode after so long without a state [s] (0.5)
  double deadline;  // from a state to its first plan; later is a miss [s] (0.04); it orders the daemon's work
  double period;    // least refinement of a state before a newer one takes its place [s] (0: one iteration)
  int iterations;   // most iterations for one state (0: until a newer one comes)
} SinewStreamDef;
// Returns the values in brackets above.
SinewStreamDef sinew_default_stream(void);

// Begins continuous mode, or changes the terms of what runs, and waits for the daemon's answer.
SinewStatus sinew_stream_start(SinewSession *session, const SinewStreamDef *def);

// Sends a state, which renews the lease, and goes on. It also tells the daemon which plan was read last: a client that
// does not poll never has more than 32 plans on their way.
SinewStatus sinew_stream_state(SinewSession *session, const SinewState *state);

// Reads all that has come, waiting at most `wait` seconds for a first plan (0: looks only). Returns
//   SINEW_OK        a newer plan is in force; on every other status the latest good one stays
//   SINEW_TIMEOUT   none has come
//   SINEW_NO_PLAN   the latest answer is that every candidate diverged
//   SINEW_BAD_PLAN  a plan was refused; there may be more to read
//   SINEW_REFUSED   a state was refused; there may be more to read
//   SINEW_ENDED     there will be no more
SinewStatus sinew_stream_poll(SinewSession *session, double wait);

// Ends continuous mode and waits for the daemon's answer. The plan in force stays until it expires. Returns SINEW_OK
// also when the mode had ended already.
SinewStatus sinew_stream_stop(SinewSession *session);

#ifdef __cplusplus
}
#endif

#endif

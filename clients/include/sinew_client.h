// Client library of sinew: ask a running sinewd for plans.
//
//   connect -> open a session on a task -> for ever: send the state, take the plan, apply its controls -> disconnect
//
// The functions never print, exit or abort; what went wrong is a SinewStatus and a text (sinew_error).
// Thread rule: a SinewClient and its sessions belong to one thread at a time; several clients are independent.
//
// Clocks. All times are seconds. The stamps of states, `now` of sinew_control and the times of a plan are readings of
// one clock, the client's own, that sinewd never reads: the time of a simulation, a count of control periods times the
// period, seconds since the task began, CLOCK_MONOTONIC. It counts the body's seconds steadily and is never set, since
// sinewd moves plans and estimates activations by the difference of two stamps; Unix time will not do, a state beyond
// 1e9 s is refused. Where it begins is free, unless the task's targets move: those begin at its 0. Latency and time to
// live are durations on it; deadlines, leases, timeouts and `wait` are real time.
//
// Applying a plan, as sinew_control does: at time t row floor((t - start) / step + 1e-6) of ctrl, at least 0, at most
// steps - 1, and none any more once t - state_time is more than time_to_live.
//
// Latency (SinewSessionDef.latency) is how long after its state's stamp a plan is there. The first rows, which fall
// into it, are those of the plan before; what is improved begins behind them, so a plan may be applied as soon as it
// comes. Too short, and the body is not where the plan expects it; too long, and more is left to prediction. Choose 0
// for a body that waits for its plans (a simulation in lockstep), else what passes at worst from measuring a state to
// the tick that first applies its plan: the deadline, the way there and back, a period of the control loop. sinew-plant
// takes the deadline and 5 ms. It is at most the length of a plan. The daemon's own default is 0: set it on a robot.
#ifndef SINEW_CLIENT_H_
#define SINEW_CLIENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct SinewClient SinewClient;
typedef struct SinewSession SinewSession;

// Connects to an endpoint (NULL: the daemon's default ipc endpoint of this user) and greets the daemon.
// timeout [s] is for this and every later request; a request is sent up to `retries` more times, each time over a fresh
// connection. A session that was opened for an answer that came too late is closed by the daemon when its lease ends.
// Returns NULL and a text in error (of error_size bytes, may be NULL) on failure.
SinewClient *sinew_connect(const char *endpoint, double timeout, int retries, char *error, size_t error_size);

// Closes the connection and frees the client; sessions must have been closed. NULL is allowed.
void sinew_disconnect(SinewClient *client);

// Text of the latest failure of this client, valid until its next call; "" when there was none. It has lines and no
// other control characters, whatever the daemon sent.
const char *sinew_error(const SinewClient *client);

// Name of a status, e.g. "timeout".
const char *sinew_status_name(SinewStatus status);

// What to apply when there is no usable plan: fills ctrl (nu) for time `now`. last is the latest control
// that sinew_control gave (nu). user is the pointer given with the hook.
typedef void SinewFallback(void *user, double now, const double *last, double *ctrl, int nu);
void sinew_fallback_zero(void *user, double now, const double *last, double *ctrl, int nu);  // relax
void sinew_fallback_hold(void *user, double now, const double *last, double *ctrl, int nu);  // keep the last

// How to open a session. Start from sinew_default_session().
typedef struct SinewSessionDef {
  const char *task;             // name of the task
  uint64_t seed;                // perturbs the initial pose and plan, seeds the planner
  const char *const *settings;  // planner settings "name=value", (.., NULL); NULL: the task's own
  double latency;       // from a state to its plan in force [s], see above; 0: the body waits; < 0: as the daemon says
  double lease;         // the daemon closes the session after so long without a request [s]; <= 0: as the daemon says
  double time_to_live;  // of a plan after its state's time [s]; <= 0: as the daemon says
  SinewFallback *fallback;  // NULL: sinew_fallback_zero
  void *fallback_user;
} SinewSessionDef;
SinewSessionDef sinew_default_session(void);

// Sizes and start of a session.
typedef struct SinewSessionInfo {
  uint64_t id;
  const char *model;  // name of the model
  const char *file;   // that the daemon has it from, on its machine
  double timestep;    // of the plans [s]
  int nq, nv, na, nu, nmocap;
  const double *ctrl_range;                 // (nu, 2); -inf, inf where not limited
  const double *qpos, *qvel, *act, *mocap;  // initial state: (nq), (nv), (na), (nmocap, 7)
} SinewSessionInfo;

// Opens a session. On failure *session is NULL.
SinewStatus sinew_open(SinewClient *client, const SinewSessionDef *def, SinewSession **session);

// Sizes and initial state; valid until the session is closed.
const SinewSessionInfo *sinew_session_info(const SinewSession *session);

// Closes the session at the daemon and frees it, whatever the daemon answers. NULL is allowed.
SinewStatus sinew_close(SinewSession *session);

// A measured state. act and mocap may be NULL: the daemon estimates act, mocap bodies stay where the task put them.
typedef struct SinewState {
  double time;
  const double *qpos;   // (nq)
  const double *qvel;   // (nv)
  const double *act;    // (na) or NULL
  const double *mocap;  // (nmocap, 7) or NULL
} SinewState;

// A plan as the daemon sent it; valid until the session receives the next one. Refused (SINEW_BAD_PLAN) are plans of
// another session, for a state later than the latest one sent, of unknown status, with times that are not finite, not
// positive or do not belong together, with a time to live of more than a day, and with controls that are not finite,
// beyond 1e10 or not (steps, nu).
typedef struct SinewPlan {
  uint64_t sequence;
  double state_time;    // the stamp that it answers
  double age;           // [s] that the daemon took
  double time_to_live;  // [s] after state_time
  double start, step;   // time of the first row of ctrl and between rows [s]
  int steps;
  const double *ctrl;  // (steps, nu)
  double cost_before, cost_after;
  int iterations, candidates;
  bool refined;  // false: the shifted plan in force, there was no time to refine
  bool deadline_met, act_estimated;
  double gradient_norm;      // NaN: the planner makes no gradient
  uint64_t config_version;   // of the settings, weights and targets that it was made with
  uint64_t stream_sequence;  // in continuous mode: 1, 2, ... of the plans sent; else 0
  uint64_t stream_misses;    // states so far whose first plan came late
  const char *backend;       // that made it: "cpu", "cuda"; as long as ctrl
  bool device_lost;          // the daemon's device has failed: plans come from its CPU until it is started again
} SinewPlan;

// Sends a state and waits for its plan; deadline [s] is the daemon's time to plan. The plan is then
// the one in force for sinew_control.
SinewStatus sinew_plan(SinewSession *session, const SinewState *state, double deadline);

// The same without waiting: send a state, go on, and look for the plan later. sinew_receive waits at
// most `wait` seconds (0: looks only); SINEW_TIMEOUT says that no plan has come yet. A plan that is older than one
// already received is dropped, and so is the word that a newer state took an older one's place. Sessions of one client
// share its connection, and what one waits for it drops of the others: where several send states without
// waiting, give each its client.
SinewStatus sinew_send_state(SinewSession *session, const SinewState *state, double deadline);
SinewStatus sinew_receive(SinewSession *session, double wait);

// Cost of controls (steps, nu) applied from a state, under the session's weights and targets, and its derivative with
// respect to them, gradient (steps, nu); NULL: not wanted. Infinite when the motion diverges; the derivative is then 0.
// Plans are not touched.
SinewStatus sinew_evaluate(SinewSession *session, const SinewState *state, const double *ctrl, int steps, double *cost,
                           double *gradient);

// Continuous mode: the daemon refines the newest state that it has and sends every better plan, while the lease holds.
//
//   sinew_stream_start(session, &def);
//   for (;;) {                             // the control loop: nothing here waits
//     sinew_stream_state(session, &state);        // as often as a state is measured
//     sinew_stream_poll(session, 0);              // the newest plan, if one has come, is now in force
//     sinew_control(session, now, ctrl);
//   }
//   sinew_stream_stop(session);

// How to begin. Start from sinew_default_stream().
typedef struct SinewStreamDef {
  double lease;     // without a state for so long the daemon ends it [s] (0.5)
  double deadline;  // from a state to its first plan; later is a miss [s] (0.04); it orders the daemon's work
  double period;   // of refinement that a state gets at least before a newer one takes its place [s] (0: one iteration)
  int iterations;  // of a state at most (0: until a newer one comes)
} SinewStreamDef;
SinewStreamDef sinew_default_stream(void);

// Begins, or changes the terms of what runs; waits for the daemon's word.
SinewStatus sinew_stream_start(SinewSession *session, const SinewStreamDef *def);

// Sends a state, which renews the lease, and goes on. It says too which plan was read last: a client that does not poll
// never has more than 32 plans on their way.
SinewStatus sinew_stream_state(SinewSession *session, const SinewState *state);

// Reads all that has come, waiting at most `wait` seconds for a first plan (0: looks only). SINEW_OK: a newer plan is
// in force. Else the latest good one stays in force. SINEW_TIMEOUT: none has come. SINEW_NO_PLAN: the latest word is
// that every candidate diverged. SINEW_BAD_PLAN: a plan was refused, SINEW_REFUSED: a state was; there may be more to
// read. SINEW_ENDED: there will be no more.
SinewStatus sinew_stream_poll(SinewSession *session, double wait);

// Ends it and waits for the daemon's word. The plan in force stays until it expires. Ended already: SINEW_OK.
SinewStatus sinew_stream_stop(SinewSession *session);

// The plan in force, or NULL when there is none yet.
const SinewPlan *sinew_current_plan(const SinewSession *session);

// Controls for time `now` from the plan in force, by the rule above, each limited to its ctrl_range. A plan is never
// used more than its time to live after its state's stamp, nor so long before it: the fallback fills ctrl (nu), limited
// likewise, and SINEW_EXPIRED (or SINEW_NO_PLAN before the first plan) is returned.
SinewStatus sinew_control(SinewSession *session, double now, double *ctrl);

#ifdef __cplusplus
}
#endif

#endif

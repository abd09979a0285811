// A session as the files of this library see it. Not installed.
//   session.c       opens and closes it
//   sinew_client.c  plans by a deadline, controls
//   stream.c        continuous mode
//   tune.c          settings, weights and targets while it runs
#ifndef SINEW_CLIENTS_LIBSINEW_CLIENT_SESSION_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_CLIENT_SESSION_PRIVATE_H_

#include "clients/include/sinew_client.h"
#include "proto/sinew.pb-c.h"

// Holds a session.
struct SinewSession {
  SinewClient *client;
  Sinew__V1__Reply *opened;  // owns the strings and arrays of `info`
  Sinew__V1__Reply *described;
  Sinew__V1__Reply *planned;  // owns the arrays of `plan`
  SinewSessionInfo info;
  SinewTaskPlant plant;
  SinewSessionPlan plan;
  double *ctrl_range;
  double *last;  // latest controls given, (nu)
  // Ids of requests: of the latest state sent without waiting, and that up to which answers are of no use any more.
  uint64_t sent, taken;
  uint64_t read;          // stream_number of the latest plan of the stream that was read
  bool kept;              // it was opened by a name, so that it outlasts the daemon
  bool streaming;         // continuous mode has begun, and nobody has ended it
  SinewStreamDef stream;  // repeats the latest terms
  double latest;          // time stamp of the latest state sent [s]; -infinity before the first
  double furthest;        // the largest time stamp sent so far [s]; -infinity before the first
  SinewSessionFallback *fallback;
  void *fallback_user;
  int gain_rows;     // asked for with each state
  double *history;   // (nhistory) buffers of the state sent next
  bool has_history;  // they were given
};

// Fills in a state on the wire, which refers to the arrays of `state`. Returns SINEW_ERR_ARGUMENT for a NULL session or
// state, and for one without qpos or qvel or with a number that is not finite.
SinewStatus sn_session_state(const SinewSession *session, const SinewState *state, Sinew__V1__State *s,
                             SinewError *err);

// Sends a request about the session and waits for its reply as sn_request does. It asks again where a daemon stops that
// the session outlasts.
SinewStatus sn_session_request(const SinewSession *session, Sinew__V1__Request *request, Sinew__V1__Reply **reply,
                               SinewError *err);

// Tells whether a reply says no more than that a daemon stops which the session outlasts.
bool sn_session_outlasts(const SinewSession *session, const Sinew__V1__Reply *reply);

// Notes that a state of that time stamp [s] is sent, with its buffers, which are forgotten. A clock that was set back
// makes answers to states that were sent before, without waiting, useless.
void sn_session_stamp(SinewSession *session, double time);

// Tells whether a plan answers a state of before the caller set its clock back, as simulators do at a new episode.
// Plans of a stream name their states by the stamp alone: of these it knows those that are later than the latest state.
bool sn_session_outlived(const SinewSession *session, const Sinew__V1__Plan *plan);

// Takes over a reply: a usable plan becomes the one in force.
SinewStatus sn_session_take_plan(SinewSession *session, Sinew__V1__Reply *reply, SinewError *err);

#endif

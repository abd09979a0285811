// What the planner thread does for a session in its turn: begin and finish plans, evaluate, change settings.
#ifndef SINEW_DAEMON_PLANNING_SERVE_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_SERVE_PRIVATE_H_

#include "daemon/session/pack.h"
#include "daemon/planning/planning.h"

// The clock of the scheduler, for planners.
SnClock sn_scheduler_clock(void);

// Begins the plan that waits. False when it was refused; then it has been answered.
bool sn_serve_begin(SnScheduler *scheduler, SnSession *session);

// Ends the plan in the making and answers it.
void sn_serve_finish(SnScheduler *scheduler, SnSession *session);

// A plan on the wire, but for its age and what a deadline says; and its sending.
void sn_serve_pack_plan(SnScratch *scratch, const SnSession *session, const SnPlan *plan, Sinew__V1__Plan *out);
void sn_serve_send_plan(SnScheduler *scheduler, const SnRoute *route, Sinew__V1__Plan *plan);
// Counts a state that is answered for the first time, for its session and for the daemon.
void sn_serve_count_answer(const SnScheduler *scheduler, SnSession *session, SnTiming timing);
// Counts a plan that is sent; the first one of a session whose rollouts overflowed is logged.
void sn_serve_count_plan(const SnScheduler *scheduler, SnSession *session, const Sinew__V1__Plan *plan, double now);

// Answers a plan request whose place a newer one has taken, and frees it. Any thread.
void sn_serve_replaced(SnScheduler *scheduler, SnSession *session, SnJob *job);

// Works on the session's first evaluation until the clock reads `until`; answers and frees its job when it is done.
void sn_serve_evaluation(SnScheduler *scheduler, SnSession *session, double until);

// Forgets the evaluation under way; its job stays where it is, and is begun again in the next slice.
void sn_serve_drop_evaluation(SnSession *session);

// Numbers of the wire as the engine's; the memory is the scratch's. NULL for none.
sn_real *sn_serve_reals(SnScratch *scratch, const double *x, size_t n);
// Mocap poses of a state, apart; NULL for none.
void sn_serve_mocap(SnScratch *scratch, const Sinew__V1__State *state, const sn_real **pos, const sn_real **quat);
// Rows of states on the wire.
Sinew__V1__Trajectory *sn_serve_trajectory(SnScratch *scratch, const SnSession *session, const SnTrajectory *states,
                                           double start, double step, size_t rows);

// Reset, get, set and revert configuration: carries out, answers, frees the job.
void sn_serve_command(SnScheduler *scheduler, SnJob *job);

// ---- continuous mode ----

// Whether a job is a state of a stream. NULL is none.
bool sn_job_streams(const SnJob *job);
// Whether there is a plan to be made, or in the making.
bool sn_serve_has_plan(const SnSession *session);

// Starts, renews or stops a stream: carries out, answers, frees the job.
void sn_serve_stream(SnScheduler *scheduler, SnJob *job);
// Ends a stream, if it runs, and says so to its client. expire: when its lease has run out.
void sn_serve_stream_end(SnScheduler *scheduler, SnSession *session, Sinew__V1__StreamReply__End end);
void sn_serve_stream_expire(SnScheduler *scheduler, SnSession *session, double now);
// A state of the stream has come: renews the lease, sets when its plan is due.
void sn_serve_stream_receive(SnSession *session, SnJob *job);
// Work on a state begins. Iterations that it may have.
void sn_serve_stream_begin(SnSession *session);
int sn_stream_iterations(const SnSession *session);
// Is it the turn of a state that is newer than the one in work?
bool sn_serve_stream_over(const SnSession *session, double now);
// After a slice: sends the plan in the making if it is better than what was sent, or ends it. ready: it is complete.
void sn_serve_stream_update(SnScheduler *scheduler, SnSession *session, bool ready);
// Sends a plan that has ended, if it is better.
void sn_serve_stream_offer(SnScheduler *scheduler, SnSession *session, const SnJob *job, const SnPlan *plan);

#endif

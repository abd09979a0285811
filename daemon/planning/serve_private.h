// A session's turn on the planner thread: begin and finish plans, evaluate, change settings. Unless said otherwise the
// planner thread alone calls these.
#ifndef SINEW_DAEMON_PLANNING_SERVE_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_SERVE_PRIVATE_H_

#include "daemon/planning/planning.h"
#include "daemon/session/pack.h"

// ---- plans (serve_plan.c) ----

// Begins the plan that waits. Returns false when it was refused, or a newer state has come; then it has been answered.
bool sn_serve_begin(SnScheduler *scheduler, SnSession *session);

// Ends the plan in the making and answers it.
void sn_serve_finish(SnScheduler *scheduler, SnSession *session);

// Packs a plan into `out`, all but its age and what a deadline says.
void sn_serve_pack_plan(SnScratch *scratch, const SnSession *session, const SnPlan *plan, Sinew__V1__Plan *out);
// Sends a plan that was made for a job, whose last slice ended at `ended`. `first` says that its state had none before.
void sn_serve_send_plan(SnScheduler *scheduler, const SnSession *session, const SnRoute *route, const SnJob *job,
                        Sinew__V1__Plan *plan, double ended, bool first);
// Counts a state that is answered for the first time, for its session and for the daemon.
void sn_serve_count_answer(const SnScheduler *scheduler, SnSession *session, SnTiming timing);
// Counts a plan that is sent; the first one of a session whose rollouts overflowed is logged.
void sn_serve_count_plan(const SnScheduler *scheduler, SnSession *session, const Sinew__V1__Plan *plan, double now);

// Packs rows of states that begin at time `start` [s] and are `step` [s] apart.
Sinew__V1__Trajectory *sn_serve_trajectory(SnScratch *scratch, const SnSession *session, const SnTrajectory *states,
                                           double start, double step, size_t rows);

// ---- evaluations (serve_evaluate.c) ----

// Works on the session's first evaluation until the clock reads `until`; answers and frees its job when it is done.
void sn_serve_evaluation(SnScheduler *scheduler, SnSession *session, double until);

// Forgets the evaluation under way; its job stays where it is, and is begun again in the next slice.
void sn_serve_drop_evaluation(SnSession *session);

// ---- commands (serve_command.c) ----

// Carries out a reset, reads, sets or reverts the configuration, or takes a snapshot; answers, frees the job.
void sn_serve_command(SnScheduler *scheduler, SnJob *job);
// Answers requests for a snapshot that came while a plan was in progress.
void sn_serve_snapshots(SnScheduler *scheduler, SnSession *session);

// ---- sessions that outlast the daemon (serve_keep.c) ----

// Keeps what a change of a session that has a name has made of it. The reply leaves when that is done.
void sn_serve_keep(SnSession *session, const SnRoute *route, Sinew__V1__Reply *reply);
// Keeps where a session stands, if it has a name, between two plans: now and then, or since it is the `last` time.
void sn_serve_keep_warm(const SnScheduler *scheduler, SnSession *session, bool last);

// ---- records (serve_record.c) ----
//
// For whoever subscribes to the session; where nobody does they return at once.

// Tells new subscribers what the session is, between two plans. Tells all of them where it stands, if that does not
// follow from the records so far.
void sn_record_greet(SnScheduler *scheduler, SnSession *session);
// Records that a plan was begun for the active job.
void sn_record_begin(SnScheduler *scheduler, SnSession *session);
// Records that a plan has ended: as it was sent, or, in continuous mode, as the planner left it.
void sn_record_plan(SnScheduler *scheduler, SnSession *session, Sinew__V1__Plan *plan);
void sn_record_streamed(SnScheduler *scheduler, SnSession *session, const SnPlan *plan, SnTiming timing);
// Records that the configuration has changed, that the session was reset, that it is closed.
void sn_record_config(SnScheduler *scheduler, SnSession *session, Sinew__V1__Config *config);
void sn_record_reset(SnScheduler *scheduler, SnSession *session, Sinew__V1__ResetReply *reset);
void sn_record_close(SnScheduler *scheduler, SnSession *session);

// ---- continuous mode (serve_stream.c) ----

// Returns whether a job is a state of a stream. Accepts NULL.
bool sn_job_streams(const SnJob *job);
// Returns whether there is a plan to be made, or in the making.
bool sn_serve_has_plan(const SnSession *session);

// Starts, renews or stops a stream: carries out, answers, frees the job.
void sn_serve_stream(SnScheduler *scheduler, SnJob *job);
// Ends a stream, if it runs, and says so to its client.
void sn_serve_stream_end(SnScheduler *scheduler, SnSession *session, Sinew__V1__StreamReply__End end);
// Ends a stream whose lease has run out at `now`.
void sn_serve_stream_expire(SnScheduler *scheduler, SnSession *session, double now);
// Receives a state of the stream: renews the lease, sets when its plan is due.
void sn_serve_stream_receive(SnSession *session, SnJob *job);
// Begins to count for a state that is now planned for.
void sn_serve_stream_begin(SnSession *session);
// Returns how many iterations a state may have.
int sn_stream_iterations(const SnSession *session);
// Returns whether a state that is newer than the one in work has its turn now.
bool sn_serve_stream_over(const SnSession *session, double now);
// Looks at the plan in the making after a slice: sends it if it is better than what was sent, or ends it. `ready` says
// that it is complete.
void sn_serve_stream_update(SnScheduler *scheduler, SnSession *session, bool ready);
// Sends a plan that has ended, if it is better.
void sn_serve_stream_offer(SnScheduler *scheduler, SnSession *session, const SnJob *job, const SnPlan *plan);

#endif

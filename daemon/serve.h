// What the planner thread does for a session in its turn: begin and finish plans, evaluate, change settings.
#ifndef SINEW_DAEMON_SERVE_H_
#define SINEW_DAEMON_SERVE_H_

#include "daemon/pack.h"
#include "daemon/scheduler.h"

// The clock of the scheduler, for planners.
SnClock sn_scheduler_clock(void);

// Begins the plan that waits. False when it was refused; then it has been answered.
bool sn_serve_begin(SnScheduler *scheduler, SnSession *session);

// Ends the plan in the making and answers it.
void sn_serve_finish(SnScheduler *scheduler, SnSession *session);

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

// Reset, get and set configuration: carries out, answers, frees the job.
void sn_serve_command(SnScheduler *scheduler, SnJob *job);

#endif

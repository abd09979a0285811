// What the planner thread does for a session in its turn: begin and finish plans, evaluate, change settings.
#ifndef SINEW_DAEMON_SERVE_H_
#define SINEW_DAEMON_SERVE_H_

#include "daemon/scheduler.h"

// The clock of the scheduler, for planners.
SnClock sn_scheduler_clock(void);

// Begins the plan that waits. False when it was refused; then it has been answered.
bool sn_serve_begin(SnScheduler *scheduler, SnSession *session);

// Ends the plan in the making and answers it.
void sn_serve_finish(SnScheduler *scheduler, SnSession *session);

// Answers a plan request whose place a newer one has taken, and frees it. Any thread.
void sn_serve_replaced(SnScheduler *scheduler, SnSession *session, SnJob *job);

// Evaluates given controls, answers, frees the job.
void sn_serve_evaluation(SnScheduler *scheduler, SnJob *job);

// Reset, get and set configuration: carries out, answers, frees the job.
void sn_serve_command(SnScheduler *scheduler, SnJob *job);

#endif

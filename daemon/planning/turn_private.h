// Choosing a turn: the session that the next slice goes to, from what the planner thread keeps of all of them. Nothing
// here plans. The planner thread alone calls these.
#ifndef SINEW_DAEMON_PLANNING_TURN_PRIVATE_H_
#define SINEW_DAEMON_PLANNING_TURN_PRIVATE_H_

#include "daemon/planning/planning.h"

// Tells whose turn it is, and for what.
typedef struct SnTurn {
  SnSession *session;  // NULL: there is nothing to do
  bool background;
  bool answers;  // no time is left to refine the plan
} SnTurn;

// Returns the turn at scheduler->now: a plan to be answered, else the nearest deadline of those that were not refined
// yet, else of the others. Overdue background work comes before these: the session has its turn that was served least.
// Keeps the sessions' accounts.
SnTurn sn_turn_choose(const SnScheduler *scheduler);

// Takes a state in, which waits from now on. A newer state ends the plan in the making early.
void sn_turn_take(SnSession *session, SnJob *newest);
// Begins to count for the active job, which has had no time so far.
void sn_turn_begin(SnSession *session);
// Ends that for a job that is not active any more: without a turn so far the session keeps its place in the line.
void sn_turn_end(SnSession *session, const SnJob *job);

// Returns when a plan has to be ready to be at its client in time.
double sn_turn_deadline(const SnScheduler *scheduler, const SnJob *job);
// Returns how much earlier its slices have to end, which may come back late [s].
double sn_turn_margin(const SnScheduler *scheduler, const SnJob *job);

// Returns when the plan under way or waiting must be answered; INFINITY also when there is none. After its plan was due
// a stream refines it in idle time.
double sn_turn_plan_due(const SnScheduler *scheduler, const SnSession *session);
// Returns how urgent the next slice of a session's plan is, or of its evaluation; INFINITY also when there is none.
double sn_turn_plan_urgency(const SnScheduler *scheduler, const SnSession *session);
double sn_turn_evaluation_urgency(const SnScheduler *scheduler, const SnSession *session);
// Returns whether a session has a plan to be made that has a deadline.
bool sn_turn_has_deadline(const SnScheduler *scheduler, const SnSession *session);

#endif

// A budget of memory that planners share. It is asked before anything is allocated: a refusal costs nothing, and says
// how much is asked for and allowed.
#ifndef SINEW_PLANNER_BASE_BUDGET_H_
#define SINEW_PLANNER_BASE_BUDGET_H_

#include <pthread.h>
#include <stdbool.h>

#include "physics/base/status.h"

typedef struct SnBudget {
  double each, all;  // bytes that one planner may have, and all of them; 0: any number
  pthread_mutex_t mutex;
  double taken;  // bytes that all of them have. Under the mutex
} SnBudget;

void sn_budget_init(SnBudget *budget, double each, double all);
void sn_budget_free(SnBudget *budget);

// Takes `more` bytes for a planner that has `held`. Returns SN_ERR_LIMIT when that is too much, and takes nothing; err
// has the bytes asked for, allowed and taken. Any thread may call it.
SnCode sn_budget_take(SnBudget *budget, double held, double more, SnError *err);
// Gives bytes back. Any thread may call it.
void sn_budget_give(SnBudget *budget, double bytes);
// Returns the bytes that are taken. Any thread may call it.
double sn_budget_taken(SnBudget *budget);

#endif

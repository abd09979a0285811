// A refinement on the host, around whoever computes gradients: what a backend without a device does for the operation
// `refine`. One thread moves and judges the starts; gradients are where the time goes.
#ifndef SINEW_PLANNER_BACKEND_CPU_MULTISTART_H_
#define SINEW_PLANNER_BACKEND_CPU_MULTISTART_H_

#include "planner/backend/backend.h"

typedef struct SnHostRefine SnHostRefine;

// Value and gradient of every item that is pending, as the backends' operation `gradients`.
typedef bool SnHostGradients(void *context, SnGradientBatch *batch, const SnClock *clock, double until);

// Memory of one start of at most max_step steps [bytes].
size_t sn_host_refine_bytes(const SnModel *m, const SnCost *cost, int max_step);

// Without starts. Model and cost must outlive it. NULL and err when out of memory.
SnHostRefine *sn_host_refine_create(const SnModel *m, const SnCost *cost, int max_step, SnError *err);
void sn_host_refine_free(SnHostRefine *h);
// Room for n starts; those that there are keep what they remember. SN_ERR_MEMORY: as before. Not while a job is under
// way.
SnCode sn_host_refine_room(SnHostRefine *h, int n, SnError *err);

// As the operations of a backend whose job_iterations is 1. The caller drops a batch of gradients that is half done
// before sn_host_refine_end and sn_host_refine_abandon return the room to it.
bool sn_host_refine_run(SnHostRefine *h, SnRefineJob *job, SnHostGradients *gradients, void *context,
                        const SnClock *clock, double until);
// Takes what counts of the iteration under way: starts that are complete, in their order up to the first that is not.
void sn_host_refine_end(SnHostRefine *h, SnRefineJob *job);
void sn_host_refine_abandon(SnHostRefine *h);

#endif

// A multistart on the host, around whoever computes gradients: what a backend without a device does for the operation
// `multistart`. One thread steps and evaluates the starts; gradients are where the time goes.
#ifndef SINEW_PLANNER_BACKEND_CPU_MULTISTART_PRIVATE_H_
#define SINEW_PLANNER_BACKEND_CPU_MULTISTART_PRIVATE_H_

#include "planner/backend/backend.h"

typedef struct SnCpuMultistart SnCpuMultistart;

// Value and gradient of every item that is pending, as the backends' operation `gradients`.
typedef bool SnCpuGradients(void *context, SnGradientBatch *batch, const SnClock *clock, double until);

// Memory of one start of at most max_step steps [bytes].
size_t sn_cpu_multistart_bytes(const SnModel *m, const SnCost *cost, int max_step);

// Without starts. Model and cost must outlive it. NULL and err when out of memory.
SnCpuMultistart *sn_cpu_multistart_create(const SnModel *m, const SnCost *cost, int max_step, SnError *err);
void sn_cpu_multistart_free(SnCpuMultistart *h);
// Capacity for n starts; those that there are keep what they remember. SN_ERR_MEMORY: as before. Not while a job is
// under way.
SnCode sn_cpu_multistart_reserve(SnCpuMultistart *h, int n, SnError *err);

// As the operations of a backend whose job_iterations is 1. The caller drops a batch of gradients that is half done
// before sn_cpu_multistart_end and sn_cpu_multistart_abandon return the buffers to it.
bool sn_cpu_multistart_run(SnCpuMultistart *h, SnMultistartJob *job, SnCpuGradients *gradients, void *context,
                           const SnClock *clock, double until);
// Takes what counts of the iteration under way: starts that are complete, in their order up to the first that is not.
void sn_cpu_multistart_end(SnCpuMultistart *h, SnMultistartJob *job);
void sn_cpu_multistart_abandon(SnCpuMultistart *h);

#endif

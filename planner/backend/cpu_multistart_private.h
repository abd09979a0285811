// A multistart on the host, around whoever computes gradients: what a backend without a device does for the operation
// `multistart`. One thread steps and evaluates the starts; gradients are where the time goes.
#ifndef SINEW_PLANNER_BACKEND_CPU_MULTISTART_PRIVATE_H_
#define SINEW_PLANNER_BACKEND_CPU_MULTISTART_PRIVATE_H_

#include "planner/backend/backend.h"

typedef struct SnCpuMultistart SnCpuMultistart;

// Computes value and gradient of every item that is pending, or rollouts alone, or goes back along these, as
// sn_backend_gradients.
typedef bool SnCpuGradients(void *context, SnGradientBatch *batch, const SnClock *clock, double until);

// Returns the memory of one start of at most `max_step` steps [bytes].
size_t sn_cpu_multistart_bytes(const SnModel *m, const SnCost *cost, int max_step);

// Makes a multistart without starts. Model and cost must outlive it. Returns NULL and err when out of memory.
SnCpuMultistart *sn_cpu_multistart_create(const SnModel *m, const SnCost *cost, int max_step, SnError *err);
void sn_cpu_multistart_free(SnCpuMultistart *h);
// Reserves capacity for `n` starts; those that there are keep what they remember. Changes nothing when it returns
// SN_ERR_MEMORY. Call it when no job is under way.
SnCode sn_cpu_multistart_reserve(SnCpuMultistart *h, int n, SnError *err);

// Works on a job as sn_backend_multistart of a backend whose job_iterations is 1. The caller drops a batch of gradients
// that is half done before sn_cpu_multistart_end and sn_cpu_multistart_abandon return the buffers to it.
bool sn_cpu_multistart_run(SnCpuMultistart *h, SnMultistartJob *job, SnCpuGradients *gradients, void *context,
                           const SnClock *clock, double until);
// Takes what counts of the iteration under way: starts that are complete, in their order up to the first that is not.
// The only start also counts where SnMultistartJob.rolled says so.
void sn_cpu_multistart_end(SnCpuMultistart *h, SnMultistartJob *job);
// Drops the iteration under way.
void sn_cpu_multistart_abandon(SnCpuMultistart *h);

// Shows what the first start remembers, as sn_backend_moments. After a job this is a function of what counts of it. An
// iteration of which nothing counts leaves no trace there, whenever it was ended.
bool sn_cpu_multistart_moments(const SnCpuMultistart *h, SnMomentsView *moments);
// Puts others in their place, as sn_backend_set_moments.
bool sn_cpu_multistart_set_moments(SnCpuMultistart *h, const SnMomentsView *moments);

#endif

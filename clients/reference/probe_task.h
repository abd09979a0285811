// A task for any model, for the checker and the benchmark.
#ifndef SINEW_CLIENTS_REFERENCE_PROBE_TASK_H_
#define SINEW_CLIENTS_REFERENCE_PROBE_TASK_H_

#include "physics/model/model.h"

// Writes a task file that looks at all that a state of the model has: positions of joints, velocities, activations,
// controls, lengths of tendons. False when there is nothing that moves.
bool sn_probe_task(const SnModel *m, char *text, size_t size);

#endif

// A task for any model, for the checker, the benchmark and tests.
#ifndef SINEW_CLIENTS_REFERENCE_PROBE_TASK_H_
#define SINEW_CLIENTS_REFERENCE_PROBE_TASK_H_

#include "physics/model/model.h"

// Writes a task file into text[size] that looks at all that a state of the model has. These are positions of joints,
// velocities, activations, controls and lengths of tendons. Returns false when nothing in the model moves.
bool sn_probe_task(const SnModel *m, char *text, size_t size);

#endif

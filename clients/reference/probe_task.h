// A task for any model, for the checker, the benchmark and tests.
#ifndef SINEW_CLIENTS_REFERENCE_PROBE_TASK_H_
#define SINEW_CLIENTS_REFERENCE_PROBE_TASK_H_

#include <stdbool.h>
#include <stddef.h>

struct SnModel;

// Lists how much of each kind a model has.
typedef struct SnProbeSizes {
  int joints;  // all but free ones
  int nv, na, nu, ntendon;
} SnProbeSizes;

// Writes a task file into text[size] that looks at all that a state of the model has. These are positions of joints,
// velocities, activations, controls and lengths of tendons. Returns false when nothing in the model moves.
bool sn_probe_text(const SnProbeSizes *sizes, char *text, size_t size);
// Writes that of a model of the engine.
bool sn_probe_task(const struct SnModel *m, char *text, size_t size);

#endif

// Compares a backend with the cpu on batches of a caller's own: all states and sensors of rollouts from different
// states under different controls. Gradients of a cost that is made of them are compared, too.
#ifndef SINEW_TESTS_CUDA_AGREE_BATCH_H_
#define SINEW_TESTS_CUDA_AGREE_BATCH_H_

#include "planner/backend/backend.h"
#include "tests/cuda/agree_case.h"
#include "tests/cuda/agree_table.h"

// Adds what a backend makes of a case to a result: vectors of the rows BATCH and BARS. Fails the test where the backend
// stops.
void agree_batch_run(SnBackend *b, const AgreeCase *c, AgreeResult *r);

#endif

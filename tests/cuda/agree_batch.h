// Compares a backend with the cpu on batches of a caller's own: all states and sensors of rollouts from different
// states under different controls. Gradients of a cost that is made of them are compared, too.
#ifndef SINEW_TESTS_CUDA_AGREE_BATCH_H_
#define SINEW_TESTS_CUDA_AGREE_BATCH_H_

#include "planner/backend/backend.h"
#include "tests/cuda/agree_case.h"

// Notes the errors of a case in the rows BATCH and BARS. Fails the test where a repetition gives other bits, or where
// the backend stops.
void agree_batch_check(SnBackend *cpu, SnBackend *other, const AgreeCase *c);

#endif

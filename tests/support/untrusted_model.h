// Runs a model that came from bytes nobody vouches for: whatever the reader accepted must be safe to step.
#ifndef SINEW_TESTS_SUPPORT_UNTRUSTED_MODEL_H_
#define SINEW_TESTS_SUPPORT_UNTRUSTED_MODEL_H_

#include "physics/model/model.h"

// Makes a world and takes a few steps with controls on, from qpos0 and from the first keyframe. Computes all sensors,
// and looks up every name. Returns the steps taken: 0 when world or sensors would be larger than max_bytes. Results may
// be anything; memory errors are for the sanitizers to find.
int sn_untrusted_model_run(const SnModel *m, size_t max_bytes);

#endif

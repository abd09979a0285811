// Times of the stages of a step, ours beside MuJoCo's own timers, for `sinew-bench step --profile`.
#ifndef SINEW_CLIENTS_BENCH_STEP_PROFILE_PRIVATE_H_
#define SINEW_CLIENTS_BENCH_STEP_PROFILE_PRIVATE_H_

#include <cjson/cJSON.h>
#include <mujoco/mujoco.h>

typedef struct StepProfile StepProfile;

// Measures at `count` states of MuJoCo's, each as mj_setState takes mjSTATE_INTEGRATION. Returns NULL when out of
// memory.
StepProfile *step_profile_create(const mjModel *mj, const mjtNum *state, int count);
// Frees a profile. Accepts NULL.
void step_profile_free(StepProfile *p);
// Adds its figures to a report.
void step_profile_add(cJSON *root, const StepProfile *p);
// Prints them as tables on standard output.
void step_profile_print(const StepProfile *p);

#endif

// MuJoCo as oracle: the same model and state in both engines.
//
// A stage is tested alone by loading a model, putting MuJoCo into some state, copying every field
// that MuJoCo has already computed (sn_oracle_fill), running our one stage and comparing its fields.
#ifndef SINEW_TESTS_HARNESS_ORACLE_H_
#define SINEW_TESTS_HARNESS_ORACLE_H_

#include <mujoco/mujoco.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "physics/stages.h"

typedef struct SnOracle {
  mjModel *mj;
  mjData *d;
  SnModel *m;
  SnWorld w;
  void *memory;
  SnLaneShared shared;
  SnLane lane;  // one lane
  uint64_t rng;
} SnOracle;

// Loads an MJCF string or file with MuJoCo (islands off so that efc_state is filled, tight solver and
// collision tolerances) and imports it. Fails the running test with MuJoCo's text when it cannot.
void sn_oracle_load_string(SnOracle *o, const char *xml);
void sn_oracle_load_file(SnOracle *o, const char *path);
void sn_oracle_free(SnOracle *o);

// Folder of the unpacked MyoSuite wheel's package (…/myosuite), from $SINEW_MYOSUITE_DIR or the cache
// folder; NULL when it is not there (a test then skips and says so).
const char *sn_oracle_myosuite(void);

// Uniform in [-1, 1), from o->rng (set by load to a fixed seed; printed by the test).
double sn_oracle_uniform(SnOracle *o);
// A random state of MuJoCo: joints inside their range (or +-1 rad about qpos0), qvel in +-speed,
// act in [0,1], ctrl in its range (or +-1). Does not call mj_forward.
void sn_oracle_randomize(SnOracle *o, double speed);
// Copies time, qpos, qvel, act, ctrl, mocap and warm start from MuJoCo to our world.
void sn_oracle_copy_state(SnOracle *o);
// The same and every field of world_fields.inc that mjData also has (call mj_forward first), contacts and
// rows included.
void sn_oracle_fill(SnOracle *o);

// max|ours - ref| / (max|ref| + 1e-6); n may be 0.
double sn_oracle_error(const sn_real *ours, const double *ref, int n);
// Fails the test, naming the field, when the error exceeds tol.
void sn_oracle_check(const char *field, const sn_real *ours, const double *ref, int n, double tol);

#endif

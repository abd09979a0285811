// The oracle of clients/reference/mujoco_reference.h for cmocka: what fails there fails the running test here.
//
// A test of one stage loads a model and puts MuJoCo into some state. It copies every field that MuJoCo has computed
// (sn_oracle_fill), runs our one stage and compares its fields.
#ifndef SINEW_TESTS_SUPPORT_ORACLE_H_
#define SINEW_TESTS_SUPPORT_ORACLE_H_

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "clients/base/statistics.h"
#include "clients/reference/mujoco_reference.h"

// Load an MJCF string or file with MuJoCo (islands off so that efc_state is filled, tight solver and collision
// tolerances) and import it. Fail the running test with MuJoCo's text when they cannot.
void sn_oracle_load_string(SnOracle *o, const char *xml);
void sn_oracle_load_file(SnOracle *o, const char *path);

// Returns the folder of the unpacked MyoSuite wheel's package (…/myosuite), from $SINEW_MYOSUITE_DIR or the cache
// folder. Returns NULL when it is not there; a test then skips and says so.
const char *sn_oracle_myosuite(void);

// Writes the path of a task's model: a file of physics/models, or of a package in the cache folder. Returns false,
// having said so, where that package was not fetched; fails the test where it has no such file.
bool sn_oracle_find_model(const char *model, char path[4096]);

// Ends the running test as skipped, and says so, where that folder is not there. Call it behind the checks that need no
// models.
void sn_oracle_needs_myosuite(void);

// Loads a file of that folder like sn_oracle_load_file; skips the running test when the folder is not there.
void sn_oracle_load_myosuite(SnOracle *o, const char *file);

// Returns a random number out of 0, ..., n-1, from the oracle's generator.
int sn_oracle_pick(SnOracle *o, int n);

// Fails the test, naming the field, when sn_oracle_error exceeds tol.
void sn_oracle_check(const char *field, const sn_real *ours, const double *ref, int n, double tol);

#endif

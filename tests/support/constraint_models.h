// Models and comparisons shared by the tests of constraint rows and of their solver.
#ifndef SINEW_TESTS_SUPPORT_CONSTRAINT_MODELS_H_
#define SINEW_TESTS_SUPPORT_CONSTRAINT_MODELS_H_

#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// One point in the space of options that change rows.
typedef struct SnConstraintCase {
  const char *cone;  // pyramidal, elliptic
  int condim;        // 1, 3, 4, 6
  double impratio;
  const char *solref;  // of contacts
  const char *solreffriction;
  const char *solimp;
  const char *flag;  // attributes of <flag/>
} SnConstraintCase;

// Every combination of cone, condim, impratio, sign of solref, refsafe; a few solimp. Returns how many.
int sn_constraint_cases(SnConstraintCase *out, int max);
// Free bodies on a plane, arms that touch each other: contacts of all pairs of bodies with and without common dofs.
void sn_constraint_load_contacts(SnOracle *o, const SnConstraintCase *c);
// Joints and tendons with limits, friction losses and every equality.
void sn_constraint_load_joints(SnOracle *o, const SnConstraintCase *c);
// A random state of MuJoCo, close to the reference pose when speed < 0.2, then mj_forward and sn_oracle_fill.
void sn_constraint_sample(SnOracle *o, double speed);
// Real models: the i-th, after `steps` steps under random controls. False at the end of the list; *missing is
// set when the file is not there, name is set in any case.
bool sn_constraint_load_myosuite(SnOracle *o, int i, int steps, const char **name, bool *missing);

// What a test does in one state; `what` names model and state in its failures.
typedef void SnConstraintCheck(SnOracle *o, const char *what);

// Calls check in `samples` states, near and far by turns, of every case of a model: sn_constraint_load_contacts or
// sn_constraint_load_joints. Returns the number of cases.
int sn_constraint_for_cases(void (*load)(SnOracle *, const SnConstraintCase *), int samples, const char *name,
                            SnConstraintCheck *check);
// Calls check on every real model after `steps` steps; says which are not there.
void sn_constraint_for_myosuite(int steps, SnConstraintCheck *check);

// Runs our row stages on what sn_oracle_fill copied.
void sn_constraint_make_rows(SnOracle *o);
// Compares every field of the rows with mjData.
void sn_constraint_check_rows(SnOracle *o, const char *what);

#endif

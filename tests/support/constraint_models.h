// Models and comparisons shared by the tests of constraint rows and of their solver.
#ifndef SINEW_TESTS_SUPPORT_CONSTRAINT_MODELS_H_
#define SINEW_TESTS_SUPPORT_CONSTRAINT_MODELS_H_

#include "tests/support/oracle.h"
#include "tests/support/tolerance.h"

// Holds one combination of the options that change rows.
typedef struct SnConstraintCase {
  const char *cone;  // pyramidal, elliptic
  int condim;        // 1, 3, 4, 6
  double impratio;
  const char *solref;  // contacts' reference: time constant and damping ratio, or stiffness and damping
  const char *solreffriction;
  const char *solimp;
  const char *flag;    // attributes of <flag/>
  const char *option;  // more attributes of <option/>; NULL: none
} SnConstraintCase;

// Writes every combination of cone, condim, impratio, sign of solref and refsafe, with a few solimp, to out (max).
// Returns how many there are.
int sn_constraint_cases(SnConstraintCase *out, int max);
// Loads free bodies on a plane and arms that touch each other. Contacts join bodies with and without common dofs.
void sn_constraint_load_contacts(SnOracle *o, const SnConstraintCase *c);
// Loads bodies that touch a plane and each other, all of which can move anywhere: no block of rows of a contact is
// singular.
void sn_constraint_load_bodies(SnOracle *o, const SnConstraintCase *c);
// Loads joints and tendons with limits, friction losses and every equality.
void sn_constraint_load_joints(SnOracle *o, const SnConstraintCase *c);
// Draws a random state of MuJoCo, close to the reference pose when speed < 0.2 [rad/s or m/s]. Calls mj_forward and
// sn_oracle_fill on it.
void sn_constraint_sample(SnOracle *o, double speed);
// Loads model i of a list, MyoSuite's and others, and takes `steps` steps under random controls. Returns false at the
// end of the list. Sets *missing when the file is not there, and *name in any case.
bool sn_constraint_load_real(SnOracle *o, int i, int steps, const char **name, bool *missing);

// Checks one state; `what` names model and state in its failures.
typedef void SnConstraintCheck(SnOracle *o, const char *what);

// Calls check in `samples` states, near and far by turns, of every case of a model: sn_constraint_load_contacts or
// sn_constraint_load_joints. Returns the number of cases.
int sn_constraint_for_cases(void (*load)(SnOracle *, const SnConstraintCase *), int samples, const char *name,
                            SnConstraintCheck *check);
// Checks derivatives on one model; `name` names it in failures, samples are drawn at `speed`.
typedef void SnConstraintGradient(void *context, SnOracle *o, const char *name, double speed);

// Calls check on every stride-th case of a model, at a low speed (near) and a high one (far). Prints `count` (8), rows
// by type that check has seen.
void sn_constraint_for_gradients(void (*load)(SnOracle *, const SnConstraintCase *), const char *kind, int stride,
                                 SnConstraintGradient *check, void *context, const int count[8]);
// Calls check on every real model after `steps` steps; says which are not there.
void sn_constraint_for_real(int steps, SnConstraintCheck *check);

// Runs our row stages on what sn_oracle_fill copied.
void sn_constraint_make_rows(SnOracle *o);
// Compares every field of the rows with mjData.
void sn_constraint_check_rows(SnOracle *o, const char *what);

#endif

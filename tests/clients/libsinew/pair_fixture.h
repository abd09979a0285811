// One model and state in MuJoCo and in the library, for tests of one body through sinew.h.
#ifndef SINEW_TESTS_CLIENTS_LIBSINEW_PAIR_FIXTURE_H_
#define SINEW_TESTS_CLIENTS_LIBSINEW_PAIR_FIXTURE_H_

#include "clients/include/sinew.h"
#include "tests/support/oracle.h"

// Holds both.
typedef struct BodyPair {
  SnOracle o;  // MuJoCo's model and data; our own world of it is not used
  SinewModel *model;
  SinewData *data;
  SinewError err;
} BodyPair;

enum { BODY_MODELS = 6 };
// Loads model i and returns its name:
//   0 an arm with muscles and sensors   3 tendons that branch
//   1 a pile of all shapes              4 a hand that touches balls, pyramids of friction, full of sensors
//   2 chains under RK4                  5 that hand with elliptic cones, and sensors without derivatives
const char *body_open(BodyPair *b, int i);
// Loads a model from MJCF text.
void body_open_string(BodyPair *b, const char *xml);
// Loads a file of MyoSuite, or skips the running test when it is not there.
void body_open_myosuite(BodyPair *b, const char *file);
// Makes the library's model and body of what has been loaded into b->o.
void body_make(BodyPair *b);
void body_close(BodyPair *b);

// Puts the body into MuJoCo's state and controls.
void body_follow(BodyPair *b);
// Draws a random state of MuJoCo, mocap poses too, and puts the body there.
void body_sample(BodyPair *b, double speed);

// Returns the model with one array times 1 + step; where the sizes of a mesh forbid that, as it is. Fails the test
// where it cannot.
SinewModel *body_moved(const SinewModel *model, const char *name, double step, SinewError *err);
// Returns parameters that move one array each, by shares of 1e-5. Fails the test where it cannot.
SinewParameters *body_parameters(const SinewModel *model, const char *const *arrays, int count, SinewError *err);
// Opens the CPU on 1 thread and on 3; closes both. They are a group's setup and teardown: 0.
int body_open_cpus(SinewBackend *cpu[2]);
int body_close_cpus(SinewBackend *cpu[2]);

// Fails the test, and says why, when a call on b has failed.
void body_ok(const BodyPair *b, SinewStatus status);

// Compares columns of our derivatives (rows, cols) with MuJoCo's differences of two widths. A column on which these
// disagree is skipped. Counts both; fails the test where ours differs.
void body_compare_columns(const char *name, const double *ours, const double *fine, const double *coarse, int rows,
                          int cols, int *compared, int *skipped);

#endif

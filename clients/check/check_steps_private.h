// The comparison of steps behind sinew-check: one of ours beside one of MuJoCo's, from every state of a run.
//
// A tie is a step at which rounding decides. Our frames of bodies and geoms are MuJoCo's to CHECK_ROUNDING, and given
// MuJoCo's own frames our contacts are MuJoCo's, too. With ours there is one contact more or less, or nearly equal ones
// come in another order or with another frame. Such a step counts as a tie, with the pair and the difference of the
// frames. All that stands behind the contacts is then compared given MuJoCo's. A step of RK4 may be a tie in a
// later stage. Then its next state alone differs, and a pair of geoms is within CHECK_ROUNDING of where it touches.
// An implicit step may be one where the force of an orientation servo is at the limit of its norm to CHECK_ROUNDING.
// MuJoCo compares that norm with the limit to choose a slope. Given MuJoCo's forces the next state is then the same.
// All of such a step has been compared, so that any number of them may be.
#ifndef SINEW_CLIENTS_CHECK_CHECK_STEPS_PRIVATE_H_
#define SINEW_CLIENTS_CHECK_CHECK_STEPS_PRIVATE_H_

#include "clients/check/check.h"
#include "clients/reference/compare.h"

#define CHECK_ROUNDING 1e-12  // most that frames may differ at a tie, by the measure of compare.h; for distances [m]

// Says how steps are compared.
typedef struct CheckStepsSettings {
  int steps;
  uint64_t seed;
  bool isolate, strict;  // give stages MuJoCo's values of the others; allow nothing for uncertainty and ties
} CheckStepsSettings;

enum { CHECK_NAME = 120 };

// Holds the outcome of a comparison of steps.
typedef struct CheckStepsReport {
  SnCompare compare;
  int noisy_steps;                         // steps that agree only because MuJoCo's own values are no more certain
  int restarts;                            // steps left out: MuJoCo diverged in them and was put back
  int ties;                                // steps
  int servo_ties;                          // ties that a servo at its limit decides
  char tie[500];                           // text on the first tie; empty: none
  char element[SN_CMP_COUNT][CHECK_NAME];  // names of the elements with the largest errors; empty: it has none
} CheckStepsReport;

// Holds both engines under comparison.
typedef struct CheckRun {
  SnOracle o;         // MuJoCo, and a model of ours that computes every frame and path point
  SinewModel *model;  // a user's, which computes only what something reads
  SinewData *data;
  mjData *shaken;   // MuJoCo's data for a state that is off by rounding
  mjtNum *state;    // before the step
  SnCompare step;   // the present step
  SnCompare noise;  // MuJoCo against itself at that step
  int allowed;      // fields of that step that agree only because of it
  bool tie;         // says that this step is one
  bool servo;       // says that it is one of a servo at its limit
} CheckRun;

// Takes over mj. Makes models and worlds of ours, and MuJoCo's second data. Close it whatever it returns.
SnCode check_open(CheckRun *k, mjModel *mj, SnError *err);
// Frees all of it.
void check_close(CheckRun *k);
// Runs MuJoCo and compares every step; r->compare has been begun by sn_compare_init.
void check_steps(CheckRun *k, const CheckStepsSettings *s, CheckStepsReport *r);
// Returns true when no field differed. At most a quarter of the steps may be ties of contacts, or left out because
// MuJoCo diverged: else check_steps_undecided.
bool check_steps_agree(const CheckStepsReport *r);
// Returns true when nothing differed, but too many steps are ties of contacts or left out.
bool check_steps_undecided(const CheckStepsReport *r);
// Returns true when MuJoCo diverged in too many steps, or in all.
bool check_steps_left_out(const CheckStepsReport *r);

// check_names.c: writes the name of entry `element` of a field into name (CHECK_NAME); empty where it has none.
void check_element_name(const SnModel *m, SnCompared field, int element, char *name);

#endif

// From how many at once a device is faster than the CPU, for one model: measured in about a second. Planners ask for
// steps of many worlds, gradients of rollouts, iterations of Adam from many starts: these are measured.
//
// The counts 1, 4, 16, ... are tried, on both sides the same work. The CPU's time for a count that would take too long
// is in proportion to the largest that was measured.
#ifndef SINEW_PLANNER_BACKEND_CONTEST_H_
#define SINEW_PLANNER_BACKEND_CONTEST_H_

#include <stdint.h>

#include "planner/backend/backend.h"

// Names what is asked of a backend for many at once.
typedef enum SnContestKind {
  SN_CONTEST_STEPS,        // rollouts of candidates
  SN_CONTEST_GRADIENTS,    // value and gradient of rollouts
  SN_CONTEST_REFINEMENTS,  // an iteration of Adam from several starts of one plan
  SN_NCONTEST
} SnContestKind;

// Returns "steps", "gradients" or "refinements".
const char *sn_contest_name(SnContestKind kind);

enum { SN_CONTEST_SIZES = 12, SN_CONTEST_CPUS = 2 };

// Holds what so many at once took on each side at least [s], for def->steps steps.
typedef struct SnContestRow {
  int count;
  double cpu[SN_CONTEST_CPUS], device;
  bool scaled[SN_CONTEST_CPUS];  // the CPU's is in proportion to a smaller count
} SnContestRow;

// Holds the result of a contest.
typedef struct SnContest {
  int steps;              // length of each rollout
  int rows[SN_NCONTEST];  // 0: the device does not make them
  SnContestRow row[SN_NCONTEST][SN_CONTEST_SIZES];
} SnContest;

// Says who is measured on what.
typedef struct SnContestDef {
  SnBackend *device;
  SnBackend *cpu[SN_CONTEST_CPUS];  // (ncpu) with different numbers of threads, say
  int ncpu;                         // 1 or 2
  const SnModel *model;
  const SnCost *cost;
  SnState state;            // initial state of the rollouts
  const sn_number *ctrl;    // (steps, nu) which candidates have noise on
  const sn_number *target;  // (steps + 1, ntarget)
  int steps;                // length of each rollout
  int most;                 // largest count that is tried
  double seconds;           // about the time that all of it may take
  SnClock clock;
} SnContestDef;

// Measures. Returns SN_ERR_MEMORY, SN_ERR_STATE where the device is lost meanwhile, and what loading the model returns.
// Counts that a device has no memory for are left out.
SnCode sn_contest_run(const SnContestDef *def, SnContest *contest, SnError *err);

// Returns the least measured count from which on the device was faster than CPU number `cpu` at every count. Returns
// 0 where there is none, or the device does not make them.
int sn_contest_from(const SnContest *contest, SnContestKind kind, int cpu);

// Writes one line for people about a kind into text[size]: from where the device is faster, and both speeds at the
// largest count.
void sn_contest_text(const SnContest *contest, SnContestKind kind, int cpu, char *text, size_t size);

// ---- kept results: contest_file.c ----

// Names what a result holds for. Texts are one line each.
typedef struct SnContestKey {
  uint64_t model;      // sn_model_checksum
  int threads;         // number of the CPU's threads
  char device[300];    // the backend about itself
  char library[4200];  // path, size and time of change of the file that the device's backend lies in
  char program[4200];  // path, size and time of change of the file that the CPU's lies in
} SnContestKey;

// Makes the key of a device beside a CPU of so many threads. It fits all models: the caller sets that of one.
void sn_contest_key(const SnBackend *device, int threads, SnContestKey *key);
// Reads what is kept in a folder for the key. Returns false where there is nothing, or nothing that can be read.
bool sn_contest_kept(const char *folder, const SnContestKey *key, SnContest *contest);
// Keeps a result, in place of what is kept there for this model and this number of threads. Returns SN_ERR_IO.
SnCode sn_contest_keep(const char *folder, const SnContestKey *key, const SnContest *contest, SnError *err);

#endif

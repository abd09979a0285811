// Backends: where rollouts, gradients and optimizations are computed. Everything here is called by users; who writes a
// backend fills in the table of planner/backend/backend_impl.h.
//
//   SnBackend *b = sn_backend_open("cuda", pool, NULL, &err);
//   SnBackendModel *x = sn_backend_load(b, model, cost, max_step, &err);
//   sn_backend_reserve_rollouts(b, x, batch.count, &err);
//   sn_backend_rollouts(b, x, &batch, &clock, INFINITY);
//   sn_backend_unload(b, x);
//   sn_backend_free(b);
//
// One thread at a time calls a backend. A device belongs to the thread that opened it, so a program of several threads
// hands calls over to that one (sinewd: daemon/planning/device_proxy_private.h). The CPU's load, unload, update and
// reserve_* are called from any thread at any time, for models that are not in use elsewhere.
//
// Arrays are the program's, in doubles (sn_number), whatever number type a backend computes in.
//
// sn_backend_reserve_* return SN_ERR_LIMIT when a budget does not allow it; err says what it takes and what there is.
// On any error the capacity of before stays. SN_ERR_UNSUPPORTED means that the backend makes no gradients.
#ifndef SINEW_PLANNER_BACKEND_BACKEND_H_
#define SINEW_PLANNER_BACKEND_BACKEND_H_

#include "planner/optimize/multistart.h"
#include "planner/optimize/sampling.h"
#include "planner/rollout/gradient.h"
#include "planner/rollout/rollout_runner.h"
#include "planner/base/pool.h"

typedef struct SnBackend SnBackend;
// Holds a model and a cost that a backend has loaded, with capacity for work on them.
typedef struct SnBackendModel SnBackendModel;

// ---- opening ----

// Says where a backend that lies in a library of its own is, and what it may take. Accepts a zero-initialised struct.
typedef struct SnBackendOptions {
  const char *folder;  // folder of libsinew_NAME.so; NULL or "": where the dynamic linker looks
  int device;          // index among the devices of its kind
  double memory;       // budget [bytes]; 0: what the device has
  const char *fault;   // emulator: when it shall fail, see cuda/device/device.h; NULL or "": never
  // Sets the threads that a world of a rollout has on a device: 1, 8 or 32 (sinew.h); 0: what is best. Other worlds
  // have 32.
  int block_threads;
} SnBackendOptions;

// Returns options of zeros: the first device of its kind, with all of its memory.
SnBackendOptions sn_default_backend_options(void);

// Opens a backend by its name: "cpu", "cuda" (float) or "cuda_double"; for tests "emulator" and
// "emulator_double". `pool` must outlive it. `options` may be NULL. Returns NULL with SN_ERR_NOT_FOUND when there is no
// such library or no device answers; err says which.
SnBackend *sn_backend_open(const char *name, SnPool *pool, const SnBackendOptions *options, SnError *err);

// Opens the CPU: candidates in parallel on the threads of `pool`, which must outlive it. Returns NULL and err when out
// of memory.
SnBackend *sn_backend_cpu(SnPool *pool, SnError *err);

// Closes a backend; NULL is allowed.
void sn_backend_free(SnBackend *b);

// Returns the names of the backends that this program can open, NULL at the end. They stay in static memory.
const char *const *sn_backend_names(void);

// Returns whether there is a library of that backend, for users or for checks, in a folder as in SnBackendOptions. The
// name "cpu" has none and is always found.
bool sn_backend_found(const char *name, const char *folder);

// Checks that there is a backend of that name and, in a folder as in SnBackendOptions, its library, and opens nothing
// of it. Returns SN_ERR_NOT_FOUND, SN_ERR_FORMAT or SN_ERR_UNSUPPORTED as sn_backend_open.
SnCode sn_backend_check(const char *name, const char *folder, SnError *err);

// ---- about a backend ----

// Names what not every backend has.
typedef enum SnBackendFeature {
  SN_BACKEND_GRADIENTS,   // sn_backend_gradients
  SN_BACKEND_MULTISTART,  // sn_backend_multistart
  // Batches with states, controls or targets of each candidate's own, or with `out`; gradients with `bar` or `out`, and
  // rollouts of them alone.
  SN_BACKEND_BATCHES,
  SN_BACKEND_MODELS,            // batches and gradients with a model of each one's own
  SN_BACKEND_PARAMETERS,        // gradients with derivatives by the model
  SN_BACKEND_LINEARIZE,         // sn_backend_linearize
  SN_BACKEND_CHOOSE,            // sn_backend_choose
  SN_BACKEND_FEEDBACK,          // batches with feedback; sn_backend_linearize with expansions of the cost
  SN_BACKEND_MOMENTS,           // sn_backend_moments and sn_backend_set_moments
  SN_BACKEND_ROLLOUTS_SUBMIT,   // sn_backend_rollouts_submit does something
  SN_BACKEND_MULTISTART_SUBMIT  // sn_backend_multistart_submit does something
} SnBackendFeature;

// Returns whether the backend has a feature.
bool sn_backend_has(const SnBackend *b, SnBackendFeature feature);

// Returns the name that the backend was opened by. It stays in static memory.
const char *sn_backend_name(const SnBackend *b);

// Returns the most iterations that are worth asking for in one job of sn_backend_multistart.
int sn_backend_job_iterations(const SnBackend *b);

// Writes one line for people into text[size]: device, number type, threads.
void sn_backend_describe(const SnBackend *b, char *text, int size);

// Returns whether the device is lost for this process, with the reason in text[size], "" otherwise. All work returns at
// once then, with nothing done: rollouts, gradients and multistart return false. sn_backend_unload still frees what is
// not the device's.
bool sn_backend_lost(const SnBackend *b, char *text, int size);

// Counts the memory of a backend's device [bytes]; budget 0: no limit of its own.
typedef struct SnBackendMemory {
  size_t used, budget, total;
} SnBackendMemory;

// Returns what all models of the backend take; zeros for the CPU.
SnBackendMemory sn_backend_memory(const SnBackend *b);

// ---- models ----

// Loads a model and a cost (NULL: none, every cost is 0), with capacity for rollouts of at most `max_step` steps. Both
// must outlive what is loaded. Returns NULL and err on failure.
SnBackendModel *sn_backend_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err);

// Frees what was loaded; work under way is dropped.
void sn_backend_unload(SnBackend *b, SnBackendModel *x);

// Makes rollouts and gradients of what was loaded move by chosen steps from now on (planner/rollout/chosen_step.h).
// There are then no models of each one's own, derivatives by the model, gradients by products, Jacobians or feedback.
// Rollouts that items of gradients have already (SnGradient.rolled) are such, too. Call it before the first work, and
// before anything is reserved. Returns SN_ERR_UNSUPPORTED where the backend makes none, SN_ERR_MEMORY.
SnCode sn_backend_choose(SnBackend *b, SnBackendModel *x, const SnHorizonSettings *settings, SnError *err);

// Loads as sn_backend_load, and makes it move as the setting `integrator` says. err names the setting where the backend
// cannot.
SnBackendModel *sn_backend_load_as(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step,
                                   const SnSettings *settings, SnError *err);

// Says that weights or targets of the cost have changed. Call it before the work that shall see them, and not while
// work is under way. A device may lack memory for the change. Then nothing is computed until a later call, or the begin
// of later work, which tries again, finds some.
void sn_backend_update(SnBackend *b, SnBackendModel *x);

// Drops what is under way of rollouts, gradients and multistarts.
void sn_backend_abandon(SnBackend *b, SnBackendModel *x);

// Holds the time that a stage of the step or of its adjoint took, summed over worlds and steps. Only shares of
// the whole mean something: each backend has a unit of its own.
typedef struct SnBackendStage {
  const char *name;  // static memory
  double time;
} SnBackendStage;

// Writes what each stage took since the last call, at most `capacity` of them, into `stage`. Returns how many there
// are, 0 for a backend that does not measure. The first call for a model begins to measure, which makes it slower.
int sn_backend_profile(SnBackend *b, SnBackendModel *x, SnBackendStage *stage, int capacity);

// ---- rollouts ----

// Asks for rollouts: candidates [first, first + count). Initial states, base controls and tables of targets are one for
// all of them, or `count`, one for each. All arrays begin with candidate `first`.
typedef struct SnBatch {
  // (count) Models of each, whose worlds and adjoints have the layout of the one that was loaded; NULL: this one. They
  // must stay until the batch is done or dropped.
  const SnModel *const *model;
  const SnState *state;          // (nstate)
  int nstate;                    // 1 or count
  const sn_number *ctrl;         // (nctrl, nstep, nu)
  int nctrl;                     // 1 or count
  const sn_number *target;       // (ntable, nstep + 1, ntarget); NULL without a cost
  int ntable;                    // 1 or count
  const SnNoiseSettings *noise;  // candidate c applies its base plus noise c, candidate 0 none; NULL: none at all
  const SnFeedback *feedback;    // (count) of each; NULL: none
  int nstep;
  int first, count;
  double max_velocity;  // a faster dof means divergence
  double *cost;         // out (count): infinity when diverged
  double *term;         // out (count, nterm); or NULL
  unsigned char *done;  // out (count): 1 when computed; zeroed by the caller before the first call
  int *warn;            // out (count): SN_WARN_* bits of its steps (overflow of contacts or rows); or NULL
  int *steps;           // out (count): steps that it made, nstep where it did not diverge; or NULL
  // Out (count): all states of each; or NULL. Rows that a rollout did not reach, since it diverged, are NaN.
  const SnTrajectory *out;
} SnBatch;

// Returns the model of the candidate in place i, 0 <= i < count, where `loaded` is the one that was loaded.
SN_INLINE const SnModel *sn_batch_model(const SnBatch *batch, int i, const SnModel *loaded) {
  return batch->model ? batch->model[i] : loaded;
}
// Returns the initial state of the candidate in place i, 0 <= i < count.
SN_INLINE const SnState *sn_batch_state(const SnBatch *batch, int i) {
  return batch->state + (batch->nstate > 1 ? i : 0);
}
// Returns its base controls (nstep, nu).
SN_INLINE const sn_number *sn_batch_ctrl(const SnBatch *batch, int i, int nu) {
  return batch->ctrl + (batch->nctrl > 1 ? (size_t)i : 0) * (size_t)batch->nstep * (size_t)nu;
}
// Returns its targets (nstep + 1, ntarget).
SN_INLINE const sn_number *sn_batch_target(const SnBatch *batch, int i, int ntarget) {
  return batch->ntable > 1 ? batch->target + (size_t)i * ((size_t)batch->nstep + 1) * (size_t)ntarget : batch->target;
}

// Reserves capacity for batches of `count` candidates. Without it a device computes a few at a time.
SnCode sn_backend_reserve_rollouts(SnBackend *b, SnBackendModel *x, int count, SnError *err);
// Reserves the same for batches with states, controls or targets of each candidate's own, or with `out`: they take more
// memory of a device. Without it the first such batch takes what it needs, or is never computed.
SnCode sn_backend_reserve_batches(SnBackend *b, SnBackendModel *x, int count, SnError *err);

// Computes candidates in the order of their index. Returns true when all are done, false when the clock reaches
// `until`. Called again with the same batch it goes on where it stopped; sn_backend_abandon comes before another batch.
bool sn_backend_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until);

// Announces a batch that sn_backend_rollouts is called for soon. A device takes it along with the next launch that
// another planner of the same model waits for. Allowed any number of times for a batch; rollouts or abandon comes next.
// Reads the batch, which may go then; its arrays of results stay.
void sn_backend_rollouts_submit(SnBackend *b, SnBackendModel *x, const SnBatch *batch);

// ---- gradients ----

// Reserves capacity for batches of at most `count` gradients; without it there is none. Not while a batch is under way.
SnCode sn_backend_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err);

// Computes value and gradient of every item that is pending. Returns true when all are done, false when the clock
// reaches `until`. Called again with the same batch it goes on where it stopped.
bool sn_backend_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until);

// Computes Jacobians along the rollouts of the last batch of gradients. The batch had `forward` and is done; its
// x->count items have the states. Returns false when the clock reaches `until` before the end. Called again with the
// same linearization it goes on where it stopped; sn_backend_abandon comes before another one.
bool sn_backend_linearize(SnBackend *b, SnBackendModel *x, const SnLinearization *linearization, const SnClock *clock,
                          double until);

// ---- multistarts ----

// Asks for iterations of Adam on one plan (planner/optimize/multistart.h). The backend keeps what Adam remembers from
// job to job. The job and its arrays must stay until it is ended.
typedef struct SnMultistartJob {
  // The request.
  SnState state;
  const sn_number *target;  // (nstep + 1, ntarget)
  int nstep;
  double max_velocity;
  SnGradientSettings settings;
  SnAdamGrid grid;
  SnAdamSettings rule;
  SnNoiseSettings noise;  // noise of starts; without a deviation
  // (nlisted) Candidates whose noise the first starts have, at most SN_MULTISTART_LISTED; start i beyond them has noise
  // i. Candidate 0 has none.
  const int *listed;
  int nlisted;
  const sn_number *initial_ctrl;  // (nu)
  int starts;                     // at most as many as there is capacity for
  int count;                      // starts that take part, 1 ... starts
  bool init;                      // begin anew, from `ctrl`; else go on from where the job before ended
  bool keep;                      // on init: start 0 keeps its moments
  int left;                       // knots of these moments that are gone, from the first on (multistart.h)
  bool measured;                  // best_cost is that of ctrl under the weights in force; in and out
  int iterations;                 // 1 ... sn_backend_job_iterations
  double deadline;                // on the clock: where the whole plan ends; INFINITY: nowhere

  // The results so far; in force after sn_backend_multistart_end.
  int done;              // iterations that count; in the last one of a job that was ended early maybe not all starts
  int used;              // starts of the latest of them that count
  sn_number *ctrl;       // (nstep, nu) in: where it begins, out: the best that was measured
  double cost_before;    // cost of the first controls measured; only where `measured` was false before
  double best_cost;      // in and out
  double gradient_norm;  // at ctrl, or, ended before that, at the iterate before; NaN where there is none. In and out
  double *best_term;     // (nterm) in and out
  // True: of the only start the rollout of the iteration under way is done, its way back is not. Ended now, the
  // iteration counts: without a gradient, and so neither where it is the first one measured nor where `next` is asked
  // for.
  bool rolled;
  int warn;         // SN_WARN_* bits of all rollouts of the job's iterations that count; zero on init
  sn_number *next;  // (nstep, nu) where the next plan shall begin (multistart.h); NULL: not asked for
  int best_start;   // start whose iterate ctrl is (multistart.h). In and out
} SnMultistartJob;

// Says how much room is asked for: rollouts of at most `max_step` steps, gradients of so many at once, starts of a job.
typedef struct SnBackendRoom {
  int max_step, gradients, starts;
} SnBackendRoom;

// Returns what the backend takes of the program's own memory for a model with so much room [bytes], at most. A device
// has a memory of its own: 0.
double sn_backend_bytes(const SnBackend *b, const SnModel *m, const SnCost *cost, const SnBackendRoom *room);

// Reserves capacity for jobs of at most `starts` starts. Not while a job is under way. Growing may drop what
// starts remember: the next job then begins anew.
SnCode sn_backend_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err);

// Works on a job until its iterations are done (true) or the clock reaches `until` (false). `until` is not after
// job->deadline. Called again with the same job it goes on where it stopped.
//
// A backend of one iteration a job stops anywhere. It may stop, though the clock has not reached `until`, where
// `rolled` becomes true. Others work in whole iterations. They begin the first of a call unless it is expected to end
// after job->deadline, and further ones that are expected to end before `until`. They return false where no iteration
// was done: then none fits.
bool sn_backend_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until);

// Ends a job, done or not: the job's results hold what counts of it, the rest is dropped. One of which nothing counts
// leaves what the first start remembers as it was. The next job may come after this. On a lost device the job stays as
// it was given, with `done` 0.
void sn_backend_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job);

// Announces a job that sn_backend_multistart is called for soon, as sn_backend_rollouts_submit does a batch. One of
// multistart, multistart_end and abandon comes next.
void sn_backend_multistart_submit(SnBackend *b, SnBackendModel *x, SnMultistartJob *job);

// Shows what the first start of a model's jobs remembers of its gradients, from plan to plan.
typedef struct SnMomentsView {
  int size;                         // sn_multistart_knots(max_step) * nu
  const sn_number *first, *second;  // (size) means of gradients and of their squares
  double power1, power2;            // beta1 and beta2 to the power of their number
} SnMomentsView;

// Reads them where there is capacity for a start and no job under way; the arrays are valid until the next call.
// Returns false where there is none, or the backend has no SN_BACKEND_MOMENTS.
bool sn_backend_moments(SnBackend *b, SnBackendModel *x, SnMomentsView *moments);
// Puts others in their place, of the same size, under the same conditions.
bool sn_backend_set_moments(SnBackend *b, SnBackendModel *x, const SnMomentsView *moments);

#endif

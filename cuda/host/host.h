// The host side of a backend's library: what planner/backend/backend_impl.h asks for, on a device (device.h). Plain
// C17, in the library's own number type; private to cuda/.
//
//   device host   a device, its budget, all models on it
//   device model  a body and the structure of a cost, uploaded once for all sessions that have the same;
//                 a stream, launch shapes, memory that the launches of all sessions share
//   session       one planner's body and task: memory of its own for rollouts, gradients and multistarts
//
// Memory is taken in buffers, when a session reserves capacity, and never while a plan is made. The host writes all
// that a launch needs into a staging buffer, and one copy sends it. Results lie at its end and come back by one copy.
// One thread at a time calls these functions.
#ifndef SINEW_CUDA_HOST_HOST_H_
#define SINEW_CUDA_HOST_HOST_H_

#include "cuda/host/launch_shape_private.h"
#include "planner/backend/backend_impl.h"

typedef struct SnDeviceHost SnDeviceHost;
typedef struct SnDeviceModel SnDeviceModel;

// ---- memory: device_memory.c ----

// Holds a piece of device memory that counts against the budget.
typedef struct SnDeviceBuffer {
  char *p;  // NULL: none
  size_t bytes;
} SnDeviceBuffer;

// Allocates `bytes`, zeroed. p is NULL when the device has no memory for it, or is lost. Call sn_host_admit before: it
// checks the budget.
SnDeviceBuffer sn_device_buffer_alloc(SnDeviceHost *host, size_t bytes);
// Gives the memory back to the device and the budget; the buffer is empty then. An empty one is allowed.
void sn_device_buffer_free(SnDeviceHost *host, SnDeviceBuffer *buffer);

// Checks whether `more` bytes fit into the budget beside the bytes taken, less `freed` that the caller gives back then.
// Returns SN_ERR_LIMIT otherwise, with a text of the session's model and horizon and `what`, e.g. "64 gradients".
SnCode sn_host_admit(const SnBackendModel *x, size_t more, size_t freed, const char *what, SnError *err);
// Returns the error of an allocation of `bytes` that failed although it was admitted: SN_ERR_STATE on a lost device,
// SN_ERR_LIMIT on a full one.
SnCode sn_host_refuse(const SnBackendModel *x, size_t bytes, const char *what, SnError *err);

// Returns bytes rounded up to 64, so that what follows is aligned for anything.
static inline size_t sn_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
// Returns what a buffer of so many bytes takes of the budget; 0: none.
static inline size_t sn_buffer_size(size_t bytes) { return bytes ? sn_aligned(bytes + 1) : 0; }
// Cuts `bytes` off the memory at p, from *used on, and adds them to *used, aligned. Returns NULL where p is NULL: then
// it only counts.
void *sn_cut(char *p, size_t *used, size_t bytes);

// ---- staging buffers: device_memory.c ----

// Holds a piece of pinned host memory with its twin on the device. Inputs come first, then, from sn_staging_results on,
// results. Put in the same order into one of `capacity` 0, everything only counts: `used` is then the capacity it
// takes.
typedef struct SnStaging {
  char *host;
  SnDeviceBuffer device;
  size_t capacity, used;  // [bytes]
  size_t results;         // begin of the results [bytes]; 0: no results
} SnStaging;

// Makes a staging buffer of `bytes`. Returns false on failure: then it has none.
bool sn_staging_create(SnDeviceHost *host, SnStaging *s, size_t bytes);
// Frees the memory of a staging buffer, which is empty then.
void sn_staging_free(SnDeviceHost *host, SnStaging *s);
// Begins anew: nothing is put.
void sn_staging_begin(SnStaging *s);
// Takes the next `bytes`. Returns where the host writes (or, after sn_staging_results, reads) them, NULL while it only
// counts. `device` (may be NULL) points to a pointer, which becomes their place on the device.
void *sn_staging_put(SnStaging *s, size_t bytes, void *device);
// Put n doubles (as sn_real) or bytes from x, and return their place on the device. With x NULL they put nothing and
// return NULL.
sn_real *sn_staging_reals(SnStaging *s, const double *x, size_t n);
const unsigned char *sn_staging_bytes(SnStaging *s, const unsigned char *x, size_t n);
// Gives n numbers that have come back from `there` on the device, as doubles. Does nothing where `to` is NULL.
void sn_staging_take(const SnStaging *s, double *to, const sn_real *there, size_t n);
// Tells that all that is put from now on is a result.
void sn_staging_results(SnStaging *s);
// Send the inputs (`all`: and what the results begin as), and fetch the results, by one copy in order on the model's
// stream. They do not wait.
void sn_staging_send(SnDeviceModel *d, SnStaging *s, bool all);
void sn_staging_fetch(SnDeviceModel *d, SnStaging *s);

// Has all arrays that a state may have: addresses to count by, of nothing that could be read.
extern const SnState sn_full_state;

// Puts the arrays of an initial state into the staging buffer, and sets the state of the rollout to them.
void sn_staging_state(SnStaging *s, const SnDeviceModel *d, const SnState *state, SnRollout *rollout);
// Puts space for the arrays of `out` that are not NULL, after sn_staging_results; the rollout writes its states there.
void sn_staging_trajectory(SnStaging *s, const SnDeviceModel *d, const SnTrajectory *out, SnRollout *rollout);
// Gives these arrays, which have come back, to `out`: the first `rows` rows, and NaN in those after them.
void sn_staging_give(const SnStaging *s, const SnDeviceModel *d, const SnRollout *rollout, int rows,
                     const SnTrajectory *out);
// Puts the arrays of settings of CFD (NULL: off) into the staging buffer. Returns the settings for the device.
SnCfd sn_staging_cfd(SnStaging *s, const SnDeviceModel *d, const SnCfdSettings *cfd);

// ---- launches of gradients: gradient_launches.c ----

// Holds memory of Jacobians of a number of states.
typedef struct SnProductMemory {
  sn_real *A, *B, *state_bar, *ctrl_bar, *before_bar, *target_bar;  // (states, ...)
} SnProductMemory;

// Describes a launch: value and gradient of all its items.
typedef struct SnGradientLaunches {
  int ngradient, nmultistart;
  int states;           // most states of a rollout: nstep + 1
  int sweep, products;  // 1: some item's method
  int forward;          // 1: rollouts alone
  // by sn_gradient_launches_plan:
  int sweep_chunk;    // states of every item at once
  int product_items;  // items at once, with all their states
  SnProductMemory memory;
  // on the device, by the caller
  SnGradientItem *gradient;
  SnMultistartTurn *multistart;
} SnGradientLaunches;

// Holds what a model's multistarts do together (multistart_iterations.c): the launch that their jobs are packed into.
typedef struct SnMultistartIterations {
  SnStaging staging;
  bool packed, stale;  // stale: a job came since
  bool sent;           // the staging buffer may still be on its way
  int flying;          // iterations that were begun and not taken yet
  SnGradientLaunches launches;
  const SnMultistartTurn *turn;  // results of what is packed, on the host
  const SnMultistart *multistart;
  double state_seconds[4];  // time of a state in the latest iteration, by the methods that it had; 0: not known
} SnMultistartIterations;

// ---- memory that sessions share: model_memory.c ----

// Names the parts of it. Nothing in them is kept from launch to launch, but the pool from one launch of a gradient to
// its next. Each part is an allocation of its own, so that a device's tools find who writes beyond it.
typedef enum SnMemoryPart {
  SN_MEMORY_SLOTS,    // worlds and adjoints of blocks (SnWork.block)
  SN_MEMORY_SCRATCH,  // SnWork.scratch
  SN_MEMORY_POOL,     // worlds of a chunk of states of all gradient items, or Jacobians of all states of some
  SN_NMEMORY
} SnMemoryPart;

// Says what launches of a model need at most.
typedef struct SnNeed {
  int items[SN_NKERNEL];    // most of a launch of each kernel; 0: there is none
  int many;                 // most of a launch of rollouts by parts of warps; 0: there is none
  int scratch[SN_NKERNEL];  // numbers that a block of it takes of the scratch
  size_t pool;              // [bytes]
  size_t staging;           // bytes of the staging buffer of multistarts
} SnNeed;

// Holds what one kind of a session's work has to itself.
typedef struct SnOwnMemory {
  SnDeviceBuffer kept;  // contents stay from launch to launch
  SnStaging staging;
} SnOwnMemory;

// Asks for memory: of the model's, and of a session's own, instead of what `old` has.
typedef struct SnMemoryRequest {
  SnNeed most, least;      // need of the fastest launches; of the least that can be done with
  size_t kept, staging;    // [bytes]; 0: none
  const SnOwnMemory *old;  // goes when the new memory is there, or NULL
  char what[64];           // for texts, e.g. "64 gradients"
} SnMemoryRequest;

// Fills in *own, and makes the memory that all sessions of x's model share large enough for `most`, or else for
// `least`. The contents of what grows go, so nothing may be under way on the device. Returns SN_ERR_LIMIT or, on a lost
// device, SN_ERR_STATE: then all is as before, and *own is empty.
SnCode sn_model_reserve(SnBackendModel *x, const SnMemoryRequest *request, SnOwnMemory *own, SnError *err);
// Frees what a session has to itself.
void sn_own_memory_free(SnDeviceHost *host, SnOwnMemory *own);
// Frees what the sessions of a model share.
void sn_model_memory_free(SnDeviceModel *d);

// Returns the launch of a kernel of a model over `items` (candidates, gradient items, states of those). It has a block
// an item, but at most as many as run at once.
SnLaunchShape sn_device_shape(const SnDeviceModel *d, SnKernel kernel, int items);
// Adds to `need` a launch of the kernel over `items`. Starts or candidates have noise of `knots` knots (0: no noise).
void sn_need_launch(const SnDeviceModel *d, SnKernel kernel, int items, int knots, SnNeed *need);
// Returns the work of a kernel with the model's part filled in: model, cost, memory of blocks.
SnWork sn_device_work(const SnDeviceModel *d, SnKernel kernel);

// Lists what a world of a rollout has: a warp (or the threads that were asked for), a part of one, or a thread alone.
// They may round in other places.
typedef enum SnRolloutWay { SN_ROLLOUT_WARPS, SN_ROLLOUT_PARTS, SN_ROLLOUT_THREADS } SnRolloutWay;
// Returns the way of `count` candidates. `batches` says that they are a batch of sn_backend_reserve_batches. A
// planner's go by warps: with a deadline fewer that are complete sooner are worth more. It depends on nothing else, so
// that a batch has the same results whatever memory there is and whoever shares the device.
SnRolloutWay sn_rollout_way(const SnDeviceModel *d, int count, bool batches);
// Returns how many candidates run at once in that way, with the memory that there is for it.
int sn_rollout_resident(const SnDeviceModel *d, SnRolloutWay way);
// Returns the launch of rollouts of `items` candidates in that way, and its work likewise.
SnLaunchShape sn_rollout_launch(const SnDeviceModel *d, SnRolloutWay way, int items, SnWork *work);

// ---- models: device_model.c ----

// Holds what the sessions of one model share.
struct SnDeviceModel {
  SnDeviceModel *next;
  SnDeviceHost *host;
  SnBackendModel *session;  // list of its sessions
  char name[64];
  SnModel m;    // sizes and options; arrays in the device's memory, but names (NULL)
  SnCost cost;  // arrays in the device's memory; no weights, which are a rollout's, and no owner
  char *image;  // contents as uploaded, to find the model by them
  size_t image_bytes;
  SnDeviceBuffer memory;
  SnDeviceStream *stream;
  SnKernelShape shape[SN_NKERNEL];
  SnKernelShape many;    // for rollouts of more candidates than run at once by `shape`; threads 0: by that, too
  SnWorldLimit limits;   // bounds what a world of `many` has room for
  SnThreadShape thread;  // for rollouts, where a thread a world was asked for
  SnLayout state;        // layout of a state's world
  SnNeed need;           // launches that `part` is large enough for
  SnDeviceBuffer part[SN_NMEMORY];
  int generation;   // counts how often the pool was moved
  SnStaging marks;  // time of each stage (SnWork.marks); none until somebody asks
  SnMultistartIterations iterations;
};

// Returns the model of these contents: one that is there, or a new one; NULL and err on failure. It lives as long as it
// has sessions.
SnDeviceModel *sn_device_model_get(SnDeviceHost *host, const SnParts *model, const SnParts *cost, SnError *err);
// Adds session x to the sessions of a model.
void sn_device_model_enter(SnDeviceModel *d, SnBackendModel *x);
// Frees the buffers of session x and takes it from its model; the last session's leave frees the model.
void sn_device_model_leave(SnBackendModel *x);
// Moves session x to the model with the cost as it is now, found or made. Buffers are made anew there, so a multistart
// forgets what it remembers from job to job. Returns an error on failure: then the session has no model.
SnCode sn_device_model_change(SnBackendModel *x, SnError *err);

// Gives the time of each stage since the last call, in stage (capacity), as the table's `profile`. The first call turns
// measuring on. Waits for the model's stream. Returns the number of stages; 0: no memory, or the device is lost.
int sn_device_profile(SnDeviceModel *d, SnBackendStage *stage, int capacity);

// ---- sessions ----

// Names what a session has capacity for: rollouts, those of wide batches (rollout_staging_private.h), gradients, starts
// of multistarts.
typedef enum SnCapacity {
  SN_CAPACITY_ROLLOUTS,
  SN_CAPACITY_BATCHES,
  SN_CAPACITY_GRADIENTS,
  SN_CAPACITY_STARTS,
  SN_NCAPACITY
} SnCapacity;

// Holds a session.
struct SnBackendModel {
  SnBackendModel *next;  // next session of the same model
  // views as loaded, copied; their arrays are the program's
  SnModelView model_view;
  SnCostView cost_view;
  int *follows;                // (nall) term_follows of the cost that `model` is made of
  bool rolling, computing;     // a batch of rollouts, of gradients is under way
  bool batches;                // somebody has reserved batches, not rollouts of a planner
  const SnMultistartJob *job;  // job under way; NULL: none
  SnDeviceHost *host;
  SnDeviceModel *model;  // NULL: an update failed
  int max_step;
  int capacity[SN_NCAPACITY];         // reserved so far
  struct SnRollouts *rollouts;        // rollouts.c; NULL: nothing reserved yet
  struct SnGradients *gradients;      // gradients.c
  struct SnMultistarts *multistarts;  // multistarts.c
};

// Limits the iterations that are worth asking for in one job: deadlines bound what one launch may take along anyway.
enum { SN_JOB_ITERATIONS = 32 };

// Returns a session (session.c) of the model of these contents, without capacity; NULL and err on failure. The views'
// arrays must outlive it.
SnBackendModel *sn_session_create(SnDeviceHost *host, const SnParts *model, const SnParts *cost, int max_step,
                                  SnError *err);
// Frees a session, which leaves its model. NULL is allowed.
void sn_session_free(SnBackendModel *x);
// Looks whether terms of the cost follow other elements than before. If so the session moves to the model of the cost
// as it is now. If that fails nothing is computed until it succeeds.
void sn_session_update(SnBackendModel *x);
// Puts the session's weights into the staging buffer, for the rollout. They lie in the program, which changes them
// while it runs: read them when work begins.
void sn_staging_weights(SnStaging *s, const SnBackendModel *x, SnRollout *rollout);
// Reserves capacity for n of a kind; less than there is changes nothing. Returns SN_ERR_LIMIT when the budget does not
// allow it: the text says what it needs and what there is. Returns SN_ERR_STATE when the session has no model or the
// device is lost, SN_ERR_MEMORY when the host has no memory. On failure the earlier capacity stays.
SnCode sn_session_reserve(SnBackendModel *x, SnCapacity kind, int n, SnError *err);
// Reserve capacity for `n` of them. They return SN_ERR_LIMIT, SN_ERR_MEMORY or, on a lost device, SN_ERR_STATE; then
// the earlier capacity stays.
SnCode sn_rollouts_reserve(SnBackendModel *x, int n, SnError *err);
SnCode sn_batches_reserve(SnBackendModel *x, int n, SnError *err);
SnCode sn_gradients_reserve(SnBackendModel *x, int n, SnError *err);
SnCode sn_multistarts_reserve(SnBackendModel *x, int n, SnError *err);

// Do what the calls of the backend's table say (planner/backend/backend_impl.h), for one session. The first two
// begin work and do nothing without capacity. The last one ends a job and gives its results.
void sn_rollouts_submit(SnBackendModel *x, const SnBatch *batch);
void sn_multistarts_submit(SnBackendModel *x, SnMultistartJob *job);
void sn_multistarts_end(SnBackendModel *x, SnMultistartJob *job);
// Run a batch or a job of one session, as the calls of the backend's table. They return true when all is done. They
// return false at `until` [s], on a lost device, or without capacity.
bool sn_rollouts_run(SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until);
bool sn_gradients_run(SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until);
bool sn_multistarts_run(SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until);

// Drop a session's work that is under way. They wait until the device has done with it.
void sn_rollouts_abandon(SnBackendModel *x);
void sn_gradients_abandon(SnBackendModel *x);
void sn_multistarts_abandon(SnBackendModel *x);

// Free a session's buffers, where it has any. Nothing of it may run on the device any more.
void sn_rollouts_free(SnBackendModel *x);
void sn_gradients_free(SnBackendModel *x);
void sn_multistarts_free(SnBackendModel *x);

// Waits for the iterations of a model's multistarts that run, and takes their results; the next iteration packs anew.
// Call it before a job goes, or memory moves.
void sn_multistart_iterations_change(SnDeviceModel *d);

// ---- the device host: plugin.c ----

// Holds a backend of this library.
struct SnDeviceHost {
  SnBackend table;  // first: a pointer to it is a pointer to the device host
  SnDevice *device;
  SnDeviceModel *models;
  size_t budget, used;  // [bytes]
  int block_threads;    // see SnBackendOptions; 0: nothing was asked for
};

#endif

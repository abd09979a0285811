// The host side of a backend's library: what planner/backend/backend_impl.h asks for, on a device (device.h). Plain
// C17, in the library's own number type; private to cuda/.
//
//   device host   a device, its budget, all models on it
//   device model  a body and the structure of a cost, uploaded once for all sessions that have the same; a stream,
//   memory
//                 of blocks, launch shapes
//   session       one planner's body and task: buffers of its rollouts, gradients and multistarts
//
// Memory is taken in buffers, when a session reserves capacity, and never while a plan is made. What goes to the device
// for a launch is written into a staging buffer and sent by one copy; results lie at its end and come back by one copy.
// One thread at a time.
#ifndef SINEW_CUDA_HOST_HOST_H_
#define SINEW_CUDA_HOST_HOST_H_

#include "cuda/host/launch_shape_private.h"
#include "planner/backend/backend_impl.h"

typedef struct SnDeviceHost SnDeviceHost;
typedef struct SnDeviceModel SnDeviceModel;

// ---- memory: device_memory.c ----

// Memory of the device that counts against the budget.
typedef struct SnDeviceBuffer {
  char *p;  // NULL: none
  size_t bytes;
} SnDeviceBuffer;

// Zeroed. p is NULL when the device has no memory for it, or is lost; the budget is checked by sn_host_admit before.
SnDeviceBuffer sn_device_buffer_alloc(SnDeviceHost *host, size_t bytes);
void sn_device_buffer_free(SnDeviceHost *host, SnDeviceBuffer *buffer);

// Whether `more` bytes fit into the budget beside what is taken, less `freed` that the caller gives back then.
// SN_ERR_LIMIT with a text made of the session's model and horizon and `what`, e.g. "64 gradients".
SnCode sn_host_admit(const SnBackendModel *x, size_t more, size_t freed, const char *what, SnError *err);
// For an allocation that failed although it was admitted: the error of it, which tells a lost device from a full one.
SnCode sn_host_refuse(const SnBackendModel *x, size_t bytes, const char *what, SnError *err);

// Bytes rounded up so that what follows is aligned for anything.
static inline size_t sn_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
// Cuts `bytes` off a piece of memory at *p, aligned; with *p NULL it only counts, in *used.
void *sn_cut(char *p, size_t *used, size_t bytes);

// ---- staging buffers: device_memory.c ----

// A piece of pinned host memory with its twin on the device. First what goes in, then, from sn_staging_results on, what
// comes back. Put in the same order with `capacity` 0, everything only counts: `used` is then the capacity that it
// takes.
typedef struct SnStaging {
  char *host;
  SnDeviceBuffer device;
  size_t capacity, used;
  size_t results;  // where they begin
} SnStaging;

// Reserves `bytes`; on failure (false) the staging buffer has none.
bool sn_staging_create(SnDeviceHost *host, SnStaging *s, size_t bytes);
void sn_staging_free(SnDeviceHost *host, SnStaging *s);
// Begins anew.
void sn_staging_begin(SnStaging *s);
// The next `bytes`: where the host writes (or, after sn_staging_results, reads) them; *device (may be NULL): where they
// will be there. NULL while it only counts.
void *sn_staging_put(SnStaging *s, size_t bytes, void *device);
// The same, filled from doubles, ints, bytes; x NULL: nothing is put and NULL returned. Returns the place on the
// device.
const sn_real *sn_staging_reals(SnStaging *s, const double *x, size_t n);
const int *sn_staging_ints(SnStaging *s, const int *x, size_t n);
const unsigned char *sn_staging_bytes(SnStaging *s, const unsigned char *x, size_t n);
// What is put from now on is a result.
void sn_staging_results(SnStaging *s);
// One copy each way, in order on the stream.
void sn_staging_send(SnDeviceHost *host, SnStaging *s, SnDeviceStream *stream);
void sn_staging_fetch(SnDeviceHost *host, SnStaging *s, SnDeviceStream *stream);

// The initial state of a rollout and settings of CFD (NULL: off), their arrays put into the staging buffer.
void sn_staging_state(SnStaging *s, const SnDeviceModel *d, const SnState *state, SnRollout *rollout);
SnCfd sn_staging_cfd(SnStaging *s, const SnDeviceModel *d, const SnCfdSettings *cfd);

// ---- models: device_model.c ----

// What one model's sessions share.
struct SnDeviceModel {
  SnDeviceModel *next;
  SnDeviceHost *host;
  SnBackendModel *session;  // its list
  char name[64];
  SnModel m;    // sizes and options; arrays in the device's memory, but names (NULL)
  SnCost cost;  // the same; no weights, which are a rollout's, and no owner
  char *image;  // what was uploaded, to find it by content
  size_t image_bytes;
  SnDeviceBuffer memory;
  SnDeviceStream *stream;
  SnKernelShapes shape[SN_NKERNEL];
  // Memory of blocks (SnWork.block, SnWork.scratch), for any kernel of this model: grows by sn_device_block_reserve.
  SnDeviceBuffer slots, scratch;
  int scratch_blocks[SN_NKERNEL], scratch_size[SN_NKERNEL];  // of scratch: (blocks, numbers) that a kernel has
  int rollouts;                        // candidates that a launch of ROLLOUT has memory of blocks for
  int generation;                      // counts how often it, or `marks`, was moved: graphs made before are stale
  SnStaging marks;                     // time of each stage (SnWork.marks); none until somebody asks
  struct SnModelGradients *gradients;  // gradient_memory.c: what all its sessions' gradients share; NULL: nothing yet
};

// The model of these contents: one that is there, or a new one. NULL and err on failure. It lives as long as it has
// sessions: sn_device_model_leave frees a session's buffers, and the model with its last session.
SnDeviceModel *sn_device_model_get(SnDeviceHost *host, const SnParts *model, const SnParts *cost, SnError *err);
void sn_device_model_enter(SnDeviceModel *d, SnBackendModel *x);
void sn_device_model_leave(SnBackendModel *x);
// Moves a session to the model with the cost as it is now: found or made. Its buffers are made anew there: what a
// multistart remembers from job to job is gone. On failure the session has no model.
SnCode sn_device_model_change(SnBackendModel *x, SnError *err);

// The launch of a kernel of a model over `items` (candidates, gradient items, states of those): a block an item, at
// most as many as run at once where blocks take memory.
SnLaunchShape sn_device_shape(const SnDeviceModel *d, SnKernel kernel, int items);
// As sn_kernel_scratch.
int sn_device_scratch_size(const SnDeviceModel *d, SnKernel kernel, int knots);
// Memory of blocks is made large enough for a kernel over `items`. sn_device_block_growth: by how many bytes; 0: it is.
// What was there goes: nothing may be under way on the device. False: no memory, all is as before.
size_t sn_device_block_growth(const SnDeviceModel *d, SnKernel kernel, int items, int scratch_size);
bool sn_device_block_reserve(SnDeviceModel *d, SnKernel kernel, int items, int scratch_size);
// What stages took since the last call, as the table's profile.
int sn_device_profile(SnDeviceModel *d, SnBackendStage *stage, int buffer);
// Work of a kernel over `items` with the model's part filled in: model, cost, memory of blocks.
SnWork sn_device_work(const SnDeviceModel *d, SnKernel kernel, int items);

// ---- sessions ----

// Where a session's weights are: in the program, which changes them while it runs. Read when work begins.
typedef struct SnWeights {
  const double *running, *terminal;  // (nterm)
} SnWeights;

enum { SN_CAPACITY_ROLLOUTS, SN_CAPACITY_GRADIENTS, SN_CAPACITY_STARTS, SN_NCAPACITY };

struct SnBackendModel {
  SnBackendModel *next;  // of the same model
  // As the program has them: copies of what was loaded, over its arrays.
  SnModelView model_view;
  SnCostView cost_view;
  int *follows;                // (nall) term_follows of the cost that `model` is made of
  bool rolling, computing;     // a batch of rollouts, of gradients is under way
  const SnMultistartJob *job;  // under way; NULL: none
  SnDeviceHost *host;
  SnDeviceModel *model;  // NULL: an update failed
  int max_step;
  int capacity[SN_NCAPACITY];         // that there is
  struct SnRollouts *rollouts;        // rollouts.c; NULL: nothing reserved yet
  struct SnGradients *gradients;      // gradients.c
  struct SnMultistarts *multistarts;  // multistarts.c
};

// Most iterations that are worth asking for in one job: what one launch may take along is bounded by deadlines anyway.
enum { SN_JOB_ITERATIONS = 32 };

// session.c. A session of the model of these contents, without capacity; the views' arrays must outlive it. NULL and
// err on failure.
SnBackendModel *sn_session_create(SnDeviceHost *host, const SnParts *model, const SnParts *cost, int max_step,
                                  SnError *err);
void sn_session_free(SnBackendModel *x);
// Looks whether terms of the cost follow other elements than before: then the session moves to the model of the cost as
// it is now. Where that fails nothing is computed until it succeeds.
void sn_session_update(SnBackendModel *x);
SnWeights sn_session_weights(const SnBackendModel *x);
// Room for as many of each; 0: as it is. SN_ERR_LIMIT when the budget does not allow it: the text says what it needs
// and what there is. What there was before stays.
SnCode sn_session_reserve(SnBackendModel *x, int rollouts, int gradients, int starts, SnError *err);
// Reserve capacity for `n` of them. SN_ERR_LIMIT or SN_ERR_MEMORY: what there was before stays.
SnCode sn_rollouts_reserve(SnBackendModel *x, int n, SnError *err);
SnCode sn_gradients_reserve(SnBackendModel *x, int n, SnError *err);
SnCode sn_multistarts_reserve(SnBackendModel *x, int n, SnError *err);

void sn_rollouts_submit(SnBackendModel *x, const SnBatch *batch);
bool sn_rollouts_run(SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until);
bool sn_gradients_run(SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until);
void sn_multistarts_submit(SnBackendModel *x, SnMultistartJob *job);
bool sn_multistarts_run(SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until);
void sn_multistarts_end(SnBackendModel *x, SnMultistartJob *job);

// Drops what is under way.
void sn_rollouts_abandon(SnBackendModel *x);
void sn_gradients_abandon(SnBackendModel *x);
void sn_multistarts_abandon(SnBackendModel *x);

// Frees a session's buffers; nothing of it runs on the device any more. NULL is allowed.
void sn_rollouts_free(SnBackendModel *x);
void sn_gradients_free(SnBackendModel *x);
void sn_multistarts_free(SnBackendModel *x);
// Frees what a model's gradients and multistarts share, graphs too; its last session has gone.
void sn_gradients_forget(SnDeviceModel *d);

// ---- the device host: plugin.c ----

struct SnDeviceHost {
  SnBackend table;  // first: a pointer to it is a pointer to the device host
  SnDevice *device;
  SnDeviceModel *models;
  size_t budget, used;  // [bytes]
  SnShapeRule rule;     // of launches
  bool scan;            // Jacobians are multiplied by a scan over time, where it fits
};

#endif

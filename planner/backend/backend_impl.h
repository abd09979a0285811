// For authors of backends: the table that a backend fills in, and how one in a library of its own is found. Users call
// the functions of planner/backend/backend.h, which say what each operation means; here stands what they leave open.
//
// Structures that cross this table have the same layout in every library, whatever number type it computes in.
#ifndef SINEW_PLANNER_BACKEND_BACKEND_IMPL_H_
#define SINEW_PLANNER_BACKEND_BACKEND_IMPL_H_

#include "planner/backend/backend.h"

// Holds the operations of a backend, in the order of sn_backend_*. A backend begins with its table: a pointer to one is
// a pointer to the other. Operations marked optional may be NULL; backend.c has the rule for each that is.
struct SnBackend {
  const char *name;    // name that it is opened by; static memory
  int job_iterations;  // sn_backend_job_iterations
  bool batches;        // SN_BACKEND_BATCHES; without it such a batch is not computed: rollouts return false
  bool feedback;       // SN_BACKEND_FEEDBACK; without it feedback is not looked at
  bool models;         // SN_BACKEND_MODELS; without it models of each one's own are not looked at
  bool parameters;     // SN_BACKEND_PARAMETERS; without it derivatives by the model are not looked at
  void (*describe)(const SnBackend *b, char *text, int size);
  // Optional; absent: never lost. Leaves `text` alone where it returns false.
  bool (*lost)(const SnBackend *b, char *text, int size);
  // Optional; absent: zeros.
  SnBackendMemory (*memory)(const SnBackend *b);

  // A backend of the program's own number type has `load`. One of a library has `load_views` instead: its models and
  // costs are other structures. The parts, with their tables of sizes, options and places, go after the call: copy
  // them. The arrays at these places stay where they are, weights and what else changes live included.
  SnBackendModel *(*load)(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err);
  SnBackendModel *(*load_views)(SnBackend *b, const SnParts *model, const SnParts *cost, int max_step, SnError *err);
  // Optional; absent: SN_ERR_UNSUPPORTED.
  SnCode (*choose)(SnBackend *b, SnBackendModel *x, const SnHorizonSettings *settings, SnError *err);
  void (*unload)(SnBackend *b, SnBackendModel *x);  // does nothing where x is NULL
  void (*update)(SnBackend *b, SnBackendModel *x);
  void (*abandon)(SnBackend *b, SnBackendModel *x);
  // Optional; absent: 0 stages.
  int (*profile)(SnBackend *b, SnBackendModel *x, SnBackendStage *stage, int capacity);

  // Optional, each; absent: there is capacity for any batch.
  SnCode (*reserve_rollouts)(SnBackend *b, SnBackendModel *x, int count, SnError *err);
  SnCode (*reserve_batches)(SnBackend *b, SnBackendModel *x, int count, SnError *err);
  bool (*rollouts)(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until);
  // Optional; absent: nothing is done. Reads the batch, which may go then, but not its arrays of results.
  void (*rollouts_submit)(SnBackend *b, SnBackendModel *x, const SnBatch *batch);

  // Optional, both or none; absent: SN_ERR_UNSUPPORTED.
  SnCode (*reserve_gradients)(SnBackend *b, SnBackendModel *x, int count, SnError *err);
  bool (*gradients)(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until);

  // Optional; absent: none are made, false.
  bool (*linearize)(SnBackend *b, SnBackendModel *x, const SnLinearization *linearization, const SnClock *clock,
                    double until);

  // Optional, all three or none; absent: SN_ERR_UNSUPPORTED.
  SnCode (*reserve_multistart)(SnBackend *b, SnBackendModel *x, int starts, SnError *err);
  bool (*multistart)(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until);
  void (*multistart_end)(SnBackend *b, SnBackendModel *x, SnMultistartJob *job);
  // Optional; absent: nothing is done.
  void (*multistart_submit)(SnBackend *b, SnBackendModel *x, SnMultistartJob *job);

  // Optional, both or none; absent: false.
  bool (*moments)(SnBackend *b, SnBackendModel *x, SnMomentsView *moments);
  bool (*set_moments)(SnBackend *b, SnBackendModel *x, const SnMomentsView *moments);

  void (*destroy)(SnBackend *b);

  // Optional; absent: 0, as where none of it is the program's own memory.
  double (*bytes)(const SnBackend *b, const SnModel *m, const SnCost *cost, const SnBackendRoom *room);
};

// ---- libraries ----

// Numbers this interface together with the lists of physics/model/model_view.h and planner/cost/cost_fields.inc. Counts
// it up whenever a structure that crosses the table, or one of these lists, changes.
enum { SN_PLUGIN_VERSION = 19 };

// Describes what a library libsinew_NAME.so exports, under the name SN_PLUGIN_SYMBOL and nothing else.
typedef struct SnPlugin {
  int version;  // SN_PLUGIN_VERSION; first in every version
  // Opens a backend; its name is then set by the program. Returns NULL and err on failure.
  SnBackend *(*open)(const SnBackendOptions *options, SnError *err);
} SnPlugin;

#define SN_PLUGIN_SYMBOL "sn_plugin"
extern const SnPlugin sn_plugin;

#endif

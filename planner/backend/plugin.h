// The interface of a backend that lies in a library of its own, libsinew_NAME.so, which may compute in another number
// type than the program: all numbers cross it as double, all structures are its own. The library exports one function,
// sn_plugin_open; backend_plugin.c makes an SnBackend of what it returns. Operations mean what the table of SnBackend
// (planner/backend/backend.h) says; one thread at a time.
#ifndef SINEW_PLANNER_BACKEND_PLUGIN_H_
#define SINEW_PLANNER_BACKEND_PLUGIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "physics/model/model_view.h"

// Of this interface and of the lists of physics/model/model_view.h and planner/cost/cost_fields.inc; the numbers of
// their entries must agree, too.
enum { SN_PLUGIN_VERSION = 2 };

typedef struct SnPluginClock {
  double (*now)(void *context);
  void *context;
} SnPluginClock;

// SnCfd, SnState, SnNoise, SnBatch, SnGradient, SnMultistartJob of the program's headers.
typedef struct SnPluginCfd {
  int on, surrogate, friction;
  double solimp[5], width;
  const unsigned char *pair;
} SnPluginCfd;

typedef struct SnPluginState {
  double time;
  const double *qpos, *qvel, *act, *mocap_pos, *mocap_quat, *qacc_warmstart;
  SnPluginCfd cfd;
} SnPluginState;

typedef struct SnPluginNoise {
  uint64_t seed;
  uint32_t plan, iteration;
  int spacing, phase, knots, interpolation, colour;
  double scale;
} SnPluginNoise;

// Weights are given with every call: they change live.
typedef struct SnPluginWeights {
  const double *running, *terminal;  // (nterm)
} SnPluginWeights;

typedef struct SnPluginBatch {
  SnPluginState state;
  SnPluginWeights weights;
  const double *ctrl, *target;
  const SnPluginNoise *noise;  // NULL: none
  int nstep, first, count;
  double max_velocity;
  double *cost, *term;
  unsigned char *done;
  int *warn;
} SnPluginBatch;

typedef struct SnPluginGradient {
  SnPluginState state;
  const double *ctrl, *target;
  int nstep;
  double max_velocity;
  bool continues;
  int status;  // SnGradientStatus
  double cost;
  double *term, *ctrl_bar, *qpos_bar, *qvel_bar, *act_bar, *target_bar;
  double norm;
  int warn;
} SnPluginGradient;

typedef struct SnPluginGradientBatch {
  SnPluginWeights weights;
  int method;  // SnGradientMethod
  SnPluginCfd cfd;
  SnPluginGradient *item;
  int count;
} SnPluginGradientBatch;

typedef struct SnPluginRule {
  double rate, beta1, beta2, epsilon, clip_norm;
  int clip;
} SnPluginRule;

typedef struct SnPluginMultistart {
  SnPluginState state;
  SnPluginWeights weights;
  const double *target;
  int nstep;
  double max_velocity;
  int method;
  SnPluginCfd cfd;                           // of the derivative
  int knots, spacing, phase, interpolation;  // SnAdamGrid
  SnPluginRule rule;
  SnPluginNoise noise;
  const double *initial_ctrl;
  int starts, count;
  bool init, keep, measured;
  int left, iterations;
  double deadline;
  int done, used;
  double *ctrl;
  double cost_before, best_cost, gradient_norm;
  double *best_term;
  int warn;
} SnPluginMultistart;

typedef struct SnPluginMemory {
  size_t used, budget, total;
} SnPluginMemory;

typedef struct SnPluginStage {
  const char *name;
  double time;
} SnPluginStage;

typedef struct SnPluginOptions {
  int version;  // SN_PLUGIN_VERSION
  int device;
  double memory;
  const char *fault;
  const char *chain;
  int block_threads;
  double block_shared;
} SnPluginOptions;

// A body and a task of one planner.
typedef struct SnPluginSession SnPluginSession;

typedef struct SnPlugin SnPlugin;
struct SnPlugin {
  int version;
  const char *name;
  int job_iterations;
  int real_bytes;  // of the numbers that it computes with
  void (*describe)(const SnPlugin *p, char *text, int size);
  SnPluginSession *(*load)(SnPlugin *p, const SnParts *model, const SnParts *cost, int max_step, SnError *err);
  void (*unload)(SnPlugin *p, SnPluginSession *x);
  // The cost's arrays other than weights have changed (term_follows). Not while something is under way. On failure all
  // operations of the session fail until it succeeds.
  SnCode (*update)(SnPlugin *p, SnPluginSession *x, const SnParts *model, const SnParts *cost, SnError *err);
  // Reserves capacity for `rollouts` candidates, `gradients` gradients, `starts` starts of multistarts; 0: as it is.
  // SN_ERR_LIMIT when the budget does not allow it: the text says what it needs and what there is. What there was
  // before stays.
  SnCode (*reserve)(SnPlugin *p, SnPluginSession *x, int rollouts, int gradients, int starts, SnError *err);
  // Reads the batch, which may go then, but not its arrays of results.
  void (*rollouts_submit)(SnPlugin *p, SnPluginSession *x, const SnPluginBatch *batch);
  bool (*rollouts)(SnPlugin *p, SnPluginSession *x, const SnPluginBatch *batch, const SnPluginClock *clock,
                   double until);
  bool (*gradients)(SnPlugin *p, SnPluginSession *x, SnPluginGradientBatch *batch, const SnPluginClock *clock,
                    double until);
  void (*multistart_submit)(SnPlugin *p, SnPluginSession *x, SnPluginMultistart *job);
  bool (*multistart)(SnPlugin *p, SnPluginSession *x, SnPluginMultistart *job, const SnPluginClock *clock,
                     double until);
  void (*multistart_end)(SnPlugin *p, SnPluginSession *x, SnPluginMultistart *job);
  void (*abandon)(SnPlugin *p, SnPluginSession *x);
  bool (*lost)(const SnPlugin *p, char *text, int size);
  void (*memory)(const SnPlugin *p, SnPluginMemory *memory);
  int (*profile)(SnPlugin *p, SnPluginSession *x, SnPluginStage *stage, int capacity);
  void (*close)(SnPlugin *p);
};

typedef SnPlugin *SnPluginOpen(const SnPluginOptions *options, SnError *err);
#define SN_PLUGIN_SYMBOL "sn_plugin_open"

#endif

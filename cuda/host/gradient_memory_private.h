// Inside of gradients and multistarts: memory of gradient items, and the launches that take them forward and back.
// Shared by gradient_memory.c, gradient_launches.c, jacobian_scan.c, gradients.c, multistarts.c and
// multistart_graphs.c.
#ifndef SINEW_CUDA_HOST_GRADIENT_MEMORY_PRIVATE_H_
#define SINEW_CUDA_HOST_GRADIENT_MEMORY_PRIVATE_H_

#include "cuda/host/host.h"

// ---- gradient_memory.c: memory ----

// Device memory of one gradient item, kept from launch to launch.
typedef struct SnGradientMemory {
  sn_real *time, *qpos, *qvel, *act, *qacc, *cfd_qacc;  // (max_step + 1, ...) states of its rollout
  sn_real *sum, *running, *terminal;                    // (nterm)
  sn_real *state_bar, *scratch;                         // (n)
  sn_real *target_bar;                                  // (ntarget) of one state
  int *cfd_steps;
} SnGradientMemory;

// Cuts it off a buffer at p (NULL: counts only).
void sn_gradient_memory_cut(const SnDeviceModel *d, int max_step, char *p, size_t *used, SnGradientMemory *memory);

// A pending gradient item without memory, initial state, controls, targets, weights, outputs and what it is part of;
// and its memory.
SnGradientItem sn_gradient_item_make(int method, int nstep);
void sn_gradient_item_use(SnGradientItem *x, const SnGradientMemory *memory);

// Memory of Jacobians of a number of states, and what a scan over them needs beside (else NULL).
typedef struct SnProductMemory {
  sn_real *A, *B, *state_bar, *ctrl_bar, *target_bar;  // (states, ...)
  sn_real *delta;                                      // (states, n)
  sn_real *power[2];                                   // (states / 2, n, n), (states / 4, n, n)
} SnProductMemory;
// Cuts it off at p (NULL: counts only); returns its bytes.
size_t sn_product_cut(const SnDeviceModel *d, size_t states, bool scan, char *p, SnProductMemory *memory);

// What all gradients and multistarts of a model share. The pool holds the worlds or the Jacobians of a chunk of states,
// one launch's after another's.
typedef struct SnModelGradients {
  SnLayout world;  // of a state: no shared memory
  SnDeviceBuffer pool;
  int generation;                     // counts how often the pool was moved
  SnStaging staging;                  // of multistarts
  struct SnMultistartGraphs *graphs;  // multistart_graphs.c; NULL: no multistart yet
} SnModelGradients;

// Makes the memory that all sessions of the model share large enough for launches of `gradients` items of the session,
// and for a staging buffer of multistarts of `staging` bytes; `own` bytes that the caller takes next, and `freed` that
// it then gives back, count in the budget, too. SN_ERR_LIMIT or SN_ERR_MEMORY: all is as before.
SnCode sn_model_gradients_reserve(SnBackendModel *x, int gradients, size_t staging, size_t own, size_t freed,
                                  const char *what, SnError *err);

// ---- gradient_launches.c: launches ----

// Value and gradient of all items of a launch.
typedef struct SnGradientLaunches {
  int ngradient, nmultistart;
  int states;           // of the longest rollout: nstep + 1
  int sweep, products;  // 1: some item's method
  // by sn_gradient_launches_plan:
  int scan;                        // 1: Jacobians are chained by a scan
  int sweep_chunk, product_chunk;  // states of every item at once
  SnProductMemory memory;
  // on the device, by the caller
  SnGradientItem *gradient;
  SnMultistartTurn *multistart;
} SnGradientLaunches;

// Fills in how it goes in the pool that there is.
void sn_gradient_launches_plan(const SnDeviceModel *d, SnGradientLaunches *p);
// Puts the states of item r for its method into the staging buffer; returns their place on the device. rows: how many.
SnRolloutVjpState *sn_gradient_launches_states(const SnDeviceModel *d, const SnGradientLaunches *p, int r,
                                               const SnGradientMemory *memory, int method, SnStaging *staging);
int sn_gradient_launches_rows(const SnGradientLaunches *p, int method);
// The launches in groups: forward, one chunk of states after another, the end. Between two groups the pool may be used
// by others.
int sn_gradient_launches_count(const SnGradientLaunches *p);
void sn_gradient_launches_put(SnDeviceModel *d, const SnGradientLaunches *p, int group);

// ---- jacobian_scan.c ----

enum { SN_JACOBIAN_SCAN_BLOCK = 16 };  // states of a block: a power of two

// States of a rollout in whole blocks, and the place of state t of item r in the memory of a scan.
int sn_jacobian_scan_rows(int states);
size_t sn_jacobian_scan_place(int ngradient, int r, int t);
// After JACOBIAN over all rows: from the derivatives of the cost of each state alone to those of the whole cost, with
// respect to controls (ctrl_bar) and to the first state (state_bar), in place.
void sn_jacobian_scan_launch(SnDeviceModel *d, int ngradient, int rows, const SnProductMemory *memory);

// ---- multistarts.c: a session's ----

// Its buffer, and how far its job is.
typedef struct SnMultistarts {
  SnDeviceBuffer buffer;
  int starts;
  SnGradientMemory *memory;  // (starts)
  SnMultistartStart *view;   // (starts) the pointers of those on the device
  SnMultistartStart *start;  // (starts) on the device
  // the job, and what has come back of it
  SnMultistartJob *job;  // NULL: none
  int done, warn;
  bool measured;
  double cost_before, best_cost, gradient_norm;
  double *ctrl, *best_term;  // (max_step, nu), (nterm)
  // where it lies in what multistart_graphs.c has packed
  int place;  // -1: it does not
  int first, packed_done;
  SnMultistart asked;
  const sn_real *nominal, *term;  // its results, on the host
} SnMultistarts;

// ---- multistart_graphs.c: those of a model that go on together ----

typedef struct SnMultistartGraphs SnMultistartGraphs;

// Where there are none yet; false: no memory.
bool sn_multistart_graphs_create(SnDeviceModel *d);
void sn_multistart_graphs_free(SnDeviceModel *d);
// Most bytes of a staging buffer that a job of a session takes beside jobs of at most `longest` steps. Not while
// anything is packed.
size_t sn_multistart_graphs_staging(SnBackendModel *x, SnMultistarts *r, int longest);
// A job came: the next iteration takes it along. Does not wait.
void sn_multistart_graphs_add(SnDeviceModel *d);
// Before a job goes, or memory moves: what runs is waited for and taken, and the next iteration packs anew.
void sn_multistart_graphs_change(SnDeviceModel *d);
// Graphs hold addresses of shared memory, which has moved: none is valid any more.
void sn_multistart_graphs_forget(SnDeviceModel *d);
// Iterations of all jobs of the model until that of x is done (true) or the clock says no.
bool sn_multistart_graphs_run(SnBackendModel *x, const SnClock *clock, double until);

#endif

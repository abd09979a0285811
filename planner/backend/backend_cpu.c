// The CPU backend: one rollout at a time on each thread of a pool. Candidates are taken in the order of
// their index; a rollout that is interrupted by the clock stays where it is until the batch goes on.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/backend/backend_impl.h"
#include "planner/backend/cpu_multistart_private.h"

// Memory that the multistarts of one planner may take [bytes]: refused beyond, before the machine runs out.
static const double most_multistart_memory = 1 << 30;

// What one thread works with.
typedef struct CpuSlot {
  SnRolloutRunner *runner;
  sn_real *ctrl;     // controls of the candidate (max_step, nu)
  sn_real *scratch;  // of the noise (3 * (max_step + 2))
  int candidate;     // index in the batch that is under way, -1: none
} CpuSlot;

struct SnBackendModel {
  const SnModel *m;
  const SnCost *cost;
  SnPool *pool;
  int nslot;
  CpuSlot *slot;
  // the batch
  const SnBatch *batch;
  const SnClock *clock;
  double until;
  bool active;                  // a batch is under way
  atomic_int next;              // first candidate that nobody has taken
  SnGradientWork *gradient;     // NULL: none needed yet
  SnCpuMultistart *multistart;  // the same
  int max_step, gradients;      // that it has room for
  SnHorizonSettings chosen;     // how steps are chosen, where `choose`
  bool choose;
};

typedef struct CpuBackend {
  SnBackend table;  // first: a pointer to it is a pointer to the backend
  SnPool *pool;
} CpuBackend;

static void cpu_describe(const SnBackend *b, char *text, int size) {
  const CpuBackend *cpu = (const CpuBackend *)b;
  snprintf(text, (size_t)size, "cpu, %s, %d thread%s", sizeof(sn_real) == sizeof(double) ? "double" : "float",
           sn_pool_size(cpu->pool), sn_pool_size(cpu->pool) == 1 ? "" : "s");
}

static void cpu_unload(SnBackend *b, SnBackendModel *x) {
  (void)b;
  if (!x) return;
  for (int i = 0; i < x->nslot; ++i) {
    sn_rollout_runner_free(x->slot[i].runner);
    free(x->slot[i].ctrl);
    free(x->slot[i].scratch);
  }
  free(x->slot);
  sn_gradient_free(x->gradient);
  sn_cpu_multistart_free(x->multistart);
  free(x);
}

static SnBackendModel *cpu_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  CpuBackend *cpu = (CpuBackend *)b;
  SnBackendModel *x = calloc(1, sizeof *x);
  const int n = sn_pool_size(cpu->pool);
  if (x) x->slot = calloc((size_t)n, sizeof *x->slot);
  bool ok = x && x->slot;
  if (ok) {
    x->m = m;
    x->cost = cost;
    x->pool = cpu->pool;
    x->nslot = n;
    x->max_step = max_step;
  }
  for (int i = 0; ok && i < n; ++i) {
    CpuSlot *s = &x->slot[i];
    s->candidate = -1;
    s->runner = sn_rollout_runner_create(m, cost, err);
    s->ctrl = calloc((size_t)max_step * (size_t)m->nu + 1, sizeof *s->ctrl);
    s->scratch = calloc(3 * ((size_t)max_step + 2), sizeof *s->scratch);
    ok = s->runner && s->ctrl && s->scratch;
  }
  if (ok) return x;
  cpu_unload(b, x);
  sn_fail(err, SN_ERR_MEMORY, "cpu backend: out of memory");
  return NULL;
}

static SnCode cpu_choose(SnBackend *b, SnBackendModel *x, const SnHorizonSettings *settings, SnError *err) {
  (void)b;
  SnCode code = SN_OK;
  for (int i = 0; i < x->nslot && code == SN_OK; ++i)
    code = sn_rollout_runner_choose(x->slot[i].runner, settings, false, err);
  x->chosen = *settings;
  x->choose = true;
  return code;
}

// Starts the next candidate on a slot; false when there is none.
static bool take_candidate(SnBackendModel *x, CpuSlot *s) {
  const SnBatch *batch = x->batch;
  const int i = atomic_fetch_add(&x->next, 1);
  if (i >= batch->count) return false;
  const sn_real *ctrl = sn_batch_ctrl(batch, i, x->m->nu);
  if (batch->noise && batch->first + i > 0) {
    sn_noise_candidate(x->m, batch->noise, batch->first + i, ctrl, batch->nstep, s->scratch, s->ctrl);
    ctrl = s->ctrl;
  }
  sn_rollout_runner_use(s->runner, sn_batch_model(batch, i, x->m));
  sn_rollout_runner_begin(s->runner, sn_batch_state(batch, i), ctrl, sn_batch_target(batch, i, x->cost->ntarget),
                          batch->nstep, batch->max_velocity, batch->out ? &batch->out[i] : NULL);
  sn_rollout_runner_feed_back(s->runner, batch->feedback ? &batch->feedback[i] : NULL);
  s->candidate = i;
  return true;
}

// The rollout of candidate i is at its end.
static void give_candidate(const SnBackendModel *x, const SnRolloutRunner *r, int i) {
  const SnBatch *batch = x->batch;
  const SnRollout *rollout = sn_rollout_runner_rollout(r);
  batch->cost[i] = sn_rollout_runner_cost(r, batch->term ? batch->term + (size_t)i * (size_t)x->cost->nterm : NULL);
  if (batch->warn) batch->warn[i] = rollout->warn;
  if (batch->steps) batch->steps[i] = rollout->t;
  if (batch->out && rollout->status == SN_ROLLOUT_DIVERGED)
    sn_trajectory_clear(x->m, &batch->out[i], rollout->t, batch->nstep);
  batch->done[i] = 1;
}

static void cpu_work(void *argument, int thread) {
  SnBackendModel *x = argument;
  CpuSlot *s = &x->slot[thread];
  for (;;) {
    if (s->candidate < 0) {
      if (x->clock->now(x->clock->context) >= x->until || !take_candidate(x, s)) return;
    }
    if (sn_rollout_runner_run(s->runner, x->clock, x->until) == SN_ROLLOUT_UNDER_WAY) return;
    give_candidate(x, s->runner, s->candidate);
    s->candidate = -1;
  }
}

// The caller has no candidate left and waits for the other threads: whoever asks it by the clock still does.
static void cpu_watch(void *argument) {
  const SnBackendModel *x = argument;
  x->clock->now(x->clock->context);
}

static void cpu_abandon(SnBackend *b, SnBackendModel *x) {
  (void)b;
  for (int i = 0; i < x->nslot; ++i) x->slot[i].candidate = -1;
  x->active = false;
  if (x->gradient) sn_gradient_abandon(x->gradient);
  if (x->multistart) sn_cpu_multistart_abandon(x->multistart);
}

static SnCode cpu_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  (void)b;
  if (count <= x->gradients) return SN_OK;
  SnGradientWork *more = sn_gradient_create(x->m, x->cost, x->max_step, count, SN_GRADIENT_KEEP, x->pool, err);
  if (!more) return SN_ERR_MEMORY;
  const SnCode code = x->choose ? sn_gradient_choose(more, &x->chosen, err) : SN_OK;
  if (code != SN_OK) {
    sn_gradient_free(more);
    return code;
  }
  sn_gradient_free(x->gradient);
  x->gradient = more;
  x->gradients = count;
  return SN_OK;
}

static bool cpu_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until) {
  (void)b;
  return sn_gradient_run(x->gradient, batch, clock, until);
}

static bool cpu_linearize(SnBackend *b, SnBackendModel *x, const SnLinearization *linearization, const SnClock *clock,
                          double until) {
  (void)b;
  return sn_gradient_linearize(x->gradient, linearization, clock, until);
}

static double cpu_bytes(const SnBackend *b, const SnModel *m, const SnCost *cost, const SnBackendRoom *room) {
  const int threads = sn_pool_size(((const CpuBackend *)b)->pool), steps = room->max_step;
  const double row = (double)sizeof(sn_real) * (steps + 2.0);
  const double slots = threads * ((double)sn_world_size(m) + row * (m->nu + 3));
  const double gradients =
      room->gradients > 0 ? sn_gradient_bytes(m, cost, steps, room->gradients, SN_GRADIENT_KEEP, threads) : 0;
  return slots + gradients + room->starts * (double)sn_cpu_multistart_bytes(m, cost, steps);
}

// About what the room for one start and its gradient takes.
static double start_bytes(const SnBackendModel *x) {
  const SnModel *m = x->m;
  const double row = m->nq + 3.0 * m->nv + m->na + 1 + sn_past_size(m);  // of a trajectory that is kept
  return (double)sn_cpu_multistart_bytes(m, x->cost, x->max_step) +
         (x->max_step + 1.0) * (row * sizeof(sn_real) + sizeof(int));
}

static SnCode cpu_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  const double bytes = starts * start_bytes(x), mib = 1 << 20;
  if (bytes > most_multistart_memory)
    return sn_fail(err, SN_ERR_LIMIT, "adam from %d starts over %d steps takes %.0f MiB, allowed on the CPU is %.0f",
                   starts, x->max_step, bytes / mib, most_multistart_memory / mib);
  if (!x->multistart) x->multistart = sn_cpu_multistart_create(x->m, x->cost, x->max_step, err);
  if (!x->multistart) return SN_ERR_MEMORY;
  const SnCode code = cpu_reserve_gradients(b, x, starts, err);
  return code == SN_OK ? sn_cpu_multistart_reserve(x->multistart, starts, err) : code;
}

static bool run_gradients(void *context, SnGradientBatch *batch, const SnClock *clock, double until) {
  const SnBackendModel *x = context;
  return sn_gradient_run(x->gradient, batch, clock, until);
}

static bool cpu_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  (void)b;
  return sn_cpu_multistart_run(x->multistart, job, run_gradients, x, clock, until);
}

static void cpu_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  (void)b;
  sn_cpu_multistart_end(x->multistart, job);
  sn_gradient_abandon(x->gradient);
}

static bool cpu_moments(SnBackend *b, SnBackendModel *x, SnMomentsView *moments) {
  (void)b;
  return x->multistart && sn_cpu_multistart_moments(x->multistart, moments);
}

static bool cpu_set_moments(SnBackend *b, SnBackendModel *x, const SnMomentsView *moments) {
  (void)b;
  return x->multistart && sn_cpu_multistart_set_moments(x->multistart, moments);
}

static bool cpu_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  if (!x->active) {
    cpu_abandon(b, x);
    for (int i = 0; i < x->nslot; ++i) sn_rollout_runner_use(x->slot[i].runner, x->m);  // others may be gone
    atomic_store(&x->next, 0);
    x->active = true;
  }
  x->batch = batch;
  x->clock = clock;
  x->until = until;
  sn_pool_run_watched(x->pool, cpu_work, until < (double)INFINITY ? cpu_watch : NULL, x);
  for (int i = 0; i < batch->count; ++i)
    if (!batch->done[i]) return false;
  x->active = false;
  return true;
}

// The CPU reads weights and targets where they are.
static void cpu_update(SnBackend *b, SnBackendModel *x) {
  (void)b;
  (void)x;
}

static void cpu_destroy(SnBackend *b) { free(b); }

SnBackend *sn_backend_cpu(SnPool *pool, SnError *err) {
  CpuBackend *cpu = calloc(1, sizeof *cpu);
  if (!cpu) {
    sn_fail(err, SN_ERR_MEMORY, "cpu backend: out of memory");
    return NULL;
  }
  cpu->pool = pool;
  cpu->table = (SnBackend){.name = "cpu",
                           .job_iterations = 1,
                           .batches = true,
                           .feedback = true,
                           .models = true,
                           .parameters = true,
                           .describe = cpu_describe,
                           .load = cpu_load,
                           .choose = cpu_choose,
                           .unload = cpu_unload,
                           .update = cpu_update,
                           .rollouts = cpu_rollouts,
                           .reserve_gradients = cpu_reserve_gradients,
                           .gradients = cpu_gradients,
                           .linearize = cpu_linearize,
                           .reserve_multistart = cpu_reserve_multistart,
                           .multistart = cpu_multistart,
                           .multistart_end = cpu_multistart_end,
                           .moments = cpu_moments,
                           .set_moments = cpu_set_moments,
                           .abandon = cpu_abandon,
                           .destroy = cpu_destroy,
                           .bytes = cpu_bytes};
  return &cpu->table;
}

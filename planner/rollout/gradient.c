// Gradients on the CPU: memory, and which thread does what next. What is done at a state stands in rollout_vjp.c.
//
// A thread takes the next item in their order and stays with it: runs it forward, then goes back through its states.
// Where there is no item left, or nothing to do at its own at the moment, it helps with those of others: goes back
// through states whose worlds are ready, makes the world of the next state where a slot is idle. Worlds are made in the
// order in which they are needed, each in one of few slots.
//
// Worlds that have been kept (world_store.c) are not made: who goes back reads them where they lie, state after state
// without a word to others. Memory for them is bounded. It serves one rollout at a time and goes to the next item when
// the one that has it is done; an item that gets none, or whose worlds do not fit, has them computed again from its
// states. The order of the work and the memory never touch a result: it depends on the item and the state alone.
#include "planner/rollout/gradient.h"

#include <math.h>

#include "physics/sensor/sensor.h"
#include "planner/rollout/chosen_step.h"
#include "planner/rollout/gradient_private.h"

// Fails where one of rows * n numbers is not finite; NULL is allowed.
static SnCode check_finite(const sn_number *x, const char *what, int n, int rows, SnError *err) {
  for (int t = 0; x && t < rows; ++t)
    for (int i = 0; i < n; ++i)
      if (!isfinite(x[(size_t)t * (size_t)n + (size_t)i]))
        return sn_fail(err, SN_ERR_ARGUMENT, "bar of %s[%d][%d]: not finite", what, t, i);
  return SN_OK;
}

static SnCode check_sensors(const SnModel *m, const sn_number *bar, int rows, SnError *err) {
  for (int i = 0; bar && i < m->nsensor; ++i)
    for (int k = 0; k < m->sensor_dim[i] * rows && !sn_sensor_differentiable(m, i); ++k) {
      const int t = k / m->sensor_dim[i], at = m->sensor_adr[i] + k % m->sensor_dim[i];
      if (bar[(size_t)t * (size_t)m->nsensordata + (size_t)at] != 0)
        return sn_fail(err, SN_ERR_UNSUPPORTED, "bar of sensordata[%d][%d]: sensor '%s' has no gradient", t, at,
                       sn_model_name(m, SN_NAME_SENSOR, i));
    }
  return SN_OK;
}

SnCode sn_trajectory_bar_check(const SnModel *m, const SnTrajectoryBar *bar, int nstep, SnError *err) {
  if (!isfinite(bar->cost)) return sn_fail(err, SN_ERR_ARGUMENT, "bar of cost: not finite");
  SnCode code = check_finite(bar->qpos, "qpos", m->nv, nstep + 1, err);
  if (code == SN_OK) code = check_finite(bar->qvel, "qvel", m->nv, nstep + 1, err);
  if (code == SN_OK) code = check_finite(bar->act, "act", m->na, nstep + 1, err);
  if (code == SN_OK) code = check_sensors(m, bar->sensordata, nstep + 1, err);
  if (code == SN_OK) code = check_finite(bar->sensordata, "sensordata", m->nsensordata, nstep + 1, err);
  if (code == SN_OK) code = check_finite(bar->past, "past", sn_past_size(m), nstep + 1, err);
  return code == SN_OK ? check_finite(bar->ctrl, "ctrl", m->nu, nstep, err) : code;
}

SnGradientSettings sn_default_gradient_settings(void) { return (SnGradientSettings){.method = SN_GRADIENT_SWEEP}; }

// Without a gradient: all of it is 0.
static void clear_outputs(const SnGradientWork *g, SnGradient *out) {
  const size_t nv = (size_t)g->m->nv, rows = (size_t)out->nstep;
  if (out->ctrl_bar) memset(out->ctrl_bar, 0, sizeof(sn_real) * rows * (size_t)g->m->nu);
  if (out->qpos_bar) memset(out->qpos_bar, 0, sizeof(sn_real) * nv);
  if (out->qvel_bar) memset(out->qvel_bar, 0, sizeof(sn_real) * nv);
  if (out->act_bar) memset(out->act_bar, 0, sizeof(sn_real) * (size_t)g->m->na);
  if (out->past_bar) memset(out->past_bar, 0, sizeof(sn_real) * (size_t)sn_past_size(g->m));
  if (out->target_bar) memset(out->target_bar, 0, sizeof(sn_real) * (rows + 1) * (size_t)g->cost->ntarget);
  out->norm = 0;
}

static void fail_item(const SnGradientWork *g, SnGradientProgress *x, SnGradientStatus status) {
  clear_outputs(g, x->out);
  x->out->status = status;
  x->phase = SN_PHASE_DONE;
}

// The rollout is done: its value, and whether there is a way back.
static void take_rollout(const SnGradientWork *g, SnGradientProgress *x, const SnRollout *rollout) {
  x->out->cost = sn_rollout_cost(g->cost, rollout, x->out->term);
  x->out->warn = rollout->warn;
  x->out->steps = rollout->t;
  if (rollout->status != SN_ROLLOUT_DONE) {
    fail_item(g, x, SN_GRADIENT_DIVERGED);
  } else if (g->forward) {
    x->out->status = SN_GRADIENT_ROLLED;
    x->phase = SN_PHASE_DONE;
  } else {
    x->phase = SN_PHASE_BACK;
  }
}

// Puts the inputs of the item into its rollout. It goes on from what was kept, or begins anew.
static void begin_rollout(const SnGradientWork *g, SnGradientProgress *x, bool kept) {
  const SnGradient *out = x->out;
  const SnRollout last = x->rollout;
  SnTrajectory states = x->states;
  if (out->out) {
    states.cost = out->out->cost;
    states.sensordata = out->out->sensordata;
    states.qacc_warmstart = out->out->qacc_warmstart;
  }
  x->rollout = sn_rollout_make(g->cost, &out->state, out->ctrl, out->target, out->nstep, out->max_velocity, &states);
  x->rollout.sum = x->sum;
  x->rollout.saved = x->saved;
  if (!kept) return;
  x->rollout.total = last.total;
  x->rollout.t = last.t;
  x->rollout.status = last.status;
  x->rollout.warn = last.warn;
  x->rollout.chosen = last.chosen;
}

// The rollout that is made here has come to its end: its states where the caller wants them.
static void give_states(const SnGradientWork *g, const SnGradientProgress *x) {
  const SnTrajectory *out = x->out->out;
  const int nstep = x->rollout.nstep;
  if (!out) return;
  sn_trajectory_copy(g->m, out, &x->states, nstep + 1);
  if (x->rollout.status == SN_ROLLOUT_DIVERGED) sn_trajectory_clear(g->m, out, x->rollout.t, nstep);
}

static SnRolloutBar rollout_bar(const SnTrajectoryBar *bar) {
  if (!bar) return (SnRolloutBar){.on = 0};
  return (SnRolloutBar){.on = 1,
                        .cost = (sn_real)bar->cost,
                        .qpos = bar->qpos,
                        .qvel = bar->qvel,
                        .act = bar->act,
                        .sensordata = bar->sensordata,
                        .ctrl = bar->ctrl,
                        .past = bar->past};
}

static void release_store(SnGradientProgress *x) {
  x->store->item = NULL;
  x->store = NULL;
}

// Begins an item of the batch.
static void begin_item(SnGradientWork *g, SnGradientProgress *x, SnGradient *out) {
  const bool again = out->status == SN_GRADIENT_ROLLED && !g->forward;
  const bool kept = again && x->rollout.status != SN_ROLLOUT_UNDER_WAY && x->rollout.nstep == out->nstep;
  x->out = out;
  x->m = out->model ? out->model : g->m;
  x->seen = sn_chosen_model(sn_rollout_runner_chosen(g->thread[0].runner), x->m);
  x->busy = false;
  x->phase = again || out->status == SN_GRADIENT_PENDING ? SN_PHASE_FORWARD : SN_PHASE_DONE;
  if (x->phase == SN_PHASE_DONE) return;
  x->make = x->sweep = out->nstep;
  for (int t = 0; t <= out->nstep; ++t) x->slot[t] = -1;
  if (x->store && (!kept || out->rolled)) release_store(x);
  if (!out->rolled) begin_rollout(g, x, kept);
  x->vjp.rollout = out->rolled ? out->rolled : &x->rollout;
  x->vjp.cfd = sn_cfd(&g->settings.cfd);
  x->vjp.cfd_start = g->settings.cfd.on && out->continues && x->cfd_steps == out->nstep;
  x->vjp.bar = rollout_bar(out->bar);
  x->vjp.ctrl_bar = out->ctrl_bar;
  x->vjp.target_bar = out->target_bar;
  if (!g->forward) x->cfd_steps = 0;
  sn_rollout_vjp_begin(g->m, g->cost, &g->thread[0].lane, &x->vjp);
  if (out->rolled || kept) take_rollout(g, x, x->vjp.rollout);
}

// All states have been gone through: the derivative with respect to the first one goes to the outputs.
static void finish_item(SnGradientWork *g, int thread, SnGradientProgress *x) {
  const SnModel *m = g->m;
  const size_t nv = (size_t)m->nv, na = (size_t)m->na;
  const sn_real *bar = x->vjp.state_bar;
  SnGradient *out = x->out;
  if (out->qpos_bar) memcpy(out->qpos_bar, bar, sizeof(sn_real) * nv);
  if (out->qvel_bar) memcpy(out->qvel_bar, bar + nv, sizeof(sn_real) * nv);
  if (out->act_bar) memcpy(out->act_bar, bar + 2 * nv, sizeof(sn_real) * na);
  if (out->past_bar) memcpy(out->past_bar, bar + 2 * nv + na, sizeof(sn_real) * (size_t)sn_past_size(m));
  out->norm = (double)sn_norm(&g->thread[thread].lane, x->vjp.ctrl_bar, out->nstep * m->nu);
  out->status = SN_GRADIENT_DONE;
  if (g->settings.cfd.on) x->cfd_steps = out->nstep;
  x->phase = SN_PHASE_DONE;
}

// JOB_SWEEP goes back through states whose worlds are kept, JOB_BACK through one whose world JOB_MAKE has made.
typedef enum JobKind { JOB_NONE, JOB_WAIT, JOB_FORWARD, JOB_MAKE, JOB_SWEEP, JOB_BACK } JobKind;
typedef struct Job {
  JobKind kind;
  SnGradientProgress *item;
  int t, slot;
  int end;      // JOB_SWEEP: the last state that was gone back through
  bool finite;  // whether the derivative still is
} Job;

// The item that a thread stays with, under lock; NULL: there is none left.
static SnGradientProgress *own_item(SnGradientWork *g, int thread) {
  SnGradientProgress *x = g->thread[thread].item;
  while ((!x || x->phase == SN_PHASE_DONE) && g->next < g->count) x = &g->item[g->next++];
  if (x && x->phase == SN_PHASE_DONE) x = NULL;
  g->thread[thread].item = x;
  return x;
}

// Whether contacts of the worlds that an item goes back through are made anew.
static bool from_distance(const SnGradientProgress *x) { return x->vjp.cfd.on || x->vjp.rollout->cfd.on; }

// Kept worlds for the rollout that an item begins, under lock: those that nobody has, or that nobody asks for any more.
static void take_store(SnGradientWork *g, SnGradientProgress *x) {
  for (int i = 0; i < g->nstore && !x->store; ++i) {
    SnGradientProgress *owner = g->store[i].item;
    const bool done = owner && owner->phase == SN_PHASE_DONE && !g->forward;
    if (owner && owner < g->item + g->count && !done) continue;
    if (owner) owner->store = NULL;
    g->store[i].item = x;
    x->store = &g->store[i];
  }
  if (x->store) sn_world_store_clear(x->store->worlds, from_distance(x));
}

// Whether the sweep goes through state t of an item without making its world.
static bool is_kept(const SnGradientWork *g, const SnGradientProgress *x, int t) {
  return x->store && g->settings.method == SN_GRADIENT_SWEEP && !from_distance(x) &&
         sn_world_store_whole(x->store->worlds, t);
}

// What there is to do on the way back, under lock. JOB_WAIT: nothing now.
static Job back_job(SnGradientWork *g, SnGradientProgress *x) {
  if (!x->busy && x->slot[x->sweep] >= 0) {
    x->busy = true;
    return (Job){JOB_BACK, x, x->sweep, x->slot[x->sweep], 0, true};
  }
  if (g->nidle == 0) return (Job){.kind = JOB_WAIT};
  if (!x->busy && x->make == x->sweep && is_kept(g, x, x->sweep)) {
    x->busy = true;
    return (Job){JOB_SWEEP, x, x->sweep, g->idle[--g->nidle], 0, true};
  }
  if (x->make < 0 || is_kept(g, x, x->make)) return (Job){.kind = JOB_WAIT};
  return (Job){JOB_MAKE, x, x->make--, g->idle[--g->nidle], 0, true};
}

// What there is to do at an item, under lock. JOB_WAIT: nothing now.
static Job item_job(SnGradientWork *g, SnGradientProgress *x, bool own) {
  if (x->phase == SN_PHASE_BACK) return back_job(g, x);
  if (x->phase == SN_PHASE_FORWARD && own && !x->busy) {
    if (x->rollout.t == 0) take_store(g, x);
    x->busy = true;
    return (Job){JOB_FORWARD, x, 0, -1, 0, true};
  }
  return (Job){.kind = JOB_WAIT};
}

// The next job, under lock. JOB_WAIT: others must end theirs first. JOB_NONE: there will be none.
static Job take_job(SnGradientWork *g, int thread) {
  SnGradientProgress *own = own_item(g, thread);
  Job job = own ? item_job(g, own, true) : (Job){.kind = JOB_NONE};
  for (int i = 0; i < g->nthread && job.kind <= JOB_WAIT; ++i) {
    SnGradientProgress *x = g->thread[i].item;
    if (x && x != own && x->phase != SN_PHASE_DONE) job = item_job(g, x, false);
  }
  return job;
}

// Makes a world one of a model, whose layout is that of the model of before.
static void use_model(SnGradientSlot *slot, const SnModel *m, SnLane *lane) {
  if (slot->m == m) return;
  slot->m = m;
  sn_world_begin(m, &slot->own, lane);
}

// The world of a state, and by products all that can be done there ahead.
static void make_state(SnGradientWork *g, SnGradientThread *thread, const Job *job) {
  SnGradientSlot *slot = &g->slot[job->slot];
  const SnModel *m = job->item->seen;
  const SnRolloutVjp *vjp = &job->item->vjp;
  const SnGradientStore *store = job->item->store;
  use_model(slot, m, &thread->lane);
  if (!store || !sn_world_store_view(store->worlds, m, &thread->lane, vjp, job->t, &slot->own, &slot->world)) {
    slot->world = slot->own;
    sn_rollout_vjp_recompute(m, &thread->lane, vjp, job->t, &slot->world);
  }
  if (g->settings.method != SN_GRADIENT_PRODUCTS) return;
  const SnRolloutVjpScratch at = {&slot->world, &thread->adjoint, thread->res};
  sn_rollout_vjp_jacobian(m, g->cost, &thread->lane, vjp, job->t, at, &slot->state);
}

static bool go_back(SnGradientWork *g, SnGradientThread *thread, const SnGradientProgress *x, SnGradientSlot *slot,
                    int t) {
  if (g->settings.method == SN_GRADIENT_PRODUCTS)
    return sn_rollout_vjp_product(slot->m, g->cost, &thread->lane, &x->vjp, t, &slot->state);
  if (x->vjp.rollout->chosen && t < x->vjp.rollout->nstep) {
    SnHorizon *chosen = sn_rollout_runner_chosen(thread->runner);
    const void *kept = x->store ? sn_world_store_run(x->store->worlds, t) : NULL;
    if (!sn_chosen_step_vjp(chosen, &x->vjp, t, kept, &slot->state)) return false;
  }
  thread->adjoint.host->model = x->out->model_bar;
  const SnRolloutVjpScratch at = {&slot->world, &thread->adjoint, thread->res};
  const bool finite = sn_rollout_vjp_sweep(slot->m, g->cost, &thread->lane, &x->vjp, t, at, &slot->state);
  thread->adjoint.host->model = NULL;
  return finite;
}

static bool is_late(const SnGradientWork *g) {
  return g->until < INFINITY && g->clock->now(g->clock->context) >= g->until;
}

// Goes back as far as worlds are kept, numbers finite and the clock allows it; through the first state in any case.
static void sweep_kept(SnGradientWork *g, SnGradientThread *thread, Job *job) {
  SnGradientProgress *x = job->item;
  SnGradientSlot *slot = &g->slot[job->slot];
  use_model(slot, x->seen, &thread->lane);
  for (int t = job->t; t >= 0 && job->finite && is_kept(g, x, t); --t) {
    if (t < job->t && is_late(g)) break;
    sn_world_store_view(x->store->worlds, x->seen, &thread->lane, &x->vjp, t, &slot->own, &slot->world);
    job->finite = go_back(g, thread, x, slot, t);
    job->end = t;
  }
}

static void do_job(SnGradientWork *g, int thread, Job *job) {
  SnGradientThread *self = &g->thread[thread];
  SnGradientProgress *x = job->item;
  switch (job->kind) {
    case JOB_FORWARD:
      sn_rollout_runner_use(self->runner, x->m);
      if (sn_rollout_runner_advance(self->runner, &x->rollout, x->store ? x->store->worlds : NULL, g->clock,
                                    g->until) != SN_ROLLOUT_UNDER_WAY)
        give_states(g, x);
      return;
    case JOB_MAKE:
      make_state(g, self, job);
      return;
    case JOB_SWEEP:
      sweep_kept(g, self, job);
      return;
    default:
      job->finite = go_back(g, self, x, &g->slot[job->slot], job->t);
      job->end = job->t;
  }
}

static void end_forward(SnGradientWork *g, SnGradientProgress *x) {
  x->busy = false;
  if (x->rollout.status != SN_ROLLOUT_UNDER_WAY) take_rollout(g, x, &x->rollout);
}

static void end_back(SnGradientWork *g, int thread, const Job *job) {
  SnGradientProgress *x = job->item;
  x->busy = false;
  x->slot[job->t] = -1;
  g->idle[g->nidle++] = job->slot;
  x->sweep = job->end - 1;
  if (x->make > x->sweep) x->make = x->sweep;
  if (job->finite && x->sweep < 0) finish_item(g, thread, x);
  if (job->finite) return;
  fail_item(g, x, SN_GRADIENT_UNBOUNDED);
  for (int t = 0; t < job->end; ++t)
    if (x->slot[t] >= 0) g->idle[g->nidle++] = x->slot[t];
}

// Books the end of a job, under lock.
static void end_job(SnGradientWork *g, int thread, const Job *job) {
  switch (job->kind) {
    case JOB_FORWARD:
      end_forward(g, job->item);
      return;
    case JOB_MAKE:
      if (job->item->phase == SN_PHASE_BACK)
        job->item->slot[job->t] = job->slot;
      else
        g->idle[g->nidle++] = job->slot;  // the item has failed meanwhile
      return;
    default:
      end_back(g, thread, job);
      return;
  }
}

// A thread that is alone needs no lock.
static void lock(SnGradientWork *g) {
  if (!g->alone) pthread_mutex_lock(&g->lock);
}

static void unlock(SnGradientWork *g) {
  if (!g->alone) pthread_mutex_unlock(&g->lock);
}

static void tell_others(SnGradientWork *g) {
  if (!g->alone) pthread_cond_broadcast(&g->changed);
}

// Looks whether the clock has reached the end, under lock, but for the reading itself: that may take its time.
static void read_clock(SnGradientWork *g) {
  if (g->stop || !(g->until < INFINITY)) return;
  unlock(g);
  const bool late = g->clock->now(g->clock->context) >= g->until;
  lock(g);
  g->stop = g->stop || late;
}

// Waits for others to end a job, under lock; where there is an end not for long, so that the clock is read meanwhile.
static void wait_for_others(SnGradientWork *g) {
  if (g->until < INFINITY)
    sn_pool_wait_patiently(&g->changed, &g->lock);
  else
    pthread_cond_wait(&g->changed, &g->lock);
}

// Does the next job of a thread, or waits for one, under lock. False: there will be none, or the clock has reached the
// end.
static bool work_once(SnGradientWork *g, int thread) {
  read_clock(g);
  if (g->stop) return false;
  Job job = take_job(g, thread);
  if (job.kind == JOB_NONE) return false;
  if (job.kind == JOB_WAIT) {
    wait_for_others(g);
    return true;
  }
  unlock(g);
  do_job(g, thread, &job);
  lock(g);
  end_job(g, thread, &job);
  tell_others(g);
  return true;
}

static void gradient_work(void *argument, int thread) {
  SnGradientWork *g = argument;
  lock(g);
  while (work_once(g, thread)) continue;
  tell_others(g);
  unlock(g);
}

// Whether one thread has all the work that there is now: a rollout is one's, and so is the way back where all of its
// worlds are kept.
static bool wants_one(const SnGradientWork *g) {
  const SnGradientProgress *x = g->item;
  if (g->count != 1 || x->phase == SN_PHASE_DONE) return false;
  if (x->phase == SN_PHASE_FORWARD) return true;
  for (int t = x->sweep; t >= 0; --t)
    if (!is_kept(g, x, t)) return false;
  return true;
}

// The caller works alone as long as nobody could help: waking the others takes longer than a step.
static void work_alone(SnGradientWork *g) {
  g->alone = true;
  while (wants_one(g) && work_once(g, 0)) continue;
  g->alone = g->nthread == 1;
}

void sn_gradient_abandon(SnGradientWork *g) {
  g->active = false;
  g->linearization = NULL;
}

// Models of the batch before may be gone.
static void forget_models(SnGradientWork *g) {
  for (int i = 0; i < g->nthread; ++i) sn_rollout_runner_use(g->thread[i].runner, g->m);
  for (int i = 0; i < g->nslot; ++i) use_model(&g->slot[i], g->m, &g->thread[0].lane);
}

bool sn_gradient_run(SnGradientWork *g, SnGradientBatch *batch, const SnClock *clock, double until) {
  if (!g->active) {
    g->settings = batch->settings;
    g->count = batch->count;
    g->forward = batch->forward;
    g->linearization = NULL;
    g->nidle = g->nslot;
    g->next = 0;
    for (int i = 0; i < g->nthread; ++i) g->thread[i].item = NULL;
    for (int i = 0; i < g->nslot; ++i) g->idle[i] = i;
    forget_models(g);
    g->begun = 0;
    g->active = true;
  }
  g->clock = clock;
  g->until = until;
  g->stop = false;
  while (g->begun < batch->count) {
    begin_item(g, &g->item[g->begun], &batch->item[g->begun]);
    if (++g->begun < batch->count && is_late(g)) return false;
  }
  work_alone(g);
  if (g->stop) return false;
  if (batch->count != 1 || g->item[0].phase != SN_PHASE_DONE) sn_pool_run(g->pool, gradient_work, g);
  for (int i = 0; i < batch->count; ++i)
    if (g->item[i].phase != SN_PHASE_DONE) return false;
  g->active = false;
  return true;
}

// ---- Jacobians ----

// Notes that a derivative of rollout i left the range of numbers.
static void note_unbounded(SnGradientWork *g, int i) {
  lock(g);
  if (g->linearization->status[i] == SN_GRADIENT_DONE) g->linearization->status[i] = SN_GRADIENT_UNBOUNDED;
  unlock(g);
}

// Step after step of all rollouts, whichever is next. Worlds belong to threads here.
static void linearize_work(void *argument, int thread) {
  SnGradientWork *g = argument;
  const SnLinearization *x = g->linearization;
  SnGradientThread *self = &g->thread[thread];
  SnGradientSlot *slot = &g->slot[thread];
  const SnParameterRows *by = x->by ? &x->by[thread] : NULL;
  const SnLinearizeScratch at = {&slot->own, &self->adjoint, slot->state.A, slot->state.B, self->bar, self->expand, by};
  const size_t states = (size_t)sn_linearize_states(x), all = states * (size_t)x->count;
  for (;;) {
    if (g->until < INFINITY && g->clock->now(g->clock->context) >= g->until) return;
    const size_t k = atomic_fetch_add(&g->step, 1);
    if (k >= all) return;
    const int i = (int)(k / states), t = (int)(k % states);
    const SnGradientProgress *item = &g->item[i];
    const SnRolloutVjp b = {.rollout = item->vjp.rollout,
                            .cfd = sn_cfd(&x->cfd),
                            .cfd_qacc = item->vjp.cfd_qacc,
                            .running = item->vjp.running,
                            .terminal = item->vjp.terminal};
    use_model(slot, item->m, &self->lane);
    if (!sn_linearize_step(item->m, g->cost, &self->lane, &b, x, i, t, at)) note_unbounded(g, i);
  }
}

// The caller has no step left and waits for the other threads: he may have something to say by his clock.
static void watch_clock(void *argument) {
  const SnGradientWork *g = argument;
  g->clock->now(g->clock->context);
}

bool sn_gradient_linearize(SnGradientWork *g, const SnLinearization *x, const SnClock *clock, double until) {
  if (g->linearization != x) {
    atomic_store(&g->step, 0);
    forget_models(g);
    for (int i = 0; i < x->count; ++i) {
      g->item[i].cfd_steps = 0;
      x->status[i] = g->item[i].vjp.rollout->status == SN_ROLLOUT_DONE ? SN_GRADIENT_DONE : SN_GRADIENT_DIVERGED;
    }
  }
  g->linearization = x;
  g->clock = clock;
  g->until = until;
  sn_pool_run_watched(g->pool, linearize_work, until < INFINITY ? watch_clock : NULL, g);
  if (atomic_load(&g->step) < (size_t)sn_linearize_states(x) * (size_t)x->count) return false;
  g->linearization = NULL;
  sn_linearize_end(g->m, x);
  return true;
}

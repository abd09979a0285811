// Iterations of multistarts. The jobs of all sessions of a model that are under way, or were submitted, are packed into
// one launch: the items of all their starts. What differs between them and may change, states, targets, weights, rule,
// CFD, is data in one staging buffer, sent when jobs come or go. An iteration is the launches of gradient_launches.c,
// then one copy of results. Between two iterations of a job the device needs nothing from the host: it counts them
// itself (kernel SELECT), and a multistart that has done all of its own stands still while others go on.
//
// Without a deadline all iterations of a job are put into the stream, then waited for. With one, each is waited for,
// and the next begun when the time that the last one took a state says that it ends in time. Jobs of other models go on
// in their own streams meanwhile, an iteration of theirs for each of ours.
#include <math.h>

#include "cuda/host/gradient_memory_private.h"

// ---- packing ----

static bool goes_on(const SnBackendModel *x) {
  const SnMultistarts *r = x->multistarts;
  return r && r->job && r->so_far.done < r->job->iterations;
}

// The launch of all jobs that go on, without its plan.
static SnGradientLaunches launches_of(const SnDeviceModel *d) {
  SnGradientLaunches p = {0};
  for (SnBackendModel *x = d->session; x; x = x->next) {
    if (x->multistarts) x->multistarts->place = -1;
    if (!goes_on(x)) continue;
    const SnMultistartJob *job = x->multistarts->job;
    x->multistarts->place = p.nmultistart++;
    x->multistarts->first = p.ngradient;
    p.ngradient += job->count;
    p.states = sn_maxi(p.states, job->nstep + 1);
    if (job->settings.method == SN_GRADIENT_SWEEP)
      p.sweep = 1;
    else
      p.products = 1;
  }
  return p;
}

// What the items of a job share, and the job's part of its multistart; both put their arrays into the staging buffer.
static SnGradientItem put_start(const SnBackendModel *session, SnStaging *staging, const SnMultistartJob *job) {
  const SnDeviceModel *d = session->model;
  SnGradientItem x = sn_gradient_item_put(d, staging, &job->state, job->target, job->nstep);
  sn_staging_weights(staging, session, &x.rollout);
  x.rollout.max_velocity = (sn_real)job->max_velocity;
  x.vjp.cfd = sn_staging_cfd(staging, d, &job->settings.cfd);
  x.method = job->settings.method;
  x.continues = 1;
  return x;
}

static SnMultistart put_asked(const SnDeviceModel *d, SnStaging *staging, const SnMultistartJob *job) {
  SnMultistart asked = {.grid = job->grid,
                        .rule = sn_adam_rule(&job->rule),
                        .noise = sn_noise(&job->noise),
                        .initial_ctrl = sn_staging_reals(staging, job->initial_ctrl, (size_t)d->m.nu),
                        .keep = job->keep,
                        .left = job->left,
                        .time = sn_state_grid(&job->state),
                        .starts = job->starts,
                        .nlisted = job->nlisted};
  for (int i = 0; i < job->nlisted; ++i) asked.listed[i] = job->listed[i];
  return asked;
}

// The inputs of a job: its items from `r->first` on (gradient NULL: it only counts), and what is asked of it.
static void put_job(const SnBackendModel *session, SnStaging *staging, const SnGradientLaunches *p, SnMultistarts *r,
                    const SnMultistartJob *job, SnGradientItem *gradient) {
  const SnDeviceModel *d = session->model;
  SnGradientItem x = put_start(session, staging, job);
  x.multistart = r->place;
  x.init = job->init && r->so_far.done == 0;
  for (int i = 0; i < job->count; ++i) {
    const int k = r->first + i;
    sn_gradient_item_use(&x, &r->item[i]);
    x.rollout.ctrl = r->view[i].ctrl;
    x.vjp.ctrl_bar = r->view[i].ctrl_bar;
    x.state = sn_gradient_launches_states(d, p, k, &r->item[i], job->settings.method, staging);
    x.index = i;
    x.start = r->start + i;
    if (gradient) gradient[k] = x;
  }
  r->asked = put_asked(d, staging, job);
}

// The results of a job, as they are so far: they go in, too.
static void put_results(const SnDeviceModel *d, SnStaging *staging, SnMultistarts *r, const SnMultistartJob *job) {
  const size_t rows = (size_t)job->nstep * (size_t)d->m.nu;
  const SnMultistartJob *s = &r->so_far;
  SnMultistart *x = &r->asked;
  x->nominal = sn_staging_reals(staging, s->ctrl, rows);
  x->best_term = sn_staging_reals(staging, s->best_term, (size_t)d->cost.nterm);
  x->next = job->next ? sn_staging_reals(staging, s->ctrl, rows) : NULL;
  x->measured = s->measured;
  x->cost_before = (sn_real)s->cost_before;
  x->best_cost = (sn_real)s->best_cost;
  x->gradient_norm = (sn_real)s->gradient_norm;
  x->best_start = s->best_start;
}

static SnMultistartTurn turn_of(const SnMultistarts *r, SnMultistart *there) {
  return (SnMultistartTurn){.data = there + r->place,
                            .first = r->first,
                            .count = r->job->count,
                            .active = 1,
                            .todo = r->job->iterations - r->so_far.done,
                            .warn = r->so_far.warn};
}

// Puts all jobs that go on into the staging buffer and sends it. False: there are none.
static bool pack(SnDeviceModel *d) {
  SnMultistartIterations *it = &d->iterations;
  SnStaging *staging = &it->staging;
  SnMultistart *there = NULL;
  SnGradientLaunches p = launches_of(d);
  if (p.nmultistart == 0) return false;
  sn_gradient_launches_plan(d, &p);
  sn_staging_begin(staging);
  SnGradientItem *gradient = sn_staging_put(staging, (size_t)p.ngradient * sizeof *gradient, (void *)&p.gradient);
  for (SnBackendModel *x = d->session; x; x = x->next)
    if (goes_on(x)) put_job(x, staging, &p, x->multistarts, x->multistarts->job, gradient);
  sn_staging_results(staging);
  SnMultistartTurn *turn = sn_staging_put(staging, (size_t)p.nmultistart * sizeof *turn, (void *)&p.multistart);
  SnMultistart *multistart = sn_staging_put(staging, (size_t)p.nmultistart * sizeof *multistart, (void *)&there);
  for (SnBackendModel *x = d->session; x; x = x->next) {
    SnMultistarts *r = x->multistarts;
    if (!goes_on(x)) continue;
    put_results(d, staging, r, r->job);
    multistart[r->place] = r->asked;
    turn[r->place] = turn_of(r, there);
  }
  it->launches = p;
  it->multistart = multistart;
  it->turn = turn;
  it->packed = it->sent = true;
  sn_staging_send(d, staging, true);
  return true;
}

// Returns the staging size of a job that uses every optional input. Reads no data.
size_t sn_multistart_iterations_staging(SnBackendModel *x, SnMultistarts *r, int longest) {
  static double some[1];
  const SnMultistartJob job = {.state = sn_full_state,
                               .target = some,
                               .nstep = x->max_step,
                               .settings = {.method = SN_GRADIENT_PRODUCTS, .cfd = *sn_full_state.cfd},
                               .initial_ctrl = some,
                               .starts = r->starts,
                               .count = r->starts,
                               .next = some};
  const SnGradientLaunches p = {.ngradient = r->starts, .states = longest + 1, .product_items = r->starts};
  SnStaging staging = {0};
  sn_staging_put(&staging, (size_t)r->starts * sizeof(SnGradientItem), NULL);
  put_job(x, &staging, &p, r, &job, NULL);
  sn_staging_results(&staging);
  sn_staging_put(&staging, sizeof(SnMultistartTurn), NULL);
  sn_staging_put(&staging, sizeof(SnMultistart), NULL);
  put_results(x->model, &staging, r, &job);
  return staging.used;
}

// ---- running ----

// The time of a state in an iteration of what is packed: one number for each set of methods.
static double *state_seconds(SnMultistartIterations *it) {
  return &it->state_seconds[(it->launches.sweep ? 1 : 0) + (it->launches.products ? 2 : 0)];
}

// What an iteration of what is packed is expected to take, however many items it has; 0: not known.
static double expected(SnMultistartIterations *it) { return *state_seconds(it) * it->launches.states; }

// What came back of a job.
static void take_job(const SnMultistartIterations *it, const SnDeviceModel *d, SnMultistarts *r) {
  const SnMultistartTurn *turn = &it->turn[r->place];
  const SnMultistart *x = &it->multistart[r->place];
  const size_t rows = (size_t)r->job->nstep * (size_t)d->m.nu;
  SnMultistartJob *s = &r->so_far;
  const int done = r->job->iterations - turn->todo;
  if (done <= s->done) return;
  s->done = done;
  s->warn = turn->warn;
  s->measured = x->measured;
  s->cost_before = (double)x->cost_before;
  s->best_cost = (double)x->best_cost;
  s->gradient_norm = (double)x->gradient_norm;
  s->best_start = x->best_start;
  sn_staging_take(&it->staging, s->ctrl, x->nominal, rows);
  sn_staging_take(&it->staging, x->next ? s->next : NULL, x->next, rows);
  sn_staging_take(&it->staging, s->best_term, x->best_term, (size_t)d->cost.nterm);
}

// Waits for what runs; its results are in the jobs then, but where the device was lost.
static void settle(SnDeviceModel *d) {
  SnDevice *device = d->host->device;
  SnMultistartIterations *it = &d->iterations;
  const bool results = it->flying > 0;
  if (!results && !it->sent) return;
  device->wait(device, d->stream);
  it->flying = 0;
  it->sent = false;
  if (device->lost || !results) return;
  for (SnBackendModel *x = d->session; x; x = x->next)
    if (x->multistarts && x->multistarts->job && x->multistarts->place >= 0) take_job(it, d, x->multistarts);
}

void sn_multistart_iterations_change(SnDeviceModel *d) {
  settle(d);
  d->iterations.packed = d->iterations.stale = false;
}

// Whether there is something to be done, packed and sent.
static bool ready(SnDeviceModel *d) {
  SnMultistartIterations *it = &d->iterations;
  if (it->stale) sn_multistart_iterations_change(d);
  return it->packed || pack(d);
}

// Puts one iteration into the stream. False: there is none to be done, or the device is lost.
static bool begin(SnDeviceModel *d) {
  SnMultistartIterations *it = &d->iterations;
  if (!ready(d)) return false;
  for (int i = 0; i < sn_gradient_launches_count(&it->launches); ++i) sn_gradient_launches_put(d, &it->launches, i);
  sn_staging_fetch(d, &it->staging);
  ++it->flying;
  return !d->host->device->lost;
}

static bool any_goes_on(const SnDeviceModel *d) {
  for (const SnBackendModel *x = d->session; x; x = x->next)
    if (goes_on(x)) return true;
  return false;
}

// Whether what ends at `end` is in time for every plan that an iteration of the model works on.
static bool in_time(const SnDeviceModel *d, double end) {
  for (const SnBackendModel *x = d->session; x; x = x->next)
    if (goes_on(x) && x->multistarts->job->deadline < end) return false;
  return true;
}

// One iteration for every other model that has ended its last one and has more to do, where it is expected to end in
// time: nobody stops it then.
static void begin_others(const SnDeviceModel *d, const SnClock *clock) {
  SnDevice *device = d->host->device;
  for (SnDeviceModel *o = d->host->models; o; o = o->next) {
    if (o == d) continue;
    if (o->iterations.flying > 0 && !device->idle(device, o->stream)) continue;
    settle(o);
    if (!any_goes_on(o) || !ready(o)) continue;
    if (in_time(o, clock->now(clock->context) + expected(&o->iterations))) begin(o);
  }
}

// All that is left of the job: it has no deadline.
static bool run_all(SnBackendModel *x, const SnClock *clock) {
  SnDeviceModel *d = x->model;
  const SnMultistarts *r = x->multistarts;
  for (int left = r->job->iterations - r->so_far.done; left > 0; --left) {
    begin_others(d, clock);
    if (!begin(d)) return false;
  }
  settle(d);
  return !d->host->device->lost && !goes_on(x);
}

// One iteration, if it is expected to end before `until`.
static bool run_one(SnBackendModel *x, const SnClock *clock, double until) {
  SnDeviceModel *d = x->model;
  SnMultistartIterations *it = &d->iterations;
  if (!ready(d)) return false;
  const double now = clock->now(clock->context);
  if (!(now < until && now + expected(it) <= until)) {
    // Where not even the first of a plan fits, the expectation shrinks: one long outlier does not stop all plans after.
    if (x->multistarts->job->init && x->multistarts->so_far.done == 0 && now < until) *state_seconds(it) *= 0.9;
    return false;
  }
  begin_others(d, clock);
  const double from = clock->now(clock->context);
  if (!begin(d)) return false;
  settle(d);
  *state_seconds(it) = (clock->now(clock->context) - from) / it->launches.states;
  return !d->host->device->lost;
}

bool sn_multistart_iterations_run(SnBackendModel *x, const SnClock *clock, double until) {
  const SnMultistartJob *job = x->multistarts->job;
  const double never = (double)INFINITY;
  settle(x->model);
  if (!(until < never) && !(job->deadline < never)) return run_all(x, clock);
  for (bool first = true; goes_on(x); first = false)
    if (!run_one(x, clock, first ? job->deadline : until)) return false;
  return true;
}

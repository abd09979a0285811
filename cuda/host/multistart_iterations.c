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
#include <stdlib.h>

#include "cuda/host/gradient_memory_private.h"

struct SnMultistartIterations {
  bool packed, stale;  // stale: a job came since
  bool sent;           // the staging buffer may still be on its way
  int flying;          // iterations that were begun and not taken yet
  SnGradientLaunches launches;
  const SnMultistartTurn *turn;  // results of what is packed, on the host
  const SnMultistart *multistart;
  double state_seconds[4];  // time of a state in the latest iteration, by the methods that it had; 0: not known
};

bool sn_multistart_iterations_create(SnDeviceModel *d) {
  if (!d->gradients->iterations) d->gradients->iterations = calloc(1, sizeof(SnMultistartIterations));
  return d->gradients->iterations != NULL;
}

void sn_multistart_iterations_free(SnDeviceModel *d) {
  sn_multistart_iterations_change(d);
  free(d->gradients->iterations);
  d->gradients->iterations = NULL;
}

// ---- packing ----

static bool goes_on(const SnBackendModel *x) {
  const SnMultistarts *r = x->multistarts;
  return r && r->job && r->done < r->job->iterations;
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
  const SnWeights weights = sn_session_weights(session);
  const size_t nterm = (size_t)d->cost.nterm;
  SnGradientItem x = sn_gradient_item_make(job->settings.method, job->nstep);
  sn_staging_state(staging, d, &job->state, &x.rollout);
  x.rollout.target = sn_staging_reals(staging, job->target, ((size_t)job->nstep + 1) * (size_t)d->cost.ntarget);
  x.rollout.running = sn_staging_reals(staging, weights.running, nterm);
  x.rollout.terminal = sn_staging_reals(staging, weights.terminal, nterm);
  x.rollout.max_velocity = (sn_real)job->max_velocity;
  x.vjp.cfd = sn_staging_cfd(staging, d, &job->settings.cfd);
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
  x.init = job->init && r->done == 0;
  for (int i = 0; i < job->count; ++i) {
    const int k = r->first + i;
    sn_gradient_item_use(&x, &r->memory[i]);
    x.rollout.ctrl = r->view[i].ctrl;
    x.vjp.ctrl_bar = r->view[i].ctrl_bar;
    x.state = sn_gradient_launches_states(d, p, k, &r->memory[i], job->settings.method, staging);
    x.index = i;
    x.start = r->start + i;
    if (gradient) gradient[k] = x;
  }
  r->asked = put_asked(d, staging, job);
  r->packed_done = r->done;
}

static sn_real *put_reals(SnStaging *staging, const double *from, size_t n, sn_real **there) {
  sn_real *at = sn_staging_put(staging, n * sizeof *at, (void *)there);
  for (size_t i = 0; at && i < n; ++i) at[i] = (sn_real)from[i];
  return at;
}

// The results of a job, as they are so far: they go in, too.
static void put_results(const SnDeviceModel *d, SnStaging *staging, SnMultistarts *r, const SnMultistartJob *job) {
  SnMultistart *x = &r->asked;
  r->nominal = put_reals(staging, r->ctrl, (size_t)job->nstep * (size_t)d->m.nu, &x->nominal);
  r->term = put_reals(staging, r->best_term, (size_t)d->cost.nterm, &x->best_term);
  r->ahead = job->next ? put_reals(staging, r->ctrl, (size_t)job->nstep * (size_t)d->m.nu, &x->next) : NULL;
  x->measured = r->measured;
  x->cost_before = (sn_real)r->cost_before;
  x->best_cost = (sn_real)r->best_cost;
  x->gradient_norm = (sn_real)r->gradient_norm;
  x->best_start = r->best_start;
}

static SnMultistartTurn turn_of(const SnMultistarts *r, SnMultistart *there) {
  return (SnMultistartTurn){.data = there + r->place,
                            .first = r->first,
                            .count = r->job->count,
                            .active = 1,
                            .todo = r->job->iterations - r->done,
                            .warn = r->warn};
}

// Puts all jobs that go on into the staging buffer and sends it. False: there are none.
static bool pack(SnDeviceModel *d) {
  SnDevice *device = d->host->device;
  SnMultistartIterations *it = d->gradients->iterations;
  SnStaging *staging = &d->gradients->staging;
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
  device->copy_in(device, d->stream, staging->device.p, staging->host, staging->used);
  return true;
}

// Returns the staging size of a job that uses every optional input. Reads no data.
size_t sn_multistart_iterations_staging(SnBackendModel *x, SnMultistarts *r, int longest) {
  static double some[1];
  static sn_number other[1];
  static const unsigned char pair[1];
  const SnCfdSettings cfd = {.pair = pair};
  const SnMultistartJob job = {.state = {.qpos = some,
                                         .qvel = some,
                                         .act = some,
                                         .mocap_pos = some,
                                         .mocap_quat = some,
                                         .qacc_warmstart = some,
                                         .cfd = &cfd,
                                         .before = some},
                               .target = some,
                               .nstep = x->max_step,
                               .settings = {.method = SN_GRADIENT_PRODUCTS, .cfd = cfd},
                               .initial_ctrl = some,
                               .starts = r->starts,
                               .count = r->starts,
                               .next = other};
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
  const int done = r->job->iterations - turn->todo;
  if (done <= r->done) return;
  r->done = done;
  r->warn = turn->warn;
  r->measured = x->measured;
  r->cost_before = (double)x->cost_before;
  r->best_cost = (double)x->best_cost;
  r->gradient_norm = (double)x->gradient_norm;
  r->best_start = x->best_start;
  for (int i = 0; i < r->job->nstep * d->m.nu; ++i) r->ctrl[i] = (double)r->nominal[i];
  for (int i = 0; r->ahead && i < r->job->nstep * d->m.nu; ++i) r->next[i] = (double)r->ahead[i];
  for (int i = 0; i < d->cost.nterm; ++i) r->best_term[i] = (double)r->term[i];
}

// Waits for what runs; its results are in the jobs then, but where the device was lost.
static void settle(SnDeviceModel *d) {
  SnDevice *device = d->host->device;
  SnMultistartIterations *it = d->gradients->iterations;
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
  if (!d->gradients || !d->gradients->iterations) return;
  settle(d);
  d->gradients->iterations->packed = d->gradients->iterations->stale = false;
}

void sn_multistart_iterations_add(SnDeviceModel *d) { d->gradients->iterations->stale = true; }

// Whether there is something to be done, packed and sent.
static bool ready(SnDeviceModel *d) {
  SnMultistartIterations *it = d->gradients->iterations;
  if (it->stale) sn_multistart_iterations_change(d);
  return it->packed || pack(d);
}

// Puts one iteration into the stream. False: there is none to be done, or the device is lost.
static bool begin(SnDeviceModel *d) {
  SnMultistartIterations *it = d->gradients->iterations;
  if (!ready(d)) return false;
  for (int i = 0; i < sn_gradient_launches_count(&it->launches); ++i) sn_gradient_launches_put(d, &it->launches, i);
  sn_staging_fetch(d->host, &d->gradients->staging, d->stream);
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
    if (o == d || !o->gradients || !o->gradients->iterations) continue;
    if (o->gradients->iterations->flying > 0 && !device->idle(device, o->stream)) continue;
    settle(o);
    if (!any_goes_on(o) || !ready(o)) continue;
    if (in_time(o, clock->now(clock->context) + expected(o->gradients->iterations))) begin(o);
  }
}

// All that is left of the job: it has no deadline.
static bool run_all(SnBackendModel *x, const SnClock *clock) {
  SnDeviceModel *d = x->model;
  const SnMultistarts *r = x->multistarts;
  for (int left = r->job->iterations - r->done; left > 0; --left) {
    begin_others(d, clock);
    if (!begin(d)) return false;
  }
  settle(d);
  return !d->host->device->lost && !goes_on(x);
}

// One iteration, if it is expected to end before `until`.
static bool run_one(SnBackendModel *x, const SnClock *clock, double until) {
  SnDeviceModel *d = x->model;
  SnMultistartIterations *it = d->gradients->iterations;
  if (!ready(d)) return false;
  const double now = clock->now(clock->context);
  if (!(now < until && now + expected(it) <= until)) {
    // Where not even the first of a plan fits, the expectation shrinks: one long outlier does not stop all plans after.
    if (x->multistarts->job->init && x->multistarts->done == 0 && now < until) *state_seconds(it) *= 0.9;
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

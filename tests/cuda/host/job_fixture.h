// Every kind of work that a backend does for a session, as one thing: a job. Inputs differ by item, and all that is
// computed is one array. So a property of all kinds is written once.
#ifndef SINEW_TESTS_CUDA_HOST_JOB_FIXTURE_H_
#define SINEW_TESTS_CUDA_HOST_JOB_FIXTURE_H_

#include "physics/sensor/sensor.h"
#include "tests/cuda/plugin_fixture.h"

#ifdef SN_LANES  // each barrier is one of threads
enum { JOB_ITEMS = 3, JOB_STEPS = 2, JOB_MOST = 2, JOB_STARTS = 2, JOB_ITERATIONS = 2 };
#else
enum { JOB_ITEMS = 4, JOB_STEPS = 20, JOB_MOST = 37, JOB_STARTS = 3, JOB_ITERATIONS = 4 };
#endif
enum { JOB_NUMBERS = 1 << 18 };

// Lists the kinds. Candidates share one state, or have their own and give their states (batch). Gradients are by either
// method, on rollouts of different lengths. Others are of a cost of the states, in one call (bars), or in one for the
// rollouts and one for the way back. Adam's iterations are by either method.
#define JOB_LIST(X)            \
  X(ROLLOUTS, "rollouts")      \
  X(BATCH, "batch")            \
  X(SWEEP, "sweep")            \
  X(PRODUCTS, "products")      \
  X(BARS, "bars")              \
  X(TWO_CALLS, "two calls")    \
  X(ADAM, "adam by the sweep") \
  X(ADAM_PRODUCTS, "adam by products")
typedef enum JobKind {
#define JOB_ENUM(name, text) JOB_##name,
  JOB_LIST(JOB_ENUM)
#undef JOB_ENUM
      JOB_KINDS
} JobKind;

static const char *const job_names[] = {
#define JOB_NAME(name, text) text,
    JOB_LIST(JOB_NAME)
#undef JOB_NAME
};

// Does something for each kind.
#define FOR_KINDS(kind) for (JobKind kind = 0; kind < JOB_KINDS; ++kind)

// Holds what a job says of an item beside its numbers.
typedef struct JobBook {
  unsigned char done;
  int status, warn, steps;
} JobBook;

typedef struct Job {
  JobKind kind;
  const SnModel *m;
  const SnCost *cost;
  SnState state[JOB_ITEMS];
  double *ctrl, *target;  // (items, steps, nu), (items, steps + 1, ntarget)
  double *first;          // (steps, nu) controls that Adam begins from
  double *in, *number;    // inputs; all that is computed
  size_t nin, nnumber;
  JobBook book[JOB_ITEMS];
  unsigned char done[JOB_ITEMS], *pair;
  int warn[JOB_ITEMS], steps[JOB_ITEMS];
  SnNoiseSettings noise;
  SnCfdSettings cfd;  // contacts from distance in the steps themselves, where there is no way back
  SnTrajectory out[JOB_ITEMS];
  SnTrajectoryBar bar[JOB_ITEMS];
  SnBatch batch;
  SnGradient item[JOB_ITEMS];
  SnGradientBatch gradients;
  SnMultistartJob adam;
  double *scalar;       // (items, 2) costs and norms of items
  double untouched[1];  // begin of derivatives before they are computed
} Job;

static inline bool job_is_adam(const Job *j) { return j->kind >= JOB_ADAM; }
static inline bool job_has_gradients(const Job *j) { return j->kind >= JOB_SWEEP && !job_is_adam(j); }

// Takes the next n numbers of an array.
static inline double *job_cut(double *base, size_t *used, size_t n) {
  double *at = base + *used;
  *used += n;
  assert_true(*used <= JOB_NUMBERS);
  return at;
}

static inline double *job_in(Job *j, size_t n) { return job_cut(j->in, &j->nin, n); }
static inline double *job_out(Job *j, size_t n) { return job_cut(j->number, &j->nnumber, n); }

static inline double job_wave(int i, int k) { return sin((double)((i + 5) * 7 + k * 3) * 0.37); }

// Returns n numbers near others (NULL: none), of item k alone.
static inline const double *job_near(Job *j, const double *from, size_t n, double by, int k) {
  double *to = from ? job_in(j, n) : NULL;
  for (size_t i = 0; to && i < n; ++i) to[i] = from[i] + by * (0.5 + job_wave((int)i, k));
  return to;
}

static inline void job_inputs(Job *j, const Scene *x) {
  const size_t nu = (size_t)j->m->nu, nv = (size_t)j->m->nv, ntarget = (size_t)j->cost->ntarget;
  double *row = job_in(j, nu);
  if (nu > 0) sn_task_initial_plan(x->task, j->m, 0, row);
  j->ctrl = job_in(j, JOB_ITEMS * JOB_MOST * nu);
  j->target = job_in(j, JOB_ITEMS * (JOB_MOST + 1) * ntarget);
  j->first = job_in(j, JOB_MOST * nu);
  for (size_t i = 0; i < JOB_ITEMS * JOB_MOST * nu; ++i)
    j->ctrl[i] = row[i % nu] + 0.1 + 0.1 * job_wave((int)i, (int)(i / (JOB_MOST * nu)) + 11);
  memcpy(j->first, j->ctrl, JOB_MOST * nu * sizeof *j->first);
  for (int k = 0; k < JOB_ITEMS; ++k) {
    j->state[k] = *sn_planner_initial(x->p);
    j->state[k].qvel = job_near(j, j->state[k].qvel, nv, 0.1, k);
    j->state[k].act = job_near(j, j->state[k].act, (size_t)j->m->na, 0.02, k);
    j->state[k].mocap_pos = job_near(j, j->state[k].mocap_pos, 3 * (size_t)j->m->nmocap, 0.1, k);
    j->state[k].time = 0.1 * k;
    sn_cost_schedule(j->cost, 0.1 * k, (double)j->m->opt.timestep, JOB_MOST + 1,
                     j->target + (size_t)k * (JOB_MOST + 1) * ntarget);
  }
}

static inline void job_trajectory(Job *j, SnTrajectory *out, int nstep) {
  const size_t rows = (size_t)nstep + 1, nv = (size_t)j->m->nv;
  *out = (SnTrajectory){.time = job_out(j, rows),
                        .qpos = job_out(j, rows * (size_t)j->m->nq),
                        .qvel = job_out(j, rows * nv),
                        .act = job_out(j, rows * (size_t)j->m->na),
                        .qacc = job_out(j, rows * nv),
                        .cost = job_out(j, rows),
                        .sensordata = job_out(j, rows * (size_t)j->m->nsensordata),
                        .qacc_warmstart = job_out(j, nv)};
}

static inline void job_candidates(Job *j, bool own) {
  const int each = own ? JOB_ITEMS : 1;
  j->noise = noise_of(JOB_STEPS);
  j->batch = (SnBatch){.state = j->state,
                       .nstate = each,
                       .ctrl = j->ctrl,
                       .nctrl = each,
                       .target = j->target,
                       .ntable = each,
                       .noise = &j->noise,
                       .nstep = JOB_STEPS,
                       .count = JOB_ITEMS,
                       .max_velocity = 1e3,
                       .cost = job_out(j, JOB_ITEMS),
                       .term = job_out(j, JOB_ITEMS * (size_t)j->cost->nterm),
                       .done = j->done,
                       .warn = j->warn,
                       .steps = j->steps};
  for (int k = 0; own && k < JOB_ITEMS; ++k) job_trajectory(j, &j->out[k], JOB_STEPS);
  if (own) j->batch.out = j->out;
}

// Makes the bar of item k by a caller's cost, of what has a derivative in every state.
static inline void job_bar(Job *j, int k) {
  const SnModel *m = j->m;
  const size_t rows = JOB_MOST + 1, nv = (size_t)m->nv;
  const int ns = m->nsensordata;
  double *first = job_in(j, rows * nv), *sensor;
  j->bar[k] = (SnTrajectoryBar){.cost = 0.5,
                                .qpos = first,
                                .qvel = job_in(j, rows * nv),
                                .act = job_in(j, rows * (size_t)m->na),
                                .sensordata = sensor = job_in(j, rows * (size_t)ns),
                                .ctrl = job_in(j, JOB_MOST * (size_t)m->nu)};
  for (double *at = first; at < j->in + j->nin; ++at) *at = job_wave((int)(at - j->in), 2);
  for (int i = 0; i < m->nsensor; ++i)
    for (int n = 0; n < m->sensor_dim[i] * (int)rows && !sn_sensor_differentiable(m, i); ++n)
      sensor[n / m->sensor_dim[i] * ns + m->sensor_adr[i] + n % m->sensor_dim[i]] = 0;
}

static inline void job_gradients(Job *j, const SnCfdSettings *cfd) {
  static const int lengths[] = {JOB_STEPS, JOB_MOST, 1, 7};
  const size_t nu = (size_t)j->m->nu, nv = (size_t)j->m->nv, ntarget = (size_t)j->cost->ntarget;
  j->scalar = job_out(j, JOB_ITEMS * 2);
  for (int k = 0; k < JOB_ITEMS; ++k) {
    const size_t n = (size_t)lengths[k];
    j->item[k] = (SnGradient){.state = j->state[k],
                              .ctrl = j->ctrl + (size_t)k * JOB_MOST * nu,
                              .target = j->target + (size_t)k * (JOB_MOST + 1) * ntarget,
                              .nstep = lengths[k],
                              .max_velocity = 1e3,
                              .term = job_out(j, (size_t)j->cost->nterm),
                              .ctrl_bar = job_out(j, n * nu),
                              .qpos_bar = job_out(j, nv),
                              .qvel_bar = job_out(j, nv),
                              .act_bar = job_out(j, (size_t)j->m->na),
                              .target_bar = job_out(j, (n + 1) * ntarget)};
    if (j->kind < JOB_BARS) continue;
    job_bar(j, k);
    job_trajectory(j, &j->out[k], lengths[k]);
    j->item[k].out = &j->out[k];
    j->item[k].bar = &j->bar[k];
  }
  const bool sweep = j->kind == JOB_SWEEP || j->kind == JOB_BARS;
  j->gradients =
      (SnGradientBatch){.settings = {.method = sweep ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS, .cfd = *cfd},
                        .item = j->item,
                        .count = JOB_ITEMS};
}

static inline void job_adam(Job *j, const Scene *x, const SnCfdSettings *cfd) {
  const size_t rows = JOB_STEPS * (size_t)j->m->nu;
  SnSettings s = x->task->settings;
  s.adam_rate = 0.03;
  j->adam = (SnMultistartJob){
      .state = j->state[0],
      .target = j->target,
      .nstep = JOB_STEPS,
      .max_velocity = 1e3,
      .settings = {.method = j->kind == JOB_ADAM ? SN_GRADIENT_SWEEP : SN_GRADIENT_PRODUCTS, .cfd = *cfd},
      .grid = {JOB_STEPS, sn_noise_knots(JOB_STEPS, 2, 1), 2, 1, SN_SPLINE_LINEAR, {0}},
      .rule = sn_adam_settings(&s),
      .noise = {.seed = 3, .spacing = 4, .knots = sn_noise_knots(JOB_STEPS, 4, 0), .scale = SN_R(0.1)},
      .initial_ctrl = j->in,  // the task's controls
      .starts = JOB_STARTS,
      .count = JOB_STARTS,
      .init = true,
      .iterations = JOB_ITERATIONS,
      .deadline = (double)INFINITY,
      .ctrl = job_out(j, rows),
      .next = job_out(j, rows),
      .best_term = job_out(j, (size_t)j->cost->nterm)};
  j->scalar = job_out(j, 3);
}

// Makes a job of a kind, with contacts from distance or without.
static inline Job *job_make(const Scene *x, JobKind kind, bool with_cfd) {
  SnError err = {0};
  Job *j = calloc(1, sizeof *j);
  j->kind = kind;
  j->m = x->m;
  j->cost = x->cost;
  j->in = calloc(JOB_NUMBERS, sizeof *j->in);
  j->number = calloc(JOB_NUMBERS, sizeof *j->number);
  j->pair = sn_cfd_pairs(x->task, x->m, &err);
  assert_non_null(j->pair);
  job_inputs(j, x);
  const SnCfdSettings cfd = sn_cfd_settings(&x->task->settings, j->pair, with_cfd);
  j->cfd = cfd;
  for (int k = 0; with_cfd && kind < JOB_SWEEP && k < JOB_ITEMS; ++k) j->state[k].cfd = &j->cfd;
  if (job_is_adam(j))
    job_adam(j, x, &cfd);
  else if (job_has_gradients(j))
    job_gradients(j, &cfd);
  else
    job_candidates(j, kind == JOB_BATCH);
  return j;
}

static inline void job_free(Job *j) {
  free(j->in);
  free(j->number);
  free(j->pair);
  free(j);
}

// Limits velocities: of item 1 alone where each item has a limit of its own.
static inline void job_limit(Job *j, double most) {
  j->batch.max_velocity = j->adam.max_velocity = most;
  j->item[1].max_velocity = most;
}

// Fills all that is computed with what must not stay.
static inline void job_clear(Job *j) {
  memset(j->number, 0x55, j->nnumber * sizeof *j->number);
  memset(j->book, 0x55, sizeof j->book);
  memset(j->untouched, 0x55, sizeof j->untouched);
  memset(j->done, 0, sizeof j->done);
  j->gradients.forward = j->kind == JOB_TWO_CALLS;
  for (int k = 0; k < JOB_ITEMS; ++k) {
    j->item[k].status = SN_GRADIENT_PENDING;
    j->item[k].cost = j->item[k].norm = (double)NAN;
  }
  if (!job_is_adam(j)) return;
  memcpy(j->adam.ctrl, j->first, JOB_STEPS * (size_t)j->m->nu * sizeof(double));
  j->adam.best_cost = (double)INFINITY;
  j->adam.gradient_norm = (double)NAN;
  j->adam.measured = false;
  j->adam.warn = j->adam.done = 0;
}

// Notes what a job that is done says beside its arrays.
static inline void job_note(Job *j) {
  for (int k = 0; k < JOB_ITEMS; ++k) {
    const SnGradient *g = &j->item[k];
    if (job_has_gradients(j)) {
      j->book[k] = (JobBook){0, (int)g->status, g->warn, g->steps};
      j->scalar[2 * k] = g->cost;
      j->scalar[2 * k + 1] = g->norm;
    } else if (job_is_adam(j)) {
      j->book[k] = (JobBook){0, j->adam.done, j->adam.warn, j->adam.best_start};
    } else {
      j->book[k] = (JobBook){j->done[k], 0, j->warn[k], j->steps[k]};
    }
  }
  if (!job_is_adam(j)) return;
  j->scalar[0] = j->adam.cost_before;
  j->scalar[1] = j->adam.best_cost;
  j->scalar[2] = j->adam.gradient_norm;
}

// Makes rollouts alone, and turns to the way back. They leave all derivatives as they were.
static inline void job_forward(SnBackend *b, SnBackendModel *d, Job *j, const SnClock *clock, double until) {
  if (!sn_backend_gradients(b, d, &j->gradients, clock, until)) return;
  for (int k = 0; k < JOB_ITEMS; ++k) {
    const SnGradient *g = &j->item[k];
    assert_true(g->status == SN_GRADIENT_ROLLED || g->status == SN_GRADIENT_DIVERGED);
    if (g->status == SN_GRADIENT_ROLLED) assert_memory_equal(g->ctrl_bar, j->untouched, sizeof j->untouched);
  }
  j->gradients.forward = false;
}

// Goes on until then. Returns true when all is done; the first of two calls is not all.
static inline bool job_until(SnBackend *b, SnBackendModel *d, Job *j, const SnClock *clock, double until) {
  bool done = false;
  if (j->gradients.forward) {
    job_forward(b, d, j, clock, until);
  } else if (job_is_adam(j)) {
    done = sn_backend_multistart(b, d, &j->adam, clock, until);
    if (done) sn_backend_multistart_end(b, d, &j->adam);
  } else if (job_has_gradients(j)) {
    done = sn_backend_gradients(b, d, &j->gradients, clock, until);
  } else {
    done = sn_backend_rollouts(b, d, &j->batch, clock, until);
  }
  if (done) job_note(j);
  return done;
}

// Goes on for a short while on a clock that counts: a launch or a few.
static inline bool job_slice(SnBackend *b, SnBackendModel *d, Job *j, CountingClock *count) {
  const SnClock clock = counting_clock(count);
  return job_until(b, d, j, &clock, (double)atomic_load(&count->reads) + (job_has_gradients(j) ? 1 : 4));
}

static inline void job_run(SnBackend *b, SnBackendModel *d, Job *j) {
  char text[300] = "not done";
  job_clear(j);
  for (int calls = j->kind == JOB_TWO_CALLS ? 2 : 1; calls > 0; --calls)
    if (job_until(b, d, j, steady_clock(), (double)INFINITY)) return;
  sn_backend_lost(b, text, sizeof text);
  fail_msg("%s: %s", job_names[j->kind], text);
}

static inline SnCode job_reserve(SnBackend *b, SnBackendModel *d, JobKind kind, int more, SnError *err) {
  if (kind >= JOB_ADAM) return sn_backend_reserve_multistart(b, d, JOB_STARTS + more, err);
  if (kind == JOB_ROLLOUTS) return sn_backend_reserve_rollouts(b, d, JOB_ITEMS + more, err);
  if (kind == JOB_BATCH) return sn_backend_reserve_batches(b, d, JOB_ITEMS + more, err);
  return sn_backend_reserve_gradients(b, d, JOB_ITEMS + more, err);
}

// Shows a job to the device, so that it goes along with others; gradients cannot be shown.
static inline void job_submit(SnBackend *b, SnBackendModel *d, Job *j) {
  if (job_is_adam(j)) sn_backend_multistart_submit(b, d, &j->adam);
  if (j->kind < JOB_SWEEP) sn_backend_rollouts_submit(b, d, &j->batch);
}

// Loads the scene's model, with room for the job.
static inline SnBackendModel *job_load(SnBackend *b, const Scene *x, JobKind kind) {
  SnError err = {0};
  SnBackendModel *d = scene_load(b, x, JOB_MOST);
  if (job_reserve(b, d, kind, 0, &err) != SN_OK) fail_msg("%s: %s", job_names[kind], err.text);
  return d;
}

// Computes it on a model that is loaded for it alone.
static inline void job_alone(SnBackend *b, const Scene *x, Job *j) {
  SnBackendModel *d = job_load(b, x, j->kind);
  job_run(b, d, j);
  sn_backend_unload(b, d);
}

// Opens balls that leave the plane at once, and a cart on a rail that shall go where a mocap body is.
static inline void scene_pile(Scene *x) {
  static const char *const xml =
      "<mujoco><option timestep='0.005' gravity='0 0 9'/><worldbody><geom type='plane' size='1 1 .1'/>"
      "<body name='goal' mocap='true' pos='.3 0 .2'/>"
      "<body name='ball' pos='0 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
      "<body pos='.4 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
      "<body pos='.8 0 .099'><freejoint/><geom size='.1' mass='1'/></body>"
      "<body name='cart' pos='0 1 .5'><joint name='rail' type='slide' axis='1 0 0'/><geom size='.05' mass='1'/></body>"
      "</worldbody><actuator><motor joint='rail' ctrlrange='-5 5' ctrllimited='true'/></actuator></mujoco>";

  static const char *const text =
      "model: pile.xml\n"
      "settings: {horizon: 20}\n"
      "terms:\n"
      "  - {name: reach, residual: {position: {body: cart}}, target: {position: {body: goal}}, norm: squared, weight: "
      "1}\n"
      "  - {name: ball, residual: {position: {body: ball}}, target: {value: [0, 0, 0.3]}, norm: squared, weight: 2, "
      "terminal: 1}\n";
  scene_parse(x, xml, text);
}
// Fails the test unless both have the same bits.
static inline void job_same(const Job *a, const Job *b) {
  assert_int_equal(a->nnumber, b->nnumber);
  assert_memory_equal(a->book, b->book, sizeof a->book);
  assert_memory_equal(a->number, b->number, a->nnumber * sizeof *a->number);
}

#endif

// Every setting of a planner reaches what computes: the table below has a row for each row of
// planner/task/settings.inc, with values of its own, and reads back what the backend was asked for, or what became of
// the plan.
#include "planner/backend/backend_impl.h"
#include "tests/planner/planner_fixture.h"
#include "tests/support/slow.h"

// By what a setting acts: plans by each planner, evaluations with a gradient.
enum { SAMPLING = 1, ADAM = 2, LBFGS = 4, MPPI = 8, CEM = 16, HYBRID = 32, EVALUATION = 64, ILQG = 128, KINDS = 8 };
enum {
  SAMPLES = SAMPLING | MPPI | CEM | HYBRID,       // plans with candidates
  DESCENDS = ADAM | LBFGS | HYBRID | EVALUATION,  // with gradients
  PLANS = SAMPLES | ADAM | LBFGS | ILQG
};
static const struct {
  const char *name;
  int planner;
} kinds_of[KINDS] = {{"sampling", SN_PLANNER_SAMPLING},  {"adam", SN_PLANNER_ADAM}, {"lbfgs", SN_PLANNER_LBFGS},
                     {"mppi", SN_PLANNER_MPPI},          {"cem", SN_PLANNER_CEM},   {"hybrid", SN_PLANNER_HYBRID},
                     {"an evaluation", SN_PLANNER_ADAM}, {"ilqg", SN_PLANNER_ILQG}};

static int index_of_kind(int kind) {
  int k = 0;
  while (1 << k != kind) ++k;
  return k;
}

enum { HORIZON_MOST = 64, NU = 3 };

// What the backend was first asked for since it was last forgotten.
typedef struct Asked {
  int rollouts, jobs, gradients;  // how often
  int means;                      // rollouts without noise among them
  int searches, alphas;           // rollouts with feedback; candidates of the first of them
  double mu;                      // regularisation of the change that it begins with
  int nstep, candidates, starts, keep, method;
  const sn_real *next;  // where the next plan begins, in the planner; NULL: at the best
  double max_velocity;
  SnCfdSettings forward, backward;
  SnNoiseSettings noise;
  uint32_t iteration;  // the latest noise's
  SnGrid time;         // time grid of the steps
  SnAdamGrid grid;
  SnAdamSettings rule;
  sn_real ctrl[HORIZON_MOST * NU], mean[HORIZON_MOST * NU];  // of the first question; the latest without noise
} Asked;

static Asked asked;

// The CPU backend's own operations; what stands in their place notes the question first.
static bool (*rollouts)(SnBackend *, SnBackendModel *, const SnBatch *, const SnClock *, double);
static bool (*multistart)(SnBackend *, SnBackendModel *, SnMultistartJob *, const SnClock *, double);
static bool (*gradients)(SnBackend *, SnBackendModel *, SnGradientBatch *, const SnClock *, double);
static bool (*linearize)(SnBackend *, SnBackendModel *, const SnLinearization *, const SnClock *, double);

static SnCode (*choose)(SnBackend *, SnBackendModel *, const SnHorizonSettings *, SnError *);

// How the backend was asked to choose steps; a method of -1: not at all.
static SnHorizonSettings chosen;

static SnCode note_choose(SnBackend *b, SnBackendModel *x, const SnHorizonSettings *s, SnError *err) {
  chosen = *s;
  return choose(b, x, s, err);
}

// What the backend was last asked to linearize.
static SnLinearization model;

static void note(const SnState *state, const sn_real *ctrl, int nstep, double max_velocity) {
  assert_true(nstep <= HORIZON_MOST);
  asked.forward = state->cfd ? *state->cfd : (SnCfdSettings){.on = 0};
  asked.nstep = nstep;
  asked.time = sn_state_grid(state);
  asked.max_velocity = max_velocity;
  memcpy(asked.ctrl, ctrl, sizeof *ctrl * NU * (size_t)nstep);
}

static bool note_linearize(SnBackend *b, SnBackendModel *x, const SnLinearization *l, const SnClock *clock,
                           double until) {
  model = *l;
  return linearize(b, x, l, clock, until);
}

// The regularisation that makes `change` of the controls of the last step: (Quu + mu D / steps) k + qu = 0 for its
// first control, which no limit holds.
static double mu_of(const SnBatch *batch) {
  enum { N = 6, UNIT = 3 };
  const size_t last = (size_t)batch->nstep - 1;
  const sn_number *B = model.B + last * N * NU, *end = model.cost->lx + (last + 1) * N;
  double sum = (double)model.cost->lu[last * NU], k[NU];
  for (int j = 0; j < NU; ++j) k[j] = (double)(batch->ctrl[last * NU + (size_t)j] - asked.ctrl[last * NU + (size_t)j]);
  for (int j = 0; j < NU; ++j) sum += (double)model.cost->luu[last * NU * NU + (size_t)j] * k[j];
  for (int r = 0; r < N; ++r) {
    sum += (double)(B[r * NU] * end[r]);
    for (int c = 0; c < N; ++c)
      for (int j = 0; j < NU; ++j)
        sum += (double)(B[r * NU] * model.cost->lxx[(last + 1) * N * N + (size_t)(r * N + c)] * B[c * NU + j]) * k[j];
  }
  return -sum * batch->nstep * UNIT * UNIT / k[0];
}

// A search of iLQG.
static bool note_search(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  if (asked.searches++ == 0) {
    asked.alphas = batch->count;
    asked.mu = mu_of(batch);
  }
  return rollouts(b, x, batch, clock, until);
}

static bool note_rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  if (batch->feedback) return note_search(b, x, batch, clock, until);
  if (asked.rollouts++ == 0) {
    note(batch->state, batch->ctrl, batch->nstep, batch->max_velocity);
    asked.candidates = batch->first + batch->count;
    if (batch->noise) asked.noise = *batch->noise;
  }
  if (batch->noise) asked.iteration = batch->noise->iteration;
  if (!batch->noise) {
    ++asked.means;
    memcpy(asked.mean, batch->ctrl, sizeof *batch->ctrl * NU * (size_t)batch->nstep);
  }
  return rollouts(b, x, batch, clock, until);
}

static bool note_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  if (asked.jobs++ == 0) {
    note(&job->state, job->ctrl, job->nstep, job->max_velocity);
    asked.backward = job->settings.cfd;
    asked.method = (int)job->settings.method;
    asked.noise = job->noise;
    asked.grid = job->grid;
    asked.rule = job->rule;
    asked.starts = job->starts;
    asked.keep = job->keep;
    asked.next = job->next;
  }
  asked.iteration = job->noise.iteration;
  return multistart(b, x, job, clock, until);
}

static bool note_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock,
                           double until) {
  if (asked.gradients++ == 0 && !batch->forward) {
    note(&batch->item->state, batch->item->ctrl, batch->item->nstep, batch->item->max_velocity);
    asked.backward = batch->settings.cfd;
    asked.method = (int)batch->settings.method;
  }
  return gradients(b, x, batch, clock, until);
}

// Two plans in a row, or an evaluation, and what was asked for meanwhile.
typedef struct Trial {
  int kind;
  Asked first, second;              // of each plan; of an evaluation: first
  sn_real made[HORIZON_MOST * NU];  // controls of the first plan
  SnPlan plan;                      // the second one, without its arrays
  bool wait;                        // makes plans until one says that the cost does not fall; set before
  int patience;                     // plans in a row whose cost did not fall when one said so
} Trial;

static int knots_of(int nstep, int spacing) { return (nstep - 1) / spacing + 1; }

// One number of the contacts from distance; NAN where rollouts and gradients do not have the same.
static double of_cfd(const Trial *t, double forward, double backward) {
  if (!t->first.forward.on || ((t->kind & DESCENDS) && (!t->first.backward.on || forward != backward)))
    return (double)NAN;
  return forward;
}
#define CFD(name, member)                                                                \
  static double name(const Trial *t) {                                                   \
    return of_cfd(t, (double)t->first.forward.member, (double)t->first.backward.member); \
  }
CFD(see_cfd_far, solimp[0])
CFD(see_cfd_touch, solimp[1])
CFD(see_cfd_reach, solimp[2])
CFD(see_cfd_midpoint, solimp[3])
CFD(see_cfd_power, solimp[4])
CFD(see_cfd_softplus, width)
CFD(see_cfd_friction, friction)
CFD(see_cfd_smooth, smooth)

static double see_cfd(const Trial *t) {
  if (t->first.forward.on) return t->first.backward.on ? SN_CFD_FORWARD : (double)NAN;
  return t->first.backward.on ? SN_CFD_BACKWARD : SN_CFD_NONE;
}
static double see_surrogate(const Trial *t) { return t->first.backward.surrogate; }
static double see_method(const Trial *t) { return t->first.method; }
static double see_max_velocity(const Trial *t) { return t->first.max_velocity; }

static double see_integrator(const Trial *t) {
  (void)t;
  if (chosen.method < 0) return 0;
  return sn_settings_choice_index(sn_settings_find("integrator"), sn_tableau(chosen.method)->name);
}
static double see_rtol(const Trial *t) { return t->kind == CEM ? (double)chosen.rtol : (double)NAN; }
static double see_atol(const Trial *t) { return t->kind == CEM ? (double)chosen.atol : (double)NAN; }
static double see_max_steps(const Trial *t) { return t->kind == CEM ? chosen.max_steps : (double)NAN; }

static double see_planner(const Trial *t) {
  const Asked *a = &t->first;
  if (a->searches > 0) return SN_PLANNER_ILQG;
  if (a->jobs > 0) return a->rollouts > 0 ? SN_PLANNER_HYBRID : SN_PLANNER_ADAM;
  if (a->gradients > 0) return a->rollouts > 0 ? (double)NAN : SN_PLANNER_LBFGS;
  if (a->means > 0) return a->noise.deviation ? SN_PLANNER_CEM : SN_PLANNER_MPPI;
  return SN_PLANNER_SAMPLING;
}
static double see_horizon(const Trial *t) { return t->plan.nstep == t->first.nstep ? t->first.nstep : (double)NAN; }
// Steps of the first part; NAN where rollouts, noise and unknowns have not the same grid.
static double see_grid(const Trial *t) {
  const Asked *a = &t->first;
  const bool rows = a->grid.nstep == a->nstep && (a->jobs == 0 || sn_grid_equal(&a->grid.time, &a->time));
  if ((a->noise.knots > 0 && !sn_grid_equal(&a->time, &a->noise.grid)) || (a->jobs > 0 && !rows)) return (double)NAN;
  const int horizon = sn_grid_begin(&a->time, a->nstep);
  return t->plan.nstep == horizon ? (a->time.parts ? a->time.count[0] : 0) : (double)NAN;
}
static double see_candidates(const Trial *t) { return t->first.candidates; }
static double see_iterations(const Trial *t) {
  if (t->kind == ILQG) return t->first.searches;
  if (t->kind == LBFGS) return t->first.gradients;
  return t->kind == ADAM ? t->first.jobs : t->first.rollouts - t->first.means;
}
static double see_alphas(const Trial *t) { return t->first.alphas; }
static double see_mu(const Trial *t) { return t->first.mu; }
static double see_refined(const Trial *t) { return t->first.starts - 1; }
static double see_hybrid_gradients(const Trial *t) { return (double)t->first.jobs / t->first.rollouts; }

static double see_knots(const Trial *t) { return knots_of(t->first.nstep, t->first.noise.spacing); }
static double see_interpolation(const Trial *t) { return t->first.noise.interpolation; }
static double see_noise(const Trial *t) { return t->first.noise.colour; }
static double see_noise_scale(const Trial *t) { return (double)t->first.noise.scale; }

static double see_rate(const Trial *t) { return (double)t->first.rule.rate; }
static double see_beta1(const Trial *t) { return (double)t->first.rule.beta1; }
static double see_beta2(const Trial *t) { return (double)t->first.rule.beta2; }
static double see_epsilon(const Trial *t) { return (double)t->first.rule.epsilon; }
static double see_clip(const Trial *t) { return t->first.rule.clip; }
static double see_clip_norm(const Trial *t) { return (double)t->first.rule.clip_norm; }
static double see_moments(const Trial *t) { return t->second.keep ? SN_MOMENTS_KEPT : SN_MOMENTS_FRESH; }
static double see_warm_start(const Trial *t) { return t->second.next ? SN_WARM_START_LAST : SN_WARM_START_BEST; }
static double see_adam_knots(const Trial *t) { return knots_of(t->first.nstep, t->first.grid.spacing); }
static double see_adam_interpolation(const Trial *t) { return t->first.grid.interpolation; }
static double see_starts(const Trial *t) { return t->first.starts; }

static bool same_rows(const sn_real *a, const sn_real *b, int n) {
  return memcmp(a, b, sizeof *a * NU * (size_t)n) == 0;
}

// Steps by which the second plan began later within the first one.
static double see_shift(const Trial *t) {
  const int n = t->first.nstep;
  for (int k = 0; k < n; ++k)
    if (same_rows(t->second.ctrl, t->made + k * NU, n - k)) return k;
  return (double)NAN;
}

// What its last row was filled with.
static double see_tail(const Trial *t) {
  const int last = t->first.nstep - 1;
  const bool holds = same_rows(t->second.ctrl + last * NU, t->made + last * NU, 1);
  const bool begins = same_rows(t->second.ctrl + last * NU, t->first.ctrl, 1);  // the first plan began as the task's
  return holds == begins ? (double)NAN : (holds ? SN_TAIL_HOLD : SN_TAIL_INITIAL);
}

static double see_patience(const Trial *t) { return t->patience; }

// A row: the setting, by what it acts, two values of its own (of a choice: one; all others are tried, too), and how it
// shows; NULL: in the controls that are planned, and in the means of noisy ones. Knots divide the horizon evenly, so
// that they can be told from their spacing.
typedef struct Row {
  const char *name;
  int kinds;
  double value, other;
  double (*see)(const Trial *t);
} Row;

static const Row rows[] = {
    {"planner", PLANS, -1, -1, see_planner},  // -1: as the kind of trial
    {"horizon", PLANS, 21, 41, see_horizon},
    {"grid", PLANS, -1, 17, see_grid},  // 17: see set()
    {"candidates", SAMPLES, 9, 12, see_candidates},
    {"iterations", SAMPLES, 2, 10, see_iterations},
    {"knots", SAMPLES | ADAM, 5, 11, see_knots},
    {"interpolation", SAMPLES | ADAM, SN_SPLINE_CUBIC, -1, see_interpolation},
    {"noise", SAMPLES | ADAM, SN_NOISE_BROWN, -1, see_noise},
    {"noise_scale", SAMPLES | ADAM, 0.21, 0.34, see_noise_scale},
    {"adam_iterations", ADAM, 16, 8, see_iterations},
    {"adam_rate", ADAM | HYBRID, 0.03, 0.05, see_rate},
    {"adam_beta1", ADAM | HYBRID, 0.8, 0.7, see_beta1},
    {"adam_beta2", ADAM | HYBRID, 0.95, 0.97, see_beta2},
    {"adam_epsilon", ADAM | HYBRID, 1e-4, 2e-3, see_epsilon},
    {"adam_clip", ADAM | HYBRID, SN_CLIP_STEP, -1, see_clip},
    {"adam_clip_norm", ADAM | HYBRID, 2.5, 3.5, see_clip_norm},
    {"adam_moments", ADAM, SN_MOMENTS_KEPT, -1, see_moments},
    {"adam_warm_start", ADAM, SN_WARM_START_LAST, -1, see_warm_start},
    {"adam_knots", ADAM | HYBRID, 6, 11, see_adam_knots},
    {"adam_interpolation", ADAM | HYBRID, SN_SPLINE_ZERO, -1, see_adam_interpolation},
    {"adam_starts", ADAM, 4, 6, see_starts},
    {"gradient", DESCENDS, 1, -1, see_method},
    {"contact_gradient", DESCENDS, 1, -1, see_surrogate},
    {"tail", PLANS, SN_TAIL_INITIAL, -1, see_tail},
    {"shift", PLANS, 13, 16, see_shift},
    {"patience", SAMPLING, 24, 26, see_patience},
    {"max_velocity", PLANS | EVALUATION, 500, 700, see_max_velocity},
    {"integrator", CEM, -1, -1, see_integrator},  // see own_values()
    {"rtol", CEM, 2.9e-3, 6.1e-3, see_rtol},
    {"atol", CEM, 5.2e-3, 7.3e-3, see_atol},
    {"max_steps", CEM, 9100, 9300, see_max_steps},
    {"cfd", DESCENDS, SN_CFD_FORWARD, -1, see_cfd},
    {"cfd_far", PLANS | EVALUATION, 0.02, 0.06, see_cfd_far},
    {"cfd_touch", PLANS | EVALUATION, 0.15, 0.25, see_cfd_touch},
    {"cfd_reach", PLANS | EVALUATION, 0.4, 0.9, see_cfd_reach},
    {"cfd_midpoint", PLANS | EVALUATION, 0.6, 0.5, see_cfd_midpoint},
    {"cfd_power", PLANS | EVALUATION, 2.25, 5.5, see_cfd_power},
    {"cfd_softplus", PLANS | EVALUATION, 0.005, 0.007, see_cfd_softplus},
    {"cfd_friction", PLANS | EVALUATION, 1, -1, see_cfd_friction},
    {"cfd_smooth", PLANS | EVALUATION, 0.004, 0.006, see_cfd_smooth},
    {"cem_elites", CEM, 1, 9, NULL},
    {"ilqg_iterations", ILQG, 14, 23, see_iterations},
    {"ilqg_regularization", ILQG, 0.37, 0.053, see_mu},
    {"ilqg_alphas", ILQG, 22, 20, see_alphas},
    {"lbfgs_iterations", LBFGS, 15, 14, see_iterations},
    {"lbfgs_memory", LBFGS, 18, 2, NULL},
    {"lbfgs_trials", LBFGS, 19, 1, NULL},
    {"lbfgs_first", LBFGS, 1.9, 1.4, NULL},
    {"lbfgs_longest", LBFGS, 3.1, 0.011, NULL},
    {"mppi_temperature", MPPI, 0.07, 0.013, NULL},
    {"mppi_relative", MPPI, 0, -1, NULL},
    {"cem_keep", CEM, 0.33, 0.66, NULL},
    {"cem_least", CEM, 0.44, 0.77, NULL},
    {"hybrid_refined", HYBRID, 7, 2, see_refined},
    {"hybrid_gradients", HYBRID, 3, 1, see_hybrid_gradients},
};

enum { ROWS = (int)(sizeof rows / sizeof *rows) };

static int index_of(const char *name) {
  const int i = sn_settings_find(name);
  if (i < 0) fail_msg("planner/task/settings.inc has no '%s'", name);
  return i;
}

static bool is_choice(const Row *row) { return sn_settings_info(index_of(row->name))->type == SN_SETTING_TYPE_CHOICE; }

// Sets a setting; the text that is a grid to so many steps of one, and those of two that fill the horizon.
static void set(SnSettings *s, const char *name, double value) {
  SnError err = {0};
  if (sn_settings_info(index_of(name))->text) {
    const int n = (int)value;
    snprintf(s->grid, sizeof s->grid, "%dx1,%dx2", n, (s->horizon - n) / 2);
    return;
  }
  if (sn_settings_set(s, index_of(name), value, &err) != SN_OK) fail_msg("%s", err.text);
}

// All settings at their own values.
static SnSettings own_values(int kind) {
  SnSettings s = sn_default_settings();
  for (int i = 0; i < ROWS; ++i)
    if (rows[i].value >= 0) set(&s, rows[i].name, rows[i].value);
  s.planner = kinds_of[index_of_kind(kind)].planner;
  if (kind == CEM) {  // a planner that no other setting keeps from chosen steps
    s.integrator = sn_settings_choice_index(index_of("integrator"), "bosh3");
    s.gradient = 0;
  }
  return s;
}

static void plan_twice(SnPlanner *p, Trial *t) {
  SnPlanRequest r = request_of(p, 0);
  memset(&asked, 0, sizeof asked);
  SnPlan plan = plan_of(p, &r);
  t->first = asked;
  memcpy(t->made, asked.next ? asked.next : plan.ctrl, ctrl_bytes(&plan));
  r.time = 0.02;
  memset(&asked, 0, sizeof asked);
  t->plan = plan_of(p, &r);
  t->second = asked;
}

// Makes plans without noise, which get no better, until one says that this is so for long.
static void plan_in_vain(SnPlanner *p, Trial *t) {
  SnPlanRequest r = request_of(p, 0.02);
  r.max_iterations = r.max_candidates = 1;
  for (int k = 0; k < 100 && t->patience == 0; ++k) {
    const SnPlan plan = plan_of(p, &r);
    if (plan.remark[0]) t->patience = plan.unimproved;
  }
}

static void evaluate_once(SnPlanner *p, Trial *t) {
  enum { STEPS = 5 };
  SnError err = {0};
  SnEvaluation e;
  const sn_real ctrl[STEPS * NU] = {0};
  const SnState *s = sn_planner_initial(p);
  const SnEvaluateRequest q = {
      .qpos = s->qpos, .qvel = s->qvel, .act = s->act, .nstep = STEPS, .ctrl = ctrl, .gradient = true};
  memset(&asked, 0, sizeof asked);
  if (sn_planner_evaluate(p, &q, INFINITY, &e, &err) != SN_OK) fail_msg("%s", err.text);
  t->first = asked;
}

// Other settings for a planner that has made a plan.
static void change(SnPlanner *p, const SnSettings *s, uint64_t seed) {
  SnError err = {0};
  const SnPlanRequest r = request_of(p, 0);
  plan_of(p, &r);
  assert_int_equal(sn_planner_reset(p, seed, &err), SN_OK);
  if (sn_planner_configure(p, s, &err) != SN_OK) fail_msg("%s", err.text);
}

// One trial with settings that a planner is created with, or, if `before` is given, that it gets while it lives.
static void try_settings(int kind, const SnSettings *s, const SnSettings *before, Trial *t) {
  SnError err = {0};
  SnPool *pool = sn_pool_create(1, &err);
  SnBackend *cpu = sn_backend_cpu(pool, &err);
  rollouts = cpu->rollouts;
  multistart = cpu->multistart;
  gradients = cpu->gradients;
  linearize = cpu->linearize;
  choose = cpu->choose;
  chosen.method = -1;
  cpu->rollouts = note_rollouts;
  cpu->multistart = note_multistart;
  cpu->gradients = note_gradients;
  cpu->linearize = note_linearize;
  cpu->choose = note_choose;
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = cpu;
  def.settings = before ? *before : *s;
  def.seed = 5;
  SnPlanner *p = sn_planner_create(&def, &err);
  if (!p) fail_msg("%s", err.text);
  if (before) change(p, s, def.seed);
  *t = (Trial){.kind = kind, .wait = t->wait};
  if (kind == EVALUATION)
    evaluate_once(p, t);
  else
    plan_twice(p, t);
  if (kind == SAMPLING && t->wait) plan_in_vain(p, t);
  sn_planner_free(p);
  sn_backend_free(cpu);
  sn_pool_free(pool);
}

static void expect(const Row *row, const Trial *t, double value, const char *how) {
  const double seen = row->see(t);
  const double rounding = sizeof(sn_real) == sizeof(double) ? 1e-6 : 1e-4;  // what shows is a difference
  if (!(fabs(seen - value) <= rounding * fabs(value)))
    fail_msg("%s %s is %g; %s sees %g", row->name, how, value, kinds_of[index_of_kind(t->kind)].name, seen);
}

// Settings that want more than a value: a policy (test_planner_policy.c).
static bool has_own_test(const char *name) { return strcmp(name, "warm_start") == 0; }

// A setting that has no row here has no test: it needs one.
static void every_setting_has_a_row(void **state) {
  (void)state;
  for (int i = 0; i < sn_settings_count(); ++i) {
    int found = 0;
    for (int k = 0; k < ROWS; ++k) found += strcmp(rows[k].name, sn_settings_info(i)->name) == 0;
    if (found != !has_own_test(sn_settings_info(i)->name))
      fail_msg("'%s' of planner/task/settings.inc has %d rows in this test", sn_settings_info(i)->name, found);
  }
  assert_int_equal(ROWS + 1, sn_settings_count());
}

// Values that are the default, or another setting's, could come from there.
static void values_are_of_their_own(void **state) {
  (void)state;
  for (int i = 0; i < ROWS; ++i) {
    if (rows[i].value < 0) continue;
    assert_true(rows[i].value != sn_settings_info(index_of(rows[i].name))->value && rows[i].value != rows[i].other);
    for (int k = 0; k < i && !is_choice(&rows[i]); ++k)
      if (!is_choice(&rows[k]) && (rows[i].value == rows[k].value || rows[i].value == rows[k].other))
        fail_msg("%s and %s are both %g", rows[i].name, rows[k].name, rows[i].value);
  }
}

// All of them at once, each with a value of its own.
static void all_at_once(void **state) {
  (void)state;
  static Trial t;
  for (int k = 0; k < KINDS; ++k) {
    const int kind = 1 << k;
    const SnSettings s = own_values(kind);
    t.wait = true;
    try_settings(kind, &s, NULL, &t);
    for (int i = 0; i < ROWS; ++i)
      if (rows[i].see && (rows[i].kinds & kind))
        expect(&rows[i], &t, sn_settings_get(&s, index_of(rows[i].name)), "of all own values");
  }
}

static bool same_controls(const Trial *a, const Trial *b) {
  const int n = a->first.nstep;
  return same_rows(a->made, b->made, n) && same_rows(a->first.mean, b->first.mean, n);
}

// A setting that shows in the controls alone makes others, the same ones at creation and while the planner lives.
static void expect_others(const Row *row, int kind, const SnSettings *s, const SnSettings *base) {
  static Trial own, other, live;
  try_settings(kind, base, NULL, &own);
  try_settings(kind, s, NULL, &other);
  try_settings(kind, s, base, &live);
  const bool same = sn_settings_get(s, index_of(row->name)) == sn_settings_get(base, index_of(row->name));
  if (same_controls(&own, &other) != same) fail_msg("%s makes no difference", row->name);
  assert_true(same_controls(&live, &other));
}

// One of them alone at another value, from the start on (in a slow build where it can only be so) and, where it may,
// while the planner lives, with all planners that have it (in a slow build the first).
static void try_value(const Row *row, double value) {
  static Trial t;
  t.wait = row->see == see_patience;
  bool tried = false;
  for (int k = 0; k < KINDS && !(SN_SLOW && tried); ++k) {
    const int kind = 1 << k;
    if (!(row->kinds & kind)) continue;
    tried = true;
    SnSettings base = own_values(kind);
    if (strcmp(row->name, "planner") == 0) base.integrator = 0;  // not every planner has others
    SnSettings s = base;
    set(&s, row->name, value);
    if (!row->see) {
      expect_others(row, kind, &s, &base);
      continue;
    }
    const bool live = sn_settings_info(index_of(row->name))->live;
    if (!SN_SLOW || !live) {
      try_settings(kind, &s, NULL, &t);
      expect(row, &t, value, "at creation");
    }
    if (!live) continue;
    try_settings(kind, &s, &base, &t);
    expect(row, &t, value, "changed live");
  }
}

static void each_alone(void **state) {
  (void)state;
  char text[64];
  for (int i = 0; i < ROWS; ++i) {
    if (!is_choice(&rows[i])) {
      try_value(&rows[i], rows[i].other);
      continue;
    }
    const int choice = index_of(rows[i].name);
    for (int v = 0; sn_settings_choice_name(choice, v, text, sizeof text)[0]; ++v) try_value(&rows[i], v);
  }
}

// Without the setting `shift` the stamps of the states say how far a plan moves.
static void stamps_shift(void **state) {
  (void)state;
  static Trial t;
  SnSettings s = own_values(SAMPLING);
  s.shift = 0;
  try_settings(SAMPLING, &s, NULL, &t);
  assert_true(see_shift(&t) == 2);
}

// Knots stay where they are in time while the plan moves over them, and each iteration of each plan has noise of its
// own, by the planner's seed.
static void noise_of_a_plan(void **state) {
  (void)state;
  static Trial t;
  for (int kind = SAMPLING; kind <= ADAM; ++kind) {
    const SnSettings s = own_values(kind);
    try_settings(kind, &s, NULL, &t);
    const SnNoiseSettings *a = &t.first.noise, *b = &t.second.noise;
    assert_true(a->seed == 5 && b->seed == 5 && a->plan == 1 && b->plan == 2);
    assert_true(a->iteration == 0 && b->iteration == 0);
    assert_int_equal(t.first.iteration + 1, sn_settings_iterations(&s));
    assert_true(a->phase == 0 && a->spacing == 5 && b->spacing == 5);
    assert_int_equal(b->phase, s.shift % 5);
    assert_int_equal(b->knots, sn_noise_knots(s.horizon, 5, s.shift % 5));
    if (kind != ADAM) continue;
    assert_true(t.first.grid.phase == 0 && t.first.grid.spacing == 4);
    assert_int_equal(t.second.grid.phase, s.shift % 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting_has_a_row),
                                     cmocka_unit_test(values_are_of_their_own),
                                     cmocka_unit_test(all_at_once),
                                     cmocka_unit_test(each_alone),
                                     cmocka_unit_test(stamps_shift),
                                     cmocka_unit_test(noise_of_a_plan)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}

// One step, ours and mj_step. MuJoCo first runs the model under seeded smooth controls with the model's own options,
// and every state is kept. Then, in turn, each engine takes one step from each of these states with the same controls
// and the same warm start; only the step itself is timed. A round is one pass of both; medians over the rounds.
#include <argp.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/base/args.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/rollout_batch_private.h"
#include "physics/actuator/actuator.h"
#include "physics/collision/collision.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Settings {
  DrivenModelArgs driven;
  RolloutBatchArgs batch;  // n 0: one world beside MuJoCo's
  bool profile;
} Settings;

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &s->driven;
      state->child_inputs[1] = &s->batch.backend;
      return 0;
    case 'w':
      s->batch.n = sn_arg_list(state, "worlds", arg, 1000000, s->batch.size, SN_ARG_LIST);
      return 0;
    case ARGP_KEY_END:
      if (s->batch.backend.name && s->batch.n == 0) argp_error(state, "--backend needs --worlds");
      if (s->driven.rounds == 0) s->driven.rounds = s->batch.n > 0 ? 3 : 9;
      return 0;
    case 'p':
      s->profile = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// States of a run, with their controls: count x size numbers.
typedef struct Run {
  SnOracle o;
  mjtNum *state;
  int size, count;
} Run;

enum { KEPT = mjSTATE_INTEGRATION };

// Puts both engines into state k.
static void restore(Run *r, int k) { mj_setState(r->o.mj, r->o.d, r->state + (size_t)k * (size_t)r->size, KEPT); }

static SnCode record(Run *r, const Settings *s, SnError *err) {
  SnOracle *o = &r->o;
  r->size = (int)mj_stateSize(o->mj, KEPT);
  r->count = s->driven.steps;
  r->state = malloc(sizeof *r->state * (size_t)r->size * (size_t)r->count);
  if (!r->state) return sn_fail(err, SN_ERR_MEMORY, "no memory for %d states", r->count);
  sn_drive_start(o);
  for (int k = 0; k < r->count; ++k) {
    sn_drive_controls(o, (uint64_t)s->driven.seed, k * o->mj->opt.timestep);
    mj_getState(o->mj, o->d, r->state + (size_t)k * (size_t)r->size, KEPT);
    mj_step(o->mj, o->d);
  }
  return SN_OK;
}

// Mean time of a step over all states [us].
static double pass_ours(Run *r) {
  double total = 0;
  for (int k = 0; k < r->count; ++k) {
    restore(r, k);
    sn_oracle_copy_state(&r->o);
    const double t = sn_now_us();
    sn_step(r->o.m, &r->o.w, &r->o.lane);
    total += sn_now_us() - t;
  }
  return total / r->count;
}

static double pass_mujoco(Run *r) {
  double total = 0;
  for (int k = 0; k < r->count; ++k) {
    restore(r, k);
    const double t = sn_now_us();
    mj_step(r->o.mj, r->o.d);
    total += sn_now_us() - t;
  }
  return total / r->count;
}

typedef struct Figures {
  double sinew_us, mujoco_us, ratio, ratio_low, ratio_high;
} Figures;

static Figures measure(Run *r, int rounds) {
  double ours[BENCH_ROUNDS], theirs[BENCH_ROUNDS], ratio[BENCH_ROUNDS];
  pass_ours(r);
  pass_mujoco(r);
  for (int i = 0; i < rounds; ++i) {
    ours[i] = pass_ours(r);
    theirs[i] = pass_mujoco(r);
    ratio[i] = ours[i] / theirs[i];
  }
  Figures f = {sn_median(ours, rounds), sn_median(theirs, rounds), sn_median(ratio, rounds), 0, 0};
  f.ratio_low = ratio[0];
  f.ratio_high = ratio[rounds - 1];
  return f;
}

typedef void Stage(const SnModel *m, SnWorld *w, SnLane *lane);

static const struct {
  const char *name;
  Stage *run;
} stages[] = {
    {"kinematics", sn_kinematics},
    {"com_pos", sn_com_pos},
    {"tendon", sn_tendon},
    {"make_M", sn_make_M},
    {"factor_M", sn_factor_M},
    {"collision", sn_collision},
    {"make_constraint", sn_make_constraint},
    {"transmission", sn_transmission},
    {"velocity", sn_velocity},
    {"passive", sn_passive},
    {"reference_constraint", sn_reference_constraint},
    {"bias", sn_bias},
    {"actuation", sn_actuation},
    {"solve", sn_solve},
    {"integrate", sn_integrate},
};
enum { STAGES = sizeof stages / sizeof *stages };

// Means over all states: each of our stages run once more on its own inputs, and MuJoCo's own timers [us]; counts of
// contacts, rows and iterations.
typedef struct Profile {
  double ours[STAGES], theirs[mjNTIMER];
  double contacts, rows, iterations, mujoco_iterations;
} Profile;

static mjtNum timer_clock(void) { return sn_now_us(); }

static void profile(Run *r, Profile *p) {
  memset(p, 0, sizeof *p);
  SnOracle *o = &r->o;
  mjcb_time = timer_clock;
  for (int k = 0; k < r->count; ++k) {
    restore(r, k);
    sn_oracle_copy_state(o);
    sn_forward(o->m, &o->w, &o->lane);
    p->contacts += o->w.ncon[0];
    p->rows += o->w.nefc[0];
    p->iterations += o->w.solver_niter[0];
    for (int i = 0; i < STAGES; ++i) {
      sn_oracle_copy_state(o);
      const double t = sn_now_us();
      stages[i].run(o->m, &o->w, &o->lane);
      p->ours[i] += sn_now_us() - t;
    }
    for (int i = 0; i < mjNTIMER; ++i) o->d->timer[i].duration = 0;
    mj_step(o->mj, o->d);
    for (int i = 0; i < o->d->nisland || i == 0; ++i) p->mujoco_iterations += i < mjNISLAND ? o->d->solver_niter[i] : 0;
    for (int i = 0; i < mjNTIMER; ++i) p->theirs[i] += o->d->timer[i].duration;
  }
  mjcb_time = NULL;
  for (int i = 0; i < STAGES; ++i) p->ours[i] /= r->count;
  for (int i = 0; i < mjNTIMER; ++i) p->theirs[i] /= r->count;
  p->contacts /= r->count;
  p->rows /= r->count;
  p->iterations /= r->count;
  p->mujoco_iterations /= r->count;
}

static void print_json(const Settings *s, const Figures *f, const Profile *p) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->driven.model);
  cJSON_AddNumberToObject(root, "steps", s->driven.steps);
  cJSON_AddNumberToObject(root, "rounds", s->driven.rounds);
  cJSON_AddNumberToObject(root, "sinew_us", f->sinew_us);
  cJSON_AddNumberToObject(root, "mujoco_us", f->mujoco_us);
  cJSON_AddNumberToObject(root, "ratio", f->ratio);
  cJSON_AddNumberToObject(root, "ratio_low", f->ratio_low);
  cJSON_AddNumberToObject(root, "ratio_high", f->ratio_high);
  if (p) {
    cJSON *ours = cJSON_AddObjectToObject(root, "sinew_stages_us"),
          *theirs = cJSON_AddObjectToObject(root, "mujoco_timers_us");
    for (int i = 0; i < STAGES; ++i) cJSON_AddNumberToObject(ours, stages[i].name, p->ours[i]);
    for (int i = 0; i < mjNTIMER; ++i) cJSON_AddNumberToObject(theirs, mjTIMERSTRING[i], p->theirs[i]);
    cJSON_AddNumberToObject(root, "contacts", p->contacts);
    cJSON_AddNumberToObject(root, "rows", p->rows);
    cJSON_AddNumberToObject(root, "sinew_iterations", p->iterations);
    cJSON_AddNumberToObject(root, "mujoco_iterations", p->mujoco_iterations);
  }
  bench_print_json(root, false);
}

static void print_text(const Settings *s, const Figures *f, const Profile *p) {
  printf("%s: %d states, %d rounds, one thread\n", s->driven.model, s->driven.steps, s->driven.rounds);
  printf("sinew %.1f us, MuJoCo %.1f us, ratio %.3f (%.3f to %.3f)\n", f->sinew_us, f->mujoco_us, f->ratio,
         f->ratio_low, f->ratio_high);
  if (!p) return;
  printf("\n%.1f contacts, %.1f rows, %.2f Newton iterations (MuJoCo %.2f)\n\n", p->contacts, p->rows, p->iterations,
         p->mujoco_iterations);
  double sum = 0;
  for (int i = 0; i < STAGES; ++i) sum += p->ours[i];
  for (int i = 0; i < STAGES; ++i)
    printf("  %-22s %8.2f us  %5.1f %%\n", stages[i].name, p->ours[i], 100 * p->ours[i] / sum);
  printf("\nMuJoCo's own timers (a timer includes those of its parts)\n");
  for (int i = 0; i < mjNTIMER; ++i) printf("  %-22s %8.2f us\n", mjTIMERSTRING[i], p->theirs[i]);
}

int mode_step(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"worlds", 'w', "LIST", 0, "rollouts of N worlds at once on a backend, e.g. 1,16,256,1024,8192,16384", 0},
      {"profile", 'p', NULL, 0, "time every stage too", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &driven_model_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "Times one step of the world, ours and mj_step in turn, from the same states with the same controls, on one "
      "thread; or, with --worlds, rollouts of many worlds at once on a backend.\vExamples:\n"
      "  sinew-bench step --model hand.xml --steps 256 --profile\n"
      "  sinew-bench step --model hand.xml --backend cuda --worlds 1,16,256,1024,8192,16384\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded, or there is no such "
      "backend.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  Settings s = {.driven = {.steps = 256}};
  argp_parse(&argp, argc, argv, 0, NULL, &s);

  if (s.batch.n > 0) {
    s.batch.driven = s.driven;
    s.batch.profile = s.profile;
    return rollout_batch_run(&s.batch);
  }
  SnError err = {0};
  Run r = {.state = NULL};
  mjModel *mj = sn_oracle_read_file(s.driven.model, &err);
  SnCode code = mj ? sn_oracle_open(&r.o, mj, &err) : SN_ERR_FORMAT;
  if (code == SN_OK) code = record(&r, &s, &err);
  if (code == SN_OK) {
    const Figures f = measure(&r, s.driven.rounds);
    Profile p;
    if (s.profile) profile(&r, &p);
    if (s.driven.json)
      print_json(&s, &f, s.profile ? &p : NULL);
    else
      print_text(&s, &f, s.profile ? &p : NULL);
  } else {
    fprintf(stderr, "sinew-bench: %s: %s\n", s.driven.model, err.text);
  }
  free(r.state);
  sn_oracle_free(&r.o);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}

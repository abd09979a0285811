// The critical path of a step and of its adjoint on n lanes: how many phases there are between barriers, and how many
// loads and stores the busiest lane of each makes. What a device needs for one world follows from these, since the
// lanes of a phase run side by side and phases one after the other.
#include <argp.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/args.h"
#include "physics/model/model_file.h"
#include "physics/step/step.h"
#include "tests/cuda/critical_path/counter.h"

// What the estimate of a time is made of. The first three are taken from other devices' published latencies of loads
// that hit a cache, of barriers of a block and of shuffles of a warp; no device has confirmed them. See
// cuda/MEASURED.md.
#define CYCLES_ACCESS 30.0
#define CYCLES_BARRIER 35.0
#define CYCLES_SHUFFLE 25.0
#define CLOCK_GHZ 1.755  // of an H100

enum { WARM_UP = 60, TOP = 400, MOST_CTRL = 4096 };

typedef struct Site {
  const char *file;
  int line;
  double phases, most, shuffles, active;
} Site;

// Sums over the counted steps.
typedef struct Total {
  const char *name;
  double phases, most, shuffles, all, one, one_most;
  double mark_phases[SN_NMARK], mark_most[SN_NMARK], mark_shuffles[SN_NMARK];
  double touched[COUNTER_PLACES], accesses[COUNTER_PLACES];
  Site site[TOP];
  int nsite;
} Total;

typedef struct Options {
  const char *image;
  int lanes, steps, top;
  long seed;
  bool json;
} Options;

typedef struct Run {
  const SnModel *m;
  SnWorld *w;
  SnAdjoint *a;
} Run;

static void run_step(SnLane *lane, void *arg) {
  const Run *r = arg;
  sn_step(r->m, r->w, lane);
}
static void run_forward(SnLane *lane, void *arg) {
  const Run *r = arg;
  sn_forward(r->m, r->w, lane);
}
static void run_clear(SnLane *lane, void *arg) {
  const Run *r = arg;
  sn_adjoint_clear(r->m, r->a, lane);
}
static void run_vjp(SnLane *lane, void *arg) {
  const Run *r = arg;
  sn_step_vjp(r->m, r->w, r->a, lane);
  sn_position_vjp(r->m, r->w, r->a, lane);
}

static void must_run(int lanes, CounterBody *body, Run *r) {
  if (!counter_run(lanes, body, r)) exit(1);
}

static void add_site(Total *t, const CounterPhase *p) {
  const char *name = strrchr(p->file, '/') ? strrchr(p->file, '/') + 1 : p->file;
  int k = 0;
  while (k < t->nsite && (t->site[k].line != p->line || strcmp(t->site[k].file, name) != 0)) k++;
  if (k == TOP) return;
  if (k == t->nsite) t->site[t->nsite++] = (Site){.file = name, .line = p->line};
  t->site[k].phases++;
  t->site[k].most += (double)p->most;
  t->site[k].shuffles += p->shuffles;
  t->site[k].active += p->active;
}

static void add_run(Total *t) {
  int n;
  const CounterPhase *phase = counter_phases(&n);
  for (int i = 0; i < n; i++) {
    const CounterPhase *p = &phase[i];
    t->phases++;
    t->most += (double)p->most;
    t->shuffles += p->shuffles;
    t->all += (double)p->all;
    t->one += p->active == 1;
    t->one_most += p->active == 1 ? (double)p->most : 0;
    t->mark_phases[p->mark]++;
    t->mark_most[p->mark] += (double)p->most;
    t->mark_shuffles[p->mark] += p->shuffles;
    add_site(t, p);
  }
  for (int k = 0; k < COUNTER_PLACES; k++) {
    t->touched[k] += (double)counter_touched((CounterPlace)k);
    t->accesses[k] += (double)counter_accesses((CounterPlace)k);
  }
}

static void scale(Total *t, int steps) {
  const double by = 1.0 / steps;
  double *const number[] = {&t->phases, &t->most, &t->shuffles, &t->all, &t->one, &t->one_most};
  for (size_t i = 0; i < sizeof number / sizeof *number; i++) *number[i] *= by;
  for (int k = 0; k < SN_NMARK; k++) t->mark_phases[k] *= by, t->mark_most[k] *= by, t->mark_shuffles[k] *= by;
  for (int k = 0; k < COUNTER_PLACES; k++) t->touched[k] *= by, t->accesses[k] *= by;
  for (int k = 0; k < t->nsite; k++) {
    t->site[k].active /= t->site[k].phases;
    t->site[k].phases *= by, t->site[k].most *= by, t->site[k].shuffles *= by;
  }
}

static double microseconds(const Total *t) {
  const double cycles = t->most * CYCLES_ACCESS + t->phases * CYCLES_BARRIER + t->shuffles * CYCLES_SHUFFLE;
  return cycles / (CLOCK_GHZ * 1e3);
}

// ---- the run

// Smooth controls over the middle of their range, each with a phase of its own.
static void set_controls(const SnModel *m, SnWorld *w, const double *begin, int t) {
  for (int i = 0; i < m->nu && i < MOST_CTRL; i++) {
    const bool limited = m->actuator_ctrllimited[i];
    const double low = limited ? (double)m->actuator_ctrlrange[2 * i] : 0;
    const double high = limited ? (double)m->actuator_ctrlrange[2 * i + 1] : 1;
    w->ctrl[i] = (sn_real)(low + (high - low) * (0.5 + 0.5 * sin(begin[i] + 0.05 * t)));
  }
}

// Ends the program where a result of the lanes has other bits than that of one lane.
static void must_agree(const char *name, const sn_real *lanes, const sn_real *one, int n) {
  if (n == 0 || memcmp(lanes, one, sizeof *one * (size_t)n) == 0) return;
  fprintf(stderr, "%s depends on the number of lanes\n", name);
  exit(1);
}

static double draw(unsigned *seed) { return (double)rand_r(seed) / RAND_MAX; }

// One adjoint on the lanes, or on one, with the same bars to begin with.
static void run_adjoint(int lanes, Run *r, const double *bar) {
  const SnModel *m = r->m;
  must_run(lanes, run_forward, r);
  must_run(lanes, run_clear, r);
  for (int i = 0; i < m->nv; i++) {
    r->a->qpos_next_bar[i] = (sn_real)(1e-3 * bar[2 * i]);
    r->a->qvel_next_bar[i] = (sn_real)(1e-3 * bar[2 * i + 1]);
  }
  for (int i = 0; i < m->na; i++) r->a->act_next_bar[i] = (sn_real)1e-3;
  must_run(lanes, run_vjp, r);
}

static void count_adjoint(const Options *o, Run *r, Run *one, unsigned *seed, Total *total) {
  const SnModel *m = r->m;
  double *bar = calloc((size_t)(2 * m->nv + 1), sizeof *bar);
  if (!bar) abort();
  for (int i = 0; i < 2 * m->nv; i++) bar[i] = draw(seed);
  run_adjoint(1, one, bar);
  run_adjoint(o->lanes, r, bar);
  add_run(total);
  must_agree("the bar of qpos", r->a->qpos_bar, one->a->qpos_bar, m->nv);
  must_agree("the bar of qvel", r->a->qvel_bar, one->a->qvel_bar, m->nv);
  must_agree("the bar of ctrl", r->a->ctrl_bar, one->a->ctrl_bar, m->nu);
  free(bar);
}

// Steps both worlds; that of `one` on one lane.
static void count(const Options *o, Run *r, Run *one, Total *step, Total *adjoint, double rows[3]) {
  const SnModel *m = r->m;
  unsigned seed = (unsigned)o->seed;
  double *begin = calloc(MOST_CTRL, sizeof *begin);
  if (!begin) abort();
  for (int i = 0; i < MOST_CTRL; i++) begin[i] = 6.28 * draw(&seed);
  for (int t = 0; t < WARM_UP + o->steps; t++) {
    set_controls(m, r->w, begin, t);
    set_controls(m, one->w, begin, t);
    if (t >= WARM_UP) count_adjoint(o, r, one, &seed, adjoint);
    must_run(1, run_step, one);
    must_run(t < WARM_UP ? 1 : o->lanes, run_step, r);
    if (t < WARM_UP) continue;
    add_run(step);
    must_agree("qpos", r->w->qpos, one->w->qpos, m->nq);
    must_agree("qvel", r->w->qvel, one->w->qvel, m->nv);
    must_agree("act", r->w->act, one->w->act, m->na);
    rows[0] += r->w->ncon[0] / (double)o->steps;
    rows[1] += r->w->nefc[0] / (double)o->steps;
    rows[2] += r->w->solver_niter[0] / (double)o->steps;
  }
  free(begin);
  if (*r->w->warn) fprintf(stderr, "warnings %#x: the motion is not a good one\n", (unsigned)*r->w->warn);
  scale(step, o->steps);
  scale(adjoint, o->steps);
}

// ---- reports

static const char *const place_name[COUNTER_PLACES] = {"world", "adjoint", "model", "fields", "stack"};

static int by_most(const void *x, const void *y) {
  const double a = ((const Site *)x)->most, b = ((const Site *)y)->most;
  return (a < b) - (a > b);
}

static void print(Total *t, int top) {
  printf(
      "\n%s: %.0f phases, %.0f accesses on the critical path (%.0f of all lanes), %.0f shuffles, %.0f phases with one "
      "lane (%.0f), about %.0f us\n",
      t->name, t->phases, t->most, t->all, t->shuffles, t->one, t->one_most, microseconds(t));
  printf("  touched [KiB]:");
  for (int k = 0; k < COUNTER_PLACES; k++) printf(" %s %.1f", place_name[k], t->touched[k] / 1024);
  printf("\n  %-18s %8s %10s %10s\n", "stage", "phases", "accesses", "shuffles");
  for (int k = 0; k < SN_NMARK; k++)
    if (t->mark_phases[k] > 0)
      printf("  %-18s %8.1f %10.0f %10.0f\n", sn_mark_name((SnMark)k), t->mark_phases[k], t->mark_most[k],
             t->mark_shuffles[k]);
  qsort(t->site, (size_t)t->nsite, sizeof *t->site, by_most);
  for (int k = 0; k < t->nsite && k < top; k++)
    printf("    %-30s %5d %7.1f phases %8.0f accesses, %5.0f shuffles, %5.1f lanes\n", t->site[k].file, t->site[k].line,
           t->site[k].phases, t->site[k].most, t->site[k].shuffles, t->site[k].active);
}

static void add_numbers(cJSON *to, const Total *t) {
  cJSON *o = cJSON_AddObjectToObject(to, t->name), *stages = cJSON_AddObjectToObject(o, "stages");
  cJSON_AddNumberToObject(o, "phases", t->phases);
  cJSON_AddNumberToObject(o, "accesses", t->most);
  cJSON_AddNumberToObject(o, "shuffles", t->shuffles);
  cJSON_AddNumberToObject(o, "accesses_of_all_lanes", t->all);
  cJSON_AddNumberToObject(o, "phases_with_one_lane", t->one);
  cJSON_AddNumberToObject(o, "accesses_with_one_lane", t->one_most);
  cJSON_AddNumberToObject(o, "estimate_us", microseconds(t));
  cJSON *touched = cJSON_AddObjectToObject(o, "touched_bytes");
  for (int k = 0; k < COUNTER_PLACES; k++) cJSON_AddNumberToObject(touched, place_name[k], t->touched[k]);
  for (int k = 0; k < SN_NMARK; k++) {
    if (t->mark_phases[k] == 0) continue;
    cJSON *s = cJSON_AddObjectToObject(stages, sn_mark_name((SnMark)k));
    cJSON_AddNumberToObject(s, "phases", t->mark_phases[k]);
    cJSON_AddNumberToObject(s, "accesses", t->mark_most[k]);
    cJSON_AddNumberToObject(s, "shuffles", t->mark_shuffles[k]);
  }
}

static void print_json(const Options *o, const double rows[3], const Total *step, const Total *adjoint) {
  cJSON *all = cJSON_CreateObject();
  cJSON_AddNumberToObject(all, "lanes", o->lanes);
  cJSON_AddNumberToObject(all, "steps", o->steps);
  cJSON_AddNumberToObject(all, "seed", (double)o->seed);
  cJSON_AddNumberToObject(all, "contacts", rows[0]);
  cJSON_AddNumberToObject(all, "rows", rows[1]);
  cJSON_AddNumberToObject(all, "iterations", rows[2]);
  add_numbers(all, step);
  add_numbers(all, adjoint);
  char *text = cJSON_PrintUnformatted(all);
  if (text) puts(text);
  free(text);
  cJSON_Delete(all);
}

// ---- the program

static error_t take_option(int key, char *arg, struct argp_state *state) {
  Options *o = state->input;
  switch (key) {
    case 'l':
      o->lanes = sn_arg_count(state, "lanes", arg, COUNTER_LANES);
      return 0;
    case 'n':
      o->steps = sn_arg_count(state, "steps", arg, 10000);
      return 0;
    case 't':
      o->top = sn_arg_count(state, "top", arg, TOP);
      return 0;
    case 's':
      o->seed = sn_arg_seed(state, arg);
      return 0;
    case 'j':
      o->json = true;
      return 0;
    case ARGP_KEY_ARG:
      if (o->image) argp_error(state, "one image of a model is enough");
      o->image = arg;
      return 0;
    case ARGP_KEY_NO_ARGS:
      argp_error(state, "an image of a model is needed, as sinew-import writes it");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"lanes", 'l', "N", 0, "lanes of the world (32)", 0},
    {"steps", 'n', "N", 0, "steps that are counted, after 60 others (20)", 0},
    {"top", 't', "N", 0, "barriers that are listed, those with most accesses before them first (none)", 0},
    {"seed", 's', "N", 0, "of the controls' phases (1)", 0},
    {"json", 'j', NULL, 0, "print one object", 0},
    {0}};

static void name_memory(const Run *r, const void *world, size_t world_size, const void *bars, size_t bars_size) {
  const SnModel *m = r->m;
  counter_range(COUNTER_WORLD, world, world_size);
  counter_range(COUNTER_BARS, bars, bars_size);
  counter_range(COUNTER_FIELDS, m, sizeof *m);
  counter_range(COUNTER_FIELDS, r->w, sizeof *r->w);
  counter_range(COUNTER_FIELDS, r->a, sizeof *r->a);
  counter_lanes();
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  counter_range(COUNTER_MODEL, m->name, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
}

static void begin_run(const Run *r, void *world, void *bars) {
  sn_world_init(r->m, r->w, world);
  sn_adjoint_init(r->m, r->a, bars);
  sn_world_reset(r->m, r->w);
}

int main(int argc, char **argv) {
  static const struct argp argp = {options,
                                   take_option,
                                   "IMAGE",
                                   "Counts loads and stores on the critical path of a step over the lanes of a device, "
                                   "and ends with 1 where the lanes "
                                   "change a bit of what one lane computes.\v"
                                   "Example: critical_path hand.sinew --lanes 32 --top 20",
                                   NULL,
                                   NULL,
                                   NULL};
  Options o = {.lanes = 32, .steps = 20, .seed = 1};
  argp_parse(&argp, argc, argv, 0, NULL, &o);
  SnError err = {0};
  SnModel *m = sn_model_load_file(o.image, &err);
  if (!m) {
    fprintf(stderr, "critical_path: %s\n", err.text);
    return 1;
  }
  static Total step = {.name = "step"}, adjoint = {.name = "adjoint"};
  SnWorld w, w1;
  SnAdjoint a, a1;
  Run r = {m, &w, &a}, one = {m, &w1, &a1};
  const size_t world_size = (sn_world_size(m) + 63) / 64 * 64, bars_size = (sn_adjoint_size(m) + 63) / 64 * 64;
  void *world = aligned_alloc(64, world_size), *bars = aligned_alloc(64, bars_size);
  void *world1 = aligned_alloc(64, world_size), *bars1 = aligned_alloc(64, bars_size);
  if (!world || !bars || !world1 || !bars1) abort();
  begin_run(&r, world, bars);
  begin_run(&one, world1, bars1);
  name_memory(&r, world, world_size, bars, bars_size);
  double rows[3] = {0};
  count(&o, &r, &one, &step, &adjoint, rows);
  if (o.json) {
    print_json(&o, rows, &step, &adjoint);
  } else {
    printf("%d lanes, %d steps, seed %ld: %.1f contacts, %.1f rows, %.2f Newton iterations\n", o.lanes, o.steps, o.seed,
           rows[0], rows[1], rows[2]);
    print(&step, o.top);
    print(&adjoint, o.top);
  }
  free(world);
  free(bars);
  free(world1);
  free(bars1);
  sn_model_free(m);
  return 0;
}

// The memory of many worlds: with all of the model's capacities, of worlds that grow, and of MuJoCo's data. Each kind
// has a process of its own, so that what one left behind does not count for another. All worlds are made, and run from
// the same state, each under controls of its own.
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clients/base/args.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/reference/mujoco_reference.h"
#include "physics/step/growing_world.h"
#include "physics/step/step.h"

enum { EXIT_MEASURED = 0, EXIT_UNSUPPORTED = 2, EXIT_ERROR = 3 };

typedef struct Memory {
  const char *model;  // path of the MJCF
  int worlds, steps;
  long seed;
  bool json;
  SnOracle o;  // both engines at the start of all worlds
} Memory;

// Of all worlds together.
typedef struct Figures {
  SnError err;
  double bytes;                 // asked for
  double resident;              // by how much the process grew
  double grown;                 // how often worlds grew
  int nconmax, nefcmax, nJmax;  // the largest capacities
} Figures;

static double resident_bytes(void) {
  double kilobytes = 0;
  char line[200];
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "VmRSS: %lf", &kilobytes) == 1) break;
  if (f) fclose(f);
  return 1024 * kilobytes;
}

// Controls of world i at step k, in MuJoCo's data.
static void set_controls(Memory *s, int i, int k) {
  sn_drive_controls(&s->o, (uint64_t)s->seed + (uint64_t)i, k * s->o.mj->opt.timestep);
}

static void copy_controls(const Memory *s, SnWorld *w) {
  for (int j = 0; j < s->o.m->nu; ++j) w->ctrl[j] = (sn_real)s->o.d->ctrl[j];
}

static SnCode run_whole(Memory *s, Figures *f) {
  const SnModel *m = s->o.m;
  const size_t bytes = sn_world_size(m);
  for (int i = 0; i < s->worlds; ++i) {
    SnWorld w;
    void *memory = aligned_alloc(64, bytes);
    if (!memory) return sn_fail(&f->err, SN_ERR_MEMORY, "no memory for world %d", i);
    sn_world_init(m, &w, memory);
    sn_world_copy_state(m, &w, &s->o.w);
    for (int k = 0; k < s->steps; ++k) {
      set_controls(s, i, k);
      copy_controls(s, &w);
      sn_step(m, &w, &s->o.lane);
    }
    f->bytes += (double)bytes;
  }
  f->nconmax = m->nconmax;
  f->nefcmax = m->nefcmax;
  f->nJmax = m->nJmax;
  return SN_OK;
}

static SnCode run_growing(Memory *s, Figures *f) {
  for (int i = 0; i < s->worlds; ++i) {
    SnGrowingWorld *g = sn_growing_world_create(s->o.m, &f->err);
    if (!g) return f->err.code;
    sn_world_copy_state(&g->model, &g->world, &s->o.w);
    for (int k = 0; k < s->steps; ++k) {
      set_controls(s, i, k);
      copy_controls(s, &g->world);
      if (sn_growing_world_step(g, &f->err) != SN_OK) return f->err.code;
    }
    f->bytes += (double)sn_growing_world_bytes(g);
    f->grown += g->grown;
    f->nconmax = sn_maxi(f->nconmax, g->model.nconmax);
    f->nefcmax = sn_maxi(f->nefcmax, g->model.nefcmax);
    f->nJmax = sn_maxi(f->nJmax, g->model.nJmax);
  }
  return SN_OK;
}

static SnCode run_mujoco(Memory *s, Figures *f) {
  const mjModel *mj = s->o.mj;
  for (int i = 0; i < s->worlds; ++i) {
    mjData *d = mj_copyData(NULL, mj, s->o.d);
    if (!d) return sn_fail(&f->err, SN_ERR_MEMORY, "no memory for MuJoCo's data %d", i);
    for (int k = 0; k < s->steps; ++k) {
      set_controls(s, i, k);
      memcpy(d->ctrl, s->o.d->ctrl, sizeof *d->ctrl * (size_t)mj->nu);
      mj_step(mj, d);
    }
    f->bytes += (double)(sizeof *d + (size_t)d->nbuffer + (size_t)d->narena);
  }
  return SN_OK;
}

static const struct {
  const char *name, *text;
  SnCode (*run)(Memory *, Figures *);
} kinds[] = {
    {"whole", "the model's capacities", run_whole},
    {"growing", "grown on demand", run_growing},
    {"mujoco", "MuJoCo's data", run_mujoco},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

// Runs one kind in a process that ends with it, and frees nothing.
static SnCode measure(Memory *s, int kind, Figures *f, SnError *err) {
  int ends[2];
  memset(f, 0, sizeof *f);
  if (pipe(ends) != 0) return sn_fail(err, SN_ERR_IO, "no pipe to a process");
  const pid_t child = fork();
  if (child == 0) {
    const double before = resident_bytes();
    kinds[kind].run(s, f);
    f->resident = resident_bytes() - before;
    _exit(write(ends[1], f, sizeof *f) == (ssize_t)sizeof *f ? 0 : 1);
  }
  close(ends[1]);
  size_t got = 0;
  for (ssize_t n = 1; child > 0 && n > 0 && got<sizeof *f; got += n> 0 ? (size_t)n : 0)
    n = read(ends[0], (char *)f + got, sizeof *f - got);
  close(ends[0]);
  if (child > 0) waitpid(child, NULL, 0);
  if (got < sizeof *f) return sn_fail(err, SN_ERR_MEMORY, "%s: its process did not end well", kinds[kind].text);
  if (f->err.code != SN_OK) *err = f->err;
  return f->err.code;
}

static void print_json(const Memory *s, const Figures *f) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "model", s->model);
  cJSON_AddNumberToObject(root, "worlds", s->worlds);
  cJSON_AddNumberToObject(root, "steps", s->steps);
  for (int i = 0; i < KINDS; ++i) {
    cJSON *o = cJSON_AddObjectToObject(root, kinds[i].name);
    cJSON_AddNumberToObject(o, "bytes", f[i].bytes);
    cJSON_AddNumberToObject(o, "resident_bytes", f[i].resident);
    if (f[i].nefcmax == 0) continue;
    cJSON_AddNumberToObject(o, "contacts", f[i].nconmax);
    cJSON_AddNumberToObject(o, "rows", f[i].nefcmax);
    cJSON_AddNumberToObject(o, "entries", f[i].nJmax);
    cJSON_AddNumberToObject(o, "grown", f[i].grown);
  }
  cJSON_AddNumberToObject(root, "ratio", f[1].resident / f[0].resident);
  bench_print_json(root, false);
}

static void print_text(const Memory *s, const Figures *f) {
  printf("%s: %d worlds, %d steps each\n\n", s->model, s->worlds, s->steps);
  printf("%-24s %12s %12s %9s %7s %8s %12s\n", "", "KB a world", "resident MB", "contacts", "rows", "entries",
         "times grown");
  for (int i = 0; i < KINDS; ++i) {
    printf("%-24s %12.1f %12.1f", kinds[i].text, f[i].bytes / s->worlds / 1e3, f[i].resident / 1e6);
    if (f[i].nefcmax > 0) printf(" %9d %7d %8d %12.2f", f[i].nconmax, f[i].nefcmax, f[i].nJmax, f[i].grown / s->worlds);
    printf("\n");
  }
  printf("\nresident: %.2f of that with the model's capacities\n", f[1].resident / f[0].resident);
}

static int parse(int key, char *arg, struct argp_state *state) {
  Memory *s = state->input;
  switch (key) {
    case 'm':
      s->model = arg;
      return 0;
    case 'w':
      s->worlds = sn_arg_count(state, "worlds", arg, 100000);
      return 0;
    case 'n':
      s->steps = sn_arg_count(state, "steps", arg, 100000);
      return 0;
    case 's':
      s->seed = sn_arg_seed(state, arg);
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case ARGP_KEY_END:
      if (!s->model) argp_error(state, "--model is needed");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int mode_memory(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"model", 'm', "MODEL.xml", 0, "the model", 0},
      {"worlds", 'w', "N", 0, "how many worlds (default 1000)", 0},
      {"steps", 'n', "N", 0, "steps of each (default 100)", 0},
      {"seed", 's', "N", 0, "seed of the first world's controls (default 0)", 0},
      {"json", 'j', NULL, 0, "print JSON", 0},
      {0}};
  static const char doc[] =
      "Makes many worlds, each stepped under seeded smooth controls of its own, and prints the memory that they take: "
      "with all of the model's capacities for contacts and rows, grown on demand, and of MuJoCo's data.\vExample: "
      "sinew-bench memory --model hand.xml --worlds 1000 --json\n\n"
      "Exit status: 0 measured, 2 the model uses what is not supported, 3 it cannot be loaded, or there is not enough "
      "memory.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc};
  argp_err_exit_status = EXIT_ERROR;
  Memory s = {.worlds = 1000, .steps = 100};
  argp_parse(&argp, argc, argv, 0, NULL, &s);
  SnError err = {0};
  Figures f[KINDS];
  mjModel *mj = sn_oracle_read_file(s.model, &err);
  SnCode code = mj ? sn_oracle_open(&s.o, mj, &err) : SN_ERR_FORMAT;
  if (code == SN_OK) {
    sn_drive_start(&s.o);
    sn_oracle_copy_state(&s.o);
  }
  for (int i = 0; i < KINDS && code == SN_OK; ++i) code = measure(&s, i, &f[i], &err);
  if (code != SN_OK)
    bench_report_failure(s.model, err.text);
  else if (s.json)
    print_json(&s, f);
  else
    print_text(&s, f);
  sn_oracle_free(&s.o);
  return code == SN_OK ? EXIT_MEASURED : code == SN_ERR_UNSUPPORTED ? EXIT_UNSUPPORTED : EXIT_ERROR;
}

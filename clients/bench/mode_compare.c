// Planners side by side on one task, each with several seeds, twice: at equal plan steps (each plan with the iterations
// that its settings say) and at equal planning time. Every cell is a line of JSON as it ends; a run that was broken off
// goes on after the cells that its file has.
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clients/base/api.h"
#include "clients/base/args.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/bench_report.h"
#include "clients/bench/closed_loop_private.h"

enum { EXIT_MEASURED = 0, EXIT_ERROR = 3 };
enum {
  KEY_OUT = 256,
  KEY_PICTURE,
  KEY_QUICK,
  KEY_SEEDS,
  KEY_PLAN_SECONDS,
  KEY_ONLY,
  KEY_PLANNERS,
  KEY_EQUAL,
  KEY_MARKDOWN,
  KEY_EXECUTE
};

// A planner, with what sets it apart from the task's settings.
typedef struct Planner {
  const char *name;
  const char *settings[3];
} Planner;

static const Planner variants[] = {
    {"adam", {"planner=adam", "cfd=none"}},
    {"adam+cfd", {"planner=adam", "cfd=cfd"}},
    {"sampling-64", {"planner=sampling", "candidates=64", "noise=brown"}},
    {"sampling-256", {"planner=sampling", "candidates=256", "noise=brown"}},
    {"sampling-1024", {"planner=sampling", "candidates=1024", "noise=brown"}},
    {"sampling-2048", {"planner=sampling", "candidates=2048", "noise=brown"}},
    {"hybrid", {"planner=hybrid", "cfd=cfd"}},
    {"ilqg", {"planner=ilqg", "cfd=none"}},
};
static const char *const modes[] = {"steps", "time"};
enum {
  VARIANTS = sizeof variants / sizeof *variants,
  PLANNERS = 16,
  MODES = 2,
  SEEDS_MAX = 100,
  CELLS_MAX = PLANNERS * MODES * SEEDS_MAX
};

typedef struct Compare {
  BenchTaskArgs c;
  const char *out, *picture, *only, *equal;
  Planner planner[PLANNERS];  // (nplanner)
  int nplanner;
  char choice[PLANNERS][2][48];  // names and settings of the planners of the program
  int seeds;
  double plan_seconds;  // of mode "time"; 0: what the first planner took
  char set[400];        // settings of all planners, as given
  bool quick, quiet, all, markdown;
  cJSON *cell[CELLS_MAX];  // in order of mode, planner, seed; NULL: not run
  int done, total;
  FILE *lines;
} Compare;

// Whether the cells of a mode are asked for.
static bool is_asked(const Compare *x, int mode) { return !x->equal || strcmp(x->equal, modes[mode]) == 0; }

static bool takes_part(const Compare *x, int planner) {
  if (!x->only) return true;
  const size_t n = strlen(x->planner[planner].name);
  for (const char *at = x->only; (at = strstr(at, x->planner[planner].name)); ++at)
    if ((at == x->only || at[-1] == ',') && (at[n] == '\0' || at[n] == ',')) return true;
  return false;
}

static cJSON **cell_of(Compare *x, int mode, int planner, int seed) {
  return &x->cell[(mode * PLANNERS + planner) * SEEDS_MAX + seed];
}

static double number_of(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  return cJSON_IsNumber(x) ? x->valuedouble : NAN;
}

static const char *text_of(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  return cJSON_IsString(x) ? x->valuestring : "";
}

//------------------------------------------------------------------------------------ the file

// What sets a planner apart from the task's settings, as text.
static const char *settings_of(const Planner *planner, char text[200]) {
  text[0] = '\0';
  for (int i = 0; i < 3 && planner->settings[i]; ++i)
    snprintf(text + strlen(text), 200 - strlen(text), "%s%s", i ? " " : "", planner->settings[i]);
  return text;
}

// Whether a line of the file is of this mode and planner; plans at equal time had the time that is asked for.
static bool is_cell(const Compare *x, const cJSON *o, int mode, int planner) {
  char own[200];
  return is_asked(x, mode) && takes_part(x, planner) && strcmp(text_of(o, "mode"), modes[mode]) == 0 &&
         strcmp(text_of(o, "cell"), x->planner[planner].name) == 0 &&
         strcmp(text_of(o, "own"), settings_of(x->planner + planner, own)) == 0 &&
         (mode == 0 || x->plan_seconds == 0 || number_of(o, "plan_seconds") == x->plan_seconds);
}

// Does a line of the file belong to this comparison? Then its place.
static cJSON **place_of(Compare *x, const cJSON *o) {
  const char *backend = cJSON_HasObjectItem(o, "backend") ? text_of(o, "backend") : "cpu";
  if (strcmp(text_of(o, "task"), x->c.task) != 0 || strcmp(backend, bench_backend_name(&x->c.backend)) != 0 ||
      number_of(o, "seconds") != x->c.seconds || number_of(o, "execute") != x->c.execute ||
      strcmp(text_of(o, "set"), x->set) != 0)
    return NULL;
  const int seed = (int)number_of(o, "seed") - 1;
  for (int m = 0; m < MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p)
      if (seed >= 0 && seed < x->seeds && is_cell(x, o, m, p)) return cell_of(x, m, p, seed);
  return NULL;
}

// Takes over the cells that the file has. A last line that was cut short is no cell.
static SinewStatus read_out(Compare *x, SinewError *err) {
  FILE *in = fopen(x->out, "r");
  if (!in) return errno == ENOENT ? SINEW_OK : api_fail(err, SINEW_ERR_IO, "%s: %s", x->out, strerror(errno));
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, in) > 0) {
    cJSON *o = cJSON_Parse(line);
    cJSON **place = o ? place_of(x, o) : NULL;
    if (place && !*place) {
      *place = o;
      x->done++;
    } else {
      cJSON_Delete(o);
    }
  }
  free(line);
  fclose(in);
  return SINEW_OK;
}

// Appends; behind a line that was cut short on a new one.
static SinewStatus open_out(Compare *x, SinewError *err) {
  x->lines = fopen(x->out, "a+");
  if (!x->lines) return api_fail(err, SINEW_ERR_IO, "%s: %s", x->out, strerror(errno));
  if (fseek(x->lines, -1, SEEK_END) == 0 && fgetc(x->lines) != '\n') fputc('\n', x->lines);
  fseek(x->lines, 0, SEEK_END);
  return SINEW_OK;
}

static void write_line(FILE *out, const cJSON *o) {
  char *text = cJSON_PrintUnformatted(o);
  fprintf(out, "%s\n", text);
  fflush(out);
  cJSON_free(text);
}

//------------------------------------------------------------------------------------ progress

// Seconds that a cell takes: the mean of those of its kind that are done, or of all; NaN when none is.
static double expected(Compare *x, int mode, int planner) {
  double kind = 0, all = 0;
  int nkind = 0, nall = 0;
  for (int m = 0; m < MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p)
      for (int s = 0; s < x->seeds; ++s) {
        const cJSON *o = *cell_of(x, m, p, s);
        if (!o) continue;
        all += number_of(o, "wall");
        ++nall;
        if (m != mode || p != planner) continue;
        kind += number_of(o, "wall");
        ++nkind;
      }
  return nkind ? kind / nkind : nall ? all / nall : NAN;
}

static double time_left(Compare *x) {
  double left = 0;
  for (int m = 0; m < MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p)
      for (int s = 0; s < x->seeds; ++s)
        if (is_asked(x, m) && takes_part(x, p) && !*cell_of(x, m, p, s)) left += expected(x, m, p);
  return left;
}

typedef struct Progress {
  Compare *x;
  int mode, planner, seed;
} Progress;

static void show_progress(void *user, double part) {
  const Progress *at = user;
  Compare *x = at->x;
  if (x->quiet) return;
  const double left = time_left(x) - part * expected(x, at->mode, at->planner);
  char text[32] = "unknown";
  if (isfinite(left)) snprintf(text, sizeof text, "%.0f s", left > 0 ? left : 0);
  bench_progress("%d of %d cells; %s, equal %s, seed %d: %.0f %%; left: %s", x->done, x->total,
                 x->planner[at->planner].name, modes[at->mode], at->seed + 1, 100 * part, text);
}

//------------------------------------------------------------------------------------ running

// Median of a number over the seeds of a mode and planner; NaN when none is there.
static double median_of(Compare *x, int mode, int planner, const char *name) {
  double value[SEEDS_MAX];
  int n = 0;
  for (int s = 0; s < x->seeds; ++s) {
    const cJSON *o = *cell_of(x, mode, planner, s);
    if (o && isfinite(number_of(o, name))) value[n++] = number_of(o, name);
  }
  return sn_median(value, n);
}

// Time for a plan in mode "time": as asked for, that of cells of this mode which the file has, or what the first
// planner that takes part took at equal steps.
static double plan_seconds(Compare *x) {
  if (x->plan_seconds > 0) return x->plan_seconds;
  for (int p = 0; p < x->nplanner; ++p)
    if (isfinite(median_of(x, 1, p, "plan_seconds"))) return median_of(x, 1, p, "plan_seconds");
  for (int p = 0; p < x->nplanner; ++p)
    if (takes_part(x, p)) return 1e-3 * median_of(x, 0, p, "ms_per_plan");
  return NAN;
}

static SinewStatus run_cell(Compare *x, int mode, int planner, int seed, SinewError *err) {
  BenchTaskArgs c = x->c;
  char own[200];
  for (int i = 0; i < 3 && x->planner[planner].settings[i]; ++i) {
    if (c.nsettings == BENCH_SETTINGS) return api_fail(err, SINEW_ERR_LIMIT, "too many settings");
    c.settings[c.nsettings++] = x->planner[planner].settings[i];
  }
  c.seed = (uint64_t)seed + 1;
  if (mode == 1) c.plan_seconds = plan_seconds(x);
  Progress at = {x, mode, planner, seed};
  ClosedLoopResult result;
  SinewStatus status = closed_loop_run(&c, &result, show_progress, &at, err);
  if (status != SINEW_OK) return status;
  cJSON *o = closed_loop_report(&c, &result);
  cJSON_AddStringToObject(o, "cell", x->planner[planner].name);
  cJSON_AddStringToObject(o, "mode", modes[mode]);
  cJSON_AddStringToObject(o, "set", x->set);
  cJSON_AddStringToObject(o, "own", settings_of(x->planner + planner, own));
  closed_loop_free(&result);
  *cell_of(x, mode, planner, seed) = o;
  x->done++;
  write_line(x->lines, o);
  return SINEW_OK;
}

static SinewStatus run_all(Compare *x, SinewError *err) {
  for (int m = 0; m < MODES; ++m)
    for (int s = 0; s < x->seeds; ++s)
      for (int p = 0; p < x->nplanner; ++p) {
        if (!is_asked(x, m) || !takes_part(x, p) || *cell_of(x, m, p, s)) continue;
        const SinewStatus status = run_cell(x, m, p, s, err);
        if (status != SINEW_OK) return status;
      }
  if (!x->quiet) bench_progress_end();
  return SINEW_OK;
}

//------------------------------------------------------------------------------------ reports

// How many of the seeds of a mode and planner were solved, as "4/5".
static void count_solved(Compare *x, int mode, int planner, char share[32]) {
  int solved = 0, n = 0;
  for (int s = 0; s < x->seeds; ++s) {
    const cJSON *o = *cell_of(x, mode, planner, s);
    n += o != NULL;
    solved += o && cJSON_IsTrue(cJSON_GetObjectItem(o, "success"));
  }
  snprintf(share, 32, "%d/%d", solved, n);
}

// Rows of a table in Markdown, without its head: of each planner all that its seeds came to.
static void print_markdown(Compare *x) {
  for (int m = 0; m < MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p) {
      char share[32];
      if (!is_asked(x, m) || !takes_part(x, p)) continue;
      count_solved(x, m, p, share);
      printf("| `%s` | %s%s%s | %s | %.4g | %.4g:", x->c.task, x->planner[p].name, x->equal ? "" : ", equal ",
             x->equal ? "" : modes[m], share, median_of(x, m, p, "cost_mean"), median_of(x, m, p, "cost_end"));
      for (int s = 0; s < x->seeds; ++s) printf(" %.3g", number_of(*cell_of(x, m, p, s), "cost_end"));
      printf(" | %.1f | %.1f | %.1f |\n", median_of(x, m, p, "iterations"), median_of(x, m, p, "ms_per_plan"),
             median_of(x, m, p, "cpu_ms_per_plan"));
    }
}

static void print_table(Compare *x) {
  printf("%s, %g s, %d seeds; equal time: %.4g ms a plan\n\n", x->c.task, x->c.seconds, x->seeds,
         1e3 * plan_seconds(x));
  printf("%-6s %-14s %7s %12s %12s %12s %10s\n", "equal", "planner", "solved", "cost at end", "mean cost", "ms a plan",
         "iterations");
  for (int m = 0; m < MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p) {
      char share[32];
      if (!is_asked(x, m) || !takes_part(x, p)) continue;
      count_solved(x, m, p, share);
      printf("%-6s %-14s %7s %12.5g %12.5g %12.2f %10.1f\n", modes[m], x->planner[p].name, share,
             median_of(x, m, p, "cost_end"), median_of(x, m, p, "cost_mean"), median_of(x, m, p, "ms_per_plan"),
             median_of(x, m, p, "iterations"));
    }
  printf("\nMedians over the seeds.\n");
}

// The median, the least and the largest over the seeds of the cost at each time: a block of "time cost least largest" a
// planner and mode, apart by two blank lines, as gnuplot reads them by index. False when the file cannot be written.
static bool write_curves(Compare *x, const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return false;
  for (int m = 0; m < MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p) {
      if (!is_asked(x, m) || !takes_part(x, p)) continue;
      const cJSON *first = *cell_of(x, m, p, 0);
      const int n = first ? cJSON_GetArraySize(cJSON_GetObjectItem(first, "time")) : 0;
      fprintf(out, "# equal %s, %s\n", modes[m], x->planner[p].name);
      for (int i = 0; i < n; ++i) {
        double value[SEEDS_MAX], least = INFINITY, largest = -INFINITY;
        int k = 0;
        for (int s = 0; s < x->seeds; ++s) {
          const cJSON *o = *cell_of(x, m, p, s);
          const cJSON *c = o ? cJSON_GetArrayItem(cJSON_GetObjectItem(o, "cost"), i) : NULL;
          if (!cJSON_IsNumber(c)) continue;
          value[k++] = c->valuedouble;
          least = fmin(least, c->valuedouble);
          largest = fmax(largest, c->valuedouble);
        }
        const double time = cJSON_GetArrayItem(cJSON_GetObjectItem(first, "time"), i)->valuedouble;
        if (k > 0) fprintf(out, "%.6g %.9g %.9g %.9g\n", time, sn_median(value, k), least, largest);
      }
      fprintf(out, "\n\n");
    }
  return fclose(out) == 0;
}

static const char script[] =
    "if (ARG2[strlen(ARG2)-3:*] eq '.svg') {\n"
    "  set terminal svg noenhanced size 1100,500 font 'sans,11' background 'white'\n"
    "} else {\n"
    "  set terminal pngcairo noenhanced size 1100,500 font 'sans,11'\n"
    "}\n"
    "set output ARG2\n"
    "both = ARG6 eq ''\n"
    "set multiplot layout 1,(both ? 2 : 1) title ARG3 font ',14'\n"
    "set grid lc rgb '#dddddd'\n"
    "set logscale y\n"
    "set xlabel 'time [s]'\n"
    "set ylabel 'cost: median of the seeds, and all of them'\n"
    "set style fill transparent solid 0.12 noborder\n"
    "n = int(ARG4)\n"
    "do for [m=0:both] {\n"
    "  set title (both ? m == 0 : ARG6 eq 'steps') ? 'equal plan steps' : 'equal planning time'\n"
    "  plot for [p=0:n-1] ARG1 index (m*n+p) using 1:3:4 with filledcurves lc p+1 notitle, \\\n"
    "    for [p=0:n-1] ARG1 index (m*n+p) using 1:2 with lines lw 2 lc p+1 title word(ARG5, p+1)\n"
    "}\n"
    "unset multiplot\n";

// Runs gnuplot and waits. False when it is missing or fails.
static bool run_gnuplot(char *const arguments[]) {
  pid_t pid;
  int status;
  if (posix_spawnp(&pid, "gnuplot", NULL, NULL, arguments, environ) != 0) return false;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool draw(Compare *x) {
  char curves[] = "/tmp/sinew-compare.XXXXXX", commands[] = "/tmp/sinew-compare.XXXXXX", title[300], count[16],
       names[300] = "";
  int n = 0;
  for (int p = 0; p < x->nplanner; ++p) {
    if (!takes_part(x, p)) continue;
    const size_t at = strlen(names);
    snprintf(names + at, sizeof names - at, "%s%s", n++ ? " " : "", x->planner[p].name);
  }
  snprintf(title, sizeof title, "%s, %d seeds", x->c.task, x->seeds);
  snprintf(count, sizeof count, "%d", n);
  const int fd = mkstemp(commands), other = mkstemp(curves);
  bool ok = fd >= 0 && other >= 0 && write(fd, script, sizeof script - 1) == (ssize_t)sizeof script - 1 &&
            write_curves(x, curves);
  char *const arguments[] = {(char *)"gnuplot",
                             (char *)"-c",
                             commands,
                             curves,
                             (char *)(uintptr_t)x->picture,
                             title,
                             count,
                             names,
                             (char *)(uintptr_t)(x->equal ? x->equal : ""),
                             NULL};
  ok = ok && run_gnuplot(arguments);
  if (fd >= 0) close(fd);
  if (other >= 0) close(other);
  unlink(commands);
  unlink(curves);
  return ok;
}

//------------------------------------------------------------------------------------ arguments

static int parse(int key, char *arg, struct argp_state *state) {
  Compare *x = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &x->c;
      state->child_inputs[1] = &x->c.backend;
      return 0;
    case 's':
      x->c.seconds = sn_arg_seconds(state, "seconds", arg);
      return 0;
    case KEY_SEEDS:
      x->seeds = sn_arg_count(state, "seeds", arg, SEEDS_MAX);
      return 0;
    case KEY_PLAN_SECONDS:
      x->plan_seconds = sn_arg_seconds(state, "plan-seconds", arg);
      return 0;
    case KEY_QUICK:
      x->quick = true;
      return 0;
    case KEY_OUT:
      x->out = arg;
      return 0;
    case KEY_PICTURE:
      x->picture = arg;
      return 0;
    case KEY_ONLY:
      x->only = arg;
      return 0;
    case KEY_EXECUTE:
      x->c.execute = sn_arg_count(state, "execute", arg, 100000);
      return 0;
    case KEY_PLANNERS:
      x->all = true;
      return 0;
    case KEY_EQUAL:
      if (strcmp(arg, modes[0]) != 0 && strcmp(arg, modes[1]) != 0)
        argp_error(state, "--equal %s: steps or time is wanted", arg);
      x->equal = arg;
      return 0;
    case KEY_MARKDOWN:
      x->markdown = true;
      return 0;
    case 'q':
      x->quiet = true;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// The planners of the program, each with the task's own settings.
static void list_planners(Compare *x) {
  const SinewSetting *s;
  for (int i = 0; (s = sinew_setting(i)); ++i)
    if (strcmp(s->name, "planner") == 0) break;
  for (const char *at = s ? s->choices : NULL; at && x->nplanner < PLANNERS; at = *at ? at + 1 : NULL) {
    const int n = (int)strcspn(at, "|"), k = x->nplanner++;
    snprintf(x->choice[k][0], sizeof x->choice[k][0], "%.*s", n, at);
    snprintf(x->choice[k][1], sizeof x->choice[k][1], "planner=%.*s", n, at);
    x->planner[k] = (Planner){x->choice[k][0], {x->choice[k][1]}};
    at += n;
  }
}

// Completes the arguments: --quick, and the planners that take part.
static SinewStatus settle(Compare *x, SinewError *err) {
  if (x->all) {
    list_planners(x);
  } else {
    x->nplanner = VARIANTS;
    memcpy(x->planner, variants, sizeof variants);
  }
  if (x->seeds == 0) x->seeds = x->quick ? 1 : 5;
  if (x->c.seconds == 0) x->c.seconds = x->quick ? 0.2 : 1;
  for (int i = 0; i < x->c.nsettings; ++i)
    snprintf(x->set + strlen(x->set), sizeof x->set - strlen(x->set), "%s ", x->c.settings[i]);
  int n = 0;
  char names[400] = "";
  for (int p = 0; p < x->nplanner; ++p) {
    n += takes_part(x, p);
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", p ? ", " : "", x->planner[p].name);
  }
  x->total = (x->equal ? 1 : MODES) * n * x->seeds;
  if (n == 0) return api_fail(err, SINEW_ERR_ARGUMENT, "--only %s names none of %s", x->only, names);
  if (x->equal && strcmp(x->equal, "time") == 0 && !(x->plan_seconds > 0))
    return api_fail(err, SINEW_ERR_ARGUMENT, "--equal time: --plan-seconds is needed");
  return SINEW_OK;
}

int mode_compare(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"quick", KEY_QUICK, NULL, 0, "one seed and 0.2 s, where --seeds and --seconds do not say otherwise", 0},
      {"seeds", KEY_SEEDS, "N", 0, "seeds 1 to N (default 5)", 0},
      {"seconds", 's', "S", 0, "of motion (default 1)", 0},
      {"plan-seconds", KEY_PLAN_SECONDS, "S", 0,
       "time for each plan at equal planning time (default: what the first planner took at equal steps)", 0},
      {"execute", KEY_EXECUTE, "STEPS", 0, "time steps between two plans (default 16)", 0},
      {"only", KEY_ONLY, "LIST", 0, "planners that take part, e.g. adam,sampling-1024 (default: all)", 0},
      {"planners", KEY_PLANNERS, NULL, 0, "instead, all planners that there are, with the task's own settings", 0},
      {"equal", KEY_EQUAL, "steps|time", 0, "equal plan steps or equal planning time alone (default: both)", 0},
      {"markdown", KEY_MARKDOWN, NULL, 0, "print rows of a table in Markdown", 0},
      {"out", KEY_OUT, "FILE", 0, "lines of JSON; a file that is there is gone on with (default sinew-compare.jsonl)",
       0},
      {"picture", KEY_PICTURE, "FILE", 0, "where to draw (default sinew-compare.png); needs gnuplot", 0},
      {"quiet", 'q', NULL, 0, "no progress", 0},
      {0}};
  static const struct argp_child children[] = {{.argp = &bench_task_argp}, {.argp = &bench_backend_argp}, {0}};
  static const char doc[] =
      "Compares planners on a task: adam, adam with contacts from distance, sampling with 64, 256, 1024 and 2048 "
      "candidates "
      "(brown noise), hybrid with contacts from distance and ilqg, at equal plan steps and at equal planning "
      "time.\vExample: sinew-bench compare --task hand_pose "
      "--quick --out pose.jsonl\n\nExit status: 0 all cells are measured, 3 not.";
  const struct argp argp = {.options = options, .parser = parse, .doc = doc, .children = children};
  argp_err_exit_status = EXIT_ERROR;
  static Compare x;  // too large for the stack
  x = (Compare){.c = bench_default_task_args(), .out = "sinew-compare.jsonl", .picture = "sinew-compare.png"};
  x.c.seconds = 0;
  argp_parse(&argp, argc, argv, 0, NULL, &x);

  SinewError err = {0};
  SinewStatus status = settle(&x, &err);
  if (status == SINEW_OK) status = read_out(&x, &err);
  if (status == SINEW_OK && x.done > 0 && !x.quiet) fprintf(stderr, "%s has %d of %d cells\n", x.out, x.done, x.total);
  if (status == SINEW_OK) status = open_out(&x, &err);
  if (status == SINEW_OK) status = run_all(&x, &err);
  if (x.lines) fclose(x.lines);
  if (status == SINEW_OK) {
    if (x.markdown)
      print_markdown(&x);
    else
      print_table(&x);
    fprintf(stderr, draw(&x) ? "picture: %s\n" : "no picture %s: gnuplot is missing or failed\n", x.picture);
  } else {
    fprintf(stderr, "sinew-bench: %s\n", err.text);
  }
  for (int i = 0; i < CELLS_MAX; ++i) cJSON_Delete(x.cell[i]);
  return status == SINEW_OK ? EXIT_MEASURED : EXIT_ERROR;
}

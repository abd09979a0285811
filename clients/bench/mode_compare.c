// Planners side by side on one task: the arguments, and the planners that there are.
#include <argp.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/base/args.h"
#include "clients/bench/bench.h"
#include "clients/bench/compare_private.h"

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
  KEY_PROCESSOR,
  KEY_REPORT,
  KEY_MARKDOWN,
  KEY_EXECUTE
};

static const ComparePlanner variants[] = {
    {"adam", {"planner=adam", "cfd=none"}},
    {"adam+cfd", {"planner=adam", "cfd=cfd"}},
    {"sampling-64", {"planner=sampling", "candidates=64", "noise=brown"}},
    {"sampling-256", {"planner=sampling", "candidates=256", "noise=brown"}},
    {"sampling-1024", {"planner=sampling", "candidates=1024", "noise=brown"}},
    {"sampling-2048", {"planner=sampling", "candidates=2048", "noise=brown"}},
    {"hybrid", {"planner=hybrid", "cfd=cfd"}},
    {"ilqg", {"planner=ilqg", "cfd=none"}},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

// Returns whether a name ends so that gnuplot draws what it says.
static bool is_picture(const char *name) {
  const size_t n = strlen(name);
  return n > 4 && (strcmp(name + n - 4, ".png") == 0 || strcmp(name + n - 4, ".svg") == 0);
}

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
      x->seeds = sn_arg_count(state, "seeds", arg, COMPARE_SEEDS);
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
      if (!is_picture(arg)) argp_error(state, "--picture %s: a name that ends with .png or .svg is wanted", arg);
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
      if (strcmp(arg, compare_modes[0]) != 0 && strcmp(arg, compare_modes[1]) != 0)
        argp_error(state, "--equal %s: steps or time is wanted", arg);
      x->equal = arg;
      return 0;
    case KEY_PROCESSOR:
      x->processor = true;
      return 0;
    case KEY_REPORT:
      x->report = true;
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
  for (const char *at = s ? s->choices : NULL; at && x->nplanner < COMPARE_PLANNERS; at = *at ? at + 1 : NULL) {
    const int n = (int)strcspn(at, "|"), k = x->nplanner++;
    snprintf(x->choice[k][0], sizeof x->choice[k][0], "%.*s", n, at);
    snprintf(x->choice[k][1], sizeof x->choice[k][1], "planner=%.*s", n, at);
    x->planner[k] = (ComparePlanner){x->choice[k][0], {x->choice[k][1]}};
    at += n;
  }
}

// Refuses a name of --only that no planner has.
static SinewStatus check_only(const Compare *x, const char *names, SinewError *err) {
  for (const char *at = x->only; at && *at; at += strcspn(at, ","), at += *at == ',') {
    const size_t n = strcspn(at, ",");
    int p = 0;
    while (p < x->nplanner && (strlen(x->planner[p].name) != n || strncmp(x->planner[p].name, at, n) != 0)) ++p;
    if (p == x->nplanner)
      return api_fail(err, SINEW_ERR_ARGUMENT, "--only %s: '%.*s' is none of %s", x->only, (int)n, at, names);
  }
  return SINEW_OK;
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
    const int cells = compare_asks(x, COMPARE_STEPS, p) + compare_asks(x, COMPARE_TIME, p);
    x->total += cells * x->seeds;
    n += cells > 0;
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", p ? ", " : "", x->planner[p].name);
  }
  const SinewStatus known = check_only(x, names, err);
  if (known != SINEW_OK) return known;
  if (n == 0) return api_fail(err, SINEW_ERR_ARGUMENT, "--only names none of %s", names);
  if (x->processor && x->plan_seconds > 0)
    return api_fail(err, SINEW_ERR_ARGUMENT,
                    "--processor and --plan-seconds: only one of them says how long a plan takes");
  if (x->equal && strcmp(x->equal, "time") == 0 && !x->report && !(x->plan_seconds > 0) && !x->processor)
    return api_fail(err, SINEW_ERR_ARGUMENT, "--equal time: --plan-seconds or --processor is needed");
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
      {"processor", KEY_PROCESSOR, NULL, 0,
       "equal time is of the processor: each planner gets the iterations or candidates that take as much of it as a "
       "plan "
       "of the task's own planner, measured by short runs; such runs depend on their seeds alone",
       0},
      {"report", KEY_REPORT, NULL, 0, "run nothing: report what the file has of this comparison", 0},
      {"markdown", KEY_MARKDOWN, NULL, 0, "print a table in Markdown", 0},
      {"out", KEY_OUT, "FILE", 0, "lines of JSON; a file that is there is gone on with (default sinew-compare.jsonl)",
       0},
      {"picture", KEY_PICTURE, "FILE", 0, "where to draw, .png or .svg (default sinew-compare.png); needs gnuplot", 0},
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
  if (status == SINEW_OK) status = compare_find_subject(&x, &err);
  if (status == SINEW_OK) status = compare_read(&x, &err);
  if (status == SINEW_OK && x.done > 0 && !x.quiet) fprintf(stderr, "%s has %d of %d cells\n", x.out, x.done, x.total);
  if (status == SINEW_OK && !x.report) status = compare_run(&x, &err);
  if (status == SINEW_OK && x.done == 0)
    status = api_fail(&err, SINEW_ERR_NOT_FOUND, "%s has no cell of this comparison", x.out);
  if (status == SINEW_OK) {
    if (x.markdown)
      compare_print_markdown(&x);
    else
      compare_print_table(&x);
    fprintf(stderr, compare_draw(&x) ? "picture: %s\n" : "no picture %s: gnuplot is missing or failed\n", x.picture);
  } else {
    fprintf(stderr, "sinew-bench: %s\n", err.text);
  }
  for (int i = 0; i < COMPARE_CELLS; ++i) cJSON_Delete(x.cell[i]);
  cJSON_Delete(x.own);
  return status == SINEW_OK ? EXIT_MEASURED : EXIT_ERROR;
}

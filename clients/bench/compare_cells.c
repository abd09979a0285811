#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clients/base/api.h"
#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench.h"
#include "clients/bench/compare_private.h"

const char *const compare_modes[COMPARE_MODES] = {"steps", "time"};

// Whether a planner takes part: all do, or those that --only names.
static bool takes_part(const Compare *x, int planner) {
  if (!x->only) return true;
  const size_t n = strlen(x->planner[planner].name);
  for (const char *at = x->only; (at = strstr(at, x->planner[planner].name)); ++at)
    if ((at == x->only || at[-1] == ',') && (at[n] == '\0' || at[n] == ',')) return true;
  return false;
}

// Whether a setting is a number of candidates.
static bool is_candidates(const char *setting) {
  return strncmp(setting, "candidates=", sizeof "candidates=" - 1) == 0;
}

// Whether the cells of a mode have equal processor time.
static bool by_work(const Compare *x, int mode) { return mode == COMPARE_TIME && x->processor; }

const char *compare_name(const Compare *x, int mode, int planner) {
  const ComparePlanner *p = x->planner + planner;
  for (int i = 0; i < COMPARE_SETTINGS && p->settings[i]; ++i)
    if (by_work(x, mode) && is_candidates(p->settings[i])) return "sampling";
  return p->name;
}

// Whether two planners are the same but for their number of candidates, which equal processor time decides.
static bool same_but_for_candidates(const ComparePlanner *a, const ComparePlanner *b) {
  for (int i = 0; i < COMPARE_SETTINGS; ++i) {
    const char *one = a->settings[i] ? a->settings[i] : "", *other = b->settings[i] ? b->settings[i] : "";
    if (!(is_candidates(one) && is_candidates(other)) && strcmp(one, other) != 0) return false;
  }
  return true;
}

bool compare_asks(const Compare *x, int mode, int planner) {
  if ((x->equal && strcmp(x->equal, compare_modes[mode]) != 0) || !takes_part(x, planner)) return false;
  for (int p = 0; by_work(x, mode) && p < planner; ++p)
    if (takes_part(x, p) && same_but_for_candidates(x->planner + p, x->planner + planner)) return false;
  return true;
}

cJSON **compare_cell(Compare *x, int mode, int planner, int seed) {
  return &x->cell[(mode * COMPARE_PLANNERS + planner) * COMPARE_SEEDS + seed];
}

double compare_number(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  return cJSON_IsNumber(x) ? x->valuedouble : NAN;
}

const char *compare_text(const cJSON *o, const char *name) {
  const cJSON *x = cJSON_GetObjectItem(o, name);
  return cJSON_IsString(x) ? x->valuestring : "";
}

//------------------------------------------------------------------------------------ the file

// Whether a line of the file is of this mode and planner; plans at equal time had the time, or the work, that is asked
// for.
static bool is_cell(const Compare *x, const cJSON *o, int mode, int planner) {
  char own[COMPARE_TEXT];
  compare_own_settings(x, mode, planner, own);
  if (!compare_asks(x, mode, planner) || strcmp(compare_text(o, "mode"), compare_modes[mode]) != 0 ||
      strcmp(compare_text(o, "cell"), compare_name(x, mode, planner)) != 0 || strcmp(compare_text(o, "own"), own) != 0)
    return false;
  if (mode == COMPARE_STEPS) return true;
  if (x->processor != cJSON_HasObjectItem(o, "work")) return false;
  return x->processor || x->plan_seconds == 0 || compare_number(o, "plan_seconds") == x->plan_seconds;
}

// Whether a line of the file was measured on as many threads as are asked for. A report takes any, unless some are
// asked for: the file may be another machine's.
static bool has_threads(const Compare *x, const cJSON *o) {
  const bool any = x->report && x->c.backend.threads == 0;
  return any || compare_number(o, "threads") == bench_backend_threads(&x->c.backend);
}

// Does a line of the file belong to this comparison? Then its place.
static cJSON **place_of(Compare *x, const cJSON *o) {
  const char *backend = cJSON_HasObjectItem(o, "backend") ? compare_text(o, "backend") : "cpu";
  if (strcmp(compare_text(o, "task"), x->c.task) != 0 || strcmp(backend, bench_backend_name(&x->c.backend)) != 0 ||
      compare_number(o, "seconds") != x->c.seconds || compare_number(o, "execute") != x->c.execute ||
      strcmp(compare_text(o, "set"), x->set) != 0 || !has_threads(x, o))
    return NULL;
  if (cJSON_HasObjectItem(o, "subject") && strcmp(compare_text(o, "subject"), x->subject) != 0) return NULL;
  const int seed = (int)compare_number(o, "seed") - 1;
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p)
      if (seed >= 0 && seed < x->seeds && is_cell(x, o, m, p)) return compare_cell(x, m, p, seed);
  return NULL;
}

SinewStatus compare_read(Compare *x, SinewError *err) {
  struct stat is;
  // A pipe or a device is written to alone: reading it could wait, or never end.
  if (stat(x->out, &is) == 0 && !S_ISREG(is.st_mode)) return SINEW_OK;
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
  struct stat is;
  x->lines = fopen(x->out, stat(x->out, &is) == 0 && !S_ISREG(is.st_mode) ? "a" : "a+");
  if (!x->lines) return api_fail(err, SINEW_ERR_IO, "%s: %s", x->out, strerror(errno));
  if (fseek(x->lines, -1, SEEK_END) == 0 && fgetc(x->lines) != '\n') fputc('\n', x->lines);
  fseek(x->lines, 0, SEEK_END);
  return SINEW_OK;
}

static SinewStatus write_line(const Compare *x, const cJSON *o, SinewError *err) {
  char *text = cJSON_PrintUnformatted(o);
  const bool good = text && fprintf(x->lines, "%s\n", text) > 0 && fflush(x->lines) == 0;
  cJSON_free(text);
  return good ? SINEW_OK : api_fail(err, SINEW_ERR_IO, "%s: %s", x->out, strerror(errno));
}

//------------------------------------------------------------------------------------ progress

// Seconds that a cell takes: the mean of those of its kind that are done, or of all; NaN when none is.
static double expected(Compare *x, int mode, int planner) {
  double kind = 0, all = 0;
  int nkind = 0, nall = 0;
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p)
      for (int s = 0; s < x->seeds; ++s) {
        const cJSON *o = *compare_cell(x, m, p, s);
        if (!o) continue;
        all += compare_number(o, "wall");
        ++nall;
        if (m != mode || p != planner) continue;
        kind += compare_number(o, "wall");
        ++nkind;
      }
  return nkind ? kind / nkind : nall ? all / nall : NAN;
}

static double time_left(Compare *x) {
  double left = 0;
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int p = 0; p < x->nplanner; ++p)
      for (int s = 0; s < x->seeds; ++s)
        if (compare_asks(x, m, p) && !*compare_cell(x, m, p, s)) left += expected(x, m, p);
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
  sn_progress("%d of %d cells; %s, equal %s, seed %d: %.0f %%; left: %s", x->done, x->total,
              x->planner[at->planner].name, compare_modes[at->mode], at->seed + 1, 100 * part, text);
}

//------------------------------------------------------------------------------------ running

double compare_median(Compare *x, int mode, int planner, const char *name) {
  double value[COMPARE_SEEDS];
  int n = 0;
  for (int s = 0; s < x->seeds; ++s) {
    const cJSON *o = *compare_cell(x, mode, planner, s);
    const bool lost = cJSON_IsTrue(cJSON_GetObjectItem(o, "diverged")) && strncmp(name, "cost", 4) == 0;
    const double own = lost ? INFINITY : compare_number(o, name);
    if (!isnan(own)) value[n++] = own;
  }
  return sn_median(value, n);
}

double compare_plan_seconds(Compare *x) {
  if (x->plan_seconds > 0) return x->plan_seconds;
  for (int p = 0; p < x->nplanner; ++p)
    if (isfinite(compare_median(x, COMPARE_TIME, p, "plan_seconds")))
      return compare_median(x, COMPARE_TIME, p, "plan_seconds");
  for (int p = 0; p < x->nplanner; ++p)
    if (takes_part(x, p)) return 1e-3 * compare_median(x, COMPARE_STEPS, p, "ms_per_plan");
  return NAN;
}

SinewStatus compare_add_settings(BenchTaskArgs *c, const char *settings, char text[COMPARE_TEXT], SinewError *err) {
  char *rest = NULL;
  snprintf(text, COMPARE_TEXT, "%s", settings);
  for (char *at = strtok_r(text, " ", &rest); at; at = strtok_r(NULL, " ", &rest)) {
    if (c->nsettings == BENCH_SETTINGS) return api_fail(err, SINEW_ERR_LIMIT, "too many settings");
    c->settings[c->nsettings++] = at;
  }
  return SINEW_OK;
}

void compare_own_settings(const Compare *x, int mode, int planner, char text[COMPARE_TEXT]) {
  const ComparePlanner *own = x->planner + planner;
  text[0] = '\0';
  for (int i = 0; i < COMPARE_SETTINGS && own->settings[i]; ++i)
    if (!(by_work(x, mode) && is_candidates(own->settings[i])))
      snprintf(text + strlen(text), COMPARE_TEXT - strlen(text), "%s%s", text[0] ? " " : "", own->settings[i]);
}

static SinewStatus run_cell(Compare *x, int mode, int planner, int seed, SinewError *err) {
  BenchTaskArgs c = x->c;
  char own[COMPARE_TEXT], text[COMPARE_TEXT], work[COMPARE_TEXT] = "", more[COMPARE_TEXT];
  Progress at = {x, mode, planner, seed};
  ClosedLoopResult result;
  c.seed = (uint64_t)seed + 1;
  if (mode == COMPARE_TIME && !x->processor) c.plan_seconds = compare_plan_seconds(x);
  compare_own_settings(x, mode, planner, own);
  SinewStatus status = compare_add_settings(&c, own, text, err);
  if (status == SINEW_OK && by_work(x, mode)) status = compare_work(x, planner, work, err);
  if (status == SINEW_OK) status = compare_add_settings(&c, work, more, err);
  if (status == SINEW_OK) status = closed_loop_run(&c, &result, show_progress, &at, err);
  if (status != SINEW_OK) return status;
  cJSON *o = closed_loop_report(&c, &result);
  closed_loop_free(&result);
  cJSON_AddStringToObject(o, "cell", compare_name(x, mode, planner));
  cJSON_AddStringToObject(o, "mode", compare_modes[mode]);
  cJSON_AddStringToObject(o, "set", x->set);
  cJSON_AddStringToObject(o, "subject", x->subject);
  cJSON_AddStringToObject(o, "own", own);
  if (by_work(x, mode)) cJSON_AddStringToObject(o, "work", work);
  *compare_cell(x, mode, planner, seed) = o;
  x->done++;
  return write_line(x, o, err);
}

SinewStatus compare_run(Compare *x, SinewError *err) {
  SinewStatus status = open_out(x, err);
  for (int m = 0; m < COMPARE_MODES; ++m)
    for (int s = 0; s < x->seeds; ++s)
      for (int p = 0; p < x->nplanner; ++p)
        if (status == SINEW_OK && compare_asks(x, m, p) && !*compare_cell(x, m, p, s))
          status = run_cell(x, m, p, s, err);
  if (!x->quiet) sn_progress_end();
  if (x->lines) fclose(x->lines);
  return status;
}

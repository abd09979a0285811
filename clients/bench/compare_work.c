// Equal processor time, whatever the clock says: a planner's iterations or candidates, multiplied by the processor time
// of a plan of the task's own planner, over that of its own. Both are measured by short runs. Runs with that work
// depend on their seeds alone.
#include <math.h>
#include <string.h>

#include "clients/base/api.h"
#include "clients/bench/compare_private.h"

// What makes a plan of a planner longer. Iterations of sampling, MPPI and CEM stay, as theirs are of many candidates.
static const struct {
  const char *planner, *settings[2];
} works[] = {
    {"adam", {"adam_iterations"}}, {"lbfgs", {"lbfgs_iterations"}},
    {"ilqg", {"ilqg_iterations"}}, {"hybrid", {"candidates", "hybrid_gradients"}},
    {"sampling", {"candidates"}},  {"mppi", {"candidates"}},
    {"cem", {"candidates"}},
};

// Runs a tenth of the motion with some settings.
static SinewStatus run_briefly(const Compare *x, const char *settings, cJSON **report, SinewError *err) {
  BenchTaskArgs c = x->c;
  char text[COMPARE_TEXT];
  ClosedLoopResult result;
  c.seconds *= 0.1;
  SinewStatus status = compare_add_settings(&c, settings, text, err);
  if (status == SINEW_OK) status = closed_loop_run(&c, &result, NULL, NULL, err);
  if (status != SINEW_OK) return status;
  *report = closed_loop_report(&c, &result);
  closed_loop_free(&result);
  return SINEW_OK;
}

// Writes the work of a report's planner, multiplied by a factor. Of iterations those count that were done.
static void scale(const cJSON *report, double factor, char work[COMPARE_TEXT]) {
  const cJSON *settings = cJSON_GetObjectItem(report, "settings");
  work[0] = '\0';
  for (size_t k = 0; k < sizeof works / sizeof *works; ++k) {
    if (strcmp(works[k].planner, compare_text(settings, "planner")) != 0) continue;
    for (int i = 0; i < 2 && works[k].settings[i]; ++i) {
      const char *name = works[k].settings[i];
      const double value = compare_number(strstr(name, "_iterations") ? report : settings,
                                          strstr(name, "_iterations") ? "iterations" : name);
      snprintf(work + strlen(work), COMPARE_TEXT - strlen(work), "%s%s=%.0f", i ? " " : "", name,
               fmax(1, round(factor * value)));
    }
  }
}

SinewStatus compare_work(Compare *x, int planner, char work[COMPARE_TEXT], SinewError *err) {
  char own[COMPARE_TEXT];
  for (int s = 0; s < x->seeds; ++s) {
    const cJSON *done = *compare_cell(x, COMPARE_TIME, planner, s);
    if (!done) continue;
    snprintf(work, COMPARE_TEXT, "%s", compare_text(done, "work"));
    return SINEW_OK;
  }
  cJSON *report = NULL;
  compare_own_settings(x, COMPARE_STEPS, planner, own);
  SinewStatus status = x->own ? SINEW_OK : run_briefly(x, "", &x->own, err);
  if (status == SINEW_OK) status = run_briefly(x, own, &report, err);
  if (status != SINEW_OK) return status;
  const bool same =
      cJSON_Compare(cJSON_GetObjectItem(report, "settings"), cJSON_GetObjectItem(x->own, "settings"), true);
  const double ratio = compare_number(x->own, "cpu_ms_per_plan") / compare_number(report, "cpu_ms_per_plan");
  if (ratio > 0 && isfinite(ratio))
    scale(report, same ? 1 : ratio, work);
  else
    status = api_fail(err, SINEW_ERR_ARGUMENT,
                      "--processor: a tenth of --seconds %g has no plan that could be measured", x->c.seconds);
  cJSON_Delete(report);
  return status;
}

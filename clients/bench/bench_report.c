#include "clients/bench/bench_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"

void bench_report_failure(const char *model, const char *why) {
  const size_t n = strlen(model);
  const bool named = strncmp(why, model, n) == 0 && why[n] == ':';
  fprintf(stderr, "sinew-bench: %s%s%s\n", named ? "" : model, named ? "" : ": ", why);
}

void bench_print_json(cJSON *o, bool one_line) {
  char *text = one_line ? cJSON_PrintUnformatted(o) : cJSON_Print(o);
  if (text) puts(text);
  cJSON_free(text);
  cJSON_Delete(o);
}

const char *bench_number(double x, int decimals, char text[24]) {
  snprintf(text, 24, isnan(x) ? "-" : "%.*f", decimals, x);
  return text;
}

BenchRatio bench_ratio(const double *a, const double *b, int n) {
  double *ratio = malloc(sizeof *ratio * (size_t)(n + 1));
  if (!ratio) abort();
  for (int i = 0; i < n; ++i) ratio[i] = a[i] / b[i];
  BenchRatio r = {.median = sn_median(ratio, n)};
  r.low = ratio[0];
  r.high = ratio[n - 1];
  free(ratio);
  return r;
}

void bench_solver_print(const char *mujoco) {
  if (strcmp(mujoco, "Newton") != 0)
    printf("MuJoCo solves by %s, as the model asks, sinew by Newton's method\n", mujoco);
}

void bench_stage_print(const cJSON *shares) {
  const cJSON *x;
  printf("\n");
  cJSON_ArrayForEach(x, shares) printf("  %-22s %5.1f %%\n", x->string, 100 * x->valuedouble);
}

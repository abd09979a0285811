#include "tests/cuda/agree_table.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"

static const struct {
  const char *name, *text;
  double in_double, double_seldom, in_float, float_seldom;
} table[AGREE_NROW] = {
#define AGREE_VALUES(name, text, in_double, double_seldom, in_float, float_seldom) \
  {#name, text, in_double, double_seldom, in_float, float_seldom},
    AGREE_ROWS(AGREE_VALUES)
#undef AGREE_VALUES
};

static struct {
  double *error;
  int count, capacity;
  double worst;
  char where[300];
} noted[AGREE_NROW];

// Returns max|a - b| / (max|b| + 1e-6), or infinity when only one of two numbers is finite.
static double error_of(const double *a, const double *b, int n) {
  double worst = 0, scale = 0;
  for (int i = 0; i < n; ++i) {
    if (isfinite(a[i]) != isfinite(b[i])) return INFINITY;
    if (!isfinite(b[i])) continue;
    worst = sn_larger(worst, fabs(a[i] - b[i]));
    scale = sn_larger(scale, fabs(b[i]));
  }
  return worst / (scale + 1e-6);
}

// Notes an error; `where` names its origin, for the report of the largest.
static void note(AgreeRow row, double error, const char *where) {
  if (noted[row].count == noted[row].capacity) {
    noted[row].capacity = 2 * noted[row].capacity + 64;
    noted[row].error = realloc(noted[row].error, sizeof(double) * (size_t)noted[row].capacity);
    if (!noted[row].error) abort();
  }
  noted[row].error[noted[row].count++] = error;
  if (noted[row].count > 1 && !(error > noted[row].worst)) return;
  snprintf(noted[row].where, sizeof noted[row].where, "%s", where);
  noted[row].worst = error;
}

double *agree_vector(AgreeResult *r, AgreeRow row, const double *from, int n, const char *name, ...) {
  r->vector = realloc(r->vector, sizeof *r->vector * (size_t)(r->count + 1));
  if (!r->vector) abort();
  AgreeVector *v = &r->vector[r->count++];
  *v = (AgreeVector){.row = row, .n = n, .number = calloc((size_t)n + 1, sizeof *v->number)};
  if (!v->number) abort();
  if (from) memcpy(v->number, from, sizeof *from * (size_t)n);
  va_list args;
  va_start(args, name);
  vsnprintf(v->name, sizeof v->name, name, args);
  va_end(args);
  return v->number;
}

void agree_free(AgreeResult *r) {
  for (int i = 0; i < r->count; ++i) free(r->vector[i].number);
  free(r->vector);
}

void agree_compare(const AgreeResult *ours, const AgreeResult *ref, double allowed) {
  for (int i = 0; i < ref->count; ++i) {
    const AgreeVector *a = &ours->vector[i], *b = &ref->vector[i];
    const double error = error_of(a->number, b->number, b->n);
    if (b->row != AGREE_NROW && b->n > 0) note(b->row, error > allowed ? error : 0, b->name);
  }
}

bool agree_same_bits(const AgreeResult *a, const AgreeResult *b) {
  bool same = a->count == b->count;
  for (int i = 0; same && i < a->count; ++i)
    same = memcmp(a->vector[i].number, b->vector[i].number, sizeof(double) * (size_t)a->vector[i].n) == 0;
  return same;
}

static void write_line(AgreeRow row, const char *backend, double median, double most, double worst, bool holds,
                       const char *out) {
  FILE *file = out ? fopen(out, "a") : NULL;
  if (!file) return;
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "check", "agree");
  cJSON_AddStringToObject(o, "backend", backend);
  cJSON_AddStringToObject(o, "what", table[row].text);
  cJSON_AddNumberToObject(o, "compared", noted[row].count);
  cJSON_AddNumberToObject(o, "median", median);
  cJSON_AddNumberToObject(o, "nineteen_in_twenty", most);
  cJSON_AddNumberToObject(o, "worst", worst);
  cJSON_AddStringToObject(o, "worst_at", noted[row].where);
  cJSON_AddBoolToObject(o, "holds", holds);
  char *text = cJSON_PrintUnformatted(o);
  fprintf(file, "%s\n", text);
  cJSON_free(text);
  cJSON_Delete(o);
  fclose(file);
}

bool agree_row_holds(AgreeRow row, const char *backend, AgreeTolerance tolerance, const char *out) {
  const int n = noted[row].count;
  if (n == 0) return false;
  const double median = sn_median(noted[row].error, n);  // sorts
  const double most = noted[row].error[(n - 1) * 19 / 20], worst = noted[row].error[n - 1];
  const bool single = tolerance == AGREE_FLOAT;
  const bool holds = tolerance == AGREE_BITS
                         ? worst == 0
                         : median <= (single ? table[row].in_float : table[row].in_double) &&
                               most <= (single ? table[row].float_seldom : table[row].double_seldom);
  printf("%s: %s: %d compared, error %.2g in the median, %.2g of 19 in 20, %.2g at most (%s)\n", backend,
         table[row].text, n, median, most, worst, noted[row].where);
  write_line(row, backend, median, most, worst, holds, out);
  free(noted[row].error);
  noted[row].error = NULL;
  noted[row].count = noted[row].capacity = 0;
  return holds;
}

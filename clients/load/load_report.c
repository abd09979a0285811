// What has become of a stage's requests.
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/statistics.h"
#include "clients/load/load.h"

// Quantiles of a latency, NaN where there is none [s].
typedef struct ReportLatency {
  double p50, p90, p99, most;
} ReportLatency;

// A stage in numbers.
typedef struct ReportStage {
  int count[LOAD_OUTCOMES];
  ReportLatency latency[LOAD_OUTCOMES], delay;  // of answers; of the load itself, from due to sent
  ReportLatency refusal;                        // of errors; of replaced states, from when the newer one was due
  double iterations;                            // of a refined plan
  int late;                                     // refined plans that were there after their deadline
  int least, most;                              // refined plans of a session
} ReportStage;

static ReportLatency report_latency(double *x, int n) {
  sn_median(x, n);  // sorts
  return (ReportLatency){sn_quantile(x, n, 0.5), sn_quantile(x, n, 0.9), sn_quantile(x, n, 0.99), sn_quantile(x, n, 1)};
}

static void report_count_sessions(const LoadStage *s, const LoadOptions *o, int *plans, ReportStage *r) {
  for (int i = 0; i < s->nrequest; ++i) plans[s->request[i].client] += s->request[i].outcome == LOAD_PLAN;
  r->least = r->most = plans[0];
  for (int i = 1; i < o->sessions; ++i) {
    if (plans[i] < r->least) r->least = plans[i];
    if (plans[i] > r->most) r->most = plans[i];
  }
}

// Fills x with the times after which refusals were told, and `newer` with what it needs for that; returns how many
// there are. A state is replaced by the next one of its client that is not refused.
static int report_refusals(const LoadStage *s, double *newer, double *x) {
  int n = 0;
  for (int i = s->nrequest - 1; i >= 0; --i) {
    const LoadRequest *r = &s->request[i];
    if (r->outcome == LOAD_REFUSED) {
      x[n++] = r->latency;
      continue;
    }
    if (r->outcome == LOAD_REPLACED && newer[r->client] > 0) x[n++] = r->due + r->latency - newer[r->client];
    newer[r->client] = r->due;
  }
  return n;
}

static double report_iterations(const LoadStage *s, int plans) {
  double sum = 0;
  for (int i = 0; i < s->nrequest; ++i) sum += s->request[i].outcome == LOAD_PLAN ? s->request[i].iterations : 0;
  return plans > 0 ? sum / plans : NAN;
}

// Returns false when out of memory.
static bool report_stage(const LoadStage *s, const LoadOptions *o, ReportStage *r) {
  *r = (ReportStage){0};
  double *x = malloc(sizeof *x * ((size_t)s->nrequest + 1));
  double *newer = calloc((size_t)o->clients, sizeof *newer);
  int *plans = calloc((size_t)o->clients, sizeof *plans), n;
  const bool good = x && newer && plans;
  for (int k = 0; good && k < LOAD_OUTCOMES; ++k) {
    n = 0;
    for (int i = 0; i < s->nrequest; ++i)
      if (s->request[i].outcome == (LoadOutcome)k) x[n++] = s->request[i].latency;
    r->count[k] = n;
    for (int i = 0; k == LOAD_PLAN && i < n; ++i) r->late += x[i] > o->deadline;
    if (k != LOAD_LOST) r->latency[k] = report_latency(x, n);
  }
  n = 0;
  for (int i = 0; good && i < s->nrequest; ++i) x[n++] = s->request[i].sent - s->request[i].due;
  if (good) {
    r->delay = report_latency(x, n);
    r->refusal = report_latency(x, report_refusals(s, newer, x));
    r->iterations = report_iterations(s, r->count[LOAD_PLAN]);
    report_count_sessions(s, o, plans, r);
  }
  free(x);
  free(newer);
  free(plans);
  return good;
}

void load_print(const LoadStage *stages, int n, double rate, const LoadOptions *o, FILE *out) {
  fprintf(out, "%d sessions of %s, %d clients, plans of ", o->sessions, o->task, o->clients);
  if (o->iterations)
    fprintf(out, "%d iterations", o->iterations);
  else
    fprintf(out, "as many iterations as they have time for");
  fprintf(out, " within %g ms; %.0f plans a second can be made; seed %ld\n\n", 1e3 * o->deadline, rate, o->seed);
  fprintf(out, "%36s%47s%72s\n", "requests a second", "latency of plans [ms]", "processors");
  fprintf(out, "%6s%8s%9s%7s%9s%9s%6s%9s%9s%9s%9s%7s%7s%8s%9s%9s%8s%9s%6s%6s\n", "load", "asked", "planned", "warm",
          "replaced", "refused", "lost", "p50", "p90", "p99", "most", "late", "share", "iter.", "refusals", "watchers",
          "ours", "planner", "rest", "load");
  for (int i = 0; i < n; ++i) {
    ReportStage r;
    if (!report_stage(&stages[i], o, &r)) {
      fprintf(out, "out of memory\n");
      return;
    }
    const double s = stages[i].seconds;
    const ReportLatency *p = &r.latency[LOAD_PLAN];
    fprintf(out, "%6g%8.0f%9.1f%7.1f%9.1f%9.1f%6d%9.2f%9.2f%9.2f%9.2f%7d%7.2f%8.2f%9.2f%9.2f%8.2f%9.2f%6.2f%6.2f\n",
            stages[i].load, stages[i].rate, r.count[LOAD_PLAN] / s, r.count[LOAD_WARM] / s, r.count[LOAD_REPLACED] / s,
            r.count[LOAD_REFUSED] / s, r.count[LOAD_LOST], 1e3 * p->p50, 1e3 * p->p90, 1e3 * p->p99, 1e3 * p->most,
            r.late, r.most > 0 ? (double)r.most / r.least : NAN, r.iterations, 1e3 * r.refusal.p99,
            1e3 * r.latency[LOAD_WATCHED].p99, 1e3 * r.delay.p99, stages[i].busy[LOAD_PLANNER],
            stages[i].busy[LOAD_REST], stages[i].busy[LOAD_OURS]);
  }
  fprintf(
      out,
      "\nLatency counts from the moment that a request is due. late: plans after their deadline. share: most over "
      "least\n"
      "plans of a session. iter.: mean of iterations. refusals: p99 until they are told, of replaced states since "
      "the newer\n"
      "one was due. watchers: p99 of their answers. ours: p99 of what this program sends late. processors: that the\n"
      "daemon's planner, its other threads and this program took.\n");
}

static void report_add_latency(cJSON *object, const char *name, const ReportLatency *r) {
  cJSON *o = cJSON_AddObjectToObject(object, name);
  cJSON_AddNumberToObject(o, "p50", r->p50);
  cJSON_AddNumberToObject(o, "p90", r->p90);
  cJSON_AddNumberToObject(o, "p99", r->p99);
  cJSON_AddNumberToObject(o, "most", r->most);
}

void load_print_json(const LoadStage *stages, int n, double rate, const LoadOptions *o, FILE *out) {
  static const char *const names[LOAD_OUTCOMES] = {"lost", "planned", "warm", "replaced", "refused", "watched"};
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "stages");
  cJSON_AddStringToObject(root, "task", o->task);
  cJSON_AddNumberToObject(root, "sessions", o->sessions);
  cJSON_AddNumberToObject(root, "clients", o->clients);
  cJSON_AddNumberToObject(root, "iterations", o->iterations);
  cJSON_AddNumberToObject(root, "deadline", o->deadline);
  cJSON_AddNumberToObject(root, "seed", (double)o->seed);
  cJSON_AddNumberToObject(root, "rate", rate);
  for (int i = 0; i < n; ++i) {
    ReportStage r;
    if (!report_stage(&stages[i], o, &r)) break;
    cJSON *stage = cJSON_CreateObject();
    cJSON_AddItemToArray(list, stage);
    cJSON_AddNumberToObject(stage, "load", stages[i].load);
    cJSON_AddNumberToObject(stage, "rate", stages[i].rate);
    cJSON_AddNumberToObject(stage, "seconds", stages[i].seconds);
    cJSON_AddNumberToObject(stage, "requests", stages[i].nrequest);
    for (int k = 0; k < LOAD_OUTCOMES; ++k) cJSON_AddNumberToObject(stage, names[k], r.count[k]);
    cJSON_AddNumberToObject(stage, "late", r.late);
    cJSON_AddNumberToObject(stage, "least", r.least);
    cJSON_AddNumberToObject(stage, "most", r.most);
    cJSON_AddNumberToObject(stage, "refined_iterations", r.iterations);
    cJSON_AddNumberToObject(stage, "planner_processors", stages[i].busy[LOAD_PLANNER]);
    cJSON_AddNumberToObject(stage, "daemon_processors", stages[i].busy[LOAD_REST]);
    cJSON_AddNumberToObject(stage, "load_processors", stages[i].busy[LOAD_OURS]);
    report_add_latency(stage, "latency", &r.latency[LOAD_PLAN]);
    report_add_latency(stage, "warm_latency", &r.latency[LOAD_WARM]);
    report_add_latency(stage, "replaced_latency", &r.latency[LOAD_REPLACED]);
    report_add_latency(stage, "refused_latency", &r.latency[LOAD_REFUSED]);
    report_add_latency(stage, "refusal_latency", &r.refusal);
    report_add_latency(stage, "watched_latency", &r.latency[LOAD_WATCHED]);
    report_add_latency(stage, "delay", &r.delay);
  }
  char *text = cJSON_PrintUnformatted(root);
  if (text) fprintf(out, "%s\n", text);
  free(text);
  cJSON_Delete(root);
}

#include "planner/base/budget.h"

static const double megabyte = 1 << 20;

void sn_budget_init(SnBudget *b, double each, double all) {
  *b = (SnBudget){.each = each, .all = all};
  pthread_mutex_init(&b->mutex, NULL);
}

void sn_budget_free(SnBudget *b) { pthread_mutex_destroy(&b->mutex); }

SnCode sn_budget_take(SnBudget *b, double held, double more, SnError *err) {
  if (b->each > 0 && held + more > b->each)
    return sn_fail(err, SN_ERR_LIMIT,
                   "memory: a planner with these settings needs %.0f bytes (%.1f MB), allowed are %.0f (%.1f MB); a "
                   "shorter horizon, fewer starts or candidates need less",
                   held + more, (held + more) / megabyte, b->each, b->each / megabyte);
  pthread_mutex_lock(&b->mutex);
  const double taken = b->taken;
  const bool fits = b->all <= 0 || taken + more <= b->all;
  if (fits) b->taken += more;
  pthread_mutex_unlock(&b->mutex);
  if (fits) return SN_OK;
  return sn_fail(err, SN_ERR_LIMIT,
                 "memory: %.0f bytes (%.1f MB) more are asked for; allowed are %.0f (%.1f MB) for all planners, of "
                 "which %.0f (%.1f MB) are taken",
                 more, more / megabyte, b->all, b->all / megabyte, taken, taken / megabyte);
}

void sn_budget_give(SnBudget *b, double bytes) {
  pthread_mutex_lock(&b->mutex);
  b->taken -= bytes;
  pthread_mutex_unlock(&b->mutex);
}

double sn_budget_taken(SnBudget *b) {
  pthread_mutex_lock(&b->mutex);
  const double taken = b->taken;
  pthread_mutex_unlock(&b->mutex);
  return taken;
}

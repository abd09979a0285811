// Planning by rounds of sampling and gradients (A. Paulus et al., arXiv 2506.14186, ask for it). A round's first
// iteration measures candidates around the best plan so far. The iterations after it are Adam's, side by side on that
// plan and on the best of its candidates. The best that was measured of all of them is the plan, and the next round
// begins there.
#include "planner/planner_private.h"

struct SnHybrid {
  sn_real *ctrl;                     // (horizon, nu) where the round began, then the best that its job has measured
  double cost, norm;                 // what it is worth, and the norm of its gradient
  double *term;                      // (nterm)
  SnNoiseSettings noise;             // of the round's candidates
  int listed[SN_MULTISTART_LISTED];  // those that Adam begins from: 0, then the best
  int starts;                        // number of them
  int turn;                          // iterations of the round that are done; 0: its candidates come next
  int refined, gradients;            // settings that the round began with
  bool adam;                         // the iterations under way are Adam's
};

static SnCode hybrid_check(const SnPlanner *p, SnError *err) {
  return sn_planner_check_gradients(p, "hybrid", SN_BACKEND_MULTISTART, err);
}

static void hybrid_free(SnPlanner *p) {
  if (!p->iterations.hybrid) return;
  free(p->iterations.hybrid->ctrl);
  free(p->iterations.hybrid->term);
  free(p->iterations.hybrid);
  p->iterations.hybrid = NULL;
}

static SnCode create(SnPlanner *p, SnError *err) {
  bool ok = true;
  SnHybrid *x = p->iterations.hybrid = sn_planner_calloc(1, sizeof *x, &ok);
  if (!x) return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
  x->ctrl = sn_planner_calloc((size_t)p->horizon * (size_t)p->m->nu, sizeof *x->ctrl, &ok);
  x->term = sn_planner_calloc((size_t)p->in_force.cost->nterm, sizeof *x->term, &ok);
  if (ok) return SN_OK;
  hybrid_free(p);
  return sn_fail(err, SN_ERR_MEMORY, "planner: out of memory");
}

static double hybrid_bytes(const SnPlanner *p, const SnSettings *s) {
  return sn_planner_candidates_bytes(p, s) + sn_planner_adam_bytes(p, s->hybrid_refined + 1) +
         sn_planner_ctrl_bytes(p, 1);
}

static SnCode hybrid_reserve(SnPlanner *p, const SnSettings *s, SnError *err) {
  SnCode code = hybrid_check(p, err);
  if (code == SN_OK) code = sn_planner_candidates_reserve(p, s, err);
  if (code == SN_OK) code = sn_planner_adam_reserve(p, s->hybrid_refined + 1, err);
  return code == SN_OK && !p->iterations.hybrid ? create(p, err) : code;
}

// ---- a round ----

static void begin_round(SnPlanner *p, SnHybrid *x, int most) {
  const SnSettings *s = &p->in_force.settings;
  x->turn = 0;
  x->adam = false;
  x->refined = s->hybrid_refined;
  x->gradients = s->hybrid_gradients;
  sn_planner_copy(x->ctrl, sn_planner_best(p), sn_planner_rows(p));
  sn_planner_candidates_begin(p, x->ctrl, p->result.best_cost, p->iterations.measured ? p->result.best_term : NULL,
                              most);
  x->noise = p->candidates.noise;
}

// The rest of a round is one optimization, in as many jobs as the backend takes for it. What it has come to is its own:
// the best candidate may be better until Adam has measured it, too.
static void continue_round(SnPlanner *p, SnHybrid *x, int most, int iterations) {
  const int left = x->gradients + 1 - x->turn;
  SnMultistartJob *job = sn_planner_adam_job(p, x->turn == 1, x->starts, most, sn_mini(iterations, left));
  x->adam = true;
  job->noise = x->noise;
  job->listed = x->listed;
  job->nlisted = x->starts;
  job->ctrl = x->ctrl;
  job->best_cost = x->cost;
  job->best_term = x->term;
  job->gradient_norm = x->norm;
}

// Within a round what Adam has come to lies at the backend, where new capacity has nothing of it.
static void hybrid_begin(SnPlanner *p, int most, int iterations) {
  SnHybrid *x = p->iterations.hybrid;
  const SnSettings *s = &p->in_force.settings;
  const bool same = x->refined == s->hybrid_refined && x->gradients == s->hybrid_gradients;
  const bool lost = x->turn > 1 && sn_planner_adam_is_fresh(p);
  if (p->iterations.next == 0 || !p->iterations.measured || !same || lost || x->turn == 0)
    begin_round(p, x, most);
  else
    continue_round(p, x, most, iterations);
}

static void hybrid_submit(SnPlanner *p) {
  if (p->iterations.hybrid->adam)
    sn_planner_adam_submit(p);
  else
    sn_planner_candidates_submit(p);
}

static SnWorked hybrid_work(SnPlanner *p, double stop) {
  return p->iterations.hybrid->adam ? sn_planner_adam_work(p, stop) : sn_planner_candidates_work(p, stop);
}

// Lists the candidates that Adam begins from, and what is known of the first.
static void end_candidates(SnPlanner *p, SnHybrid *x) {
  const int used = sn_planner_candidates_end(p);
  if (used == 0) return;
  const int finite = sn_rank_candidates(p->candidates.cost, used, p->candidates.rank);
  x->starts = 0;
  x->listed[x->starts++] = 0;
  for (int k = 0; k < finite && x->starts <= x->refined; ++k)
    if (p->candidates.rank[k] != 0) x->listed[x->starts++] = p->candidates.rank[k];
  x->cost = p->candidates.cost[0];
  x->norm = (double)NAN;
  memcpy(x->term, p->candidates.term, sizeof *x->term * (size_t)p->in_force.cost->nterm);
  x->turn = 1;
}

static void end_adam(SnPlanner *p, SnHybrid *x) {
  const SnMultistartJob *job = sn_planner_adam_end(p);
  if (!job) return;
  x->cost = job->best_cost;
  x->norm = job->gradient_norm;
  x->turn += job->done;
  if (x->turn > x->gradients) x->turn = 0;
  if (!(x->cost <= p->result.best_cost)) return;
  p->result.best_cost = x->cost;
  p->result.gradient_norm = x->norm;
  memcpy(p->result.best_term, x->term, sizeof *x->term * (size_t)p->in_force.cost->nterm);
  sn_planner_copy(sn_planner_best(p), x->ctrl, sn_planner_rows(p));
}

static void hybrid_end(SnPlanner *p) {
  SnHybrid *x = p->iterations.hybrid;
  if (x->adam)
    end_adam(p, x);
  else
    end_candidates(p, x);
}

const SnOptimizer sn_optimizer_hybrid = {.kind = SN_PLANNER_HYBRID,
                                         .descends = true,
                                         .least = 1,
                                         .announces = SN_BACKEND_ROLLOUTS_SUBMIT,
                                         .check = hybrid_check,
                                         .reserve = hybrid_reserve,
                                         .bytes = hybrid_bytes,
                                         .begin = hybrid_begin,
                                         .submit = hybrid_submit,
                                         .work = hybrid_work,
                                         .end = hybrid_end,
                                         .free = hybrid_free};

// Urgencies are instants: the smallest comes first.
//
// Deadlines of many controllers lie close together, and the nearest ones can take all the time there is. So plans are
// refined once in the order of their deadlines, and those that have been stand back as if they were due later, by all
// of the time that they were allowed. Then each plan is refined once before any is again, where all are allowed the
// same; who wants plans in less time still comes before those that have longer.
//
// Where time does not suffice for that, the line is kept from state to state: a session whose state was replaced, or
// answered before its turn came, has the place of that one with the next. So all get the same share.
#include "daemon/planning/turn_private.h"

#include <math.h>

#include "daemon/planning/serve_private.h"

// A plan without a deadline is overdue after so many seconds.
#define PATIENCE 2.0

// The first refinement comes before those of others for this part of the time that a plan is allowed, at most; and not
// at all where the plan before could not be refined with that. Else plans that nobody can make would take all the time.
#define FIRST_PART 0.25

// Time kept back from a deadline: for the way there and back [s]; with what is measured at most this part of the time
// allowed, for answers and for late slices each.
#define WAY 0.0005
#define KEPT_BACK 0.25

static double allowed_time(const SnJob *job) { return job->due - job->route.arrived; }

double sn_turn_deadline(const SnScheduler *s, const SnJob *job) {
  return job->due - fmin(atomic_load(&s->answering) + WAY, KEPT_BACK * allowed_time(job));
}

double sn_turn_margin(const SnScheduler *s, const SnJob *job) {
  return isinf(job->due) ? 0 : fmin(s->slices.expected, KEPT_BACK * allowed_time(job));
}

double sn_turn_plan_due(const SnScheduler *s, const SnSession *p) {
  if (!p->active) return p->waiting ? p->waiting->due : INFINITY;
  return sn_job_streams(p->active) && p->stream.made && s->now > p->active_due ? INFINITY : p->active_due;
}

void sn_turn_take(SnSession *p, SnJob *newest) {
  p->waiting = newest;
  if (!p->active || sn_job_streams(p->active)) return;
  const double allowed = newest->route.arrived + 0.5 * (newest->due - newest->route.arrived);
  if (allowed < p->active_due) p->active_due = allowed;
}

void sn_turn_begin(SnSession *p) {
  p->line = fmin(p->turn_due, p->active->due);
  p->turn_due = INFINITY;
  p->refined = false;
  p->served = 0;
  p->slices = 0;
}

static bool had_first_part(const SnSession *p, const SnJob *job) { return p->served > FIRST_PART * allowed_time(job); }

// Whether a plan has had what comes before refining others again.
static bool had_turn(const SnSession *p, const SnJob *job) {
  return p->refined || p->hopeless || had_first_part(p, job);
}

void sn_turn_end(SnSession *p, const SnJob *job) {
  if (!had_turn(p, job)) p->turn_due = p->line;
  p->hopeless = !p->refined && (p->hopeless || had_first_part(p, job));
}

// A plan under way with a deadline: the time that it has had counts as if it were due later.
static double active_urgency(const SnSession *p) {
  const bool stands_back = had_turn(p, p->active);
  return p->served + (stands_back ? p->active_due + allowed_time(p->active) : fmin(p->active_due, p->line));
}

// A state that was replaced before it was begun leaves its place in the line to the newer one: else no turn would come
// where states are replaced faster than there is time for all sessions.
double sn_turn_plan_urgency(const SnScheduler *s, const SnSession *p) {
  const SnJob *job = p->active ? p->active : p->waiting;
  if (!job) return INFINITY;
  if (isfinite(sn_turn_plan_due(s, p))) return p->active ? active_urgency(p) : fmin(job->due, p->turn_due);
  double overdue = job->route.arrived + PATIENCE;
  return s->now < overdue ? INFINITY : fmax(overdue, s->background);
}

double sn_turn_evaluation_urgency(const SnScheduler *s, const SnSession *p) {
  return p->evaluations ? fmax(p->evaluations->due, s->background) : INFINITY;
}

bool sn_turn_has_deadline(const SnScheduler *s, const SnSession *p) {
  return sn_serve_has_plan(p) && isfinite(sn_turn_plan_due(s, p));
}

// Whether a plan has to be answered as it stands: the slice of another one would end after it is due. One under way
// that has not been refined is worth trying until it is. What a stream has of it has been sent.
static bool is_closing(const SnScheduler *s, const SnSession *p) {
  const SnJob *job = p->active ? p->active : p->waiting;
  if (!job || sn_job_streams(job)) return false;
  if (p->active && !p->refined) return s->now >= p->active_due;
  const double due = p->active ? p->active_due - p->rest : sn_turn_deadline(s, job);
  return s->now + s->config->slice + sn_turn_margin(s, job) >= due;
}

// Background work is what has no deadline of its own: an evaluation, or a plan.
static bool has_background(const SnScheduler *s, const SnSession *p) {
  return p->evaluations || (sn_serve_has_plan(p) && !sn_turn_has_deadline(s, p));
}

static double background_urgency(const SnScheduler *s, const SnSession *p) {
  return fmin(sn_turn_has_deadline(s, p) ? INFINITY : sn_turn_plan_urgency(s, p), sn_turn_evaluation_urgency(s, p));
}

// Opens the account of work that has come: who had nothing to do has no credit for it.
static void update_account(const SnScheduler *s, SnSession *p) {
  const bool before = p->has_background;
  p->has_background = has_background(s, p);
  if (p->has_background && !before) p->account = fmax(p->account, s->account);
}

SnTurn sn_turn_choose(const SnScheduler *s) {
  SnSession *closing = NULL, *nearest = NULL, *least = NULL;
  double deadline = INFINITY, overdue = INFINITY;
  for (SnSession *p = s->sessions; p; p = p->next) {
    update_account(s, p);
    if (p->waiting) p->turn_due = fmin(p->turn_due, p->waiting->due);
    if (is_closing(s, p) && (!closing || sn_turn_plan_due(s, p) < sn_turn_plan_due(s, closing))) closing = p;
    if (sn_turn_has_deadline(s, p) && (!nearest || sn_turn_plan_urgency(s, p) < deadline)) {
      nearest = p;
      deadline = sn_turn_plan_urgency(s, p);
    }
    if (!p->has_background) continue;
    overdue = fmin(overdue, background_urgency(s, p));
    if (!least || p->account < least->account) least = p;
  }
  const bool background = least && (!nearest || overdue < deadline);
  SnSession *next = background ? least : nearest;
  if (closing && closing != next) return (SnTurn){.session = closing, .answers = true};
  return (SnTurn){.session = next, .background = background};
}

// Events inside a run: jumps of the force, where a contact or limit begins to act or ends with a force, and kinks,
// where a row of the solver changes its state (sticking and sliding, release). Host only (horizon.h).
//
// A step with an event inside has lost its order, and so has its derivative. So steps end just before an event, and a
// tiny step of Euler's method leads across: no stage that counts is on the wrong side.
//
// A row of a contact or limit is there while g(q) = pos - margin < 0. At g = 0 its impedance is solimp[0] > 0, so the
// acceleration jumps from f_- to f_+ (x' = f(x)). A perturbation dx moves the moment by dt = - grad g . dx / g', with
// g' = grad g . v. (J v of a contact's row is that only where its point is the nearest one: some slide over their
// shapes.) Behind the event it is
//
//   dx_+ = dx + f_- dt - f_+ dt = S dx,   S = I + (f_+ - f_-) grad g' / g',
//
// the saltation matrix (R. Leine, H. Nijmeijer, Dynamics and Bifurcations of Non-Smooth Mechanical Systems, 2004,
// section 7.2; N. Kong et al., Saltation matrices, arXiv 2306.06862). Backwards grad g gets the bar of pos
//
//   s = (p - f_- . x_bar) / g',   p = f_+ . x_bar,
//
// from which come those of positions, of mocap bodies and of the model. At a kink f_+ = f_-, and S = I.
//
// p is what the result gains where all behind the event comes later by a time, and it does not change along the motion
// (but by what controls do in that time). It is taken where a time is given, at the end, an output or a knot, and
// carried backwards. So the steps behind an event move along with it, as in runs that are compared, and the last one
// before a given time makes up for it. With f_+ . x_bar itself they would stay where they are, while what is close
// behind the event, as an impedance that rises within a millimetre, passes their stages: no derivative of use at loose
// tolerances.
//
// Rows that begin or end at once, as the corners of an edge do, share the jump evenly. That is the derivative in
// directions that keep them together; in others there is none at such a point.
//
// Jumps are found on the parabola from the start of a step with its velocity and acceleration, kinks by the residuals
// of rows at the stages. Where one is not found (a graze), or the number of contacts changes at a depth, the control of
// the error alone decides, as without events.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/horizon_private.h"
#include "physics/step/step.h"

enum { EVENT_NONE = 0, EVENT_BEGINS = 1, EVENT_ENDS = 2 };
#define KINK_NOISE (sn_sqrt(SN_EPS) * SN_R(0.01))  // changes of a residual that count as rounding, by its reference
enum { EVENT_PROBES = 48, EVENT_WIDER = 6 };  // most probes of a search, those that look for a time behind the event

sn_real sn_horizon_crossing(void) { return sn_sqrt(SN_EPS); }

// ---- rows that can begin and end ----

static int rows_of(const SnWorld *w, int row) {
  const int type = w->efc_type[row];
  if (type != SN_CNSTR_CONTACT_PYRAMIDAL && type != SN_CNSTR_CONTACT_ELLIPTIC) return 1;
  const int dim = w->contact[w->efc_id[row]].dim;
  return type == SN_CNSTR_CONTACT_PYRAMIDAL ? 2 * (dim - 1) : dim;
}

static void note(const SnWorld *w, SnEventRows *rows, int key, int feature, int row) {
  bool pushes = false;
  const int n = rows_of(w, row);
  for (int k = 0; k < n; ++k) pushes = pushes || w->efc_force[row + k] != 0;
  rows->row[rows->n++] = (SnEventRow){.key = key, .feature = feature, .row = row, .pushes = pushes};
}

void sn_horizon_note_rows(const SnHorizon *h, SnEventRows *rows, sn_real time) {
  const SnModel *m = &h->model;
  const SnWorld *w = &h->world;
  const int first = w->ne[0] + w->nf[0], end = first + w->nl[0];
  rows->n = 0;
  rows->time = time;
  rows->nefc = w->nefc[0];
  memcpy(rows->jar, w->efc_jar, sizeof *rows->jar * (size_t)rows->nefc);
  memcpy(rows->state, w->efc_state, sizeof *rows->state * (size_t)rows->nefc);
  for (int r = first; r < end; ++r)
    note(w, rows, w->efc_id[r] + (w->efc_type[r] == SN_CNSTR_LIMIT_TENDON ? m->njnt : 0), 0, r);
  for (int i = 0; i < w->ncon[0]; ++i) {
    const SnContact *con = w->contact + i;
    if (con->efc_address >= 0 && con->cfd != SN_CONTACT_FAR && con->dist < con->includemargin)
      note(w, rows, m->njnt + m->ntendon + con->pair, con->feature, con->efc_address);
  }
}

void sn_horizon_copy_rows(SnEventRows *to, const SnEventRows *from) {
  to->time = from->time;
  to->n = from->n;
  to->nefc = from->nefc;
  memcpy(to->row, from->row, sizeof *to->row * (size_t)from->n);
  memcpy(to->jar, from->jar, sizeof *to->jar * (size_t)from->nefc);
  memcpy(to->state, from->state, sizeof *to->state * (size_t)from->nefc);
}

static int count_key(const SnEventRows *rows, int key) {
  int n = 0;
  for (int i = 0; i < rows->n; ++i) n += rows->row[i].key == key;
  return n;
}

// g of a row, and its rate.
static sn_real row_gap(const SnWorld *w, int row) { return w->efc_pos[row] - w->efc_margin[row]; }
static sn_real row_speed(const SnWorld *w, int row) {
  if (w->efc_type[row] != SN_CNSTR_CONTACT_PYRAMIDAL) return w->efc_vel[row];
  return SN_R(0.5) * (w->efc_vel[row] + w->efc_vel[row + 1]);  // edges n + mu t and n - mu t
}

static bool has_feature(const SnEventRows *rows, const SnEventRow *like) {
  for (int i = 0; i < rows->n; ++i)
    if (rows->row[i].key == like->key && rows->row[i].feature == like->feature) return true;
  return false;
}

// Returns true where row i of these, which the world has, is one more than the others have of its key: of rows of a key
// those of features that the others have not, or those nearest to g = 0.
static bool is_extra(const SnWorld *w, const SnEventRows *these, int i, const SnEventRows *others) {
  const SnEventRow *mine = these->row + i;
  const int excess = count_key(these, mine->key) - count_key(others, mine->key);
  int nearer = 0, fresh = 0;
  if (excess <= 0) return false;
  for (int k = 0; k < these->n; ++k) {
    const SnEventRow *row = these->row + k;
    if (row->key != mine->key) continue;
    const sn_real gap = row_gap(w, row->row), own = row_gap(w, mine->row);
    fresh += !has_feature(others, row);
    nearer += k != i && (gap > own || (gap == own && k < i));
  }
  return fresh == excess ? !has_feature(others, mine) : nearer < excess;
}

static bool same_keys(const SnEventRows *a, const SnEventRows *b) {
  if (a->n != b->n) return false;
  for (int i = 0; i < a->n; ++i)
    if (a->row[i].key != b->row[i].key) return false;
  return true;
}

// What of `now` differs from the rows at the start of the step. A row that ends without a force is no event.
static int changes(const SnHorizonScratch *x) {
  int flags = EVENT_NONE;
  if (same_keys(&x->start, &x->now)) return flags;
  for (int i = 0; i < x->now.n; ++i) {
    const int key = x->now.row[i].key;
    if (count_key(&x->now, key) > count_key(&x->start, key)) flags |= EVENT_BEGINS;
  }
  for (int i = 0; i < x->start.n; ++i) {
    const int key = x->start.row[i].key;
    if (x->start.row[i].pushes && count_key(&x->start, key) > count_key(&x->now, key)) flags |= EVENT_ENDS;
  }
  return flags;
}

// When, between the stage before and this one, a row changed its state; negative where that is rounding. By its values
// on the near side, which are smooth; halfway where they lead elsewhere: then the step is too long for its stages.
// Where there is one such value alone, by those of both sides.
static sn_real kink_time(const SnHorizon *h, int row) {
  const SnWorld *w = &h->world;
  const SnHorizonScratch *x = h->scratch;
  const SnEventRows *a = &x->past, *b = &x->now, *c = a->time > 0 ? &x->start : &x->last_start;
  const sn_real ya = sn_row_boundary(w, row, a->jar, a->state[row], b->state[row]);
  const sn_real yb = sn_row_boundary(w, row, b->jar, b->state[row], a->state[row]);
  if (!(sn_abs(ya - yb) > KINK_NOISE * (1 + sn_abs(w->efc_aref[row])))) return -1;
  if (same_keys(c, a) && c->nefc == a->nefc && c->state[row] == a->state[row] && c->time < a->time) {
    const sn_real slope = (ya - sn_row_boundary(w, row, c->jar, c->state[row], b->state[row])) / (a->time - c->time);
    const sn_real t = a->time - ya / slope;
    return t >= a->time && t <= b->time ? t : SN_R(0.5) * (a->time + b->time);
  }
  return a->time + sn_clip(ya / (ya - yb), 0, 1) * (b->time - a->time);
}

// The time of the first kink between the stage before and this one.
static bool find_kink(const SnHorizon *h, sn_real *time) {
  const SnHorizonScratch *x = h->scratch;
  bool found = false;
  for (int r = 0; r < x->now.nefc; ++r) {
    if (x->now.state[r] == x->start.state[r] || x->past.state[r] != x->start.state[r]) continue;
    if (sn_is_cone_tail(&h->world, r)) continue;
    const sn_real t = kink_time(h, r);
    if (t < 0 || (found && t >= *time)) continue;
    *time = t;
    found = true;
  }
  return found;
}

SnEvent sn_horizon_event(SnHorizon *h, sn_real reach, sn_real *time) {
  SnHorizonScratch *x = h->scratch;
  const SnEventRows past = x->past;
  x->past = x->now;
  x->now = past;
  sn_horizon_note_rows(h, &x->now, reach);
  if (!same_keys(&x->start, &x->now)) return changes(x) == EVENT_NONE ? SN_EVENT_NONE : SN_EVENT_JUMP;
  for (int i = 0; i < x->now.n; ++i) x->start.row[i].pushes = x->start.row[i].pushes || x->now.row[i].pushes;
  if (x->now.nefc != x->start.nefc || x->past.nefc != x->now.nefc) return SN_EVENT_NONE;
  return find_kink(h, time) ? SN_EVENT_KINK : SN_EVENT_NONE;
}

// ---- where an event is ----

// A search: at lo there is no event, at hi there is one; [s] from the start of the step.
typedef struct Search {
  sn_real lo, hi;
  int found;      // what has changed at hi
  sn_real leave;  // when the row that leaves first would end, by the last probe without an event
  sn_real speed;  // |g'| of the row that the latest estimate is of; it says how far rounding lets look
} Search;

// Brings the world to time t of the path: that of Euler's method, or a parabola. Returns the changes.
static int probe(SnHorizon *h, const SnKeptStep *s, sn_real t, bool curved) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  SnWorld *w = &h->world;
  for (int i = 0; i < m->nv; ++i) x->xi[i] = s->qvel[i] + (curved ? t / 2 * s->acc[i] : 0);
  memcpy(x->dv, s->acc, sizeof *x->dv * (size_t)m->nv);
  memcpy(x->dact, s->adot, sizeof *x->dact * (size_t)m->na);
  sn_horizon_move(h, s, t, false);
  sn_forward_rows(m, w, &h->lane);
  sn_horizon_note_rows(h, &x->now, t);
  return changes(x);
}

// How long ago the first of the rows began that the start does not have; negative where it is not to be seen.
static sn_real since_begin(const SnHorizon *h, Search *a) {
  const SnHorizonScratch *x = h->scratch;
  const SnWorld *w = &h->world;
  sn_real since = -1;
  for (int i = 0; i < x->now.n; ++i) {
    const int row = x->now.row[i].row;
    if (!is_extra(w, &x->now, i, &x->start)) continue;
    const sn_real speed = row_speed(w, row), time = row_gap(w, row) / sn_min(speed, -SN_MINVAL);
    if (speed >= 0) return -1;
    if (time > since) a->speed = -speed;
    since = sn_max(since, time);
  }
  return since;
}

// How long it takes until the first of the rows ends.
static sn_real until_end(const SnHorizon *h, Search *a) {
  const SnHorizonScratch *x = h->scratch;
  const SnWorld *w = &h->world;
  sn_real until = SN_MAXVAL;
  for (int i = 0; i < x->now.n; ++i) {
    const int row = x->now.row[i].row;
    const sn_real speed = row_speed(w, row), time = -row_gap(w, row) / sn_max(speed, SN_MINVAL);
    if (speed <= 0 || time >= until) continue;
    a->speed = speed;
    until = time;
  }
  return until;
}

// The shortest time in which a row is certain to have changed, in spite of rounding.
static sn_real nudge_of(const SnKeptStep *s, const Search *a) {
  return 16 * SN_EPS * sn_max(s->time[0], 1 / sn_max(a->speed, SN_MINVAL));
}

bool sn_horizon_find_event(SnHorizon *h, const SnKeptStep *s, sn_real guess, bool curved, sn_real *time) {
  Search a = {.speed = 1, .leave = -1};
  sn_real at = guess;
  for (int k = 0; k < EVENT_PROBES; ++k) {
    const int found = probe(h, s, at, curved);
    sn_real since = -1;
    if (found) {
      a.hi = at;
      a.found = found;
      since = found == EVENT_BEGINS ? since_begin(h, &a) : -1;
    } else {
      a.lo = at;
      a.leave = at + until_end(h, &a);
    }
    if (a.hi == 0) {  // the path is not that of the step: the event may come a little later
      if (k >= EVENT_WIDER) return false;
      at *= SN_R(1.2);
      continue;
    }
    const sn_real nudge = nudge_of(s, &a);
    if (nudge > sn_horizon_crossing() / 4) return false;
    *time = sn_max(a.hi, nudge);
    if (a.hi - a.lo <= 4 * nudge || (found == EVENT_BEGINS && since >= 0 && since <= 4 * nudge)) return true;
    sn_real next = SN_R(0.5) * (a.lo + a.hi);
    if (since >= 0)
      next = at - since + nudge;
    else if (a.found & EVENT_ENDS && a.leave > a.lo && a.leave < a.hi)
      next = a.leave + nudge < a.hi ? a.leave + nudge : a.hi - 3 * nudge;
    at = next > a.lo && next < a.hi ? next : SN_R(0.5) * (a.lo + a.hi);
  }
  return false;
}

// ---- the way back ----

// Evaluates the dynamics at the start of a kept step and notes its rows.
static bool evaluate_start(SnHorizon *h, const SnHorizonInput *in, int k, SnEventRows *rows) {
  const SnKeptStep s = sn_horizon_kept(h, k);
  SnHorizonScratch *x = h->scratch;
  sn_horizon_sum(h, &s, NULL, 0);
  sn_horizon_move(h, &s, 0, false);
  memcpy(h->world.qacc_warmstart, s.acc, sizeof *s.acc * (size_t)h->model.nv);
  if (!sn_horizon_evaluate(h, in, &s, x->segment[sn_horizon_slot(h, k)], 0, 0)) return false;
  sn_horizon_note_rows(h, rows, 0);
  return true;
}

// Marks the rows that these, the world's, have and the others have not. pushing: those alone that have a force. Returns
// their number.
static int mark_moved(const SnWorld *w, SnEventRows *these, const SnEventRows *others, bool pushing) {
  int n = 0;
  for (int i = 0; i < these->n; ++i) {
    SnEventRow *row = these->row + i;
    row->moved = is_extra(w, these, i, others) && (row->pushes || !pushing);
    n += row->moved;
  }
  return n;
}

// Runs the adjoint of the world's rows from a bar of the gap of one of them alone.
static void gap_vjp(SnHorizon *h, int row, sn_real bar) {
  const SnModel *m = &h->model;
  SnAdjoint *a = &h->scratch->adjoint;
  const size_t nefc = (size_t)h->world.nefc[0];
  sn_adjoint_clear(m, a, &h->lane);
  sn_motion_rest(m, &h->world, a, &h->lane);
  memset(a->row_z, 0, sizeof *a->row_z * 3 * nefc);
  memset(a->row_pos, 0, sizeof *a->row_pos * nefc);
  memset(a->row_lambda, 0, sizeof *a->row_lambda * nefc);
  memset(a->row_c, 0, sizeof *a->row_c * nefc);
  a->row_pos[row] = bar;
  sn_rows_vjp(m, &h->world, a, &h->lane);
  sn_position_vjp(m, &h->world, a, &h->lane);
}

// Hands the shares of the world's rows on to positions, mocap bodies and the model.
static void moments_vjp(SnHorizon *h, const SnEventRows *these, sn_real share, const SnHorizonBars *bars) {
  const SnModel *m = &h->model;
  SnHorizonScratch *x = h->scratch;
  SnAdjoint *a = &x->adjoint;
  struct SnModelBar *model = a->host->model;
  for (int i = 0; i < these->n; ++i) {
    if (!these->row[i].moved) continue;
    a->host->model = NULL;
    gap_vjp(h, these->row[i].row, 1);
    a->host->model = model;
    const sn_real rate = sn_dot(a->qpos_bar, h->world.qvel, m->nv);
    if (sn_abs(rate) <= SN_MINVAL) continue;
    const sn_real bar = share / rate;
    for (int k = 0; k < m->nv; ++k) x->next_bar[k] += bar * a->qpos_bar[k];
    for (int k = 0; bars->mocap && k < 6 * m->nmocap; ++k) bars->mocap[k] += bar * a->mocap_bar[k];
    if (model) gap_vjp(h, these->row[i].row, bar);
  }
}

bool sn_horizon_jump_vjp(SnHorizon *h, const SnHorizonInput *in, const SnHorizonBars *bars, int k) {
  SnHorizonScratch *x = h->scratch;
  const SnKeptStep s = sn_horizon_kept(h, k);
  const int nv = h->model.nv, na = h->model.na;
  const sn_real *bar = x->next_bar;
  const sn_real total =
      x->flow - sn_dot(bar, s.qvel, nv) - sn_dot(bar + nv, s.acc, nv) - sn_dot(bar + 2 * nv, s.adot, na);
  if (total == 0) return true;
  if (!evaluate_start(h, in, k + 1, &x->now) || !evaluate_start(h, in, k, &x->start)) return false;
  const int ended = mark_moved(&h->world, &x->start, &x->now, true);
  if (!evaluate_start(h, in, k + 1, &x->now)) return false;
  const int began = mark_moved(&h->world, &x->now, &x->start, false);
  if (ended + began == 0) return true;
  const sn_real share = total / (sn_real)(ended + began);
  if (began > 0) moments_vjp(h, &x->now, share, bars);
  if (ended == 0) return true;
  if (!evaluate_start(h, in, k, &x->now)) return false;  // the rows of x->start, and their shares
  moments_vjp(h, &x->start, share, bars);
  return true;
}

// The broad phase of models with many geoms: sort and sweep (Cohen, Lin, Manocha, Ponamgi 1995) in place of a test of
// every pair.
//
// The balls around the geoms, grown by their margins and gaps, are intervals along the axis of the world along which
// their centres vary most. Sorted by their lower ends, each interval meets those that begin before it ends. What meets
// is tested as the pairs of a list are (collide.c): by the distance of the centres. Then it is looked up: in the list
// of the model's pairs, or, where there are too many to list (setup_collision.c), by the rules that make that list.
//
// What is near is gathered as keys, numbers that order pairs as MuJoCo orders contacts: bodies (12 bits each),
// predefined or not (1), then two numbers of 12 bits, the geoms, or the index of a predefined pair. Keys are sorted,
// and become pairs. Ends of intervals are whole numbers, 2^30 of them over the range of all, rounded outwards: so one
// routine sorts both.
//
// One lane does all of it: n log n and what meets, beside the search for contacts.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"
#include "physics/collision/collision.h"

// Sorts n numbers by heap sort.
SN_LOCAL void sweep_sort(uint64_t *x, int n) {
  for (int start = n / 2 - 1, end = n; end > 1;) {
    int root = 0;
    if (start >= 0) {
      root = start--;
    } else {
      const uint64_t last = x[--end];
      x[end] = x[0];
      x[0] = last;
    }
    const uint64_t value = x[root];
    for (int child = 2 * root + 1; child < end; child = 2 * root + 1) {
      if (child + 1 < end && x[child + 1] > x[child]) ++child;
      if (x[child] <= value) break;
      x[root] = x[child];
      root = child;
    }
    x[root] = value;
  }
}

// Index of x among n ascending numbers; -1: not there.
SN_LOCAL int sweep_find(const uint64_t *list, int n, uint64_t x) {
  int low = 0, high = n;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (list[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && list[low] == x ? low : -1;
}

// True when two geoms of bodies b1 < b2 may touch: the rules of setup_collision.c.
SN_LOCAL bool sweep_may_touch(const SnModel *m, int g1, int g2, int b1, int b2) {
  const int weld1 = m->body_weldid[b1], weld2 = m->body_weldid[b2];
  const int parent1 = m->body_weldid[m->body_parentid[weld1]], parent2 = m->body_weldid[m->body_parentid[weld2]];
  const bool filter = !(m->opt.disableflags & SN_DSBL_FILTERPARENT);
  if (weld1 == weld2) return false;
  if (!(m->geom_contype[g1] & m->geom_conaffinity[g2]) && !(m->geom_contype[g2] & m->geom_conaffinity[g1]))
    return false;
  if (filter && weld1 != 0 && weld2 != 0 && (weld1 == parent2 || weld2 == parent1)) return false;
  if (sweep_find(m->rule_exclude, m->nruleexclude, ((uint64_t)b1 << 16) + (uint64_t)b2) >= 0) return false;
  return sweep_find(m->rule_pair, m->nrulepair, sn_geom_pair_code(g1, g2)) < 0;
}

// The key of a pair that nobody asked for by name.
SN_LOCAL uint64_t sweep_key_of(const SnModel *m, int g1, int g2) {
  const bool ordered = m->geom_bodyid[g1] < m->geom_bodyid[g2];
  const int a = ordered ? g1 : g2, b = ordered ? g2 : g1, body1 = m->geom_bodyid[a], body2 = m->geom_bodyid[b];
  const bool single = m->body_geomnum[body1] == 1 && m->body_geomnum[body2] == 1;
  const bool by_type = !single && !(m->opt.disableflags & SN_DSBL_MIDPHASE);
  const bool swap = by_type && m->geom_type[a] > m->geom_type[b];
  return sn_pair_key(body1, body2) | (uint64_t)1 << 24 | (uint64_t)(swap ? b : a) << 12 | (uint64_t)(swap ? a : b);
}

// The pair of a key that is not in the list: its number as sn_pair_info reads it.
SN_LOCAL int sweep_unlisted(const SnModel *m, uint64_t key) {
  const int g1 = (int)(key >> 12 & 4095), g2 = (int)(key & 4095);
  const bool swap = m->geom_type[g1] > m->geom_type[g2];
  return m->ncpair + (swap ? g2 : g1) * m->ngeom + (swap ? g1 : g2);
}

// What was found.
typedef struct SnSweep {
  int nfound;
  bool full;
} SnSweep;

SN_LOCAL void sweep_note(const SnModel *m, SnWorld *w, SnSweep *s, uint64_t key) {
  if (s->nfound < m->nnearmax)
    w->sweep_key[s->nfound++] = key;
  else
    s->full = true;
}

// Takes a pair of geoms that may be near: tests and notes it.
SN_LOCAL void sweep_take(const SnModel *m, SnWorld *w, SnSweep *s, int g1, int g2) {
  const int b1 = m->geom_bodyid[g1], b2 = m->geom_bodyid[g2];
  if (b1 == b2 || (!m->sweep_moves[g1] && !m->sweep_moves[g2])) return;
  if (sn_any_asleep(m, w) && sn_pair_asleep(m, w, g1, g2)) return;
  const bool plane1 = m->geom_type[g1] == SN_GEOM_PLANE, plane2 = m->geom_type[g2] == SN_GEOM_PLANE;
  const sn_real reach = m->sweep_reach[g1] + m->sweep_reach[g2];
  sn_real d[3];
  sn_sub3(d, w->geom_xpos + 3 * g2, w->geom_xpos + 3 * g1);
  if (plane1 || plane2) {
    const sn_real *mat = w->geom_xmat + 9 * (plane1 ? g1 : g2);
    const sn_real normal[3] = {mat[2], mat[5], mat[8]}, height = sn_dot3(d, normal);
    if (!((plane1 ? height : -height) <= m->geom_rbound[plane1 ? g2 : g1] + reach * (1 + SN_R(16.0) * SN_EPS))) return;
  } else {
    const sn_real bound = (m->geom_rbound[g1] + m->geom_rbound[g2] + reach) * (1 + SN_R(16.0) * SN_EPS);
    if (!(sn_dot3(d, d) <= bound * bound)) return;
  }
  const uint64_t key = sweep_key_of(m, g1, g2);
  if (m->unlisted) {
    if (!sweep_may_touch(m, g1, g2, sn_mini(b1, b2), sn_maxi(b1, b2))) return;
  } else {
    const int pair = sweep_find(m->sweep_listed, m->ncpair, key);
    if (pair < 0 || !sn_collide_is_near(m, w, pair)) return;
  }
  sweep_note(m, w, s, key);
}

// The axis along which the centres vary most.
SN_LOCAL int sweep_axis(const SnModel *m, const SnWorld *w) {
  sn_real sum[3] = {0, 0, 0}, square[3] = {0, 0, 0};
  for (int i = 0; i < m->nsweep; ++i)
    for (int k = 0; k < 3; ++k) {
      const sn_real x = w->geom_xpos[3 * m->sweep_geom[i] + k];
      if (sn_is_bad(x)) continue;
      sum[k] += x;
      square[k] += x * x;
    }
  int axis = 0;
  for (int k = 0; k < 3; ++k) square[k] -= sum[k] * sum[k] / (sn_real)sn_maxi(m->nsweep, 1);
  for (int k = 1; k < 3; ++k)
    if (square[k] > square[axis]) axis = k;
  return axis;
}

// Intervals in whole numbers, and the order of their lower ends: returns how many geoms have any.
SN_LOCAL int sweep_intervals(const SnModel *m, SnWorld *w) {
  const int axis = sweep_axis(m, w);
  sn_real least = SN_MAXVAL, most = -SN_MAXVAL;
  int n = 0;
  for (int i = 0; i < m->nsweep; ++i) {
    const int g = m->sweep_geom[i];
    const sn_real x = w->geom_xpos[3 * g + axis], half = m->geom_rbound[g] + m->sweep_reach[g];
    if (sn_is_bad(x)) continue;
    least = sn_min(least, x - half);
    most = sn_max(most, x + half);
  }
  const sn_real scale = SN_R(1073741824.0) / sn_max(most - least, SN_MINVAL);
  for (int i = 0; i < m->nsweep; ++i) {
    const int g = m->sweep_geom[i];
    const sn_real x = w->geom_xpos[3 * g + axis], half = m->geom_rbound[g] + m->sweep_reach[g];
    if (sn_is_bad(x)) continue;
    // one unit more on both sides, and what a float rounds
    const sn_real slack = 1 + SN_R(16.0) * SN_EPS * SN_R(1073741824.0);
    const sn_real low = sn_max(sn_floor((x - half - least) * scale - slack), 0);
    w->sweep_high[g] = (int)sn_min(sn_floor((x + half - least) * scale + slack), SN_R(2147483000.0));
    w->sweep_low[n++] = (uint64_t)low << 12 | (uint64_t)g;
  }
  sweep_sort(w->sweep_low, n);
  return n;
}

// How many geoms are awake, in a world in which some sleep.
SN_LOCAL int sweep_awake(const SnModel *m, const SnWorld *w) {
  int n = 0;
  for (int i = 0; i < m->nsweep + m->nsweepplane; ++i)
    n += sn_body_sleep(m, w, m->geom_bodyid[m->sweep_geom[i]]) == SN_BODY_AWAKE;
  return n;
}

// Every pair of a geom that is awake with any other: sooner done than a sort, where few are.
SN_LOCAL void sweep_pairs_of_awake(const SnModel *m, SnWorld *w, SnSweep *s) {
  const int n = m->nsweep + m->nsweepplane;
  for (int i = 0; i < n; ++i) {
    const int g = m->sweep_geom[i];
    if (sn_body_sleep(m, w, m->geom_bodyid[g]) != SN_BODY_AWAKE) continue;
    for (int k = 0; k < n; ++k) {
      const int other = m->sweep_geom[k];
      const bool awake = sn_body_sleep(m, w, m->geom_bodyid[other]) == SN_BODY_AWAKE;
      const bool planes = i >= m->nsweep && k >= m->nsweep;
      if (!planes && (!awake || k > i)) sweep_take(m, w, s, g, other);
    }
  }
}

// Every pair whose intervals meet.
SN_LOCAL void sweep_pairs(const SnModel *m, SnWorld *w, SnSweep *s) {
  enum { FEW = 16 };
  if (sn_any_asleep(m, w) && sweep_awake(m, w) <= FEW) {
    sweep_pairs_of_awake(m, w, s);
    return;
  }
  const int n = sweep_intervals(m, w);
  const uint64_t *low = w->sweep_low;
  for (int i = 0; i < n; ++i) {
    const int g = (int)(low[i] & 4095);
    const uint64_t end = (uint64_t)w->sweep_high[g];
    for (int j = i + 1; j < n && low[j] >> 12 <= end; ++j) sweep_take(m, w, s, g, (int)(low[j] & 4095));
  }
  for (int i = m->nsweep; i < m->nsweep + m->nsweepplane; ++i)
    for (int j = 0; j < m->nsweep; ++j) sweep_take(m, w, s, m->sweep_geom[i], m->sweep_geom[j]);
}

SN_FUNC int sn_sweep(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_ONE(lane) {
    SnSweep s = {0, false};
    sweep_pairs(m, w, &s);
    for (int i = 0; i < m->nsweeppre; ++i) {
      const int pair = m->sweep_pre[i];
      if (sn_collide_is_near(m, w, pair)) sweep_note(m, w, &s, m->sweep_listed[pair]);
    }
    sweep_sort(w->sweep_key, s.nfound);
    for (int i = 0; i < s.nfound; ++i) {
      const int listed = sweep_find(m->sweep_listed, m->ncpair, w->sweep_key[i]);
      w->col_near[i] = listed >= 0 ? listed : sweep_unlisted(m, w->sweep_key[i]);
    }
    if (s.full) *w->warn |= SN_WARN_CONTACT_FULL;
    w->col_offset[0] = s.nfound;
  }
  SN_SYNC(lane);
  return w->col_offset[0];
}

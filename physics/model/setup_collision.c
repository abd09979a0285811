// Which geoms can ever touch, in which order, with which contact parameters: fixed at load, so that a step only
// measures distances.
//
// Rules are those of MuJoCo 4.0.0 (manual, Computation, Collision; facts checked by
// tests/physics/collision/test_collide.c):
//
// - A pair of bodies is a candidate unless they are welded together, neither can move, they are parent and child
//   (of weld groups, the world excepted, filterparent enabled), or the pair is excluded. A pair of their geoms
//   is a candidate when the contype of one meets the conaffinity of the other.
// - A predefined pair passes all of these, and replaces the candidate of the same two geoms.
// - Contacts come in the order of the bodies (lower id, then higher id); for one pair of bodies the predefined pairs
// first, in
//   their own order, then the others. Those are ordered by their geoms (first body's geom, then second's) when
//   both bodies have a single geom or the mid phase is disabled; else by (first, second) of the contact, whose geoms
//   are ordered by type: MuJoCo sorts what its mid phase finds.
// - Not reproduced: with contact override MuJoCo's broad and mid phases leave the gap out, so it may drop contacts that
//   lie in the gap. They make no rows; ours are all there.
// - Parameters: the geom of higher priority decides; of equal priority, condim and friction are the larger ones,
//   solref and solimp are weighted by solmix (the smaller solref where one is in the direct, non-positive form).
//   Margins and gaps add up. A contact exists below margin + gap and makes rows below margin. opt.o_* override all.
#include <stdlib.h>

#include "physics/model/model_private.h"

// Capacity for the contacts of one world where the pairs could make more: rows and workspace grow with it. In random
// states of all models of MyoSuite 2.12.2 there are at most 55. What does not fit is dropped (SN_WARN_CONTACT_FULL).
// Models of more than CONTACT_GEOMS geoms have room for eight more a geom.
enum { CONTACT_CAP = 256, CONTACT_GEOMS = 300, FAR_CAP = 2048 };

// From SWEEP_MIN pairs of geoms on the broad phase sweeps along an axis instead of testing each of them. More than
// LIST_MAX are not listed: what the list would say is asked for when two geoms are near, from rules. Pairs that are
// near at a time have room for NEAR_GEOM a geom then, and geoms CLASS_MAX different sets of contact parameters.
enum { SWEEP_MIN = 20000, LIST_MAX = 200000, NEAR_GEOM = 64, CLASS_MAX = 256 };

static const sn_real MIN_FRICTION = SN_R(1e-5);  // MuJoCo's mjMINMU

typedef struct PairKey {
  unsigned int signature;  // body1 << 16 | body2, body1 <= body2
  int order[3];            // predefined pairs (0, index, 0), then (1, first, second)
  int geom[2];             // ordered by type
  int pair;                // index of the predefined pair; -1: none
} PairKey;

typedef struct PairList {
  PairKey *key;
  int n, capacity;
} PairList;

static int compare_pairs(const void *va, const void *vb) {
  const PairKey *a = va, *b = vb;
  if (a->signature != b->signature) return a->signature < b->signature ? -1 : 1;
  for (int i = 0; i < 3; ++i)
    if (a->order[i] != b->order[i]) return a->order[i] < b->order[i] ? -1 : 1;
  return 0;
}

// False when there are too many pairs or no memory.
static bool add_pair(PairList *list, PairKey key) {
  if (list->n == LIST_MAX) return false;
  if (list->n == list->capacity) {
    const int capacity = list->capacity ? 2 * list->capacity : 256;
    PairKey *grown = realloc(list->key, sizeof *grown * (size_t)capacity);
    if (!grown) return false;
    list->key = grown;
    list->capacity = capacity;
  }
  list->key[list->n++] = key;
  return true;
}

SnCollider sn_collider(int type1, int type2) {
  enum {
    P = SN_GEOM_PLANE,
    S = SN_GEOM_SPHERE,
    C = SN_GEOM_CAPSULE,
    E = SN_GEOM_ELLIPSOID,
    Y = SN_GEOM_CYLINDER,
    B = SN_GEOM_BOX,
    M = SN_GEOM_MESH
  };
  if (type2 > M || type2 == SN_GEOM_HFIELD || type2 == P) return SN_COLLIDER_NONE;
  if (type1 == SN_GEOM_HFIELD) return SN_COLLIDER_HFIELD;
  if (type1 == P) {
    if (type2 == S) return SN_COLLIDER_PLANE_SPHERE;
    if (type2 == C) return SN_COLLIDER_PLANE_CAPSULE;
    if (type2 == Y) return SN_COLLIDER_PLANE_CYLINDER;
    if (type2 == B) return SN_COLLIDER_PLANE_BOX;
    return SN_COLLIDER_PLANE_CONVEX;
  }
  if (type1 == S && type2 == S) return SN_COLLIDER_SPHERE_SPHERE;
  if (type1 == S && type2 == C) return SN_COLLIDER_SPHERE_CAPSULE;
  if (type1 == S && type2 == Y) return SN_COLLIDER_SPHERE_CYLINDER;
  if (type1 == S && type2 == B) return SN_COLLIDER_SPHERE_BOX;
  if (type1 == C && type2 == C) return SN_COLLIDER_CAPSULE_CAPSULE;
  if (type1 == C && type2 == B) return SN_COLLIDER_CAPSULE_BOX;
  if (type1 == B && type2 == B) return SN_COLLIDER_BOX_BOX;
  return SN_COLLIDER_CONVEX;
}

static int types_max(const SnModel *m, int type1, int type2) {
  switch (sn_collider(type1, type2)) {
    case SN_COLLIDER_NONE:
      return 0;
    case SN_COLLIDER_PLANE_CAPSULE:
    case SN_COLLIDER_CAPSULE_CAPSULE:
    case SN_COLLIDER_CAPSULE_BOX:
      return 2;
    case SN_COLLIDER_PLANE_CYLINDER:
    case SN_COLLIDER_PLANE_BOX:
      return 4;
    case SN_COLLIDER_PLANE_CONVEX:
      return type2 == SN_GEOM_MESH ? 4 : 1;
    case SN_COLLIDER_BOX_BOX:
      return 8;
    case SN_COLLIDER_HFIELD:
      return SN_MAXCON_HFIELD;
    case SN_COLLIDER_CONVEX:
      break;
    default:
      return 1;
  }
  const bool round = type1 == SN_GEOM_SPHERE || type1 == SN_GEOM_ELLIPSOID || type2 == SN_GEOM_ELLIPSOID;
  if (round || (m->opt.disableflags & SN_DSBL_MULTICCD)) return 1;
  return type1 == SN_GEOM_CAPSULE ? 2 : 4;
}

int sn_collider_max(const SnModel *m, int g1, int g2) { return types_max(m, m->geom_type[g1], m->geom_type[g2]); }

// True when the pair of bodies b1 < b2 may make contacts that nobody asked for by name.
static bool bodies_collide(const SnModel *m, int b1, int b2) {
  if (!(m->body_contype[b1] & m->body_conaffinity[b2]) && !(m->body_contype[b2] & m->body_conaffinity[b1]))
    return false;
  const int weld1 = m->body_weldid[b1], weld2 = m->body_weldid[b2];
  if (weld1 == weld2) return false;
  if (m->body_dofnum[weld1] == 0 && m->body_dofnum[weld2] == 0) return false;
  const int parent1 = m->body_weldid[m->body_parentid[weld1]], parent2 = m->body_weldid[m->body_parentid[weld2]];
  const bool filter = !(m->opt.disableflags & SN_DSBL_FILTERPARENT);
  if (filter && weld1 != 0 && weld2 != 0 && (weld1 == parent2 || weld2 == parent1)) return false;
  const unsigned int signature = ((unsigned int)b1 << 16) + (unsigned int)b2;
  for (int i = 0; i < m->nexclude; ++i)
    if ((unsigned int)m->exclude_signature[i] == signature) return false;
  return true;
}

// True when one of the predefined pairs joins these geoms.
static bool is_predefined(const SnModel *m, int g1, int g2) {
  for (int i = 0; i < m->npair; ++i) {
    const int a = m->pair_geom1[i], b = m->pair_geom2[i];
    if ((a == g1 && b == g2) || (a == g2 && b == g1)) return true;
  }
  return false;
}

// The key of a pair of geoms; order[1..2] are the geoms as given, which ordering by type may swap.
static PairKey make_key(const SnModel *m, unsigned int signature, int g1, int g2, int pair) {
  const bool swap = m->geom_type[g1] > m->geom_type[g2];
  PairKey key = {.signature = signature, .pair = pair};
  key.order[0] = pair < 0;
  key.order[1] = pair < 0 ? g1 : pair;
  key.order[2] = pair < 0 ? g2 : 0;
  key.geom[0] = swap ? g2 : g1;
  key.geom[1] = swap ? g1 : g2;
  return key;
}

static bool add_body_pair(const SnModel *m, int b1, int b2, PairList *list) {
  const unsigned int signature = ((unsigned int)b1 << 16) + (unsigned int)b2;
  const int adr1 = m->body_geomadr[b1], n1 = m->body_geomnum[b1], adr2 = m->body_geomadr[b2], n2 = m->body_geomnum[b2];
  const bool sorted = !(n1 == 1 && n2 == 1) && !(m->opt.disableflags & SN_DSBL_MIDPHASE);
  for (int g1 = adr1; g1 < adr1 + n1; ++g1)
    for (int g2 = adr2; g2 < adr2 + n2; ++g2) {
      const bool meet =
          (m->geom_contype[g1] & m->geom_conaffinity[g2]) || (m->geom_contype[g2] & m->geom_conaffinity[g1]);
      PairKey key = make_key(m, signature, g1, g2, -1);
      if (!meet || sn_collider(m->geom_type[key.geom[0]], m->geom_type[key.geom[1]]) == SN_COLLIDER_NONE) continue;
      if (is_predefined(m, g1, g2)) continue;
      if (sorted) {
        key.order[1] = key.geom[0];
        key.order[2] = key.geom[1];
      }
      if (!add_pair(list, key)) return false;
    }
  return true;
}

// Lists the pairs, or the predefined ones alone.
static bool list_pairs(const SnModel *m, bool all, PairList *list) {
  for (int i = 0; i < m->npair; ++i) {
    const PairKey key = make_key(m, (unsigned int)m->pair_signature[i], m->pair_geom1[i], m->pair_geom2[i], i);
    if (sn_collider(m->geom_type[key.geom[0]], m->geom_type[key.geom[1]]) == SN_COLLIDER_NONE) continue;
    if (!add_pair(list, key)) return false;
  }
  for (int b1 = 0; all && b1 < m->nbody; ++b1)
    for (int b2 = b1 + 1; b2 < m->nbody; ++b2)
      if (bodies_collide(m, b1, b2) && !add_body_pair(m, b1, b2, list)) return false;
  if (list->n > 1) qsort(list->key, (size_t)list->n, sizeof *list->key, compare_pairs);
  return true;
}

// Contact parameters as SnContact holds them: 15 reals and condim.
typedef struct PairParam {
  sn_real v[SN_NCONPARAM];  // includemargin, friction (5), solref (2), solreffriction (2), solimp (5), adhesion
  int dim;
} PairParam;
enum {
  PARAM_MARGIN = 0,
  PARAM_FRICTION = 1,
  PARAM_SOLREF = 6,
  PARAM_SOLREFFRICTION = 8,
  PARAM_SOLIMP = 10,
  PARAM_ADHESION = 15
};

static void copy_reals(sn_real *r, const sn_real *a, int n) {
  for (int i = 0; i < n; ++i) r[i] = a[i];
}

// Weight of the first geom.
static sn_real mix_weight(sn_real mix1, sn_real mix2) {
  const bool some1 = mix1 >= SN_MINVAL, some2 = mix2 >= SN_MINVAL;
  if (some1 && some2) return mix1 / (mix1 + mix2);
  return some1 == some2 ? SN_R(0.5) : (some1 ? SN_R(1.0) : SN_R(0.0));
}

static void mix_geoms(const SnModel *m, int g1, int g2, PairParam *p) {
  const sn_real *ref1 = m->geom_solref + SN_NREF * g1, *ref2 = m->geom_solref + SN_NREF * g2;
  const sn_real *imp1 = m->geom_solimp + SN_NIMP * g1, *imp2 = m->geom_solimp + SN_NIMP * g2;
  const sn_real *fri1 = m->geom_friction + 3 * g1, *fri2 = m->geom_friction + 3 * g2;
  const int lead = m->geom_priority[g1] - m->geom_priority[g2];
  sn_real friction[3];
  if (lead != 0) {
    const int g = lead > 0 ? g1 : g2;
    p->dim = m->geom_condim[g];
    p->v[PARAM_ADHESION] = m->geom_adhesion[g];
    copy_reals(p->v + PARAM_SOLREF, m->geom_solref + SN_NREF * g, SN_NREF);
    copy_reals(p->v + PARAM_SOLIMP, m->geom_solimp + SN_NIMP * g, SN_NIMP);
    copy_reals(friction, m->geom_friction + 3 * g, 3);
  } else {
    const sn_real mix = mix_weight(m->geom_solmix[g1], m->geom_solmix[g2]);
    const bool standard = ref1[0] > 0 && ref2[0] > 0;
    p->dim = sn_maxi(m->geom_condim[g1], m->geom_condim[g2]);
    p->v[PARAM_ADHESION] = m->geom_adhesion[g1] + m->geom_adhesion[g2];
    for (int i = 0; i < SN_NREF; ++i)
      p->v[PARAM_SOLREF + i] = standard ? mix * ref1[i] + (1 - mix) * ref2[i] : sn_min(ref1[i], ref2[i]);
    for (int i = 0; i < SN_NIMP; ++i) p->v[PARAM_SOLIMP + i] = mix * imp1[i] + (1 - mix) * imp2[i];
    for (int i = 0; i < 3; ++i) friction[i] = sn_max(fri1[i], fri2[i]);
  }
  static const int unpack[5] = {0, 0, 1, 2, 2};  // sliding twice, spin, rolling twice
  for (int i = 0; i < 5; ++i) p->v[PARAM_FRICTION + i] = friction[unpack[i]];
}

// Parameters of a pair and its gap.
static sn_real pair_param(const SnModel *m, const PairKey *key, PairParam *p) {
  const int g1 = key->geom[0], g2 = key->geom[1], k = key->pair;
  const bool override = (m->opt.enableflags & SN_ENBL_OVERRIDE) != 0;
  *p = (PairParam){0};
  if (k >= 0) {
    p->dim = m->pair_dim[k];
    p->v[PARAM_MARGIN] = m->pair_margin[k];
    p->v[PARAM_ADHESION] = m->pair_adhesion[k];
    copy_reals(p->v + PARAM_FRICTION, m->pair_friction + 5 * k, 5);
    copy_reals(p->v + PARAM_SOLREF, m->pair_solref + SN_NREF * k, SN_NREF);
    copy_reals(p->v + PARAM_SOLREFFRICTION, m->pair_solreffriction + SN_NREF * k, SN_NREF);
    copy_reals(p->v + PARAM_SOLIMP, m->pair_solimp + SN_NIMP * k, SN_NIMP);
  } else {
    mix_geoms(m, g1, g2, p);
    p->v[PARAM_MARGIN] = m->geom_margin[g1] + m->geom_margin[g2];
  }
  if (override) {
    p->v[PARAM_MARGIN] = m->opt.o_margin;
    copy_reals(p->v + PARAM_FRICTION, m->opt.o_friction, 5);
    copy_reals(p->v + PARAM_SOLREF, m->opt.o_solref, SN_NREF);
    copy_reals(p->v + PARAM_SOLREFFRICTION, m->opt.o_solref, SN_NREF);
    copy_reals(p->v + PARAM_SOLIMP, m->opt.o_solimp, SN_NIMP);
  }
  for (int i = 0; i < 5; ++i) p->v[PARAM_FRICTION + i] = sn_max(MIN_FRICTION, p->v[PARAM_FRICTION + i]);
  return k >= 0 ? m->pair_gap[k] : m->geom_gap[g1] + m->geom_gap[g2];
}

// Index of p among the n different parameter sets found so far; n itself when it is new.
static int find_param(const PairParam *set, int n, const PairParam *p) {
  for (int i = n - 1; i >= 0; --i)
    if (set[i].dim == p->dim && memcmp(set[i].v, p->v, sizeof p->v) == 0) return i;
  return n;
}

// True when two geoms give any contact the same parameters.
static bool same_class(const SnModel *m, int a, int b) {
  bool same = m->geom_condim[a] == m->geom_condim[b] && m->geom_priority[a] == m->geom_priority[b] &&
              m->geom_solmix[a] == m->geom_solmix[b] && m->geom_margin[a] == m->geom_margin[b] &&
              m->geom_adhesion[a] == m->geom_adhesion[b];
  for (int i = 0; i < SN_NREF; ++i) same = same && m->geom_solref[SN_NREF * a + i] == m->geom_solref[SN_NREF * b + i];
  for (int i = 0; i < SN_NIMP; ++i) same = same && m->geom_solimp[SN_NIMP * a + i] == m->geom_solimp[SN_NIMP * b + i];
  for (int i = 0; i < 3; ++i) same = same && m->geom_friction[3 * a + i] == m->geom_friction[3 * b + i];
  return same;
}

// Finds the classes of geoms: `first` (CLASS_MAX) gets one geom of each. Returns their number, CLASS_MAX + 1: too many.
static int find_classes(const SnModel *m, int *of, int *first) {
  int n = 0;
  for (int g = 0; g < m->ngeom; ++g) {
    int k = 0;
    while (k < n && !same_class(m, first[k], g)) ++k;
    if (k == CLASS_MAX) return CLASS_MAX + 1;
    if (k == n) first[n++] = g;
    of[g] = k;
  }
  return n;
}

static int compare_codes(const void *va, const void *vb) {
  const uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;
  return (a > b) - (a < b);
}

// Sets the rules that stand for a list, but for parameters. All are empty where there is a list.
static bool store_rules(SnModel *m) {
  m->nruleexclude = m->unlisted ? m->nexclude : 0;
  m->nrulepair = m->unlisted ? m->npair : 0;
  m->nruletype = m->unlisted ? 9 * 9 : 0;
  m->rule_exclude = sn_model_alloc(m, sizeof(uint64_t) * (size_t)m->nruleexclude);
  m->rule_pair = sn_model_alloc(m, sizeof(uint64_t) * (size_t)m->nrulepair);
  m->rule_collider = sn_model_alloc(m, sizeof(int) * (size_t)m->nruletype);
  m->rule_max = sn_model_alloc(m, sizeof(int) * (size_t)m->nruletype);
  m->rule_class = sn_model_alloc(m, m->unlisted ? sizeof(int) * (size_t)m->ngeom : 0);
  m->rule_param = sn_model_alloc(m, 0);
  if (!m->rule_exclude || !m->rule_pair || !m->rule_collider || !m->rule_max || !m->rule_class || !m->rule_param)
    return false;
  if (!m->unlisted) return true;
  for (int i = 0; i < m->nexclude; ++i) m->rule_exclude[i] = (uint64_t)(unsigned int)m->exclude_signature[i];
  for (int i = 0; i < m->npair; ++i) m->rule_pair[i] = sn_geom_pair_code(m->pair_geom1[i], m->pair_geom2[i]);
  if (m->nexclude > 1) qsort(m->rule_exclude, (size_t)m->nexclude, sizeof(uint64_t), compare_codes);
  if (m->npair > 1) qsort(m->rule_pair, (size_t)m->npair, sizeof(uint64_t), compare_codes);
  for (int i = 0; i < m->nruletype; ++i) {
    m->rule_collider[i] = i / 9 <= i % 9 ? (int)sn_collider(i / 9, i % 9) : (int)SN_COLLIDER_NONE;
    m->rule_max[i] = i / 9 <= i % 9 ? types_max(m, i / 9, i % 9) : 0;
  }
  return true;
}

// Appends the parameters of all pairs of classes to the sets.
static void store_rule_params(SnModel *m, const int *first, PairParam *set) {
  for (int k = 0; k < m->nruleparam; ++k) {
    const PairKey key = {.geom = {first[k / m->nruleclass], first[k % m->nruleclass]}, .pair = -1};
    pair_param(m, &key, set + m->nconparam);
    m->nadhesive += set[m->nconparam].v[PARAM_ADHESION] != 0;
    m->rule_param[k] = m->nconparam++;
  }
}

// What a geom adds to the reach of a pair.
static sn_real geom_reach(const SnModel *m, int g) {
  const bool override = (m->opt.enableflags & SN_ENBL_OVERRIDE) != 0;
  return (override ? SN_R(0.5) * m->opt.o_margin : m->geom_margin[g]) + m->geom_gap[g] +
         SN_R(0.5) * sn_sigmoid_reach(m);
}

// Sets up the broad phase by sweeping, or that by a list.
static bool store_sweep(SnModel *m, const PairList *list) {
  const bool sweep = m->unlisted || list->n >= SWEEP_MIN;
  int predefined = 0;
  m->nnearmax = m->unlisted ? NEAR_GEOM * m->ngeom + list->n : list->n;
  m->nsweepgeom = sweep ? m->ngeom : 0;
  m->nsweepnear = sweep ? m->nnearmax : 0;
  m->nsweepkey = sweep ? list->n : 0;
  for (int i = 0; sweep && i < list->n; ++i) m->nsweeppre += list->key[i].pair >= 0;
  m->sweep_geom = sn_model_alloc(m, sizeof(int) * (size_t)m->nsweepgeom);
  m->sweep_moves = sn_model_alloc(m, sizeof(int) * (size_t)m->nsweepgeom);
  m->sweep_reach = sn_model_alloc(m, sizeof(sn_real) * (size_t)m->nsweepgeom);
  m->sweep_listed = sn_model_alloc(m, sizeof(uint64_t) * (size_t)m->nsweepkey);
  m->sweep_pre = sn_model_alloc(m, sizeof(int) * (size_t)m->nsweeppre);
  if (!m->sweep_geom || !m->sweep_moves || !m->sweep_reach || !m->sweep_listed || !m->sweep_pre) return false;
  if (!sweep) return true;
  for (int g = 0; g < m->ngeom; ++g) {
    m->sweep_moves[g] = m->body_dofnum[m->body_weldid[m->geom_bodyid[g]]] > 0;
    m->sweep_reach[g] = geom_reach(m, g);
    if (m->geom_collides[g] && m->geom_type[g] != SN_GEOM_PLANE) m->sweep_geom[m->nsweep++] = g;
  }
  for (int g = 0; g < m->ngeom; ++g)
    if (m->geom_collides[g] && m->geom_type[g] == SN_GEOM_PLANE) m->sweep_geom[m->nsweep + m->nsweepplane++] = g;
  for (int i = 0; i < list->n; ++i) {
    const PairKey *key = list->key + i;
    const int order = key->pair >= 0 ? key->order[1] : 1 << 24 | key->order[1] << 12 | key->order[2];
    m->sweep_listed[i] =
        sn_pair_key((int)(key->signature >> 16), (int)(key->signature & 0xffff)) | (uint64_t)(unsigned int)order;
    if (key->pair >= 0) m->sweep_pre[predefined++] = i;
  }
  return true;
}

// Capacities for contacts. most: what the pairs could make; far: pairs that contacts from distance can be of.
static void store_capacities(SnModel *m, int64_t most, int npair, bool hfield, int far) {
  const int cap = CONTACT_CAP + 8 * sn_maxi(m->ngeom - CONTACT_GEOMS, 0);
  m->ncollide = sn_mini(npair, hfield ? SN_HFIELD_CHUNK : SN_COLLIDE_CHUNK);
  m->ncollideslot = hfield ? SN_HFIELD_SLOTS : SN_COLLIDE_SLOTS;
  m->nfarmax = sn_mini(far, FAR_CAP);
  m->nconmax = (most < cap ? (int)most : cap) + m->nfarmax;
}

// Fills the arrays of the model from the sorted list; set has room for list->n parameter sets, and for those of all
// pairs of classes, of which `first` has a geom each.
static bool store_pairs(SnModel *m, const PairList *list, const int *first, PairParam *set) {
  const size_t n = (size_t)list->n;
  m->ncpair = list->n;
  m->nconparam = m->nadhesive = 0;
  m->cpair_geom = sn_model_alloc(m, sizeof(int) * 2 * n);
  m->cpair_collider = sn_model_alloc(m, sizeof(int) * n);
  m->cpair_max = sn_model_alloc(m, sizeof(int) * n);
  m->cpair_param = sn_model_alloc(m, sizeof(int) * n);
  m->cpair_reach = sn_model_alloc(m, sizeof(sn_real) * n);
  m->cpair_bound = sn_model_alloc(m, sizeof(sn_real) * n);
  m->geom_collides = sn_model_alloc(m, sizeof(int) * (size_t)m->ngeom);
  if (!m->cpair_geom || !m->cpair_collider || !m->cpair_max || !m->cpair_param || !m->cpair_reach || !m->cpair_bound ||
      !m->geom_collides)
    return false;
  int64_t total = 0;
  bool hfield = false;
  for (int i = 0; i < list->n; ++i) {
    const PairKey *key = list->key + i;
    PairParam p;
    const sn_real gap = pair_param(m, key, &p);
    const int k = m->cpair_param[i] = find_param(set, m->nconparam, &p);
    if (k == m->nconparam) set[m->nconparam++] = p;
    for (int side = 0; side < 2; ++side) {
      m->cpair_geom[2 * i + side] = key->geom[side];
      m->geom_collides[key->geom[side]] = 1;
    }
    m->cpair_collider[i] = (int)sn_collider(m->geom_type[key->geom[0]], m->geom_type[key->geom[1]]);
    hfield = hfield || m->cpair_collider[i] == SN_COLLIDER_HFIELD;
    m->cpair_max[i] = sn_collider_max(m, key->geom[0], key->geom[1]);
    m->nadhesive += p.v[PARAM_ADHESION] != 0;
    m->cpair_reach[i] = p.v[PARAM_MARGIN] + gap + sn_sigmoid_reach(m);
    const sn_real bound = m->geom_rbound[key->geom[0]] + m->geom_rbound[key->geom[1]] + m->cpair_reach[i];
    m->cpair_bound[i] = m->geom_type[key->geom[0]] == SN_GEOM_PLANE ? SN_R(-1.0) : bound * bound;
    total += m->opt.enableflags & SN_ENBL_SPECULATIVE ? sn_maxi(m->cpair_max[i], 4) : m->cpair_max[i];
  }
  for (int g = 0; m->unlisted && g < m->ngeom; ++g) {
    m->geom_collides[g] |= m->geom_contype[g] != 0 || m->geom_conaffinity[g] != 0;
    hfield = hfield || (m->geom_collides[g] && m->geom_type[g] == SN_GEOM_HFIELD);
  }
  if (m->unlisted) store_rule_params(m, first, set);
  store_capacities(m, m->unlisted ? INT32_MAX : total, m->unlisted ? LIST_MAX : list->n, hfield, list->n);
  m->conparam = sn_model_alloc(m, sizeof(sn_real) * SN_NCONPARAM * (size_t)m->nconparam);
  m->conparam_dim = sn_model_alloc(m, sizeof(int) * (size_t)m->nconparam);
  if (!m->conparam || !m->conparam_dim) return false;
  for (int i = 0; i < m->nconparam; ++i) {
    copy_reals(m->conparam + SN_NCONPARAM * i, set[i].v, SN_NCONPARAM);
    m->conparam_dim[i] = set[i].dim;
  }
  return true;
}

// Fills type_collider.
static bool list_colliders(SnModel *m) {
  m->type_collider = sn_model_alloc(m, sizeof *m->type_collider * SN_GEOM_TYPES * SN_GEOM_TYPES);
  for (int i = 0; m->type_collider && i < SN_GEOM_TYPES; ++i)
    for (int j = i; j < SN_GEOM_TYPES; ++j) m->type_collider[SN_GEOM_TYPES * i + j] = (int)sn_collider(i, j);
  return m->type_collider != NULL;
}

// Begins the rules of a model whose pairs are too many: the predefined ones are listed alone.
static SnCode begin_unlisted(SnModel *m, PairList *list, int *first, SnError *err) {
  m->unlisted = 1;
  list->n = 0;
  if (!list_pairs(m, false, list) || !store_rules(m)) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->nruleclass = find_classes(m, m->rule_class, first);
  if (m->nruleclass > CLASS_MAX)
    return sn_fail(
        err, SN_ERR_LIMIT,
        "model: more than %d pairs of geoms can collide, and their geoms have more than %d different sets of "
        "condim, friction, solref, solimp, solmix, priority, adhesion and margin",
        LIST_MAX, CLASS_MAX);
  m->nruleparam = m->nruleclass * m->nruleclass;
  m->rule_param = sn_model_alloc(m, sizeof(int) * (size_t)m->nruleparam);
  return m->rule_param ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
}

// Refuses contacts that pull in a gap under options that do not say which do.
static SnCode check_pull(const SnModel *m, SnError *err) {
  const char *pull = sn_option_lacks_pull(m->opt.enableflags);
  bool gap = false;
  for (int g = 0; g < m->ngeom; ++g) gap = gap || m->geom_gap[g] != 0;
  for (int g = 0; pull && gap && g < m->ngeom; ++g)
    if (m->geom_adhesion[g] != 0)
      return sn_fail(err, SN_ERR_UNSUPPORTED, "geom %d '%s': %s is not supported", g, sn_model_name(m, SN_NAME_GEOM, g),
                     pull);
  for (int k = 0; pull && k < m->npair; ++k)
    if (m->pair_adhesion[k] != 0 && m->pair_gap[k] != 0)
      return sn_fail(err, SN_ERR_UNSUPPORTED, "pair %d: %s is not supported", k, pull);
  for (int i = 0; pull && gap && i < m->nactuator; ++i)
    if (m->actuator_trntype[i] == SN_TRN_BODY)
      return sn_fail(err, SN_ERR_UNSUPPORTED, "actuator %d '%s': %s is not supported", i,
                     sn_model_name(m, SN_NAME_ACTUATOR, i), pull);
  return SN_OK;
}

// Contacts before impact ask for every pair, and for the triangles of meshes, which may stand in the way.
static SnCode check_speculative(const SnModel *m, SnError *err) {
  if (!(m->opt.enableflags & SN_ENBL_SPECULATIVE)) return SN_OK;
  if (m->unlisted)
    return sn_fail(
        err, SN_ERR_UNSUPPORTED,
        "option 'speculative': speculative contact in a model of more than %d pairs of geoms that can collide "
        "is not supported",
        LIST_MAX);
  for (int g = 0; g < m->ngeom; ++g)
    if (m->geom_collides[g] && m->geom_type[g] == SN_GEOM_MESH && m->mesh_facenum[m->geom_dataid[g]] == 0)
      return sn_fail(
          err, SN_ERR_UNSUPPORTED,
          "option 'speculative': geom %d '%s' has a mesh whose triangles were left out at import; set the flag "
          "in the model's file",
          g, sn_model_name(m, SN_NAME_GEOM, g));
  return SN_OK;
}

// Contacts of the sigmoid are those of a step from velocity to velocity, and act from a distance.
static SnCode check_sigmoid(const SnModel *m, SnError *err) {
  if (!sn_has_sigmoid(m)) return SN_OK;
  const int flags = m->opt.enableflags;
  const char *what = m->opt.integrator == SN_INT_RK4 ? "integrator RK4 (supported: Euler, implicit, implicitfast)"
                     : sn_has_metric(m)              ? "integrator discrete (supported: Euler, implicit, implicitfast)"
                     : flags & SN_ENBL_SLEEP         ? "flag sleep"
                     : flags & SN_ENBL_SPECULATIVE   ? "flag speculative"
                     : m->nadhesive > 0              ? "adhesion of geoms or pairs"
                                                     : NULL;
  if (what)
    return sn_fail(err, SN_ERR_UNSUPPORTED, "option 'contact': sigmoid in a model with %s is not supported", what);
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_trntype[i] == SN_TRN_BODY)
      return sn_fail(err, SN_ERR_UNSUPPORTED,
                     "option 'contact': sigmoid in a model with adhesion, actuator %d '%s', is not supported", i,
                     sn_model_name(m, SN_NAME_ACTUATOR, i));
  return SN_OK;
}

SnCode sn_setup_collision(SnModel *m, SnError *err) {
  if (check_pull(m, err) != SN_OK) return SN_ERR_UNSUPPORTED;
  PairList list = {0};
  PairParam *set = NULL;
  int first[CLASS_MAX];
  bool ok = list_colliders(m) && list_pairs(m, true, &list);
  SnCode code = SN_OK;
  if (!ok && list.n == LIST_MAX) {
    code = begin_unlisted(m, &list, first, err);
    ok = code == SN_OK;
  }
  if (ok && !m->unlisted) ok = store_rules(m);
  if (ok) ok = (set = malloc(sizeof *set * (size_t)(list.n + m->nruleparam + 1))) != NULL;
  if (ok) ok = store_pairs(m, &list, first, set) && store_sweep(m, &list);
  free(set);
  free(list.key);
  if (!ok && code == SN_OK) code = sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  if (code == SN_OK) code = check_sigmoid(m, err);
  return code == SN_OK ? check_speculative(m, err) : code;
}

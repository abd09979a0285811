// What of a MuJoCo model the engine refuses: every element by name, never only the first.
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/import/import_mjcf.h"

typedef struct Refusals {
  FILE *out;
  int count;
  const mjModel *mj;
} Refusals;

// Starts a line: "geom 'head': " or, for an element without a name, "geom 3 (of body 'skull'): ".
static void name_element(Refusals *r, mjtObj type, int id) {
  const char *kind = mju_type2Str(type), *name = mj_id2name(r->mj, type, id), *body = NULL;
  if (type == mjOBJ_GEOM) body = mj_id2name(r->mj, mjOBJ_BODY, r->mj->geom_bodyid[id]);
  if (type == mjOBJ_JOINT) body = mj_id2name(r->mj, mjOBJ_BODY, r->mj->jnt_bodyid[id]);
  ++r->count;
  if (name && name[0])
    fprintf(r->out, "%s '%s': ", kind, name);
  else if (body && body[0])
    fprintf(r->out, "%s %d (of body '%s'): ", kind, id, body);
  else
    fprintf(r->out, "%s %d: ", kind, id);
}

static void refuse(Refusals *r, mjtObj type, int id, const char *what) {
  name_element(r, type, id);
  fprintf(r->out, "%s is not supported\n", what);
}

// The same with a list of what would be accepted.
static void refuse_value(Refusals *r, mjtObj type, int id, const char *what, const char *supported) {
  name_element(r, type, id);
  fprintf(r->out, "%s is not supported (supported: %s)\n", what, supported);
}

static void refuse_option(Refusals *r, const char *option, const char *what) {
  ++r->count;
  fprintf(r->out, "option '%s': %s is not supported\n", option, what);
}

// Arrays that must hold one value throughout (SN_REQUIRED).
static void check_required(Refusals *r) {
  const mjModel *mj = r->mj;
  const int nBODY = (int)mj->nbody, nGEOM = (int)mj->ngeom, nACTUATOR = (int)mj->nactuator, nSENSOR = (int)mj->nsensor;
#define SN_REQUIRED(field, object, cols, value, text)                                     \
  for (int i = 0; i < n##object; ++i) {                                                   \
    bool same = true;                                                                     \
    for (int k = 0; k < (cols); ++k) same = same && mj->field[i * (cols) + k] == (value); \
    if (!same) refuse(r, mjOBJ_##object, i, text);                                        \
  }
#define SN_IGNORED(field)
#define SN_JUDGED(field)
#define SN_IGNORED_SIZE(name)
#define SN_JUDGED_SIZE(name)
#define SN_IGNORED_OPTION(name)
#define SN_JUDGED_OPTION(name)
#define SN_IGNORED_STAT(name)
#include "physics/import/import_rules.inc"
}

static void check_options(Refusals *r) {
  const mjOption *o = &r->mj->opt;
  const char *line[SN_OPTION_LINES];
  const int n = sn_option_unsupported(o->integrator, o->disableflags, o->enableflags, line);
  for (int i = 0; i < n; ++i) fprintf(r->out, "%s\n", line[i]);
  r->count += n;
  const char *lacks[SN_DISCRETE_LINES];
  const bool discrete = o->integrator == mjINT_DISCRETE;
  const int nlacks = discrete ? sn_option_lacks_discrete(o->enableflags, o->noslip_iterations, lacks) : 0;
  for (int i = 0; i < nlacks; ++i) refuse_option(r, "integrator", lacks[i]);
  if (discrete && o->solver == mjSOL_PGS) refuse_option(r, "solver", "PGS with integrator discrete");
  if (o->density < 0) refuse_option(r, "density", "a density below 0");
  if (o->viscosity < 0) refuse_option(r, "viscosity", "a viscosity below 0");
}

static bool excluded(const mjModel *mj, int b1, int b2) {
  const int signature = b1 < b2 ? (b1 << 16) + b2 : (b2 << 16) + b1;
  for (int i = 0; i < mj->nexclude; ++i)
    if (mj->exclude_signature[i] == signature) return true;
  return false;
}

// True when the filters let geoms a and b collide: not welded to each other, bits match, not excluded. (The filter
// of parent and child bodies is left out: it is an option that a session may change.)
static bool can_meet(const mjModel *mj, int a, int b) {
  const int w1 = mj->body_weldid[mj->geom_bodyid[a]], w2 = mj->body_weldid[mj->geom_bodyid[b]];
  if (w1 == w2) return false;
  if (!(mj->geom_contype[a] & mj->geom_conaffinity[b]) && !(mj->geom_contype[b] & mj->geom_conaffinity[a]))
    return false;
  return !excluded(mj, mj->geom_bodyid[a], mj->geom_bodyid[b]);
}

static bool can_collide(const mjModel *mj, int geom) {
  for (int i = 0; i < mj->npair; ++i)
    if (mj->pair_geom1[i] == geom || mj->pair_geom2[i] == geom) return true;
  if (!mj->geom_contype[geom] && !mj->geom_conaffinity[geom]) return false;
  for (int i = 0; i < mj->ngeom; ++i)
    if (i != geom && can_meet(mj, geom, i)) return true;
  return false;
}

bool *sn_import_touchable(const mjModel *mj) {
  bool *touchable = calloc((size_t)mj->ngeom + 1, sizeof *touchable);
  for (int i = 0; touchable && i < mj->ngeom; ++i) touchable[i] = can_collide(mj, i);
  return touchable;
}

// True when geom i meets one that these flags leave without a collider.
static bool lacks_convex(const mjModel *mj, int i) {
  for (int k = 0; k < mj->npair; ++k) {
    const int a = mj->pair_geom1[k], b = mj->pair_geom2[k];
    if ((a == i || b == i) && sn_option_lacks_convex(mj->opt.disableflags, mj->geom_type[a], mj->geom_type[b]))
      return true;
  }
  for (int j = 0; j < mj->ngeom; ++j)
    if (sn_option_lacks_convex(mj->opt.disableflags, mj->geom_type[i], mj->geom_type[j]) && can_meet(mj, i, j))
      return true;
  return false;
}

static void check_geoms(Refusals *r, const bool *touchable) {
  const mjModel *mj = r->mj;
  for (int i = 0; i < mj->ngeom; ++i) {
    const int type = mj->geom_type[i];
    if (type == mjGEOM_SDF && touchable[i]) refuse(r, mjOBJ_GEOM, i, "sdf collision");
    if (lacks_convex(mj, i)) refuse(r, mjOBJ_GEOM, i, "convex collision without nativeccd (flag nativeccd='disable')");
  }
}

static void check_actuators(Refusals *r) {
  static const char *const dyn[] = {"none", "integrator", "filter", "filterexact", "muscle", "dcmotor", "pid", "user"};
  static const char *const gain[] = {"fixed", "affine", "muscle", "dcmotor", "so3", "pid", "user"};
  static const char *const bias[] = {"none", "affine", "muscle", "dcmotor", "so3", "user"};
  static_assert(sizeof dyn / sizeof *dyn == mjDYN_USER + 1, "all types");
  static_assert(sizeof gain / sizeof *gain == mjGAIN_USER + 1 && sizeof bias / sizeof *bias == mjBIAS_USER + 1,
                "all types");
  const mjModel *mj = r->mj;
  char what[100];
#define REFUSE(word, name, supported)                    \
  do {                                                   \
    snprintf(what, sizeof what, word " '%s'", (name));   \
    refuse_value(r, mjOBJ_ACTUATOR, i, what, supported); \
  } while (0)
  for (int i = 0; i < mj->nactuator; ++i) {
    const int t = mj->actuator_trntype[i], d = mj->actuator_dyntype[i], g = mj->actuator_gaintype[i],
              b = mj->actuator_biastype[i];
    if (t < 0 || t > mjTRN_SO3) refuse_value(r, mjOBJ_ACTUATOR, i, "an unknown transmission", "those of MuJoCo 4.0.0");
    if (d < 0 || d >= mjDYN_USER)
      REFUSE("activation dynamics", d == mjDYN_USER ? dyn[d] : "unknown",
             "none, integrator, filter, filterexact, muscle, dcmotor, pid");
    if (g < 0 || g >= mjGAIN_USER)
      REFUSE("gain", g >= 0 && g <= mjGAIN_USER ? gain[g] : "unknown", "fixed, affine, muscle, dcmotor, so3, pid");
    if (b < 0 || b >= mjBIAS_USER)
      REFUSE("bias", b >= 0 && b <= mjBIAS_USER ? bias[b] : "unknown", "none, affine, muscle, dcmotor, so3");
    if (g == mjGAIN_PID && d != mjDYN_PID && d != mjDYN_NONE)
      REFUSE("activation dynamics of a gain 'pid'", d <= mjDYN_USER ? dyn[d] : "unknown", "none, pid");
    if (g == mjGAIN_PID && b != mjBIAS_AFFINE)
      REFUSE("bias of a gain 'pid'", b >= 0 && b <= mjBIAS_USER ? bias[b] : "unknown", "affine");
    const bool motor = g == mjGAIN_DCMOTOR;
    if ((motor ? d != mjDYN_DCMOTOR && d != mjDYN_NONE : d == mjDYN_DCMOTOR) || motor != (b == mjBIAS_DCMOTOR))
      refuse(r, mjOBJ_ACTUATOR, i, "an actuator of which only some of gain, bias and dynamics are 'dcmotor'");
    const bool plain = g != mjGAIN_PID && g != mjGAIN_SO3 && !motor;
    if (plain && mj->actuator_actnum[i] > 1) refuse(r, mjOBJ_ACTUATOR, i, "more than one activation");
    if (plain && mj->actuator_ctrlnum[i] != 1) refuse(r, mjOBJ_ACTUATOR, i, "a number of controls other than 1");
  }
#undef REFUSE
}

// True where a tree may fall asleep.
static bool may_sleep(const mjModel *mj, int tree) {
  return tree >= 0 && mj->tree_sleep_policy[tree] != mjSLEEP_NEVER && mj->tree_sleep_policy[tree] != mjSLEEP_AUTO_NEVER;
}

static bool is_static(const mjModel *mj, int body) {
  return mj->body_treeid[body] < 0 && mj->body_mocapid[mj->body_rootid[body]] < 0;
}

// Two sites that an actuator acts between, and never move: MuJoCo lets it sleep.
static bool acts_on_nothing(const mjModel *mj, int i) {
  const int type = mj->actuator_trntype[i], *id = mj->actuator_trnid + 2 * i;
  return (type == mjTRN_SLIDERCRANK || type == mjTRN_SO3) && id[1] >= 0 && is_static(mj, mj->site_bodyid[id[0]]) &&
         is_static(mj, mj->site_bodyid[id[1]]);
}

// The dofs of an actuator's transmission belong to trees that may sleep: by the joint, tendon, sites or body.
static bool acts_on_sleepers(const mjModel *mj, int i) {
  const int id = mj->actuator_trnid[2 * i], other = mj->actuator_trnid[2 * i + 1];
  switch (mj->actuator_trntype[i]) {
    case mjTRN_JOINT:
    case mjTRN_JOINTINPARENT:
      return may_sleep(mj, mj->body_treeid[mj->jnt_bodyid[id]]);
    case mjTRN_TENDON:
      return may_sleep(mj, mj->tendon_treeid[2 * id]);
    case mjTRN_BODY:
      return may_sleep(mj, mj->body_treeid[id]);
    case mjTRN_SO3:
      if (other < 0) return may_sleep(mj, mj->body_treeid[mj->jnt_bodyid[id]]);
      break;
    default:
      break;
  }
  return may_sleep(mj, mj->body_treeid[mj->site_bodyid[id]]) ||
         (other >= 0 && may_sleep(mj, mj->body_treeid[mj->site_bodyid[other]]));
}

// What sleeping trees cannot have: state that MuJoCo moves on by rates of long ago, equalities that MuJoCo refuses, a
// frame that moves under them.
static void check_sleep(Refusals *r) {
  const mjModel *mj = r->mj;
  if (!(mj->opt.enableflags & mjENBL_SLEEP)) return;
  for (int i = 0; i < mj->nactuator; ++i)
    if (mj->actuator_actnum[i] > 0 && acts_on_sleepers(mj, i))
      refuse(r, mjOBJ_ACTUATOR, i, "an activation, of an actuator on a tree that may sleep (sleep='never' helps),");
    else if (mj->actuator_actnum[i] > 0 && acts_on_nothing(mj, i))
      refuse(r, mjOBJ_ACTUATOR, i, "an activation, of an actuator between two sites that never move, with flag sleep");
  for (int i = 0; i < mj->neq; ++i)
    if (mj->eq_type[i] == mjEQ_TENDON) refuse(r, mjOBJ_EQUALITY, i, "an equality of tendons with flag sleep");
  for (int t = 0; t < mj->ntree; ++t) {
    const int body = mj->tree_bodyadr[t];
    if (may_sleep(mj, t) && mj->body_mocapid[mj->body_rootid[body]] >= 0)
      refuse(r, mjOBJ_BODY, body, "a tree under a mocap body that may sleep (sleep='never' helps)");
  }
}

// What needs the past of a step, under options that do not keep it.
static void check_past(Refusals *r) {
  const mjModel *mj = r->mj;
  const char *yield = sn_option_lacks_yield(mj->opt.integrator);
  const char *buffer = sn_option_lacks_buffer(mj->opt.integrator, mj->opt.disableflags);
  for (int j = 0; yield && j < mj->njnt; ++j)
    if (mj->jnt_plasticadr[j] >= 0) refuse(r, mjOBJ_JOINT, j, yield);
  for (int t = 0; yield && t < mj->ntendon; ++t)
    if (mj->tendon_plasticadr[t] >= 0) refuse(r, mjOBJ_TENDON, t, yield);
  for (int i = 0; buffer && i < mj->nsensor; ++i)
    if (mj->sensor_history[2 * i] != 0) refuse(r, mjOBJ_SENSOR, i, buffer);
}

// Contacts that pull in a gap, by themselves or by an actuator, under flag override.
static void check_pull(Refusals *r) {
  const mjModel *mj = r->mj;
  const char *pull = sn_option_lacks_pull(mj->opt.enableflags);
  bool gap = false;
  for (int g = 0; g < mj->ngeom; ++g) gap = gap || mj->geom_gap[g] != 0;
  for (int g = 0; pull && gap && g < mj->ngeom; ++g)
    if (mj->geom_adhesion[g] != 0) refuse(r, mjOBJ_GEOM, g, pull);
  for (int k = 0; pull && k < mj->npair; ++k)
    if (mj->pair_adhesion[k] != 0 && mj->pair_gap[k] != 0) refuse(r, mjOBJ_PAIR, k, pull);
  for (int i = 0; pull && gap && i < mj->nactuator; ++i)
    if (mj->actuator_trntype[i] == mjTRN_BODY) refuse(r, mjOBJ_ACTUATOR, i, pull);
}

static void check_others(Refusals *r) {
  const mjModel *mj = r->mj;
  for (int i = 0; i < mj->nflex; ++i) refuse(r, mjOBJ_FLEX, i, "a deformable body (flex)");
  for (int i = 0; i < mj->nplugin; ++i) refuse(r, mjOBJ_PLUGIN, i, "an engine plugin");
  for (int i = 0; i < mj->neq; ++i)
    if (mj->eq_type[i] > mjEQ_TENDON) refuse(r, mjOBJ_EQUALITY, i, "an equality of flexes");
}

char *sn_import_unsupported(const mjModel *mj, int *count) {
  char *text = NULL;
  size_t size = 0;
  Refusals r = {.out = open_memstream(&text, &size), .count = 0, .mj = mj};
  bool *touchable = sn_import_touchable(mj);
  *count = 0;
  if (!r.out || !touchable) {
    if (r.out) fclose(r.out);
    free(text);
    free(touchable);
    return NULL;
  }
  check_options(&r);
  check_geoms(&r, touchable);
  check_actuators(&r);
  check_others(&r);
  check_sleep(&r);
  check_past(&r);
  check_pull(&r);
  check_required(&r);
  free(touchable);
  if (fclose(r.out) != 0) {
    free(text);
    return NULL;
  }
  *count = r.count;
  return text;
}

// Options of a model through the public functions: what is set becomes the model that MuJoCo's compiler makes with the
// same mjOption, bit for bit, and steps as MuJoCo does; what cannot be is refused by name.
#include "clients/libsinew/model_private.h"
#include "physics/import/import_mjcf.h"
#include "physics/model/model_file.h"
#include "physics/step/step.h"
#include "tests/support/oracle.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// A box that slides on a plane, an arm with springs, limits, friction and drives, two joints that are coupled.
static const char xml[] =
    "<mujoco><option timestep='.005' gravity='2 0 -9.81'/><default><joint solreflimit='.008 1'/><geom solref='.008 1' "
    "friction='.5 .01 .001' "
    "gap='.001'/></default>"
    "<worldbody><geom type='plane' size='5 5 .1'/>"
    "<body pos='0 0 .15'><freejoint/><geom type='box' size='.1 .1 .1' condim='4'/></body>"
    "<body pos='1 0 .5' gravcomp='.5'><joint name='h1' axis='0 1 0' stiffness='5' damping='.5' range='-9 9' "
    "frictionloss='.1' armature='.01'/><geom type='capsule' fromto='0 0 0 .3 0 0' size='.04'/>"
    "<body pos='.3 0 0'><joint name='h2' axis='0 1 0' damping='1'/>"
    "<geom type='capsule' fromto='-.05 0 0 .2 0 0' size='.05'/></body></body>"
    "<body pos='0 2 1'><joint name='h3' axis='1 0 0'/><geom type='sphere' size='.1' pos='0 .2 0'/></body>"
    "<body pos='0 3 1'><joint name='h4' axis='1 0 0'/><geom type='sphere' size='.1' pos='0 .6 0'/></body></worldbody>"
    "<equality><joint joint1='h3' joint2='h4'/></equality>"
    "<actuator><motor joint='h1' ctrlrange='-1 1' gear='2' group='1'/>"
    "<general joint='h2' dyntype='filter' dynprm='.05' gainprm='3'/><velocity joint='h3' kv='2'/></actuator>"
    "<sensor><jointpos joint='h1'/></sensor></mujoco>";

// What is changed, in SinewOptions and in mjOption alike.
#define CASES(X)                                                                \
  X("timestep", o->timestep = .003)                                             \
  X("impratio", (o->impratio = 4, o->cone = 1))                                 \
  X("gravity", o->gravity[0] = 1)                                               \
  X("o_margin", o->o_margin = .004)                                             \
  X("o_solref", o->o_solref[0] = .05)                                           \
  X("o_solimp", o->o_solimp[0] = .5)                                            \
  X("o_friction", o->o_friction[0] = .1)                                        \
  X("RK4", o->integrator = mjINT_RK4)                                           \
  X("implicit", o->integrator = mjINT_IMPLICIT)                                 \
  X("implicitfast", o->integrator = mjINT_IMPLICITFAST)                         \
  X("cone", o->cone = mjCONE_ELLIPTIC)                                          \
  X("disableactuator", o->disableactuator = 2)                                  \
  X("density", (o->density = 50, o->wind[0] = 3))                               \
  X("viscosity", o->viscosity = .5)                                             \
  X("tolerance", o->tolerance = 1e-7)                                           \
  X("ls_tolerance", o->ls_tolerance = .05)                                      \
  X("ccd_tolerance", o->ccd_tolerance = 1e-5)                                   \
  X("iterations", o->iterations = 30)                                           \
  X("ls_iterations", o->ls_iterations = 30)                                     \
  X("ccd_iterations", o->ccd_iterations = 30)                                   \
  X("noslip_iterations", o->noslip_iterations = 3)                              \
  X("noslip_tolerance", (o->noslip_iterations = 9, o->noslip_tolerance = 1e-4)) \
  X("magnetic", o->magnetic[1] = .3)                                            \
  X("sleep_tolerance", (o->enableflags |= mjENBL_SLEEP, o->sleep_tolerance = .5))
enum { ACTING = 14 };  // the first of them change the motion
#define NAME(name, change) name,
static const char *const names[] = {CASES(NAME)};
enum { NAMED = sizeof names / sizeof *names };
#define EDIT(name, change) \
  if (i == k++) change;
static void edit_ours(SinewOptions *o, int i) {
  int k = 0;
  CASES(EDIT)
}
static void edit_mujoco(mjOption *o, int i) {
  int k = 0;
  CASES(EDIT)
}

static SinewModel *make_model(const char *text) {
  SinewError err;
  SnError why = {0};
  mjModel *mj = sn_oracle_read_string(text, &why);
  if (!mj) fail_msg("%s", why.text);
  SnModel *m = sn_import_mjmodel(mj, &why);
  mj_deleteModel(mj);
  if (!m) fail_msg("%s", why.text);
  SinewModel *model = api_model_wrap(m, &err);
  assert_non_null(model);
  return model;
}

static SinewOptions options_of(const SinewModel *model) {
  SinewOptions o = sinew_default_options();
  SinewError err;
  assert_int_equal(sinew_model_get_options(model, &o, &err), SINEW_OK);
  return o;
}

static SinewModel *with(const SinewModel *model, const SinewOptions *o) {
  SinewError err;
  SinewModel *changed = sinew_model_with_options(model, o, &err);
  if (!changed) fail_msg("%s", err.text);
  assert_int_equal(err.status, SINEW_OK);
  return changed;
}

static void assert_same_image(const SnModel *a, const SnModel *b, const char *name) {
  SnError err = {0};
  size_t na = 0, nb = 0;
  void *one = sn_model_write(a, &na, &err), *two = sn_model_write(b, &nb, &err);
  if (!one || !two || na != nb || memcmp(one, two, na) != 0) fail_msg("%s: another model than MuJoCo's", name);
  free(one);
  free(two);
}

static double difference(const sn_real *ours, const double *ref, int n) {
  double error = 0;
  for (int i = 0; i < n; ++i) error = sn_larger(error, fabs((double)ours[i] - ref[i]));
  return error;
}

// Steps of `m` from MuJoCo's state: the bits of the oracle's own world, and MuJoCo's numbers.
static void check_steps(SnOracle *o, const SnModel *m, const char *name) {
  void *memory = aligned_alloc(64, (sn_world_size(m) + 63) / 64 * 64);
  SnWorld w;
  assert_non_null(memory);
  sn_world_init(m, &w, memory);
  for (int i = 0; i < o->mj->nu; ++i) o->d->ctrl[i] = 1.5;
  for (int k = 0; k < 40; ++k) mj_step(o->mj, o->d);
  sn_oracle_copy_state(o);
  sn_world_copy_state(m, &w, &o->w);
  for (int k = 0; k < 3; ++k) {
    sn_step(m, &w, &o->lane);
    sn_step(o->m, &o->w, &o->lane);
    mj_step(o->mj, o->d);
  }
  assert_memory_equal(w.qpos, o->w.qpos, sizeof *w.qpos * (size_t)m->nq);
  assert_memory_equal(w.qvel, o->w.qvel, sizeof *w.qvel * (size_t)m->nv);
  const double eq = difference(w.qpos, o->d->qpos, m->nq), ev = difference(w.qvel, o->d->qvel, m->nv);
  if (!(eq < 1e-6 && ev < 1e-5)) fail_msg("%s: errors of qpos %g, qvel %g", name, eq, ev);
  free(memory);
}

// One change: named case i, or a disable flag. Fills the velocity after it.
static void check_change(const SinewModel *base, int i, int flag, const char *name, double *qvel) {
  SinewOptions o = options_of(base);
  SnError err = {0};
  SnOracle oracle;
  mjModel *mj = sn_oracle_read_string(xml, &err);
  if (!mj) fail_msg("%s", err.text);
  sn_oracle_tighten(mj);
  const bool override = strncmp(name, "o_", 2) == 0;
  mj->opt.disableflags |= flag;
  mj->opt.enableflags |= override ? mjENBL_OVERRIDE : 0;
  edit_mujoco(&mj->opt, i);
  assert_int_equal(sn_oracle_open(&oracle, mj, &err), SN_OK);
  o.tolerance = 1e-14;
  o.iterations = 200;
  o.ccd_tolerance = 1e-12;
  o.ccd_iterations = 500;
  o.ls_iterations = oracle.m->opt.ls_iterations;
  o.ls_tolerance = (double)oracle.m->opt.ls_tolerance;
  o.disableflags |= mjDSBL_ISLAND | mjDSBL_AUTORESET | flag;
  o.enableflags |= override ? SN_ENBL_OVERRIDE : 0;
  edit_ours(&o, i);
  SinewModel *model = with(base, &o);
  assert_same_image(model->model, oracle.m, name);
  SinewOptions back = options_of(model);
  assert_memory_equal(&back, &o, offsetof(SinewOptions, contact_solref));
  assert_memory_equal(&back.integrator, &o.integrator, sizeof o - offsetof(SinewOptions, integrator));
  check_steps(&oracle, model->model, name);
  memcpy(qvel, oracle.d->qvel, sizeof *qvel * (size_t)mj->nv);
  sinew_model_free(model);
  sn_oracle_free(&oracle);
}

static bool differs(const double *a, const double *b, int n) {
  double most = 0;
  for (int i = 0; i < n; ++i) most = sn_larger(most, fabs(a[i] - b[i]));
  return most > 1e-4;
}

enum { NV = 10 };

static void every_option_acts_as_in_mujoco(void **state) {
  (void)state;
  SinewModel *base = make_model(xml);
  assert_int_equal(sinew_model_sizes(base)->nv, NV);
  double as_is[NV], overridden[NV], changed[NV];
  check_change(base, -1, 0, "as it is", as_is);
  check_change(base, -1, 0, "o_ as it is", overridden);
  for (int i = 0; i < NAMED; ++i) {
    check_change(base, i, 0, names[i], changed);
    const bool override = strncmp(names[i], "o_", 2) == 0;
    if (i < ACTING && !differs(changed, override ? overridden : as_is, NV)) fail_msg("%s changes nothing", names[i]);
  }
  sinew_model_free(base);
}

static void every_disable_flag_acts_as_in_mujoco(void **state) {
  (void)state;
  SinewModel *base = make_model(xml);
  double as_is[NV], changed[NV];
  check_change(base, -1, 0, "as it is", as_is);
  // these change how MuJoCo gets its result, or what else it computes
  const int quiet = mjDSBL_WARMSTART | mjDSBL_SENSOR | mjDSBL_MIDPHASE | mjDSBL_AUTORESET | mjDSBL_NATIVECCD |
                    mjDSBL_ISLAND | mjDSBL_MULTICCD;
  for (int bit = 0; bit < mjNDISABLE; ++bit) {
    char name[40];
    snprintf(name, sizeof name, "disable flag %s", mjDISABLESTRING[bit]);
    check_change(base, -1, 1 << bit, name, changed);
    if (!(quiet & 1 << bit) && !differs(changed, as_is, NV)) fail_msg("%s changes nothing", name);
  }
  sinew_model_free(base);
}

// A program that was built before density and those behind it were there leaves them as the model has them.
static void older_callers_leave_the_fluid(void **state) {
  (void)state;
  SinewModel *model = make_model(xml);
  SinewOptions o = options_of(model);
  o.density = 7;
  o.wind[2] = 3;
  SinewModel *wet = with(model, &o);
  o = options_of(wet);
  o.density = o.wind[2] = -1;  // what lies behind a smaller structure
  o.timestep = .003;
  o.size = offsetof(SinewOptions, density);
  SinewModel *later = with(wet, &o);
  assert_true(later->model->opt.density == 7 && later->model->opt.wind[2] == 3 && later->model->nfluid > 0);
  sinew_model_free(later);
  sinew_model_free(wet);
  sinew_model_free(model);
}

// All contacts alike: geoms, predefined pairs and the override get the numbers that are given, the others stay.
static void contacts_get_what_is_given(void **state) {
  (void)state;
  SinewModel *base = make_model(
      "<mujoco><worldbody><geom name='a' size='.1' solref='.03 .9'/><body><freejoint/><geom name='b' size='.1' "
      "solimp='.8 .9 .002 .4 3'/></body></worldbody><contact><pair geom1='a' geom2='b'/></contact></mujoco>");
  SinewOptions o = options_of(base);
  assert_true(isnan(o.contact_solref[0]) && isnan(o.contact_solimp[4]));
  o.contact_solref[0] = .05;
  o.contact_solimp[1] = .96;
  SinewModel *model = with(base, &o);
  const SnModel *was = base->model, *is = model->model;
  for (int g = 0; g < 2; ++g)
    assert_true(is->geom_solref[2 * g] == SN_R(.05) && is->geom_solref[2 * g + 1] == was->geom_solref[2 * g + 1]);
  for (int k = 0; k < 5; ++k) {
    assert_true(is->geom_solimp[5 + k] == (k == 1 ? SN_R(.96) : was->geom_solimp[5 + k]));
    assert_true(is->pair_solimp[k] == (k == 1 ? SN_R(.96) : was->pair_solimp[k]));
  }
  assert_true(is->pair_solref[0] == SN_R(.05) && is->opt.o_solref[0] == SN_R(.05) && is->opt.o_solimp[1] == SN_R(.96));
  o.contact_solref[1] = INFINITY;
  SinewError err;
  assert_null(sinew_model_with_options(base, &o, &err));
  assert_int_equal(err.status, SINEW_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "contact_solref[1] is inf"));
  sinew_model_free(model);
  sinew_model_free(base);
}

static void refused(const SinewModel *model, const SinewOptions *o, SinewStatus status, const char *part) {
  SinewError err;
  if (sinew_model_with_options(model, o, &err)) fail_msg("accepted: %s", part);
  if (err.status != status || !strstr(err.text, part))
    fail_msg("expected \"%s\" (%d), got %d: %s", part, status, err.status, err.text);
  assert_null(sinew_model_with_options(model, o, NULL));
}

static void bad_options_are_refused_by_name(void **state) {
  (void)state;
  SinewModel *model = make_model(xml);
  SinewOptions good = options_of(model), o;
#define REFUSED(change, status, part) (o = good, change, refused(model, &o, status, part))
  REFUSED(o.timestep = 0, SINEW_ERR_ARGUMENT, "option timestep is 0: must be above 0 s");
  REFUSED(o.timestep = 2, SINEW_ERR_ARGUMENT, "option timestep is 2: must be at most 1 s");
  REFUSED(o.timestep = NAN, SINEW_ERR_ARGUMENT, "option timestep is nan");
  REFUSED(o.impratio = -1, SINEW_ERR_ARGUMENT, "option impratio is -1");
  REFUSED(o.tolerance = -1, SINEW_ERR_ARGUMENT, "option tolerance");
  REFUSED(o.ls_tolerance = -1, SINEW_ERR_ARGUMENT, "option ls_tolerance");
  REFUSED(o.ccd_tolerance = -1, SINEW_ERR_ARGUMENT, "option ccd_tolerance");
  REFUSED(o.gravity[1] = INFINITY, SINEW_ERR_ARGUMENT, "option gravity is inf: must be finite");
  REFUSED(o.o_friction[4] = NAN, SINEW_ERR_ARGUMENT, "option o_friction is nan: must be finite");
  REFUSED(o.iterations = -1, SINEW_ERR_ARGUMENT, "option iterations is -1: must be 0 to 10000");
  REFUSED(o.ls_iterations = 10001, SINEW_ERR_ARGUMENT, "option ls_iterations is 10001");
  REFUSED(o.ccd_iterations = -1, SINEW_ERR_ARGUMENT, "option ccd_iterations");
  REFUSED(o.noslip_iterations = 201, SINEW_ERR_ARGUMENT, "option noslip_iterations is 201: must be 0 to 200");
  REFUSED(o.noslip_iterations = -1, SINEW_ERR_ARGUMENT, "option noslip_iterations is -1");
  REFUSED(o.noslip_tolerance = -1, SINEW_ERR_ARGUMENT, "option noslip_tolerance is -1: must be at least 0");
  REFUSED(o.cone = 2, SINEW_ERR_ARGUMENT, "option cone is 2");
  REFUSED((o.integrator = mjINT_DISCRETE, o.noslip_iterations = 1, o.enableflags = mjENBL_DIAGEXACT),
          SINEW_ERR_UNSUPPORTED,
          "option 'integrator': discrete with flag diagexact is not supported\n"
          "option 'integrator': discrete with noslip_iterations above 0 is not supported");
  REFUSED(o.integrator = 99, SINEW_ERR_UNSUPPORTED, "an unknown integrator");
  REFUSED(o.disableflags = 1 << mjNDISABLE, SINEW_ERR_UNSUPPORTED, "option 'disableflags': an unknown flag");
  REFUSED(o.enableflags = 1 << mjNENABLE, SINEW_ERR_UNSUPPORTED, "option 'enableflags': an unknown flag");
  REFUSED((o.enableflags = mjENBL_IPC | 1 << mjNENABLE), SINEW_ERR_UNSUPPORTED,
          "option 'ipc': incremental potential contact is not supported\noption 'enableflags'");
  REFUSED(o.size = 0, SINEW_ERR_ARGUMENT, "SinewOptions.size is 0");
  REFUSED(o.size = offsetof(SinewOptions, disableactuator) - 1, SINEW_ERR_ARGUMENT, "SinewOptions.size");
  REFUSED(o.density = -1, SINEW_ERR_ARGUMENT, "option density is -1: must be at least 0");
  REFUSED(o.viscosity = -1, SINEW_ERR_ARGUMENT, "option viscosity is -1: must be at least 0");
  REFUSED(o.wind[1] = NAN, SINEW_ERR_ARGUMENT, "option wind is nan: must be finite");
  REFUSED(o.contact = 2, SINEW_ERR_ARGUMENT, "option contact is 2: must be mujoco (0) or sigmoid (1)");
  REFUSED(o.contact_stiffness = 2, SINEW_ERR_ARGUMENT, "option contact_stiffness is 2: must be 0 to 1");
  REFUSED((o.contact = SINEW_CONTACT_SIGMOID, o.contact_width = 2), SINEW_ERR_ARGUMENT, "option contact_width is 2");
  REFUSED((o.contact = SINEW_CONTACT_SIGMOID, o.integrator = mjINT_RK4), SINEW_ERR_UNSUPPORTED,
          "option 'contact': sigmoid in a model with integrator RK4");
  refused(model, NULL, SINEW_ERR_ARGUMENT, "SinewOptions is NULL");
  refused(NULL, &good, SINEW_ERR_ARGUMENT, "model is NULL");
  SinewError err;
  assert_int_equal(sinew_model_get_options(NULL, &good, &err), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_get_options(model, NULL, &err), SINEW_ERR_ARGUMENT);
  o = good;
  o.size = 7;
  assert_int_equal(sinew_model_get_options(model, &o, &err), SINEW_ERR_ARGUMENT);
  sinew_model_free(model);
  // flags that MuJoCo's extra outputs alone see
  model = make_model(xml);
  o = good;
  o.enableflags = mjENBL_ENERGY | mjENBL_FWDINV | mjENBL_INVDISCRETE;
  sinew_model_free(with(model, &o));
  sinew_model_free(model);
}

// What needs the past of a step, under options that do not keep it: refused by name or number, as the importer does.
static void options_that_keep_no_past_are_refused(void **state) {
  (void)state;
#define BODY(joint, yield) "<body><joint type='slide' " joint yield "/><geom size='.1'/></body>"
#define TENDON(name, yield) "<fixed " name yield "><joint joint='j' coef='1'/></fixed>"
  static const struct {
    const char *xml;
    bool rk4;
    const char *words;
  } cases[] = {
      {BODY("", "") BODY("name='j' ", "springyield='.1' stiffness='1'") "</worldbody>", true,
       "joint 'j': springyield (a spring that yields) with integrator RK4 is not supported"},
      {BODY("name='j'", "") "</worldbody><tendon>" TENDON("", "")
           TENDON("", "springyield='.1' stiffness='1'") "</tendon>",
       true, "tendon 1: springyield (a spring that yields) with integrator RK4 is not supported"},
      {BODY("name='j'", "") "</worldbody><sensor><clock/><clock nsample='2'/></sensor>", true,
       "sensor 1: a history buffer (nsample) with integrator RK4 is not supported"},
      {BODY("name='j'", "") "</worldbody><sensor><clock name='c' nsample='2'/></sensor>", false,
       "sensor 'c': a history buffer (nsample) with flag sensor='disable' is not supported"},
  };
#undef TENDON
#undef BODY
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[1000];
    snprintf(text, sizeof text, "<mujoco><worldbody>%s</mujoco>", cases[i].xml);
    SinewModel *model = make_model(text);
    SinewOptions o = options_of(model);
    if (cases[i].rk4)
      o.integrator = mjINT_RK4;
    else
      o.disableflags |= mjDSBL_SENSOR;
    refused(model, &o, SINEW_ERR_UNSUPPORTED, cases[i].words);
    sinew_model_free(model);
  }
}

// Without nativeccd MuJoCo collides by another library, which the engine lacks: refused where a pair needs it, with
// contacts on, as the importer does.
static void another_convex_collision_is_refused(void **state) {
  (void)state;
  SinewModel *model = make_model(
      "<mujoco><option><flag contact='disable' nativeccd='disable'/></option><worldbody><geom size='.1'/><body>"
      "<freejoint/><geom name='egg' type='ellipsoid' size='.1 .1 .2'/></body></worldbody></mujoco>");
  SinewOptions o = options_of(model);
  sinew_model_free(with(model, &o));
  o.disableflags = mjDSBL_NATIVECCD;
  refused(model, &o, SINEW_ERR_UNSUPPORTED, "geom 0 '' against geom 1 'egg': convex collision without nativeccd");
  sinew_model_free(model);
  model = make_model(
      "<mujoco><worldbody><geom type='plane' size='1 1 1'/><geom size='.1'/><body><freejoint/><geom type='cylinder' "
      "size='.1 .1' contype='0'/></body></worldbody></mujoco>");
  sinew_model_free(with(model, &o));  // closed forms all
  sinew_model_free(model);
}

// A mesh may hide what it stands before, which its triangles say: they are there where the file has the flag.
static void foreseen_contacts_need_triangles(void **state) {
  (void)state;
  static const char text[] =
      "<mujoco><option><flag speculative='%s'/></option><asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 "
      "1'/></asset>"
      "<worldbody><geom type='plane' size='1 1 1'/><body><freejoint/><geom name='rock' type='mesh' mesh='m'/></body>"
      "</worldbody></mujoco>";
  char xml_with[600], xml_without[600];
  snprintf(xml_with, sizeof xml_with, text, "enable");
  snprintf(xml_without, sizeof xml_without, text, "disable");
  SinewModel *model = make_model(xml_without);
  SinewOptions o = options_of(model);
  o.enableflags = mjENBL_SPECULATIVE;
  refused(model, &o, SINEW_ERR_UNSUPPORTED, "geom 1 'rock' has a mesh whose triangles were left out at import");
  sinew_model_free(model);
  model = make_model(xml_with);
  o = options_of(model);
  assert_true(o.enableflags & mjENBL_SPECULATIVE);
  sinew_model_free(with(model, &o));
  sinew_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_option_acts_as_in_mujoco),        cmocka_unit_test(every_disable_flag_acts_as_in_mujoco),
      cmocka_unit_test(older_callers_leave_the_fluid),         cmocka_unit_test(contacts_get_what_is_given),
      cmocka_unit_test(bad_options_are_refused_by_name),       cmocka_unit_test(another_convex_collision_is_refused),
      cmocka_unit_test(options_that_keep_no_past_are_refused), cmocka_unit_test(foreseen_contacts_need_triangles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// What the importer refuses, by name and all of it; what it accepts because it only shows; which bad numbers it names.
#include "physics/import/import_mjcf.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/oracle.h"

static mjModel *compile(const char *xml) {
  SnError err = {0};
  mjModel *mj = sn_oracle_read_string(xml, &err);
  if (!mj) fail_msg("%s", err.text);
  return mj;
}

// The lines that refuse `xml`; the caller frees them.
static char *refusals(const char *xml, int *count) {
  mjModel *mj = compile(xml);
  char *text = sn_import_unsupported(mj, count);
  assert_non_null(text);
  SnError err = {0};
  SnModel *m = sn_import_mjmodel(mj, &err);
  assert_true((m != NULL) == (*count == 0));
  if (!m) assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  sn_model_free(m);
  mj_deleteModel(mj);
  return text;
}

static void assert_line(const char *text, const char *line) {
  if (!strstr(text, line)) fail_msg("no line \"%s\" in:\n%s", line, text);
}

#define BALL "<body name='b'><freejoint name='f'/><geom name='ball' size='.1'/></body>"

typedef struct Refused {
  const char *xml, *line;
  int count;
} Refused;

static void check_refused(const Refused *cases, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    char xml[2000];
    snprintf(xml, sizeof xml, "<mujoco>%s</mujoco>", cases[i].xml);
    int count = 0;
    char *text = refusals(xml, &count);
    assert_line(text, cases[i].line);
    if (count < cases[i].count) fail_msg("%d lines, expected at least %d:\n%s", count, cases[i].count, text);
    free(text);
  }
}

static void each_refusal_names_element_and_feature(void **state) {
  (void)state;
  static const Refused cases[] = {
      {"<option><flag nativeccd='disable'/></option><asset><hfield name='h' nrow='2' ncol='2' size='1 1 1 1'/></asset>"
       "<worldbody>" BALL "<geom name='land' type='hfield' hfield='h'/></worldbody>",
       "geom 'land': convex collision without nativeccd", 1},
      {"<option><flag nativeccd='disable'/></option><asset><hfield name='h' nrow='2' ncol='2' size='1 1 1 1'/></asset>"
       "<worldbody>" BALL "<body name='sky'><geom type='hfield' hfield='h'/></body></worldbody>",
       "geom 1 (of body 'sky'): convex collision without nativeccd", 1},
      {"<option density='-1.2'/>", "option 'density': a density below 0 is not supported", 1},
      {"<option viscosity='-1e-3'/>", "option 'viscosity': a viscosity below 0 is not supported", 1},
      {"<option integrator='RK4'><flag sleep='enable'/></option>", "option 'sleep': sleeping under integrator RK4", 1},
      {"<option><flag nativeccd='disable'/></option><worldbody><geom name='rock' size='1' contype='2'/><geom size='1'/>"
       "<body><freejoint/><geom name='egg' type='ellipsoid' size='.1 .2 .3' contype='0' "
       "conaffinity='2'/></body></worldbody>",
       "geom 'egg': convex collision without nativeccd", 2},
      {"<worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><actuator>"
       "<general name='mine' joint='j' dyntype='user' gaintype='user' biastype='user' actdim='1'/></actuator>",
       "actuator 'mine': gain 'user' is not supported", 3},
      {"<worldbody><flexcomp name='cloth' type='grid' count='3 3 1' spacing='.1 .1 .1' dim='2' mass='1' "
       "radius='.01'/></worldbody>",
       "flex 'cloth': a deformable body (flex) is not supported", 1},
  };
  check_refused(cases, sizeof cases / sizeof *cases);
}

static void what_discrete_goes_without_is_refused(void **state) {
  (void)state;
  static const Refused cases[] = {
      {"<option integrator='discrete'><flag sleep='enable'/></option>",
       "option 'integrator': discrete with flag sleep is not supported", 1},
      {"<option integrator='discrete'><flag diagexact='enable' speculative='enable'/></option>",
       "option 'integrator': discrete with flag diagexact is not supported", 2},
      {"<option integrator='discrete' noslip_iterations='1'><flag speculative='enable'/></option>",
       "option 'integrator': discrete with flag speculative is not supported", 2},
      {"<option integrator='discrete' noslip_iterations='1'/>",
       "option 'integrator': discrete with noslip_iterations above 0 is not supported", 1},
      {"<option integrator='discrete' solver='PGS'/>", "option 'solver': PGS with integrator discrete is not supported",
       1},
  };
  check_refused(cases, sizeof cases / sizeof *cases);
}

static void what_sleepers_cannot_have_is_refused(void **state) {
  (void)state;
  static const Refused cases[] = {
      {"<option><flag sleep='enable'/></option><worldbody><body sleep='allowed'><joint name='j'/><geom "
       "size='.1'/></body>"
       "</worldbody><actuator><general name='slow' joint='j' dyntype='filter' dynprm='.1'/></actuator>",
       "actuator 'slow': an activation, of an actuator on a tree that may sleep (sleep='never' helps), is not", 1},
      {"<option><flag sleep='enable'/></option><worldbody><site name='a'/><site name='b'/></worldbody><actuator>"
       "<general name='idle' slidersite='a' cranksite='b' cranklength='1' dyntype='filter'/></actuator>",
       "actuator 'idle': an activation, of an actuator between two sites that never move, with flag sleep is not", 1},
      {"<option><flag sleep='enable'/></option><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
       "<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon><equality><tendon name='e' tendon1='t'/>"
       "</equality>",
       "equality 'e': an equality of tendons with flag sleep is not supported", 1},
      {"<option><flag sleep='enable'/></option><worldbody><body mocap='true'><body name='hung'><joint/><geom "
       "size='.1'/>"
       "</body></body></worldbody>",
       "body 'hung': a tree under a mocap body that may sleep (sleep='never' helps) is not supported", 1},
  };
  check_refused(cases, sizeof cases / sizeof *cases);
}

static void what_needs_the_past_is_refused(void **state) {
  (void)state;
#define YIELDING "<worldbody><body name='b'><joint stiffness='1' springyield='.1'/><geom size='.1'/></body></worldbody>"
#define MEASURED "<worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><sensor><clock/>"
  static const Refused cases[] = {
      {"<option integrator='RK4'/>" YIELDING,
       "joint 0 (of body 'b'): springyield (a spring that yields) with integrator RK4 is not supported", 1},
      {"<option integrator='RK4'/><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
       "<tendon><fixed name='t' stiffness='1' springyield='.1'><joint joint='j' coef='1'/></fixed></tendon>",
       "tendon 't': springyield (a spring that yields) with integrator RK4 is not supported", 1},
      {"<option integrator='RK4'/>" MEASURED "<jointpos joint='j' nsample='2'/><clock name='c' nsample='3'/></sensor>",
       "sensor 1: a history buffer (nsample) with integrator RK4 is not supported", 2},
      {"<option><flag sensor='disable'/></option>" MEASURED "<clock name='c' nsample='3'/></sensor>",
       "sensor 'c': a history buffer (nsample) with flag sensor='disable' is not supported", 1},
  };
#undef MEASURED
#undef YIELDING
  check_refused(cases, sizeof cases / sizeof *cases);
}

static void pulls_in_gaps_are_refused_under_override(void **state) {
  (void)state;
  static const Refused cases[] = {
      {"<option><flag override='enable'/></option><worldbody><geom size='1' gap='.1'/><body><freejoint/><geom "
       "name='glue' size='.1' adhesion='2'/></body></worldbody>",
       "geom 'glue': adhesion in a model with gaps, with flag override='enable', is not supported", 1},
      {"<option><flag override='enable'/></option><worldbody><geom name='a' size='1'/><body><freejoint/><geom name='b' "
       "size='.1'/></body></worldbody><contact><pair geom1='a' geom2='b' adhesion='2' gap='.1'/></contact>",
       "pair 0: adhesion in a model with gaps, with flag override='enable', is not supported", 1},
      {"<option><flag override='enable'/></option><worldbody><geom size='1' gap='.1'/><body name='b'><freejoint/><geom "
       "size='.1'/></body></worldbody><actuator><adhesion name='cup' body='b' ctrlrange='0 1'/></actuator>",
       "actuator 'cup': adhesion in a model with gaps, with flag override='enable', is not supported", 1},
  };
  check_refused(cases, sizeof cases / sizeof *cases);
}

static void everything_is_named_not_only_the_first(void **state) {
  (void)state;
  int count = 0;
  char *text = refusals(
      "<mujoco><option density='-1' integrator='discrete' noslip_iterations='1'><flag ipc='enable' "
      "nativeccd='disable'/></option>"
      "<asset><hfield name='h' nrow='2' ncol='2' size='1 1 1 1'/></asset><worldbody>" BALL
      "<geom name='land' type='hfield' hfield='h'/><geom name='sea' type='hfield' hfield='h'/></worldbody>"
      "</mujoco>",
      &count);
  assert_int_equal(count, 6);  // the ball, too, which needs convex collision with the height fields
  assert_line(text, "option 'density'");
  assert_line(text, "option 'integrator'");
  assert_line(text, "option 'ipc'");
  assert_line(text, "geom 'land'");
  assert_line(text, "geom 'sea'");
  free(text);
}

// More refusals than the text of an error holds: whole lines, and how many are left.
static void a_long_list_says_how_much_is_left(void **state) {
  (void)state;
  enum { N = 200 };
  char *xml = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&xml, &size);
  fputs("<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><actuator>", f);
  for (int i = 0; i < N; ++i) fprintf(f, "<general name='own%d' joint='j' gaintype='user'/>", i);
  fputs("</actuator></mujoco>", f);
  fclose(f);
  mjModel *mj = compile(xml);
  SnError err = {0};
  assert_null(sn_import_mjmodel(mj, &err));
  assert_int_equal(err.code, SN_ERR_UNSUPPORTED);
  int lines = 0, more = 0;
  for (const char *p = err.text; *p; ++p) lines += *p == '\n';
  assert_non_null(strstr(err.text, "... and "));
  assert_int_equal(sscanf(strstr(err.text, "... and "), "... and %d more", &more), 1);
  assert_int_equal(lines + more, N);
  int count = 0;
  char *all = sn_import_unsupported(mj, &count);
  assert_int_equal(count, N);
  assert_line(all, "actuator 'own199'");
  free(all);
  free(xml);
  mj_deleteModel(mj);
}

// Height fields, meshes and wind without a medium do no harm where nothing can touch them.
static void what_only_shows_is_accepted(void **state) {
  (void)state;
  static const char *const accepted[] = {
      "<asset><hfield name='h' nrow='2' ncol='2' size='1 1 1 1'/></asset><worldbody>" BALL
      "<geom name='land' type='hfield' hfield='h' contype='0' conaffinity='0'/></worldbody>",
      "<asset><hfield name='h' nrow='2' ncol='2' size='1 1 1 1'/></asset><worldbody>" BALL
      "<body name='w'><geom name='land' type='hfield' hfield='h'/></body></worldbody><contact><exclude body1='b' "
      "body2='w'/></contact>",
      "<option wind='1 2 3'/><worldbody>" BALL "</worldbody>",
      "<option><flag nativeccd='disable'/></option><worldbody><geom type='plane' size='1 1 1' contype='3'/>" BALL
      "<body><freejoint/><geom type='ellipsoid' size='.1 .2 .3' contype='0' conaffinity='2'/></body>"
      "<body><freejoint/><geom type='cylinder' size='.1 .2'/></body></worldbody>",
      "<option solver='PGS' jacobian='sparse'><flag energy='enable' fwdinv='enable' "
      "invdiscrete='enable'/></option><worldbody>" BALL "</worldbody>",
  };
  for (size_t i = 0; i < sizeof accepted / sizeof *accepted; ++i) {
    char xml[2000];
    snprintf(xml, sizeof xml, "<mujoco>%s</mujoco>", accepted[i]);
    int count = 0;
    char *text = refusals(xml, &count);
    if (count) fail_msg("refused: %s\n%s", xml, text);
    free(text);
  }
}

static void visual_meshes_are_left_out(void **state) {
  (void)state;
  static const char xml[] =
      "<mujoco><asset>"
      "<mesh name='seen' vertex='0 0 0 1 0 0 0 1 0 0 0 1 1 1 1'/>"
      "<mesh name='felt' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/>"
      "<mesh name='seen too' vertex='0 0 0 2 0 0 0 2 0 0 0 2'/>"
      "<mesh name='cube' vertex='0 0 0 1 0 0 0 1 0 0 0 1 1 1 0 1 0 1 0 1 1 1 1 1'/>"
      "</asset><worldbody><geom type='plane' size='1 1 1'/><body><freejoint/>"
      "<geom type='mesh' mesh='seen' contype='0' conaffinity='0'/><geom type='mesh' mesh='felt'/>"
      "<geom type='mesh' mesh='seen too' contype='0' conaffinity='0'/><geom type='mesh' "
      "mesh='cube'/></body></worldbody></mujoco>";
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  const SnModel *m = o.m;
  assert_int_equal(m->nmesh, 4);
  assert_int_equal(m->mesh_vertnum[0], 0);
  assert_int_equal(m->mesh_vertnum[1], 4);
  assert_int_equal(m->mesh_vertnum[2], 0);
  assert_int_equal(m->mesh_vertnum[3], 8);
  assert_int_equal(m->nmeshvert, 12);
  // what stays is MuJoCo's, moved
  for (int mesh = 1; mesh < 4; mesh += 2) {
    const int a = m->mesh_vertadr[mesh], b = o.mj->mesh_vertadr[mesh], n = m->mesh_vertnum[mesh];
    for (int i = 0; i < 3 * n; ++i) assert_true(m->mesh_vert[3 * a + i] == (sn_real)o.mj->mesh_vert[3 * b + i]);
    assert_int_equal(m->mesh_polynum[mesh], o.mj->mesh_polynum[mesh]);
    for (int p = 0; p < m->mesh_polynum[mesh]; ++p) {
      const int pa = m->mesh_polyadr[mesh] + p, pb = o.mj->mesh_polyadr[mesh] + p;
      assert_int_equal(m->mesh_polyvertnum[pa], o.mj->mesh_polyvertnum[pb]);
      for (int k = 0; k < m->mesh_polyvertnum[pa]; ++k)
        assert_int_equal(m->mesh_polyvert[m->mesh_polyvertadr[pa] + k],
                         o.mj->mesh_polyvert[o.mj->mesh_polyvertadr[pb] + k]);
    }
    for (int v = 0; v < n; ++v) {
      assert_int_equal(m->mesh_polymapnum[a + v], o.mj->mesh_polymapnum[b + v]);
      for (int k = 0; k < m->mesh_polymapnum[a + v]; ++k)
        assert_int_equal(m->mesh_polymap[m->mesh_polymapadr[a + v] + k],
                         o.mj->mesh_polymap[o.mj->mesh_polymapadr[b + v] + k]);
    }
  }
  sn_oracle_free(&o);
}

// MuJoCo loads all of these.
static void bad_numbers_are_named(void **state) {
  (void)state;
  mjModel *mj = compile("<mujoco><worldbody>" BALL "</worldbody></mujoco>");
  SnError err = {0};
  const struct {
    double *where, value;
    const char *text;
  } cases[] = {
      {&mj->opt.timestep, 0, "option timestep is 0: must be above 0 s"},
      {&mj->opt.timestep, -0.5, "option timestep is -0.5: must be above 0 s"},
      {&mj->opt.timestep, NAN, "option timestep is nan: must be finite"},
      {&mj->opt.impratio, 0, "option impratio is 0: must be above 0"},
      {&mj->opt.noslip_tolerance, -1, "option noslip_tolerance is -1: must be at least 0"},
      {&mj->opt.sleep_tolerance, -1, "option sleep_tolerance is -1: must be at least 0"},
      {&mj->opt.gravity[2], INFINITY, "option gravity is inf: must be finite"},
      {&mj->body_mass[1], NAN, "body_mass[1] is nan: must be finite"},
      {&mj->body_mass[1], -1, "body_mass[1] is -1: must be at least 0"},
      {&mj->body_quat[4], 0.5, "body_quat[4] is 0.5: must begin a unit quaternion"},
      {&mj->geom_size[0], NAN, "geom_size[0] is nan: must be finite"},
      {&mj->qpos0[3], 0, "qpos0[3] is 0: must begin a unit quaternion"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const double before = *cases[i].where;
    *cases[i].where = cases[i].value;
    assert_null(sn_import_mjmodel(mj, &err));
    assert_int_equal(err.code, SN_ERR_FORMAT);
    assert_line(err.text, cases[i].text);
    *cases[i].where = before;
  }
  SnModel *m = sn_import_mjmodel(mj, &err);
  assert_non_null(m);
  sn_model_free(m);
  mj_deleteModel(mj);
}

static void sizes_over_their_caps_are_refused(void **state) {
  (void)state;
  char *xml = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&xml, &size);
  fputs("<mujoco><worldbody>", f);
  for (int i = 0; i <= SN_CAP_nbody; ++i) fputs("<body/>", f);
  fputs("</worldbody></mujoco>", f);
  fclose(f);
  mjModel *mj = compile(xml);
  SnError err = {0};
  assert_null(sn_import_mjmodel(mj, &err));
  assert_int_equal(err.code, SN_ERR_LIMIT);
  char expected[100];
  snprintf(expected, sizeof expected, "nbody is %d; the limit is %d", SN_CAP_nbody + 2, SN_CAP_nbody);
  assert_line(err.text, expected);
  mj_deleteModel(mj);
  free(xml);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_refusal_names_element_and_feature),
      cmocka_unit_test(what_discrete_goes_without_is_refused),
      cmocka_unit_test(what_sleepers_cannot_have_is_refused),
      cmocka_unit_test(what_needs_the_past_is_refused),
      cmocka_unit_test(pulls_in_gaps_are_refused_under_override),
      cmocka_unit_test(everything_is_named_not_only_the_first),
      cmocka_unit_test(a_long_list_says_how_much_is_left),
      cmocka_unit_test(what_only_shows_is_accepted),
      cmocka_unit_test(visual_meshes_are_left_out),
      cmocka_unit_test(bad_numbers_are_named),
      cmocka_unit_test(sizes_over_their_caps_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

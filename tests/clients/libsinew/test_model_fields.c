// Arrays, names and sensors of a model through the public functions, against MuJoCo's own model.
#include <math.h>
#include <mujoco/mjxmacro.h>

#include "clients/libsinew/model_private.h"
#include "physics/import/import_mjcf.h"
#include "tests/support/oracle.h"
#include "tests/support/small_models.h"

// A model of ours and MuJoCo's, of the same MJCF.
typedef struct Both {
  SinewModel *model;
  mjModel *mj;
} Both;

static Both make(const char *xml) {
  SnError err = {0};
  SinewError failure;
  Both x = {.mj = sn_oracle_read_string(xml, &err)};
  SnModel *m = x.mj ? sn_import_mjmodel(x.mj, &err) : NULL;
  if (!m) fail_msg("%s", err.text);
  x.model = api_model_wrap(m, &failure);
  assert_non_null(x.model);
  assert_int_equal(failure.status, SINEW_OK);
  return x;
}

static void free_both(Both *x) {
  sinew_model_free(x->model);
  mj_deleteModel(x->mj);
}

// Types of MuJoCo's numbers; other types are no numbers.
typedef enum Type { OTHER, DOUBLE, FLOAT, INT, BYTE } Type;
#define TYPE(type) \
  _Generic((type){0}, mjtNum : DOUBLE, float : FLOAT, int : INT, mjtByte : BYTE, mjtBool : BYTE, default : OTHER)

static double number(const void *array, Type type, size_t k) {
  if (type == DOUBLE) return ((const mjtNum *)array)[k];
  if (type == FLOAT) return (double)((const float *)array)[k];
  return type == INT ? (double)((const int *)array)[k] : (double)((const unsigned char *)array)[k];
}

static bool is_frame(const char *name) {
  static const char *const frames[] = {"body_ipos", "body_iquat", "geom_pos", "geom_quat", "site_pos", "site_quat"};
  for (size_t i = 0; i < sizeof frames / sizeof *frames; ++i)
    if (strcmp(name, frames[i]) == 0) return true;
  return false;
}

static bool has_rays(const SinewModel *model) {
  int rows = 0, cols = 0;
  const int *type = sinew_model_int_array(model, "sensor_type", &rows, &cols);
  for (int i = 0; i < rows; ++i)
    if (type[i] == mjSENS_RANGEFINDER) return true;
  return false;
}

// Triangles, which a model has where a sensor's ray can meet them.
static bool is_of_triangles(const char *name) {
  return strcmp(name, "mesh_faceadr") == 0 || strcmp(name, "mesh_facenum") == 0 || strcmp(name, "mesh_face") == 0;
}

// Vectors of vertices, which a model has where a tactile sensor reads them.
static bool is_of_vertices(const char *name) {
  return strcmp(name, "mesh_normaladr") == 0 || strcmp(name, "mesh_normalnum") == 0 || strcmp(name, "mesh_normal") == 0;
}

// MuJoCo's array of this name and shape against ours, if we have it. Returns whether we have.
static bool check_array(const SinewModel *model, const char *name, const void *theirs, Type type, size_t rows,
                        size_t cols) {
  int r = -1, c = -1, wrong = -1;
  const double *reals = sinew_model_array(model, name, &r, &c);
  const int *ints = reals ? NULL : sinew_model_int_array(model, name, &r, &c);
  if (!reals && !ints) {
    assert_int_equal(r, 0);
    assert_int_equal(c, 0);
    return false;
  }
  if (is_of_vertices(name) || (is_of_triangles(name) && !has_rays(model))) return true;
  if ((type == DOUBLE || type == FLOAT) != (reals != NULL)) fail_msg("%s has another type", name);
  if ((size_t)r * (size_t)c != rows * cols) fail_msg("%s: (%d, %d)", name, r, c);
  if (rows * cols > 0 && (size_t)r != rows) fail_msg("%s: (%d, %d)", name, r, c);
  for (size_t k = 0; k < rows * cols; ++k) {
    const double ours = reals ? reals[k] : (double)ints[k], ref = number(theirs, type, k);
    if (!(fabs(ours - ref) <= (is_frame(name) ? 1e-6 : 0))) wrong = (int)k;
  }
  if (wrong >= 0) fail_msg("%s[%d] is not MuJoCo's", name, wrong);
  return true;
}

static void arrays_are_mujocos(void **state) {
  (void)state;
  for (int i = 0; i <= SN_SMALL_MODELS; ++i) {
    Both x = make(i < SN_SMALL_MODELS ? sn_small_model(i) : sn_ray_model());
    const mjModel *m = x.mj;
    int found = 0, fields = 0;
    MJMODEL_POINTERS_PREAMBLE(m)
#undef MJ_M
#define MJ_M(n) n
#define XNV X
#define X(type, name, nr, nc) \
  found += TYPE(type) && check_array(x.model, #name, m->name, TYPE(type), (size_t)m->nr, (size_t)(nc));
    MJMODEL_POINTERS
#undef X
#undef XNV
    SinewField field;
    while (sinew_model_field(x.model, fields, &field)) {
      int rows, cols;
      assert_true(field.integer ? sinew_model_int_array(x.model, field.name, &rows, &cols) != NULL
                                : sinew_model_array(x.model, field.name, &rows, &cols) != NULL);
      assert_true(rows == field.rows && cols == field.cols);
      ++fields;
    }
    // each of ours is one of MuJoCo's, but for tree_asleep0, which its data has
    assert_int_equal(fields, found + 1);
    for (int t = 0; t < m->ntree; ++t)
      assert_int_equal(sinew_model_int_array(x.model, "tree_asleep0", NULL, NULL)[t], -11);
    assert_true(fields > 150);
    free_both(&x);
  }
}

static void names_and_sensors(void **state) {
  (void)state;
  static const int type[] = {mjOBJ_BODY,     mjOBJ_JOINT,  mjOBJ_GEOM, mjOBJ_SITE,    mjOBJ_TENDON,
                             mjOBJ_ACTUATOR, mjOBJ_SENSOR, mjOBJ_KEY,  mjOBJ_EQUALITY};
  for (int i = 0; i < SN_SMALL_MODELS; ++i) {
    Both x = make(sn_small_model(i));
    for (int kind = SINEW_BODY; kind <= SINEW_EQUALITY; ++kind) {
      const int n = sinew_model_count(x.model, (SinewObject)kind);
      for (int id = 0; id < n; ++id) {
        const char *theirs = mj_id2name(x.mj, type[kind], id), *ours = sinew_model_name(x.model, (SinewObject)kind, id);
        assert_string_equal(ours, theirs ? theirs : "");
        assert_int_equal(sinew_model_find(x.model, (SinewObject)kind, ours), *ours ? id : -1);
      }
      assert_string_equal(sinew_model_name(x.model, (SinewObject)kind, n), "");
      assert_string_equal(sinew_model_name(x.model, (SinewObject)kind, -1), "");
    }
    const SinewSizes *size = sinew_model_sizes(x.model);
    assert_int_equal(size->nq, x.mj->nq);
    assert_int_equal(size->nsensordata, x.mj->nsensordata);
    assert_int_equal(size->nstate, 2 * x.mj->nv + x.mj->na);
    free_both(&x);
  }
  Both x = make(
      "<mujoco><worldbody><body><joint name='j' range='-1 1'/><geom size='.1'/><site name='s'/></body></worldbody>"
      "<actuator><motor joint='j'/><motor joint='j' ctrlrange='-2 3'/></actuator>"
      "<sensor><jointpos joint='j'/><user dim='3'/><insidesite objtype='site' objname='s' "
      "site='s'/></sensor></mujoco>");
  const SinewSensorInfo pos = sinew_model_sensor(x.model, 0), own = sinew_model_sensor(x.model, 1),
                        inside = sinew_model_sensor(x.model, 2), none = sinew_model_sensor(x.model, 3);
  assert_true(pos.supported && pos.differentiable);
  assert_true(own.supported && !own.differentiable);  // 0, as in MuJoCo without a callback
  assert_true(inside.supported && !inside.differentiable);
  assert_true(!none.supported && !sinew_model_sensor(x.model, -1).supported);
  const double *range = sinew_model_ctrl_range(x.model);
  assert_true(range[0] == -INFINITY && range[1] == INFINITY && range[2] == -2 && range[3] == 3);
  free_both(&x);
}

static void misuse_is_harmless(void **state) {
  (void)state;
  Both x = make("<mujoco/>");
  SinewField field;
  int rows = 7, cols = 7;
  assert_null(sinew_model_array(NULL, "qpos0", &rows, &cols));
  assert_true(rows == 0 && cols == 0);
  static const char *const none[] = {"", "nothing", "names", "nlink", "cpair_geom", "body_mass ", "Body_mass"};
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
    assert_null(sinew_model_array(x.model, none[i], NULL, NULL));
    assert_null(sinew_model_int_array(x.model, none[i], NULL, NULL));
  }
  assert_null(sinew_model_array(x.model, NULL, NULL, NULL));
  assert_null(sinew_model_array(x.model, "jnt_type", NULL, NULL));
  assert_null(sinew_model_int_array(x.model, "body_mass", NULL, NULL));
  assert_null(sinew_model_int_array(NULL, "jnt_type", NULL, NULL));
  assert_false(sinew_model_field(NULL, 0, &field));
  assert_false(sinew_model_field(x.model, 0, NULL));
  assert_false(sinew_model_field(x.model, -1, &field));
  assert_false(sinew_model_field(x.model, 1000000, &field));
  static const int kinds[] = {-1, SINEW_EQUALITY + 1, 1 << 20};
  for (int i = 0; i < 3; ++i) {
    assert_int_equal(sinew_model_find(x.model, (SinewObject)kinds[i], "world"), -1);
    assert_string_equal(sinew_model_name(x.model, (SinewObject)kinds[i], 0), "");
    assert_int_equal(sinew_model_count(x.model, (SinewObject)kinds[i]), 0);
  }
  assert_int_equal(sinew_model_find(x.model, SINEW_BODY, NULL), -1);
  assert_int_equal(sinew_model_find(x.model, SINEW_BODY, ""), -1);
  assert_int_equal(sinew_model_find(NULL, SINEW_BODY, "world"), -1);
  assert_string_equal(sinew_model_name(NULL, SINEW_BODY, 0), "");
  assert_int_equal(sinew_model_count(NULL, SINEW_BODY), 0);
  assert_null(sinew_model_sizes(NULL));
  assert_null(sinew_model_ctrl_range(NULL));
  assert_false(sinew_model_sensor(NULL, 0).supported);
  sinew_model_free(NULL);
  free_both(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_are_mujocos),
      cmocka_unit_test(names_and_sensors),
      cmocka_unit_test(misuse_is_harmless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Arrays of a model by their names, and copies with other numbers in some of them. model_fields.inc is the only list,
// of names as of what may change.
//
// A copy is checked and set up as a model that has been read, so all that sn_model_setup makes follows from its
// numbers. What is left to do here is what MuJoCo's compiler, and in part mj_setConst, make of arrays without a formula
// of the dynamics: bounding volumes, sums of masses, unions of flags, hints which elements have a property at all.
// Constants of the dynamics at qpos0 (dof_M0, body_invweight0 and their like) stay, as they do when a user of MuJoCo
// writes into mjModel.
#include "physics/model/model_arrays.h"

#include <stddef.h>

#include "physics/base/vec.h"
#include "physics/model/model_private.h"

// ---- the list ----

typedef struct ArrayField {
  const char *name;
  bool integer;
  SnArrayKind kind;
  size_t pointer;  // where SnModel has it
} ArrayField;

#define FIELD_int(name, kind) {#name, true, kind, offsetof(SnModel, name)},
#define FIELD_sn_real(name, kind) {#name, false, kind, offsetof(SnModel, name)},
#define FIELD_char(name, kind)
static const ArrayField fields[] = {
#define SN_MODEL_FIELD(type, name, rows, cols) FIELD_##type(name, SN_ARRAY_STRUCTURE)
#define SN_MODEL_VALUE(type, name, rows, cols) FIELD_##type(name, SN_ARRAY_VALUE)
#define SN_MODEL_ASSET(type, name, rows, cols) FIELD_##type(name, SN_ARRAY_ASSET)
#define SN_MODEL_DERIVED(type, name, rows, cols) FIELD_##type(name, SN_ARRAY_DERIVED)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

bool sn_model_array(const SnModel *m, int i, SnModelArray *array) {
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SHAPE_int(rows, cols) {(rows), (cols)},
#define SHAPE_sn_real(rows, cols) {(rows), (cols)},
#define SHAPE_char(rows, cols)
  const int shape[FIELDS][2] = {
#define SN_MODEL_FIELD(type, name, rows, cols) SHAPE_##type(rows, cols)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  };
  if (i < 0 || i >= FIELDS) return false;
  *array = (SnModelArray){fields[i].name, fields[i].integer, fields[i].kind, shape[i][0], shape[i][1], NULL};
  memcpy(&array->data, (const char *)m + fields[i].pointer, sizeof array->data);
  return true;
}

static int find_field(const char *name) {
  for (int i = 0; i < FIELDS; ++i)
    if (strcmp(fields[i].name, name) == 0) return i;
  return -1;
}

bool sn_model_find_array(const SnModel *m, const char *name, SnModelArray *array) {
  return sn_model_array(m, find_field(name), array);
}

// ---- other numbers ----

// Which fields a call gives.
typedef struct Given {
  bool field[FIELDS];
} Given;

static bool is_given(const Given *given, const char *name) { return given->field[find_field(name)]; }

static SnCode refuse(const SnModelArray *a, SnError *err) {
  static const char *const reason[] = {
      [SN_ARRAY_VALUE] = "",
      [SN_ARRAY_STRUCTURE] = "it says what there is in the model and what belongs to what",
      [SN_ARRAY_ASSET] = "it is part of a mesh or of a height field",
      [SN_ARRAY_DERIVED] = "it follows from other arrays",
  };
  return sn_fail(err, SN_ERR_UNSUPPORTED, "array '%s' cannot have other numbers: %s", a->name, reason[a->kind]);
}

// Writes the numbers of one array into the copy, whose array has the same place in it as `a` in the model.
static SnCode take_array(SnModel *copy, const SnNewArray *given, SnError *err) {
  SnModelArray a;
  sn_model_find_array(copy, given->name, &a);
  if (a.kind != SN_ARRAY_VALUE) return refuse(&a, err);
  if (given->rows != a.rows || given->cols != a.cols)
    return sn_fail(err, SN_ERR_ARGUMENT, "array '%s' has the shape (%d, %d); expected (%d, %d)", a.name, given->rows,
                   given->cols, a.rows, a.cols);
  const int n = a.rows * a.cols;
  if (n > 0 && !given->value) return sn_fail(err, SN_ERR_ARGUMENT, "array '%s': value is NULL", a.name);
  void *data = (void *)(uintptr_t)a.data;
  for (int i = 0; i < n; ++i) {
    const double x = given->value[i];
    if (!a.integer) {
      ((sn_real *)data)[i] = (sn_real)x;
      continue;
    }
    if (!(x == floor(x) && fabs(x) <= 2147483647.0))
      return sn_fail(err, SN_ERR_ARGUMENT, "%s[%d] is %.9g: must be a whole number", a.name, i, x);
    ((int *)data)[i] = (int)x;
  }
  return SN_OK;
}

static SnCode take_arrays(SnModel *copy, const SnNewArray *array, int n, Given *given, SnError *err) {
  for (int i = 0; i < n; ++i) {
    const int k = array[i].name ? find_field(array[i].name) : -1;
    if (k < 0)
      return sn_fail(err, SN_ERR_NOT_FOUND, "a model has no array '%s'", array[i].name ? array[i].name : "(null)");
    if (given->field[k]) return sn_fail(err, SN_ERR_ARGUMENT, "array '%s' is given twice", array[i].name);
    given->field[k] = true;
    const SnCode code = take_array(copy, array + i, err);
    if (code != SN_OK) return code;
  }
  return SN_OK;
}

// ---- what follows ----

// Radius of the bounding sphere of a primitive geom, as the compiler has it; 0: a plane.
static sn_real bounding_radius(int type, const sn_real *size) {
  switch (type) {
    case SN_GEOM_SPHERE:
      return size[0];
    case SN_GEOM_CAPSULE:
      return size[0] + size[1];
    case SN_GEOM_CYLINDER:
      return sn_sqrt(size[0] * size[0] + size[1] * size[1]);
    case SN_GEOM_ELLIPSOID:
      return sn_max(sn_max(size[0], size[1]), size[2]);
    case SN_GEOM_BOX:
      return sn_norm3(size);
    default:
      return 0;
  }
}

// Half extents of the bounding box of a primitive geom that is no plane.
static void bounding_box(int type, const sn_real *size, sn_real *half) {
  const bool round = type == SN_GEOM_SPHERE || type == SN_GEOM_CAPSULE || type == SN_GEOM_CYLINDER;
  half[0] = size[0];
  half[1] = round ? size[0] : size[1];
  half[2] = type == SN_GEOM_SPHERE     ? size[0]
            : type == SN_GEOM_CAPSULE  ? size[0] + size[1]
            : type == SN_GEOM_CYLINDER ? size[1]
                                       : size[2];
}

// Bounding volumes of geoms whose size has changed, unless they are given.
static SnCode follow_sizes(const SnModel *m, SnModel *copy, const Given *given, SnError *err) {
  const bool radius = !is_given(given, "geom_rbound"), box = !is_given(given, "geom_aabb");
  for (int i = 0; i < m->ngeom; ++i) {
    const sn_real *size = copy->geom_size + 3 * i;
    const int type = m->geom_type[i];
    if (memcmp(size, m->geom_size + 3 * i, 3 * sizeof *size) == 0) continue;
    if (type == SN_GEOM_MESH || type == SN_GEOM_HFIELD || type == SN_GEOM_SDF)
      return sn_fail(err, SN_ERR_UNSUPPORTED,
                     "geom_size[%d] cannot have another number: geom %d '%s' has the size of %s", 3 * i, i,
                     sn_model_name(m, SN_NAME_GEOM, i), type == SN_GEOM_MESH ? "its mesh" : "its asset");
    if (radius) copy->geom_rbound[i] = bounding_radius(type, size);
    if (box && type != SN_GEOM_PLANE) bounding_box(type, size, copy->geom_aabb + 6 * i + 3);
  }
  return SN_OK;
}

// Bits of a body: those of all its geoms.
static void follow_bits(const SnModel *m, const int *geom, int *body) {
  for (int b = 0; b < m->nbody; ++b) body[b] = 0;
  for (int i = 0; i < m->ngeom; ++i) body[m->geom_bodyid[i]] |= geom[i];
}

// Which actuator adds damping or inertia to each of n joints, or tendons: -1 none, -2 several.
static void follow_reflected(const SnModel *m, bool tendon, int n, int *hint) {
  for (int i = 0; i < n; ++i) hint[i] = -1;
  for (int k = 0; k < m->nactuator; ++k) {
    const int trn = m->actuator_trntype[k], id = m->actuator_trnid[2 * k];
    bool adds = m->actuator_damping[k] != 0 || m->actuator_armature[k] != 0;
    for (int p = 0; p < SN_NPOLY; ++p) adds = adds || m->actuator_dampingpoly[SN_NPOLY * k + p] != 0;
    if (adds && (tendon ? trn == SN_TRN_TENDON : trn == SN_TRN_JOINT || trn == SN_TRN_JOINTINPARENT))
      hint[id] = hint[id] == -1 ? k : -2;
  }
}

static void follow_masses(const SnModel *m, const sn_real *mass, sn_real *subtree) {
  for (int i = 0; i < m->nbody; ++i) subtree[i] = mass[i];
  for (int i = m->nbody - 1; i > 0; --i) subtree[m->body_parentid[i]] += subtree[i];
}

static SnCode follow(const SnModel *m, SnModel *copy, const Given *given, SnError *err) {
  if (is_given(given, "geom_contype")) follow_bits(copy, copy->geom_contype, copy->body_contype);
  if (is_given(given, "geom_conaffinity")) follow_bits(copy, copy->geom_conaffinity, copy->body_conaffinity);
  if (is_given(given, "actuator_damping") || is_given(given, "actuator_dampingpoly") ||
      is_given(given, "actuator_armature")) {
    follow_reflected(copy, false, copy->njnt, copy->jnt_actuatorid);
    follow_reflected(copy, true, copy->ntendon, copy->tendon_actuatorid);
  }
  if (is_given(given, "body_mass")) follow_masses(copy, copy->body_mass, copy->body_subtreemass);
  if (is_given(given, "body_gravcomp")) {
    copy->ngravcomp = 0;
    for (int i = 0; i < m->nbody; ++i) copy->ngravcomp += copy->body_gravcomp[i] > 0;
  }
  return follow_sizes(m, copy, given, err);
}

// ---- what the inertia matrix forbids ----

static bool same(const sn_real *a, const sn_real *b, int n) { return memcmp(a, b, sizeof *a * (size_t)n) == 0; }

static SnCode refuse_simple(const SnModel *m, const char *array, int entry, int body, SnError *err) {
  return sn_fail(err, SN_ERR_UNSUPPORTED,
                 "%s[%d] cannot have another number: the inertia matrix of body %d '%s' was compiled to be diagonal",
                 array, entry, body, sn_model_name(m, SN_NAME_BODY, body));
}

// Rows of simple dofs have their diagonal alone: what would add other entries is refused. So is a tendon that begins to
// have inertia although it wraps around geoms, as MuJoCo's compiler does.
static SnCode check_inertia(const SnModel *m, const SnModel *copy, SnError *err) {
#define SIMPLE_SAME(array, cols, i, body)                                 \
  if (!same(m->array + (cols) * (i), copy->array + (cols) * (i), (cols))) \
    return refuse_simple(m, #array, (cols) * (i), (body), err);
  for (int i = 0; i < m->nv; ++i) {
    if (!m->dof_simplenum[i]) continue;
    const int body = m->dof_bodyid[i], joint = m->dof_jntid[i];
    SIMPLE_SAME(body_ipos, 3, body, body)
    SIMPLE_SAME(body_iquat, 4, body, body)
    SIMPLE_SAME(jnt_pos, 3, joint, body)
    SIMPLE_SAME(jnt_axis, 3, joint, body)
  }
#undef SIMPLE_SAME
  for (int t = 0; t < m->ntendon; ++t) {
    if (copy->ten_arm[t] == 0 || m->ten_arm[t] != 0) continue;
    if (m->ten_wseg[t + 1] > m->ten_wseg[t])
      return sn_fail(err, SN_ERR_UNSUPPORTED, "tendon %d '%s' cannot have an armature: it wraps around a geom", t,
                     sn_model_name(m, SN_NAME_TENDON, t));
    for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k)
      if (m->dof_simplenum[m->ten_J_colind[k]])
        return refuse_simple(m, "tendon_armature", t, m->dof_bodyid[m->ten_J_colind[k]], err);
  }
  return SN_OK;
}

// Side sites of geoms that tendons wrap around are structure.
static SnCode check_paths(const SnModel *m, const SnModel *copy, SnError *err) {
  for (int k = 0; k < m->nwrap; ++k)
    if ((m->wrap_type[k] == SN_WRAP_SPHERE || m->wrap_type[k] == SN_WRAP_CYLINDER) &&
        m->wrap_prm[k] != copy->wrap_prm[k])
      return sn_fail(err, SN_ERR_UNSUPPORTED, "wrap_prm[%d] cannot have another number: it is a geom's side site", k);
  return SN_OK;
}

static SnCode make(const SnModel *m, SnModel *copy, const SnNewArray *array, int n, SnError *err) {
  Given given = {{false}};
  SnCode code = take_arrays(copy, array, n, &given, err);
  if (code == SN_OK) code = check_paths(m, copy, err);
  if (code == SN_OK) code = sn_model_check(copy, err);
  if (code == SN_ERR_FORMAT) code = err->code = SN_ERR_ARGUMENT;  // not of a file
  if (code == SN_OK) code = follow(m, copy, &given, err);
  if (code == SN_OK) code = sn_model_setup(copy, err);
  return code == SN_OK ? check_inertia(m, copy, err) : code;
}

SnModel *sn_model_with_arrays(const SnModel *m, const SnNewArray *array, int n, SnError *err) {
  SnModel *copy = sn_model_copy_arrays(m, err);
  if (!copy || make(m, copy, array, n, err) == SN_OK) return copy;
  sn_model_free(copy);
  return NULL;
}

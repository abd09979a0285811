// Arrays of a body against MuJoCo's: every one that is listed has MuJoCo's name, type and shape, and its values after
// mj_forward and after mj_step; contacts and their forces; and what a step leaves out until it is asked for.
#include <stdio.h>

#include "tests/clients/libsinew/pair_fixture.h"

enum { MOST = 300, SAMPLES = 5 };

// An array of MuJoCo's data.
typedef struct Theirs {
  const char *name;
  const void *at;
  bool real, integer;  // mjtNum, int; else other types
  int rows, cols;
} Theirs;

// All arrays and single numbers of mjData. Returns how many.
static int list_theirs(const mjModel *mj, const mjData *d, Theirs *list) {
  int n = 0;
#undef MJ_M
#define MJ_M(size) mj->size
#undef MJ_D
#define MJ_D(size) d->size
#define X(type, field, nr, nc) \
  list[n++] = (Theirs){#field, d->field, _Generic(d->field, mjtNum *: true, default: false), \
                       _Generic(d->field, int *: true, default: false), (int)(nr), (int)(nc)};
  MJDATA_ARENA_POINTERS_SOLVER
#undef X
#define X(type, field, nr, nc) \
  list[n++] = (Theirs){#field, d->field, _Generic(d->field, mjtNum *: true, default: false), \
                       _Generic(d->field, int *: true, default: false), (int)(mj->nr), (int)(nc)};
  MJDATA_POINTERS
#undef X
#define X(type, field) \
  list[n++] = (Theirs){#field, &d->field, _Generic(&d->field, const mjtNum *: true, default: false), \
                       _Generic(&d->field, const int *: true, default: false), 1, 1};
  MJDATA_SCALAR
#undef X
  list[n++] = (Theirs){"solver_niter", d->solver_niter, false, true, 1, 1};
  assert_true(n < MOST);
  return n;
}

static const Theirs *find_theirs(const Theirs *list, int n, const char *name) {
  for (int i = 0; i < n; ++i)
    if (strcmp(list[i].name, name) == 0) return list + i;
  return NULL;
}

static bool is_one_of(const char *name, const char *const *names) {
  while (*names && strcmp(*names, name) != 0) ++names;
  return *names != NULL;
}

// Tolerances are those of sinew-check, but that of contacts of meshes, whose deepest point MuJoCo itself finds to 1e-6
// only: `loose`.
static double tolerance_of(const char *name, bool loose) {
  static const char *const solved[] = {"efc_force", "qacc", "qfrc_constraint", "qvel", "qacc_warmstart", NULL};
  if (is_one_of(name, solved)) return loose ? 1e-4 : 1e-6;
  if (strcmp(name, "qpos") == 0) return loose ? 1e-7 : 1e-9;
  return strncmp(name, "efc_", 4) != 0 ? 1e-9 : loose ? 1e-5 : 1e-8;
}

// Whether the model has such contacts.
static bool is_loose(const BodyPair *b) { return b->o.mj->nmesh > 0; }

// Matrices whose pattern MuJoCo chooses by itself are compared in full; iterations depend on tolerances.
static const char *const special[] = {
    "efc_J",         "efc_J_rownnz",  "efc_J_rowadr",    "efc_J_colind", "moment_rownnz",
    "moment_rowadr", "moment_colind", "actuator_moment", "solver_niter", NULL};

// How many numbers of an array count: behind a tendon's path points MuJoCo leaves what was there.
static int count_of(const BodyPair *b, const char *name, int n) {
  int points = 0;
  for (int t = 0; t < b->o.mj->ntendon; ++t) points += b->o.d->ten_wrapnum[t];
  return strcmp(name, "wrap_xpos") == 0 ? 3 * points : strcmp(name, "wrap_obj") == 0 ? points : n;
}

static void compare_field(BodyPair *b, const char *model, const SinewField *f, const Theirs *theirs) {
  int rows = -1, cols = -1;
  const int n = count_of(b, f->name, f->rows * f->cols);
  if (f->rows != theirs->rows || f->cols != theirs->cols)
    fail_msg("%s: %s has shape (%d, %d), MuJoCo's (%d, %d)", model, f->name, f->rows, f->cols, theirs->rows,
             theirs->cols);
  if (f->integer) {
    const int *ours = sinew_data_int_array(b->data, f->name, &rows, &cols);
    assert_true(ours && theirs->integer && rows == f->rows && cols == f->cols);
    for (int i = 0; i < n; ++i)
      if (ours[i] != ((const int *)theirs->at)[i]) fail_msg("%s: %s[%d] differs", model, f->name, i);
    assert_null(sinew_data_array(b->data, f->name, NULL, NULL));
    return;
  }
  const double *ours = sinew_data_array(b->data, f->name, &rows, &cols);
  assert_true(ours && theirs->real && rows == f->rows && cols == f->cols);
  const double error = sn_oracle_error(ours, theirs->at, n);
  if (!(error <= tolerance_of(f->name, is_loose(b)))) fail_msg("%s: %s differs by %.2g", model, f->name, error);
  assert_null(sinew_data_int_array(b->data, f->name, NULL, NULL));
}

// A matrix in full, into full (rows, cols): a sparse one, or, without a pattern, one that is full already.
static void expand(double *full, int rows, int cols, const double *x, const int *nnz, const int *adr, const int *col) {
  if (!nnz) {
    memcpy(full, x, sizeof *full * (size_t)(rows * cols));
    return;
  }
  memset(full, 0, sizeof *full * (size_t)(rows * cols));
  for (int r = 0; r < rows; ++r)
    for (int k = adr[r]; k < adr[r] + nnz[r]; ++k) full[r * cols + col[k]] = x[k];
}

static void compare_sparse(BodyPair *b, const char *model, const char *matrix, const char *prefix, const double *x,
                           const int *nnz, const int *adr, const int *col) {
  char name[3][40];
  static const char *const suffix[3] = {"rownnz", "rowadr", "colind"};
  const int *part[3];
  int rows = 0;
  for (int k = 0; k < 3; ++k) {
    snprintf(name[k], sizeof name[k], "%s_%s", prefix, suffix[k]);
    part[k] = sinew_data_int_array(b->data, name[k], k == 0 ? &rows : NULL, NULL);
    assert_non_null(part[k]);
  }
  const int nv = b->o.mj->nv;
  double *ours = calloc(2 * (size_t)(rows * nv) + 1, sizeof *ours), *ref = ours + rows * nv;
  expand(ours, rows, nv, sinew_data_array(b->data, matrix, NULL, NULL), part[0], part[1], part[2]);
  expand(ref, rows, nv, x, nnz, adr, col);
  const double error = sn_oracle_error(ours, ref, rows * nv);
  if (!(error <= tolerance_of("efc_J", is_loose(b)))) fail_msg("%s: %s differs by %.2g", model, matrix, error);
  free(ours);
}

// Everything that the body has, but for what `skip` names.
static void compare_all(BodyPair *b, const char *model, const char *const *skip) {
  Theirs list[MOST];
  const mjData *d = b->o.d;
  const int n = list_theirs(b->o.mj, d, list);
  SinewField f;
  int fields = 0;
  for (int i = 0; sinew_data_field(b->data, i, &f); ++i, ++fields) {
    const Theirs *theirs = find_theirs(list, n, f.name);
    static const char *const sleep[] = {"tree_asleep", "sleep_qpos",
                                        NULL};  // empty without the flag: test_data_sleep.c
    if (is_one_of(f.name, sleep)) {
      assert_int_equal(f.rows, 0);
      continue;
    }
    if (!theirs) fail_msg("MuJoCo has no %s", f.name);
    if (!is_one_of(f.name, special) && !is_one_of(f.name, skip)) compare_field(b, model, &f, theirs);
  }
  assert_true(fields > 70);
  const bool sparse = mj_isSparse(b->o.mj);
  compare_sparse(b, model, "efc_J", "efc_J", d->efc_J, sparse ? d->efc_J_rownnz : NULL, d->efc_J_rowadr,
                 d->efc_J_colind);
  compare_sparse(b, model, "actuator_moment", "moment", d->actuator_moment, d->moment_rownnz, d->moment_rowadr,
                 d->moment_colind);
}

static void compare_contacts(BodyPair *b, const char *model) {
  const mjData *d = b->o.d;
  const double tol = tolerance_of("efc_pos", is_loose(b));
  double worst = 0, scale = 1e-6;
  assert_int_equal(sinew_data_ncon(b->data), d->ncon);
  for (int i = 0; i < d->ncon; ++i) {
    SinewContact c;
    const mjContact *ref = d->contact + i;
    mjtNum force[6];
    body_ok(b, sinew_data_contact(b->data, i, &c, &b->err));
    if (c.dim != ref->dim || c.geom[0] != ref->geom[0] || c.geom[1] != ref->geom[1] ||
        c.efc_address != ref->efc_address)
      fail_msg("%s: contact %d is another one", model, i);
    if (!(sn_oracle_error(c.pos, ref->pos, 3) < tol && sn_oracle_error(c.frame, ref->frame, 9) < tol &&
          fabs(c.dist - ref->dist) < tol && memcmp(c.friction, ref->friction, sizeof c.friction) == 0))
      fail_msg("%s: contact %d differs", model, i);
    mj_contactForce(b->o.mj, d, i, force);
    for (int k = 0; k < 6; ++k) {
      worst = sn_larger(worst, fabs(c.force[k] - force[k]));
      scale = sn_larger(scale, fabs(force[k]));
    }
  }
  if (!(worst <= tolerance_of("efc_force", is_loose(b)) * scale))
    fail_msg("%s: forces of contacts differ by %g of %g", model, worst, scale);
}

// Sensors have MuJoCo's values, those of users, which nobody computes, too. Returns how many of those there were.
static int compare_sensors(BodyPair *b, const char *model) {
  const SnModel *m = b->o.m;
  const double *ours = sinew_data_array(b->data, "sensordata", NULL, NULL);
  int users = 0;
  for (int i = 0; i < m->nsensor; ++i) {
    users += m->sensor_type[i] == mjSENS_USER;
    for (int k = m->sensor_adr[i]; k < m->sensor_adr[i] + m->sensor_dim[i]; ++k)
      if (!(fabs(ours[k] - b->o.d->sensordata[k]) <= 1e-8))
        fail_msg("%s: sensor %d is %g, MuJoCo's %g", model, i, ours[k], b->o.d->sensordata[k]);
  }
  return users;
}

// Asks for every array once, so that a step leaves nothing out.
static void ask_for_all(BodyPair *b) {
  SinewField f;
  for (int i = 0; sinew_data_field(b->data, i, &f); ++i) {
    const void *at = f.integer ? (const void *)sinew_data_int_array(b->data, f.name, NULL, NULL)
                               : (const void *)sinew_data_array(b->data, f.name, NULL, NULL);
    if (!at) fail_msg("%s has no place", f.name);
  }
}

// State k of model i: the first keyframe, then random ones. Two meshes that lie in each other at random have several
// deepest points; the pile falls instead.
static void next_state(BodyPair *b, int i, int k) {
  if (k == 0) sn_drive_start(&b->o);
  for (int step = 0; i == 1 && step < 5 * k; ++step) mj_step(b->o.mj, b->o.d);
  if (k == 0 || i == 1)
    body_follow(b);
  else
    body_sample(b, 1);
}

static void equals_mujoco(void **state) {
  (void)state;
  static const char *const after_step[] = {"sensordata", NULL};
  static const char *const after_rk4[] = {"sensordata", "qacc", "act_dot", NULL};  // README.md says what these are then
  int contacts = 0, users = 0, points = 0;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    const char *name = body_open(&b, i);
    ask_for_all(&b);
    for (int k = 0; k < SAMPLES; ++k) {
      next_state(&b, i, k);
      mj_forward(b.o.mj, b.o.d);
      body_ok(&b, sinew_forward(b.data, &b.err));
      compare_all(&b, name, after_step);
      compare_contacts(&b, name);
      users += compare_sensors(&b, name);
      contacts += b.o.d->ncon;
      for (int t = 0; t < b.o.mj->ntendon; ++t) points += b.o.d->ten_wrapnum[t];
      body_follow(&b);
      mj_step(b.o.mj, b.o.d);
      body_ok(&b, sinew_step(b.data, 1, &b.err));
      compare_all(&b, name, b.o.mj->opt.integrator == mjINT_RK4 ? after_rk4 : after_step);
      compare_contacts(&b, name);
    }
    body_close(&b);
  }
  printf("%d contacts, %d path points\n", contacts, points);
  assert_true(contacts > 40 && users == SAMPLES && points > 40);
}

static void assert_same_state(SinewData *a, SinewData *b) {
  static const char *const names[] = {"qpos", "qvel", "act", "time", "qacc_warmstart", "qacc"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    int rows, cols;
    const double *x = sinew_data_array(a, names[i], &rows, &cols), *y = sinew_data_array(b, names[i], NULL, NULL);
    assert_memory_equal(x, y, sizeof *x * (size_t)(rows * cols));
  }
}

// A step has MuJoCo's sensors where it is asked to, those of the last of several, and goes where it goes without.
static void steps_have_sensors(void **state) {
  (void)state;
  int sensors = 0;
  for (int i = 0; i < BODY_MODELS; ++i) {
    BodyPair b;
    const char *name = body_open(&b, i);
    for (int k = 0; k < SAMPLES; ++k) {
      next_state(&b, i, k);
      mj_step(b.o.mj, b.o.d);
      body_follow(&b);
      SinewData *plain = sinew_data_create(b.model, &b.err);
      body_ok(&b, sinew_data_copy_state(plain, b.data, &b.err));
      sinew_data_set_sensors(b.data, true);
      body_ok(&b, sinew_step(b.data, 1, &b.err));
      mj_step(b.o.mj, b.o.d);
      compare_sensors(&b, name);
      body_ok(&b, sinew_step(b.data, 2, &b.err));
      body_ok(&b, sinew_step(plain, 2, &b.err));
      SinewData *before = sinew_data_create(b.model, &b.err);
      body_ok(&b, sinew_data_copy_state(before, plain, &b.err));
      body_ok(&b, sinew_step(plain, 1, &b.err));
      body_ok(&b, sinew_forward(before, &b.err));
      assert_same_state(b.data, plain);
      const int n = b.o.mj->nsensordata;
      if (n > 0)
        assert_memory_equal(sinew_data_array(b.data, "sensordata", NULL, NULL),
                            sinew_data_array(before, "sensordata", NULL, NULL), sizeof(double) * (size_t)n);
      sensors += n;
      sinew_data_free(before);
      sinew_data_free(plain);
    }
    body_close(&b);
  }
  assert_true(sensors > 100);
}

// Some heap of balls makes more contacts than a body has room for at first, under RK4 in stages that come after the
// sensors: the step is that of a body without them.
static void sensors_of_a_body_that_grows(void **state) {
  (void)state;
  enum { BALLS = 40 };
  char xml[8000] = "<mujoco><option timestep='.02' integrator='RK4'/><worldbody><geom type='plane' size='9 9 .1'/>";
  for (int i = 0; i < BALLS; ++i)
    snprintf(xml + strlen(xml), sizeof xml - strlen(xml),
             "<body pos='%d %d .12'><joint name='b%d' type='slide' axis='0 0 1'/><geom size='.1'/></body>", i % 8,
             i / 8, i);
  strcat(xml, "</worldbody><sensor><jointpos joint='b3'/></sensor></mujoco>");
  BodyPair b;
  body_open_string(&b, xml);
  SinewData *plain = sinew_data_create(b.model, &b.err);
  sinew_data_set_sensors(b.data, true);
  int grown = 0;
  for (int k = 0; k < 30; ++k) {
    body_ok(&b, sinew_step(b.data, 1, &b.err));
    body_ok(&b, sinew_step(plain, 1, &b.err));
    assert_same_state(b.data, plain);
    assert_int_equal(sinew_data_warnings(b.data), sinew_data_warnings(plain));
  }
  sinew_data_memory(b.data, &grown);
  assert_true(grown > 0);
  sinew_data_free(plain);
  body_close(&b);
}

// All entries NaN, or none.
static bool all_nan(const double *x, int n) {
  int nan = 0;
  for (int i = 0; i < n; ++i) nan += isnan(x[i]);
  assert_true(nan == 0 || nan == n);
  return nan == n;
}

// What a step leaves out is NaN until the next one, then stays; asking for it changes no bit of the motion.
static void left_out(void **state) {
  (void)state;
  BodyPair b;
  SinewModel *model;
  body_open(&b, 4);
  model = b.model;
  SinewData *plain = sinew_data_create(model, &b.err);
  const int wrist = sinew_model_find(model, SINEW_BODY, "wrist"), far = sinew_model_find(model, SINEW_SITE, "far");
  body_ok(&b, sinew_forward(b.data, &b.err));
  body_ok(&b, sinew_forward(plain, &b.err));
  const double *xipos = sinew_data_array(b.data, "xipos", NULL, NULL);
  const double *site_xmat = sinew_data_array(b.data, "site_xmat", NULL, NULL);
  const double *com = sinew_data_array(b.data, "subtree_com", NULL, NULL);
  const double *wrap = sinew_data_array(b.data, "wrap_xpos", NULL, NULL);
  const int *wrapnum = sinew_data_int_array(b.data, "ten_wrapnum", NULL, NULL);
  assert_true(all_nan(xipos + 3 * wrist, 3) && all_nan(site_xmat + 9 * far, 9) && all_nan(com, 3) && all_nan(wrap, 6));
  assert_true(!all_nan(com + 3 * wrist, 3) && wrapnum[0] == 0);
  for (int step = 0; step < 50; ++step) {
    body_ok(&b, sinew_step(b.data, 1, &b.err));
    body_ok(&b, sinew_step(plain, 1, &b.err));
    assert_true(!all_nan(xipos + 3 * wrist, 3) && !all_nan(site_xmat + 9 * far, 9) && !all_nan(com, 3));
    assert_true(!all_nan(wrap, 6) && wrapnum[0] == 3);
  }
  assert_true(sinew_data_ncon(plain) > 0);
  const SinewState s = sinew_data_state(b.data), t = sinew_data_state(plain);
  assert_memory_equal(s.qpos, t.qpos, sizeof(double) * (size_t)b.o.mj->nq);
  assert_memory_equal(s.qvel, t.qvel, sizeof(double) * (size_t)b.o.mj->nv);
  assert_ptr_equal(xipos, sinew_data_array(b.data, "xipos", NULL, NULL));
  sinew_data_free(plain);
  body_close(&b);
}

// Names that are not there, the other type, nothing: NULL, and a shape of zeros.
static void no_such_array(void **state) {
  (void)state;
  BodyPair b;
  SinewField f;
  int rows = 7, cols = 7;
  body_open(&b, 4);
  assert_null(sinew_data_array(b.data, "qfrc_applied", &rows, &cols));
  assert_true(rows == 0 && cols == 0);
  assert_null(sinew_data_array(b.data, "hessian", NULL, NULL));
  assert_null(sinew_data_array(b.data, "ncon", NULL, NULL));
  assert_null(sinew_data_int_array(b.data, "qpos", NULL, NULL));
  assert_null(sinew_data_array(b.data, NULL, NULL, NULL));
  assert_null(sinew_data_array(NULL, "qpos", NULL, NULL));
  assert_false(sinew_data_field(b.data, -1, &f));
  assert_false(sinew_data_field(b.data, 0, NULL));
  assert_false(sinew_data_field(NULL, 0, &f));
  int inputs = 0;
  for (int i = 0; sinew_data_field(b.data, i, &f); ++i) inputs += f.input;
  assert_int_equal(inputs, 11);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equals_mujoco), cmocka_unit_test(steps_have_sensors),
                                     cmocka_unit_test(sensors_of_a_body_that_grows), cmocka_unit_test(left_out),
                                     cmocka_unit_test(no_such_array)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Directions in which parameters move a model, as sparse lists, and their products with a bar.
#include "physics/model/model_bar.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "physics/model/model_arrays.h"

typedef enum BarKind { BAR_VALUE, BAR_TURN, BAR_PAIR } BarKind;

// A field of a bar in one model.
typedef struct BarField {
  const char *name;
  BarKind kind;
  size_t pointer;         // where SnModelBar has it
  const sn_real *source;  // of the model
  const int *row;         // row of the source for each row of a PAIR
  int rows, cols;
} BarField;

enum {
  BAR_FIELDS = 0
#define SN_BAR_FIELD(kind, name, source, rows, cols) +1
#define SN_BAR_NONE(name, source, count)
#include "physics/model/model_bar_fields.inc"
#undef SN_BAR_FIELD
#undef SN_BAR_NONE
};

// One number by which a parameter moves a field.
typedef struct BarEntry {
  int field, index;
  double rate;
} BarEntry;

struct SnModelTangents {
  BarField field[BAR_FIELDS];  // their shapes
  int scratch[6];              // rows of the scratch of a bar
  int n;
  BarEntry *entry;      // those of one parameter after the other
  int *adr;             // (n + 1) first entry of each
  int count, capacity;  // of entries
  bool used[BAR_FIELDS];
  bool *geom_sized, *muscle_moved;
};

#if !defined(SN_PACK)
static void list_fields(const SnModel *m, BarField *field) {
  const BarField all[] = {
#define SN_BAR_FIELD(kind, name, source, rows, cols) \
  {#name, BAR_##kind, offsetof(SnModelBar, name), (source), m->cpair_param, (rows), (cols)},
#define SN_BAR_NONE(name, source, count)
#include "physics/model/model_bar_fields.inc"
#undef SN_BAR_FIELD
#undef SN_BAR_NONE
  };
  memcpy(field, all, sizeof all);
}

static bool add_entry(SnModelTangents *t, int field, int index, double rate) {
  if (t->count == t->capacity) {
    const int capacity = 2 * t->capacity + 64;
    BarEntry *entry = realloc(t->entry, sizeof *entry * (size_t)capacity);
    if (!entry) return false;
    t->entry = entry;
    t->capacity = capacity;
  }
  t->entry[t->count++] = (BarEntry){field, index, rate};
  t->used[field] = true;
  return true;
}

// Difference of two numbers, 0 where it is rounding.
static double difference(double plus, double minus, double scale) {
  const double d = plus - minus, most = fmax(fmax(fabs(plus), fabs(minus)), scale);
  return fabs(d) <= 16 * (double)SN_EPS * most ? 0 : d;
}

// Number i of a field of values.
static double number(const BarField *f, int i) {
  return (double)f->source[f->kind == BAR_PAIR ? f->row[i / f->cols] * f->cols + i % f->cols : i];
}

static bool add_values(SnModelTangents *t, int k, const BarField *plus, const BarField *minus, double per) {
  for (int i = 0; i < plus->rows * plus->cols; ++i) {
    const double d = difference(number(plus, i), number(minus, i), 0);
    if (d != 0 && !add_entry(t, k, i, d * per)) return false;
  }
  return true;
}

// Small turns w: (R+ - R-) R' is their skew matrix, R the matrix in between.
static bool add_turns(SnModelTangents *t, int k, const BarField *mid, const BarField *plus, const BarField *minus,
                      double per) {
  static const int up[3][2] = {{2, 1}, {0, 2}, {1, 0}};
  for (int i = 0; i < mid->rows; ++i) {
    const sn_real *R = mid->source + 9 * i, *P = plus->source + 9 * i, *M = minus->source + 9 * i;
    double skew[3][3] = {{0}};
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c)
        for (int e = 0; e < 3; ++e)
          skew[r][c] += difference((double)P[3 * r + e], (double)M[3 * r + e], 1) * (double)R[3 * c + e];
    for (int e = 0; e < 3; ++e) {
      const double w = 0.5 * (skew[up[e][0]][up[e][1]] - skew[up[e][1]][up[e][0]]);
      if (w != 0 && !add_entry(t, k, 3 * i + e, w * per)) return false;
    }
  }
  return true;
}

// Integers that say how a model moves must be those of m, and so must numbers without a derivative.
static SnCode check_fixed(const SnModel *m, const SnModel *moved, int p, SnError *err) {
  SnModelArray x, y;
  if (m->opt.enableflags & SN_ENBL_SPECULATIVE)
    return sn_fail(err, SN_ERR_UNSUPPORTED,
                   "parameter %d: a model with flag speculative has no derivatives by parameters; switch it off", p);
  for (int i = 0; sn_model_array(m, i, &x) && sn_model_array(moved, i, &y); ++i)
    for (int k = 0; x.integer && k < x.rows * x.cols; ++k)
      if (((const int *)x.data)[k] != ((const int *)y.data)[k])
        return sn_fail(err, SN_ERR_UNSUPPORTED, "parameter %d: it changes %s[%d] from %d to %d, which is no number", p,
                       x.name, k, ((const int *)x.data)[k], ((const int *)y.data)[k]);
  if (m->ncpair != moved->ncpair || memcmp(m->cpair_geom, moved->cpair_geom, sizeof(int) * 2 * (size_t)m->ncpair) != 0)
    return sn_fail(err, SN_ERR_UNSUPPORTED, "parameter %d: it changes which geoms can touch", p);
  if (m->unlisted && (m->nconparam != moved->nconparam ||
                      memcmp(m->conparam, moved->conparam, sizeof(sn_real) * SN_NCONPARAM * (size_t)m->nconparam) != 0))
    return sn_fail(
        err, SN_ERR_UNSUPPORTED,
        "parameter %d: it changes parameters of contacts, by which there is no derivative in a model of more "
        "than 200000 pairs of geoms",
        p);
  for (int q = 0; q < m->neq; ++q)
    if ((m->eq_type[q] == SN_EQ_CONNECT || m->eq_type[q] == SN_EQ_WELD) &&
        memcmp(m->eq_data + SN_NEQDATA * q, moved->eq_data + SN_NEQDATA * q, sizeof(sn_real) * SN_NEQDATA) != 0)
      return sn_fail(err, SN_ERR_UNSUPPORTED,
                     "parameter %d: it moves the anchor or the pose of equality %d, by which there is no derivative", p,
                     q);
  return SN_OK;
}

// Delays must be those of m where buffers hold their samples: there the motion jumps or stays as they change.
static SnCode check_delays(const SnModel *m, const SnModel *moved, int p, SnError *err) {
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_delay[i] != moved->actuator_delay[i] &&
        (m->actuator_history[2 * i + 1] == SN_INTERP_ZOH || m->actuator_delay[i] == 0))
      return sn_fail(
          err, SN_ERR_UNSUPPORTED,
          "parameter %d: it moves the delay of actuator '%s', by which there is a derivative only above 0 and "
          "with interp 'linear' or 'cubic'",
          p, sn_model_name(m, SN_NAME_ACTUATOR, i));
  for (int i = 0; i < m->nsensor; ++i)
    if (m->sensor_delay[i] != moved->sensor_delay[i] &&
        (m->sensor_history[2 * i + 1] == SN_INTERP_ZOH || m->sensor_delay[i] == 0))
      return sn_fail(err, SN_ERR_UNSUPPORTED,
                     "parameter %d: it moves the delay of sensor '%s', by which there is a derivative only above 0 and "
                     "with interp 'linear' or 'cubic'",
                     p, sn_model_name(m, SN_NAME_SENSOR, i));
  return SN_OK;
}

// Rests of springs that yield must be those of m: a body's state has its own.
static SnCode check_rests(const SnModel *m, const SnModel *moved, int p, SnError *err) {
  for (int j = 0; j < m->njnt; ++j)
    for (int k = 0; m->jnt_plasticadr[j] >= 0 && k < (m->jnt_type[j] == SN_JNT_BALL ? 4 : 1); ++k)
      if (m->qpos_spring[m->jnt_qposadr[j] + k] != moved->qpos_spring[m->jnt_qposadr[j] + k])
        return sn_fail(
            err, SN_ERR_UNSUPPORTED,
            "parameter %d: it moves the rest of joint '%s', whose spring yields: the rest is part of the state", p,
            sn_model_name(m, SN_NAME_JNT, j));
  for (int t = 0; t < m->ntendon; ++t)
    for (int k = 0; m->tendon_plasticadr[t] >= 0 && k < 2; ++k)
      if (m->tendon_lengthspring[2 * t + k] != moved->tendon_lengthspring[2 * t + k])
        return sn_fail(
            err, SN_ERR_UNSUPPORTED,
            "parameter %d: it moves the rest of tendon '%s', whose spring yields: the rest is part of the state", p,
            sn_model_name(m, SN_NAME_TENDON, t));
  return SN_OK;
}

typedef struct BarNone {
  const char *name;
  const sn_real *source;
  int count;
} BarNone;

enum { BAR_NONES = 15 };

static void list_nones(const SnModel *m, BarNone *none) {
  const BarNone all[BAR_NONES] = {
#define SN_BAR_FIELD(kind, name, source, rows, cols)
#define SN_BAR_NONE(name, source, count) {#name, (source), (count)},
#include "physics/model/model_bar_fields.inc"
#undef SN_BAR_FIELD
#undef SN_BAR_NONE
  };
  memcpy(none, all, sizeof all);
}

static SnCode check_nones(const SnModel *m, const SnModel *moved, int p, SnError *err) {
  BarNone x[BAR_NONES], y[BAR_NONES];
  list_nones(m, x);
  list_nones(moved, y);
  for (int i = 0; i < BAR_NONES; ++i)
    for (int k = 0; k < x[i].count; ++k)
      if (x[i].source[k] != y[i].source[k])
        return sn_fail(err, SN_ERR_UNSUPPORTED, "parameter %d: it moves %s[%d], by which there is no derivative", p,
                       x[i].name, k);
  return SN_OK;
}

// What a link's inertia gives to the diagonal of M at a dof whose body is simple: its centre of mass does not move
// about the joints.
static double simple_inertia(const SnModel *m, int dof) {
  const int j = m->dof_jntid[dof], type = m->jnt_type[j], link = m->dof_bodyid[dof], turn = dof - m->jnt_dofadr[j];
  const bool slides = type == SN_JNT_SLIDE || (type == SN_JNT_FREE && turn < 3);
  if (slides) return (double)m->link_mass[link];
  const sn_real *I = m->link_inertia + 6 * link, *x = m->jnt_axis + 3 * j;
  if (type != SN_JNT_HINGE) return (double)I[turn % 3];
  return (double)(x[0] * x[0] * I[0] + x[1] * x[1] * I[1] + x[2] * x[2] * I[2] +
                  2 * (x[0] * x[1] * I[3] + x[0] * x[2] * I[4] + x[1] * x[2] * I[5]));
}

// The adjoint takes the inertia of simple bodies from their links and armatures, a step from dof_M0. Where a parameter
// does not move both alike, as dof_M0 stays, what is between counts as armature.
static bool add_simple(SnModelTangents *t, const SnModel *plus, const SnModel *minus, double per) {
  int field = 0;
  while (t->field[field].pointer != offsetof(SnModelBar, dof_arm)) ++field;
  for (int i = 0; i < plus->nv; ++i) {
    if (!plus->dof_simplenum[i]) continue;
    const double up = simple_inertia(plus, i) + (double)plus->dof_arm[i];
    const double down = simple_inertia(minus, i) + (double)minus->dof_arm[i];
    const double d = (double)plus->dof_M0[i] - (double)minus->dof_M0[i] - (up - down);
    const double noise = 64 * (double)SN_EPS * fmax(fabs(up), fabs((double)plus->dof_M0[i]));
    if (fabs(d) > noise && !add_entry(t, field, i, d * per)) return false;
  }
  return true;
}

static SnCode add_parameter(SnModelTangents *t, const SnModel *m, const SnModel *plus, const SnModel *minus,
                            double step, int p, SnError *err) {
  BarField up[BAR_FIELDS], down[BAR_FIELDS];
  if (!(step > 0) || !isfinite(step))
    return sn_fail(err, SN_ERR_ARGUMENT, "step[%d]: %g, allowed is a number above 0", p, step);
  const SnModel *const moved[2] = {plus, minus};
  for (int i = 0; i < 2; ++i) {
    SnCode code = check_fixed(m, moved[i], p, err);
    if (code == SN_OK) code = check_delays(m, moved[i], p, err);
    if (code == SN_OK) code = check_rests(m, moved[i], p, err);
    if (code == SN_OK) code = check_nones(m, moved[i], p, err);
    if (code != SN_OK) return code;
  }
  list_fields(plus, up);
  list_fields(minus, down);
  const double per = 1 / (2 * step);
  for (int k = 0; k < BAR_FIELDS; ++k) {
    const bool ok = t->field[k].kind == BAR_TURN ? add_turns(t, k, t->field + k, up + k, down + k, per)
                                                 : add_values(t, k, up + k, down + k, per);
    if (!ok) return sn_fail(err, SN_ERR_MEMORY, "parameters of a model: out of memory");
  }
  if (!add_simple(t, plus, minus, per)) return sn_fail(err, SN_ERR_MEMORY, "parameters of a model: out of memory");
  return SN_OK;
}

// Notes what the entries move that is costly to differentiate.
static void mark_costly(SnModelTangents *t, const SnModel *m) {
  for (int i = 0; i < t->count; ++i) {
    const BarField *f = t->field + t->entry[i].field;
    const int row = t->entry[i].index / f->cols;
    if (f->source == m->geom_size) t->geom_sized[row] = true;
    if (f->source == m->muscle_gain || f->source == m->muscle_bias) t->muscle_moved[row] = true;
  }
}

SnModelTangents *sn_model_tangents_create(const SnModel *m, const SnModel *const *plus, const SnModel *const *minus,
                                          const double *step, int n, SnError *err) {
  SnModelTangents *t = calloc(1, sizeof *t);
  if (t) {
    t->adr = calloc((size_t)n + 1, sizeof *t->adr);
    t->geom_sized = calloc((size_t)m->ngeom + 1, sizeof *t->geom_sized);
    t->muscle_moved = calloc((size_t)m->nactuator + 1, sizeof *t->muscle_moved);
  }
  if (!t || !t->adr || !t->geom_sized || !t->muscle_moved) {
    sn_fail(err, SN_ERR_MEMORY, "parameters of a model: out of memory");
    sn_model_tangents_free(t);
    return NULL;
  }
  list_fields(m, t->field);
  memcpy(t->scratch, (const int[6]){m->ngeom, m->nsite, m->nv, m->nv, m->nv, m->nbody}, sizeof t->scratch);
  t->n = n;
  for (int p = 0; p < n; ++p) {
    if (add_parameter(t, m, plus[p], minus[p], step[p], p, err) != SN_OK) {
      sn_model_tangents_free(t);
      return NULL;
    }
    t->adr[p + 1] = t->count;
  }
  mark_costly(t, m);
  return t;
}

void sn_model_tangents_free(SnModelTangents *t) {
  if (!t) return;
  free(t->entry);
  free(t->adr);
  free(t->geom_sized);
  free(t->muscle_moved);
  free(t);
}

int sn_model_tangents_count(const SnModelTangents *t) { return t->n; }

#endif

// Points the fields that are used into memory at base; NULL only counts. Returns the numbers.
static size_t place(const SnModelTangents *t, SnModelBar *bar, sn_bar *base) {
  size_t count = 0;
  for (int k = 0; k < BAR_FIELDS; ++k) {
    sn_bar *at = base && t->used[k] ? base + count : NULL;
    if (base) memcpy((char *)bar + t->field[k].pointer, &at, sizeof at);
    if (t->used[k]) count += (size_t)t->field[k].rows * (size_t)t->field[k].cols;
  }
  sn_bar **const scratch[6] = {&bar->geom_wrench, &bar->site_wrench, &bar->dof_wrench,
                               &bar->dof_pull,    &bar->dof_own,     &bar->body_wrench};
  for (int k = 0; k < 6; ++k) {
    if (base) *scratch[k] = base + count;
    count += 6 * (size_t)t->scratch[k];
  }
  return count;
}

size_t sn_model_bar_size(const SnModelTangents *t) {
  SnModelBar bar = {0};
  return (sizeof(sn_bar) * place(t, &bar, NULL) + 64) / 64 * 64;
}

void sn_model_bar_init(const SnModelTangents *t, SnModelBar *bar, void *memory) {
  memset(memory, 0, sn_model_bar_size(t));
  place(t, bar, memory);
  bar->geom_sized = t->geom_sized;
  bar->muscle_moved = t->muscle_moved;
}

void sn_model_bar_apply(const SnModelTangents *t, const SnModelBar *bar, int c, sn_real *out) {
  for (int p = 0; p < t->n; ++p) {
    double sum = 0;
    for (int i = t->adr[p]; i < t->adr[p + 1]; ++i) {
      const BarEntry *e = t->entry + i;
      const sn_bar *at;
      memcpy(&at, (const char *)bar + t->field[e->field].pointer, sizeof at);
      sum += e->rate * (double)sn_column(at[e->index], c);
    }
    out[p] = (sn_real)sum;
  }
}

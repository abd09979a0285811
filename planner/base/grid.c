#include "planner/base/grid.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool sn_grid_equal(const SnGrid *a, const SnGrid *b) {
  if (a->parts != b->parts) return false;
  for (int i = 0; i < a->parts; ++i)
    if (a->count[i] != b->count[i] || a->length[i] != b->length[i]) return false;
  return true;
}

// ---- text ----

static const char *skip_blanks(const char *c) {
  while (isspace((unsigned char)*c)) ++c;
  return c;
}

// Reads a whole number from 1 to 4096 at *c and goes behind it; 0: there is none.
static int read_number(const char **c) {
  int n = 0;
  const char *at = *c;
  while (isdigit((unsigned char)*at) && n <= 4096) n = 10 * n + (*at++ - '0');
  if (at == *c || n > 4096 || isdigit((unsigned char)*at)) return 0;
  *c = at;
  return n;
}

// Reads one part at *c and goes behind it.
static bool read_part(const char **c, int *count, int *length) {
  *count = read_number(c);
  *c = skip_blanks(*c);
  if (*count == 0 || **c != 'x') return false;
  *c = skip_blanks(*c + 1);
  *length = read_number(c);
  *c = skip_blanks(*c);
  return *length > 0;
}

SnCode sn_grid_parse(const char *text, int horizon, SnGrid *grid, SnError *err) {
  SnGrid g = {0};
  long rows = 0;
  bool longer = false;
  const char *c = skip_blanks(text);
  while (*c) {
    const int i = g.parts;
    if (i == SN_GRID_PARTS)
      return sn_fail(err, SN_ERR_ARGUMENT, "grid: '%.96s' has more than %d parts", text, SN_GRID_PARTS);
    if (!read_part(&c, &g.count[i], &g.length[i]) || (*c && *c != ',') || (*c == ',' && !*skip_blanks(c + 1)))
      return sn_fail(err, SN_ERR_ARGUMENT,
                     "grid: '%.96s' is no grid, allowed are parts like 64x1, 32x2: steps, and the base steps that each "
                     "of them lasts, both 1 to 4096",
                     text);
    rows += (long)g.count[i] * g.length[i];
    longer = longer || g.length[i] > 1;
    ++g.parts;
    if (*c == ',') c = skip_blanks(c + 1);
  }
  if (g.parts > 0 && rows != horizon)
    return sn_fail(err, SN_ERR_ARGUMENT, "grid: '%.96s' lasts %ld base steps, allowed is the horizon, %d", text, rows,
                   horizon);
  *grid = longer ? g : (SnGrid){0};
  return SN_OK;
}

const char *sn_grid_write(const SnGrid *g, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < g->parts && used < size; ++i) {
    const int n = snprintf(text + used, size - used, "%s%dx%d", i > 0 ? "," : "", g->count[i], g->length[i]);
    used += n > 0 ? (size_t)n : 0;
  }
  return text;
}

// ---- the model ----

// What MuJoCo takes for the time constant where the two numbers of a solref have different signs [s].
static const double mixed_default = 0.02;

// The smallest time constant so far, and what has it.
typedef struct Stiffest {
  double time;
  char text[256];
} Stiffest;

// The time constant of a spring; infinity where stiffness and damping are given. Numbers of different signs count as
// `mixed` (constraint/impedance.c).
static double time_constant(const sn_real *solref, double mixed) {
  if ((solref[0] > 0) != (solref[1] > 0)) return mixed;
  return solref[0] > 0 ? (double)solref[0] : INFINITY;
}

static void look_at_contacts(const SnModel *m, Stiffest *s) {
  enum { SOLREF = 6, FRICTION = 8 };  // places in a set of contact parameters
  for (int i = 0; i < m->ncpair; ++i) {
    const sn_real *p = m->conparam + SN_NCONPARAM * m->cpair_param[i];
    const double time = fmin(time_constant(p + SOLREF, mixed_default), time_constant(p + FRICTION, INFINITY));
    if (!(time < s->time)) continue;
    s->time = time;
    snprintf(s->text, sizeof s->text, "contacts of geoms '%s' and '%s'",
             sn_model_name(m, SN_NAME_GEOM, m->cpair_geom[2 * i]),
             sn_model_name(m, SN_NAME_GEOM, m->cpair_geom[2 * i + 1]));
  }
  for (int i = 0; i < m->nruleparam; ++i) {  // of pairs that are not listed
    const sn_real *p = m->conparam + SN_NCONPARAM * m->rule_param[i];
    const double time = fmin(time_constant(p + SOLREF, mixed_default), time_constant(p + FRICTION, INFINITY));
    if (!(time < s->time)) continue;
    s->time = time;
    snprintf(s->text, sizeof s->text, "contacts of geoms");
  }
}

// Where the parameters of a source of rows stand, and what to call it.
static const sn_real *source_solref(const SnModel *m, int i, char *text, size_t size) {
  const int id = m->src_id[i];
  switch (m->src_type[i]) {
    case SN_CNSTR_EQUALITY:
      snprintf(text, size, "equality '%s'", sn_model_name(m, SN_NAME_EQ, id));
      return m->eq_solref + SN_NREF * id;
    case SN_CNSTR_FRICTION_DOF:
      snprintf(text, size, "friction of joint '%s'", sn_model_name(m, SN_NAME_JNT, m->dof_jntid[id]));
      return m->dof_solref + SN_NREF * id;
    case SN_CNSTR_FRICTION_TENDON:
      snprintf(text, size, "friction of tendon '%s'", sn_model_name(m, SN_NAME_TENDON, id));
      return m->tendon_solref_fri + SN_NREF * id;
    case SN_CNSTR_LIMIT_JOINT:
      snprintf(text, size, "limit of joint '%s'", sn_model_name(m, SN_NAME_JNT, id));
      return m->jnt_solref + SN_NREF * id;
    default:
      snprintf(text, size, "limit of tendon '%s'", sn_model_name(m, SN_NAME_TENDON, id));
      return m->tendon_solref_lim + SN_NREF * id;
  }
}

static void look_at_sources(const SnModel *m, Stiffest *s) {
  char text[sizeof s->text];
  for (int i = 0; i < m->nsrc; ++i) {
    const double time = time_constant(source_solref(m, i, text, sizeof text), mixed_default);
    if (!(time < s->time)) continue;
    s->time = time;
    memcpy(s->text, text, sizeof text);
  }
}

SnCode sn_grid_check(const SnGrid *g, const SnModel *m, SnError *err) {
  const double h = (double)m->opt.timestep, rounding = 16 * (double)SN_EPS;
  Stiffest s = {.time = INFINITY};
  int longest = 1;
  char text[SN_GRID_TEXT];
  for (int i = 0; i < g->parts; ++i) longest = g->length[i] > longest ? g->length[i] : longest;
  if (longest == 1) return SN_OK;
  look_at_contacts(m, &s);
  look_at_sources(m, &s);
  if (longest * h > 1)
    return sn_fail(err, SN_ERR_ARGUMENT, "grid: '%s': a step of %d x %g s, allowed is at most 1 s",
                   sn_grid_write(g, text, sizeof text), longest, h);
  if (sn_has_metric(m) || longest * h <= 0.5 * s.time * (1 + rounding)) return SN_OK;
  return sn_fail(err, SN_ERR_ARGUMENT,
                 "grid: '%s': a step of %d x %g s = %g s, allowed is at most half of the smallest time constant "
                 "(solref) of the model, %g s of %s",
                 sn_grid_write(g, text, sizeof text), longest, h, longest * h, s.time, s.text);
}

// ---- rows ----

void sn_grid_gather(const SnGrid *g, int horizon, int n, const sn_real *base, sn_real *rows) {
  const int steps = sn_grid_steps(g, horizon);
  for (int t = 0; t < steps; ++t) {
    const int k = sn_grid_length(g, t);
    const sn_real *from = base + (size_t)sn_grid_begin(g, t) * (size_t)n;
    sn_real *to = rows + (size_t)t * (size_t)n;
    for (int i = 0; i < n; ++i) {
      const sn_real first = from[i];
      sn_real sum = 0;  // of differences to the first: none where all are the same
      for (int j = 1; j < k; ++j) sum += from[j * n + i] - first;
      to[i] = k > 1 ? first + sum / (sn_real)k : first;
    }
  }
}

void sn_grid_spread(const SnGrid *g, int horizon, int n, const sn_real *rows, sn_real *base) {
  for (int row = horizon - 1; row >= 0; --row)
    memmove(base + (size_t)row * (size_t)n, rows + (size_t)sn_grid_step(g, row) * (size_t)n, sizeof *base * (size_t)n);
}

void sn_grid_pick(const SnGrid *g, int horizon, int n, const sn_real *base, sn_real *rows) {
  const int steps = sn_grid_steps(g, horizon);
  for (int t = 0; t <= steps; ++t)
    memmove(rows + (size_t)t * (size_t)n, base + (size_t)sn_grid_begin(g, t) * (size_t)n, sizeof *rows * (size_t)n);
}

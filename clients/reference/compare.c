#include "clients/reference/compare.h"

#include <stdio.h>
#include <stdlib.h>

#include "clients/reference/compare_private.h"
#include "physics/actuator/actuator.h"

const char *sn_compared_name(SnCompared field) {
  static const char *const name[] = {
#define SN_COMPARED_NAME(name, stage, tolerance) #name,
      SN_COMPARED_FIELDS(SN_COMPARED_NAME)
#undef SN_COMPARED_NAME
  };
  return name[field];
}

SnStage sn_compared_stage(SnCompared field) {
  static const SnStage stage_of[] = {
#define SN_COMPARED_STAGE(name, stage, tolerance) SN_STAGE_##stage,
      SN_COMPARED_FIELDS(SN_COMPARED_STAGE)
#undef SN_COMPARED_STAGE
  };
  return stage_of[field];
}

double sn_compare_tolerance(SnCompared field) {
  static const double tolerance[] = {
#define SN_COMPARED_TOLERANCE(name, stage, tolerance) tolerance,
      SN_COMPARED_FIELDS(SN_COMPARED_TOLERANCE)
#undef SN_COMPARED_TOLERANCE
  };
  return tolerance[field];
}

SnContactClass sn_contact_class(int a, int b) {
  if (a > b) {
    const int t = a;
    a = b;
    b = t;
  }
  // formulas: everything with a plane but ellipsoids; spheres with all but ellipsoids and meshes; capsules and boxes
  if (a == SN_GEOM_PLANE) return b == SN_GEOM_ELLIPSOID ? SN_CONTACT_SMOOTH : SN_CONTACT_CLOSED;
  if (b == SN_GEOM_SPHERE || b == SN_GEOM_CAPSULE) return SN_CONTACT_CLOSED;
  if (a == SN_GEOM_SPHERE && (b == SN_GEOM_CYLINDER || b == SN_GEOM_BOX)) return SN_CONTACT_CLOSED;
  if (b == SN_GEOM_BOX && (a == SN_GEOM_CAPSULE || a == SN_GEOM_BOX)) return SN_CONTACT_CLOSED;
  if (b == SN_GEOM_ELLIPSOID) return SN_CONTACT_SMOOTH;
  return SN_CONTACT_EDGED;
}

void sn_compare_init(SnCompare *c) {
  memset(c, 0, sizeof *c);
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    c->field[i] =
        (SnFieldError){.rel = -1, .tol = sn_compare_tolerance((SnCompared)i), .step = -1, .element = -1, .noise = -1};
}

void sn_compare_free(SnCompare *c) {
  free(c->ref);
  free(c->ours);
  memset(c, 0, sizeof *c);
}

bool sn_compare_agrees(const SnCompare *c) {
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    if (c->field[i].differs) return false;
  return true;
}

// Keeps the larger of two errors, one that differs before one that does not.
static void keep_worse(SnFieldError *f, SnFieldError e) {
  if (f->differs && (!e.differs || isnan(f->rel) || e.rel <= f->rel)) return;
  if (!f->differs && !e.differs && e.rel <= f->rel) return;
  *f = e;
}

void sn_compare_record(SnCompare *c, SnCompared field, double rel, double tol, int step, int element) {
  keep_worse(
      &c->field[field],
      (SnFieldError){.rel = rel, .tol = tol, .step = step, .element = element, .noise = -1, .differs = !(rel <= tol)});
}

// False also for a noise that was not measured (-1), is NaN or without bound: MuJoCo's own state diverged then.
static bool within_noise(double rel, double noise) { return isfinite(noise) && rel <= SN_NOISE_FACTOR * noise; }

bool sn_compare_explained(const SnCompare *step, const SnCompare *noise) {
  for (int i = 0; i < SN_CMP_COUNT; ++i)
    if (step->field[i].differs && !within_noise(step->field[i].rel, noise->field[i].rel)) return false;
  return true;
}

int sn_compare_allow_noise(SnCompare *step, const SnCompare *noise) {
  int n = 0;
  for (int i = 0; i < SN_CMP_COUNT; ++i) {
    SnFieldError *f = &step->field[i];
    if (!f->differs) continue;
    f->noise = noise->field[i].rel;
    if (!within_noise(f->rel, f->noise)) continue;
    f->tol = SN_NOISE_FACTOR * f->noise;
    f->differs = false;
    ++n;
  }
  return n;
}

void sn_compare_add(SnCompare *run, const SnCompare *step) {
  for (int i = 0; i < SN_CMP_COUNT; ++i) keep_worse(&run->field[i], step->field[i]);
  run->steps += step->steps;
  run->loose_steps += step->loose_steps;
  run->stiff_rows += step->stiff_rows;
  run->singular_steps += step->singular_steps;
  if (!run->note[0] && !sn_compare_agrees(step)) memcpy(run->note, step->note, sizeof run->note);
}

void sn_compare_numbers(SnCompare *c, SnCompared field, const sn_real *ours, const double *ref, int n, double tol,
                        int step) {
  int element = 0;
  const double rel = sn_oracle_error_at(ours, ref, n, &element);
  sn_compare_record(c, field, rel, tol, step, element);
}

bool sn_compare_reserve(SnCompare *c, size_t n) {
  if (n > c->capacity) {
    double *ref = realloc(c->ref, n * sizeof *ref);
    if (ref) c->ref = ref;
    sn_real *ours = realloc(c->ours, n * sizeof *ours);
    if (ours) c->ours = ours;
    if (!ref || !ours) return false;
    c->capacity = n;
  }
  if (n) memset(c->ref, 0, n * sizeof *c->ref);
  if (n) memset(c->ours, 0, n * sizeof *c->ours);
  return true;
}

// The class of MuJoCo's contact i. One before impact comes of a search, and of faces and edges, whatever the geoms are:
// its distance is no distance, so ours, where there is one, tells.
static SnContactClass class_of(const SnOracle *o, int i) {
  const int *g = o->d->contact[i].geom;
  if (i < o->w.ncon[0] && o->w.contact[i].feature >= SN_FEATURE_IMPACT) return SN_CONTACT_EDGED;
  return sn_contact_class(o->m->geom_type[g[0]], o->m->geom_type[g[1]]);
}

static bool contact_edged(const SnOracle *o, int i) { return class_of(o, i) == SN_CONTACT_EDGED; }

// Whether the inertia of some dof is all but that of others: joints along one line. What is left of it is rounding.
static bool is_singular(const SnOracle *o) {
  for (int i = 0; i < o->m->nv; ++i) {
    const int last = o->mj->M_rowadr[i] + o->mj->M_rownnz[i] - 1;
    if (!(fabs(o->d->qLD[last]) >= SN_SINGULAR * fabs(o->d->M[last]))) return true;
  }
  return false;
}

void sn_compare_begin(SnCompare *c, const SnOracle *o) {
  c->loose = false;
  c->singular_steps += is_singular(o);
  for (int i = 0; i < o->d->ncon; ++i) {
    const int *g = o->d->contact[i].geom;
    c->loose = c->loose || sn_contact_class(o->m->geom_type[g[0]], o->m->geom_type[g[1]]) == SN_CONTACT_EDGED;
  }
  ++c->steps;
  c->loose_steps += c->loose;
}

// Paths: which points every tendon has, then where they are.
static void compare_tendon_paths(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  int wrong = 0, points = 0;
  for (int t = 0; t < m->ntendon; ++t) {
    bool same = o->w.ten_wrapnum[t] == o->d->ten_wrapnum[t] && o->w.ten_wrapadr[t] == o->d->ten_wrapadr[t];
    const int adr = o->d->ten_wrapadr[t], num = o->d->ten_wrapnum[t];
    for (int k = adr; same && k < adr + num; ++k) same = o->w.wrap_obj[k] == o->d->wrap_obj[k];
    if (!same && !wrong++ && !c->note[0])
      snprintf(c->note, sizeof c->note, "step %d: tendon '%s' has %d path points in MuJoCo, %d in ours, or others",
               step, sn_model_name(m, SN_NAME_TENDON, t), num, o->w.ten_wrapnum[t]);
    points = sn_maxi(points, adr + num);
  }
  sn_compare_record(c, SN_CMP_ten_path, wrong, 0, step, 0);
  if (!wrong) sn_compare_numbers(c, SN_CMP_wrap_xpos, o->w.wrap_xpos, o->d->wrap_xpos, 3 * points, 1e-9, step);
}

// ten_length, but for tendons that sleep: MuJoCo leaves that of the begin of the step in which they fell asleep.
static void compare_tendon_lengths(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  if (!sn_compare_reserve(c, (size_t)m->ntendon)) return;
  for (int t = 0; t < m->ntendon; ++t) {
    if (sn_any_asleep(m, &o->w) && sn_tendon_asleep(m, &o->w, t)) continue;
    c->ours[t] = o->w.ten_length[t];
    c->ref[t] = o->d->ten_length[t];
  }
  sn_compare_numbers(c, SN_CMP_ten_length, c->ours, c->ref, m->ntendon, sn_compare_tolerance(SN_CMP_ten_length), step);
}

// ten_J, but for tendons that sleep, whose rows MuJoCo clears.
static void compare_tendon_rows(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  if (!sn_compare_reserve(c, (size_t)m->nJten)) return;
  for (int t = 0; t < m->ntendon; ++t) {
    if (sn_any_asleep(m, &o->w) && sn_tendon_asleep(m, &o->w, t)) continue;
    for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k) {
      c->ours[k] = o->w.ten_J[k];
      c->ref[k] = o->d->ten_J[k];
    }
  }
  sn_compare_numbers(c, SN_CMP_ten_J, c->ours, c->ref, m->nJten, sn_compare_tolerance(SN_CMP_ten_J), step);
}

// actuator_moment: both as dense matrices, so that the patterns need not be equal.
static void compare_moment(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  const size_t nv = (size_t)m->nv;
  if (!sn_compare_reserve(c, (size_t)m->nout * nv)) return;
  for (int i = 0; i < m->nactuator; ++i) {
    if (sn_any_asleep(m, &o->w) && sn_actuator_idle(m, &o->w, i)) continue;  // MuJoCo clears the rows of sleepers
    for (int out = m->actuator_outadr[i]; out < m->actuator_outadr[i] + m->actuator_outnum[i]; ++out) {
      const size_t row = (size_t)out * nv;
      for (int k = 0; k < o->d->moment_rownnz[out]; ++k) {
        const int at = o->d->moment_rowadr[out] + k;
        c->ref[row + (size_t)o->d->moment_colind[at]] = o->d->actuator_moment[at];
      }
      for (int k = 0; k < m->mom_rownnz[out]; ++k) {
        const int at = m->mom_rowadr[out] + k;
        c->ours[row + (size_t)m->mom_colind[at]] = o->w.actuator_moment[at];
      }
    }
  }
  sn_compare_numbers(c, SN_CMP_actuator_moment, c->ours, c->ref, m->nout * m->nv, 1e-9, step);
}

static const char *geom_name(const SnOracle *o, int i, char *buffer, size_t size) {
  const char *name = sn_model_name(o->m, SN_NAME_GEOM, i);
  if (name[0])
    snprintf(buffer, size, "'%s'", name);
  else
    snprintf(buffer, size, "%d", i);
  return buffer;
}

// Number of places at which the lists of contacts differ.
static int contact_differences(SnCompare *c, const SnOracle *o, int step) {
  const int n = o->d->ncon, k = o->w.ncon[0];
  int wrong = abs(n - k), first = -1;
  for (int i = 0; i < sn_mini(n, k); ++i) {
    const int *a = o->d->contact[i].geom, *b = o->w.contact[i].geom;
    if (a[0] == b[0] && a[1] == b[1]) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (!wrong || c->note[0]) return wrong;
  if (first < 0) first = sn_mini(n, k);
  char g1[100] = "-", g2[100] = "-", g3[100] = "-", g4[100] = "-";
  if (first < n) {
    geom_name(o, o->d->contact[first].geom[0], g1, sizeof g1);
    geom_name(o, o->d->contact[first].geom[1], g2, sizeof g2);
  }
  if (first < k) {
    geom_name(o, o->w.contact[first].geom[0], g3, sizeof g3);
    geom_name(o, o->w.contact[first].geom[1], g4, sizeof g4);
  }
  snprintf(c->note, sizeof c->note,
           "step %d: %d contacts in MuJoCo, %d in ours; the first that differs is contact %d: geoms %s %s, ours %s %s",
           step, n, k, first, g1, g2, g3, g4);
  return wrong;
}

// dist, pos and frame of the contacts of one class, gathered.
static void compare_contact_class(SnCompare *c, const SnOracle *o, SnContactClass class, SnCompared dist_field,
                                  int step) {
  const int ncon = o->d->ncon;
  if (!sn_compare_reserve(c, 13 * (size_t)ncon)) return;
  double *dist = c->ref, *pos = c->ref + ncon, *frame = pos + 3 * ncon;
  sn_real *dist2 = c->ours, *pos2 = c->ours + ncon, *frame2 = pos2 + 3 * ncon;
  int n = 0;
  for (int i = 0; i < ncon; ++i) {
    const mjContact *a = o->d->contact + i;
    const SnContact *b = o->w.contact + i;
    if (class_of(o, i) != class) continue;
    dist[n] = a->dist;
    dist2[n] = b->dist;
    memcpy(pos + 3 * n, a->pos, sizeof a->pos);
    memcpy(pos2 + 3 * n, b->pos, sizeof b->pos);
    memcpy(frame + 9 * n, a->frame, sizeof a->frame);
    memcpy(frame2 + 9 * n, b->frame, sizeof b->frame);
    ++n;
  }
  if (!n) return;
  sn_compare_numbers(c, dist_field, dist2, dist, n, sn_compare_tolerance(dist_field), step);
  sn_compare_numbers(c, (SnCompared)(dist_field + 1), pos2, pos, 3 * n, sn_compare_tolerance(dist_field), step);
  sn_compare_numbers(c, (SnCompared)(dist_field + 2), frame2, frame, 9 * n, sn_compare_tolerance(dist_field), step);
}

// Compares the parameters that the collision driver attaches to a contact, 20 numbers each.
static void compare_contact_param(SnCompare *c, const SnOracle *o, int step) {
  enum { COUNT = 20 };
  const int ncon = o->d->ncon;
  if (!ncon || !sn_compare_reserve(c, COUNT * (size_t)ncon)) return;
  for (int i = 0; i < ncon; ++i) {
    const mjContact *a = o->d->contact + i;
    const SnContact *b = o->w.contact + i;
    double *p = c->ref + COUNT * i;
    sn_real *q = c->ours + COUNT * i;
    *p++ = a->includemargin, *q++ = b->includemargin;
    for (int k = 0; k < 5; ++k) *p++ = a->friction[k], *q++ = b->friction[k];
    for (int k = 0; k < SN_NREF; ++k) *p++ = a->solref[k], *q++ = b->solref[k];
    for (int k = 0; k < SN_NREF; ++k) *p++ = a->solreffriction[k], *q++ = b->solreffriction[k];
    for (int k = 0; k < SN_NIMP; ++k) *p++ = a->solimp[k], *q++ = b->solimp[k];
    *p++ = a->dim, *q++ = (sn_real)b->dim;
  }
  sn_compare_numbers(c, SN_CMP_contact_param, c->ours, c->ref, COUNT * ncon, 1e-9, step);
}

static void compare_contacts(SnCompare *c, const SnOracle *o, int step) {
  const int wrong = contact_differences(c, o, step);
  sn_compare_record(c, SN_CMP_contact, wrong, 0, step, 0);
  if (wrong) return;
  for (int i = 0; i < o->d->ncon && !c->loose; ++i) {  // of contacts before impact ours had to be there first
    c->loose = contact_edged(o, i);
    c->loose_steps += c->loose;
  }
  compare_contact_param(c, o, step);
  compare_contact_class(c, o, SN_CONTACT_CLOSED, SN_CMP_contact_dist_closed, step);
  compare_contact_class(c, o, SN_CONTACT_SMOOTH, SN_CMP_contact_dist_smooth, step);
  compare_contact_class(c, o, SN_CONTACT_EDGED, SN_CMP_contact_dist_edged, step);
}

// Number of places at which the lists of rows differ.
static int row_differences(SnCompare *c, const SnOracle *o, int step) {
  const mjData *d = o->d;
  const SnWorld *w = &o->w;
  int wrong = abs(d->nefc - w->nefc[0]) + (d->ne != w->ne[0]) + (d->nf != w->nf[0]) + (d->nl != w->nl[0]);
  for (int i = 0; !wrong && i < d->nefc; ++i) wrong += d->efc_type[i] != w->efc_type[i] || d->efc_id[i] != w->efc_id[i];
  if (wrong && !c->note[0])
    snprintf(
        c->note, sizeof c->note,
        "step %d: rows of equalities, friction loss, limits and in all: %d %d %d %d in MuJoCo, %d %d %d %d in ours",
        step, d->ne, d->nf, d->nl, d->nefc, w->ne[0], w->nf[0], w->nl[0], w->nefc[0]);
  return wrong;
}

// True when row i belongs to an edged contact.
static bool row_edged(const SnOracle *o, int i) {
  return o->d->efc_type[i] >= mjCNSTR_CONTACT_FRICTIONLESS && contact_edged(o, o->d->efc_id[i]);
}

// One number a row, split by class; the scale is that of all rows.
static void compare_rows(SnCompare *c, const SnOracle *o, SnCompared field, SnCompared edged, const sn_real *ours,
                         const double *ref, int width, int step) {
  const int n = o->d->nefc;
  double worst[2] = {0, 0}, scale = 0;
  int at[2] = {0, 0}, count[2] = {0, 0};
  for (int i = 0; i < n; ++i) {
    const int k = row_edged(o, i) ? 1 : 0;
    ++count[k];
    for (int j = i * width; j < (i + 1) * width; ++j) {
      const double e = fabs((double)ours[j] - ref[j]);
      scale = fmax(scale, fabs(ref[j]));
      if (e <= worst[k] || isnan(worst[k])) continue;
      worst[k] = e;
      at[k] = j;
    }
  }
  if (count[0]) sn_compare_record(c, field, worst[0] / (scale + 1e-6), sn_compare_tolerance(field), step, at[0]);
  if (count[1]) sn_compare_record(c, edged, worst[1] / (scale + 1e-6), sn_compare_tolerance(edged), step, at[1]);
}

static void compare_jacobian(SnCompare *c, const SnOracle *o, int step) {
  const mjData *d = o->d;
  const SnWorld *w = &o->w;
  const int nv = o->m->nv, n = d->nefc;
  if (n == 0 || !sn_compare_reserve(c, (size_t)n * (size_t)nv)) return;
  const bool sparse = mj_isSparse(o->mj);
  if (!sparse) memcpy(c->ref, d->efc_J, sizeof(double) * (size_t)n * (size_t)nv);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; sparse && k < d->efc_J_rownnz[i]; ++k)
      c->ref[i * nv + d->efc_J_colind[d->efc_J_rowadr[i] + k]] = d->efc_J[d->efc_J_rowadr[i] + k];
    for (int k = 0; k < w->efc_J_rownnz[i]; ++k)
      c->ours[i * nv + w->efc_J_colind[w->efc_J_rowadr[i] + k]] = w->efc_J[w->efc_J_rowadr[i] + k];
  }
  compare_rows(c, o, SN_CMP_efc_J, SN_CMP_efc_J_edged, c->ours, c->ref, nv, step);
}

static void compare_constraints(SnCompare *c, const SnOracle *o, int step) {
  const int wrong = row_differences(c, o, step);
  sn_compare_record(c, SN_CMP_efc, wrong, 0, step, 0);
  if (wrong) return;
  compare_jacobian(c, o, step);
  compare_rows(c, o, SN_CMP_efc_pos, SN_CMP_efc_pos_edged, o->w.efc_pos, o->d->efc_pos, 1, step);
  compare_rows(c, o, SN_CMP_efc_D, SN_CMP_efc_D_edged, o->w.efc_D, o->d->efc_D, 1, step);
  compare_rows(c, o, SN_CMP_efc_aref, SN_CMP_efc_aref_edged, o->w.efc_aref, o->d->efc_aref, 1, step);
}

// Compares numbers of dofs, but for those of trees that sleep: there MuJoCo leaves those of the step in which they fell
// asleep, and ours are zero.
static void compare_dofs(SnCompare *c, const SnOracle *o, SnCompared field, const sn_real *ours, const double *ref,
                         double tol, int step) {
  const SnModel *m = o->m;
  if (!sn_any_asleep(m, &o->w)) {
    sn_compare_numbers(c, field, ours, ref, m->nv, tol, step);
    return;
  }
  if (!sn_compare_reserve(c, (size_t)m->nv)) return;
  for (int i = 0; i < m->nv; ++i) {
    if (!o->w.tree_awake[m->dof_treeid[i]]) continue;
    c->ours[i] = ours[i];
    c->ref[i] = ref[i];
  }
  sn_compare_numbers(c, field, c->ours, c->ref, m->nv, tol, step);
}

// cdof, but for trees that sleep: where they share a static root, MuJoCo leaves theirs about the centre at which they
// fell asleep, while others move it.
static void compare_cdof(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  if (!sn_compare_reserve(c, 6 * (size_t)m->nv)) return;
  for (int i = 0; i < 6 * m->nv; ++i) {
    if (sn_any_asleep(m, &o->w) && !o->w.tree_awake[m->dof_treeid[i / 6]]) continue;
    c->ours[i] = o->w.cdof[i];
    c->ref[i] = o->d->cdof[i];
  }
  sn_compare_numbers(c, SN_CMP_cdof, c->ours, c->ref, 6 * m->nv, sn_compare_tolerance(SN_CMP_cdof), step);
}

// Forces of rows, but for those that nothing softens: theirs is the rounding of an acceleration times SN_STIFF.
static void compare_row_forces(SnCompare *c, const SnOracle *o, double tol, int step) {
  const int n = o->d->nefc;
  if (n != o->w.nefc[0] || !sn_compare_reserve(c, (size_t)n)) return;
  for (int i = 0; i < n; ++i) {
    const bool stiff = o->d->efc_D[i] >= SN_STIFF;
    c->stiff_rows += stiff;
    c->ours[i] = stiff ? 0 : o->w.efc_force[i];
    c->ref[i] = stiff ? 0 : o->d->efc_force[i];
  }
  sn_compare_numbers(c, SN_CMP_efc_force, c->ours, c->ref, n, tol, step);
}

static void compare_solver(SnCompare *c, const SnOracle *o, int step) {
  const double tol = c->loose ? 1e-4 : 1e-6;
  compare_dofs(c, o, SN_CMP_qacc, o->w.qacc, o->d->qacc, tol, step);
  compare_dofs(c, o, SN_CMP_qfrc_constraint, o->w.qfrc_constraint, o->d->qfrc_constraint, tol, step);
  sn_compare_sensors(c, o, step);
  compare_row_forces(c, o, tol, step);
}

// Compares n numbers of a field that both engines have under one name.
#define FIELD(name, n) \
  sn_compare_numbers(c, SN_CMP_##name, o->w.name, o->d->name, (n), sn_compare_tolerance(SN_CMP_##name), step)

static void compare_kinematics(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  FIELD(xpos, 3 * m->nbody);
  FIELD(xquat, 4 * m->nbody);
  FIELD(xipos, 3 * m->nbody);
  FIELD(xanchor, 3 * m->njnt);
  FIELD(xaxis, 3 * m->njnt);
  FIELD(geom_xpos, 3 * m->ngeom);
  FIELD(geom_xmat, 9 * m->ngeom);
  FIELD(site_xpos, 3 * m->nsite);
  FIELD(site_xmat, 9 * m->nsite);
}

void sn_compare_stage(SnCompare *c, const SnOracle *o, SnStage stage, int step) {
  const SnModel *m = o->m;
  switch (stage) {
    case SN_STAGE_KINEMATICS:
      compare_kinematics(c, o, step);
      break;
    case SN_STAGE_INERTIA:
      FIELD(subtree_com, 3 * m->nbody);
      compare_cdof(c, o, step);
      FIELD(M, m->nC);
      FIELD(qLD, m->nC);
      break;
    case SN_STAGE_TENDON:
      compare_tendon_paths(c, o, step);
      compare_tendon_lengths(c, o, step);
      compare_tendon_rows(c, o, step);
      break;
    case SN_STAGE_TRANSMISSION:
      FIELD(actuator_length, m->nout);
      compare_moment(c, o, step);
      break;
    case SN_STAGE_COLLISION:
      compare_contacts(c, o, step);
      break;
    case SN_STAGE_VELOCITY:
      FIELD(ten_velocity, m->ntendon);
      FIELD(actuator_velocity, m->nout);
      FIELD(qfrc_bias, m->nv);
      break;
    case SN_STAGE_PASSIVE:
      compare_dofs(c, o, SN_CMP_qfrc_passive, o->w.qfrc_passive, o->d->qfrc_passive,
                   sn_compare_tolerance(SN_CMP_qfrc_passive), step);
      break;
    case SN_STAGE_ACTUATION:
      FIELD(act_dot, m->na);
      FIELD(actuator_force, m->nout);
      FIELD(qfrc_actuator, m->nv);
      break;
    case SN_STAGE_SMOOTH:
      compare_dofs(c, o, SN_CMP_qacc_smooth, o->w.qacc_smooth, o->d->qacc_smooth,
                   sn_compare_tolerance(SN_CMP_qacc_smooth), step);
      break;
    case SN_STAGE_CONSTRAINT:
      compare_constraints(c, o, step);
      break;
    case SN_STAGE_SOLVER:
      compare_solver(c, o, step);
      break;
    case SN_STAGE_CFD:
    case SN_STAGE_STATE:
    case SN_STAGE_SLEEP:
    case SN_STAGE_INTEGRATE:
      break;
  }
#undef FIELD
}

void sn_compare_next(SnCompare *c, const SnOracle *o, int step) {
  const SnModel *m = o->m;
  const double h = o->mj->opt.timestep;
  // on a loose step qacc may be off by 1e-4 of its largest entry: that much of h qacc reaches velocity and position
  double accel = 0, qvel = 0, qpos = 0;
  for (int i = 0; c->loose && i < m->nv; ++i) {
    accel = fmax(accel, fabs(o->d->qacc[i]));
    qvel = fmax(qvel, fabs(o->d->qvel[i]));
  }
  for (int i = 0; i < m->nq; ++i) qpos = fmax(qpos, fabs(o->d->qpos[i]));
  const double slack = 1e-4 * h * accel;
  sn_compare_numbers(c, SN_CMP_next_time, o->w.time, &o->d->time, 1, 1e-9, step);
  sn_compare_numbers(c, SN_CMP_next_qpos, o->w.qpos, o->d->qpos, m->nq, 1e-9 + h * slack / (qpos + 1e-6), step);
  sn_compare_numbers(c, SN_CMP_next_qvel, o->w.qvel, o->d->qvel, m->nv, 1e-9 + slack / (qvel + 1e-6), step);
  sn_compare_numbers(c, SN_CMP_next_act, o->w.act, o->d->act, m->na, 1e-9, step);
  sn_compare_history(c, o, step);
  sn_compare_numbers(c, SN_CMP_next_plastic, sn_plastic(m, o->w.past), o->d->plastic, m->nplastic,
                     c->loose ? 1e-4 : 1e-8, step);
  int wrong = 0, first = 0;
  for (int t = m->ntree - 1; sn_has_sleep(m) && t >= 0; --t)
    if (o->w.tree_asleep[t] != o->d->tree_asleep[t]) first = t, ++wrong;
  sn_compare_record(c, SN_CMP_next_tree_asleep, wrong, 0, step, first);
}

// What MuJoCo's compiler derives from the dynamics at qpos0, by the stages of a step.
//
// With M the inertia matrix at qpos0, J a Jacobian of something (a row for each of its coordinates), the mean of the
// diagonal of J inv(M) J' is the inverse inertia that a constraint force on it meets (manual, Computation, Constraint
// model). J is
//   of a dof              the unit row; a ball, and either half of a free joint, share the mean of three
//   of a body             translation and rotation of its centre of mass, a mean of three rows each
//   of a tendon           its row of ten_J
// actuator_acc0 is the length of inv(M) r', r the actuator's row of moment arms. dof_M0 is the diagonal of M without
// the armature of tendons; dofs that are simple take their row of M from it, and so this diagonal is computed in a copy
// of the model in which none is. A body that only slides, by simple dofs, and these dofs have 1 / mass (measured).
#include "physics/step/constants.h"

#include <math.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/dynamics/dynamics.h"
#include "physics/model/model_arrays.h"
#include "physics/step/growing_world.h"

// What is computed; all lie in one block.
typedef struct Constants {
  double *M0, *dof;      // (nv)
  double *reach;         // (nv) dof_length
  double *size;          // (nbody) scratch
  double *body;          // (nbody, 2)
  double *length, *ten;  // (ntendon)
  double *acc0;          // (nout)
  double *eq;            // (neq, SN_NEQDATA)
  double *mass;          // (nbody) the model's
  sn_real *x, *row;      // (nv) scratch
} Constants;

// A copy without simple dofs, whose tendons have no armature yet.
static SnModel *plain_copy(const SnModel *m, SnError *err) {
  SnModel *first = sn_model_copy(m, err);
  if (!first) return NULL;
  for (int i = 0; i < m->nv; ++i) first->dof_simplenum[i] = 0;
  SnModel *plain = sn_model_copy(first, err);
  sn_model_free(first);
  for (int t = 0; plain && t < m->ntendon; ++t) plain->ten_arm[t] = 0;
  return plain;
}

// Replaces x by inv(M) r and returns r' inv(M) r; r stays.
static double inverse_inertia(SnGrowingWorld *g, const sn_real *r, sn_real *x) {
  const SnModel *m = &g->model;
  sn_copy(x, r, m->nv);
  sn_solve_LD(m, &g->lane, g->world.qLD, g->world.qLDiagInv, x);
  return (double)sn_dot(r, x, m->nv);
}

// The same of a sparse row.
static double sparse_inertia(SnGrowingWorld *g, const SnRow *row, Constants *c) {
  sn_zero(c->row, g->model.nv);
  for (int k = 0; k < row->n; ++k) c->row[row->col[k]] = row->J[k];
  return inverse_inertia(g, c->row, c->x);
}

static void fill_dofs(SnGrowingWorld *g, Constants *c) {
  const SnModel *m = &g->model;
  for (int i = 0; i < m->nv; ++i) {
    sn_zero(c->row, m->nv);
    c->row[i] = 1;
    c->dof[i] = inverse_inertia(g, c->row, c->x);
  }
  for (int j = 0; j < m->njnt; ++j) {
    const int type = m->jnt_type[j], first = m->jnt_dofadr[j];
    const int triples = type == SN_JNT_FREE ? 2 : type == SN_JNT_BALL;
    for (double *d = c->dof + first; d < c->dof + first + 3 * triples; d += 3)
      d[0] = d[1] = d[2] = (d[0] + d[1] + d[2]) / 3;
  }
}

// Whether a body is moved by slides alone, whose inertia is constant.
static bool only_slides(const SnModel *m, int body) {
  const int first = m->body_dofadr[body], n = m->body_dofnum[body];
  for (int i = first; i < first + n; ++i)
    if (!m->dof_simplenum[i] || m->jnt_type[m->dof_jntid[i]] != SN_JNT_SLIDE) return false;
  return n > 0;
}

// m: the model itself, of which `g` has a plain copy.
static void fill_bodies(const SnModel *m, SnGrowingWorld *g, Constants *c) {
  const SnWorld *w = &g->world;
  for (int b = 1; b < m->nbody; ++b) {
    double sum[2] = {0, 0};
    sn_real com[3], offset[3], lin[3];
    const int link = m->link_of_body[b];
    sn_mulmatvec3(com, w->xmat + 9 * link, m->body_lpos + 3 * b);
    sn_addto3(com, w->xpos + 3 * link);
    sn_sub3(offset, com, w->subtree_com + 3 * m->body_rootid[b]);
    for (int r = 0; r < 6; ++r) {
      sn_zero(c->row, m->nv);
      for (int k = m->chain_adr[b]; k < m->chain_adr[b + 1]; ++k) {
        const int dof = m->chain_dof[k];
        const sn_real *cdof = w->cdof + 6 * dof;
        sn_cross(lin, cdof, offset);
        sn_addto3(lin, cdof + 3);
        c->row[dof] = r < 3 ? lin[r] : cdof[r - 3];
      }
      sum[r / 3] += m->chain_adr[b] < m->chain_adr[b + 1] ? inverse_inertia(g, c->row, c->x) : 0;
    }
    c->body[2 * b] = sum[0] / 3;
    c->body[2 * b + 1] = sum[1] / 3;
    if (!only_slides(m, b)) continue;
    c->body[2 * b] = 1 / (double)sn_max(m->body_mass[b], SN_MINVAL);
    for (int i = m->body_dofadr[b]; i < m->body_dofadr[b] + m->body_dofnum[b]; ++i) c->dof[i] = c->body[2 * b];
  }
}

static void fill_tendons(SnGrowingWorld *g, Constants *c) {
  for (int t = 0; t < g->model.ntendon; ++t) {
    const SnRow row = sn_tendon_row(&g->model, &g->world, t);
    c->length[t] = (double)g->world.ten_length[t];
    c->ten[t] = sparse_inertia(g, &row, c);
  }
}

static void fill_actuators(SnGrowingWorld *g, Constants *c) {
  for (int i = 0; i < g->model.nout; ++i) {
    const SnRow row = sn_output_row(&g->model, &g->world, i);
    sparse_inertia(g, &row, c);
    c->acc0[i] = sqrt((double)sn_dot(c->x, c->x, g->model.nv));
  }
}

// A point in the frame of body `from`, seen from body `to`.
static void carry(const SnWorld *w, int from, int to, const sn_real *point, sn_real *seen) {
  sn_real at[3];
  sn_mulmatvec3(at, w->xmat + 9 * from, point);
  sn_addto3(at, w->xpos + 3 * from);
  sn_subfrom3(at, w->xpos + 3 * to);
  sn_mulmattvec3(seen, w->xmat + 9 * to, at);
}

// Equalities that hold at qpos0: the second anchor of a connect lies where the first one is; a weld whose last number
// is 1 keeps the relative pose of the bodies, at the anchor, which is in the frame of the second one.
static void fill_equalities(SnGrowingWorld *g, Constants *c) {
  enum { REST = SN_NEQDATA - 1 };
  const SnModel *m = &g->model;
  const SnWorld *w = &g->world;
  for (int i = 0; i < m->neq; ++i) {
    const int b1 = m->eq_obj1id[i], b2 = m->eq_obj2id[i], type = m->eq_type[i];
    sn_real data[SN_NEQDATA], back[4];
    sn_copy(data, m->eq_data + SN_NEQDATA * i, SN_NEQDATA);
    const bool bodies = m->eq_objtype[i] == SN_OBJ_BODY;
    if (type == SN_EQ_CONNECT && bodies) carry(w, b1, b2, data, data + 3);
    if (type == SN_EQ_WELD && bodies && data[REST] == 1) {
      carry(w, b2, b1, data, data + 3);
      sn_negquat(back, w->xquat + 4 * b1);
      sn_mulquat(data + 6, back, w->xquat + 4 * b2);
    }
    for (int k = 0; k < SN_NEQDATA; ++k) c->eq[SN_NEQDATA * i + k] = (double)data[k];
  }
}

// What a turn of a dof moves, at most, for thresholds of speed: from the centre of mass of its body to the farthest of
// its anchors, of those of its children, and of the bounds of its geoms. A slide moves by itself.
static void fill_lengths(const SnModel *m, Constants *c) {
  for (int j = 0; j < m->njnt; ++j) {
    const int b = m->jnt_bodyid[j], parent = m->body_parentid[b];
    sn_real anchor[3];
    sn_rotquat(anchor, m->jnt_pos + 3 * j, m->body_quat + 4 * b);
    sn_add3(anchor, anchor, m->body_pos + 3 * b);
    c->size[b] = fmax(c->size[b], (double)sn_dist3(m->body_ipos + 3 * b, m->jnt_pos + 3 * j));
    c->size[parent] = fmax(c->size[parent], (double)sn_dist3(m->body_ipos + 3 * parent, anchor));
  }
  for (int i = 0; i < m->ngeom; ++i) {
    const int b = m->geom_bodyid[i];
    const double bound = (double)m->geom_rbound[i];
    if (bound > 0) c->size[b] = fmax(c->size[b], bound + (double)sn_dist3(m->body_ipos + 3 * b, m->geom_pos + 3 * i));
  }
  for (int i = 0; i < m->nv; ++i) {
    const int j = m->dof_jntid[i], type = m->jnt_type[j];
    const bool turns =
        type == SN_JNT_BALL || type == SN_JNT_HINGE || (type == SN_JNT_FREE && i >= m->jnt_dofadr[j] + 3);
    c->reach[i] = turns ? fmax(c->size[m->dof_bodyid[i]], 1e-5) : 1;
  }
}

// Runs the stages at qpos0, where a new world is, and fills all constants.
static void fill(const SnModel *m, SnModel *plain, SnGrowingWorld *g, Constants *c) {
  SnWorld *w = &g->world;
  sn_kinematics(&g->model, w, &g->lane);
  sn_com_pos(&g->model, w, &g->lane);
  sn_tendon(&g->model, w, &g->lane);
  sn_make_M(&g->model, w, &g->lane);
  for (int i = 0; i < m->nv; ++i) c->M0[i] = (double)w->M[m->M_rowadr[i] + m->M_rownnz[i] - 1];
  for (int t = 0; t < m->ntendon; ++t) plain->ten_arm[t] = m->ten_arm[t];  // the world's model shares it
  sn_make_M(&g->model, w, &g->lane);
  sn_factor_M(&g->model, w, &g->lane);
  sn_transmission(&g->model, w, &g->lane);
  fill_dofs(g, c);
  fill_lengths(m, c);
  fill_bodies(m, g, c);
  fill_tendons(g, c);
  fill_actuators(g, c);
  fill_equalities(g, c);
  for (int i = 0; i < m->nbody; ++i) c->mass[i] = (double)m->body_mass[i];
}

static void *take(double **at, int n) {
  double *part = *at;
  *at += n;
  return part;
}

// Lays the arrays out; the caller frees M0, which is the block.
static bool make_room(const SnModel *m, Constants *c, SnError *err) {
  const int n = 5 * m->nv + 4 * m->nbody + 2 * m->ntendon + m->nout + SN_NEQDATA * m->neq;
  double *at = calloc((size_t)n + 1, sizeof *at);
  if (!at) {
    sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
    return false;
  }
  c->M0 = take(&at, m->nv);
  c->dof = take(&at, m->nv);
  c->reach = take(&at, m->nv);
  c->size = take(&at, m->nbody);
  c->body = take(&at, 2 * m->nbody);
  c->length = take(&at, m->ntendon);
  c->ten = take(&at, m->ntendon);
  c->acc0 = take(&at, m->nout);
  c->eq = take(&at, SN_NEQDATA * m->neq);
  c->mass = take(&at, m->nbody);
  c->x = take(&at, m->nv);
  c->row = take(&at, m->nv);
  return true;
}

SnModel *sn_model_with_constants(const SnModel *m, SnError *err) {
  Constants c;
  SnModel *plain = plain_copy(m, err), *copy = NULL;
  SnGrowingWorld *g = plain ? sn_growing_world_create(plain, err) : NULL;
  if (g && make_room(m, &c, err)) {
    fill(m, plain, g, &c);
    const SnNewArray arrays[] = {{"dof_M0", c.M0, m->nv, 1},
                                 {"dof_invweight0", c.dof, m->nv, 1},
                                 {"dof_length", c.reach, m->nv, 1},
                                 {"body_invweight0", c.body, m->nbody, 2},
                                 {"tendon_length0", c.length, m->ntendon, 1},
                                 {"tendon_invweight0", c.ten, m->ntendon, 1},
                                 {"actuator_acc0", c.acc0, m->nout, 1},
                                 {"eq_data", c.eq, m->neq, SN_NEQDATA},
                                 {"body_mass", c.mass, m->nbody, 1}};  // brings body_subtreemass
    copy = sn_model_with_arrays(m, arrays, sizeof arrays / sizeof *arrays, err);
    free(c.M0);
  }
  sn_growing_world_free(g);
  sn_model_free(plain);
  return copy;
}

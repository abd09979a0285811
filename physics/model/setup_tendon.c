// What tendon.c would otherwise search for in every step: the segments of all paths, and which of
// their lines stretch when a dof moves.
//
// A path is a list of sites, wrap geoms (between two sites) and pulleys (a pulley starts a new branch
// with its own divisor). Two sites of one rigid body (equal body_weldid) are a constant distance apart.
// A line between rigid bodies A and B stretches with exactly those dofs that move one but not the
// other: the ancestors of B's last dof that are not ancestors of A's (+), and the reverse (-).
//
// The adjoint does not go by dofs but by links: it sums what a tendon does to each link that it is fixed to, then what
// each link gets from its tendons. Both lists are made here, too.
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/model/model_private.h"

// Sizes found by one pass over all paths, and the cursor of the next pass that fills the arrays.
typedef struct PathCursor {
  int nseg, nwseg;
  bool fill;
} PathCursor;

// Last dof that moves a body, or -1: the lower end of its chain of dof_parentid.
static int last_dof(const SnModel *m, int body) {
  const int weld = m->body_weldid[body];
  return m->body_dofnum[weld] > 0 ? m->body_dofadr[weld] + m->body_dofnum[weld] - 1 : -1;
}

// Carries a pose of a body to the frame of its rigid body's root; quat may be NULL.
static void to_weld(const SnModel *m, int body, sn_real *pos, sn_real *quat) {
  for (int b = body; b != m->body_weldid[b]; b = m->body_parentid[b]) {
    sn_real p[3], q[4];
    sn_rotquat(p, pos, m->body_quat + 4 * b);
    sn_add3(pos, p, m->body_pos + 3 * b);
    if (!quat) continue;
    sn_mulquat(q, m->body_quat + 4 * b, quat);
    sn_copy4(quat, q);
  }
}

static void site_in_weld(const SnModel *m, int site, sn_real *pos) {
  sn_copy3(pos, m->site_pos + 3 * site);
  to_weld(m, m->site_bodyid[site], pos, NULL);
}

// Position of a site in the frame of a geom of the same rigid body.
static void site_in_geom(const SnModel *m, int site, int geom, sn_real *pos) {
  sn_real p[3], origin[3], quat[4], back[4];
  site_in_weld(m, site, p);
  sn_copy3(origin, m->geom_pos + 3 * geom);
  sn_copy4(quat, m->geom_quat + 4 * geom);
  to_weld(m, m->geom_bodyid[geom], origin, quat);
  sn_subfrom3(p, origin);
  sn_negquat(back, quat);
  sn_rotquat(pos, p, back);
}

int sn_wrap_body(const SnModel *m, int entry) {
  const int id = m->wrap_objid[entry];
  switch (m->wrap_type[entry]) {
    case SN_WRAP_PULLEY:
      return -1;
    case SN_WRAP_JOINT:
      return m->jnt_bodyid[id];
    case SN_WRAP_SITE:
      return m->site_bodyid[id];
    default:
      return m->geom_bodyid[id];
  }
}

// Tree whose centre of mass the moments of tendon t refer to: that of its first moving body, else 0.
static int tendon_root(const SnModel *m, int t) {
  for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i) {
    const int body = sn_wrap_body(m, i);
    if (body >= 0 && last_dof(m, body) >= 0) return m->body_rootid[body];
  }
  return 0;
}

static bool is_geom(int type) { return type == SN_WRAP_SPHERE || type == SN_WRAP_CYLINDER; }

static void straight_segment(SnModel *m, int t, int site0, int site1, sn_real scale, int root, PathCursor *c) {
  if (m->body_weldid[m->site_bodyid[site0]] == m->body_weldid[m->site_bodyid[site1]]) {
    sn_real p0[3], p1[3];
    site_in_weld(m, site0, p0);
    site_in_weld(m, site1, p1);
    if (c->fill) m->ten_const[t] += scale * sn_dist3(p0, p1);
    return;
  }
  if (c->fill) {
    m->seg_site[2 * c->nseg] = site0;
    m->seg_site[2 * c->nseg + 1] = site1;
    m->seg_scale[c->nseg] = scale;
    m->seg_root[c->nseg] = root;
  }
  ++c->nseg;
}

// What the side site of segment k asks for: fixed where the site belongs to the geom's rigid body.
static void setup_side(SnModel *m, int k, int side) {
  const int geom = m->wseg_geom[k];
  m->wseg_rule[k] = SN_SIDE_FREE;
  m->wseg_side_site[k] = -1;
  if (side < 0) return;
  if (m->body_weldid[m->site_bodyid[side]] != m->body_weldid[m->geom_bodyid[geom]]) {
    m->wseg_side_site[k] = side;
    return;
  }
  site_in_geom(m, side, geom, m->wseg_side + 3 * k);
  m->wseg_rule[k] = sn_norm3(m->wseg_side + 3 * k) < m->geom_size[3 * geom] ? SN_SIDE_INSIDE : SN_SIDE_OUTSIDE;
}

static void wrapped_segment(SnModel *m, int entry, int site0, int site1, sn_real scale, int root, PathCursor *c) {
  if (c->fill) {
    const int k = c->nwseg;
    m->wseg_site[2 * k] = site0;
    m->wseg_site[2 * k + 1] = site1;
    m->wseg_scale[k] = scale;
    m->wseg_root[k] = root;
    m->wseg_geom[k] = m->wrap_objid[entry];
    m->wseg_type[k] = m->wrap_type[entry];
    setup_side(m, k, (int)sn_floor(m->wrap_prm[entry] + SN_R(0.5)));
    m->wrap_seg[entry] = k;
  }
  ++c->nwseg;
}

// The segments of spatial tendon t.
static SnCode walk_path(SnModel *m, int t, PathCursor *c, SnError *err) {
  const int adr = m->tendon_adr[t], end = adr + m->tendon_num[t], root = tendon_root(m, t);
  sn_real scale = 1;
  int previous = -1;  // site before entry i, -1 at the start of a branch
  for (int i = adr; i < end; ++i) {
    const int type = m->wrap_type[i], id = m->wrap_objid[i];
    if (type == SN_WRAP_PULLEY) {
      if (!(m->wrap_prm[i] > 0))
        return sn_fail(err, SN_ERR_FORMAT, "tendon %d: divisor of a pulley must be positive", t);
      scale = 1 / m->wrap_prm[i];
      previous = -1;
    } else if (type == SN_WRAP_SITE) {
      if (previous >= 0) straight_segment(m, t, previous, id, scale, root, c);
      previous = id;
    } else if (is_geom(type) && previous >= 0 && i + 1 < end && m->wrap_type[i + 1] == SN_WRAP_SITE) {
      const sn_real side = m->wrap_prm[i];
      if (!(side >= -1 && side < (sn_real)m->nsite))
        return sn_fail(err, SN_ERR_FORMAT, "tendon %d: no such side site", t);
      wrapped_segment(m, i, previous, m->wrap_objid[i + 1], scale, root, c);
      previous = m->wrap_objid[++i];
    } else {
      return sn_fail(err, SN_ERR_FORMAT,
                     "tendon %d: entry %d of its path must be a site, a pulley, or a geom between sites", t, i - adr);
    }
  }
  return SN_OK;
}

// Coefficients of fixed tendon t.
static SnCode fixed_tendon(SnModel *m, int t, SnError *err) {
  for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i) {
    if (m->wrap_type[i] != SN_WRAP_JOINT)
      return sn_fail(err, SN_ERR_FORMAT, "tendon %d: a fixed tendon has joints only", t);
    const int dof = m->jnt_dofadr[m->wrap_objid[i]];
    for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k)
      if (m->ten_J_colind[k] == dof) m->ten_J_fixed[k] += m->wrap_prm[i];
  }
  return SN_OK;
}

static int path_points(const SnModel *m, int t) {
  int points = 0;
  for (int i = m->tendon_adr[t]; i < m->tendon_adr[t] + m->tendon_num[t]; ++i)
    points += m->wrap_type[i] == SN_WRAP_SITE || m->wrap_type[i] == SN_WRAP_PULLEY;
  return points;
}

// One pass over all tendons: counts, or fills.
static SnCode walk_all(SnModel *m, PathCursor *c, SnError *err) {
  for (int t = 0; t < m->ntendon; ++t) {
    if (c->fill) {
      m->ten_seg[t] = c->nseg;
      m->ten_wseg[t] = c->nwseg;
      m->ten_point0[t] = m->tendon_type[t] == SN_TENDON_FIXED ? 0 : path_points(m, t);
    }
    const SnCode code =
        m->tendon_type[t] == SN_TENDON_FIXED ? (c->fill ? fixed_tendon(m, t, err) : SN_OK) : walk_path(m, t, c, err);
    if (code != SN_OK) return code;
  }
  return SN_OK;
}

// Rigid bodies' last dofs at the two ends of a line.
static void line_ends(const SnModel *m, int line, int *dof0, int *dof1) {
  int body0, body1;
  if (line < m->nseg) {
    body0 = m->site_bodyid[m->seg_site[2 * line]];
    body1 = m->site_bodyid[m->seg_site[2 * line + 1]];
  } else {
    const int k = (line - m->nseg) / 2, geom = m->geom_bodyid[m->wseg_geom[k]];
    const bool to_geom = (line - m->nseg) % 2 == 0;
    body0 = to_geom ? m->site_bodyid[m->wseg_site[2 * k]] : geom;
    body1 = to_geom ? geom : m->site_bodyid[m->wseg_site[2 * k + 1]];
  }
  *dof0 = last_dof(m, body0);
  *dof1 = last_dof(m, body1);
}

// Enters a line of tendon t at the dofs that move one end only. column[dof] is the address of the dof
// in the tendon's row of ten_J, or -1. next[k] is the number of lines of entry k so far when counting, the
// address of the next one in arm_line when filling.
static SnCode enter_line(SnModel *m, int t, int line, const int *column, int *next, bool fill, SnError *err) {
  int dof0, dof1;
  line_ends(m, line, &dof0, &dof1);
  while (dof0 != dof1) {
    const bool first = dof0 > dof1;  // parents have lower numbers: the higher one cannot be common
    const int dof = first ? dof0 : dof1, k = column[dof];
    if (k < 0) return sn_fail(err, SN_ERR_FORMAT, "tendon %d: dof %d is missing in its row of ten_J", t, dof);
    if (fill) m->arm_line[next[k]] = first ? ~line : line;
    ++next[k];
    if (first)
      dof0 = m->dof_parentid[dof0];
    else
      dof1 = m->dof_parentid[dof1];
  }
  return SN_OK;
}

static SnCode enter_lines(SnModel *m, int *column, int *next, bool fill, SnError *err) {
  SnCode code = SN_OK;
  for (int t = 0; t < m->ntendon && code == SN_OK; ++t) {
    const int adr = m->ten_J_rowadr[t], end = adr + m->ten_J_rownnz[t];
    for (int k = adr; k < end; ++k) column[m->ten_J_colind[k]] = k;
    for (int s = m->ten_seg[t]; s < m->ten_seg[t + 1] && code == SN_OK; ++s)
      code = enter_line(m, t, s, column, next, fill, err);
    for (int k = 2 * m->ten_wseg[t]; k < 2 * m->ten_wseg[t + 1] && code == SN_OK; ++k)
      code = enter_line(m, t, m->nseg + k, column, next, fill, err);
    for (int k = adr; k < end; ++k) column[m->ten_J_colind[k]] = -1;
  }
  return code;
}

// Tree that the lines of an entry refer to when its dof belongs to another one, else -1.
static int arm_root(const SnModel *m, int t, int entry) {
  const int root = tendon_root(m, t);
  return root == m->body_rootid[m->dof_bodyid[m->ten_J_colind[entry]]] ? -1 : root;
}

// The entries of ten_J that count[] says some lines change; count[] becomes the address of their lines.
static SnCode list_arms(SnModel *m, int *count, SnError *err) {
  m->narm = m->narmline = 0;
  for (int k = 0; k < m->nJten; ++k) m->narm += count[k] > 0;
  m->arm_entry = sn_model_alloc(m, sizeof(int) * (size_t)m->narm);
  m->arm_root = sn_model_alloc(m, sizeof(int) * (size_t)m->narm);
  m->arm_adr = sn_model_alloc(m, sizeof(int) * (size_t)(m->narm + 1));
  if (!m->arm_entry || !m->arm_root || !m->arm_adr) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  int a = 0;
  for (int t = 0; t < m->ntendon; ++t)
    for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k) {
      if (count[k] == 0) continue;
      const int lines = count[k];
      m->arm_entry[a] = k;
      m->arm_root[a] = arm_root(m, t, k);
      m->arm_adr[a++] = count[k] = m->narmline;
      m->narmline += lines;
    }
  m->arm_adr[a] = m->narmline;
  return SN_OK;
}

// Levers: arms of one line, which nearly all are.
static SnCode list_levers(SnModel *m, SnError *err) {
  m->arm_lever = sn_model_alloc(m, sizeof(int) * 3 * (size_t)m->narm);
  m->arm_sign = sn_model_alloc(m, sizeof(sn_real) * (size_t)m->narm);
  if (!m->arm_lever || !m->arm_sign) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int a = 0; a < m->narm; ++a) {
    if (m->arm_root[a] >= 0 || m->arm_adr[a + 1] - m->arm_adr[a] != 1) continue;
    const int line = m->arm_line[m->arm_adr[a]];
    m->arm_sign[a] = line < 0 ? -1 : 1;
    m->arm_lever[3 * a] = m->arm_entry[a];
    m->arm_lever[3 * a + 1] = 6 * m->ten_J_colind[m->arm_entry[a]];
    m->arm_lever[3 * a + 2] = 6 * (line < 0 ? ~line : line);
  }
  return SN_OK;
}

// Moment arms: count the lines of each entry, list the entries, fill.
static SnCode setup_arms(SnModel *m, SnError *err) {
  int *column = sn_model_alloc(m, sizeof(int) * (size_t)m->nv),
      *next = sn_model_alloc(m, sizeof(int) * (size_t)m->nJten);
  if (!column || !next) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int i = 0; i < m->nv; ++i) column[i] = -1;
  SnCode code = enter_lines(m, column, next, false, err);
  if (code == SN_OK) code = list_arms(m, next, err);
  if (code != SN_OK) return code;
  m->arm_line = sn_model_alloc(m, sizeof(int) * (size_t)m->narmline);
  if (!m->arm_line) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  code = enter_lines(m, column, next, true, err);
  return code == SN_OK ? list_levers(m, err) : code;
}

static int site_link(const SnModel *m, int site) { return m->body_weldid[m->site_bodyid[site]]; }

// Entry of a link in the list of tendon t, appended when it is new. entry[link] is the last one of any tendon, -1:
// none.
static int tendon_link(SnModel *m, int t, int link, int *entry) {
  if (entry[link] >= m->tenlink_adr[t]) return entry[link];
  m->tenlink_link[m->ntenlink] = link;
  m->tenlink_tendon[m->ntenlink] = t;
  return entry[link] = m->ntenlink++;
}

// The links of every tendon, and the tendons of every link. next has nbody + 1 entries.
static void list_tendon_links(SnModel *m, int *next) {
  m->ntenlink = 0;
  for (int link = 0; link < m->nbody; ++link) next[link] = -1;
  for (int t = 0; t < m->ntendon; ++t) {
    m->tenlink_adr[t] = m->ntenlink;
    for (int s = m->ten_seg[t]; s < m->ten_seg[t + 1]; ++s)
      for (int i = 0; i < 2; ++i)
        m->seg_tenlink[2 * s + i] = tendon_link(m, t, site_link(m, m->seg_site[2 * s + i]), next);
    for (int k = m->ten_wseg[t]; k < m->ten_wseg[t + 1]; ++k) {
      for (int i = 0; i < 2; ++i)
        m->wseg_tenlink[3 * k + i] = tendon_link(m, t, site_link(m, m->wseg_site[2 * k + i]), next);
      m->wseg_tenlink[3 * k + 2] = tendon_link(m, t, m->body_weldid[m->geom_bodyid[m->wseg_geom[k]]], next);
    }
  }
  m->tenlink_adr[m->ntendon] = m->ntenlink;
  for (int k = 0; k < m->ntenlink; ++k) ++m->linkten_adr[m->tenlink_link[k] + 1];
  for (int link = 0; link < m->nbody; ++link) {
    m->linkten_adr[link + 1] += m->linkten_adr[link];
    next[link] = m->linkten_adr[link];
  }
  for (int k = 0; k < m->ntenlink; ++k) m->linkten[next[m->tenlink_link[k]]++] = k;
}

// The fixed tendons of every dof. next has nv entries.
static void list_fixed(SnModel *m, int *next) {
  for (int fill = 0; fill < 2; ++fill) {
    for (int t = 0; t < m->ntendon; ++t) {
      if (m->tendon_type[t] != SN_TENDON_FIXED) continue;
      for (int k = m->ten_J_rowadr[t]; k < m->ten_J_rowadr[t] + m->ten_J_rownnz[t]; ++k) {
        const int dof = m->ten_J_colind[k];
        if (!fill) {
          ++m->fixed_adr[dof + 1];
          continue;
        }
        m->fixed_entry[next[dof]] = k;
        m->fixed_tendon[next[dof]++] = t;
      }
    }
    for (int dof = 0; dof < m->nv && !fill; ++dof) {
      m->fixed_adr[dof + 1] += m->fixed_adr[dof];
      next[dof] = m->fixed_adr[dof];
    }
  }
  m->nfixed = m->fixed_adr[m->nv];
}

// Sorts segments that may wrap by type and rule, those that are alike in their own order.
static void order_wraps(SnModel *m) {
  int n = 0;
  for (int type = SN_WRAP_SPHERE; type <= SN_WRAP_CYLINDER; ++type)
    for (int rule = 0; rule <= SN_NSIDE; ++rule)
      for (int k = 0; k < m->nwseg; ++k) {
        const int its = m->wseg_side_site[k] >= 0 ? SN_NSIDE : m->wseg_rule[k];
        if (m->wseg_type[k] == type && its == rule) m->wseg_order[n++] = k;
      }
}

// What the adjoint sums by tendon and link, and by dof.
static SnCode setup_adjoint(SnModel *m, SnError *err) {
  const size_t most = 2 * (size_t)m->nseg + 3 * (size_t)m->nwseg;
  int *next = sn_model_alloc(m, sizeof(int) * (size_t)(m->nbody + m->nv + 1));
  bool ok = next != NULL;
#define ALLOC(field, n) ok = ok && (m->field = sn_model_alloc(m, sizeof *m->field * (n))) != NULL
  ALLOC(tenlink_adr, (size_t)m->ntendon + 1);
  ALLOC(tenlink_link, most);
  ALLOC(tenlink_tendon, most);
  ALLOC(seg_tenlink, 2 * (size_t)m->nseg);
  ALLOC(wseg_tenlink, 3 * (size_t)m->nwseg);
  ALLOC(linkten_adr, (size_t)m->nbody + 1);
  ALLOC(linkten, most);
  ALLOC(fixed_adr, (size_t)m->nv + 1);
  ALLOC(fixed_entry, (size_t)m->nJten);
  ALLOC(fixed_tendon, (size_t)m->nJten);
#undef ALLOC
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  list_tendon_links(m, next);
  list_fixed(m, next);
  return SN_OK;
}

SnCode sn_setup_tendon(SnModel *m, SnError *err) {
  PathCursor c = {0, 0, false};
  SnCode code = walk_all(m, &c, err);
  if (code != SN_OK) return code;
  m->nseg = c.nseg;
  m->nwseg = c.nwseg;
  m->nline = m->nseg + 2 * m->nwseg;
  const size_t nseg = (size_t)m->nseg, nwseg = (size_t)m->nwseg, nten = (size_t)m->ntendon;
  bool ok = true;
#define ALLOC(field, n) ok = ok && (m->field = sn_model_alloc(m, sizeof *m->field * (n))) != NULL
  ALLOC(seg_site, 2 * nseg);
  ALLOC(seg_scale, nseg);
  ALLOC(seg_root, nseg);
  ALLOC(wseg_site, 2 * nwseg);
  ALLOC(wseg_scale, nwseg);
  ALLOC(wseg_root, nwseg);
  ALLOC(wseg_geom, nwseg);
  ALLOC(wseg_type, nwseg);
  ALLOC(wseg_rule, nwseg);
  ALLOC(wseg_side, 3 * nwseg);
  ALLOC(wseg_side_site, nwseg);
  ALLOC(wseg_order, nwseg);
  ALLOC(wrap_seg, (size_t)m->nwrap);
  ALLOC(ten_seg, nten + 1);
  ALLOC(ten_wseg, nten + 1);
  ALLOC(ten_point0, nten);
  ALLOC(ten_const, nten);
  ALLOC(ten_J_fixed, (size_t)m->nJten);
  ALLOC(ten_root, nten);
#undef ALLOC
  if (!ok) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int i = 0; i < m->nwrap; ++i) m->wrap_seg[i] = -1;
  for (int t = 0; t < m->ntendon; ++t) m->ten_root[t] = tendon_root(m, t);
  c = (PathCursor){0, 0, true};
  code = walk_all(m, &c, err);
  if (code != SN_OK) return code;
  m->ten_seg[m->ntendon] = m->nseg;
  m->ten_wseg[m->ntendon] = m->nwseg;
  order_wraps(m);
  code = setup_arms(m, err);
  return code == SN_OK ? setup_adjoint(m, err) : code;
}

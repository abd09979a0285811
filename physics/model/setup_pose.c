// Which frames a step computes, and from where: everything that is welded is folded into its link.
//
// A body, geom or site welded to a link has a constant pose in the link's frame; a step applies one
// rigid motion and never walks the bodies in between. What hangs on the world is computed once, when a
// world is made (world.c). Of the rest, only frames that something reads are on a list.
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/model/model_private.h"

#define POSE_ALLOC(name, count) ((m->name = sn_model_alloc(m, sizeof *m->name * (size_t)(count))) != NULL)

// Frame (p, q) given in body's frame, expressed in the frame of the body's link (or of the world).
static void pose_in_link(const SnModel *m, int body, const sn_real *p, const sn_real *q, sn_real *pos, sn_real *quat) {
  if (m->body_weldid[body] == body) {
    sn_copy3(pos, p);
    sn_copy4(quat, q);
    return;
  }
  sn_mulmatvec3(pos, m->base_mat + 9 * body, p);
  sn_addto3(pos, m->base_pos + 3 * body);
  sn_mulquat(quat, m->base_quat + 4 * body, q);
}

// Pose of each body in its base (body_base): a link's in the link below it, a welded body's in its link.
static void pose_bodies(SnModel *m) {
  m->base_quat[0] = 1;
  sn_quat2mat(m->base_mat, m->base_quat);
  for (int i = 1; i < m->nbody; ++i) {
    pose_in_link(m, m->body_parentid[i], m->body_pos + 3 * i, m->body_quat + 4 * i, m->base_pos + 3 * i,
                 m->base_quat + 4 * i);
    sn_normalize4(m->base_quat + 4 * i);
    sn_quat2mat(m->base_mat + 9 * i, m->base_quat + 4 * i);
  }
}

// Axis, anchor and derivative of the turn of hinges that are the first joint of their link, seen from the link below.
static void pose_hinges(SnModel *m) {
  for (int j = 0; j < m->njnt; ++j) {
    const int i = m->jnt_bodyid[j];
    if (m->jnt_type[j] != SN_JNT_HINGE || m->body_jntadr[i] != j) continue;
    const sn_real *axis = m->jnt_axis + 3 * j, turn[4] = {0, axis[0], axis[1], axis[2]};
    sn_mulquat(m->hinge_quat + 4 * j, m->base_quat + 4 * i, turn);
    sn_mulmatvec3(m->hinge_axis + 3 * j, m->base_mat + 9 * i, axis);
    sn_mulmatvec3(m->hinge_anchor + 3 * j, m->base_mat + 9 * i, m->jnt_pos + 3 * j);
    sn_addto3(m->hinge_anchor + 3 * j, m->base_pos + 3 * i);
  }
}

// Frames of `count` objects (inertias, geoms, sites) in their links; link[i] is the link's body id.
static void pose_objects(const SnModel *m, int count, const int *bodyid, const sn_real *pos, const sn_real *quat,
                         int *link, sn_real *lpos, sn_real *lmat) {
  for (int i = 0; i < count; ++i) {
    const int b = bodyid ? bodyid[i] : i;
    sn_real q[4];
    link[i] = m->body_weldid[b];
    pose_in_link(m, b, pos + 3 * i, quat + 4 * i, lpos + 3 * i, q);
    sn_normalize4(q);
    sn_quat2mat(lmat + 9 * i, q);
  }
}

// inertia (xx yy zz xy xz yz) += that of a body: R diag(principal) R' and a point mass at offset d.
static void pose_add_inertia(sn_real *inertia, const sn_real *R, const sn_real *principal, sn_real mass,
                             const sn_real *d) {
  static const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
  const sn_real d2 = sn_dot3(d, d);
  for (int k = 0; k < 6; ++k) {
    const sn_real *a = R + 3 * row[k], *b = R + 3 * col[k];
    for (int e = 0; e < 3; ++e) inertia[k] += a[e] * principal[e] * b[e];
    inertia[k] += mass * ((row[k] == col[k] ? d2 : 0) - d[row[k]] * d[col[k]]);
  }
}

// Mass, centre of mass and inertia of each link, in its frame; weight that gravity compensation
// lifts and where; and the mass moment of what does not move below each root body.
static void pose_masses(SnModel *m) {
  for (int i = 1; i < m->nbody; ++i) {
    const int link = m->link_of_body[i];
    const sn_real mass = m->body_mass[i], lift = mass * m->body_gravcomp[i];
    m->link_mass[link] += mass;
    sn_addtoscl3(m->link_com + 3 * link, m->body_lpos + 3 * i, mass);
    m->link_lift[4 * link + 3] += lift;
    sn_addtoscl3(m->link_lift + 4 * link, m->body_lpos + 3 * i, lift);
  }
  for (int i = 1; i < m->nbody; ++i) {
    if (m->link_of_body[i] != i) continue;
    if (m->link_mass[i] < SN_MINVAL)
      sn_copy3(m->link_com + 3 * i, m->body_lpos + 3 * i);
    else
      sn_scale3(m->link_com + 3 * i, m->link_com + 3 * i, SN_R(1.0) / m->link_mass[i]);
    if (m->link_lift[4 * i + 3] != 0)
      sn_scale3(m->link_lift + 4 * i, m->link_lift + 4 * i, SN_R(1.0) / m->link_lift[4 * i + 3]);
  }
  for (int i = 1; i < m->nbody; ++i) {
    const int link = m->link_of_body[i];
    sn_real d[3];
    sn_sub3(d, m->body_lpos + 3 * i, m->link_com + 3 * link);
    if (link)
      pose_add_inertia(m->link_inertia + 6 * link, m->body_lmat + 9 * i, m->body_inertia + 3 * i, m->body_mass[i], d);
  }
  for (int r = 0; r < m->nroot; ++r)
    for (int i = 1; i < m->nbody; ++i)
      if (m->body_weldid[i] == 0 && m->body_rootid[i] == m->root_body[r])
        sn_addtoscl3(m->root_moment + 3 * r, m->body_lpos + 3 * i, m->body_mass[i]);
}

// Fills need_geom and need_site: 0 nobody reads the frame, 1 needed (of a site: the position), 2 a site's orientation
// too. What sensors and costs read they compute themselves (sensor.h).
static void pose_needs(SnModel *m) {
  int *geom = m->need_geom, *site = m->need_site;
  for (int i = 0; i < m->ngeom; ++i) geom[i] = m->need_all || m->geom_collides[i];
  for (int i = 0; i < m->nsite; ++i) site[i] = m->need_all ? 2 : 0;
  for (int s = 0; s < 2 * m->nseg; ++s) site[m->seg_site[s]] = sn_maxi(site[m->seg_site[s]], 1);
  for (int k = 0; k < m->nwseg; ++k) {
    const int sites[3] = {m->wseg_site[2 * k], m->wseg_site[2 * k + 1], m->wseg_side_site[k]};
    geom[m->wseg_geom[k]] = 1;
    for (int e = 0; e < 3; ++e)
      if (sites[e] >= 0) site[sites[e]] = sn_maxi(site[sites[e]], 1);
  }
  for (int i = 0; i < m->nactuator; ++i) {
    const int type = m->actuator_trntype[i], *id = m->actuator_trnid + 2 * i;
    const bool turns = type == SN_TRN_SO3 && id[1] >= 0;
    if (type != SN_TRN_SITE && type != SN_TRN_SLIDERCRANK && !turns) continue;
    site[id[0]] = 2;
    if (id[1] >= 0) site[id[1]] = 2;
  }
}

// Bodies, other than roots of links, whose subtree_com something asks for, and the last body of their subtrees.
static SnCode pose_coms(SnModel *m, SnError *err) {
  for (int i = 0; i < m->nbody; ++i) m->body_last[i] = i;
  for (int i = 1; i < m->nbody; ++i) {
    for (int a = m->body_parentid[i];; a = m->body_parentid[a]) {
      if (m->body_last[a] != i - 1)
        return sn_fail(err, SN_ERR_FORMAT, "model: the bodies below body %d are not contiguous", a);
      m->body_last[a] = i;
      if (a == 0) break;
    }
  }
  m->ncom = 0;
  for (int i = 0; i < m->nbody; ++i) {
    bool asked = m->need_all, root = false;
    for (int k = 0; k < m->nsensor; ++k)
      asked = asked || (m->sensor_type[k] == SN_SENS_SUBTREECOM && m->sensor_objid[k] == i);
    for (int r = 0; r < m->nroot; ++r) root = root || m->root_body[r] == i;
    if (asked && !root) m->com_list[m->ncom++] = i;
  }
  return SN_OK;
}

// Objects of a link in blocks of `width`: calls fill(m, block, place, object) for each place of each block; the last
// object of a link fills up its last block. Returns the number of blocks.
static int pose_blocks(SnModel *m, int count, const int *link, const int *need, int width, int *block_link,
                       void (*fill)(SnModel *m, int block, int place, int object)) {
  int nblock = 0;
  for (int k = 0; k < m->nlink; ++k) {
    int n = 0;
    for (int i = 0; i < count; ++i) {
      if (link[i] != m->level_body[k] || need[i] == 0) continue;
      const int block = nblock + n / width;
      block_link[block] = m->level_body[k];
      for (int s = n++ % width; s < width; ++s) fill(m, block, s, i);
    }
    nblock += (n + width - 1) / width;
  }
  return nblock;
}

static void pose_fill_site(SnModel *m, int block, int place, int site) {
  enum { N = SN_SITE_BLOCK };
  m->siteblock_site[N * block + place] = site;
  for (int e = 0; e < 3; ++e) m->siteblock_pos[N * (3 * block + e) + place] = m->site_lpos[3 * site + e];
}

static void pose_fill_geom(SnModel *m, int block, int place, int geom) {
  enum { N = SN_GEOM_BLOCK };
  m->geomblock_geom[N * block + place] = geom;
  for (int e = 0; e < 3; ++e) {
    sn_real *row = m->geomblock_frame + N * (12 * block + 4 * e) + place;
    for (int f = 0; f < 3; ++f) row[N * f] = m->geom_lmat[9 * geom + 3 * e + f];
    row[3 * N] = m->geom_lpos[3 * geom + e];
  }
}

SnCode sn_setup_needs(SnModel *m, SnError *err) {
  pose_needs(m);
  m->ngeomblock =
      pose_blocks(m, m->ngeom, m->link_of_geom, m->need_geom, SN_GEOM_BLOCK, m->geomblock_link, pose_fill_geom);
  m->nsiteblock =
      pose_blocks(m, m->nsite, m->link_of_site, m->need_site, SN_SITE_BLOCK, m->siteblock_link, pose_fill_site);
  m->nsiteframe = 0;
  for (int i = 0; i < m->nsite; ++i)
    if (m->link_of_site[i] > 0 && m->need_site[i] == 2) m->siteframe_list[m->nsiteframe++] = i;
  return pose_coms(m, err);
}

void sn_model_need_all(SnModel *m) {
  m->need_all = 1;
  sn_setup_needs(m, NULL);
}

// The arrays that sn_setup_needs fills.
static bool pose_alloc_needs(SnModel *m) {
  m->ngeomblockmax = m->ngeom / SN_GEOM_BLOCK + m->nlink;
  m->nsiteblockmax = m->nsite / SN_SITE_BLOCK + m->nlink;
  return POSE_ALLOC(need_geom, m->ngeom) && POSE_ALLOC(need_site, m->nsite) && POSE_ALLOC(body_last, m->nbody) &&
         POSE_ALLOC(com_list, m->nbody) && POSE_ALLOC(geomblock_link, m->ngeomblockmax) &&
         POSE_ALLOC(geomblock_geom, SN_GEOM_BLOCK * m->ngeomblockmax) &&
         POSE_ALLOC(geomblock_frame, 12 * SN_GEOM_BLOCK * m->ngeomblockmax) &&
         POSE_ALLOC(siteblock_link, m->nsiteblockmax) && POSE_ALLOC(siteblock_site, SN_SITE_BLOCK * m->nsiteblockmax) &&
         POSE_ALLOC(siteblock_pos, 3 * SN_SITE_BLOCK * m->nsiteblockmax) && POSE_ALLOC(siteframe_list, m->nsite);
}

SnModel *sn_model_view_all(const SnModel *m, SnError *err) {
  SnModel *all = malloc(sizeof *all);
  if (all) {
    *all = *m;
    all->block = NULL;
    all->nblock = 0;
  }
  if (!all || !pose_alloc_needs(all)) {
    sn_model_free(all);
    sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
    return NULL;
  }
  sn_model_need_all(all);
  return all;
}

SnCode sn_setup_pose(SnModel *m, SnError *err) {
  if (!POSE_ALLOC(base_pos, 3 * m->nbody) || !POSE_ALLOC(base_quat, 4 * m->nbody) ||
      !POSE_ALLOC(base_mat, 9 * m->nbody) || !POSE_ALLOC(link_of_body, m->nbody) ||
      !POSE_ALLOC(body_lpos, 3 * m->nbody) || !POSE_ALLOC(body_lmat, 9 * m->nbody) ||
      !POSE_ALLOC(link_of_geom, m->ngeom) || !POSE_ALLOC(geom_lpos, 3 * m->ngeom) ||
      !POSE_ALLOC(geom_lmat, 9 * m->ngeom) || !POSE_ALLOC(link_of_site, m->nsite) ||
      !POSE_ALLOC(site_lpos, 3 * m->nsite) || !POSE_ALLOC(site_lmat, 9 * m->nsite) ||
      !POSE_ALLOC(link_mass, m->nbody) || !POSE_ALLOC(link_com, 3 * m->nbody) ||
      !POSE_ALLOC(link_inertia, 6 * m->nbody) || !POSE_ALLOC(link_lift, 4 * m->nbody) ||
      !POSE_ALLOC(root_moment, 3 * m->nlink) || !POSE_ALLOC(hinge_quat, 4 * m->njnt) ||
      !POSE_ALLOC(hinge_axis, 3 * m->njnt) || !POSE_ALLOC(hinge_anchor, 3 * m->njnt) || !pose_alloc_needs(m))
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  pose_bodies(m);
  pose_hinges(m);
  pose_objects(m, m->nbody, NULL, m->body_ipos, m->body_iquat, m->link_of_body, m->body_lpos, m->body_lmat);
  pose_objects(m, m->ngeom, m->geom_bodyid, m->geom_pos, m->geom_quat, m->link_of_geom, m->geom_lpos, m->geom_lmat);
  pose_objects(m, m->nsite, m->site_bodyid, m->site_pos, m->site_quat, m->link_of_site, m->site_lpos, m->site_lmat);
  pose_masses(m);
  return SN_OK;
}

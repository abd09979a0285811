// Collision: which of the model's candidate pairs are near, and their contacts, in MuJoCo's order.
//
// The list of candidate pairs (derive_collision.c) is already in that order. The broad phase tests every pair's
// bounding spheres (a plane: its half space) and keeps the near ones by an exclusive scan, which keeps the
// order. The narrow phase takes them in chunks: one lane a pair writes its contacts to a slot of its own, a second
// scan over the counts places them in the list. Nothing depends on the number of lanes.
#include "physics/collide.h"
#include "physics/stages.h"
#include "physics/vec.h"

// True when the bounding spheres are no farther apart than reach.
SN_LOCAL bool collide_is_near(const SnModel *m, const SnWorld *w, int pair) {
  const int g1 = m->cpair_geom[2 * pair], g2 = m->cpair_geom[2 * pair + 1];
  sn_real d[3];
  sn_sub3(d, w->geom_xpos + 3 * g2, w->geom_xpos + 3 * g1);
  const sn_real bound = m->geom_rbound[g1] + m->geom_rbound[g2] + m->cpair_reach[pair];
  if (m->geom_type[g1] != SN_GEOM_PLANE) return sn_dot3(d, d) <= bound * bound;
  const sn_real *mat = w->geom_xmat + 9 * g1;
  return d[0] * mat[2] + d[1] * mat[5] + d[2] * mat[8] <= bound;
}

// Writes the contacts of a pair, without parameters; returns their number.
SN_LOCAL int collide_narrow(const SnModel *m, SnWorld *w, int pair, SnContact *con) {
  const int g1 = m->cpair_geom[2 * pair], g2 = m->cpair_geom[2 * pair + 1];
  const SnShape a = {w->geom_xpos + 3 * g1, w->geom_xmat + 9 * g1, m->geom_size + 3 * g1};
  const SnShape b = {w->geom_xpos + 3 * g2, w->geom_xmat + 9 * g2, m->geom_size + 3 * g2};
  const sn_real reach = m->cpair_reach[pair];
  switch ((SnCollider)m->cpair_collider[pair]) {
    case SN_COLLIDER_NONE:
      return 0;
    case SN_COLLIDER_PLANE_SPHERE:
      return sn_collide_plane_sphere(&a, &b, reach, con);
    case SN_COLLIDER_PLANE_CAPSULE:
      return sn_collide_plane_capsule(&a, &b, reach, con);
    case SN_COLLIDER_PLANE_CYLINDER:
      return sn_collide_plane_cylinder(&a, &b, reach, con);
    case SN_COLLIDER_PLANE_BOX:
      return sn_collide_plane_box(&a, &b, reach, con);
    case SN_COLLIDER_PLANE_CONVEX:
      return sn_collide_plane_convex(m, w, g1, g2, reach, con, m->cpair_max[pair]);
    case SN_COLLIDER_SPHERE_SPHERE:
      return sn_collide_sphere_sphere(&a, &b, reach, con);
    case SN_COLLIDER_SPHERE_CAPSULE:
      return sn_collide_sphere_capsule(&a, &b, reach, con);
    case SN_COLLIDER_SPHERE_CYLINDER:
      return sn_collide_sphere_cylinder(&a, &b, reach, con);
    case SN_COLLIDER_SPHERE_BOX:
      return sn_collide_sphere_box(&a, &b, reach, con);
    case SN_COLLIDER_CAPSULE_CAPSULE:
      return sn_collide_capsule_capsule(&a, &b, reach, con);
    case SN_COLLIDER_CAPSULE_BOX:
      return sn_collide_capsule_box(&a, &b, reach, con);
    case SN_COLLIDER_BOX_BOX:
      return sn_collide_box_box(&a, &b, reach, con);
    case SN_COLLIDER_CONVEX:
      return sn_collide_convex(m, w, g1, g2, reach, con, m->cpair_max[pair]);
  }
  return 0;
}

// Makes frame orthonormal from its normal and a wish for the first tangent (none: y, or z when the normal is near y).
SN_LOCAL void collide_complete_frame(sn_real *frame) {
  sn_real *t = frame + 3;
  sn_normalize3(frame);
  if (sn_dot3(t, t) < SN_R(0.25)) {
    const bool y = frame[1] < SN_R(0.5) && frame[1] > SN_R(-0.5);
    sn_set3(t, 0, y ? SN_R(1.0) : SN_R(0.0), y ? SN_R(0.0) : SN_R(1.0));
  }
  sn_addtoscl3(t, frame, -sn_dot3(frame, t));
  sn_normalize3(t);
  sn_cross(frame + 6, frame, t);
}

// A contact of the list from what a collider wrote and the parameters of its pair.
SN_LOCAL void collide_finish(const SnModel *m, int pair, const SnContact *raw, SnContact *con) {
  const int k = m->cpair_param[pair];
  const sn_real *p = m->conparam + SN_NCONPARAM * k;
  con->dist = raw->dist;
  sn_copy3(con->pos, raw->pos);
  sn_copy(con->frame, raw->frame, 6);
  collide_complete_frame(con->frame);
  con->includemargin = p[0];
  sn_copy(con->friction, p + 1, 5);
  sn_copy(con->solref, p + 6, SN_NREF);
  sn_copy(con->solreffriction, p + 8, SN_NREF);
  sn_copy(con->solimp, p + 10, SN_NIMP);
  con->mu = 0;
  con->dim = m->conparam_dim[k];
  con->geom[0] = m->cpair_geom[2 * pair];
  con->geom[1] = m->cpair_geom[2 * pair + 1];
  con->exclude = con->dist >= con->includemargin;
  con->efc_address = -1;
}

// Lists the near pairs in col_near, in order; returns their number.
SN_LOCAL int collide_broad(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int n = m->ncpair;
  SN_FOR(i, n) w->col_offset[i] = collide_is_near(m, w, i);
  SN_SYNC(lane);
  const int near = sn_compact(lane, w->col_offset, n);
  SN_FOR(i, n) {
    const int next = i + 1 < n ? w->col_offset[i + 1] : near;
    if (next > w->col_offset[i]) w->col_near[w->col_offset[i]] = i;
  }
  SN_SYNC(lane);
  return near;
}

// Collides n pairs of col_near from `start` on and appends their contacts at `base`; returns the new end of the list,
// which may exceed nconmax (what does not fit is not written).
SN_LOCAL int collide_chunk(const SnModel *m, SnWorld *w, SnLane *lane, int start, int n, int base) {
  const int *near = w->col_near + start;
  int *slot = w->col_slot, *count = w->col_count;
  SN_FOR(k, n) slot[k] = m->cpair_max[near[k]];
  SN_SYNC(lane);
  sn_compact(lane, slot, n);
  SN_FOR(k, n) count[k] = collide_narrow(m, w, near[k], w->col_contact + slot[k]);
  SN_SYNC(lane);
  const int total = sn_compact(lane, count, n);
  SN_FOR(k, n) {
    const int next = k + 1 < n ? count[k + 1] : total;
    for (int i = count[k]; i < next && base + i < m->nconmax; ++i)
      collide_finish(m, near[k], w->col_contact + slot[k] + i - count[k], w->contact + base + i);
  }
  SN_SYNC(lane);
  return base + total;
}

SN_FUNC void sn_collision(const SnModel *m, SnWorld *w, SnLane *lane) {
  int end = 0;
  if (!(m->opt.disableflags & (SN_DSBL_CONSTRAINT | SN_DSBL_CONTACT))) {
    const int near = collide_broad(m, w, lane);
    for (int start = 0; start < near; start += SN_COLLIDE_CHUNK)
      end = collide_chunk(m, w, lane, start, sn_mini(SN_COLLIDE_CHUNK, near - start), end);
  }
  SN_ONE(lane) {
    w->ncon[0] = sn_mini(end, m->nconmax);
    if (end > m->nconmax) *w->warn |= SN_WARN_CONTACT_FULL;
  }
  SN_SYNC(lane);
}

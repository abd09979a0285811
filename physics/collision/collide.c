// Collision: which of the model's candidate pairs are near, and their contacts, in MuJoCo's order.
//
// The list of candidate pairs (setup_collision.c) is already in that order. The broad phase tests the bounding spheres
// of every pair (a plane: its half space) and keeps the near ones by an exclusive scan, which keeps the order. The
// narrow phase takes them in chunks: one lane a pair writes its contacts to slots of its own, a second scan over the
// counts places them in the list. Nothing depends on the number of lanes.
//
// In a world with contacts from distance (SnCfd) pairs that take part also have a contact when they do not touch: their
// nearest points. With SnCfd.smooth boxes and cylinders on planes among them have contacts without choices instead,
// touching or not (collide_smooth.c).
//
// Contacts of the sigmoid (constraint/sigmoid.c) act within its reach, which is part of that of pairs, as MuJoCo's
// would in a gap.
#include "physics/base/vec.h"
#include "physics/collision/collide_private.h"
#include "physics/collision/collision.h"

// True when geom g2 of a pair is within reach of the half space of its plane g1.
SN_LOCAL bool collide_plane_is_near(const SnModel *m, const SnWorld *w, int pair) {
  const int g1 = m->cpair_geom[2 * pair], g2 = m->cpair_geom[2 * pair + 1];
  const sn_real *mat = w->geom_xmat + 9 * g1;
  const sn_real normal[3] = {mat[2], mat[5], mat[8]};
  sn_real d[3];
  sn_sub3(d, w->geom_xpos + 3 * g2, w->geom_xpos + 3 * g1);
  return sn_dot3(d, normal) <= m->geom_rbound[g2] + m->cpair_reach[pair];
}

// The near ones of n <= SN_COLLIDE_BLOCK pairs from `start` on, as bits: bounding spheres no farther apart than reach.
SN_INLINE int collide_near_bits(const SnModel *m, const SnWorld *w, int start, int n) {
  const int *SN_RESTRICT geom = m->cpair_geom + 2 * start;
  const sn_real *SN_RESTRICT bound = m->cpair_bound + start, *SN_RESTRICT pos = w->geom_xpos;
  int bits = 0, plane = 0;
  for (int k = 0; k < n; ++k) {
    const sn_real *p1 = pos + 3 * (size_t)geom[2 * k], *p2 = pos + 3 * (size_t)geom[2 * k + 1];
    const sn_real x = p2[0] - p1[0], y = p2[1] - p1[1], z = p2[2] - p1[2];
    bits |= (x * x + y * y + z * z <= bound[k]) << k;
    plane |= bound[k] < 0;
  }
  for (int k = 0; plane && k < n; ++k)
    if (bound[k] < 0) bits |= collide_plane_is_near(m, w, start + k) << k;
  return bits;
}

// The same of pairs that may meet before the step is over, besides.
SN_LOCAL int collide_speculative_bits(const SnModel *m, const SnWorld *w, int start, int n) {
  int bits = collide_near_bits(m, w, start, n);
  for (int k = 0; k < n; ++k)
    if (!(bits >> k & 1)) bits |= sn_speculate_is_near(m, w, start + k) << k;
  return bits;
}

// True in a world whose contacts are foreseen: without contacts from distance.
SN_LOCAL bool collide_speculates(const SnModel *m, const SnWorld *w) { return sn_has_speculative(m) && !w->cfd->on; }

// True when a pair makes rows at a distance.
SN_LOCAL bool collide_takes_part(const SnModel *m, const SnWorld *w, int pair) {
  return w->cfd->on && pair < m->ncpair && (!w->cfd->pair || w->cfd->pair[pair]);
}

// Near pairs of a world with CFD: those near, and those that take part and may be within its reach of touching.
SN_LOCAL int collide_cfd_bits(const SnModel *m, const SnWorld *w, int start, int n) {
  const int *SN_RESTRICT geom = m->cpair_geom + 2 * start;
  const sn_real *SN_RESTRICT bound = m->cpair_bound + start, *SN_RESTRICT pos = w->geom_xpos;
  const sn_real reach = w->cfd->solimp[2];
  int bits = 0;
  for (int k = 0; k < n; ++k) {
    const sn_real *p1 = pos + 3 * (size_t)geom[2 * k], *p2 = pos + 3 * (size_t)geom[2 * k + 1];
    const sn_real x = p2[0] - p1[0], y = p2[1] - p1[1], z = p2[2] - p1[2];
    // distance <= sqrt(bound) + reach, without the root; a plane (negative bound) always passes
    const sn_real over = x * x + y * y + z * z - bound[k] - reach * reach;
    bits |= (over <= 0 || over * over <= 4 * reach * reach * bound[k] || bound[k] < 0) << k;
  }
  for (int k = 0; k < n; ++k)
    if ((bits >> k & 1) && !collide_takes_part(m, w, start + k) && !collide_near_bits(m, w, start + k, 1))
      bits &= ~(1 << k);
  return bits;
}

// The contacts of a pair within reach, by a collider.
SN_LOCAL int collide_narrow(const SnModel *m, const SnWorld *w, int pair, SnCollider collider, sn_real reach, int max,
                            SnContact *con) {
  const SnPairInfo p = sn_pair_info(m, pair);
  const SnShape a = sn_shape(m, w, p.geom[0]), b = sn_shape(m, w, p.geom[1]);
  return sn_collide_shapes(m, &a, &b, collider, reach, max, con);
}

#if !defined(SN_PACK)
SN_FUNC int sn_collide_pair(const SnModel *m, const SnWorld *w, int pair, SnContact *con) {
  const SnPairInfo p = sn_pair_info(m, pair);
  return collide_narrow(m, w, pair, p.collider, p.reach, p.max, con);
}
#endif

// The nearest points of an ellipsoid and another smooth shape, in closed form but for a root.
SN_LOCAL int collide_ellipsoid(const SnModel *m, const SnShape *a, const SnShape *b, sn_real reach, SnContact *con) {
  SnNearest near;
  if (!sn_ellipsoid_nearest(m->geom_type[a->geom], a, b, &near) || near.dist > reach) return 0;
  sn_real mid[3];
  sn_add3(mid, near.x1, near.x2);
  sn_scale3(mid, mid, SN_R(0.5));
  sn_contact_write(con, near.dist, mid, near.normal, 0);
  return 1;
}

// What finds the nearest points of a pair that does not touch.
SN_LOCAL SnCollider collide_far_collider(const SnModel *m, int pair) {
  const SnPairInfo p = sn_pair_info(m, pair);
  return sn_far_collider(p.collider, m->geom_type[p.geom[1]]);
}

// The nearest points of a pair that does not touch, if they are within reach; else returns 0.
SN_LOCAL int collide_far(const SnModel *m, SnWorld *w, int pair, sn_real reach, SnContact *con) {
  const SnCollider own = collide_far_collider(m, pair);
  if (own == SN_COLLIDER_ELLIPSOID) {
    const SnShape a = sn_shape(m, w, m->cpair_geom[2 * pair]), b = sn_shape(m, w, m->cpair_geom[2 * pair + 1]);
    return collide_ellipsoid(m, &a, &b, reach, con);
  }
  if (own == SN_COLLIDER_CONVEX || own == SN_COLLIDER_HFIELD_FAR) return collide_narrow(m, w, pair, own, reach, 1, con);
  const int n = collide_narrow(m, w, pair, own, reach, m->cpair_max[pair], con);
  if (n > 0) sn_contact_nearest(con, n);
  return n > 0;
}

// True when a pair collides without choices (collide_smooth.c).
SN_LOCAL bool collide_is_smooth(const SnModel *m, const SnWorld *w, int pair) {
  return w->cfd->smooth > 0 && collide_takes_part(m, w, pair) && sn_has_smooth(sn_pair_info(m, pair).collider);
}

// The length of the smoothing, of which formulas take cubes.
SN_INLINE sn_real collide_smoothing(const SnWorld *w) { return sn_max((sn_real)w->cfd->smooth, SN_R(1e-6)); }

// Contacts without choices, touching or not.
SN_LOCAL int collide_smooth_pair(const SnModel *m, const SnWorld *w, int pair, const SnShape *a, const SnShape *b,
                                 SnContact *con) {
  const sn_real margin = m->conparam[SN_NCONPARAM * m->cpair_param[pair]];
  const SnSmooth smooth = {margin, margin + w->cfd->solimp[2], collide_smoothing(w)};
  return sn_collide_smooth(a, b, (SnCollider)m->cpair_collider[pair], &smooth, con);
}

// The same in a world with CFD: a pair that does not touch has one contact, at its nearest points. A pair that touches
// drops those of its contacts that make no rows.
SN_LOCAL int collide_pair_cfd(const SnModel *m, SnWorld *w, int pair, SnContact *con) {
  if (pair >= m->ncpair) return sn_collide_pair(m, w, pair, con);
  const sn_real margin = m->conparam[SN_NCONPARAM * m->cpair_param[pair]];
  if (collide_is_smooth(m, w, pair)) {
    const SnShape a = sn_shape(m, w, m->cpair_geom[2 * pair]), b = sn_shape(m, w, m->cpair_geom[2 * pair + 1]);
    return collide_smooth_pair(m, w, pair, &a, &b, con);
  }
  const int near = collide_near_bits(m, w, pair, 1) ? sn_collide_pair(m, w, pair, con) : 0;
  if (!collide_takes_part(m, w, pair)) return near;
  int touching = 0;
  for (int i = 0; i < near; ++i)
    if (con[i].dist < margin) con[touching++] = con[i];
  if (touching) return touching;
  return collide_far(m, w, pair, margin + w->cfd->solimp[2], con);
}

// Makes frame orthonormal from its normal and a hint for the first tangent (none: y, or z when the normal is near y).
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

// Adjoint of the completion: bars of the unit normal and of the hint (NULL: there was none, the tangent followed a
// fixed axis; where the choice of the axis switches, the one taken). With the hint v, u = v - n (n.v), t = u / |u| and
// s = n x t. A hint along the normal (sine below SN_STEADY_SINE) leaves the tangents to turn with the normal, not about
// it.
SN_LOCAL void collide_frame_vjp(const sn_real *frame, const sn_real *hint, const sn_real *frame_bar,
                                sn_real *normal_bar, sn_real *hint_bar) {
  const sn_real *n = frame, *t = frame + 3;
  const bool y = n[1] < SN_R(0.5) && n[1] > SN_R(-0.5);
  const sn_real fixed[3] = {0, y ? SN_R(1.0) : SN_R(0.0), y ? SN_R(0.0) : SN_R(1.0)};
  const sn_real *v = hint ? hint : fixed;
  sn_real t_bar[3], u_bar[3], r[3];
  sn_cross(r, t, frame_bar + 6);
  sn_add3(normal_bar, frame_bar, r);
  sn_cross(r, frame_bar + 6, n);
  sn_add3(t_bar, frame_bar + 3, r);
  sn_zero(hint_bar, 3);
  const sn_real length = sn_dot3(v, t);  // of u
  if (length < SN_STEADY_SINE) {
    sn_addtoscl3(normal_bar, t, -sn_dot3(n, t_bar));
    return;
  }
  sn_direction_vjp(u_bar, t, length, t_bar);
  const sn_real along = sn_dot3(n, u_bar), level = sn_dot3(n, v);
  for (int i = 0; i < 3; ++i) normal_bar[i] -= level * u_bar[i] + along * v[i];
  if (hint)
    for (int i = 0; i < 3; ++i) hint_bar[i] = u_bar[i] - along * n[i];
}

// The collider that made a contact.
SN_LOCAL SnCollider collide_made_by(const SnModel *m, const SnWorld *w, const SnContact *con) {
  const bool far = con->cfd == SN_CONTACT_FAR && !collide_is_smooth(m, w, con->pair);
  return far ? collide_far_collider(m, con->pair) : sn_pair_info(m, con->pair).collider;
}

// A contact of the list from what a collider wrote and the parameters of its pair.
SN_LOCAL void collide_finish(const SnModel *m, const SnWorld *w, int pair, const SnContact *raw, SnContact *con) {
  const SnPairInfo info = sn_pair_info(m, pair);
  const int k = info.param;
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
  con->geom[0] = info.geom[0];
  con->geom[1] = info.geom[1];
  // where it pulls it makes a row in the gap, too, of its normal alone
  const bool gap = con->dist >= con->includemargin && raw->feature < SN_FEATURE_IMPACT;
  con->adhesion = p[15];
  con->exclude = gap && con->adhesion == 0 && !sn_has_sigmoid(m);
  if (gap && con->adhesion != 0) con->dim = 1;
  con->cfd = SN_CONTACT_HARD;
  con->efc_address = -1;
  con->pair = pair;
  con->feature = raw->feature;
  if (collide_takes_part(m, w, pair)) {
    con->cfd = gap ? SN_CONTACT_FAR : SN_CONTACT_TOUCHES;
    con->exclude = 0;
    if (gap) con->dim = m->conparam_dim[k];
    if (gap) con->adhesion = 0;  // from a distance nothing pulls
    if (con->cfd == SN_CONTACT_FAR && !w->cfd->friction) con->dim = 1;
  }
  const bool corners = sn_has_corners(collide_made_by(m, w, con));
  for (int i = 0; i < 6; ++i) con->corner[i] = corners ? raw->corner[i] : -1;
}

// Lists the near pairs in col_near, in order; returns their number. A block of pairs at a time, as bits of an int.
SN_LOCAL int collide_broad(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int n = m->ncpair, nblock = (n + SN_COLLIDE_BLOCK - 1) / SN_COLLIDE_BLOCK;
  const bool speculates = collide_speculates(m, w);
  SN_FOR(b, nblock) {
    const int start = b * SN_COLLIDE_BLOCK;
    // the whole block is a case of its own so that the compiler unrolls it
    const int bits = w->cfd->on   ? collide_cfd_bits(m, w, start, sn_mini(SN_COLLIDE_BLOCK, n - start))
                     : speculates ? collide_speculative_bits(m, w, start, sn_mini(SN_COLLIDE_BLOCK, n - start))
                     : start + SN_COLLIDE_BLOCK <= n ? collide_near_bits(m, w, start, SN_COLLIDE_BLOCK)
                                                     : collide_near_bits(m, w, start, n - start);
    int count = 0;
    for (int rest = bits; rest; rest &= rest - 1) ++count;
    w->col_bits[b] = bits;
    w->col_offset[b] = count;
  }
  SN_SYNC(lane);
  const int near = sn_compact(lane, w->col_offset, nblock);
  SN_FOR(b, nblock) {
    int at = w->col_offset[b];
    for (int bits = w->col_bits[b], i = b * SN_COLLIDE_BLOCK; bits; bits >>= 1, ++i)
      if (bits & 1) w->col_near[at++] = i;
  }
  SN_SYNC(lane);
  return near;
}

// The slots of pair k of a chunk.
SN_INLINE SnContact *collide_slots(const SnModel *m, const SnWorld *w, int k) {
  return w->col_contact + (size_t)m->ncollideslot * (size_t)k;
}

// The pair that contact i comes from: the last of n whose first contact is not behind it.
SN_INLINE int collide_owner(const int *first, int n, int i) {
  int low = 0;
  for (int high = n; high - low > 1;) {
    const int middle = (low + high) / 2;
    if (first[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Collides n pairs of col_near from `start` on and appends their contacts at `base`; returns the new end of the list,
// which may exceed nconmax (what does not fit is not written).
SN_LOCAL int collide_chunk(const SnModel *m, SnWorld *w, SnLane *lane, int start, int n, int base) {
  const int *near = w->col_near + start;
  int *count = w->col_count;
  const bool cfd = w->cfd->on != 0, speculates = collide_speculates(m, w);
  SN_FOR(k, n) {
    SnContact *con = collide_slots(m, w, k);
    count[k] = cfd ? collide_pair_cfd(m, w, near[k], con) : sn_collide_pair(m, w, near[k], con);
    if (speculates) count[k] = sn_speculate(m, w, near[k], con, count[k]);
  }
  SN_SYNC(lane);
  const int total = sn_compact(lane, count, n);
  SN_FOR(i, sn_mini(total, m->nconmax - base)) {
    const int k = collide_owner(count, n, i);
    collide_finish(m, w, near[k], collide_slots(m, w, k) + i - count[k], w->contact + base + i);
  }
  SN_SYNC(lane);
  return base + total;
}

// Takes those of `near` pairs of col_near out that a sleeping tree makes with static or sleeping bodies; returns how
// many are left.
SN_LOCAL int collide_awake(const SnModel *m, SnWorld *w, SnLane *lane, int near) {
  SN_ONE(lane) {
    int n = 0;
    for (int i = 0; i < near; ++i) {
      const SnPairInfo p = sn_pair_info(m, w->col_near[i]);
      if (!sn_pair_asleep(m, w, p.geom[0], p.geom[1])) w->col_near[n++] = w->col_near[i];
    }
    w->col_offset[0] = n;
  }
  SN_SYNC(lane);
  return w->col_offset[0];
}

#if !defined(SN_PACK)
SN_FUNC bool sn_collide_is_near(const SnModel *m, const SnWorld *w, int pair) {
  return collide_near_bits(m, w, pair, 1) != 0;
}

SN_FUNC void sn_collision(const SnModel *m, SnWorld *w, SnLane *lane) {
  int end = 0;
  const bool still = sn_any_asleep(m, w) && w->nasleep[0] == m->ntree && m->nmocap == 0;  // nothing moves at all
  if (!still && !(m->opt.disableflags & (SN_DSBL_CONSTRAINT | SN_DSBL_CONTACT))) {
    const bool speculates = collide_speculates(m, w);
    const bool sweep = m->nsweep > 0 && (m->unlisted || (!w->cfd->on && !speculates));
    if (speculates) sn_speculate_begin(m, w, lane);
    const int found = sweep ? sn_sweep(m, w, lane) : collide_broad(m, w, lane);
    const int near = sn_any_asleep(m, w) ? collide_awake(m, w, lane, found) : found;
    if (speculates) sn_speculate_order(m, w, lane, near);
    for (int start = 0; start < near; start += m->ncollide)
      end = collide_chunk(m, w, lane, start, sn_mini(m->ncollide, near - start), end);
  }
  SN_ONE(lane) {
    w->ncon[0] = sn_mini(end, m->nconmax);
    if (end > m->nconmax) *w->warn |= SN_WARN_CONTACT_FULL;
  }
  SN_SYNC(lane);
}

// Adds the torque and force (6) on each geom of a contact, about their own centres.
SN_LOCAL void collide_narrow_vjp(const SnModel *m, const SnWorld *w, const SnContact *con, const SnContactBar *bar,
                                 sn_real *wrench) {
  const SnShape a = sn_shape(m, w, con->geom[0]), b = sn_shape(m, w, con->geom[1]);
  if (w->cfd->surrogate)
    sn_collide_surrogate_vjp(&a, &b, con, bar, wrench);
  else if (con->feature < 0)
    sn_collide_smooth_vjp(&a, &b, collide_made_by(m, w, con), collide_smoothing(w), con, bar, wrench);
  else
    sn_collide_shapes_vjp(m, &a, &b, collide_made_by(m, w, con), sn_pair_info(m, con->pair).reach, con, bar, wrench);
}

SN_FUNC void sn_contact_vjp(const SnModel *m, const SnWorld *w, const SnContact *con, const sn_real *con_bar,
                            const sn_real *omega, sn_real *wrench, sn_real *twist) {
  SnContactBar bar = {.dist = con_bar[0], .pos = {con_bar[1], con_bar[2], con_bar[3]}};
  const bool impact = con->feature >= SN_FEATURE_IMPACT;
  const bool hinted = !impact && sn_pair_info(m, con->pair).collider == SN_COLLIDER_PLANE_CAPSULE;
  sn_real hint[3];
  if (hinted) sn_shape_axis(hint, w->geom_xmat + 9 * con->geom[1]);
  collide_frame_vjp(con->frame, hinted ? hint : NULL, con_bar + 4, bar.normal, bar.tangent_hint);
  sn_zero(wrench, 12);
  if (impact)
    sn_impact_vjp(m, w, con, &bar, omega, wrench, twist);
  else
    collide_narrow_vjp(m, w, con, &bar, wrench);
  for (int side = 0; side < 2; ++side) {  // torque about the origin of twists
    const int g = con->geom[side];
    sn_real arm[3], t[3];
    sn_sub3(arm, w->geom_xpos + 3 * g, sn_twist_origin(m, w, m->geom_bodyid[g]));
    sn_cross(t, arm, wrench + 6 * side + 3);
    sn_addto3(wrench + 6 * side, t);
  }
}
#endif

// True when something depends on contact i.
SN_INLINE bool collide_is_wanted(const SnAdjoint *a, int i) {
  bool wanted = sn_any(a->con_dist_bar[i]);
  for (int k = 0; k < 3; ++k) wanted = wanted || sn_any(a->con_pos_bar[3 * i + k]);
  for (int k = 0; k < 9; ++k) wanted = wanted || sn_any(a->con_frame_bar[9 * i + k]);
  return wanted;
}

// The wrench of contact i on the links of its geoms.
SN_LOCAL void collide_contact_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i) {
  const SnContact *con = w->contact + i;
  const bool impact = con->feature >= SN_FEATURE_IMPACT;
  sn_real omega[6] = {0};
  for (int k = 0; impact && k < 6; ++k)
    omega[k] = sn_column(sn_twist(m, a, m->geom_bodyid[con->geom[k / 3]], SN_VEL)[k % 3], 0);
  for (int c = 0; c < SN_COLUMNS; ++c) {
    sn_real bar[13], wrench[12], twist[12];
    bar[0] = sn_column(a->con_dist_bar[i], c);
    for (int k = 0; k < 3; ++k) bar[1 + k] = sn_column(a->con_pos_bar[3 * i + k], c);
    for (int k = 0; k < 9; ++k) bar[4 + k] = sn_column(a->con_frame_bar[9 * i + k], c);
    sn_contact_vjp(m, w, con, bar, omega, wrench, twist);
    for (int k = 0; k < 12; ++k) sn_set_column(a->con_wrench + 12 * i + k, c, wrench[k]);
    for (int k = 0; impact && k < 12; ++k)
      sn_set_column(a->con_twist_bar + 36 * i + 18 * (k / 6) + 12 + k % 6, c, twist[k]);
  }
}

// What a contact before impact owes to the velocity of the body on a side.
SN_LOCAL void collide_velocity_vjp(const SnModel *m, const SnWorld *w, SnAdjoint *a, int i, int side) {
  const SnContact *con = w->contact + i;
  if (con->feature < SN_FEATURE_IMPACT) return;
  sn_bar *to = sn_twist_bar(m, a, m->geom_bodyid[con->geom[side]], SN_VEL);
  for (int e = 0; e < 6; ++e) to[e] += a->con_twist_bar[36 * i + 18 * side + 12 + e];
}

#if defined(SN_MODEL_BARS)
// Finds contact `con` again among those that its pair has with other sizes of geom `side`: the one of the same feature
// that is nearest. Returns false where it is gone.
SN_LOCAL bool collide_resized(const SnModel *m, const SnWorld *w, const SnContact *con, int side, const sn_real *size,
                              SnContact *to) {
  SnShape shape[2] = {sn_shape(m, w, con->geom[0]), sn_shape(m, w, con->geom[1])};
  SnContact found[SN_COLLIDE_SLOTS];
  const SnCollider collider = collide_made_by(m, w, con);
  const SnPairInfo pair = sn_pair_info(m, con->pair);
  const sn_real reach = sn_max(pair.reach, con->dist) + SN_R(1e-3);
  sn_real nearest = SN_R(1e30);
  int n = 0;
  shape[side].size = size;
  if (collider == SN_COLLIDER_HFIELD || collider == SN_COLLIDER_HFIELD_FAR)
    n = sn_hfield_again(m, shape, shape + 1, pair.reach, collider == SN_COLLIDER_HFIELD_FAR, con->feature, found);
  else if (con->feature < 0)
    n = collide_smooth_pair(m, w, con->pair, shape, shape + 1, found);
  else if (con->cfd == SN_CONTACT_FAR && collider == SN_COLLIDER_CONVEX)
    n = sn_convex_nearest(m, shape, shape + 1, reach, found);
  else if (collider == SN_COLLIDER_ELLIPSOID)
    n = collide_ellipsoid(m, shape, shape + 1, reach, found);
  else
    n = sn_collide_shapes(m, shape, shape + 1, collider, reach, pair.max, found);
  for (int i = 0; i < n; ++i) {
    sn_real d[3];
    sn_sub3(d, found[i].pos, con->pos);
    if ((collider != SN_COLLIDER_CONVEX && found[i].feature != con->feature) || sn_norm3(d) >= nearest) continue;
    nearest = sn_norm3(d);
    *to = found[i];
  }
  if (nearest >= SN_R(1e30)) return false;
  collide_complete_frame(to->frame);
  return true;
}

// Sizes of the geoms of contact i, by central differences of its collider alone.
SN_LOCAL void collide_size_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i) {
  const SnContact *con = w->contact + i;
  for (int side = 0; side < 2; ++side) {
    const int g = con->geom[side];
    const sn_real *size = m->geom_size + 3 * g;
    if (!sn_model_bar(a)->geom_sized[g]) continue;
    for (int k = 0; k < 3; ++k) {
      SnContact end[2];
      sn_real moved[3];
      sn_bar sum = {0};
      const sn_real h = SN_DIFFERENCE * size[k];
      if (size[k] == 0) continue;
      bool found = true;
      for (int e = 0; e < 2; ++e) {
        sn_copy3(moved, size);
        moved[k] += e == 0 ? h : -h;
        found = found && collide_resized(m, w, con, side, moved, end + e);
      }
      if (!found) continue;
      sum += a->con_dist_bar[i] * (end[0].dist - end[1].dist);
      for (int e = 0; e < 3; ++e) sum += a->con_pos_bar[3 * i + e] * (end[0].pos[e] - end[1].pos[e]);
      for (int e = 0; e < 9; ++e) sum += a->con_frame_bar[9 * i + e] * (end[0].frame[e] - end[1].frame[e]);
      sn_model_bar(a)->geom_size[3 * g + k] += sum / (2 * h);
    }
  }
}

// Frames and sizes of the geoms of contact i by the model.
SN_LOCAL void collide_contact_model_vjp(const SnModel *m, const SnWorld *w, const SnAdjoint *a, int i) {
  const SnContact *con = w->contact + i;
  for (int side = 0; side < 2; ++side) {
    const int g = con->geom[side];
    const sn_bar *wrench = a->con_wrench + 12 * i + 6 * side;
    sn_real arm[3];
    sn_bar t[3], *to = sn_model_bar(a)->geom_wrench + 6 * g;
    sn_sub3(arm, sn_twist_origin(m, w, m->geom_bodyid[g]), w->geom_xpos + 3 * g);
    sn_cross(t, arm, wrench + 3);
    sn_addto3(to, t);
    for (int e = 0; e < 6; ++e) to[e] += wrench[e];
  }
  if (sn_model_bar(a)->geom_size) collide_size_model_vjp(m, w, a, i);
}
#endif

// One lane a contact; then one a link, which adds up its contacts in their order.
SN_FUNC void sn_collision_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  const int n = w->ncon[0];
  SN_SYNC(lane);
#if defined(SN_SERIAL)
  for (int i = 0; i < n; ++i) {
    if (!collide_is_wanted(a, i)) continue;
    collide_contact_vjp(m, w, a, i);
    for (int side = 0; side < 2; ++side) {
      sn_bar *wrench = sn_body_wrench(m, a, m->geom_bodyid[w->contact[i].geom[side]]);
      for (int e = 0; e < 6; ++e) wrench[e] += a->con_wrench[12 * i + 6 * side + e];
      collide_velocity_vjp(m, w, a, i, side);
    }
  }
#else
  SN_FOR(i, n)
  if (collide_is_wanted(a, i)) collide_contact_vjp(m, w, a, i);
  SN_SYNC(lane);
  SN_FOR(b, m->nbody)
  for (int i = 0; i < n; ++i)
    for (int side = 0; side < 2; ++side) {
      const int link = m->link_of_body[m->geom_bodyid[w->contact[i].geom[side]]];
      if (link != b || !collide_is_wanted(a, i)) continue;
      for (int e = 0; e < 6; ++e) a->wrench[6 * b + e] += a->con_wrench[12 * i + 6 * side + e];
      collide_velocity_vjp(m, w, a, i, side);
    }
#endif
#if defined(SN_MODEL_BARS)
  SN_ONE(lane) {
    for (int i = 0; sn_model_bar(a) && i < n; ++i)
      if (collide_is_wanted(a, i)) collide_contact_model_vjp(m, w, a, i);
  }
#endif
  SN_SYNC(lane);
}

// Speculative contacts: of geoms that do not touch yet, but will within the step (flag speculative; MuJoCo's manual,
// Computation, Speculative contacts). They keep what is fast from passing through what is thin.
//
// Who is swept. Over a step h the centre of a geom moves by s = h v and its frame turns by w = h omega. No point of it
// moves farther than |s| + |w| r, r the radius of its bounding sphere; of a sphere a turn moves nothing. A pair is fast
// when that is, of one of them, at least half of the least width of either's bounding box. It is swept where no contact
// within the margin was found, and the bounding spheres come that near on their straight ways.
//
// Time of impact, by conservative advancement (Mirtich 1996). After the fraction t of the step the geoms are d apart
// along the unit normal n. Since no point closes along n faster than
//
//   c = n (s1 - s2) + |w1| r1 + |w2| r2,
//
// they may advance by (d - d*) / c before they are d* apart. The target d* lies a little above the margin m:
// d* = m + 0.02 (d(0) - m). What is found is an iterate, not a root: the first with d <= m + 0.03 (d(0) - m). A pair
// that could not reach the margin at the end of the step, however its points moved, is left alone. After 16 advances
// one more is made, at the rate of the nearest points themselves, for the time alone: the geoms stay where they are.
//
// Contacts. Those of the geoms where the last advance has left them, mapped back to where the geoms are: with x1, x2
// the points of both at their start, the contact lies at (l1 x1 + l2 x2) / (l1 + l2), l the most that either moves. Its
// normal is that of the last advance. What stands in the way takes it away: a geom that could touch the one of the two
// that moves farther, but does not yet, and is met on the straight line from its point at the start to where that is at
// impact.
//
// Distance. A row's acceleration is a = b v + k (m - dist) along the normal, v the speed of approach. For h a to leave
// t v of it, so that the surfaces meet at the end of the step,
//
//   dist = m - (1 - t - h b) / (h^2 k) h v.
//
// v is the speed of the nearest points at the impact, or what they have closed by so far over t, whichever is more.
// Without stiffness dist is what has full impedance: m less the width of solimp. All contacts of a pair have one dist.
#include "physics/collision/speculative_private.h"

#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/collision/convex_private.h"
#include "physics/collision/feature_private.h"
#include "physics/collision/ray.h"

// The part of the first clearance that is near enough.
#define SPEC_FOUND SN_R(0.03)
// By how much more than they need the shapes are inflated for the contacts at the impact [m].
#define SPEC_REACH SN_R(1e-6)

#if !defined(SN_PACK)
// Displacement, turn and travel of a geom over the next step.
SN_LOCAL void spec_step_of(const SnModel *m, SnWorld *w, int g) {
  const int body = m->geom_bodyid[g];
  const sn_real h = sn_timestep(m, w), *origin = w->subtree_com + 3 * m->body_rootid[m->link_of_body[body]];
  sn_real *step = w->geom_step + SN_GEOM_STEP * g, twist[6] = {0}, arm[3], r[3];
  sn_zero(step, SN_GEOM_STEP);
  if (m->chain_adr[body] == m->chain_adr[body + 1]) return;
  for (int i = m->chain_adr[body]; i < m->chain_adr[body + 1]; ++i) {
    const int d = m->chain_dof[i];
    for (int e = 0; e < 6; ++e) twist[e] += w->cdof[6 * d + e] * w->qvel[d];
  }
  sn_sub3(arm, w->geom_xpos + 3 * g, origin);
  sn_cross(r, twist, arm);
  sn_addto3(r, twist + 3);
  sn_scale3(step, r, h);
  sn_scale3(step + 3, twist, m->geom_type[g] == SN_GEOM_SPHERE ? 0 : h);
  step[6] = sn_norm3(step) + sn_norm3(step + 3) * m->geom_rbound[g];
}

SN_FUNC void sn_speculate_begin(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(g, m->ngeom)
  if (m->geom_collides[g]) spec_step_of(m, w, g);
  SN_SYNC(lane);
}

SN_FUNC sn_real sn_geom_thickness(const SnModel *m, int geom) {
  const sn_real *half = m->geom_aabb + 6 * geom + 3;
  return m->geom_type[geom] == SN_GEOM_PLANE ? SN_MAXVAL : sn_min(half[0], sn_min(half[1], half[2]));
}

// True when the bounding spheres of a pair come within its reach on their ways; of a plane the half space.
SN_LOCAL bool spec_spheres_meet(const SnModel *m, const SnWorld *w, const SnPairInfo *p) {
  const int a = p->geom[0], b = p->geom[1];
  const sn_real *s1 = sn_geom_step(w, a), *s2 = sn_geom_step(w, b);
  sn_real d[3], v[3], normal[3];
  sn_sub3(d, w->geom_xpos + 3 * b, w->geom_xpos + 3 * a);
  sn_sub3(v, s2, s1);
  if (m->geom_type[a] == SN_GEOM_PLANE) {
    sn_shape_axis(normal, w->geom_xmat + 9 * a);
    const sn_real height = sn_dot3(d, normal);
    return sn_min(height, height + sn_dot3(s2, normal)) <= m->geom_rbound[b] + p->reach;
  }
  const sn_real square = sn_dot3(v, v), bound = m->geom_rbound[a] + m->geom_rbound[b] + p->reach;
  const sn_real t = square > 0 ? sn_clip(-sn_dot3(d, v) / square, 0, 1) : 0;
  sn_addtoscl3(d, v, t);
  return sn_dot3(d, d) <= bound * bound;
}

SN_FUNC bool sn_speculate_is_near(const SnModel *m, const SnWorld *w, int pair) {
  const SnPairInfo p = sn_pair_info(m, pair);
  if (p.collider == SN_COLLIDER_HFIELD || m->opt.disableflags & SN_DSBL_NATIVECCD) return false;
  const sn_real thickness = sn_min(sn_geom_thickness(m, p.geom[0]), sn_geom_thickness(m, p.geom[1]));
  const sn_real travel = sn_max(sn_geom_step(w, p.geom[0])[6], sn_geom_step(w, p.geom[1])[6]);
  return travel >= thickness && spec_spheres_meet(m, w, &p);
}

// The geoms of a listed pair in the order of their bodies, as one number.
SN_LOCAL int64_t spec_order(const SnModel *m, int pair) {
  const int a = m->cpair_geom[2 * pair], b = m->cpair_geom[2 * pair + 1];
  const bool swap = m->geom_bodyid[a] > m->geom_bodyid[b];
  return ((int64_t)(swap ? b : a) << 32) + (swap ? a : b);
}

// True when somebody asked for a listed pair by name.
SN_LOCAL bool spec_is_named(const SnModel *m, int pair) {
  const int a = m->cpair_geom[2 * pair], b = m->cpair_geom[2 * pair + 1];
  for (int i = 0; i < m->npair; ++i)
    if ((m->pair_geom1[i] == a && m->pair_geom2[i] == b) || (m->pair_geom1[i] == b && m->pair_geom2[i] == a))
      return true;
  return false;
}

// True when two listed pairs are of the same two bodies.
SN_LOCAL bool spec_same_bodies(const SnModel *m, int p, int q) {
  const int64_t a = spec_order(m, p), b = spec_order(m, q);
  return m->geom_bodyid[a >> 32] == m->geom_bodyid[b >> 32] &&
         m->geom_bodyid[a & INT32_MAX] == m->geom_bodyid[b & INT32_MAX];
}

// True when two of the geoms of these bodies may pass through each other in the step.
SN_LOCAL bool spec_bodies_are_fast(const SnModel *m, const SnWorld *w, int pair) {
  sn_real travel = 0, thickness = SN_MAXVAL;
  for (int side = 0; side < 2; ++side) {
    const int body = m->geom_bodyid[m->cpair_geom[2 * pair + side]], first = m->body_geomadr[body];
    for (int g = first; g < first + m->body_geomnum[body]; ++g) {
      if (!m->geom_collides[g]) continue;
      travel = sn_max(travel, sn_geom_step(w, g)[6]);
      thickness = sn_min(thickness, sn_geom_thickness(m, g));
    }
  }
  return travel >= thickness;
}

// Where bodies have a fast geom MuJoCo leaves its mid phase out, and so the order that it makes: their pairs come in
// the order of the geoms, the first body's first.
SN_FUNC void sn_speculate_order(const SnModel *m, SnWorld *w, SnLane *lane, int near) {
  SN_ONE(lane) {
    int *list = w->col_near;
    for (int start = 0, end; start < near; start = end) {
      for (end = start + 1; end < near && spec_same_bodies(m, list[start], list[end]);) ++end;
      if (end - start < 2 || !spec_bodies_are_fast(m, w, list[start])) continue;
      for (int i = start + 1; i < end; ++i) {
        const int pair = list[i];
        int at = i;
        if (spec_is_named(m, pair)) continue;
        for (; at > start && !spec_is_named(m, list[at - 1]) && spec_order(m, list[at - 1]) > spec_order(m, pair); --at)
          list[at] = list[at - 1];
        list[at] = pair;
      }
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_swept_place(SnSweptGeom *g, sn_real t) {
  sn_real quat[4], axis[3];
  sn_addscl3(g->pos, g->start.pos, g->shift, t);
  sn_copy(g->mat, g->start.mat, 9);
  sn_zero(g->rotation, 9);
  g->rotation[0] = g->rotation[4] = g->rotation[8] = 1;
  if (!(t * g->spin > 0)) return;
  sn_scale3(axis, g->turn, 1 / g->spin);
  sn_axisangle2quat(quat, axis, t * g->spin);
  sn_quat2mat(g->rotation, quat);
  sn_mulmatmat3(g->mat, g->rotation, g->start.mat);
}

SN_FUNC void sn_swept_velocity(const SnSweptGeom *g, const sn_real *x, sn_real *r) {
  sn_real arm[3];
  sn_sub3(arm, x, g->pos);
  sn_cross(r, g->turn, arm);
  sn_addto3(r, g->shift);
}

SN_FUNC void sn_swept_back(const SnSweptGeom *g, const sn_real *x, sn_real *r) {
  sn_real arm[3];
  sn_sub3(arm, x, g->pos);
  sn_mulmattvec3(r, g->rotation, arm);
  sn_addto3(r, g->start.pos);
}

SN_FUNC void sn_swept_begin(SnSwept *s, const SnModel *m, const SnWorld *w, int pair) {
  s->pair = sn_pair_info(m, pair);
  s->margin = m->conparam[SN_NCONPARAM * s->pair.param];
  s->collider = m->geom_type[s->pair.geom[0]] == SN_GEOM_PLANE ? s->pair.collider : SN_COLLIDER_CONVEX;
  for (int side = 0; side < 2; ++side) {
    SnSweptGeom *g = s->geom + side;
    const int geom = s->pair.geom[side];
    const sn_real *step = sn_geom_step(w, geom);
    g->start = sn_shape(m, w, geom);
    sn_copy3(g->shift, step);
    sn_copy3(g->turn, step + 3);
    g->travel = step[6];
    g->spin = sn_norm3(g->turn);
    g->turns = m->geom_type[geom] != SN_GEOM_SPHERE;
    g->bound = m->geom_rbound[geom];
    sn_swept_place(g, 0);
  }
}

SN_FUNC bool sn_swept_nearest(const SnModel *m, const SnSwept *s, SnContact *near) {
  const SnShape a = sn_swept_shape(s->geom), b = sn_swept_shape(s->geom + 1);
  if (s->collider != SN_COLLIDER_CONVEX) {
    SnContact con[SN_MAXCON_PAIR] = {{0}};
    const int n = sn_collide_shapes(m, &a, &b, s->collider, SN_MAXVAL, SN_MAXCON_PAIR, con);
    if (n == 0) return false;
    sn_contact_nearest(con, n);
    *near = con[0];
    return near->dist > 0;
  }
  SnCcd c;
  sn_convex_init(&c.a, m, &a, 0);
  sn_convex_init(&c.b, m, &b, 0);
  c.tolerance = sn_max(m->opt.ccd_tolerance, SN_CCD_TOLERANCE);
  c.iterations = m->opt.ccd_iterations;
  c.cutoff = SN_CCD_FAR;
  if (!(sn_ccd(&c, 1) > 0) || c.nx == 0) return false;
  sn_convex_contact(&c, 0, 0, near);
  sn_scale3(near->frame, near->frame, -1);
  return true;
}

SN_FUNC sn_real sn_swept_rate(const SnSwept *s, const SnContact *near) {
  sn_real x[3], v1[3], v2[3];
  sn_addscl3(x, near->pos, near->frame, SN_R(-0.5) * near->dist);
  sn_swept_velocity(s->geom, x, v1);
  sn_addscl3(x, near->pos, near->frame, SN_R(0.5) * near->dist);
  sn_swept_velocity(s->geom + 1, x, v2);
  sn_subfrom3(v1, v2);
  return sn_dot3(v1, near->frame);
}

// Takes the last state for the impact.
SN_LOCAL bool spec_take(SnSwept *s, sn_real target) {
  const SnSweptState *first = s->state, *last = s->state + s->last;
  const sn_real rate = sn_swept_rate(s, &last->near);
  s->t = last->t;
  if (s->extrapolated) {
    if (!(rate > 0) || last->near.dist - s->margin >= (1 - last->t) * rate) return false;
    s->t += (last->near.dist - target) / rate;
  }
  if (!(s->t > 0 && s->t < 1)) return false;
  s->speed = sn_max(rate, (first->near.dist - last->near.dist) / last->t);
  s->reach = 2 * last->near.dist + (1 - s->t) * s->speed + SPEC_REACH;
  sn_copy3(s->normal, last->near.frame);
  return true;
}

SN_FUNC bool sn_swept_impact(const SnModel *m, SnSwept *s) {
  sn_real target = 0, found = 0, shift[3], t = 0;
  sn_sub3(shift, s->geom[0].shift, s->geom[1].shift);
  s->extrapolated = false;
  for (s->last = 0; s->last <= SN_SPEC_ADVANCES; ++s->last) {
    SnSweptState *now = s->state + s->last;
    for (int side = 0; side < 2; ++side) sn_swept_place(s->geom + side, t);
    now->t = t;
    if (!sn_swept_nearest(m, s, &now->near)) return false;
    const sn_real clear = now->near.dist - s->margin;
    if (s->last == 0) {
      target = s->margin + SN_SPEC_TARGET * clear;
      found = SPEC_FOUND * clear;
    }
    now->closing =
        sn_dot3(now->near.frame, shift) + s->geom[0].spin * s->geom[0].bound + s->geom[1].spin * s->geom[1].bound;
    if (!(now->closing > 0) || clear >= (1 - t) * (s->geom[0].travel + s->geom[1].travel)) return false;
    if (clear <= found) return spec_take(s, target);
    if (s->last == SN_SPEC_ADVANCES) break;
    t += (now->near.dist - target) / now->closing;
    if (!(t < 1)) return false;
  }
  s->extrapolated = true;
  return spec_take(s, target);
}

SN_FUNC void sn_swept_spring(const SnModel *m, const SnWorld *w, const SnSwept *s, sn_real *k, sn_real *b) {
  const sn_real h = sn_timestep(m, w), *p = m->conparam + SN_NCONPARAM * s->pair.param + 6;
  sn_real ref[SN_NREF] = {p[0], p[1]}, spring[2];
  sn_admit_solref(m, w, ref, SN_R(0.02), 1);
  sn_solref_spring(ref, 1, spring);
  *k = h * h * spring[0];
  *b = h * spring[1];
}
#endif

// Contact sensors: what is known of the contacts between two objects, in a fixed number of slots (manual, XMLreference,
// sensor, contact). Contacts are matched, put in order, and their numbers written.
//
// An object is a geom, a body, a subtree (SN_OBJ_XBODY) or, as the first, a site whose zone holds the contact; none
// matches all. The normal points from the first object to the second: a contact the other way round is turned by half a
// turn about its second tangent, which changes the sign of normal and first tangent and, as force and velocity change
// sides, that of their third number alone.
//
// There is no gradient: contacts come and go, and change places in the order.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/sensor/sensor.h"
#include "physics/sensor/sensor_private.h"

// The numbers of a slot in their order (mjtConDataField), as bits of sensor_intprm, and how contacts are put in order.
enum {
  CONTACT_FOUND,
  CONTACT_FORCE,
  CONTACT_TORQUE,
  CONTACT_DIST,
  CONTACT_POS,
  CONTACT_NORMAL,
  CONTACT_TANGENT,
  CONTACT_LINVEL,
  CONTACT_ANGVEL,
  CONTACT_FIELDS
};
enum { CONTACT_AS_FOUND, CONTACT_NEAREST, CONTACT_STRONGEST, CONTACT_NET };

SN_LOCAL bool contact_has(const SnModel *m, int i, int field) { return m->sensor_intprm[SN_NSENS * i] >> field & 1; }

SN_LOCAL int contact_size(int field) { return field == CONTACT_FOUND || field == CONTACT_DIST ? 1 : 3; }

// Numbers of a slot.
SN_LOCAL int contact_slot(const SnModel *m, int i) {
  int size = 0;
  for (int f = 0; f < CONTACT_FIELDS; ++f) size += contact_has(m, i, f) ? contact_size(f) : 0;
  return size;
}

SN_LOCAL int contact_reduction(const SnModel *m, int i) { return m->sensor_intprm[SN_NSENS * i + 1]; }

SN_FUNC bool sn_contact_sensor_supported(const SnModel *m, int i) {
  const int type = m->sensor_objtype[i], slot = contact_slot(m, i), reduce = contact_reduction(m, i);
  const bool known = m->sensor_intprm[SN_NSENS * i] >> CONTACT_FIELDS == 0 && reduce >= 0 && reduce <= CONTACT_NET;
  if (!known || slot == 0 || m->sensor_dim[i] % slot != 0) return false;
  if (reduce == CONTACT_NET && (contact_has(m, i, CONTACT_LINVEL) || contact_has(m, i, CONTACT_ANGVEL))) return false;
  return type != SN_OBJ_SITE || sn_site_is_zone(m, m->sensor_objid[i]);
}

SN_FUNC SnStage sn_contact_sensor_stage(const SnModel *m, int i) {
  const int reduce = contact_reduction(m, i);
  if (contact_has(m, i, CONTACT_FORCE) || contact_has(m, i, CONTACT_TORQUE) || reduce == CONTACT_STRONGEST ||
      reduce == CONTACT_NET)
    return SN_STAGE_SOLVER;
  return contact_has(m, i, CONTACT_LINVEL) || contact_has(m, i, CONTACT_ANGVEL) ? SN_STAGE_VELOCITY
                                                                                : SN_STAGE_COLLISION;
}

// ---- matching ----

// Whether geom g belongs to an object; a site and no object match all.
SN_LOCAL bool contact_belongs(const SnModel *m, int type, int id, int g) {
  const int body = m->geom_bodyid[g];
  switch (type) {
    case SN_OBJ_GEOM:
      return g == id;
    case SN_OBJ_BODY:
      return body == id;
    case SN_OBJ_XBODY:
      return body >= id && body <= m->body_last[id];
    default:
      return true;
  }
}

// 1: contact k matches sensor i; -1: the other way round; 0: it does not.
SN_LOCAL int contact_match(const SnModel *m, const SnWorld *w, int i, int k) {
  enum { NOTHING = 0 };
  const SnContact *con = w->contact + k;
  const int type1 = m->sensor_objtype[i], id1 = m->sensor_objid[i];
  const int type2 = m->sensor_reftype[i], id2 = m->sensor_refid[i];
  const bool a1 = contact_belongs(m, type1, id1, con->geom[0]), a2 = contact_belongs(m, type1, id1, con->geom[1]);
  const bool b1 = contact_belongs(m, type2, id2, con->geom[0]), b2 = contact_belongs(m, type2, id2, con->geom[1]);
  if (type1 == SN_OBJ_SITE && !sn_site_contains(m, w, id1, con->pos)) return 0;
  if (!(a1 || a2) || !(b1 || b2)) return 0;
  if (type1 == NOTHING && type2 == NOTHING) return 1;
  if (type2 == NOTHING) return a1 ? 1 : -1;
  if (type1 == NOTHING) return b2 ? 1 : -1;
  return a1 && b2 ? 1 : a2 && b1 ? -1 : 0;
}

// By which contacts are put in order, the smallest first.
SN_LOCAL sn_real contact_rank(const SnModel *m, const SnWorld *w, int i, int k) {
  sn_real force[6];
  switch (contact_reduction(m, i)) {
    case CONTACT_NEAREST:
      return w->contact[k].dist;
    case CONTACT_STRONGEST:
      sn_contact_force(w, k, force);
      return -sn_dot3(force, force);
    default:
      return 0;
  }
}

// The matching contact that follows contact `last` in the order; -1 for last: the first of all. Returns -1: none.
SN_LOCAL int contact_next(const SnModel *m, const SnWorld *w, int i, int last) {
  const sn_real bound = last < 0 ? 0 : contact_rank(m, w, i, last);
  sn_real best = 0;
  int next = -1;
  for (int k = 0; k < w->ncon[0]; ++k) {
    if (contact_match(m, w, i, k) == 0) continue;
    const sn_real rank = contact_rank(m, w, i, k);
    if (last >= 0 && (rank < bound || (rank == bound && k <= last))) continue;
    if (next >= 0 && rank >= best) continue;
    best = rank;
    next = k;
  }
  return next;
}

// ---- values ----

// Velocity (rotation, translation) of the second body relative to the first, at the contact and in its frame.
SN_LOCAL void contact_motion(const SnModel *m, const SnWorld *w, int k, sn_real *local) {
  const SnContact *con = w->contact + k;
  sn_real first[6], second[6];
  sn_point_velocity(m, w, m->geom_bodyid[con->geom[0]], con->pos, first);
  sn_point_velocity(m, w, m->geom_bodyid[con->geom[1]], con->pos, second);
  for (int e = 0; e < 6; ++e) second[e] -= first[e];
  sn_mulmatvec3(local, con->frame, second);
  sn_mulmatvec3(local + 3, con->frame, second + 3);
}

// Writes the numbers of field f of contact k; sign: as contact_match.
SN_LOCAL void contact_field(const SnModel *m, const SnWorld *w, int f, int k, int sign, sn_real *value) {
  const SnContact *con = w->contact + k;
  const sn_real s = sign < 0 ? SN_R(-1.0) : SN_R(1.0);
  sn_real local[6];
  switch (f) {
    case CONTACT_FORCE:
    case CONTACT_TORQUE:
      sn_contact_force(w, k, local);
      sn_copy3(value, local + (f == CONTACT_FORCE ? 0 : 3));
      value[2] *= s;
      break;
    case CONTACT_LINVEL:
    case CONTACT_ANGVEL:
      contact_motion(m, w, k, local);
      sn_copy3(value, local + (f == CONTACT_LINVEL ? 3 : 0));
      value[2] *= s;
      break;
    case CONTACT_DIST:
      value[0] = con->dist;
      break;
    case CONTACT_POS:
      sn_copy3(value, con->pos);
      break;
    default:
      sn_scale3(value, con->frame + (f == CONTACT_NORMAL ? 0 : 3), s);
      break;
  }
}

// The contact that stands for all that match: at the mean of their places, weighed by their forces, in world axes.
typedef struct ContactNet {
  sn_real pos[3], force[3], torque[3];
} ContactNet;

// Adds to a net of zeroes.
SN_LOCAL void contact_net(const SnModel *m, const SnWorld *w, int i, ContactNet *net) {
  sn_real total = 0, local[6], f[3], t[3], arm[3];
  for (int k = 0; k < w->ncon[0]; ++k) {
    if (contact_match(m, w, i, k) == 0) continue;
    sn_contact_force(w, k, local);
    const sn_real weight = sn_norm3(local);
    sn_addtoscl3(net->pos, w->contact[k].pos, weight);
    total += weight;
  }
  sn_scale3(net->pos, net->pos, SN_R(1.0) / sn_max(total, SN_MINVAL));
  for (int k = 0; k < w->ncon[0]; ++k) {
    const int sign = contact_match(m, w, i, k);
    if (sign == 0) continue;
    sn_contact_force(w, k, local);
    sn_mulmattvec3(f, w->contact[k].frame, local);
    sn_mulmattvec3(t, w->contact[k].frame, local + 3);
    sn_sub3(arm, w->contact[k].pos, net->pos);
    sn_addtoscl3(net->force, f, (sn_real)sign);
    sn_addcross(t, arm, f);
    sn_addtoscl3(net->torque, t, (sn_real)sign);
  }
}

SN_LOCAL void contact_net_field(const ContactNet *net, int f, sn_real *value) {
  switch (f) {
    case CONTACT_FORCE:
      sn_copy3(value, net->force);
      break;
    case CONTACT_TORQUE:
      sn_copy3(value, net->torque);
      break;
    case CONTACT_DIST:
      value[0] = 0;
      break;
    case CONTACT_POS:
      sn_copy3(value, net->pos);
      break;
    default:
      sn_set3(value, f == CONTACT_NORMAL ? SN_R(1.0) : 0, f == CONTACT_TANGENT ? SN_R(1.0) : 0, 0);
      break;
  }
}

SN_FUNC void sn_contact_sensor_value(const SnModel *m, const SnWorld *w, int i, sn_real *value) {
  const bool net = contact_reduction(m, i) == CONTACT_NET;
  const int slots = net ? 1 : m->sensor_dim[i] / contact_slot(m, i);
  ContactNet sum = {{0}, {0}, {0}};
  int found = 0, k = -1;
  for (int e = 0; e < m->sensor_dim[i]; ++e) value[e] = 0;
  for (int c = 0; c < w->ncon[0]; ++c) found += contact_match(m, w, i, c) != 0;
  if (net) contact_net(m, w, i, &sum);
  for (int slot = 0; slot < slots && slot < found; ++slot) {
    if (!net) k = contact_next(m, w, i, k);
    for (int f = 0; f < CONTACT_FIELDS; ++f) {
      if (!contact_has(m, i, f)) continue;
      if (f == CONTACT_FOUND)
        value[0] = (sn_real)found;
      else if (net)
        contact_net_field(&sum, f, value);
      else
        contact_field(m, w, f, k, contact_match(m, w, i, k), value);
      value += contact_size(f);
    }
  }
}

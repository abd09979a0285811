// Sleeping: trees that have come to rest are left out of a step until something wakes them (manual, Computation,
// Sleeping islands; Simulation, Sleeping islands).
//
// A tree's number tree_asleep is SN_AWAKE while it moves, and one more after each step that it begins slower than
// sleep_tolerance, up to -1. An island, trees that rows connect, falls asleep at the end of a step that all of its
// trees begin with -1. Its velocities are zero from then on, its positions stay. Trees that sleep together form a
// cycle: the number of each is the next tree. What wakes one wakes all, at the begin of a step:
//
//   positions other than those it fell asleep at, a velocity    fully awake
//   a limit of a tendon shared with a tree that is awake        as awake as that tree; not where limits are off
//   a contact with a tree that is awake; with a mocap body      the same; fully
//   an equality with a tree or mocap body that is awake, or with a tree that sleeps in another cycle    fully
//
// Contacts of a tree that sleeps with static bodies and others that sleep are not looked for, until one has woken it:
// then contacts are made once more. It has no rows, its actuators no force, and its forces and accelerations count as
// zero.
//
// Adjoint. A tree that sleeps through a step, or falls asleep at its end, has next positions that are its positions and
// next velocities that are zero, whatever else changes: the bars of the former pass, those of the latter end. So lambda
// is zero on its dofs, for no row connects them with others. When trees fall asleep and wake is held fixed.
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/constraint/constraint_private.h"

#if !defined(SN_PACK)
SN_FUNC int sn_tree_root(const int *root, int tree) {
  while (root[tree] != tree) tree = root[tree];
  return tree;
}

SN_FUNC void sn_tree_roots(const SnModel *m, const SnWorld *w, int *root) {
  for (int t = 0; t < m->ntree; ++t) root[t] = t;
  for (int b = 0; b < w->nblock[0]; ++b) {
    const SnBlock k = sn_block(w, b);
    const int *col = w->efc_J_colind + k.adr;
    for (int i = 1, first = sn_tree_root(root, m->dof_treeid[col[0]]); i < k.nnz; ++i) {
      const int other = sn_tree_root(root, m->dof_treeid[col[i]]);
      root[sn_maxi(first, other)] = sn_mini(first, other);
      first = sn_mini(first, other);
    }
  }
}

// ---- waking ----

// Wakes a tree and its cycle; one that is awake becomes no sleepier than `value`.
SN_LOCAL void sleep_wake(const SnModel *m, SnWorld *w, int tree, int value) {
  int *asleep = w->tree_asleep;
  if (asleep[tree] < 0) {
    asleep[tree] = sn_mini(value, asleep[tree]);
    return;
  }
  for (int t = tree, i = 0; i < m->ntree && asleep[t] >= 0; ++i) {
    const int next = asleep[t];
    asleep[t] = value;
    t = next;
  }
}

// The first tree of a cycle.
SN_LOCAL int sleep_first(const SnModel *m, const SnWorld *w, int tree) {
  int first = tree;
  for (int t = w->tree_asleep[tree], i = 0; i < m->ntree && t >= 0 && t != tree; ++i, t = w->tree_asleep[t])
    first = sn_mini(first, t);
  return first;
}

// tree_awake and nasleep from tree_asleep.
SN_LOCAL void sleep_count(const SnModel *m, SnWorld *w) {
  w->nasleep[0] = 0;
  for (int t = 0; t < m->ntree; ++t) {
    w->tree_awake[t] = w->tree_asleep[t] < 0;
    w->nasleep[0] += !w->tree_awake[t];
  }
}

SN_LOCAL bool sleep_may(const SnModel *m, int tree) {
  const int policy = m->tree_sleep_policy[tree];
  return policy != SN_SLEEP_NEVER && policy != SN_SLEEP_AUTO_NEVER;
}

// True when a tree begins the step slower than `tolerance`; 0: when it does not move at all.
SN_LOCAL bool sleep_is_slow(const SnModel *m, const SnWorld *w, int tree, sn_real tolerance) {
  const int adr = m->tree_dofadr[tree], end = adr + m->tree_dofnum[tree];
  for (int i = adr; i < end; ++i) {
    const sn_real speed = sn_abs(w->qvel[i]);
    if (tolerance > 0 ? m->dof_length[i] * speed >= tolerance : speed != 0) return false;
  }
  return true;
}

// The end of a joint's positions.
SN_LOCAL int sleep_qpos_end(const SnModel *m, int j) {
  const int type = m->jnt_type[j];
  return m->jnt_qposadr[j] + (type == SN_JNT_FREE ? 7 : type == SN_JNT_BALL ? 4 : 1);
}

// True when the caller has moved a joint.
SN_LOCAL bool sleep_joint_moved(const SnModel *m, const SnWorld *w, int j) {
  for (int k = m->jnt_qposadr[j]; k < sleep_qpos_end(m, j); ++k)
    if (w->qpos[k] != w->sleep_qpos[k]) return true;
  return false;
}

SN_FUNC void sn_sleep_begin(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_SYNC(lane);  // what is written here has been read
  SN_ONE(lane) {
    w->nasleep[0] = 0;
    if (sn_sleeps(m, w)) {
      for (int t = 0; t < m->ntree; ++t)  // the caller may have written anything
        if (w->tree_asleep[t] < SN_AWAKE || w->tree_asleep[t] >= m->ntree) w->tree_asleep[t] = SN_AWAKE;
      for (int j = 0; j < m->njnt; ++j) {
        const int tree = m->body_treeid[m->jnt_bodyid[j]];
        if (w->tree_asleep[tree] >= 0 && sleep_joint_moved(m, w, j)) sleep_wake(m, w, tree, SN_AWAKE);
      }
      for (int t = 0; t < m->ntree; ++t)
        if (w->tree_asleep[t] >= 0 && !(sleep_may(m, t) && sleep_is_slow(m, w, t, 0))) sleep_wake(m, w, t, SN_AWAKE);
      sleep_count(m, w);
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_wake_tendons(const SnModel *m, SnWorld *w, SnLane *lane) {
  if (m->opt.disableflags & (SN_DSBL_LIMIT | SN_DSBL_CONSTRAINT)) return;
  SN_SYNC(lane);  // what is written here has been read
  SN_ONE(lane) {
    for (int s = m->nsrc_fl; s < m->nsrc; ++s) {
      const int *tree = m->tendon_treeid + 2 * m->src_id[s];
      if (m->src_type[s] != SN_CNSTR_LIMIT_TENDON || m->tendon_treenum[m->src_id[s]] != 2) continue;
      const bool first = w->tree_awake[tree[0]] != 0, second = w->tree_awake[tree[1]] != 0;
      if (first == second || sn_limit_count(m, w, s) == 0) continue;
      sleep_wake(m, w, tree[first ? 1 : 0], w->tree_asleep[tree[first ? 0 : 1]]);
    }
    sleep_count(m, w);
  }
  SN_SYNC(lane);
}

SN_FUNC bool sn_wake_contacts(const SnModel *m, SnWorld *w, SnLane *lane) {
  const int before = w->nasleep[0];
  SN_SYNC(lane);
  SN_ONE(lane) {
    for (int i = 0; i < w->ncon[0]; ++i) {
      const int *geom = w->contact[i].geom, body[2] = {m->geom_bodyid[geom[0]], m->geom_bodyid[geom[1]]};
      for (int side = 0; side < 2; ++side) {
        const int tree = m->body_treeid[body[side]], other = m->body_treeid[body[1 - side]];
        if (tree < 0 || w->tree_awake[tree] || sn_body_sleep(m, w, body[1 - side]) != SN_BODY_AWAKE) continue;
        sleep_wake(m, w, tree, other < 0 ? (int)SN_AWAKE : w->tree_asleep[other]);
      }
    }
    sleep_count(m, w);
  }
  SN_SYNC(lane);
  return w->nasleep[0] < before;
}

// Bodies of equality i; -1: none.
SN_LOCAL void sleep_bodies(const SnModel *m, int i, int body[2]) {
  const int id[2] = {m->eq_obj1id[i], m->eq_obj2id[i]}, type = m->eq_type[i];
  for (int side = 0; side < 2; ++side) {
    if (id[side] < 0)
      body[side] = -1;
    else if (type == SN_EQ_JOINT)
      body[side] = m->jnt_bodyid[id[side]];
    else
      body[side] = m->eq_objtype[i] == SN_OBJ_BODY ? id[side] : m->site_bodyid[id[side]];
  }
}

SN_LOCAL SnSleepState sleep_of(const SnModel *m, const SnWorld *w, int body) {
  return body < 0 ? SN_BODY_STATIC : sn_body_sleep(m, w, body);
}

SN_FUNC void sn_wake_equalities(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_SYNC(lane);  // what is written here has been read
  SN_ONE(lane) {
    for (int s = 0; s < m->nsrc_eq; ++s) {
      int body[2];
      sleep_bodies(m, m->src_id[s], body);
      const SnSleepState a = sleep_of(m, w, body[0]), b = sleep_of(m, w, body[1]);
      if (a == SN_BODY_STATIC || b == SN_BODY_STATIC || (a != SN_BODY_ASLEEP && b != SN_BODY_ASLEEP)) continue;
      const int tree[2] = {m->body_treeid[body[0]], m->body_treeid[body[1]]};
      if (tree[0] == tree[1]) continue;
      if (a == b && sleep_first(m, w, tree[0]) == sleep_first(m, w, tree[1])) continue;
      if (a == SN_BODY_ASLEEP) sleep_wake(m, w, tree[0], SN_AWAKE);
      if (b == SN_BODY_ASLEEP) sleep_wake(m, w, tree[1], SN_AWAKE);
    }
    sleep_count(m, w);
  }
  SN_SYNC(lane);
}

SN_FUNC bool sn_source_asleep(const SnModel *m, const SnWorld *w, int s) {
  int body[2];
  switch (m->src_type[s]) {
    case SN_CNSTR_EQUALITY:
      sleep_bodies(m, m->src_id[s], body);
      return sleep_of(m, w, body[0]) != SN_BODY_AWAKE && sleep_of(m, w, body[1]) != SN_BODY_AWAKE;
    case SN_CNSTR_FRICTION_DOF:
      return !w->tree_awake[m->dof_treeid[m->src_id[s]]];
    case SN_CNSTR_LIMIT_JOINT:
      return !w->tree_awake[m->body_treeid[m->jnt_bodyid[m->src_id[s]]]];
    default:
      return sn_tendon_asleep(m, w, m->src_id[s]);
  }
}

// ---- falling asleep ----

// Lets the islands sleep all of whose trees are ready.
SN_LOCAL void sleep_islands(const SnModel *m, SnWorld *w) {
  int *next = w->tree_next, *root = w->tree_root, *last = w->tree_last;
  sn_tree_roots(m, w, root);
  for (int t = 0; t < m->ntree; ++t) last[t] = t;  // -1: some tree of this root is not ready
  for (int t = 0; t < m->ntree; ++t) {
    root[t] = sn_tree_root(root, t);
    if (next[t] != -1) last[root[t]] = -1;
  }
  for (int t = 0; t < m->ntree; ++t) {
    const int first = root[t];
    if (last[first] < 0) continue;
    next[last[first]] = t;
    next[t] = first;
    last[first] = t;
  }
}

SN_FUNC void sn_sleep_decide(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_ONE(lane) {
    for (int t = 0; t < m->ntree; ++t) w->tree_next[t] = w->tree_asleep[t];
    // MuJoCo lets nothing fall asleep while it does not look for islands
    if (!(m->opt.disableflags & SN_DSBL_ISLAND) || w->nefc[0] == 0) {
      for (int t = 0; t < m->ntree; ++t) {
        if (w->tree_next[t] >= 0) continue;
        const bool slow = sleep_may(m, t) && sleep_is_slow(m, w, t, m->opt.sleep_tolerance);
        w->tree_next[t] = slow ? sn_mini(w->tree_next[t] + 1, -1) : (int)SN_AWAKE;
      }
      sleep_islands(m, w);
    }
  }
  SN_SYNC(lane);
}

SN_FUNC void sn_sleep_hold(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(k, m->nq) w->sleep_qpos[k] = w->qpos[k];
  SN_SYNC(lane);
}

SN_FUNC void sn_sleep_end(const SnModel *m, SnWorld *w, SnLane *lane) {
  SN_FOR(j, m->njnt) {
    if (w->tree_next[m->body_treeid[m->jnt_bodyid[j]]] < 0) continue;
    for (int k = m->jnt_qposadr[j]; k < sleep_qpos_end(m, j); ++k) w->qpos[k] = w->sleep_qpos[k];
  }
  SN_FOR(i, m->nv) if (w->tree_next[m->dof_treeid[i]] >= 0) w->qvel[i] = w->qacc_warmstart[i] = 0;
  SN_FOR(t, m->ntree) w->tree_asleep[t] = w->tree_next[t];
  SN_SYNC(lane);
}
#endif

SN_FUNC void sn_sleep_vjp(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  if (!sn_sleeps(m, w)) return;
  sn_sleep_decide(m, w, lane);
  SN_FOR(i, m->nv) {
    if (w->tree_next[m->dof_treeid[i]] < 0) continue;
    a->qpos_bar[i] += a->qpos_next_bar[i];
    a->qpos_next_bar[i] = a->qvel_next_bar[i] = sn_bar_of(0);
  }
  SN_SYNC(lane);
}

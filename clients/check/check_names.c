// Names of the elements of compared fields.
#include <stdio.h>

#include "clients/check/check_steps_private.h"

// What the entries of a field belong to.
typedef enum NameKind {
  NO_NAME,
  OF_BODY,
  OF_JOINT,
  OF_GEOM,
  OF_SITE,
  OF_TENDON,
  OF_OUTPUT,
  OF_DOF,
  OF_ENTRY,
  OF_QPOS,
  OF_ACT,
  OF_BUFFER,
  OF_REST,
  OF_ROW
} NameKind;

typedef struct NameRule {
  NameKind kind;
  int width;  // entries of one object
} NameRule;

static NameRule rule_of(SnCompared field) {
  switch (field) {
    case SN_CMP_xpos:
    case SN_CMP_xipos:
    case SN_CMP_subtree_com:
      return (NameRule){OF_BODY, 3};
    case SN_CMP_xquat:
      return (NameRule){OF_BODY, 4};
    case SN_CMP_xanchor:
    case SN_CMP_xaxis:
      return (NameRule){OF_JOINT, 3};
    case SN_CMP_geom_xpos:
      return (NameRule){OF_GEOM, 3};
    case SN_CMP_geom_xmat:
      return (NameRule){OF_GEOM, 9};
    case SN_CMP_site_xpos:
      return (NameRule){OF_SITE, 3};
    case SN_CMP_site_xmat:
      return (NameRule){OF_SITE, 9};
    case SN_CMP_cdof:
      return (NameRule){OF_DOF, 6};
    case SN_CMP_M:
    case SN_CMP_qLD:
      return (NameRule){OF_ENTRY, 1};
    case SN_CMP_ten_length:
    case SN_CMP_ten_velocity:
      return (NameRule){OF_TENDON, 1};
    case SN_CMP_actuator_length:
    case SN_CMP_actuator_velocity:
    case SN_CMP_actuator_force:
      return (NameRule){OF_OUTPUT, 1};
    case SN_CMP_act_dot:
    case SN_CMP_next_act:
      return (NameRule){OF_ACT, 1};
    case SN_CMP_next_history:
      return (NameRule){OF_BUFFER, 1};
    case SN_CMP_next_plastic:
      return (NameRule){OF_REST, 1};
    case SN_CMP_qfrc_bias:
    case SN_CMP_qfrc_passive:
    case SN_CMP_qfrc_actuator:
    case SN_CMP_qacc_smooth:
    case SN_CMP_qacc:
    case SN_CMP_qfrc_constraint:
    case SN_CMP_next_qvel:
      return (NameRule){OF_DOF, 1};
    case SN_CMP_next_qpos:
      return (NameRule){OF_QPOS, 1};
    case SN_CMP_efc_pos:
    case SN_CMP_efc_D:
    case SN_CMP_efc_aref:
    case SN_CMP_efc_pos_edged:
    case SN_CMP_efc_D_edged:
    case SN_CMP_efc_aref_edged:
    case SN_CMP_efc_force:
      return (NameRule){OF_ROW, 1};
    default:
      return (NameRule){NO_NAME, 1};
  }
}

static void put(const SnModel *m, const char *word, SnNameKind kind, int i, char *name) {
  const char *given = sn_model_name(m, kind, i);
  if (given[0])
    snprintf(name, CHECK_NAME, "%s '%.90s'", word, given);
  else
    snprintf(name, CHECK_NAME, "%s %d", word, i);
}

static int actuator_of_output(const SnModel *m, int output) {
  int i = 0;
  while (i + 1 < m->nactuator && m->actuator_outadr[i + 1] <= output) ++i;
  return i;
}

static int actuator_of_act(const SnModel *m, int act) {
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_actadr[i] >= 0 && act >= m->actuator_actadr[i] &&
        act < m->actuator_actadr[i] + m->actuator_actnum[i])
      return i;
  return 0;
}

// Whose buffer has number k of the history.
static void put_buffer(const SnModel *m, int k, char *name) {
  for (int i = 0; i < m->nactuator; ++i)
    if (m->actuator_historyadr[i] >= 0 && m->actuator_historyadr[i] <= k) put(m, "actuator", SN_NAME_ACTUATOR, i, name);
  for (int i = 0; i < m->nsensor; ++i)
    if (m->sensor_historyadr[i] >= 0 && m->sensor_historyadr[i] <= k) put(m, "sensor", SN_NAME_SENSOR, i, name);
}

// Whose spring has number k of the rests.
static void put_rest(const SnModel *m, int k, char *name) {
  for (int j = 0; j < m->njnt; ++j)
    if (m->jnt_plasticadr[j] >= 0 && m->jnt_plasticadr[j] <= k) put(m, "joint", SN_NAME_JNT, j, name);
  for (int t = 0; t < m->ntendon; ++t)
    if (m->tendon_plasticadr[t] >= 0 && m->tendon_plasticadr[t] <= k) put(m, "tendon", SN_NAME_TENDON, t, name);
}

static int joint_of_qpos(const SnModel *m, int q) {
  int i = 0;
  while (i + 1 < m->njnt && m->jnt_qposadr[i + 1] <= q) ++i;
  return i;
}

static int row_of_entry(const SnModel *m, int entry) {
  int i = 0;
  while (i + 1 < m->nv && m->M_rowadr[i + 1] <= entry) ++i;
  return i;
}

void check_element_name(const SnModel *m, SnCompared field, int element, char *name) {
  const NameRule rule = rule_of(field);
  name[0] = 0;
  if (element < 0) return;
  const int i = element / rule.width;
  if (rule.kind == OF_BODY) put(m, "body", SN_NAME_BODY, i, name);
  if (rule.kind == OF_JOINT) put(m, "joint", SN_NAME_JNT, i, name);
  if (rule.kind == OF_GEOM) put(m, "geom", SN_NAME_GEOM, i, name);
  if (rule.kind == OF_SITE) put(m, "site", SN_NAME_SITE, i, name);
  if (rule.kind == OF_TENDON) put(m, "tendon", SN_NAME_TENDON, i, name);
  if (rule.kind == OF_OUTPUT && m->nactuator > 0) put(m, "actuator", SN_NAME_ACTUATOR, actuator_of_output(m, i), name);
  if (rule.kind == OF_ACT && m->nactuator > 0) put(m, "actuator", SN_NAME_ACTUATOR, actuator_of_act(m, i), name);
  if (rule.kind == OF_DOF && i < m->nv) put(m, "joint", SN_NAME_JNT, m->dof_jntid[i], name);
  if (rule.kind == OF_ENTRY && m->nv > 0) put(m, "joint", SN_NAME_JNT, m->dof_jntid[row_of_entry(m, i)], name);
  if (rule.kind == OF_QPOS && m->njnt > 0) put(m, "joint", SN_NAME_JNT, joint_of_qpos(m, i), name);
  if (rule.kind == OF_BUFFER) put_buffer(m, i, name);
  if (rule.kind == OF_REST) put_rest(m, i, name);
  if (rule.kind == OF_ROW) snprintf(name, CHECK_NAME, "row %d", i);
}

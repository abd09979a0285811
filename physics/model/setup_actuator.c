// What actuation.c and transmission.c would otherwise search for: the sparsity of actuator_moment by rows and by
// columns, the actuators of each tendon and joint, and which servos turn a rotation.
//
// Row pattern by transmission: a joint's dofs; a tendon's row of ten_J; for sites, the dofs that move
// one site but not the other (slider-crank: crank site and slider site; site: the site and its reference
// site, or the world); all dofs for adhesion to a body. An orientation has three rows: of a ball joint one dof each, of
// two sites alike. The pattern is fixed: MuJoCo drops zeros
// from rows of sites and bodies, so patterns are compared as dense matrices.
#include <stdio.h>
#include <string.h>

#include "physics/base/muscle_curves.h"
#include "physics/base/vec.h"
#include "physics/model/model_private.h"

// Last dof that moves a site's body, or -1.
static int site_dof(const SnModel *m, int site) {
  const int weld = m->body_weldid[m->site_bodyid[site]];
  return m->body_dofnum[weld] > 0 ? m->body_dofadr[weld] + m->body_dofnum[weld] - 1 : -1;
}

// Entry `dof` of a row with n entries so far; col may be NULL to count only.
static void row_entry(int *col, int *side, int *n, int dof, int which) {
  if (col) {
    col[*n] = dof;
    side[*n] = which;
  }
  ++*n;
}

// Dofs of a row of two sites: those that move one of them only. The walk meets them in descending order.
static void two_site_row(const SnModel *m, int site, int ref, int *col, int *side, int *n) {
  int dof0 = site_dof(m, site), dof1 = ref >= 0 ? site_dof(m, ref) : -1;
  const int start = *n;
  while (dof0 != dof1) {
    const bool first = dof0 > dof1;
    row_entry(col, side, n, first ? dof0 : dof1, first ? 1 : -1);
    if (first)
      dof0 = m->dof_parentid[dof0];
    else
      dof1 = m->dof_parentid[dof1];
  }
  for (int i = start, j = *n - 1; col && i < j; ++i, --j) {
    const int c = col[i], s = side[i];
    col[i] = col[j];
    side[i] = side[j];
    col[j] = c;
    side[j] = s;
  }
}

// Appends row k of actuator i at col[*n], side[*n] (NULL: counts).
static SnCode actuator_row(const SnModel *m, int i, int k, int *col, int *side, int *n, SnError *err) {
  static const int dofs[] = {6, 3, 1, 1};
  const int id = m->actuator_trnid[2 * i], ref = m->actuator_trnid[2 * i + 1];
  switch (m->actuator_trntype[i]) {
    case SN_TRN_JOINT:
    case SN_TRN_JOINTINPARENT:
      for (int d = 0; d < dofs[m->jnt_type[id]]; ++d) row_entry(col, side, n, m->jnt_dofadr[id] + d, 0);
      return SN_OK;
    case SN_TRN_TENDON:
      for (int e = 0; e < m->ten_J_rownnz[id]; ++e)
        row_entry(col, side, n, m->ten_J_colind[m->ten_J_rowadr[id] + e], 0);
      return SN_OK;
    case SN_TRN_SLIDERCRANK:
    case SN_TRN_SITE:
      two_site_row(m, id, ref, col, side, n);
      return SN_OK;
    case SN_TRN_BODY:
      for (int d = 0; d < m->nv; ++d) row_entry(col, side, n, d, 0);
      return SN_OK;
    case SN_TRN_SO3:
      if (ref < 0)
        row_entry(col, side, n, m->jnt_dofadr[id] + k, 0);
      else
        two_site_row(m, id, ref, col, side, n);
      return SN_OK;
    default:
      return sn_fail(err, SN_ERR_UNSUPPORTED, "actuator %d: transmission type %d is not supported", i,
                     m->actuator_trntype[i]);
  }
}

static SnCode setup_rows(SnModel *m, SnError *err) {
  m->nmom = 0;
  for (int i = 0; i < m->nactuator; ++i) {
    for (int k = 0; k < m->actuator_outnum[i]; ++k) {
      const SnCode code = actuator_row(m, i, k, NULL, NULL, &m->nmom, err);
      if (code != SN_OK) return code;
    }
  }
  if (m->nmom > m->nJmom)
    return sn_fail(err, SN_ERR_FORMAT, "actuator_moment needs %d entries, the model has room for %d", m->nmom,
                   m->nJmom);
  const size_t nout = (size_t)m->nout, nmom = (size_t)m->nmom;
  m->out_actuator = sn_model_alloc(m, sizeof(int) * nout);
  m->mom_rownnz = sn_model_alloc(m, sizeof(int) * nout);
  m->mom_rowadr = sn_model_alloc(m, sizeof(int) * nout);
  m->mom_colind = sn_model_alloc(m, sizeof(int) * nmom);
  m->mom_side = sn_model_alloc(m, sizeof(int) * nmom);
  if (!m->out_actuator || !m->mom_rownnz || !m->mom_rowadr || !m->mom_colind || !m->mom_side)
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  int n = 0;
  for (int i = 0; i < m->nactuator; ++i) {
    for (int k = 0; k < m->actuator_outnum[i]; ++k) {
      const int out = m->actuator_outadr[i] + k;
      m->out_actuator[out] = i;
      m->mom_rowadr[out] = n;
      actuator_row(m, i, k, m->mom_colind, m->mom_side, &n, NULL);
      m->mom_rownnz[out] = n - m->mom_rowadr[out];
    }
  }
  return SN_OK;
}

// The same pattern by columns.
static SnCode setup_columns(SnModel *m, SnError *err) {
  m->momT_adr = sn_model_alloc(m, sizeof(int) * (size_t)(m->nv + 1));
  m->momT_entry = sn_model_alloc(m, sizeof(int) * (size_t)m->nmom);
  m->momT_out = sn_model_alloc(m, sizeof(int) * (size_t)m->nmom);
  int *next = sn_model_alloc(m, sizeof(int) * (size_t)(m->nv + 1));
  if (!m->momT_adr || !m->momT_entry || !m->momT_out || !next)
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int k = 0; k < m->nmom; ++k) ++m->momT_adr[m->mom_colind[k] + 1];
  for (int v = 0; v < m->nv; ++v) {
    m->momT_adr[v + 1] += m->momT_adr[v];
    next[v] = m->momT_adr[v];
  }
  for (int i = 0; i < m->nout; ++i)
    for (int k = m->mom_rowadr[i]; k < m->mom_rowadr[i] + m->mom_rownnz[i]; ++k) {
      const int at = next[m->mom_colind[k]]++;
      m->momT_entry[at] = k;
      m->momT_out[at] = i;
    }
  return SN_OK;
}

static SnCode setup_tendon_actuators(SnModel *m, SnError *err) {
  m->ntenact = 0;
  for (int i = 0; i < m->nactuator; ++i) m->ntenact += m->actuator_trntype[i] == SN_TRN_TENDON;
  m->ten_act_adr = sn_model_alloc(m, sizeof(int) * (size_t)(m->ntendon + 1));
  m->ten_act = sn_model_alloc(m, sizeof(int) * (size_t)m->ntenact);
  if (!m->ten_act_adr || !m->ten_act) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  int n = 0;
  for (int t = 0; t < m->ntendon; ++t) {
    m->ten_act_adr[t] = n;
    for (int i = 0; i < m->nactuator; ++i)
      if (m->actuator_trntype[i] == SN_TRN_TENDON && m->actuator_trnid[2 * i] == t) m->ten_act[n++] = i;
  }
  m->ten_act_adr[m->ntendon] = n;
  return SN_OK;
}

// Actuators of joints, by joint; actuators that are neither theirs nor tendons'; joints with limited forces.
static SnCode setup_joint_actuators(SnModel *m, SnError *err) {
  m->jnt_act_adr = sn_model_alloc(m, sizeof(int) * (size_t)(m->njnt + 1));
  m->jnt_act = sn_model_alloc(m, sizeof(int) * (size_t)m->nactuator);
  m->space_act = sn_model_alloc(m, sizeof(int) * (size_t)m->nactuator);
  int *next = sn_model_alloc(m, sizeof(int) * (size_t)(m->njnt + 1));
  m->saturable = sn_model_alloc(m, sizeof(int) * (size_t)m->njnt);
  if (!m->jnt_act_adr || !m->jnt_act || !m->space_act || !next || !m->saturable)
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->nsaturable = 0;
  for (int j = 0; j < m->njnt; ++j)
    if (m->jnt_actfrclimited[j]) m->saturable[m->nsaturable++] = j;
  bool moves = m->nsaturable > 0;
  for (int i = 0; i < m->nsensor; ++i) moves = moves || m->sensor_type[i] == SN_SENS_JOINTACTFRC;
  m->nactmotion = moves ? m->nbody : 0;
  m->nspaceact = 0;
  for (int fill = 0; fill < 2; ++fill) {
    for (int i = 0; i < m->nactuator; ++i) {
      const int type = m->actuator_trntype[i], joint = m->actuator_trnid[2 * i];
      const bool turn = type == SN_TRN_SO3 && m->actuator_trnid[2 * i + 1] < 0;
      if (type == SN_TRN_JOINT || type == SN_TRN_JOINTINPARENT || turn) {
        if (fill)
          m->jnt_act[next[joint]++] = i;
        else
          ++m->jnt_act_adr[joint + 1];
      } else if (type != SN_TRN_TENDON && fill) {
        m->space_act[m->nspaceact++] = i;
      }
    }
    for (int j = 0; j < m->njnt && !fill; ++j) {
      m->jnt_act_adr[j + 1] += m->jnt_act_adr[j];
      next[j] = m->jnt_act_adr[j];
    }
  }
  return SN_OK;
}

// Period of the setpoint of a position servo whose transmission is a rotation in space, else 0. A
// servo has a fixed gain, an affine bias with the opposite stiffness, and its setpoint in ctrl or in
// an integrator's act; or it is a controller (SN_GAIN_PID).
static sn_real setpoint_period(const SnModel *m, int i) {
  const sn_real *gear = m->actuator_gear + 6 * m->actuator_outadr[i];
  const int id = m->actuator_trnid[2 * i], trn = m->actuator_trntype[i], dyn = m->actuator_dyntype[i];
  const bool servo = m->actuator_gaintype[i] == SN_GAIN_FIXED && m->actuator_biastype[i] == SN_BIAS_AFFINE &&
                     m->actuator_gainprm[SN_NGAIN * i] == -m->actuator_biasprm[SN_NBIAS * i + 1] &&
                     (dyn == SN_DYN_NONE || dyn == SN_DYN_INTEGRATOR);
  if (!servo && m->actuator_gaintype[i] != SN_GAIN_PID) return 0;
  if (trn == SN_TRN_SITE && m->actuator_trnid[2 * i + 1] >= 0 && gear[0] == 0 && gear[1] == 0 && gear[2] == 0)
    return 2 * SN_PI * sn_norm3(gear + 3);
  if ((trn == SN_TRN_JOINT || trn == SN_TRN_JOINTINPARENT) && m->jnt_type[id] == SN_JNT_BALL)
    return 2 * SN_PI * sn_norm3(gear);
  return 0;
}

// Controls that matter: planners stay inside, descriptions show it.
static void setup_ctrl_range(SnModel *m) {
  for (int i = 0; i < m->nactuator; ++i)
    for (int u = m->actuator_ctrladr[i]; u < m->actuator_ctrladr[i] + m->actuator_ctrlnum[i]; ++u) {
      const bool limited =
          m->actuator_ctrllimited[u] && m->actuator_ctrlrange[2 * u] < m->actuator_ctrlrange[2 * u + 1];
      const bool muscle = !limited && m->actuator_dyntype[i] == SN_DYN_MUSCLE;
      m->ctrl_limited[u] = limited || muscle;
      m->ctrl_range[2 * u] = limited ? m->actuator_ctrlrange[2 * u] : 0;
      m->ctrl_range[2 * u + 1] = limited ? m->actuator_ctrlrange[2 * u + 1] : muscle;
    }
}

static SnCode setup_muscles(SnModel *m, SnError *err) {
  m->muscle_gain = sn_model_alloc(m, sizeof(sn_real) * SN_NMUSCLE * (size_t)m->nactuator);
  m->muscle_bias = sn_model_alloc(m, sizeof(sn_real) * SN_NMUSCLE * (size_t)m->nactuator);
  if (!m->muscle_gain || !m->muscle_bias) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int i = 0; i < m->nactuator; ++i) {
    const int out = m->actuator_outadr[i];
    const sn_real *range = m->actuator_lengthrange + 2 * out, acc0 = m->actuator_acc0[out];
    if (m->actuator_gaintype[i] == SN_GAIN_MUSCLE)
      sn_muscle_table(m->muscle_gain + SN_NMUSCLE * i, m->actuator_gainprm + SN_NGAIN * i, range, acc0);
    if (m->actuator_biastype[i] == SN_BIAS_MUSCLE)
      sn_muscle_table(m->muscle_bias + SN_NMUSCLE * i, m->actuator_biasprm + SN_NBIAS * i, range, acc0);
  }
  return SN_OK;
}

// Refuses what an element has, and names the element as the importer does.
static SnCode refuse_past(SnError *err, const SnModel *m, const char *kind, SnNameKind names, int i, const char *what) {
  const char *name = sn_model_name(m, names, i);
  if (name[0]) return sn_fail(err, SN_ERR_UNSUPPORTED, "%s '%s': %s is not supported", kind, name, what);
  return sn_fail(err, SN_ERR_UNSUPPORTED, "%s %d: %s is not supported", kind, i, what);
}

// Buffers of controls and sensors, and springs that yield, under options that a model file or a user has set.
static SnCode setup_past(SnModel *m, SnError *err) {
  const char *yield = sn_option_lacks_yield(m->opt.integrator);
  const char *buffer = sn_option_lacks_buffer(m->opt.integrator, m->opt.disableflags);
  for (int j = 0; yield && j < m->njnt; ++j)
    if (m->jnt_plasticadr[j] >= 0) return refuse_past(err, m, "joint", SN_NAME_JNT, j, yield);
  for (int t = 0; yield && t < m->ntendon; ++t)
    if (m->tendon_plasticadr[t] >= 0) return refuse_past(err, m, "tendon", SN_NAME_TENDON, t, yield);
  m->ndelay = m->nsensorbuffer = 0;
  for (int i = 0; i < m->nactuator; ++i) m->ndelay += m->actuator_delay[i] > 0;
  for (int i = 0; i < m->nsensor; ++i) {
    if (m->sensor_history[2 * i] == 0) continue;
    ++m->nsensorbuffer;
    if (buffer) return refuse_past(err, m, "sensor", SN_NAME_SENSOR, i, buffer);
  }
  return SN_OK;
}

// What the integrator `discrete` goes without.
static SnCode setup_discrete(const SnModel *m, SnError *err) {
  const SnOption *o = &m->opt;
  const char *what[SN_DISCRETE_LINES];
  const bool discrete = o->integrator == SN_INT_DISCRETE;
  const int n = discrete ? sn_option_lacks_discrete(o->enableflags, o->noslip_iterations, what) : 0;
  char text[100 * SN_DISCRETE_LINES] = "";
  for (int i = 0; i < n; ++i) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%soption 'integrator': %s is not supported", i ? "\n" : "", what[i]);
  }
  if (n > 0) return sn_fail(err, SN_ERR_UNSUPPORTED, "%s", text);
  return SN_OK;
}

SnCode sn_setup_actuator(SnModel *m, SnError *err) {
  SnCode code = setup_past(m, err);
  if (code == SN_OK) code = setup_discrete(m, err);
  if (code == SN_OK) code = setup_rows(m, err);
  if (code == SN_OK) code = setup_columns(m, err);
  if (code == SN_OK) code = setup_tendon_actuators(m, err);
  if (code == SN_OK) code = setup_joint_actuators(m, err);
  if (code == SN_OK) code = setup_muscles(m, err);
  if (code != SN_OK) return code;
  m->actuator_period = sn_model_alloc(m, sizeof(sn_real) * (size_t)m->nactuator);
  m->ctrl_limited = sn_model_alloc(m, sizeof(int) * (size_t)m->nu);
  m->ctrl_range = sn_model_alloc(m, sizeof(sn_real) * 2 * (size_t)m->nu);
  if (!m->actuator_period || !m->ctrl_limited || !m->ctrl_range)
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int i = 0; i < m->nactuator; ++i) m->actuator_period[i] = setpoint_period(m, i);
  setup_ctrl_range(m);
  return SN_OK;
}

// Geoms, meshes, pairs, equalities, tendons, actuators, sensors, names: what refers to what, and unit quaternions.
#include "physics/model/model_private.h"

#define COMPLAIN(field, i, rule) return sn_model_complain(err, #field, (i), (double)m->field[i], rule)

static bool is_unit(const sn_real *x, int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) s += (double)x[i] * (double)x[i];
  return fabs(s - 1) < 1e-5;
}

// n unit quaternions, the first at x, `stride` numbers apart.
static SnCode check_quats(const char *field, const sn_real *x, int n, SnError *err) {
  for (int i = 0; i < n; ++i)
    if (!is_unit(x + 4 * i, 4))
      return sn_model_complain(err, field, 4 * i, (double)x[4 * i], "must begin a unit quaternion");
  return SN_OK;
}

// Rotations in a vector of positions.
static SnCode check_positions(const SnModel *m, const char *field, const sn_real *qpos, SnError *err) {
  for (int j = 0; j < m->njnt; ++j) {
    if (m->jnt_type[j] > SN_JNT_BALL) continue;
    const int adr = m->jnt_qposadr[j] + (m->jnt_type[j] == SN_JNT_FREE ? 3 : 0);
    if (!is_unit(qpos + adr, 4))
      return sn_model_complain(err, field, adr, (double)qpos[adr], "must begin a unit quaternion");
  }
  return SN_OK;
}

static SnCode check_units(const SnModel *m, SnError *err) {
  SnCode code = check_quats("body_quat", m->body_quat, m->nbody, err);
  if (code == SN_OK) code = check_quats("body_iquat", m->body_iquat, m->nbody, err);
  if (code == SN_OK) code = check_quats("geom_quat", m->geom_quat, m->ngeom, err);
  if (code == SN_OK) code = check_quats("site_quat", m->site_quat, m->nsite, err);
  if (code == SN_OK) code = check_quats("mesh_quat", m->mesh_quat, m->nmesh, err);
  if (code == SN_OK) code = check_quats("cam_quat", m->cam_quat, m->ncam, err);
  if (code == SN_OK) code = check_quats("key_mquat", m->key_mquat, m->nkey * m->nmocap, err);
  if (code == SN_OK) code = check_positions(m, "qpos0", m->qpos0, err);
  if (code == SN_OK) code = check_positions(m, "qpos_spring", m->qpos_spring, err);
  for (int k = 0; k < m->nkey && code == SN_OK; ++k)
    code = check_positions(m, "key_qpos", m->key_qpos + k * m->nq, err);
  if (code != SN_OK) return code;
  for (int j = 0; j < m->njnt; ++j)
    if (m->jnt_type[j] >= SN_JNT_SLIDE && !is_unit(m->jnt_axis + 3 * j, 3))
      COMPLAIN(jnt_axis, 3 * j, "must begin a unit vector");
  return SN_OK;
}

static bool is_condim(int dim) { return dim == 1 || dim == 3 || dim == 4 || dim == 6; }

// True for shapes that the engine has colliders for.
static bool is_solid(const SnModel *m, int geom) {
  const int type = m->geom_type[geom];
  if (type == SN_GEOM_SDF) return false;
  if (type == SN_GEOM_HFIELD) return m->geom_dataid[geom] >= 0 && m->hfield_nrow[m->geom_dataid[geom]] > 0;
  return type != SN_GEOM_MESH || m->mesh_vertnum[m->geom_dataid[geom]] > 0;
}

static SnCode check_geoms(const SnModel *m, SnError *err) {
  for (int i = 0; i < m->ngeom; ++i) {
    if (!is_condim(m->geom_condim[i])) COMPLAIN(geom_condim, i, "must be 1, 3, 4 or 6");
    if (m->geom_type[i] == SN_GEOM_MESH && (m->geom_dataid[i] < 0 || m->geom_dataid[i] >= m->nmesh))
      COMPLAIN(geom_dataid, i, "a mesh geom has a mesh");
    if (m->geom_type[i] == SN_GEOM_HFIELD && m->geom_dataid[i] >= m->nhfield)
      COMPLAIN(geom_dataid, i, "must be a height field, or -1");
    if ((m->geom_contype[i] || m->geom_conaffinity[i]) && !is_solid(m, i))
      COMPLAIN(geom_type, i, "this shape cannot collide");
    for (int k = 3 * i; k < 3 * i + 3; ++k)
      if (m->geom_size[k] < 0) COMPLAIN(geom_size, k, "must be at least 0");
    if (m->geom_rbound[i] < 0) COMPLAIN(geom_rbound, i, "must be at least 0");
  }
  for (int i = 0; i < m->npair; ++i) {
    const int g1 = m->pair_geom1[i], g2 = m->pair_geom2[i], b1 = m->geom_bodyid[g1], b2 = m->geom_bodyid[g2];
    if (!is_condim(m->pair_dim[i])) COMPLAIN(pair_dim, i, "must be 1, 3, 4 or 6");
    if (!is_solid(m, g1)) COMPLAIN(pair_geom1, i, "this shape cannot collide");
    if (!is_solid(m, g2)) COMPLAIN(pair_geom2, i, "this shape cannot collide");
    if (m->pair_signature[i] != (sn_mini(b1, b2) << 16) + sn_maxi(b1, b2))
      COMPLAIN(pair_signature, i, "must be made of the two bodies");
  }
  for (int i = 0; i < m->nexclude; ++i) {
    const int s = m->exclude_signature[i];
    if (s < 0 || (s >> 16) >= m->nbody || (s & 0xffff) >= m->nbody)
      COMPLAIN(exclude_signature, i, "must be made of two bodies");
  }
  return SN_OK;
}

// The graph of a hull: numbers of vertices and faces, then per vertex where its list of neighbours starts and which
// vertex of the mesh it is, the lists, each ended by -1, and the faces.
static SnCode check_graph(const SnModel *m, int mesh, SnError *err) {
  const int adr = m->mesh_graphadr[mesh], capacity = m->nmeshgraph - adr, *g = m->mesh_graph + adr,
            nvert = m->mesh_vertnum[mesh];
  if (capacity < 2 || g[0] < 1 || g[1] < 0 || g[0] > nvert || g[1] > m->nmeshgraph ||
      2 + 3 * (int64_t)g[0] + 6 * (int64_t)g[1] > capacity)
    COMPLAIN(mesh_graphadr, mesh, "must begin a graph that fits");
  const int n = g[0], faces = g[1], edges = n + 3 * faces;
  const int *start = g + 2, *vertex = start + n, *edge = vertex + n, *face = edge + edges;
  if (edge[edges - 1] != -1) COMPLAIN(mesh_graphadr, mesh, "the last list of neighbours ends in -1");
  for (int i = 0; i < n; ++i) {
    if (start[i] < 0 || start[i] >= edges)
      COMPLAIN(mesh_graph, (int)(start + i - m->mesh_graph), "a list of neighbours starts inside the graph");
    if (vertex[i] < 0 || vertex[i] >= nvert)
      COMPLAIN(mesh_graph, (int)(vertex + i - m->mesh_graph), "must be a vertex of the mesh");
  }
  for (int i = 0; i < edges; ++i)
    if (edge[i] >= n) COMPLAIN(mesh_graph, (int)(edge + i - m->mesh_graph), "a neighbour is a vertex of the graph");
  for (int i = 0; i < 3 * faces; ++i)
    if (face[i] < 0 || face[i] >= nvert)
      COMPLAIN(mesh_graph, (int)(face + i - m->mesh_graph), "must be a vertex of the mesh");
  for (int k = 27 * mesh; k < 27 * mesh + 27; ++k)
    if (m->mesh_extrema[k] < 0 || m->mesh_extrema[k] >= n) COMPLAIN(mesh_extrema, k, "must be a vertex of the graph");
  return SN_OK;
}

// Polygons of a hull and the map from vertices to them.
static SnCode check_polygons(const SnModel *m, int mesh, SnError *err) {
  const int nvert = m->mesh_vertnum[mesh], first = m->mesh_vertadr[mesh], adr = m->mesh_polyadr[mesh],
            num = m->mesh_polynum[mesh];
  for (int p = adr; p < adr + num; ++p) {
    const int from = m->mesh_polyvertadr[p], n = m->mesh_polyvertnum[p];
    if (n > m->nmeshpolyvert - from) COMPLAIN(mesh_polyvertnum, p, "reaches past the last entry");
    if (n > SN_POLY_MAX)
      COMPLAIN(mesh_polyvertnum, p, "must be at most 256: a face of a hull with more corners is not supported");
    for (int k = from; k < from + n; ++k)
      if (m->mesh_polyvert[k] >= nvert) COMPLAIN(mesh_polyvert, k, "must be a vertex of the mesh");
    if (!is_unit(m->mesh_polynormal + 3 * p, 3)) COMPLAIN(mesh_polynormal, 3 * p, "must begin a unit vector");
  }
  for (int v = first; v < first + nvert; ++v) {
    const int from = m->mesh_polymapadr[v], n = m->mesh_polymapnum[v];
    if (n > m->nmeshpolymap - from) COMPLAIN(mesh_polymapnum, v, "reaches past the last entry");
    for (int k = from; k < from + n; ++k)
      if (m->mesh_polymap[k] >= num) COMPLAIN(mesh_polymap, k, "must be a polygon of the mesh");
  }
  return SN_OK;
}

static SnCode check_meshes(const SnModel *m, SnError *err) {
  for (int i = 0; i < m->nmesh; ++i) {
    const int nvert = m->mesh_vertnum[i];
    if (nvert > m->nmeshvert - m->mesh_vertadr[i]) COMPLAIN(mesh_vertnum, i, "reaches past the last vertex");
    if (m->mesh_polynum[i] > m->nmeshpoly - m->mesh_polyadr[i])
      COMPLAIN(mesh_polynum, i, "reaches past the last polygon");
    if (m->mesh_facenum[i] > m->nmeshface - m->mesh_faceadr[i])
      COMPLAIN(mesh_facenum, i, "reaches past the last triangle");
    if (m->mesh_normalnum[i] > m->nmeshnormal - m->mesh_normaladr[i])
      COMPLAIN(mesh_normalnum, i, "reaches past the last vector");
    for (int k = 3 * m->mesh_faceadr[i]; k < 3 * (m->mesh_faceadr[i] + m->mesh_facenum[i]); ++k)
      if (m->mesh_face[k] >= nvert) COMPLAIN(mesh_face, k, "must be a vertex of the mesh");
    SnCode code = m->mesh_graphadr[i] < 0 ? SN_OK : check_graph(m, i, err);
    if (code == SN_OK) code = check_polygons(m, i, err);
    if (code != SN_OK) return code;
  }
  return SN_OK;
}

static SnCode check_hfields(const SnModel *m, SnError *err) {
  for (int i = 0; i < m->nhfield; ++i) {
    const int64_t n = (int64_t)m->hfield_nrow[i] * m->hfield_ncol[i];
    const sn_real *size = m->hfield_size + 4 * i, *data = m->hfield_data + m->hfield_adr[i];
    if (n > m->nhfielddata - m->hfield_adr[i]) COMPLAIN(hfield_adr, i, "reaches past the last height");
    for (int k = 0; k < 4; ++k)
      if (!(size[k] > 0)) COMPLAIN(hfield_size, 4 * i + k, "must be above 0");
    for (int64_t k = 0; k < n; ++k)
      if (data[k] * size[2] < -size[3]) COMPLAIN(hfield_data, (int)(data + k - m->hfield_data), "lies below the base");
  }
  return SN_OK;
}

static bool is_scalar_joint(const SnModel *m, int j) { return j >= 0 && j < m->njnt && m->jnt_type[j] >= SN_JNT_SLIDE; }

static SnCode check_equalities(const SnModel *m, SnError *err) {
  for (int i = 0; i < m->neq; ++i) {
    const int a = m->eq_obj1id[i], b = m->eq_obj2id[i], type = m->eq_type[i];
    if (type == SN_EQ_JOINT) {
      if (!is_scalar_joint(m, a)) COMPLAIN(eq_obj1id, i, "must be a hinge or slide joint");
      if (b != -1 && !is_scalar_joint(m, b)) COMPLAIN(eq_obj2id, i, "must be a hinge or slide joint, or -1");
    } else if (type == SN_EQ_TENDON) {
      if (a >= m->ntendon) COMPLAIN(eq_obj1id, i, "must be a tendon");
      if (b >= m->ntendon) COMPLAIN(eq_obj2id, i, "must be a tendon, or -1");
    } else {
      const bool site = m->eq_objtype[i] == SN_OBJ_SITE;
      const int n = site ? m->nsite : m->nbody;
      if (!site && m->eq_objtype[i] != SN_OBJ_BODY) COMPLAIN(eq_objtype, i, "must be body (1) or site (6)");
      if (a >= n) COMPLAIN(eq_obj1id, i, "must be an object of its type");
      if (b < 0 || b >= n) COMPLAIN(eq_obj2id, i, "must be an object of its type");
    }
  }
  return SN_OK;
}

// A spatial path: sites, geoms between two sites, pulleys between branches; it starts and ends at a site, and a branch
// has at least two.
static SnCode check_spatial_path(const SnModel *m, int t, SnError *err) {
  const int adr = m->tendon_adr[t], end = adr + m->tendon_num[t];
  for (int k = adr; k < end; ++k) {
    const int type = m->wrap_type[k], id = m->wrap_objid[k];
    const int before = k > adr ? m->wrap_type[k - 1] : SN_WRAP_NONE,
              after = k + 1 < end ? m->wrap_type[k + 1] : SN_WRAP_NONE;
    switch (type) {
      case SN_WRAP_SITE:
        if (id < 0 || id >= m->nsite) COMPLAIN(wrap_objid, k, "must be a site");
        break;
      case SN_WRAP_PULLEY:
        if (after != SN_WRAP_SITE || (before != SN_WRAP_SITE && before != SN_WRAP_NONE))
          COMPLAIN(wrap_type, k, "a pulley stands between sites");
        if (!(m->wrap_prm[k] > 0)) COMPLAIN(wrap_prm, k, "the divisor of a pulley must be above 0");
        break;
      case SN_WRAP_SPHERE:
      case SN_WRAP_CYLINDER:
        if (before != SN_WRAP_SITE || after != SN_WRAP_SITE) COMPLAIN(wrap_type, k, "a geom stands between two sites");
        if (id < 0 || id >= m->ngeom) COMPLAIN(wrap_objid, k, "must be a geom");
        if (m->geom_type[id] != (type == SN_WRAP_SPHERE ? SN_GEOM_SPHERE : SN_GEOM_CYLINDER))
          COMPLAIN(wrap_objid, k, "must be a geom of the wrap's shape");
        if (m->wrap_prm[k] != sn_floor(m->wrap_prm[k]) || m->wrap_prm[k] < -1 || m->wrap_prm[k] >= (sn_real)m->nsite)
          COMPLAIN(wrap_prm, k, "must be a site, or -1");
        break;
      default:
        COMPLAIN(wrap_type, k, "a spatial tendon has sites, geoms and pulleys");
    }
  }
  if (m->wrap_type[end - 1] != SN_WRAP_SITE) COMPLAIN(wrap_type, end - 1, "a path ends at a site");
  return SN_OK;
}

static SnCode check_tendons(const SnModel *m, SnError *err) {
  int adr = 0;
  for (int t = 0; t < m->ntendon; ++t) {
    if (m->tendon_adr[t] != adr) COMPLAIN(tendon_adr, t, "paths follow each other");
    if (m->tendon_num[t] > m->nwrap - adr) COMPLAIN(tendon_num, t, "reaches past the last element");
    if (m->tendon_type[t] == SN_TENDON_SPATIAL) {
      if (check_spatial_path(m, t, err) != SN_OK) return SN_ERR_FORMAT;
    } else {
      for (int k = adr; k < adr + m->tendon_num[t]; ++k) {
        if (m->wrap_type[k] != SN_WRAP_JOINT) COMPLAIN(wrap_type, k, "a fixed tendon has joints");
        if (!is_scalar_joint(m, m->wrap_objid[k])) COMPLAIN(wrap_objid, k, "must be a hinge or slide joint");
      }
    }
    adr += m->tendon_num[t];
  }
  if (adr != m->nwrap) return sn_fail(err, SN_ERR_FORMAT, "model: tendons list %d path elements of %d", adr, m->nwrap);
  return SN_OK;
}

// Number of controls that a set of SN_INPUT_* stands for.
static int count_inputs(int spec) {
  int count = 0;
  for (int bit = SN_INPUT_POS; bit <= SN_INPUT_VOLTAGE; bit *= 2) count += (spec & bit) != 0;
  return count;
}

static bool controller_is_whole(const SnModel *m, int i) {
  const int dyn = m->actuator_dyntype[i], spec = m->actuator_ctrlspec[i];
  const int slew = m->actuator_dynprm[SN_NDYN * i + 1] > 0, integral = m->actuator_gainprm[SN_NGAIN * i] > 0;
  const int states = dyn == SN_DYN_PID ? slew + integral : 0;
  return m->actuator_biastype[i] == SN_BIAS_AFFINE && (dyn == SN_DYN_NONE || dyn == SN_DYN_PID) && spec > 0 &&
         spec < 2 * SN_INPUT_FF && m->actuator_ctrlnum[i] == count_inputs(spec) && m->actuator_actnum[i] == states &&
         (states > 0) == (dyn == SN_DYN_PID) && (states == 0 || (spec & SN_INPUT_POS));
}

// An electric motor divides by its resistance, by its constant where it has a controller, by its thermal capacitance.
static bool motor_is_whole(const SnModel *m, int i) {
  const sn_real *gain = m->actuator_gainprm + SN_NGAIN * i, *dyn = m->actuator_dynprm + SN_NDYN * i;
  const int spec = m->actuator_ctrlspec[i];
  const bool driven = (spec & (SN_INPUT_POS | SN_INPUT_VEL | SN_INPUT_FF)) != 0;
  const int states = (dyn[7] > 0) + (gain[5] > 0) + (dyn[2] > 0) + (dyn[5] > 0) + (dyn[0] > 0);
  if (spec != SN_INPUT_NONE && (spec <= 0 || spec >= SN_INPUT_NONE)) return false;
  if (!(gain[0] > 0) || gain[1] < 0 || (dyn[2] > 0 && !(dyn[3] > 0))) return false;
  if (driven ? gain[1] == 0 : gain[4] != 0 || gain[5] != 0 || gain[6] != 0 || dyn[7] > 0) return false;
  if (gain[5] > 0 && !(spec & SN_INPUT_POS)) return false;
  return m->actuator_biastype[i] == SN_BIAS_DCMOTOR &&
         (m->actuator_dyntype[i] == SN_DYN_DCMOTOR || (m->actuator_dyntype[i] == SN_DYN_NONE && states == 0)) &&
         m->actuator_ctrlnum[i] == count_inputs(spec) && m->actuator_actnum[i] == states;
}

// An orientation servo acts on a ball joint or on two sites.
static bool orientation_is_whole(const SnModel *m, int i) {
  const int dyn = m->actuator_dyntype[i], spec = m->actuator_ctrlspec[i], *id = m->actuator_trnid + 2 * i;
  if (m->actuator_trntype[i] != SN_TRN_SO3 || m->actuator_biastype[i] != SN_BIAS_SO3) return false;
  if (id[1] < 0 && m->jnt_type[id[0]] != SN_JNT_BALL) return false;
  if (dyn != SN_DYN_NONE && (dyn != SN_DYN_INTEGRATOR || spec != SN_CHART_EXPMAP)) return false;
  return (spec == SN_CHART_EXPMAP || spec == SN_CHART_QUAT) && m->actuator_ctrlnum[i] == 2 + spec &&
         m->actuator_actnum[i] == (dyn == SN_DYN_NONE ? 0 : 3);
}

// Whether controls and activations of actuator i are those that its types need.
static bool actuator_is_whole(const SnModel *m, int i) {
  const int dyn = m->actuator_dyntype[i];
  if (m->actuator_gaintype[i] == SN_GAIN_SO3) return orientation_is_whole(m, i);
  if (m->actuator_trntype[i] == SN_TRN_SO3) return false;
  if (m->actuator_gaintype[i] == SN_GAIN_PID) return controller_is_whole(m, i);
  if (m->actuator_gaintype[i] == SN_GAIN_DCMOTOR) return motor_is_whole(m, i);
  return m->actuator_gaintype[i] <= SN_GAIN_MUSCLE && m->actuator_biastype[i] <= SN_BIAS_MUSCLE &&
         dyn <= SN_DYN_MUSCLE && m->actuator_ctrlnum[i] == 1 && m->actuator_actnum[i] == (dyn != SN_DYN_NONE);
}

static SnCode check_actuators(const SnModel *m, SnError *err) {
  int ctrl = 0, out = 0, act = 0;
  for (int i = 0; i < m->nactuator; ++i) {
    const int id = m->actuator_trnid[2 * i], ref = m->actuator_trnid[2 * i + 1], type = m->actuator_trntype[i];
    const bool sites = type == SN_TRN_SITE || type == SN_TRN_SLIDERCRANK || (type == SN_TRN_SO3 && ref >= 0);
    const int outs = type == SN_TRN_SO3 ? 3 : 1;
    const int n = type == SN_TRN_TENDON ? m->ntendon : sites ? m->nsite : type == SN_TRN_BODY ? m->nbody : m->njnt;
    if (id < 0 || id >= n) COMPLAIN(actuator_trnid, 2 * i, "must be an object of the transmission's kind");
    if (sites && ref >= m->nsite) COMPLAIN(actuator_trnid, 2 * i + 1, "must be a site, or -1");
    if (type == SN_TRN_SLIDERCRANK && ref < 0) COMPLAIN(actuator_trnid, 2 * i + 1, "must be a site");
    if (m->actuator_ctrladr[i] != ctrl) COMPLAIN(actuator_ctrladr, i, "controls follow the order of actuators");
    if (m->actuator_outadr[i] != out) COMPLAIN(actuator_outadr, i, "forces follow the order of actuators");
    if (m->actuator_outnum[i] != outs) COMPLAIN(actuator_outnum, i, "must be 1, of an orientation 3");
    if (!actuator_is_whole(m, i))
      COMPLAIN(actuator_actnum, i, "must fit the activation dynamics, gain, bias and controls");
    if (m->actuator_actadr[i] != (m->actuator_actnum[i] ? act : -1))
      COMPLAIN(actuator_actadr, i, "activations follow the order of actuators");
    ctrl += m->actuator_ctrlnum[i];
    out += outs;
    act += m->actuator_actnum[i];
  }
  if (ctrl != m->nu || out != m->nout || act != m->na)
    return sn_fail(err, SN_ERR_FORMAT, "model: actuators have %d controls, %d forces, %d activations of %d, %d, %d",
                   ctrl, out, act, m->nu, m->nout, m->na);
  return SN_OK;
}

enum { TENDON = 18, ACTUATOR = 19 };  // kinds of objects (mjtObj) that sensors alone refer to

// Number of objects of a kind that a sensor may refer to; -1: a kind that the engine does not hold.
static int count_of(const SnModel *m, int objtype) {
  switch (objtype) {
    case SN_OBJ_BODY:
    case SN_OBJ_XBODY:
      return m->nbody;
    case SN_OBJ_JOINT:
      return m->njnt;
    case SN_OBJ_GEOM:
      return m->ngeom;
    case SN_OBJ_SITE:
      return m->nsite;
    case SN_OBJ_CAMERA:
      return m->ncam;
    case TENDON:
      return m->ntendon;
    case ACTUATOR:
      return m->nactuator;
    default:
      return -1;
  }
}

// What the sensors that the engine computes refer to, and how many numbers they have; FRAME: any object with a frame,
// FREE: none, or looked at where the sensor is computed; dim 0: likewise.
enum { FRAME = -1, FREE = -2 };
static const struct {
  int type, obj, ref, dim;
} sensor_kinds[] = {{SN_SENS_TOUCH, SN_OBJ_SITE, FREE, 1},
                    {SN_SENS_ACCELEROMETER, SN_OBJ_SITE, FREE, 3},
                    {SN_SENS_VELOCIMETER, SN_OBJ_SITE, FREE, 3},
                    {SN_SENS_GYRO, SN_OBJ_SITE, FREE, 3},
                    {SN_SENS_FORCE, SN_OBJ_SITE, FREE, 3},
                    {SN_SENS_TORQUE, SN_OBJ_SITE, FREE, 3},
                    {SN_SENS_MAGNETOMETER, SN_OBJ_SITE, FREE, 3},
                    {SN_SENS_RANGEFINDER, FREE, FREE, 0},
                    {SN_SENS_CAMPROJECTION, SN_OBJ_SITE, SN_OBJ_CAMERA, 2},
                    {SN_SENS_JOINTPOS, SN_OBJ_JOINT, FREE, 1},
                    {SN_SENS_JOINTVEL, SN_OBJ_JOINT, FREE, 1},
                    {SN_SENS_TENDONPOS, TENDON, FREE, 1},
                    {SN_SENS_TENDONVEL, TENDON, FREE, 1},
                    {SN_SENS_ACTUATORPOS, ACTUATOR, FREE, 0},
                    {SN_SENS_ACTUATORVEL, ACTUATOR, FREE, 0},
                    {SN_SENS_ACTUATORFRC, ACTUATOR, FREE, 0},
                    {SN_SENS_JOINTACTFRC, SN_OBJ_JOINT, FREE, 1},
                    {SN_SENS_TENDONACTFRC, TENDON, FREE, 1},
                    {SN_SENS_BALLQUAT, SN_OBJ_JOINT, FREE, 4},
                    {SN_SENS_BALLANGVEL, SN_OBJ_JOINT, FREE, 3},
                    {SN_SENS_JOINTLIMITPOS, SN_OBJ_JOINT, FREE, 1},
                    {SN_SENS_JOINTLIMITVEL, SN_OBJ_JOINT, FREE, 1},
                    {SN_SENS_JOINTLIMITFRC, SN_OBJ_JOINT, FREE, 1},
                    {SN_SENS_TENDONLIMITPOS, TENDON, FREE, 1},
                    {SN_SENS_TENDONLIMITVEL, TENDON, FREE, 1},
                    {SN_SENS_TENDONLIMITFRC, TENDON, FREE, 1},
                    {SN_SENS_FRAMEPOS, FRAME, FREE, 3},
                    {SN_SENS_FRAMEQUAT, FRAME, FREE, 4},
                    {SN_SENS_FRAMEXAXIS, FRAME, FREE, 3},
                    {SN_SENS_FRAMEYAXIS, FRAME, FREE, 3},
                    {SN_SENS_FRAMEZAXIS, FRAME, FREE, 3},
                    {SN_SENS_FRAMELINVEL, FRAME, FREE, 3},
                    {SN_SENS_FRAMEANGVEL, FRAME, FREE, 3},
                    {SN_SENS_FRAMELINACC, FRAME, FREE, 3},
                    {SN_SENS_FRAMEANGACC, FRAME, FREE, 3},
                    {SN_SENS_SUBTREECOM, SN_OBJ_BODY, FREE, 3},
                    {SN_SENS_SUBTREELINVEL, SN_OBJ_BODY, FREE, 3},
                    {SN_SENS_SUBTREEANGMOM, SN_OBJ_BODY, FREE, 3},
                    {SN_SENS_INSIDESITE, FRAME, SN_OBJ_SITE, 1},
                    {SN_SENS_GEOMDIST, FREE, FREE, 1},
                    {SN_SENS_GEOMNORMAL, FREE, FREE, 3},
                    {SN_SENS_GEOMFROMTO, FREE, FREE, 6},
                    {SN_SENS_CONTACT, FREE, FREE, 0},
                    {SN_SENS_E_POTENTIAL, FREE, FREE, 1},
                    {SN_SENS_E_KINETIC, FREE, FREE, 1},
                    {SN_SENS_CLOCK, FREE, FREE, 1}};

// Returns whether sensor i has what its type says.
static bool sensor_is_whole(const SnModel *m, int i) {
  for (size_t k = 0; k < sizeof sensor_kinds / sizeof *sensor_kinds; ++k) {
    const int obj = sensor_kinds[k].obj, ref = sensor_kinds[k].ref, type = m->sensor_objtype[i];
    if (sensor_kinds[k].type != m->sensor_type[i]) continue;
    if (sensor_kinds[k].dim > 0 && sensor_kinds[k].dim != m->sensor_dim[i]) return false;
    if (obj == FRAME && (count_of(m, type) < 0 || type == SN_OBJ_JOINT || type == TENDON || type == ACTUATOR))
      return false;
    if (obj >= 0 && obj != type) return false;
    if (obj == ACTUATOR && m->sensor_dim[i] != m->actuator_outnum[m->sensor_objid[i]]) return false;
    if (ref >= 0 && (m->sensor_reftype[i] != ref || m->sensor_refid[i] < 0)) return false;
    return true;
  }
  return true;
}

static SnCode check_sensors(const SnModel *m, SnError *err) {
  int adr = 0;
  for (int i = 0; i < m->nsensor; ++i) {
    const int n = count_of(m, m->sensor_objtype[i]), r = count_of(m, m->sensor_reftype[i]);
    if (n >= 0 && (m->sensor_objid[i] < 0 || m->sensor_objid[i] >= n))
      COMPLAIN(sensor_objid, i, "must be an object of its type");
    if (r >= 0 && m->sensor_refid[i] >= r) COMPLAIN(sensor_refid, i, "must be an object of its type, or -1");
    if (!sensor_is_whole(m, i)) COMPLAIN(sensor_type, i, "must be one of its objects and of its size");
    if (m->sensor_adr[i] != adr) COMPLAIN(sensor_adr, i, "outputs follow the order of sensors");
    if (m->sensor_dim[i] > m->nsensordata - adr) COMPLAIN(sensor_dim, i, "reaches past the last output");
    adr += m->sensor_dim[i];
  }
  if (adr != m->nsensordata)
    return sn_fail(err, SN_ERR_FORMAT, "model: sensors have %d outputs of %d", adr, m->nsensordata);
  return SN_OK;
}

// A buffer of controls or of a sensor: where it begins, after those before it, and how it is read.
static SnCode check_buffer(const char *field, int i, const int *history, int adr, int dim, int *end, SnError *err) {
  const int n = history[0];
  if (history[1] > SN_INTERP_CUBIC) return sn_model_complain(err, field, 2 * i + 1, history[1], "must be 0, 1 or 2");
  if (n == 0) return adr < 0 ? SN_OK : sn_model_complain(err, field, 2 * i, n, "a buffer has at least one sample");
  if (adr != *end || (int64_t)n * (1 + dim) > SN_CAP_nhistory)
    return sn_model_complain(err, field, 2 * i, n, "buffers follow each other, first those of actuators");
  *end += sn_history_size(n, dim);
  return SN_OK;
}

static SnCode check_buffers(const SnModel *m, SnError *err) {
  int end = 0;
  SnCode code = SN_OK;
  for (int i = 0; code == SN_OK && i < m->nactuator; ++i) {
    code = check_buffer("actuator_history", i, m->actuator_history + 2 * i, m->actuator_historyadr[i],
                        m->actuator_ctrlnum[i], &end, err);
    if (code == SN_OK && (m->actuator_delay[i] < 0 || (m->actuator_delay[i] > 0 && m->actuator_history[2 * i] == 0)))
      COMPLAIN(actuator_delay, i, "must be 0, or above 0 where there is a buffer");
  }
  for (int i = 0; code == SN_OK && i < m->nsensor; ++i) {
    code = check_buffer("sensor_history", i, m->sensor_history + 2 * i, m->sensor_historyadr[i], m->sensor_dim[i], &end,
                        err);
    if (code == SN_OK && m->sensor_delay[i] < 0) COMPLAIN(sensor_delay, i, "must be at least 0");
    if (code == SN_OK && m->sensor_interval[2 * i] < 0) COMPLAIN(sensor_interval, 2 * i, "must be at least 0");
  }
  if (code != SN_OK || end == m->nhistory) return code;
  return sn_fail(err, SN_ERR_FORMAT, "model: buffers have %d numbers of %d", end, m->nhistory);
}

// Rests of springs that yield: first those of joints, then those of tendons, without gaps.
static SnCode check_rests(const SnModel *m, SnError *err) {
  int end = 0;
  for (int j = 0; j < m->njnt; ++j) {
    const int adr = m->jnt_plasticadr[j], ball = m->jnt_type[j] == SN_JNT_BALL;
    if (m->jnt_springyield[j] < 0) COMPLAIN(jnt_springyield, j, "must be at least 0");
    if (adr < 0) continue;
    if (m->jnt_type[j] == SN_JNT_FREE || adr != end) COMPLAIN(jnt_plasticadr, j, "rests follow the order of joints");
    end += ball ? 4 : 1;
    for (int k = 0; ball && end <= m->nplastic && k < m->nkey; ++k)
      if (!is_unit(m->key_plastic + k * m->nplastic + adr, 4))
        COMPLAIN(key_plastic, k * m->nplastic + adr, "must begin a unit quaternion");
  }
  for (int t = 0; t < m->ntendon; ++t) {
    if (m->tendon_springyield[t] < 0) COMPLAIN(tendon_springyield, t, "must be at least 0");
    if (m->tendon_plasticadr[t] < 0) continue;
    if (m->tendon_plasticadr[t] != end) COMPLAIN(tendon_plasticadr, t, "rests follow the order of tendons");
    end += 2;
    for (int k = 0; end <= m->nplastic && k < m->nkey; ++k) {
      const int at = k * m->nplastic + m->tendon_plasticadr[t];
      if (m->key_plastic[at] > m->key_plastic[at + 1])
        COMPLAIN(key_plastic, at, "must not be above the number behind it");
    }
  }
  if (end == m->nplastic) return SN_OK;
  return sn_fail(err, SN_ERR_FORMAT, "model: rests of springs have %d numbers of %d", end, m->nplastic);
}

SnCode sn_model_check_parts(const SnModel *m, SnError *err) {
  SnCode code = check_units(m, err);
  if (code == SN_OK) code = check_meshes(m, err);
  if (code == SN_OK) code = check_hfields(m, err);
  if (code == SN_OK) code = check_geoms(m, err);
  if (code == SN_OK) code = check_equalities(m, err);
  if (code == SN_OK) code = check_tendons(m, err);
  if (code == SN_OK) code = check_actuators(m, err);
  if (code == SN_OK) code = check_sensors(m, err);
  if (code == SN_OK) code = check_buffers(m, err);
  if (code == SN_OK) code = check_rests(m, err);
  if (code == SN_OK && m->names[m->nnames - 1] != 0)
    code = sn_fail(err, SN_ERR_FORMAT, "model: the last name does not end in 0");
  return code;
}

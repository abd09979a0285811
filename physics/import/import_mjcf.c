// The copy of a compiled MuJoCo model, and the proof at compile time that no part of it was overlooked.
#include "physics/import/import_mjcf.h"

#include <mujoco/mujoco.h>
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/model/model.h"

// Values of enums and sizes of rows: equal, so that arrays are copied as they are.
#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)
SAME(SN_NREF, mjNREF);
SAME(SN_NIMP, mjNIMP);
SAME(SN_NPOLY, mjNPOLY);
SAME(SN_NEQDATA, mjNEQDATA);
SAME(SN_NFLUID, mjNFLUID);
SAME(SN_NDYN, mjNDYN);
SAME(SN_NGAIN, mjNGAIN);
SAME(SN_NBIAS, mjNBIAS);
SAME(SN_NSENS, mjNSENS);
SAME(SN_JNT_FREE, mjJNT_FREE);
SAME(SN_JNT_BALL, mjJNT_BALL);
SAME(SN_JNT_SLIDE, mjJNT_SLIDE);
SAME(SN_JNT_HINGE, mjJNT_HINGE);
SAME(SN_GEOM_PLANE, mjGEOM_PLANE);
SAME(SN_GEOM_HFIELD, mjGEOM_HFIELD);
SAME(SN_GEOM_SPHERE, mjGEOM_SPHERE);
SAME(SN_GEOM_CAPSULE, mjGEOM_CAPSULE);
SAME(SN_GEOM_ELLIPSOID, mjGEOM_ELLIPSOID);
SAME(SN_GEOM_CYLINDER, mjGEOM_CYLINDER);
SAME(SN_GEOM_BOX, mjGEOM_BOX);
SAME(SN_GEOM_MESH, mjGEOM_MESH);
SAME(SN_GEOM_SDF, mjGEOM_SDF);
SAME(SN_INT_EULER, mjINT_EULER);
SAME(SN_INT_RK4, mjINT_RK4);
SAME(SN_INT_IMPLICIT, mjINT_IMPLICIT);
SAME(SN_INT_IMPLICITFAST, mjINT_IMPLICITFAST);
SAME(SN_INT_DISCRETE, mjINT_DISCRETE);
SAME(SN_CONE_PYRAMIDAL, mjCONE_PYRAMIDAL);
SAME(SN_CONE_ELLIPTIC, mjCONE_ELLIPTIC);
SAME(SN_EQ_CONNECT, mjEQ_CONNECT);
SAME(SN_EQ_WELD, mjEQ_WELD);
SAME(SN_EQ_JOINT, mjEQ_JOINT);
SAME(SN_EQ_TENDON, mjEQ_TENDON);
SAME(SN_TENDON_FIXED, mjTENDON_FIXED);
SAME(SN_TENDON_SPATIAL, mjTENDON_SPATIAL);
SAME(SN_WRAP_NONE, mjWRAP_NONE);
SAME(SN_WRAP_JOINT, mjWRAP_JOINT);
SAME(SN_WRAP_PULLEY, mjWRAP_PULLEY);
SAME(SN_WRAP_SITE, mjWRAP_SITE);
SAME(SN_WRAP_SPHERE, mjWRAP_SPHERE);
SAME(SN_WRAP_CYLINDER, mjWRAP_CYLINDER);
SAME(SN_TRN_JOINT, mjTRN_JOINT);
SAME(SN_TRN_JOINTINPARENT, mjTRN_JOINTINPARENT);
SAME(SN_TRN_SLIDERCRANK, mjTRN_SLIDERCRANK);
SAME(SN_TRN_TENDON, mjTRN_TENDON);
SAME(SN_TRN_SITE, mjTRN_SITE);
SAME(SN_TRN_BODY, mjTRN_BODY);
SAME(SN_TRN_SO3, mjTRN_SO3);
SAME(SN_DYN_NONE, mjDYN_NONE);
SAME(SN_DYN_INTEGRATOR, mjDYN_INTEGRATOR);
SAME(SN_DYN_FILTER, mjDYN_FILTER);
SAME(SN_DYN_FILTEREXACT, mjDYN_FILTEREXACT);
SAME(SN_DYN_MUSCLE, mjDYN_MUSCLE);
SAME(SN_DYN_DCMOTOR, mjDYN_DCMOTOR);
SAME(SN_DYN_PID, mjDYN_PID);
SAME(SN_GAIN_FIXED, mjGAIN_FIXED);
SAME(SN_GAIN_AFFINE, mjGAIN_AFFINE);
SAME(SN_GAIN_MUSCLE, mjGAIN_MUSCLE);
SAME(SN_GAIN_DCMOTOR, mjGAIN_DCMOTOR);
SAME(SN_GAIN_SO3, mjGAIN_SO3);
SAME(SN_GAIN_PID, mjGAIN_PID);
SAME(SN_CHART_EXPMAP, mjCHART_EXPMAP);
SAME(SN_CHART_QUAT, mjCHART_QUAT);
SAME(SN_INPUT_POS, mjINPUT_POS);
SAME(SN_INPUT_VEL, mjINPUT_VEL);
SAME(SN_INPUT_FF, mjINPUT_FF);
SAME(SN_INPUT_VOLTAGE, mjINPUT_VOLTAGE);
SAME(SN_INPUT_NONE, mjINPUT_NONE);
SAME(SN_BIAS_NONE, mjBIAS_NONE);
SAME(SN_BIAS_AFFINE, mjBIAS_AFFINE);
SAME(SN_BIAS_MUSCLE, mjBIAS_MUSCLE);
SAME(SN_BIAS_DCMOTOR, mjBIAS_DCMOTOR);
SAME(SN_BIAS_SO3, mjBIAS_SO3);
SAME(SN_OBJ_BODY, mjOBJ_BODY);
SAME(SN_OBJ_XBODY, mjOBJ_XBODY);
SAME(SN_OBJ_JOINT, mjOBJ_JOINT);
SAME(SN_OBJ_GEOM, mjOBJ_GEOM);
SAME(SN_OBJ_SITE, mjOBJ_SITE);
SAME(SN_OBJ_CAMERA, mjOBJ_CAMERA);
SAME(SN_DSBL_CONSTRAINT, mjDSBL_CONSTRAINT);
SAME(SN_DSBL_EQUALITY, mjDSBL_EQUALITY);
SAME(SN_DSBL_FRICTIONLOSS, mjDSBL_FRICTIONLOSS);
SAME(SN_DSBL_LIMIT, mjDSBL_LIMIT);
SAME(SN_DSBL_CONTACT, mjDSBL_CONTACT);
SAME(SN_DSBL_SPRING, mjDSBL_SPRING);
SAME(SN_DSBL_DAMPER, mjDSBL_DAMPER);
SAME(SN_DSBL_GRAVITY, mjDSBL_GRAVITY);
SAME(SN_DSBL_CLAMPCTRL, mjDSBL_CLAMPCTRL);
SAME(SN_DSBL_WARMSTART, mjDSBL_WARMSTART);
SAME(SN_DSBL_FILTERPARENT, mjDSBL_FILTERPARENT);
SAME(SN_DSBL_ACTUATION, mjDSBL_ACTUATION);
SAME(SN_DSBL_REFSAFE, mjDSBL_REFSAFE);
SAME(SN_DSBL_SENSOR, mjDSBL_SENSOR);
SAME(SN_DSBL_MIDPHASE, mjDSBL_MIDPHASE);
SAME(SN_DSBL_EULERDAMP, mjDSBL_EULERDAMP);
SAME(SN_DSBL_AUTORESET, mjDSBL_AUTORESET);
SAME(SN_DSBL_NATIVECCD, mjDSBL_NATIVECCD);
SAME(SN_DSBL_ISLAND, mjDSBL_ISLAND);
SAME(SN_DSBL_MULTICCD, mjDSBL_MULTICCD);
SAME(SN_ENBL_OVERRIDE, mjENBL_OVERRIDE);
SAME(SN_ENBL_ENERGY, mjENBL_ENERGY);
SAME(SN_ENBL_FWDINV, mjENBL_FWDINV);
SAME(SN_ENBL_INVDISCRETE, mjENBL_INVDISCRETE);
SAME(SN_ENBL_SLEEP, mjENBL_SLEEP);
SAME(SN_ENBL_DIAGEXACT, mjENBL_DIAGEXACT);
SAME(SN_ENBL_IPC, mjENBL_IPC);
SAME(SN_ENBL_SPECULATIVE, mjENBL_SPECULATIVE);
SAME(SN_NENABLE, mjNENABLE);
SAME(SN_SLEEP_AUTO, mjSLEEP_AUTO);
SAME(SN_SLEEP_AUTO_NEVER, mjSLEEP_AUTO_NEVER);
SAME(SN_SLEEP_AUTO_ALLOWED, mjSLEEP_AUTO_ALLOWED);
SAME(SN_SLEEP_NEVER, mjSLEEP_NEVER);
SAME(SN_SLEEP_ALLOWED, mjSLEEP_ALLOWED);
SAME(SN_SLEEP_INIT, mjSLEEP_INIT);
SAME(SN_AWAKE, -(1 + mjMINAWAKE));
SAME(SN_NDISABLE, mjNDISABLE);
SAME(SN_SENS_VELOCIMETER, mjSENS_VELOCIMETER);
SAME(SN_SENS_GYRO, mjSENS_GYRO);
SAME(SN_SENS_JOINTPOS, mjSENS_JOINTPOS);
SAME(SN_SENS_JOINTVEL, mjSENS_JOINTVEL);
SAME(SN_SENS_TENDONPOS, mjSENS_TENDONPOS);
SAME(SN_SENS_TENDONVEL, mjSENS_TENDONVEL);
SAME(SN_SENS_ACTUATORPOS, mjSENS_ACTUATORPOS);
SAME(SN_SENS_ACTUATORVEL, mjSENS_ACTUATORVEL);
SAME(SN_SENS_ACTUATORFRC, mjSENS_ACTUATORFRC);
SAME(SN_SENS_JOINTACTFRC, mjSENS_JOINTACTFRC);
SAME(SN_SENS_TENDONACTFRC, mjSENS_TENDONACTFRC);
SAME(SN_SENS_BALLQUAT, mjSENS_BALLQUAT);
SAME(SN_SENS_BALLANGVEL, mjSENS_BALLANGVEL);
SAME(SN_SENS_JOINTLIMITPOS, mjSENS_JOINTLIMITPOS);
SAME(SN_SENS_JOINTLIMITVEL, mjSENS_JOINTLIMITVEL);
SAME(SN_SENS_JOINTLIMITFRC, mjSENS_JOINTLIMITFRC);
SAME(SN_SENS_TENDONLIMITPOS, mjSENS_TENDONLIMITPOS);
SAME(SN_SENS_TENDONLIMITVEL, mjSENS_TENDONLIMITVEL);
SAME(SN_SENS_TENDONLIMITFRC, mjSENS_TENDONLIMITFRC);
SAME(SN_SENS_FRAMEPOS, mjSENS_FRAMEPOS);
SAME(SN_SENS_FRAMEQUAT, mjSENS_FRAMEQUAT);
SAME(SN_SENS_FRAMEXAXIS, mjSENS_FRAMEXAXIS);
SAME(SN_SENS_FRAMEYAXIS, mjSENS_FRAMEYAXIS);
SAME(SN_SENS_FRAMEZAXIS, mjSENS_FRAMEZAXIS);
SAME(SN_SENS_FRAMELINVEL, mjSENS_FRAMELINVEL);
SAME(SN_SENS_FRAMEANGVEL, mjSENS_FRAMEANGVEL);
SAME(SN_SENS_SUBTREECOM, mjSENS_SUBTREECOM);
SAME(SN_SENS_SUBTREELINVEL, mjSENS_SUBTREELINVEL);
SAME(SN_SENS_TOUCH, mjSENS_TOUCH);
SAME(SN_SENS_ACCELEROMETER, mjSENS_ACCELEROMETER);
SAME(SN_SENS_FORCE, mjSENS_FORCE);
SAME(SN_SENS_TORQUE, mjSENS_TORQUE);
SAME(SN_SENS_MAGNETOMETER, mjSENS_MAGNETOMETER);
SAME(SN_SENS_RANGEFINDER, mjSENS_RANGEFINDER);
SAME(SN_SENS_CAMPROJECTION, mjSENS_CAMPROJECTION);
SAME(SN_SENS_FRAMELINACC, mjSENS_FRAMELINACC);
SAME(SN_SENS_FRAMEANGACC, mjSENS_FRAMEANGACC);
SAME(SN_SENS_SUBTREEANGMOM, mjSENS_SUBTREEANGMOM);
SAME(SN_SENS_INSIDESITE, mjSENS_INSIDESITE);
SAME(SN_SENS_GEOMDIST, mjSENS_GEOMDIST);
SAME(SN_SENS_GEOMNORMAL, mjSENS_GEOMNORMAL);
SAME(SN_SENS_GEOMFROMTO, mjSENS_GEOMFROMTO);
SAME(SN_SENS_CONTACT, mjSENS_CONTACT);
SAME(SN_SENS_E_POTENTIAL, mjSENS_E_POTENTIAL);
SAME(SN_SENS_E_KINETIC, mjSENS_E_KINETIC);
SAME(SN_SENS_CLOCK, mjSENS_CLOCK);
SAME(SN_SENS_TACTILE, mjSENS_TACTILE);
SAME(SN_SENS_USER, mjSENS_USER);
SAME(1, mjPROJ_ORTHOGRAPHIC);
#undef SAME

// One enumerator for every field that has a rule; two rules for one field do not compile.
enum {
#define SN_MODEL_FIELD(type, name, rows, cols) RULE_##name,
#define SN_MODEL_OWN(type, name, rows, cols)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
#define SN_SIZE(name) RULE_##name,
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_OPTION(type, name, count) RULE_opt_##name,
#define SN_OPTION_OWN(type, name, count)
#include "physics/model/option_fields.inc"
#undef SN_OPTION
#define SN_IGNORED(field) RULE_##field,
#define SN_REQUIRED(field, object, cols, value, text) RULE_##field,
#define SN_JUDGED(field) RULE_##field,
#define SN_IGNORED_SIZE(name) RULE_##name,
#define SN_JUDGED_SIZE(name) RULE_##name,
#define SN_IGNORED_OPTION(name) RULE_opt_##name,
#define SN_JUDGED_OPTION(name) RULE_opt_##name,
#define SN_IGNORED_STAT(name) RULE_stat_##name,
#include "physics/import/import_rules.inc"
  RULE_COUNT
};

// The same for every field that MuJoCo lists: a field without a rule does not compile, and a rule without a field
// makes the counts differ.
enum {
#define X(type, name, rows, cols) HAS_##name = RULE_##name,
#define XNV X
  MJMODEL_POINTERS
#undef X
#undef XNV
#define X(name) HAS_##name = RULE_##name,
      MJMODEL_SIZES
#undef X
#define X(type, name, count) HAS_opt_##name = RULE_opt_##name,
#define XVEC X
          MJOPTION_FIELDS
#undef X
#undef XVEC
#define X(name, count) HAS_stat_##name = RULE_stat_##name,
#define XVEC X
              MJSTATISTIC_FIELDS
#undef X
#undef XVEC
};
#define X(...) +1
#define XNV X
#define XVEC X
static_assert(RULE_COUNT == 0 MJMODEL_POINTERS MJMODEL_SIZES MJOPTION_FIELDS MJSTATISTIC_FIELDS,
              "a rule for a field that MuJoCo lacks");
#undef X
#undef XNV
#undef XVEC

// And MuJoCo's lists are complete: structs made of them have the sizes of MuJoCo's. The three flags only say in advance
// what arrays hold, and the signature identifies the source.
struct Mirror {
#define X(name) mjtSize name;
  MJMODEL_SIZES
#undef X
  mjtBool flg_gravcomp, flg_surfacevel, flg_adhesion;
  mjOption opt;
  mjVisual vis;
  mjStatistic stat;
  void *buffer;
#define X(type, name, rows, cols) type *name;
#define XNV X
  MJMODEL_POINTERS
#undef X
#undef XNV
  uint64_t signature;
};
struct MirrorOption {
#define X(type, name, count) type name;
#define XVEC(type, name, count) type name[count];
  MJOPTION_FIELDS
#undef X
#undef XVEC
};
struct MirrorStatistic {
#define X(name, count) mjtNum name;
#define XVEC(name, count) mjtNum name[count];
  MJSTATISTIC_FIELDS
#undef X
#undef XVEC
};
static_assert(sizeof(struct Mirror) == sizeof(mjModel), "mjModel has a field outside mjxmacro.h");
static_assert(sizeof(struct MirrorOption) == sizeof(mjOption), "mjOption has a field outside mjxmacro.h");
static_assert(sizeof(struct MirrorStatistic) == sizeof(mjStatistic), "mjStatistic has a field outside mjxmacro.h");

// Scalars and vectors of mjOption.
static void copy_option(SnModel *m, const mjModel *mj) {
#define SN_OPTION(type, name, count) \
  for (int i = 0; i < (count); ++i) SN_AT(m->opt.name, count, i) = (type)SN_AT(mj->opt.name, count, i);
#define SN_OPTION_OWN(type, name, count)
#define SN_AT(x, count, i) SN_AT_##count(x, i)
#define SN_AT_1(x, i) x
#define SN_AT_3(x, i) x[i]
#define SN_AT_5(x, i) x[i]
#define SN_AT_SN_NREF(x, i) x[i]
#define SN_AT_SN_NIMP(x, i) x[i]
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  m->opt.contact = SN_CONTACT_MUJOCO;
  m->opt.contact_width = SN_R(0.005);
  m->opt.contact_stiffness = SN_R(0.2);
}

// Replaces a frame by the one that MuJoCo uses in its place: the body's own (the identity), or that of the body's
// inertia, or only the orientation of either.
static void take_frame(int same, const sn_real *ipos, const sn_real *iquat, sn_real *pos, sn_real *quat) {
  if (same == mjSAMEFRAME_BODY) sn_set3(pos, 0, 0, 0);
  if (same == mjSAMEFRAME_INERTIA) sn_copy3(pos, ipos);
  if (same == mjSAMEFRAME_INERTIA || same == mjSAMEFRAME_INERTIAROT) sn_copy4(quat, iquat);
  if (same != mjSAMEFRAME_BODY && same != mjSAMEFRAME_BODYROT) return;
  sn_set3(quat + 1, 0, 0, 0);
  quat[0] = 1;
}

// Follows the compiler, which marks frames that it finds equal to 1e-6: MuJoCo computes with one in the place of the
// other wherever it needs a pose.
static void take_same_frames(SnModel *m, const mjModel *mj) {
  sn_real *ipos = m->body_ipos, *iquat = m->body_iquat;
  for (int i = 0; i < m->nbody; ++i)
    take_frame(mj->body_sameframe[i], ipos + 3 * i, iquat + 4 * i, ipos + 3 * i, iquat + 4 * i);
  for (int i = 0; i < m->ngeom; ++i) {
    const int b = m->geom_bodyid[i];
    take_frame(mj->geom_sameframe[i], ipos + 3 * b, iquat + 4 * b, m->geom_pos + 3 * i, m->geom_quat + 4 * i);
  }
  for (int i = 0; i < m->nsite; ++i) {
    const int b = m->site_bodyid[i];
    take_frame(mj->site_sameframe[i], ipos + 3 * b, iquat + 4 * b, m->site_pos + 3 * i, m->site_quat + 4 * i);
  }
}

// A geom with a material is drawn in its colour, which says whether rays pass through.
static void take_colours(SnModel *m, const mjModel *mj) {
  for (int i = 0; i < m->ngeom; ++i)
    for (int k = 0; k < 4 && mj->geom_matid[i] >= 0; ++k)
      m->geom_rgba[4 * i + k] = (sn_real)mj->mat_rgba[4 * mj->geom_matid[i] + k];
}

// Which trees sleep at the start: those that the file says do. Which of them sleep together is what MuJoCo finds when
// it resets its data with the flag on.
static SnCode take_sleep(SnModel *m, const mjModel *mj, SnError *err) {
  bool any = false;
  for (int t = 0; t < m->ntree; ++t) {
    m->tree_asleep0[t] = SN_AWAKE;
    any = any || m->tree_sleep_policy[t] == SN_SLEEP_INIT;
  }
  if (!any) return SN_OK;
  mjModel sleeping = *mj;
  sleeping.opt.enableflags |= mjENBL_SLEEP;
  mjData *d = mj_makeData(&sleeping);
  if (!d) return sn_fail(err, SN_ERR_MEMORY, "import: out of memory");
  for (int t = 0; t < m->ntree; ++t) m->tree_asleep0[t] = d->tree_asleep[t];
  mj_deleteData(d);
  return SN_OK;
}

// What geoms are there for besides being drawn: something can touch them, a sensor's ray can meet them, a sensor asks
// for their distance.
typedef struct Uses {
  bool *touched, *seen, *measured;
} Uses;

// Fills in which geoms some ray can meet: those that are drawn, and not of the body of its own sensor; where contacts
// are foreseen all that something can touch, as it may stand in the way.
static void find_seen(const SnModel *m, const bool *touched, bool *seen) {
  for (int i = 0; m->opt.enableflags & SN_ENBL_SPECULATIVE && i < m->ngeom; ++i) seen[i] = touched[i];
  for (int s = 0; s < m->nsensor; ++s) {
    const int id = m->sensor_objid[s];
    if (m->sensor_type[s] != SN_SENS_RANGEFINDER) continue;
    const int body = m->sensor_objtype[s] == SN_OBJ_CAMERA ? m->cam_bodyid[id] : m->site_bodyid[id];
    for (int i = 0; i < m->ngeom; ++i)
      if (m->geom_bodyid[i] != body && m->geom_rgba[4 * i + 3] != 0) seen[i] = true;
  }
}

// Fills in the geoms of an object of a sensor of distances: those of a body, or one.
static void measure_object(const SnModel *m, int type, int id, bool *measured) {
  if (type == SN_OBJ_GEOM) measured[id] = true;
  if (type != SN_OBJ_BODY) return;
  for (int i = 0; i < m->body_geomnum[id]; ++i) measured[m->body_geomadr[id] + i] = true;
}

// Fills in whose distance a sensor asks for.
static void find_measured(const SnModel *m, bool *measured) {
  for (int s = 0; s < m->nsensor; ++s) {
    if (m->sensor_type[s] < SN_SENS_GEOMDIST || m->sensor_type[s] > SN_SENS_GEOMFROMTO) continue;
    measure_object(m, m->sensor_objtype[s], m->sensor_objid[s], measured);
    measure_object(m, m->sensor_reftype[s], m->sensor_refid[s], measured);
  }
}

// Signed distance fields are accepted when they collide with nothing: makes sure that they, and meshes and height
// fields of which the same is true, stay for show.
static void hide_visual_geoms(SnModel *m, const Uses *uses) {
  for (int i = 0; i < m->ngeom; ++i) {
    const int type = m->geom_type[i];
    if (type != SN_GEOM_HFIELD && type != SN_GEOM_SDF && type != SN_GEOM_MESH) continue;
    if (!uses->touched[i]) m->geom_contype[i] = m->geom_conaffinity[i] = 0;
    if (type == SN_GEOM_SDF || (type == SN_GEOM_HFIELD && !uses->touched[i] && !uses->seen[i])) m->geom_dataid[i] = -1;
  }
}

// True when one of these geoms is of this type, SN_GEOM_MESH or SN_GEOM_HFIELD, and has this asset.
static bool asset_used(const SnModel *m, const bool *geoms, SnGeom type, int asset) {
  for (int i = 0; i < m->ngeom; ++i)
    if (m->geom_type[i] == (int)type && m->geom_dataid[i] == asset && geoms[i]) return true;
  return false;
}

// True when a tactile sensor measures at the vertices of this mesh.
static bool mesh_is_felt(const SnModel *m, int mesh) {
  for (int i = 0; i < m->nsensor; ++i)
    if (m->sensor_type[i] == SN_SENS_TACTILE && m->sensor_objid[i] == mesh) return true;
  return false;
}

// True when a site has this mesh, so that it is the zone of sensors.
static bool mesh_is_zone(const SnModel *m, int mesh) {
  for (int i = 0; i < m->nsite; ++i)
    if (m->site_dataid[i] == mesh) return true;
  return false;
}

// Moves `n` rows of `width` from row `from` to row `to` (to <= from).
#define MOVE(field, to, from, n, width)                                           \
  memmove(m->field + (size_t)(to) * (width), m->field + (size_t)(from) * (width), \
          sizeof *m->field * (size_t)(n) * (width))

// Empties the triangles that no ray can meet, and the vectors of vertices that no tactile sensor reads; closes the
// gaps.
static void drop_unseen_triangles(SnModel *m, const Uses *uses) {
  int nface = 0, nnormal = 0;
  for (int i = 0; i < m->nmesh; ++i) {
    const int face = m->mesh_faceadr[i];
    if (!asset_used(m, uses->seen, SN_GEOM_MESH, i)) m->mesh_facenum[i] = 0;
    MOVE(mesh_face, nface, face, m->mesh_facenum[i], 3);
    m->mesh_faceadr[i] = nface;
    nface += m->mesh_facenum[i];
    const int normal = m->mesh_normaladr[i];
    if (!mesh_is_felt(m, i)) m->mesh_normalnum[i] = 0;
    MOVE(mesh_normal, nnormal, normal, m->mesh_normalnum[i], 3);
    m->mesh_normaladr[i] = nnormal;
    nnormal += m->mesh_normalnum[i];
  }
  m->nmeshface = nface;
  m->nmeshnormal = nnormal;
}

// Empties the hulls that no contact, no distance and no zone can need (most of a musculoskeletal model: 124,000
// vertices of bones in MyoHand), with their vertices where no triangle is left either, and closes the gaps. Addresses
// ascend with the mesh, so everything moves towards the front.
static void drop_visual_meshes(SnModel *m, const Uses *uses) {
  int nvert = 0, ngraph = 0, npoly = 0, npolyvert = 0, npolymap = 0;
  for (int i = 0; i < m->nmesh; ++i) {
    const bool keep = asset_used(m, uses->touched, SN_GEOM_MESH, i) || asset_used(m, uses->measured, SN_GEOM_MESH, i) ||
                      mesh_is_zone(m, i);
    const int vert = m->mesh_vertadr[i],
              vertnum = keep || m->mesh_facenum[i] > 0 || m->mesh_normalnum[i] > 0 ? m->mesh_vertnum[i] : 0;
    const int poly = m->mesh_polyadr[i], polynum = keep ? m->mesh_polynum[i] : 0;
    const int graph = keep ? m->mesh_graphadr[i] : -1;
    const int graphnum = graph < 0 ? 0 : 2 + 3 * m->mesh_graph[graph] + 6 * m->mesh_graph[graph + 1];
    MOVE(mesh_vert, nvert, vert, vertnum, 3);
    MOVE(mesh_polynormal, npoly, poly, polynum, 3);
    if (graph >= 0) MOVE(mesh_graph, ngraph, graph, graphnum, 1);
    for (int k = 0; k < polynum; ++k) {
      const int adr = m->mesh_polyvertadr[poly + k], num = m->mesh_polyvertnum[poly + k];
      MOVE(mesh_polyvert, npolyvert, adr, num, 1);
      m->mesh_polyvertadr[npoly + k] = npolyvert;
      m->mesh_polyvertnum[npoly + k] = num;
      npolyvert += num;
    }
    for (int k = 0; k < vertnum; ++k) {
      const int adr = m->mesh_polymapadr[vert + k], num = polynum ? m->mesh_polymapnum[vert + k] : 0;
      if (num) MOVE(mesh_polymap, npolymap, adr, num, 1);
      m->mesh_polymapadr[nvert + k] = npolymap;
      m->mesh_polymapnum[nvert + k] = num;
      npolymap += num;
    }
    m->mesh_vertadr[i] = nvert;
    m->mesh_vertnum[i] = vertnum;
    m->mesh_polyadr[i] = npoly;
    m->mesh_polynum[i] = polynum;
    m->mesh_graphadr[i] = graph < 0 ? -1 : ngraph;
    for (int k = 0; !keep && k < 27; ++k) m->mesh_extrema[27 * i + k] = -1;
    nvert += vertnum;
    npoly += polynum;
    ngraph += graphnum;
  }
  m->nmeshvert = nvert;
  m->nmeshgraph = ngraph;
  m->nmeshpoly = npoly;
  m->nmeshpolyvert = npolyvert;
  m->nmeshpolymap = npolymap;
}

// The same for height fields.
static void drop_visual_hfields(SnModel *m, const Uses *uses) {
  int ndata = 0;
  for (int i = 0; i < m->nhfield; ++i) {
    const bool keep = asset_used(m, uses->touched, SN_GEOM_HFIELD, i) || asset_used(m, uses->seen, SN_GEOM_HFIELD, i);
    if (!keep) m->hfield_nrow[i] = m->hfield_ncol[i] = 0;
    const int n = m->hfield_nrow[i] * m->hfield_ncol[i];
    MOVE(hfield_data, ndata, m->hfield_adr[i], n, 1);
    m->hfield_adr[i] = ndata;
    ndata += n;
  }
  m->nhfielddata = ndata;
}
#undef MOVE

// Leaves out what nothing can touch, see, measure or be inside of. Returns false and err when out of memory.
static bool drop_unused(SnModel *m, const mjModel *mj, SnError *err) {
  const size_t n = (size_t)m->ngeom + 1;
  const Uses uses = {sn_import_touchable(mj), calloc(n, sizeof(bool)), calloc(n, sizeof(bool))};
  const bool ok = uses.touched && uses.seen && uses.measured;
  if (ok) {
    find_seen(m, uses.touched, uses.seen);
    find_measured(m, uses.measured);
    hide_visual_geoms(m, &uses);
    drop_unseen_triangles(m, &uses);
    drop_visual_meshes(m, &uses);
    drop_visual_hfields(m, &uses);
  } else {
    sn_fail(err, SN_ERR_MEMORY, "import: out of memory");
  }
  free(uses.touched);
  free(uses.seen);
  free(uses.measured);
  return ok;
}

static SnCode refuse_unsupported(const mjModel *mj, SnError *err) {
  int count = 0;
  char *text = sn_import_unsupported(mj, &count);
  if (!text) return sn_fail(err, SN_ERR_MEMORY, "import: out of memory");
  if (!count) {
    free(text);
    return SN_OK;
  }
  // as many whole lines as the error's text holds
  const size_t capacity = sizeof err->text - 40;
  size_t used = 0;
  int shown = 0;
  for (const char *p = text; *p; ++shown) {
    const size_t n = strcspn(p, "\n") + 1;
    if (used + n > capacity) break;
    used += n;
    p += n;
  }
  if (shown == count)
    sn_fail(err, SN_ERR_UNSUPPORTED, "%.*s", (int)used - 1, text);
  else
    sn_fail(err, SN_ERR_UNSUPPORTED, "%.*s... and %d more", (int)used, text, count - shown);
  free(text);
  return SN_ERR_UNSUPPORTED;
}

// Sizes as ints, each within its cap.
static SnCode copy_sizes(SnModel *sizes, const mjModel *mj, SnError *err) {
#define SN_SIZE(name)                                                                                              \
  if (mj->name < 0 || mj->name > SN_CAP_##name)                                                                    \
    return sn_fail(err, SN_ERR_LIMIT, #name " is %lld; the limit is %d", (long long)mj->name, (int)SN_CAP_##name); \
  sizes->name = (int)mj->name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
  return SN_OK;
}

SnModel *sn_import_mjmodel(const mjModel *mj, SnError *err) {
  SnModel sizes = {0};
  if (refuse_unsupported(mj, err) != SN_OK || copy_sizes(&sizes, mj, err) != SN_OK) return NULL;
  SnModel *m = sn_model_create(&sizes, err);
  if (!m) return NULL;
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  for (int i = 0; i < (rows) * (cols); ++i) m->name[i] = (type)mj->name[i];
#define SN_MODEL_OWN(type, name, rows, cols)
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
  take_same_frames(m, mj);
  take_colours(m, mj);
  copy_option(m, mj);
  if (take_sleep(m, mj, err) != SN_OK || !drop_unused(m, mj, err) || sn_model_check(m, err) != SN_OK ||
      sn_model_setup(m, err) != SN_OK) {
    sn_model_free(m);
    m = NULL;
  }
  return m;
}

// What options may be: by themselves, and for this engine.
#include "physics/model/model.h"

static SnCode bad_option(SnError *err, const char *name, double value, const char *rule) {
  return sn_fail(err, SN_ERR_FORMAT, "model: option %s is %.9g: %s", name, value, rule);
}

SnCode sn_option_check(const SnOption *o, SnError *err) {
#define SN_OPTION(type, name, n)                                      \
  for (size_t i = 0; i < (n); ++i)                                    \
    if (!isfinite((double)((const type *)(const void *)&o->name)[i])) \
      return bad_option(err, #name, (double)((const type *)(const void *)&o->name)[i], "must be finite");
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  if (!(o->timestep > 0)) return bad_option(err, "timestep", (double)o->timestep, "must be above 0 s");
  if (o->timestep > 1) return bad_option(err, "timestep", (double)o->timestep, "must be at most 1 s");
  if (!(o->impratio > 0)) return bad_option(err, "impratio", (double)o->impratio, "must be above 0");
  if (o->density < 0) return bad_option(err, "density", (double)o->density, "must be at least 0");
  if (o->viscosity < 0) return bad_option(err, "viscosity", (double)o->viscosity, "must be at least 0");
  if (o->tolerance < 0) return bad_option(err, "tolerance", (double)o->tolerance, "must be at least 0");
  if (o->ls_tolerance < 0) return bad_option(err, "ls_tolerance", (double)o->ls_tolerance, "must be at least 0");
  if (o->ccd_tolerance < 0) return bad_option(err, "ccd_tolerance", (double)o->ccd_tolerance, "must be at least 0");
  if (o->iterations < 0 || o->iterations > 10000)
    return bad_option(err, "iterations", o->iterations, "must be 0 to 10000");
  if (o->ls_iterations < 0 || o->ls_iterations > 10000)
    return bad_option(err, "ls_iterations", o->ls_iterations, "must be 0 to 10000");
  if (o->ccd_iterations < 0 || o->ccd_iterations > 10000)
    return bad_option(err, "ccd_iterations", o->ccd_iterations, "must be 0 to 10000");
  if (o->noslip_iterations < 0 || o->noslip_iterations > SN_MAXNOSLIP)
    return bad_option(err, "noslip_iterations", o->noslip_iterations, "must be 0 to 200");
  if (o->noslip_tolerance < 0)
    return bad_option(err, "noslip_tolerance", (double)o->noslip_tolerance, "must be at least 0");
  if (o->sleep_tolerance < 0)
    return bad_option(err, "sleep_tolerance", (double)o->sleep_tolerance, "must be at least 0");
  if (o->integrator < SN_INT_EULER || o->integrator > SN_INT_DISCRETE)
    return bad_option(err, "integrator", o->integrator,
                      "must be Euler (0), RK4 (1), implicit (2), implicitfast (3) or discrete (4)");
  if (o->contact != SN_CONTACT_MUJOCO && o->contact != SN_CONTACT_SIGMOID)
    return bad_option(err, "contact", o->contact, "must be mujoco (0) or sigmoid (1)");
  if (o->contact_stiffness < 0 || o->contact_stiffness > 1)
    return bad_option(err, "contact_stiffness", (double)o->contact_stiffness, "must be 0 to 1");
  if (o->contact_restitution < 0 || o->contact_restitution > 1)
    return bad_option(err, "contact_restitution", (double)o->contact_restitution, "must be 0 to 1");
  if (o->contact == SN_CONTACT_SIGMOID && !(o->contact_width >= SN_R(1e-6) && o->contact_width <= 1))
    return bad_option(err, "contact_width", (double)o->contact_width, "must be 1e-06 to 1 m");
  if (o->cone != SN_CONE_PYRAMIDAL && o->cone != SN_CONE_ELLIPTIC)
    return bad_option(err, "cone", o->cone, "must be 0 or 1");
  return SN_OK;
}

// Enable flags that the engine has not; its texts begin as the importer's do.
static const struct {
  int bit;
  const char *text;
} refused_flag[] = {
    {SN_ENBL_IPC, "option 'ipc': incremental potential contact is not supported"},
};
static_assert(sizeof refused_flag / sizeof *refused_flag + 4 == SN_OPTION_LINES, "room for all lines");

static const char *refused_integrator(int integrator) {
  switch (integrator) {
    case SN_INT_EULER:
    case SN_INT_RK4:
    case SN_INT_IMPLICIT:
    case SN_INT_IMPLICITFAST:
    case SN_INT_DISCRETE:
      return NULL;
    default:
      return "option 'integrator': an unknown integrator is not supported";
  }
}

int sn_option_unsupported(int integrator, int disableflags, int enableflags, const char *line[SN_OPTION_LINES]) {
  int n = 0;
  if ((line[n] = refused_integrator(integrator)) != NULL) ++n;
  for (size_t i = 0; i < sizeof refused_flag / sizeof *refused_flag; ++i)
    if (enableflags & refused_flag[i].bit) line[n++] = refused_flag[i].text;
  if (integrator == SN_INT_RK4 && enableflags & SN_ENBL_SLEEP)
    line[n++] =
        "option 'sleep': sleeping under integrator RK4 (supported: Euler, implicit, implicitfast) is not supported";
  if (enableflags >> SN_NENABLE) line[n++] = "option 'enableflags': an unknown flag is not supported";
  if (disableflags >> SN_NDISABLE) line[n++] = "option 'disableflags': an unknown flag is not supported";
  return n;
}

bool sn_option_lacks_convex(int disableflags, int type1, int type2) {
  if (disableflags & (SN_DSBL_CONTACT | SN_DSBL_CONSTRAINT) || !(disableflags & SN_DSBL_NATIVECCD)) return false;
  const SnCollider c = sn_collider(type1 < type2 ? type1 : type2, type1 < type2 ? type2 : type1);
  return c == SN_COLLIDER_CONVEX || c == SN_COLLIDER_HFIELD;
}

// What MuJoCo makes of buffers of sensors where it does not keep their values of the start of a step is no measurement.
const char *sn_option_lacks_buffer(int integrator, int disableflags) {
  if (integrator == SN_INT_RK4) return "a history buffer (nsample) with integrator RK4";
  return disableflags & SN_DSBL_SENSOR ? "a history buffer (nsample) with flag sensor='disable'" : NULL;
}

// Under flag override MuJoCo's bounding volumes, of geoms, bodies and trees of geoms, leave out the gap, so that they
// decide which pairs in it are looked at, and pull.
const char *sn_option_lacks_pull(int enableflags) {
  return enableflags & SN_ENBL_OVERRIDE ? "adhesion in a model with gaps, with flag override='enable'," : NULL;
}

const char *sn_option_lacks_yield(int integrator) {
  return integrator == SN_INT_RK4 ? "springyield (a spring that yields) with integrator RK4" : NULL;
}

int sn_option_lacks_discrete(int enableflags, int noslip_iterations, const char *what[SN_DISCRETE_LINES]) {
  const struct {
    bool has;
    const char *text;
  } all[SN_DISCRETE_LINES] = {{(enableflags & SN_ENBL_SLEEP) != 0, "discrete with flag sleep"},
                              {(enableflags & SN_ENBL_DIAGEXACT) != 0, "discrete with flag diagexact"},
                              {(enableflags & SN_ENBL_SPECULATIVE) != 0, "discrete with flag speculative"},
                              {noslip_iterations > 0, "discrete with noslip_iterations above 0"}};
  int n = 0;
  for (int i = 0; i < SN_DISCRETE_LINES; ++i)
    if (all[i].has) what[n++] = all[i].text;
  return n;
}

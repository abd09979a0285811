// On what a fluid pushes: bodies as boxes, or their geoms as ellipsoids, with the numbers of each that a step needs.
// physics/dynamics/fluid.c has the forces.
//
// A body is the box with its mass and principal inertia; where one of its geoms has geom_fluid[0] > 0 its geoms are
// ellipsoids instead, those with geom_fluid[0] = 0 left out (MuJoCo manual, Computation, Fluid forces). Bodies without
// mass feel nothing. Nothing is listed where density and viscosity are both 0.
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/model/model_private.h"

#define FLUID_ALLOC(name, count) ((m->name = sn_model_alloc(m, sizeof *m->name * (size_t)(count))) != NULL)

static bool fluid_has_ellipsoids(const SnModel *m, int body) {
  const int first = m->body_geomadr[body];
  for (int g = first; g < first + m->body_geomnum[body]; ++g)
    if (m->geom_fluid[SN_NFLUID * g] > 0) return true;
  return false;
}

// Half axes of the ellipsoid that stands for a geom.
static void fluid_axes(const SnModel *m, int geom, sn_real *axes) {
  const sn_real *size = m->geom_size + 3 * geom;
  const int type = m->geom_type[geom];
  sn_copy3(axes, size);
  if (type != SN_GEOM_SPHERE && type != SN_GEOM_CAPSULE && type != SN_GEOM_CYLINDER) return;
  axes[1] = size[0];
  axes[2] = type == SN_GEOM_SPHERE ? size[0] : type == SN_GEOM_CAPSULE ? size[0] + size[1] : size[1];
}

static sn_real fluid_power4(sn_real x) { return (x * x) * (x * x); }

// Coefficients of a body as a box.
static void fluid_box(const SnModel *m, int body, sn_real *coef) {
  const sn_real *I = m->body_inertia + 3 * body, total = I[0] + I[1] + I[2];
  sn_real side[3];
  for (int e = 0; e < 3; ++e) side[e] = sn_sqrt(sn_max(SN_MINVAL, total - 2 * I[e]) / m->body_mass[body] * SN_R(6.0));
  const sn_real diameter = (side[0] + side[1] + side[2]) / SN_R(3.0);
  coef[SN_BOX_TURN] = SN_PI * diameter * diameter * diameter;
  coef[SN_BOX_MOVE] = SN_R(3.0) * SN_PI * diameter;
  for (int e = 0; e < 3; ++e) {
    const sn_real a = side[(e + 1) % 3], b = side[(e + 2) % 3];
    coef[SN_BOX_TORQUE + e] = side[e] * (fluid_power4(a) + fluid_power4(b)) / SN_R(64.0);
    coef[SN_BOX_FORCE + e] = SN_R(0.5) * a * b;
  }
}

// Coefficients of a geom as an ellipsoid.
static void fluid_ellipsoid(const SnModel *m, int geom, sn_real *coef) {
  const sn_real *prm = m->geom_fluid + SN_NFLUID * geom;
  const sn_real blunt = prm[1], slender = prm[2], turning = prm[3], third = SN_R(4.0) / SN_R(3.0) * SN_PI;
  sn_real d[3];
  fluid_axes(m, geom, d);
  const sn_real most = sn_max(sn_max(d[0], d[1]), d[2]), least = sn_min(sn_min(d[0], d[1]), d[2]);
  const sn_real sum = d[0] + d[1] + d[2], mid = sum - most - least, diameter = SN_R(2.0) / SN_R(3.0) * sum;
  const sn_real moment = SN_R(8.0) / SN_R(15.0) * SN_PI, I_most = moment * mid * fluid_power4(most);
  coef[SN_ELL_SCALE] = prm[0];
  coef[SN_ELL_TURN] = SN_PI * diameter * diameter * diameter;
  coef[SN_ELL_MOVE] = SN_R(3.0) * SN_PI * diameter;
  coef[SN_ELL_BLUNT] = blunt - slender;
  coef[SN_ELL_SLENDER] = slender * SN_PI * most * mid;
  coef[SN_ELL_KUTTA] = prm[4];
  coef[SN_ELL_MAGNUS] = prm[5] * third * d[0] * d[1] * d[2];
  for (int e = 0; e < 3; ++e) {
    const sn_real a = d[(e + 1) % 3], b = d[(e + 2) % 3], I = moment * d[e] * fluid_power4(sn_max(a, b));
    coef[SN_ELL_AREA + e] = (a * b) * (a * b);
    coef[SN_ELL_MOMENT + e] = turning * I + slender * (I_most - I);
    coef[SN_ELL_MASS + e] = prm[6 + e];
    coef[SN_ELL_INERTIA + e] = prm[9 + e];
  }
}

static void fluid_add(SnModel *m, SnFluid kind, const sn_real *pos, const sn_real *mat) {
  const int k = m->nfluid++;
  m->fluid_kind[k] = kind;
  sn_copy3(m->fluid_pos + 3 * k, pos);
  sn_copy(m->fluid_mat + 9 * k, mat, 9);
}

// Lists what a fluid pushes of one body.
static void fluid_body(SnModel *m, int body) {
  if (m->body_mass[body] < SN_MINVAL) return;
  if (!fluid_has_ellipsoids(m, body)) {
    fluid_box(m, body, m->fluid_coef + SN_NFLUIDCOEF * m->nfluid);
    fluid_add(m, SN_FLUID_BOX, m->body_lpos + 3 * body, m->body_lmat + 9 * body);
    return;
  }
  const int first = m->body_geomadr[body];
  for (int g = first; g < first + m->body_geomnum[body]; ++g) {
    if (m->geom_fluid[SN_NFLUID * g] == 0) continue;
    fluid_ellipsoid(m, g, m->fluid_coef + SN_NFLUIDCOEF * m->nfluid);
    fluid_add(m, SN_FLUID_ELLIPSOID, m->geom_lpos + 3 * g, m->geom_lmat + 9 * g);
  }
}

// What the matrix of a fluid's slopes is in the equations of an implicit integrator, for link i.
static SnFluidMatrix fluid_matrix_of(const SnModel *m, int i) {
  if (m->opt.integrator == SN_INT_IMPLICIT) return SN_FLUID_WHOLE;
  for (int k = 0; !sn_has_metric(m) && k < m->nfreebody; ++k)
    if (m->freebody_list[k] == i) return SN_FLUID_WHOLE;
  return m->body_dofnum[i] > 1 && m->dof_simplenum[m->body_dofadr[i]] > 0 ? SN_FLUID_DIAGONAL : SN_FLUID_SYMMETRIC;
}

SnCode sn_setup_fluid(SnModel *m, SnError *err) {
  const bool on = m->opt.density != 0 || m->opt.viscosity != 0;
  const int most = on ? m->nbody + m->ngeom : 0;
  m->nfluid = m->nfluidlink = 0;
  if (!FLUID_ALLOC(fluid_kind, most) || !FLUID_ALLOC(fluid_pos, 3 * most) || !FLUID_ALLOC(fluid_mat, 9 * most) ||
      !FLUID_ALLOC(fluid_coef, SN_NFLUIDCOEF * most) || !FLUID_ALLOC(fluidlink_list, on ? m->nlink : 0) ||
      !FLUID_ALLOC(fluidlink_adr, on ? m->nlink + 1 : 0) || !FLUID_ALLOC(fluidlink_matrix, on ? m->nlink : 0))
    return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  for (int k = 0; on && k < m->nlink; ++k) {
    const int link = m->level_body[k], first = m->nfluid;
    for (int i = link; i < m->nbody; ++i)
      if (m->link_of_body[i] == link) fluid_body(m, i);
    if (m->nfluid == first) continue;
    m->fluidlink_list[m->nfluidlink] = link;
    m->fluidlink_matrix[m->nfluidlink] = fluid_matrix_of(m, link);
    m->fluidlink_adr[++m->nfluidlink] = m->nfluid;
  }
  return SN_OK;
}

// What a term may be compared with: sizes, units, and the types of sensors, for the messages of cost_bind.c.
#include <stdio.h>
#include <string.h>

#include "planner/cost/cost_private.h"

// What a value measures, as bits: two may be compared when they have one in common.
enum {
  IN_LENGTH = 1,
  IN_ANGLE = 2,
  IN_SPEED = 4,
  IN_TURN = 8,  // angular velocity
  IN_FORCE = 16,
  IN_ACCELERATION = 32,
  IN_ALL = 63
};

// The types of sensors: MuJoCo's number, name in MJCF, what it measures.
static const struct {
  int type;
  const char *name;
  int measures;
} sensors[] = {{SN_SENS_TOUCH, "touch", IN_FORCE},
               {SN_SENS_ACCELEROMETER, "accelerometer", IN_ACCELERATION},
               {SN_SENS_VELOCIMETER, "velocimeter", IN_SPEED},
               {SN_SENS_GYRO, "gyro", IN_TURN},
               {SN_SENS_FORCE, "force", IN_FORCE},
               {SN_SENS_TORQUE, "torque", IN_FORCE},
               {SN_SENS_MAGNETOMETER, "magnetometer", 0},
               {SN_SENS_RANGEFINDER, "rangefinder", IN_LENGTH},
               {SN_SENS_CAMPROJECTION, "camprojection", 0},
               {SN_SENS_JOINTPOS, "jointpos", IN_LENGTH | IN_ANGLE},
               {SN_SENS_JOINTVEL, "jointvel", IN_SPEED | IN_TURN},
               {SN_SENS_TENDONPOS, "tendonpos", IN_LENGTH | IN_ANGLE},
               {SN_SENS_TENDONVEL, "tendonvel", IN_SPEED | IN_TURN},
               {SN_SENS_ACTUATORPOS, "actuatorpos", IN_LENGTH | IN_ANGLE},
               {SN_SENS_ACTUATORVEL, "actuatorvel", IN_SPEED | IN_TURN},
               {SN_SENS_ACTUATORFRC, "actuatorfrc", IN_FORCE},
               {SN_SENS_JOINTACTFRC, "jointactuatorfrc", IN_FORCE},
               {SN_SENS_TENDONACTFRC, "tendonactuatorfrc", IN_FORCE},
               {SN_SENS_BALLQUAT, "ballquat", IN_ANGLE},
               {SN_SENS_BALLANGVEL, "ballangvel", IN_TURN},
               {SN_SENS_JOINTLIMITPOS, "jointlimitpos", IN_LENGTH | IN_ANGLE},
               {SN_SENS_JOINTLIMITVEL, "jointlimitvel", IN_SPEED | IN_TURN},
               {SN_SENS_JOINTLIMITFRC, "jointlimitfrc", IN_FORCE},
               {SN_SENS_TENDONLIMITPOS, "tendonlimitpos", IN_LENGTH | IN_ANGLE},
               {SN_SENS_TENDONLIMITVEL, "tendonlimitvel", IN_SPEED | IN_TURN},
               {SN_SENS_TENDONLIMITFRC, "tendonlimitfrc", IN_FORCE},
               {SN_SENS_FRAMEPOS, "framepos", IN_LENGTH},
               {SN_SENS_FRAMEQUAT, "framequat", IN_ANGLE},
               {SN_SENS_FRAMEXAXIS, "framexaxis", IN_ALL},  // a direction: of a velocity, too
               {SN_SENS_FRAMEYAXIS, "frameyaxis", IN_ALL},
               {SN_SENS_FRAMEZAXIS, "framezaxis", IN_ALL},
               {SN_SENS_FRAMELINVEL, "framelinvel", IN_SPEED},
               {SN_SENS_FRAMEANGVEL, "frameangvel", IN_TURN},
               {SN_SENS_FRAMELINACC, "framelinacc", IN_ACCELERATION},
               {SN_SENS_FRAMEANGACC, "frameangacc", 0},
               {SN_SENS_SUBTREECOM, "subtreecom", IN_LENGTH},
               {SN_SENS_SUBTREELINVEL, "subtreelinvel", IN_SPEED},
               {SN_SENS_SUBTREEANGMOM, "subtreeangmom", 0},
               {SN_SENS_INSIDESITE, "insidesite", IN_ALL},  // a flag
               {SN_SENS_GEOMDIST, "distance", IN_LENGTH},
               {SN_SENS_GEOMNORMAL, "normal", 0},
               {SN_SENS_GEOMFROMTO, "fromto", 0},
               {SN_SENS_CONTACT, "contact", 0},
               {SN_SENS_E_POTENTIAL, "e_potential", 0},
               {SN_SENS_E_KINETIC, "e_kinetic", 0},
               {SN_SENS_CLOCK, "clock", IN_ALL},  // a value that grows with time
               {46, "tactile", 0},
               {47, "plugin", 0},
               {48, "user", 0}};

// The row of sensor i, or that of a user's.
static size_t sensor_row(const SnModel *m, int i) {
  size_t k = 0;
  while (k + 1 < sizeof sensors / sizeof *sensors && sensors[k].type != m->sensor_type[i]) ++k;
  return k;
}

const char *sn_cost_sensor_type(const SnModel *m, int i) { return sensors[sensor_row(m, i)].name; }

// Names the types of sensors that the engine computes (physics/sensor/sensor.h), as MJCF does.
#define SN_SENSOR_TYPES                                                                                              \
  "clock, jointpos, jointvel, ballquat, ballangvel, tendonpos, tendonvel, actuatorpos, actuatorvel, actuatorfrc, "   \
  "jointactuatorfrc, tendonactuatorfrc, jointlimitpos, -vel, -frc, tendonlimitpos, -vel, -frc, velocimeter, gyro, "  \
  "subtreecom, subtreelinvel, subtreeangmom, magnetometer, e_potential, e_kinetic, accelerometer, force, torque, "   \
  "touch, insidesite, rangefinder, distance, normal, contact, and framepos, framequat, framexaxis, -yaxis, -zaxis, " \
  "framelinvel, frameangvel, framelinacc, frameangacc of bodies, geoms, sites and fixed cameras"

// Whether tasks may look at sensors of a type at all.
static bool sensor_type_is_known(int type) {
  return type < SN_SENS_TACTILE && type != SN_SENS_CAMPROJECTION && type != SN_SENS_GEOMFROMTO;
}

void sn_cost_refuse_sensor(const SnModel *m, int i, int dim, SnPlace place, SnIssues *issues) {
  const char *name = sn_model_name(m, SN_NAME_SENSOR, i), *type = sn_cost_sensor_type(m, i);
  if (dim > 0)
    sn_issue(issues, place, "sensor '%s' has %d numbers, allowed are sensors of 1, of 3 or of a quaternion", name, dim);
  else if (sensor_type_is_known(m->sensor_type[i]))
    sn_issue(
        issues, place,
        "sensor '%s' is of the type %s, which the engine does not compute there: planner/tasks/README.md says where",
        name, type);
  else
    sn_issue(issues, place,
             "sensor '%s' is of the type %s, which the engine does not compute, allowed is " SN_SENSOR_TYPES, name,
             type);
}

static const int quantities[] = {[SN_QTY_POSITION] = IN_LENGTH,
                                 [SN_QTY_ORIENTATION] = IN_ANGLE,
                                 [SN_QTY_VELOCITY] = IN_SPEED,
                                 [SN_QTY_ANGULAR_VELOCITY] = IN_TURN,
                                 [SN_QTY_DISTANCE] = IN_LENGTH,
                                 [SN_QTY_JOINT_POSITION] = IN_LENGTH | IN_ANGLE,
                                 [SN_QTY_JOINT_VELOCITY] = IN_SPEED | IN_TURN,
                                 [SN_QTY_ACTIVATION] = IN_ALL,  // what a control says depends on the actuator
                                 [SN_QTY_CONTROL] = IN_ALL,
                                 [SN_QTY_CONTROL_RATE] = IN_ALL,
                                 [SN_QTY_TENDON_LENGTH] = IN_LENGTH | IN_ANGLE,
                                 [SN_QTY_SENSOR] = IN_ALL};

static int measured(const SnModel *m, const SnElement *e) {
  const int i = e->quantity == SN_QTY_SENSOR && e->nname > 0 ? sn_model_find(m, SN_NAME_SENSOR, e->name[0]) : -1;
  return i < 0 ? quantities[e->quantity] : sensors[sensor_row(m, i)].measures;
}

// What an element is called: its quantity, of a sensor also its name and type.
static const char *called(const SnModel *m, const SnElement *e, char *text, size_t size) {
  const int i = e->quantity == SN_QTY_SENSOR ? sn_model_find(m, SN_NAME_SENSOR, e->name[0]) : -1;
  if (i < 0) return sn_quantity_name(e->quantity);
  snprintf(text, size, "sensor '%.60s' (%s)", e->name[0], sn_cost_sensor_type(m, i));
  return text;
}

void sn_cost_check_pair(const SnTerm *t, const SnModel *m, bool same_size, SnIssues *issues) {
  const int wanted = measured(m, &t->residual), given = measured(m, &t->target.element);
  char allowed[300] = "", value[100], other[100];
  if (wanted & given) {
    if (!same_size) sn_issue(issues, t->target.place, "target: its quantity has not the size of the residual");
    return;
  }
  for (int q = 0; q <= SN_QTY_SENSOR; ++q) {
    const size_t used = strlen(allowed);
    if (quantities[q] & wanted)
      snprintf(allowed + used, sizeof allowed - used, "%s%s", used ? ", " : "", sn_quantity_name((SnQuantity)q));
  }
  sn_issue(issues, t->target.place, "target: %s has another unit than %s of the residual, allowed is %s",
           called(m, &t->target.element, other, sizeof other), called(m, &t->residual, value, sizeof value), allowed);
}

// Entries that a list of numbers may have: none, one for all, or one each.
static void check_entries(SnIssues *issues, SnPlace place, const char *what, int n, int size, bool rotation) {
  if (n == size || n == 0 || (n == 1 && !rotation)) return;
  sn_issue(issues, place, "%s: %d numbers, the residual needs %d%s", what, n, size,
           rotation ? " (unit quaternions w x y z)" : "");
}

void sn_cost_check_goal(const SnTerm *t, int size, bool rotation, SnIssues *issues) {
  const SnTarget *g = &t->target;
  const bool poses = t->residual.quantity < SN_QTY_DISTANCE;
  if (g->frame && !poses) sn_issue(issues, g->place, "frame: only positions, orientations and velocities have one");
  if (g->frame && poses && t->residual.naxis > 0)
    sn_issue(issues, g->place, "frame: not with 'axis', which is one of the world's");
  if (g->kind == SN_TARGET_VALUE) check_entries(issues, g->place, "target", g->nvalue, size, rotation);
  if (g->kind == SN_TARGET_KEYFRAMES) check_entries(issues, g->place, "values", g->nvalue, size, rotation);
  if (g->kind == SN_TARGET_SINUSOID) {
    if (rotation) sn_issue(issues, g->place, "sinusoid: not for orientations");
    check_entries(issues, g->place, "center", g->nvalue, size, rotation);
    check_entries(issues, g->place, "amplitude", g->namplitude, size, rotation);
    check_entries(issues, g->place, "phase", g->nphase, size, rotation);
  }
}

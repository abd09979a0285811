#include "tests/clients/libsinew/pair_fixture.h"

#include <stdio.h>

#include "clients/libsinew/model_private.h"
#include "tests/support/small_models.h"

// A hand of a ball joint and two fingers that touches free balls and is held by a mocap body; sensors of every kind
// that the engine computes, and of two that it does not.
static const char hand[] =
    "<mujoco model='touch'><compiler autolimits='true'/><option timestep='0.004' %s/><worldbody>"
    "<geom name='floor' type='plane' size='2 2 1' condim='4'/><body name='hold' mocap='true' pos='0 0 .5'/>"
    "<body name='wrist' pos='0 0 .5'><freejoint name='float'/><geom name='palm' type='box' size='.1 .06 .03' "
    "mass='.5'/><site name='centre' pos='.01 .02 .03' euler='10 20 30'/>"
    " <body name='thumb' pos='.1 0 0'><joint name='ball' type='ball' range='0 .6' damping='.01'/>"
    "  <geom name='tip1' type='capsule' size='.03' fromto='0 0 0 .15 0 0' condim='6' friction='1 .02 .01'/>"
    "  <site name='end' pos='.15 0 0'/></body>"
    " <body name='finger' pos='-.1 0 0'><joint name='bend' axis='0 1 0' range='-.3 .3' damping='.02' "
    "frictionloss='.01'/>"
    "  <geom name='tip2' type='capsule' size='.03' fromto='0 0 0 -.15 0 0' condim='3'/><site name='far' pos='-.15 0 "
    "0'/></body></body>"
    "<body name='apple' pos='.2 0 .56'><freejoint/><geom name='apple' size='.04' condim='1'/></body>"
    "<body name='plum' pos='-.2 0 .55'><freejoint/><geom name='plum' size='.035'/></body>"
    "<body name='nut' pos='.5 .5 .029'><freejoint/><geom name='nut' size='.03' condim='6' friction='1 .02 "
    ".01'/></body></worldbody>"
    "<equality><weld body1='hold' body2='wrist'/></equality>"
    "<tendon><spatial name='string' range='0 .42'><site site='end'/><site site='centre'/><site site='far'/></spatial>"
    "<fixed name='gear'><joint joint='bend' coef='2'/></fixed></tendon>"
    "<actuator><motor name='pull' tendon='string' ctrlrange='-1 1' gear='3'/><position name='servo' joint='bend' "
    "kp='2' ctrlrange='-1 1'/><motor name='turn' joint='ball' gear='0 1 0' ctrlrange='-1 1'/>"
    "<muscle name='muscle' tendon='gear' lengthrange='-1 1' force='2'/></actuator>"
    "<sensor><jointpos joint='bend'/><jointvel joint='bend'/><tendonpos "
    "tendon='string'/><tendonvel tendon='string'/><tendonactuatorfrc tendon='string'/><actuatorpos "
    "actuator='turn'/><actuatorvel actuator='pull'/><actuatorfrc actuator='servo'/><ballquat joint='ball'/><ballangvel "
    "joint='ball'/><jointlimitpos joint='bend'/><jointlimitvel joint='ball'/><tendonlimitpos "
    "tendon='string'/><framepos objtype='site' objname='end'/><framequat objtype='body' objname='thumb' reftype='site' "
    "refname='centre'/><framexaxis objtype='geom' objname='tip2'/><framelinvel objtype='site' objname='end' "
    "reftype='site' refname='far'/><frameangvel objtype='xbody' objname='finger'/><velocimeter site='end'/><gyro "
    "site='centre'/><subtreecom body='wrist'/><clock/>%s</sensor>"
    "<keyframe><key name='open' time='.5' qpos='0 0 .5 1 0 0 0 1 0 0 0 .1 .2 0 .56 1 0 0 0 -.2 0 .55 1 0 0 0 .5 .5 "
    ".029 1 0 0 0' ctrl='.1 .2 .3 .4' act='.5' mpos='.01 0 .5' mquat='1 .1 0 0'/><key name='still'/></keyframe>"
    "</mujoco>";

void body_ok(const BodyPair *b, SinewStatus status) {
  if (status != SINEW_OK) fail_msg("%s: %s", sinew_status_name(status), b->err.text);
}

void body_make(BodyPair *b) {
  SnError err;
  SnModel *m = sn_model_copy(b->o.m, &err);
  if (!m) fail_msg("%s", err.text);
  b->model = api_model_wrap(m, &b->err);
  b->data = sinew_data_create(b->model, &b->err);
  if (!b->data) fail_msg("%s", b->err.text);
}

void body_open_string(BodyPair *b, const char *xml) {
  memset(b, 0, sizeof *b);
  sn_oracle_load_string(&b->o, xml);
  body_make(b);
}

void body_open_myosuite(BodyPair *b, const char *file) {
  memset(b, 0, sizeof *b);
  sn_oracle_load_myosuite(&b->o, file);
  body_make(b);
}

const char *body_open(BodyPair *b, int i) {
  static const char *const name[BODY_MODELS] = {"arm", "pile", "chains", "branches", "pyramids", "cones"};
  char xml[sizeof hand + 200];
  const char *const cone = i == 5 ? "cone='elliptic' impratio='3'" : "";
  snprintf(xml, sizeof xml, hand, cone,
           i == 5 ? "<insidesite objtype='site' objname='far' site='end'/><accelerometer site='far'/><user dim='1'/>"
                    "<insidesite objtype='site' objname='end' site='far'/>"
                  : "");
  body_open_string(b, i < SN_SMALL_MODELS ? sn_small_model(i) : i == 3 ? sn_branching_model() : xml);
  return name[i];
}

void body_close(BodyPair *b) {
  sinew_data_free(b->data);
  sinew_model_free(b->model);
  sn_oracle_free(&b->o);
}

void body_follow(BodyPair *b) {
  const mjData *d = b->o.d;
  const int nu = b->o.mj->nu, nv = b->o.mj->nv, nmocap = b->o.mj->nmocap;
  double *mocap = calloc(7 * (size_t)nmocap + 1, sizeof *mocap);
  for (int k = 0; k < nmocap; ++k) {
    memcpy(mocap + 7 * k, d->mocap_pos + 3 * k, 3 * sizeof *mocap);
    memcpy(mocap + 7 * k + 3, d->mocap_quat + 4 * k, 4 * sizeof *mocap);
  }
  const SinewState state = {d->time, d->qpos, d->qvel, d->act, mocap};
  body_ok(b, sinew_data_set_state(b->data, &state, &b->err));
  memcpy(sinew_data_array(b->data, "ctrl", NULL, NULL), d->ctrl, sizeof(double) * (size_t)nu);
  memcpy(sinew_data_array(b->data, "qacc_warmstart", NULL, NULL), d->qacc_warmstart, sizeof(double) * (size_t)nv);
  free(mocap);
}

void body_sample(BodyPair *b, double speed) {
  SnOracle *o = &b->o;
  sn_oracle_randomize(o, speed);
  for (int i = 0; i < 3 * o->mj->nmocap; ++i) o->d->mocap_pos[i] = 0.5 + 0.1 * sn_oracle_uniform(o);
  for (int i = 0; i < 4 * o->mj->nmocap; ++i) o->d->mocap_quat[i] = sn_oracle_uniform(o);
  mju_zero(o->d->qacc_warmstart, o->mj->nv);
  o->d->time = 1 + sn_oracle_uniform(o);
  body_follow(b);
}

SinewModel *body_moved(const SinewModel *model, const char *name, double step, SinewError *err) {
  int rows, cols;
  const double *now = sinew_model_array(model, name, &rows, &cols);
  if (!now) fail_msg("there is no array %s", name);
  double *value = calloc((size_t)(rows * cols) + 1, sizeof *value);
  for (int i = 0; i < rows * cols; ++i) value[i] = now[i] * (1 + step);
  SinewArray array = {name, value, rows, cols};
  SinewModel *m = sinew_model_with_arrays(model, &array, 1, err);
  if (!m && strstr(err->text, "has the size of its mesh")) {
    array.value = now;
    m = sinew_model_with_arrays(model, &array, 1, err);
  }
  if (!m) fail_msg("%s", err->text);
  free(value);
  return m;
}

SinewParameters *body_parameters(const SinewModel *model, const char *const *arrays, int count, SinewError *err) {
  SinewModel **m = calloc(2 * (size_t)count, sizeof *m);
  double *step = calloc((size_t)count, sizeof *step);
  for (int p = 0; p < count; ++p) {
    m[p] = body_moved(model, arrays[p], step[p] = 1e-5, err);
    m[count + p] = body_moved(model, arrays[p], -1e-5, err);
  }
  SinewParameters *all = sinew_parameters_create(model, (const SinewModel *const *)m,
                                                 (const SinewModel *const *)m + count, step, count, err);
  if (!all) fail_msg("%s", err->text);
  for (int p = 0; p < 2 * count; ++p) sinew_model_free(m[p]);
  free(m);
  free(step);
  return all;
}

int body_open_cpus(SinewBackend *cpu[2]) {
  for (int i = 0; i < 2; ++i) {
    SinewError err;
    SinewBackendOptions options = sinew_default_backend();
    options.threads = 1 + 2 * i;
    if (!(cpu[i] = sinew_backend_open("cpu", &options, &err))) fail_msg("%s", err.text);
  }
  return 0;
}

int body_close_cpus(SinewBackend *cpu[2]) {
  for (int i = 0; i < 2; ++i) sinew_backend_close(cpu[i]);
  return 0;
}

void body_compare_columns(const char *name, const double *ours, const double *fine, const double *coarse, int rows,
                          int cols, int *compared, int *skipped) {
  for (int k = 0; k < cols; ++k) {
    double doubt = 0, error = 0, scale = 1;
    for (int i = 0; i < rows; ++i) {
      doubt = sn_larger(doubt, fabs(fine[i * cols + k] - coarse[i * cols + k]));
      error = sn_larger(error, fabs(ours[i * cols + k] - fine[i * cols + k]));
      scale = sn_larger(scale, fabs(fine[i * cols + k]));
    }
    if (doubt > 1e-6 * scale) {
      ++*skipped;
      continue;
    }
    ++*compared;
    if (!(error <= 1e-5 * scale)) fail_msg("%s: column %d differs by %g of %g", name, k, error, scale);
  }
}

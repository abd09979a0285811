#include "tests/clients/libsinew/body_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <mujoco/mujoco.h>

#include "clients/libsinew/model_private.h"
#include "physics/import/import_mjcf.h"

const char *const body_xml =
    "<mujoco><compiler angle='radian'/><option timestep='0.005'/><worldbody>"
    "<geom name='floor' type='plane' size='2 2 .1' pos='0 0 -.56'/>"
    "<body name='goal' mocap='true' pos='.3 0 .2'><site name='goal'/></body>"
    "<body name='upper'><joint name='shoulder' type='ball' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03'/><site name='anchor' pos='.04 0 -.1'/>"
    "<body name='lower' pos='0 0 -.3'><joint name='elbow' axis='0 1 0' range='-2 2' limited='true' damping='.1'/>"
    "<geom name='lower' type='capsule' fromto='0 0 0 0 0 -.3' size='.02'/><site name='tip' pos='0 0 -.3'/>"
    "<site name='pull' pos='.03 0 -.1'/></body></body><site name='base' pos='.05 0 .1'/></worldbody>"
    "<tendon><spatial name='flexor'><site site='anchor'/><site site='pull'/></spatial>"
    "<spatial name='lifter'><site site='base'/><site site='anchor'/></spatial></tendon>"
    "<actuator><motor name='motor' joint='elbow' ctrlrange='-3 3' ctrllimited='true'/>"
    "<muscle name='flexor' tendon='flexor' lengthrange='.1 .4' force='60'/>"
    "<muscle name='lifter' tendon='lifter' lengthrange='.1 .4' force='40'/></actuator>"
    "<sensor><framepos name='tip' objtype='site' objname='tip'/><jointvel name='elbow' joint='elbow'/>"
    "<framequat name='hand' objtype='body' objname='lower'/></sensor></mujoco>";

const char *const body_task =
    "model: body.xml\n"
    "initial: {joints: {elbow: 0.4}, activation: 0.05}\n"
    "perturb: {joints: 0.1, plan: 0.2}\n"
    "plan: {flexor: 0.1, lifter: 0.1}\n"
    "settings: {horizon: 20, candidates: 12, iterations: 2, knots: 5, noise_scale: 0.5, adam_iterations: 4}\n"
    "terms:\n"
    "  - {name: reach, residual: {position: {site: tip}}, target: {position: {site: goal}}, norm: euclidean, weight: "
    "1, terminal: 2}\n"
    "  - {name: elbow, residual: {joint_position: elbow}, target: {sinusoid: {center: -0.3, amplitude: 0.2, period: "
    "1}}, weight: 0.1}\n"
    "  - {name: speed, residual: {joint_velocity: all}, norm: squared, weight: 0.001}\n"
    "  - {name: effort, residual: {control: all}, norm: smooth_abs, width: 0.1, weight: 0.01}\n"
    "success:\n"
    "  - {name: there, term: reach, below: 0.05, during: 0.1}\n";

// Takes MuJoCo's model over.
static SinewModel *import(mjModel *m, const char *text) {
  SnError why = {0};
  SinewError err;
  if (!m) fail_msg("%s", text);
  SnModel *model = sn_import_mjmodel(m, &why);
  mj_deleteModel(m);
  if (!model) fail_msg("%s", why.text);
  SinewModel *wrapped = api_model_wrap(model, &err);
  if (!wrapped) fail_msg("%s", err.text);
  return wrapped;
}

SinewModel *test_model_of_text(const char *xml) {
  char text[1000] = "";
  mjSpec *spec = mj_parseXMLString(xml, NULL, text, sizeof text);
  mjModel *m = spec ? mj_compile(spec, NULL) : NULL;
  if (spec && !m) snprintf(text, sizeof text, "%s", mjs_getError(spec));
  mj_deleteSpec(spec);
  return import(m, text);
}

SinewModel *test_model_of_file(const char *path) {
  char text[1000] = "";
  return import(mj_loadXML(path, NULL, text, sizeof text), text);
}

SinewTask *test_task(const char *text) {
  SinewError err;
  SinewTask *task = sinew_task_parse(text, strlen(text), "body.yaml", &err);
  if (!task) fail_msg("%s", err.text);
  return task;
}

SinewBackend *test_cpu(int threads) {
  SinewError err;
  SinewBackendOptions options = sinew_default_backend();
  options.threads = threads;
  SinewBackend *backend = sinew_backend_open("cpu", &options, &err);
  if (!backend) fail_msg("%s", err.text);
  return backend;
}

void test_refused(SinewStatus status, const SinewError *err, SinewStatus wanted, const char *word) {
  if (status != wanted || err->status != wanted || !strstr(err->text, word))
    fail_msg("wanted %s with '%s', got %s: '%s'", sinew_status_name(wanted), word, sinew_status_name(status),
             err->text);
}

void test_accepted(SinewStatus status, const SinewError *err) {
  if (status != SINEW_OK) fail_msg("%s: %s", sinew_status_name(status), err->text);
  assert_int_equal(err->status, SINEW_OK);
  assert_string_equal(err->text, "");
}

double test_random(uint64_t *state) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (double)(int64_t)*state / 9223372036854775808.0;
}

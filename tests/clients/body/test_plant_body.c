// The body of the closed loop: it begins where the session says, tells its state whole or without activations, and says
// when that has become unusable.
#include <stdio.h>
#include <unistd.h>

#include "clients/body/body.h"
#include "clients/reference/mujoco_log.h"
#include "tests/support/oracle.h"

static const char kBody[] =
    "<mujoco><option timestep='.01'/><worldbody><body name='target' mocap='true' pos='1 2 3'/>"
    "<body><joint name='j' axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body></worldbody>"
    "<actuator><general joint='j' dyntype='filter' dynprm='.1'/></actuator></mujoco>";

static double qpos[] = {0.3}, qvel[] = {-0.2}, act[] = {0.25}, mocap[] = {1, 2, 3, 0.6, 0, 0.8, 0};

// What a daemon would say of that model.
static SinewSessionInfo info_of(void) {
  return (SinewSessionInfo){.model = "body",
                            .timestep = 0.004,
                            .nq = 1,
                            .nv = 1,
                            .na = 1,
                            .nu = 1,
                            .nmocap = 1,
                            .initial = {.qpos = qpos, .qvel = qvel, .act = act, .mocap = mocap}};
}

// Loads the body as that of a session; false with a text.
static bool load(PlantBody *body, const SinewSessionInfo *info, char *error, size_t size) {
  char path[] = "/tmp/sinew-body-XXXXXX.xml";
  const int fd = mkstemps(path, 4);
  assert_true(fd >= 0 && write(fd, kBody, sizeof kBody - 1) == (ssize_t)sizeof kBody - 1);
  close(fd);
  const PlantPlaces places = {.xml = path};
  const bool loaded = plant_body_load(body, &places, info, error, size);
  unlink(path);
  return loaded;
}

static void expect_start(const SinewState *s) {
  assert_true(s->time == 0 && s->qpos[0] == 0.3 && s->qvel[0] == -0.2);
  for (int i = 0; i < 7; ++i) assert_true(s->mocap[i] == mocap[i]);
}

static void start_and_state(void **state) {
  (void)state;
  const SinewSessionInfo info = info_of();
  PlantBody body = {0};
  char error[1000];
  if (!load(&body, &info, error, sizeof error)) fail_msg("%s", error);
  assert_true(body.m->opt.timestep == 0.004);  // the session's
  for (int round = 0; round < 2; ++round) {
    plant_body_reset(&body, &info.initial);
    SinewState s = plant_body_state(&body, false);
    expect_start(&s);
    assert_true(s.act && s.act[0] == 0.25);
    s = plant_body_state(&body, true);
    expect_start(&s);
    assert_null(s.act);
    const double ctrl = 0.5;
    for (int i = 0; i < 3; ++i) assert_true(plant_body_step(&body, &ctrl));
    s = plant_body_state(&body, false);
    assert_true(fabs(s.time - 3 * 0.004) < 1e-12 && body.d->ctrl[0] == 0.5 && s.act[0] > 0.25);
  }
  const double strange = 1e300;
  body.d->qvel[0] = strange;
  assert_false(plant_body_step(&body, &(double){0}));
  plant_body_free(&body);
}

// The model of another session is refused, whichever of its sizes differs.
static void another_model(void **state) {
  (void)state;
  for (int k = 0; k < 5; ++k) {
    SinewSessionInfo info = info_of();
    PlantBody body = {0};
    char error[1000];
    int *const size[] = {&info.nq, &info.nv, &info.na, &info.nu, &info.nmocap};
    ++*size[k];
    assert_false(load(&body, &info, error, sizeof error));
    assert_non_null(strstr(error, "is not the model of the session"));
    plant_body_free(&body);
  }
}

// A prediction is compared with the sample of its end: one degree of freedom, so the mean is its difference.
static void predictions(void **state) {
  (void)state;
  const SinewSessionInfo info = info_of();
  PlantBody body = {0};
  char error[1000];
  if (!load(&body, &info, error, sizeof error)) fail_msg("%s", error);
  plant_body_reset(&body, &info.initial);
  PlantRecord r;
  plant_record_init(&r, 0);
  double ctrl[8] = {0};
  for (int i = 0; i < 6; ++i) {
    plant_record_sample(&r, &body, ctrl);
    assert_true(plant_body_step(&body, ctrl));
  }
  const PlantPlan from = {.step = 0.004, .steps = 8, .ctrl = ctrl};
  PlantPlan to = from;
  to.start = 0.004;
  to.lead = 3;
  plant_record_handover(&r, &from, &to, 0.008, 0, 1);
  const double there[] = {r.sample[4].qpos[0] + 0.01}, moves[] = {r.sample[4].qvel[0] - 0.5};
  plant_record_prediction(&r, r.handover, &body, there, moves);
  assert_true(fabs(r.handover[0].position - 0.01) < 1e-12 && fabs(r.handover[0].velocity - 0.5) < 1e-12);
  to.lead = 7;  // past the end of the record
  plant_record_handover(&r, &from, &to, 0.008, 0, 1);
  plant_record_prediction(&r, r.handover + 1, &body, there, moves);
  assert_true(isnan(r.handover[1].position) && isnan(r.handover[1].velocity));
  plant_record_free(&r);
  plant_body_free(&body);
}

// Contacts of every geom and of every pair; what is NaN stays the model's.
static void contacts(void **state) {
  (void)state;
  static const char xml[] =
      "<mujoco><worldbody><geom type='plane' size='1 1 1' solref='.03 .9'/><body pos='0 0 1'><freejoint/>"
      "<geom name='a' size='.1'/></body><body pos='1 0 1'><freejoint/><geom name='b' size='.1'/></body></worldbody>"
      "<contact><pair geom1='a' geom2='b' solref='.04 .8'/></contact></mujoco>";
  char text[1000] = "";
  mjVFS vfs;
  mj_defaultVFS(&vfs);
  assert_int_equal(mj_addBufferVFS(&vfs, "contacts.xml", xml, sizeof xml - 1), 0);
  PlantBody body = {.m = mj_loadXML("contacts.xml", &vfs, text, sizeof text)};
  mj_deleteVFS(&vfs);
  if (!body.m) fail_msg("%s", text);
  const double none = (double)NAN;
  const SinewTaskPlant plant = {{0.01, none}, {0.1, 0.2, none, 0.6, 3}};
  const SinewTaskPlant nothing = {{none, none}, {none, none, none, none, none}};
  assert_false(plant_body_take_contacts(&body, &nothing));
  assert_true(body.m->geom_solref[0] == 0.03 && body.m->pair_solref[1] == 0.8);
  assert_true(plant_body_take_contacts(&body, &plant));
  const mjModel *m = body.m;
  const double damping[] = {0.9, 1, 1};
  for (int g = 0; g < 3; ++g)
    assert_true(m->geom_solref[2 * g] == 0.01 && m->geom_solref[2 * g + 1] == damping[g] &&
                m->geom_solimp[5 * g] == 0.1 && m->geom_solimp[5 * g + 1] == 0.2 &&
                m->geom_solimp[5 * g + 2] == 0.001 && m->geom_solimp[5 * g + 3] == 0.6 &&
                m->geom_solimp[5 * g + 4] == 3);
  assert_true(m->pair_solref[0] == 0.01 && m->pair_solref[1] == 0.8 && m->pair_solimp[4] == 3);
  plant_body_free(&body);
}

int main(void) {
  sn_mujoco_messages("test", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(start_and_state), cmocka_unit_test(another_model),
                                     cmocka_unit_test(predictions), cmocka_unit_test(contacts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

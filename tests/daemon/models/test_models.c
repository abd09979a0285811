// Models in memory: who asks after an edit gets the model anew, who has the old one keeps it; what the files say now
// and cannot be loaded is refused, and harms nobody.
#include "daemon/models/models.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
// cmocka needs what stands above.
#include <cmocka.h>

#include "tests/support/daemon_process.h"
#include "tests/support/oracle.h"

static SnTestDaemon place;  // its folder; of the last test also the daemon
static SnConfig config;
static SnModels models;

// Counts models that were freed, and those of them while others could not ask for models.
static atomic_int freed, freed_inside;

// Takes the place of the function for the code under test.
void __real_sn_model_free(SnModel *model);
void __wrap_sn_model_free(SnModel *model);
void __wrap_sn_model_free(SnModel *model) {
  const bool inside = model && pthread_mutex_trylock(&models.mutex) != 0;
  if (model && !inside) pthread_mutex_unlock(&models.mutex);
  atomic_fetch_add(&freed, model != NULL);
  atomic_fetch_add(&freed_inside, inside);
  __real_sn_model_free(model);
}

// Writes a file of the models' folder a little after what was written before, so that its time of change is another.
static void write_model(const char *name, const char *text) {
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  sn_test_daemon_write(&place, name, text);
}

// A slide that is driven, of two files: the part has the time step.
static const char slide[] =
    "<mujoco><include file='part.xml'/><worldbody><body><joint name='x' type='slide' range='-1 1' limited='true'/>"
    "<geom size='.1'/></body></worldbody><actuator><motor joint='x' ctrlrange='-1 1'/></actuator></mujoco>";
#define PART(step) "<mujoco><option timestep='" step "'/></mujoco>"

static int set_up(void **state) {
  (void)state;
  SnError err = {0};
  char text[256];
  sn_test_daemon_prepare(&place);
  write_model("models/slide.xml", slide);
  write_model("models/part.xml", PART("0.01"));
  write_model("tasks/slide.yaml",
              "model: slide\nsettings: {horizon: 8, knots: 2}\nterms: [{name: x, residual: {joint_position: all}}]\n");
  sn_config_default(&config);
  snprintf(text, sizeof text, "%s/models", place.folder);
  assert_int_equal(sn_config_set(&config, "models", text, &err), SN_OK);
  snprintf(config.cache, sizeof config.cache, "%s/cache", place.folder);
  snprintf(config.importer, sizeof config.importer, "%s/sinew-import", sn_test_binary_folder());
  if (sn_models_init(&models, &config, &err) != SN_OK) fail_msg("%s", err.text);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  sn_models_free(&models);
  sn_test_daemon_remove(&place);
  return 0;
}

static SnLoadedModel *acquire(double step) {
  SnError err = {0};
  SnLoadedModel *x = sn_models_acquire(&models, "slide", &err);
  if (!x) fail_msg("%s", err.text);
  assert_true(x->model && x->model->opt.timestep == (sn_real)step);
  return x;
}

static void test_edits_are_followed(void **state) {
  (void)state;
  SnLoadedModel *first = acquire(0.01), *again = acquire(0.01);
  assert_ptr_equal(first, again);
  write_model("models/part.xml", PART("0.02"));
  SnLoadedModel *edited = acquire(0.02);
  assert_ptr_not_equal(first, edited);
  assert_true(first->model->opt.timestep == (sn_real)0.01);
  assert_ptr_equal(acquire(0.02), edited);
  assert_true(sn_models_count(&models) == 2 && sn_models_users(&models, "slide") == 4);
  SnError err = {0};
  assert_int_equal(sn_models_unload(&models, "slide", &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "in use by 4 sessions"));
  // The old one goes with its last user.
  sn_models_release(&models, first);
  assert_int_equal(sn_models_count(&models), 2);
  sn_models_release(&models, first);
  assert_int_equal(sn_models_count(&models), 1);
  sn_models_release(&models, edited);
  sn_models_release(&models, edited);
  assert_int_equal(sn_models_count(&models), 1);
  // Nobody uses it: it is replaced.
  write_model("models/part.xml", PART("0.03"));
  sn_models_release(&models, acquire(0.03));
  assert_int_equal(sn_models_count(&models), 1);
  assert_int_equal(sn_models_unload(&models, "slide", &err), SN_OK);
  assert_int_equal(sn_models_users(&models, "slide"), -1);
}

// The same contents written anew: nothing is replaced, and both names of a model mean one.
static void test_the_same_contents_are_the_same_model(void **state) {
  (void)state;
  SnError err = {0};
  SnLoadedModel *first = acquire(0.01);
  write_model("models/part.xml", PART("0.01"));
  assert_ptr_equal(acquire(0.01), first);
  assert_ptr_equal(sn_models_acquire(&models, "slide.xml", &err), first);
  assert_true(sn_models_count(&models) == 1 && first->users == 3);
  for (int i = 0; i < 3; i++) sn_models_release(&models, first);
}

static void test_garbage_is_refused_and_harms_nobody(void **state) {
  (void)state;
  SnLoadedModel *first = acquire(0.01);
  for (int i = 0; i < 2; i++) {
    SnError err = {0};
    write_model("models/part.xml", "garbage");
    assert_null(sn_models_acquire(&models, "slide", &err));
    assert_int_equal(err.code, SN_ERR_FORMAT);
    assert_non_null(strstr(err.text, "MuJoCo cannot load it"));
    assert_true(sn_models_count(&models) == 1 && first->users == 1);
    assert_true(first->model->opt.timestep == (sn_real)0.01);
    // Mended: the one that is in use holds again.
    write_model("models/part.xml", PART("0.01"));
    assert_ptr_equal(acquire(0.01), first);
    sn_models_release(&models, first);
  }
  // Without its part it cannot be loaded either; without itself it is not there.
  SnError err = {0};
  char path[256];
  snprintf(path, sizeof path, "%s/models/part.xml", place.folder);
  unlink(path);
  assert_null(sn_models_acquire(&models, "slide", &err));
  assert_non_null(strstr(err.text, "part.xml"));
  snprintf(path, sizeof path, "%s/models/slide.xml", place.folder);
  unlink(path);
  assert_null(sn_models_acquire(&models, "slide", &err));
  assert_int_equal(err.code, SN_ERR_NOT_FOUND);
  sn_models_release(&models, first);
}

// With room for one model, the edited one takes the place of one that nobody uses, and none otherwise.
static void test_edits_and_the_limit(void **state) {
  (void)state;
  SnError err = {0};
  config.loaded = 1;
  sn_models_release(&models, acquire(0.01));
  write_model("models/part.xml", PART("0.02"));
  SnLoadedModel *edited = acquire(0.02);
  write_model("models/part.xml", PART("0.03"));
  assert_null(sn_models_acquire(&models, "slide", &err));
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_true(edited->users == 1 && edited->model->opt.timestep == (sn_real)0.02);
  sn_models_release(&models, edited);
  sn_models_release(&models, acquire(0.03));
}

// Whatever a model has to go for, others need not wait for that.
static void test_nobody_waits_for_memory(void **state) {
  (void)state;
  SnError err = {0};
  config.loaded = 1;
  atomic_store(&freed_inside, 0);
  sn_models_release(&models, acquire(0.01));
  int before = atomic_load(&freed);
  assert_int_equal(sn_models_unload(&models, "slide", &err), SN_OK);
  assert_int_equal(atomic_load(&freed), before + 1);
  sn_models_release(&models, acquire(0.01));
  write_model("models/part.xml", PART("0.02"));
  sn_models_release(&models, acquire(0.02));  // in the place of the other
  config.loaded = 2;
  SnLoadedModel *old = acquire(0.02);
  write_model("models/part.xml", PART("0.03"));
  SnLoadedModel *edited = acquire(0.03);
  before = atomic_load(&freed);
  sn_models_release(&models, old);  // the last user
  assert_int_equal(atomic_load(&freed), before + 1);
  write_model("models/part.xml", PART("0.03"));
  assert_ptr_equal(acquire(0.03), edited);  // what was loaded says the same
  for (int i = 0; i < 2; i++) sn_models_release(&models, edited);
  assert_int_equal(atomic_load(&freed_inside), 0);
}

static void *ask(void *unused) {
  (void)unused;
  for (int i = 0; i < 40; i++) {
    SnError err = {0};
    SnLoadedModel *x = sn_models_acquire(&models, "slide", &err);
    if (!x || !x->model) return err.text[0] ? strdup(err.text) : strdup("no model");
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    sn_models_release(&models, x);
  }
  return NULL;
}

// Several threads ask while the file is edited: each gets a model, and one is left.
static void test_edits_under_way(void **state) {
  (void)state;
  pthread_t thread[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, ask, NULL), 0);
  for (int i = 0; i < 6; i++) {
    char text[100], from[256], to[256];
    snprintf(text, sizeof text, PART("0.00%d"), i + 1);
    write_model("part.new", text);
    snprintf(from, sizeof from, "%s/part.new", place.folder);
    snprintf(to, sizeof to, "%s/models/part.xml", place.folder);
    assert_int_equal(rename(from, to), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(thread[i], &failed);
    if (failed) fail_msg("%s", (char *)failed);
  }
  sn_models_release(&models, acquire(0.006));
  assert_true(sn_models_count(&models) == 1 && sn_models_users(&models, "slide") == 0);
}

// A model that MuJoCo has compiled, by its name with the ending, beside the XML; it is followed too.
static void test_compiled_models(void **state) {
  (void)state;
  SnError err = {0};
  char xml[128], mjb[128];
  snprintf(xml, sizeof xml, "%s/models/slide.xml", place.folder);
  snprintf(mjb, sizeof mjb, "%s/models/slide.mjb", place.folder);
  for (int i = 0; i < 2; i++) {
    write_model("models/part.xml", i ? PART("0.02") : PART("0.01"));
    mjModel *mj = sn_oracle_read_file(xml, &err);
    if (!mj) fail_msg("%s", err.text);
    mj_saveModel(mj, mjb, NULL, 0);
    mj_deleteModel(mj);
    SnLoadedModel *compiled = sn_models_acquire(&models, "slide.mjb", &err), *own = acquire(i ? 0.02 : 0.01);
    if (!compiled) fail_msg("%s", err.text);
    assert_string_equal(compiled->name, "slide.mjb");
    assert_string_equal(compiled->file, mjb);
    assert_true(compiled != own && compiled->model->opt.timestep == own->model->opt.timestep);
    sn_models_release(&models, compiled);
    sn_models_release(&models, own);
  }
}

static double step_of(SnTestClient *client, uint64_t session) {
  double zero = 0;
  Sinew__V1__State s = SINEW__V1__STATE__INIT;
  s.qpos = s.qvel = &zero;
  s.n_qpos = s.n_qvel = 1;
  Sinew__V1__Reply *reply = sn_test_plan(client, session, &s, 0.05);
  assert_int_equal(reply->body_case, SINEW__V1__REPLY__BODY_PLAN);
  const double step = reply->plan->step;
  sn_test_done(reply);
  return step;
}

// The same through a daemon: sessions that run keep what they have.
static void test_sessions_keep_their_model(void **state) {
  (void)state;
  SnTestClient client;
  sn_test_daemon_start(&place, NULL);
  sn_test_connect(&client, place.endpoint);
  const uint64_t first = sn_test_open(&client, "slide", 1, NULL);
  write_model("models/part.xml", PART("0.02"));
  const uint64_t second = sn_test_open(&client, "slide", 1, NULL);
  write_model("models/part.xml", "garbage");
  Sinew__V1__OpenRequest open = SINEW__V1__OPEN_REQUEST__INIT;
  open.task = "slide";
  Sinew__V1__Request request = SINEW__V1__REQUEST__INIT;
  request.body_case = SINEW__V1__REQUEST__BODY_OPEN;
  request.open = &open;
  sn_test_expect_error(sn_test_request(&client, &request), SINEW__V1__ERROR__CODE__INVALID, "MuJoCo cannot load it");
  assert_true(step_of(&client, first) == (sn_real)0.01 && step_of(&client, second) == (sn_real)0.02);
  sn_test_disconnect(&client);
  assert_int_equal(sn_test_daemon_stop(&place, SIGTERM), 0);
}

// A folder that is not there is a mistake of the configuration; one that is empty is worth a word.
static void test_folders_must_be_there(void **state) {
  (void)state;
  char option[128];
  snprintf(option, sizeof option, "--models=%s/nowhere", place.folder);
  sn_test_daemon_spawn(&place, (const char *const[]){option, NULL});
  assert_int_equal(sn_test_daemon_wait(&place), 1);
  assert_true(sn_test_daemon_logged(&place, "event=failed text=\"models is '/tmp/sinew-test-"));
  assert_false(sn_test_daemon_logged(&place, "event=ready"));
  snprintf(option, sizeof option, "--tasks=%s/cache", place.folder);
  sn_test_daemon_start(&place, (const char *const[]){option, NULL});
  assert_int_equal(sn_test_daemon_stop(&place, SIGTERM), 0);
  assert_true(sn_test_daemon_logged(&place, "level=warning event=no-tasks text=\"/tmp/sinew-test-"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_edits_are_followed),
      TEST(test_the_same_contents_are_the_same_model),
      TEST(test_garbage_is_refused_and_harms_nobody),
      TEST(test_edits_and_the_limit),
      TEST(test_nobody_waits_for_memory),
      TEST(test_edits_under_way),
      TEST(test_compiled_models),
      TEST(test_sessions_keep_their_model),
      TEST(test_folders_must_be_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

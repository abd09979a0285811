// The table of settings, the configuration file and its mistakes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config/config.h"
#include "daemon/session/pack.h"

static SnConfig config;

// Loads a file with this text; its name in messages is FILE.
static SnCode load(const char *text, SnError *err) {
  char path[] = "/tmp/sinew-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  sn_config_default(&config);
  *err = (SnError){0};
  SnCode code = sn_config_load(&config, path, err);
  unlink(path);
  return code;
}

static void expect_mistake(const char *text, const char *place, const char *word) {
  SnError err;
  assert_int_not_equal(load(text, &err), SN_OK);
  if (!strstr(err.text, place) || !strstr(err.text, word))
    fail_msg("'%s': wanted '%s' and '%s'", err.text, place, word);
}

static void test_defaults(void **state) {
  (void)state;
  sn_config_default(&config);
  assert_int_equal(config.sessions, 32);
  assert_int_equal(config.log, 2);
  assert_true(config.slice == 0.001);
  assert_string_equal(config.endpoint, "");
  assert_int_equal(config.models.n, 0);
  assert_string_equal(config.backend, "auto");
  assert_true(config.device == 0 && config.device_megabytes == 0 && config.device_loss == 0);
}

static void test_file(void **state) {
  (void)state;
  SnError err;
  SnCode code =
      load("tcp: tcp://127.0.0.1:7440\nmodels: [/a, /b]\ntasks: /c\nsessions: 7\nslice: 0.002\nlog: debug\n", &err);
  if (code != SN_OK) fail_msg("%s", err.text);
  assert_string_equal(config.tcp, "tcp://127.0.0.1:7440");
  assert_int_equal(config.models.n, 2);
  assert_string_equal(config.models.item[1], "/b");
  assert_string_equal(config.tasks.item[0], "/c");
  assert_int_equal(config.sessions, 7);
  assert_true(config.slice == 0.002);
  assert_int_equal(config.log, 3);
  assert_int_equal(load("", &err), SN_OK);
  assert_int_equal(load("# nothing\n", &err), SN_OK);
}

static void test_mistakes_name_the_place(void **state) {
  (void)state;
  expect_mistake("sessions: 7\nsesions: 8\n", ":2:10:", "unknown setting 'sesions'; known are endpoint, tcp");
  expect_mistake("sesions: 8\n", ":1:10:", "; did you mean 'sessions'?");
  expect_mistake("sessions: 0\n", ":1:11:", "a whole number from 1 to 1024");
  expect_mistake("sessions: 1.5\n", ":1:11:", "'1.5'");
  expect_mistake("sessions: many\n", ":1:11:", "'many'");
  expect_mistake("slice: nan\n", ":1:8:", "from 0.0001 to 1 s");
  expect_mistake("slice: 1e400\n", ":1:8:", "1e400");
  expect_mistake("slice: 0.01s\n", ":1:8:", "'0.01s'");
  expect_mistake("sessions: 7 8\n", ":1:11:", "'7 8'");
  expect_mistake("message_bytes: 16777217\n", ":1:16:", "a whole number from 1024 to 16777216 bytes");
  expect_mistake("device: -1\n", ":1:9:", "a whole number from 0 to 63");
  expect_mistake("device_megabytes: lots\n", ":1:19:", "'lots'");
  expect_mistake("device_loss: weep\n", ":1:14:", "stay|exit");
  expect_mistake("log: loud\n", ":1:6:", "error|warning|info|debug");
  expect_mistake("sessions: [1, 2]\n", ":1:11:", "only for models and tasks");
  expect_mistake("models: [{a: b}]\n", ":1:10:", "must be a folder");
  expect_mistake("models: {a: b}\n", ":1:9:", "a text, a number or a sequence");
  expect_mistake("- a\n", ":1:1:", "must be a mapping");
  expect_mistake("tcp: [\n", ":2:1:", "did not find");
  expect_mistake("tcp: \"\\q\"\n", ":1:", "unknown escape");
  // Nothing is passed over: neither the first of two values nor what stands behind the settings.
  expect_mistake("sessions: 7\nqueue: 8\nsessions: 9\n", ":3:1:", "'sessions' is given twice");
  expect_mistake("models: [/a]\nmodels: [/b]\n", ":2:1:", "'models' is given twice");
  expect_mistake("sessions: 7\n---\nsessions: 9\n", ":2:1:", "a second document; only one is taken");
  expect_mistake("sessions: 7\n...\n\"\\q\"\n", ":3:", "unknown escape");
  // All mistakes are listed, not only the first.
  expect_mistake("sessions: 0\nqueue: 0\n", ":2:8:", "queue is '0'");
}

static void test_missing_file_and_long_text(void **state) {
  (void)state;
  SnError err = {0};
  char text[SN_CONFIG_TEXT_SIZE + 1];
  sn_config_default(&config);
  assert_int_equal(sn_config_load(&config, "/nonexistent.yaml", &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, "'/nonexistent.yaml': No such file"));
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  assert_int_equal(sn_config_set(&config, "cache", text, &err), SN_ERR_ARGUMENT);
  for (int i = 0; i < SN_CONFIG_LIST_SIZE; i++) assert_int_equal(sn_config_set(&config, "models", "/a", &err), SN_OK);
  assert_int_equal(sn_config_set(&config, "models", "/a", &err), SN_ERR_ARGUMENT);
}

static void test_complete(void **state) {
  (void)state;
  SnError err = {0};
  setenv("XDG_RUNTIME_DIR", "/tmp", 1);
  setenv("XDG_CACHE_HOME", "/nonexistent", 1);
  sn_config_default(&config);
  SnCode code = sn_config_complete(&config, &err);
  if (code != SN_OK) fail_msg("%s", err.text);
  assert_string_equal(config.endpoint, "ipc:///tmp/sinew/sinewd.sock");
  assert_string_equal(config.telemetry, "ipc:///tmp/sinew/sinewd.sock.telemetry");
  assert_string_equal(config.records, "ipc:///tmp/sinew/sinewd.sock.records");
  assert_string_equal(config.cache, "/nonexistent/sinew/models");
  assert_non_null(strstr(config.importer, "/sinew-import"));
  // Defaults count though they are missing: MyoSuite may be fetched later.
  assert_string_equal(config.models.item[1], "myosuite=/nonexistent/sinew/myosuite-2.12.2/myosuite");
  assert_int_equal(sn_config_check_folders(&config, &err), SN_OK);
  // What is configured must be there.
  static const char *const settings[] = {"models", "tasks"};
  for (int i = 0; i < 2; i++) {
    sn_config_default(&config);
    sn_config_set(&config, settings[i], "/proc/nonexistent", &err);
    assert_int_equal(sn_config_complete(&config, &err), SN_OK);  // a reload goes on without
    assert_int_equal(sn_config_check_folders(&config, &err), SN_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, i ? "tasks is '/proc/nonexistent'" : "models is '/proc/nonexistent'"));
  }
  char home[] = "/tmp/sinew-test-XXXXXX", models[64];
  assert_non_null(mkdtemp(home));
  snprintf(models, sizeof models, "%s/models", home);
  mkdir(models, 0700);
  setenv("HOME", home, 1);
  sn_config_default(&config);
  sn_config_set(&config, "telemetry", "none", &err);
  sn_config_set(&config, "endpoint", "tcp://127.0.0.1:7440", &err);
  sn_config_set(&config, "models", "~/models", &err);
  assert_int_equal(sn_config_complete(&config, &err), SN_OK);
  assert_string_equal(config.telemetry, "");
  assert_string_equal(config.records, "ipc:///tmp/sinew/records.sock");
  assert_int_equal(config.models.n, 1);
  assert_string_equal(config.models.item[0], models);
  rmdir(models);
  rmdir(home);
  setenv("HOME", "/home/me", 1);
  sn_config_set(&config, "models", "myo=~/models", &err);
  assert_string_equal(config.models.item[1], "myo=/home/me/models");
}

// Every setting of the planner is on the wire, goes there and back, and is refused out of bounds.
static void test_planner_settings_on_the_wire(void **state) {
  (void)state;
  SnError err = {0};
  SnScratch scratch = {0};
  SnSettings settings = sn_default_settings(), back = settings;
  sn_config_default(&config);
  settings.horizon = 77;
  settings.noise = SN_NOISE_BROWN;
  settings.noise_scale = 0.25;
  strcpy(settings.grid, "7x1, 35x2");
  const ProtobufCMessageDescriptor *d = &sinew__v1__planner_settings__descriptor;
  assert_int_equal(d->n_fields, sn_settings_count());
  for (int i = 0; i < sn_settings_count(); i++)
    if (!protobuf_c_message_descriptor_get_field_by_name(d, sn_settings_info(i)->name))
      fail_msg("%s is not on the wire", sn_settings_info(i)->name);
  Sinew__V1__PlannerSettings *message = sn_pack_settings(&scratch, &settings);
  assert_int_equal(sn_read_settings(message, &config, &back, &err), SN_OK);
  for (int i = 0; i < sn_settings_count(); i++) assert_true(sn_settings_same(&settings, &back, i));

  message->horizon = 100000;
  assert_int_not_equal(sn_read_settings(message, &config, &back, &err), SN_OK);
  assert_non_null(strstr(err.text, "horizon"));
  assert_int_equal(back.horizon, 77);
  config.horizon = 100;
  message->horizon = 200;
  message->grid[0] = 0;  // it would not fit, either
  assert_int_equal(sn_read_settings(message, &config, &back, &err), SN_ERR_LIMIT);
  message->horizon = 77;
  strcpy(message->grid, "7x1");
  assert_int_not_equal(sn_read_settings(message, &config, &back, &err), SN_OK);
  assert_non_null(strstr(err.text, "'7x1' lasts 7 base steps"));
  message->grid[0] = 0;
  assert_int_equal(sn_read_settings(message, &config, &back, &err), SN_OK);
  assert_string_equal(back.grid, "");
  strcpy(message->noise, "green");
  assert_int_not_equal(sn_read_settings(message, &config, &back, &err), SN_OK);
  assert_non_null(strstr(err.text, "green"));
  sn_scratch_free(&scratch);
}

// A daemon that nobody tells where to keep compiled models says so before it opens anything.
static void test_no_cache(void **state) {
  (void)state;
  SnError err = {0};
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  sn_config_default(&config);
  assert_int_equal(sn_config_complete(&config, &err), SN_ERR_ARGUMENT);
  assert_non_null(strstr(err.text, "cache is not set"));
  sn_config_default(&config);
  sn_config_set(&config, "cache", "/nonexistent/cache", &err);
  sn_config_set(&config, "importer", "/nonexistent/importer", &err);
  assert_int_equal(sn_config_complete(&config, &err), SN_OK);
  assert_string_equal(config.cache, "/nonexistent/cache");
  assert_string_equal(config.importer, "/nonexistent/importer");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_mistakes_name_the_place),
      cmocka_unit_test(test_missing_file_and_long_text),
      cmocka_unit_test(test_complete),
      cmocka_unit_test(test_planner_settings_on_the_wire),
      cmocka_unit_test(test_no_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

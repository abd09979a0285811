// Names, never paths: what a client may name, and that nothing outside the folders can be reached.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/models/repository.h"

static char root[64];
static SnConfigList folders;

static void write_file(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", root, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("x", f);
  fclose(f);
}

static int setup(void **state) {
  (void)state;
  char path[256], target[256];
  strcpy(root, "/tmp/sinew-test-XXXXXX");
  assert_non_null(mkdtemp(root));
  static const char *const sub[] = {"one", "one/hand", "two", "secret", "one-secret"};
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, "%s/%s", root, sub[i]);
    mkdir(path, 0700);
  }
  write_file("one/arm.xml");
  write_file("one/hand/left.xml");
  write_file("one/notes.txt");
  write_file("one/.hidden.xml");
  write_file("two/arm.xml");
  write_file("two/leg.xml");
  write_file("two/leg.mjb");
  write_file("two/foot.mjb");
  write_file("one/reach.yaml");
  write_file("one/hand/balls.yaml");
  // The second one's folder begins as a configured one.
  static const char *const out[][2] = {{"escape", "secret"}, {"sidestep", "one-secret"}};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/key.xml", out[i][1]);
    write_file(path);
    snprintf(target, sizeof target, "%s/%s/key.xml", root, out[i][1]);
    snprintf(path, sizeof path, "%s/one/%s.xml", root, out[i][0]);
    assert_int_equal(symlink(target, path), 0);
  }
  folders.n = 2;
  snprintf(folders.item[0], sizeof folders.item[0], "%s/one", root);
  snprintf(folders.item[1], sizeof folders.item[1], "%s/two", root);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", root);
  return system(command);
}

static SnCode find(const char *name, char *path, SnError *err) {
  *err = (SnError){0};
  return sn_repository_find(&folders, name, SN_KIND_MODEL, path, 512, err);
}

static void test_names(void **state) {
  (void)state;
  static const char *const good[] = {"arm", "hand/left", "a.b", "A-1_z", "arm.xml"};
  static const char *const bad[] = {"",        "/etc/passwd", "../secret/key", "hand/../arm", "hand//left",  "hand/",
                                    ".hidden", "a/.b",        "a b",           "a\\b",        "h\xc3\xa4nd", "a\n",
                                    "~"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(sn_repository_is_name(good[i]));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (sn_repository_is_name(bad[i])) fail_msg("'%s' passes", bad[i]);
}

static void test_find(void **state) {
  (void)state;
  char path[512], expected[512];
  SnError err;
  assert_int_equal(find("arm", path, &err), SN_OK);
  snprintf(expected, sizeof expected, "%s/one/arm.xml", root);
  assert_string_equal(path, expected);
  assert_int_equal(find("arm.xml", path, &err), SN_OK);
  assert_string_equal(path, expected);
  assert_int_equal(find("leg", path, &err), SN_OK);
  assert_int_equal(find("hand/left", path, &err), SN_OK);
  assert_int_equal(find("nose", path, &err), SN_ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "no model 'nose' in "));
  assert_int_equal(find("notes.txt", path, &err), SN_ERR_NOT_FOUND);
  assert_int_equal(find("hand", path, &err), SN_ERR_NOT_FOUND);
  assert_int_equal(find("../secret/key", path, &err), SN_ERR_ARGUMENT);
}

// An error says where it was looked for, and what somebody may have meant.
static void test_not_found_says_where_and_what_is_near(void **state) {
  (void)state;
  char path[512], expected[1024];
  SnError err;
  SnConfigList three = folders;
  three.n = 3;
  snprintf(three.item[2], sizeof three.item[2], "far=%s/nowhere", root);
  static const struct {
    const char *name, *near;
  } cases[] = {{"leff", "; did you mean 'hand/left'?"},
               {"ARM2", "; did you mean 'arm'?"},
               {"leg2", "; did you mean 'leg'?"},
               {"hand/lefd", "; did you mean 'hand/left'?"},
               {"elbow/left", "; did you mean 'hand/left'?"},
               {"xyz", ""}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    err = (SnError){0};
    assert_int_equal(sn_repository_find(&three, cases[i].name, SN_KIND_MODEL, path, sizeof path, &err),
                     SN_ERR_NOT_FOUND);
    snprintf(expected, sizeof expected,
             "no model '%s' in %s/one, %s/two, far=%s/nowhere (cannot be read); `sinewctl models` lists all%s",
             cases[i].name, root, root, root, cases[i].near);
    assert_string_equal(err.text, expected);
  }
  // Tasks are few: where none is near, all are told.
  assert_int_equal(sn_repository_find(&folders, "xyz", SN_KIND_TASK, path, sizeof path, &err), SN_ERR_NOT_FOUND);
  snprintf(expected, sizeof expected,
           "no task 'xyz' in %s/one, %s/two; there are hand/balls, reach; `sinewctl tasks` lists all", root, root);
  assert_string_equal(err.text, expected);
  const SnConfigList none = {0};
  assert_int_equal(sn_repository_find(&none, "arm", SN_KIND_TASK, path, sizeof path, &err), SN_ERR_NOT_FOUND);
  assert_string_equal(err.text, "no task 'arm' in any folder: none is configured; `sinewctl tasks` lists all");
}

// A compiled model keeps its ending: it does not hide the XML of the same name, nor stands in for it.
static void test_compiled_models(void **state) {
  (void)state;
  char path[512], expected[512], stem[64];
  SnError err;
  assert_int_equal(find("leg.mjb", path, &err), SN_OK);
  snprintf(expected, sizeof expected, "%s/two/leg.mjb", root);
  assert_string_equal(path, expected);
  assert_int_equal(find("leg", path, &err), SN_OK);
  snprintf(expected, sizeof expected, "%s/two/leg.xml", root);
  assert_string_equal(path, expected);
  assert_int_equal(find("foot", path, &err), SN_ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "; did you mean 'foot.mjb'?"));
  sn_repository_stem("leg.mjb", SN_KIND_MODEL, stem, sizeof stem);
  assert_string_equal(stem, "leg.mjb");
  sn_repository_stem("leg.xml", SN_KIND_MODEL, stem, sizeof stem);
  assert_string_equal(stem, "leg");
}

static void test_links_do_not_lead_out(void **state) {
  (void)state;
  char path[512];
  SnError err;
  assert_int_equal(find("escape", path, &err), SN_ERR_NOT_FOUND);
  assert_int_equal(find("sidestep", path, &err), SN_ERR_NOT_FOUND);
}

static void test_list(void **state) {
  (void)state;
  SnNames names = sn_repository_list(&folders, SN_KIND_MODEL);
  static const char *const expected[] = {"arm", "escape", "foot.mjb", "hand/left", "leg", "leg.mjb", "sidestep"};
  assert_int_equal(names.n, 7);
  for (int i = 0; i < 7; i++) assert_string_equal(names.name[i], expected[i]);
  sn_names_free(&names);
}

static void test_prefix(void **state) {
  (void)state;
  SnConfigList named = {.n = 2};
  char path[512], expected[512];
  SnError err = {0};
  snprintf(named.item[0], sizeof named.item[0], "%s/two", root);
  snprintf(named.item[1], sizeof named.item[1], "first=%s/one", root);
  snprintf(expected, sizeof expected, "%s/one/arm.xml", root);
  assert_int_equal(sn_repository_find(&named, "first/arm", SN_KIND_MODEL, path, sizeof path, &err), SN_OK);
  assert_string_equal(path, expected);
  assert_int_equal(sn_repository_find(&named, "hand/left", SN_KIND_MODEL, path, sizeof path, &err), SN_ERR_NOT_FOUND);
  SnNames names = sn_repository_list(&named, SN_KIND_MODEL);
  static const char *const all[] = {"arm",      "first/arm", "first/escape", "first/hand/left", "first/sidestep",
                                    "foot.mjb", "leg",       "leg.mjb"};
  assert_int_equal(names.n, 8);
  for (int i = 0; i < 8; i++) assert_string_equal(names.name[i], all[i]);
  sn_names_free(&names);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_find),
      cmocka_unit_test(test_links_do_not_lead_out),
      cmocka_unit_test(test_list),
      cmocka_unit_test(test_not_found_says_where_and_what_is_near),
      cmocka_unit_test(test_compiled_models),
      cmocka_unit_test(test_prefix),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}

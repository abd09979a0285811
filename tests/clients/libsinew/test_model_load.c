// Models from files and from memory through the public functions: the three forms make the same model, images keep
// every bit, and whatever is wrong is told.
#include "clients/include/sinew.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mujoco/mujoco.h>
// cmocka needs what stands above.
#include <cmocka.h>

static char folder[200];  // of this run, removed at the end

static const char *in_folder(const char *name) {
  static char path[16][400];
  static int k = 0;
  char *p = path[k++ % 16];
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  return p;
}

static const char *write_bytes(const char *name, const void *bytes, size_t size) {
  const char *path = in_folder(name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, size, f), size);
  fclose(f);
  return path;
}

static const char *write_text(const char *name, const char *text) { return write_bytes(name, text, strlen(text)); }

typedef struct Bytes {
  size_t size;
  char data[1 << 18];
} Bytes;

static void read_all(const char *path, Bytes *b) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  b->size = fread(b->data, 1, sizeof b->data, f);
  assert_true(feof(f));
  fclose(f);
}

static const char ball[] =
    "<mujoco model='ball'><include file='parts/floor.xml'/><worldbody><body name='ball'><freejoint/>"
    "<geom size='.1'/></body></worldbody></mujoco>";

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/sinew-test-XXXXXX");
  if (!mkdtemp(folder) || mkdir(in_folder("parts"), 0700) != 0) return -1;
  setenv("XDG_CACHE_HOME", folder, 1);
  write_text("parts/floor.xml", "<mujoco><worldbody><geom type='plane' size='1 1 .1'/></worldbody></mujoco>");
  write_text("ball.xml", ball);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static SinewModel *loaded(const char *path) {
  SinewError err;
  SinewModel *model = sinew_model_load(path, &err);
  if (!model) fail_msg("%s: %s", path, err.text);
  assert_true(err.status == SINEW_OK && err.text[0] == 0);
  return model;
}

static SinewModel *read_in(const void *bytes, size_t size, const char *from) {
  SinewError err;
  SinewModel *model = sinew_model_read(bytes, size, from, &err);
  if (!model) fail_msg("%s", err.text);
  assert_true(err.status == SINEW_OK && err.text[0] == 0);
  return model;
}

// Saves a model, frees it and compares its image with the expected one.
static void assert_image(SinewModel *model, const Bytes *expected) {
  static Bytes image;
  SinewError err;
  assert_int_equal(sinew_model_save(model, in_folder("saved"), &err), SINEW_OK);
  assert_int_equal(err.status, SINEW_OK);
  sinew_model_free(model);
  read_all(in_folder("saved"), &image);
  assert_int_equal(image.size, expected->size);
  assert_memory_equal(image.data, expected->data, image.size);
}

static void three_forms_from_files_and_memory(void **state) {
  (void)state;
  static Bytes image, bytes;
  char text[500], why[1000] = "";
  const char *xml = in_folder("ball.xml"), *mjb = in_folder("ball.mjb"), *saved = in_folder("image.anything");
  SinewModel *model = loaded(xml);
  assert_int_equal(sinew_model_sizes(model)->ngeom, 2);
  assert_int_equal(sinew_model_find(model, SINEW_BODY, "ball"), 1);
  assert_int_equal(sinew_model_save(model, saved, NULL), SINEW_OK);
  sinew_model_free(model);
  read_all(saved, &image);
  // a second time, from the cache; the image, and what it says of itself
  assert_image(loaded(xml), &image);
  assert_image(loaded(saved), &image);
  assert_image(read_in(image.data, image.size, NULL), &image);
  mjModel *mj = mj_loadXML(xml, NULL, why, sizeof why);
  if (!mj) fail_msg("%s", why);
  mj_saveModel(mj, mjb, NULL, 0);
  mj_deleteModel(mj);
  assert_image(loaded(mjb), &image);
  read_all(mjb, &bytes);
  assert_image(read_in(bytes.data, bytes.size, NULL), &image);
  // XML, with what may stand before it; its include lies in the folder, or in the current one
  static const char *const before[] = {"", "\xEF\xBB\xBF", " \n\t", "<!-- a ball -->\n", "<?xml version='1.0'?>"};
  for (size_t i = 0; i < sizeof before / sizeof *before; ++i) {
    snprintf(text, sizeof text, "%s%s", before[i], ball);
    assert_image(read_in(text, strlen(text), folder), &image);
  }
  assert_int_equal(chdir(folder), 0);
  assert_image(read_in(ball, strlen(ball), NULL), &image);
  assert_int_equal(chdir("/"), 0);
}

// A thread that loads what the others load, too, from a file and from memory, while nothing of it is kept yet.
static void *load_both(void *path) {
  SinewModel *one = sinew_model_load(path, NULL), *two = sinew_model_read(ball, strlen(ball), folder, NULL);
  const bool same = one && two && sinew_model_sizes(one)->ngeom == sinew_model_sizes(two)->ngeom;
  sinew_model_free(one);
  sinew_model_free(two);
  return same ? path : NULL;
}

static void threads_load_at_once(void **state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t thread[THREADS];
  const char *fresh = in_folder("fresh");
  char path[400];
  assert_int_equal(mkdir(fresh, 0700), 0);
  setenv("XDG_CACHE_HOME", fresh, 1);
  snprintf(path, sizeof path, "%s", in_folder("ball.xml"));
  for (int i = 0; i < THREADS; ++i) assert_int_equal(pthread_create(&thread[i], NULL, load_both, path), 0);
  for (int i = 0; i < THREADS; ++i) {
    void *result;
    assert_int_equal(pthread_join(thread[i], &result), 0);
    assert_ptr_equal(result, path);
  }
  setenv("XDG_CACHE_HOME", folder, 1);
}

static void assert_refused(const SinewModel *model, const SinewError *err, SinewStatus status, const char *part) {
  if (model) fail_msg("loaded, where \"%s\" was expected", part);
  print_message("%.200s\n", err->text);
  if (err->status != status || !strstr(err->text, part))
    fail_msg("expected \"%s\" (%s), got %s: %s", part, sinew_status_name(status), sinew_status_name(err->status),
             err->text);
}

static void refused_file(const char *path, SinewStatus status, const char *part) {
  SinewError err;
  assert_refused(sinew_model_load(path, &err), &err, status, part);
  assert_null(sinew_model_load(path, NULL));
}

static void refused_bytes(const void *bytes, size_t size, const char *from, SinewStatus status, const char *part) {
  SinewError err;
  assert_refused(sinew_model_read(bytes, size, from, &err), &err, status, part);
}

static void refused_text(const char *text, SinewStatus status, const char *part) {
  refused_bytes(text, strlen(text), NULL, status, part);
}

static void bad_files_are_told(void **state) {
  (void)state;
  refused_file(NULL, SINEW_ERR_ARGUMENT, "sinew_model_load: path is NULL");
  refused_file("", SINEW_ERR_NOT_FOUND, "'': No such file");
  refused_file(in_folder("nothing.xml"), SINEW_ERR_NOT_FOUND, "nothing.xml': No such file");
  refused_file(folder, SINEW_ERR_IO, "not a file that can be read");
  assert_int_equal(mkfifo(in_folder("pipe.xml"), 0600), 0);
  refused_file(in_folder("pipe.xml"), SINEW_ERR_IO, "not a file that can be read");
  refused_file(write_text("empty.xml", ""), SINEW_ERR_FORMAT, "empty.xml: MuJoCo cannot load it");
  refused_file(write_text("words.xml", "hello"), SINEW_ERR_FORMAT, "words.xml: MuJoCo cannot load it");
  refused_file(write_text("image.xml", "SINEWMDL"), SINEW_ERR_FORMAT, "model image: 8 bytes");
  refused_file(write_text("refused.xml", "<mujoco><option integrator='discrete' solver='PGS'/></mujoco>"),
               SINEW_ERR_UNSUPPORTED, "option 'solver'");
}

static void bad_bytes_are_told(void **state) {
  (void)state;
  static char deep[1 << 20];
  char noise[300];
  refused_bytes(NULL, 10, NULL, SINEW_ERR_ARGUMENT, "sinew_model_read: bytes is NULL");
  refused_bytes("<", 0, NULL, SINEW_ERR_ARGUMENT, "sinew_model_read: size is 0");
  refused_bytes("<", (size_t)1 << 31, NULL, SINEW_ERR_LIMIT, "2147483648 bytes; the limit is 1073741824");
  refused_bytes("<mujoco/>", SIZE_MAX, NULL, SINEW_ERR_LIMIT, "the limit is 1073741824");
  refused_bytes("<mujoco/>", 9, in_folder("nowhere"), SINEW_ERR_IO, "nowhere: No such file");
  refused_text("hello", SINEW_ERR_FORMAT, "model in memory: MuJoCo cannot load it");
  refused_text("<mujoco><worldbody>", SINEW_ERR_FORMAT, "model in memory: MuJoCo cannot load it: XML parse error");
  refused_text("<html/>", SINEW_ERR_FORMAT, "model in memory: MuJoCo cannot load it");
  refused_text("<mujoco><include file='nothing.xml'/></mujoco>", SINEW_ERR_FORMAT, "nothing.xml");
  refused_text("<mujoco><option timestep='0'/></mujoco>", SINEW_ERR_FORMAT, "option timestep is 0");
  refused_text("<mujoco><option integrator='discrete'><flag ipc='enable'/></option></mujoco>", SINEW_ERR_UNSUPPORTED,
               "option 'ipc'");
  for (size_t i = 0; i < sizeof noise; ++i) noise[i] = (char)(i * 197 + 11);
  refused_bytes(noise, sizeof noise, NULL, SINEW_ERR_FORMAT, "model in memory: MuJoCo cannot load it");
  // elements within elements, and entities of entities, of which MuJoCo's parser knows none
  for (size_t i = 0; i + 6 < sizeof deep; i += 6) memcpy(deep + i, "<body>", 6);
  refused_text(deep, SINEW_ERR_FORMAT, "model in memory");
  refused_text(
      "<!DOCTYPE m [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;'>]><mujoco model='&b;'><bad/></mujoco>",
      SINEW_ERR_FORMAT, "model in memory");
  // a compiled model of which a half is missing, or with the sizes of another
  static const int32_t head[64] = {54321, 8, 98, 1 << 30, 1 << 30, -1};
  refused_bytes(head, sizeof head, NULL, SINEW_ERR_FORMAT, "model in memory: MuJoCo cannot load it");
}

// Whatever is cut off or changed in an image, it is refused, and nothing outside it is read (for sanitizers to see).
static void damaged_images_are_told(void **state) {
  (void)state;
  static Bytes image;
  SinewModel *model = loaded(in_folder("ball.xml"));
  assert_int_equal(sinew_model_save(model, in_folder("image"), NULL), SINEW_OK);
  sinew_model_free(model);
  read_all(in_folder("image"), &image);
  for (size_t size = 8; size < image.size; size += size < 100 ? 1 : 97) {
    char *part = malloc(size);
    memcpy(part, image.data, size);
    SinewError err;
    assert_null(sinew_model_read(part, size, NULL, &err));
    assert_int_equal(err.status, SINEW_ERR_FORMAT);
    free(part);
  }
  for (size_t at = 8; at < image.size; at += 61) {
    if (at >= 40 && at < 64) continue;  // reserved
    image.data[at] ^= 4;
    assert_null(sinew_model_read(image.data, image.size, NULL, NULL));
    image.data[at] ^= 4;
  }
  refused_bytes(image.data, image.size - 1, NULL, SINEW_ERR_FORMAT, "its header says");
}

static void saving_can_fail(void **state) {
  (void)state;
  SinewError err;
  SinewModel *model = loaded(in_folder("ball.xml"));
  assert_int_equal(sinew_model_save(NULL, in_folder("x"), &err), SINEW_ERR_ARGUMENT);
  assert_string_equal(err.text, "sinew_model_save: model is NULL");
  assert_int_equal(sinew_model_save(model, NULL, &err), SINEW_ERR_ARGUMENT);
  assert_int_equal(sinew_model_save(model, in_folder("nowhere/x"), &err), SINEW_ERR_IO);
  assert_non_null(strstr(err.text, "nowhere/x: could not write the image: No such file"));
  assert_int_equal(sinew_model_save(model, in_folder("nowhere/x"), NULL), SINEW_ERR_IO);
  sinew_model_free(model);
}

// Without a place for the cache nothing but images can be read.
static void without_a_cache_images_are_read(void **state) {
  (void)state;
  static Bytes image;
  SinewModel *model = loaded(in_folder("ball.xml"));
  assert_int_equal(sinew_model_save(model, in_folder("image"), NULL), SINEW_OK);
  sinew_model_free(model);
  read_all(in_folder("image"), &image);
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  refused_file(in_folder("ball.xml"), SINEW_ERR_IO, "/proc/nowhere");
  assert_image(loaded(in_folder("image")), &image);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  refused_text("<mujoco/>", SINEW_ERR_ARGUMENT, "neither is XDG_CACHE_HOME nor HOME");
  assert_image(read_in(image.data, image.size, NULL), &image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_forms_from_files_and_memory),
      cmocka_unit_test(threads_load_at_once),
      cmocka_unit_test(bad_files_are_told),
      cmocka_unit_test(bad_bytes_are_told),
      cmocka_unit_test(damaged_images_are_told),
      cmocka_unit_test(saving_can_fail),
      cmocka_unit_test(without_a_cache_images_are_read),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

// Flat images: what goes in comes out; and images that were damaged on purpose, checksum and all, are refused or can be
// stepped without touching memory that is not theirs (run it in the asan preset). tests/fuzz goes on from there.
#include "physics/model/model_file.h"
#include "physics/step/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/untrusted_model.h"
#include "tests/support/small_models.h"
#include "tests/support/oracle.h"

enum { MAX_WORLD = 64 << 20 };

static int mutations = 1500;  // of each model; the program's argument asks for more

// The small models, one of height fields, and one of rays.
enum { MODELS = SN_SMALL_MODELS + 2 };

static const char *small_model(int i) {
  if (i < SN_SMALL_MODELS) return sn_small_model(i);
  return i == SN_SMALL_MODELS ? sn_terrain_model() : sn_ray_model();
}

// Image of a small model; the caller frees it.
static unsigned char *model_image(int i, size_t *size) {
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o, small_model(i));
  unsigned char *image = sn_model_write(o.m, size, &err);
  if (!image) fail_msg("%s", err.text);
  sn_oracle_free(&o);
  return image;
}

static void an_image_holds_the_model(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    SnError err = {0};
    SnOracle o;
    sn_oracle_load_string(&o, small_model(i));
    size_t size = 0, again = 0;
    unsigned char *image = sn_model_write(o.m, &size, &err);
    assert_non_null(image);
    SnModel *m = sn_model_read(image, size, &err);
    if (!m) fail_msg("%s", err.text);
    void *second = sn_model_write(m, &again, &err);
    assert_int_equal(size, again);
    assert_memory_equal(image, second, size);

    // the same numbers from a step, to the last bit
    void *memory = aligned_alloc(64, sn_world_size(m));
    SnWorld w;
    sn_world_init(m, &w, memory);
    sn_world_reset(o.m, &o.w);
    for (int k = 0; k < 10; ++k) {
      sn_step(m, &w, &o.lane);
      sn_step(o.m, &o.w, &o.lane);
    }
    assert_memory_equal(w.qpos, o.w.qpos, sizeof(sn_real) * (size_t)m->nq);
    assert_memory_equal(w.qvel, o.w.qvel, sizeof(sn_real) * (size_t)m->nv);
    assert_true(sn_untrusted_model_run(m, MAX_WORLD) > 0);
    free(memory);
    free(second);
    free(image);
    sn_model_free(m);
    sn_oracle_free(&o);
  }
}

static void files_are_written_whole(void **state) {
  (void)state;
  SnError err = {0};
  SnOracle o;
  sn_oracle_load_string(&o, sn_small_model(0));
  char path[] = "/tmp/sinew-model-XXXXXX";
  close(mkstemp(path));
  assert_int_equal(sn_model_save_file(o.m, path, &err), SN_OK);
  SnModel *m = sn_model_load_file(path, &err);
  assert_non_null(m);
  assert_int_equal(m->nwrap, o.m->nwrap);
  sn_model_free(m);
  unlink(path);
  assert_null(sn_model_load_file(path, &err));
  assert_int_equal(err.code, SN_ERR_IO);
  assert_null(sn_model_load_file("/dev/zero", &err));
  assert_int_equal(err.code, SN_ERR_FORMAT);
  assert_int_equal(sn_model_save_file(o.m, "/proc/nothere/model", &err), SN_ERR_IO);
  assert_int_equal(sn_model_save_file(o.m, "/tmp", &err), SN_ERR_IO);
  // nothing but a file is replaced
  struct stat st;
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(sn_model_save_file(o.m, path, &err), SN_ERR_IO);
  assert_true(stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
  unlink(path);
  sn_oracle_free(&o);
}

static void refused(const unsigned char *image, size_t size, SnCode code, const char *text) {
  SnError err = {0};
  SnModel *m = sn_model_read(image, size, &err);
  assert_null(m);
  if (err.code != code || !strstr(err.text, text))
    fail_msg("expected \"%s\", got %s: %s", text, sn_code_text(err.code), err.text);
}

static void damage_is_named(void **state) {
  (void)state;
  size_t size = 0;
  unsigned char *image = model_image(0, &size);
  SnModelHeader *h = (SnModelHeader *)(void *)image, before = *h;
  refused(image, 0, SN_ERR_FORMAT, "0 bytes, its header alone has 64");
  refused(image, size - 8, SN_ERR_FORMAT, "its header says");
  h->magic[0] ^= 1;
  refused(image, size, SN_ERR_FORMAT, "not made by sinew-import");
  *h = before;
  h->version = 99;
  refused(image, size, SN_ERR_FORMAT, "version 99, this program reads 5");
  *h = before;
  h->byte_order = 0x04030201;
  refused(image, size, SN_ERR_FORMAT, "another byte order");
  *h = before;
  h->schema ^= 1;
  refused(image, size, SN_ERR_FORMAT, "another build");
  *h = before;
  image[size / 2] ^= 1;
  refused(image, size, SN_ERR_FORMAT, "the checksum is wrong");
  image[size / 2] ^= 1;

  // sizes: nq is the first, nbody the seventh
  int32_t *sizes = (int32_t *)(void *)(image + sizeof *h);
  sizes[0] = -1;
  sn_model_seal(image, size);
  refused(image, size, SN_ERR_LIMIT, "nq is -1; allowed: 0 to");
  sizes[0] = 1000000000;
  sn_model_seal(image, size);
  refused(image, size, SN_ERR_LIMIT, "nq is 1000000000; allowed: 0 to");
  sizes[0] = 9;
  sn_model_seal(image, size);
  refused(image, size, SN_ERR_FORMAT, "bytes, its sizes make");
  free(image);
}

// Reads the image of the terrain with other numbers; returns what is said against it.
static void terrain_refused(SnModel *m, const char *text) {
  SnError err = {0};
  if (sn_model_check(m, &err) == SN_OK || !strstr(err.text, text))
    fail_msg("expected \"%s\", got \"%s\"", text, err.text);
}

static void height_fields_are_checked(void **state) {
  (void)state;
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o, sn_terrain_model());
  SnModel *m = o.m;
  assert_int_equal(m->nhfield, 2);
  assert_int_equal(m->nhfielddata, 30);  // those of hills that nothing touches are left out
  assert_int_equal(m->hfield_nrow[0], 0);
  assert_int_equal(sn_model_check(m, &err), SN_OK);
  m->hfield_nrow[1] = 6;
  terrain_refused(m, "hfield_adr[1] is 0: reaches past the last height");
  m->hfield_nrow[1] = 0;
  terrain_refused(m, "geom_type[0] is 1: this shape cannot collide");
  m->hfield_nrow[1] = 5;
  m->hfield_size[6] = 0;
  terrain_refused(m, "hfield_size[6] is 0: must be above 0");
  m->hfield_size[6] = SN_R(0.15);
  m->hfield_data[7] = -1;
  terrain_refused(m, "hfield_data[7] is -1: lies below the base");
  m->hfield_data[7] = 1;
  m->geom_dataid[0] = 2;
  terrain_refused(m, "geom_dataid[0] is 2; allowed: -1 to 1");
  m->geom_dataid[0] = -1;
  terrain_refused(m, "geom_type[0] is 1: this shape cannot collide");
  sn_oracle_free(&o);
}

// What rays alone can meet stays in the model, and is checked.
static void triangles_are_checked(void **state) {
  (void)state;
  SnOracle o;
  SnError err = {0};
  sn_oracle_load_string(&o, sn_ray_model());
  SnModel *m = o.m;
  assert_int_equal(m->nmeshface, 8);
  assert_int_equal(m->nhfielddata, 12);
  assert_int_equal(sn_model_check(m, &err), SN_OK);
  m->mesh_facenum[0] = 9;
  terrain_refused(m, "mesh_facenum[0] is 9; allowed: 0 to 8");
  m->mesh_facenum[0] = 8;
  m->mesh_faceadr[0] = 1;
  terrain_refused(m, "mesh_facenum[0] is 8: reaches past the last triangle");
  m->mesh_faceadr[0] = 0;
  m->mesh_face[5] = 6;
  terrain_refused(m, "mesh_face[5] is 6; allowed: 0 to 5");
  m->mesh_face[5] = 0;
  m->mesh_quat[0] = 2;
  terrain_refused(m, "mesh_quat[0] is 2: must begin a unit quaternion");
  sn_oracle_free(&o);
}

static uint64_t rng;

static uint32_t next(void) {
  rng = rng * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(rng >> 33);
}

// One to four changes of one number each: ints that are off by one, negative, huge or another's; reals that are no
// numbers, huge, tiny or negative.
static void mutate(unsigned char *image, size_t size) {
  for (uint32_t k = 0, n = 1 + next() % 4; k < n; ++k) {
    if (next() % 3) {
      static const int32_t special[] = {-1, 0, 1, 2, 3, -2, 7, 100, 65536, INT32_MAX, INT32_MIN, 0x40000000};
      const size_t at = sizeof(SnModelHeader) + 4 * (next() % ((size - sizeof(SnModelHeader)) / 4));
      int32_t x;
      memcpy(&x, image + at, 4);
      const uint32_t how = next() % 16;
      x = how < 12    ? special[how]
          : how == 12 ? (int32_t)((uint32_t)x + 1)
          : how == 13 ? (int32_t)((uint32_t)x - 1)
          : how == 14 ? (int32_t)((uint32_t)x ^ (1u << next() % 32))
                      : (int32_t)(next() % 64);
      memcpy(image + at, &x, 4);
    } else {
      static const double special[] = {0, -1, 1, 0.5, 1e-300, 1e300, -1e300, 1e10, -1e10, 1e-9};
      const size_t at = sizeof(SnModelHeader) + 8 * (next() % ((size - sizeof(SnModelHeader)) / 8));
      const uint32_t how = next() % 13;
      double x = how < 10    ? special[how]
                 : how == 10 ? (double)NAN
                 : how == 11 ? (double)INFINITY
                             : (double)next() / 1e6;
      memcpy(image + at, &x, 8);
    }
  }
}

static void damaged_images_are_refused_or_harmless(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; ++i) {
    size_t size = 0;
    unsigned char *image = model_image(i, &size), *copy = malloc(size);
    int accepted = 0, stepped = 0;
    for (int k = 0; k < mutations; ++k) {
      rng = (uint64_t)(1000003 * i + k);
      next();
      memcpy(copy, image, size);
      mutate(copy, size);
      size_t length = size;
      if (next() % 64 == 0) length = next() % size;
      sn_model_seal(copy, length);
      SnError err = {0};
      SnModel *m = sn_model_read(copy, length, &err);
      if (!m) {
        assert_true(err.code != SN_OK && err.text[0]);
        continue;
      }
      ++accepted;
      stepped += sn_untrusted_model_run(m, MAX_WORLD) > 0;
      sn_model_free(m);
    }
    print_message("small model %d, seeds %d to %d: %d of %d accepted, %d stepped\n", i, 1000003 * i,
                  1000003 * i + mutations - 1, accepted, mutations, stepped);
    assert_true(accepted > 0 && accepted < mutations);
    free(copy);
    free(image);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) mutations = atoi(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_image_holds_the_model),  cmocka_unit_test(files_are_written_whole),
      cmocka_unit_test(damage_is_named),           cmocka_unit_test(damaged_images_are_refused_or_harmless),
      cmocka_unit_test(height_fields_are_checked), cmocka_unit_test(triangles_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// Models through a child process: what is cached and when it is imported again, models that MuJoCo has compiled, and
// that whatever a hostile file does to the importer becomes a clear error here.
#include "physics/import/model_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#include "physics/base/clock.h"
#include "physics/import/child_private.h"
#include "physics/import/model_inputs_private.h"
#include "physics/model/model_file.h"
#include "tests/support/oracle.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static char folder[200];  // of this run, removed at the end

static const char *in_folder(const char *name) {
  static char path[32][400];
  static int k = 0;
  char *p = path[k++ % 32];
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  return p;
}

static const char *write_file(const char *name, const char *text) {
  const char *path = in_folder(name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  return path;
}

static int make_tmp_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/sinew-test-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static void remove_tree(const char *path) {
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));) {
    char child[1000];
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    snprintf(child, sizeof child, "%s/%s", path, e->d_name);
    if (unlink(child) != 0) remove_tree(child);
  }
  if (d) closedir(d);
  rmdir(path);
}

static int remove_tmp_folder(void **state) {
  (void)state;
  remove_tree(folder);
  return 0;
}

// A cache whose importer is a shell script (NULL: the real one).
static SnModelCache *open_cache(const char *script, double seconds) {
  SnModelCacheDef def = sn_default_model_cache_def();
  SnError err = {0};
  def.folder = in_folder("cache");
  def.seconds = seconds;
  def.bytes = (size_t)1 << 30;
  if (script) {
    char text[1000];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    def.importer = write_file("importer", text);
    chmod(def.importer, 0700);
  }
  SnModelCache *c = sn_model_cache_open(&def, &err);
  if (!c) fail_msg("%s", err.text);
  return c;
}

// The model of a file, without its inputs.
static SnModel *load(SnModelCache *c, const char *file, SnError *err) {
  SnModelInputs *inputs;
  SnModel *m = sn_model_cache_load(c, file, &inputs, err);
  if (!m) assert_null(inputs);
  sn_model_inputs_free(inputs);
  return m;
}

// The error of loading `file`.
static SnError load_error(SnModelCache *c, const char *file) {
  SnError err = {0};
  SnModel *m = load(c, file, &err);
  if (m) fail_msg("%s was loaded", file);
  print_message("%.300s\n", err.text);
  return err;
}

static void assert_text(const SnError *err, SnCode code, const char *part) {
  if (err->code != code || !strstr(err->text, part))
    fail_msg("expected %s with \"%s\", got %s: %s", sn_code_text(code), part, sn_code_text(err->code), err->text);
}

static const char ball[] =
    "<mujoco model='ball'><include file='part.xml'/><worldbody><body name='b'><freejoint/><geom "
    "size='.1'/></body></worldbody></mujoco>";

// Number of entries of a folder that end in `end`.
static int count_files(const char *path, const char *end) {
  DIR *d = opendir(path);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));) {
    const size_t a = strlen(e->d_name), b = strlen(end);
    n += a >= b && !strcmp(e->d_name + a - b, end);
  }
  if (d) closedir(d);
  return n;
}

static void a_model_is_imported_once_and_again_when_a_part_changes(void **state) {
  (void)state;
  SnError err = {0};
  write_file("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  const char *file = write_file("ball.xml", ball);
  SnModelCache *c = open_cache(NULL, 60);
  SnModel *m = load(c, file, &err);
  if (!m) fail_msg("%s", err.text);
  assert_int_equal(m->nv, 6);
  assert_string_equal(sn_model_name(m, SN_NAME_BODY, 1), "b");
  assert_true(m->opt.timestep == (sn_real)0.003);
  sn_model_free(m);
  assert_int_equal(count_files(in_folder("cache"), ".sinew"), 1);
  assert_int_equal(count_files(in_folder("cache"), ".files"), 1);
  sn_model_cache_close(c);

  // from the cache: an importer that fails is never called
  c = open_cache("exit 3", 60);
  m = load(c, file, &err);
  assert_non_null(m);
  sn_model_free(m);
  // an included file changes: the importer is called
  write_file("part.xml", "<mujoco><option timestep='0.004'/></mujoco>");
  assert_null(load(c, file, &err));
  sn_model_cache_close(c);
  c = open_cache(NULL, 60);
  m = load(c, file, &err);
  assert_non_null(m);
  assert_true(m->opt.timestep == (sn_real)0.004);
  sn_model_free(m);
  sn_model_cache_close(c);
}

// Writes a file a little after what was written before, so that its time of change is another.
static const char *write_later(const char *name, const char *text) {
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  return write_file(name, text);
}

// Whether its files have changed is told from their times; those that are younger than two seconds are always read
// again.
static void inputs_tell_changes(void **state) {
  (void)state;
  SnError err = {0};
  write_later("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  write_later("ball.xml", ball);
  SnModelCache *c = open_cache(NULL, 60);
  SnModelInputs *first, *again, *edited;
  sn_model_free(sn_model_cache_load(c, in_folder("ball.xml"), &first, &err));
  sn_model_free(sn_model_cache_load(c, in_folder("ball.xml"), &again, &err));
  assert_true(first && again && first->n == 2 && !first->torn && first->fresh && !sn_model_inputs_hold(first));
  assert_true(first != again && sn_model_inputs_equal(first, again));
  // as if they had been looked at two seconds later
  first->fresh = again->fresh = false;
  assert_true(sn_model_inputs_hold(first) && sn_model_inputs_hold(again));
  assert_false(sn_model_inputs_hold(NULL));
  // the same contents written anew: read again, found equal
  write_later("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  assert_false(sn_model_inputs_hold(first));
  sn_model_free(sn_model_cache_load(c, in_folder("ball.xml"), &edited, &err));
  assert_true(edited && sn_model_inputs_equal(first, edited));
  sn_model_inputs_free(edited);
  // an included file is edited
  write_later("part.xml", "<mujoco><option timestep='0.004'/></mujoco>");
  sn_model_free(sn_model_cache_load(c, in_folder("ball.xml"), &edited, &err));
  assert_true(edited && !sn_model_inputs_equal(first, edited));
  edited->fresh = false;
  assert_true(sn_model_inputs_hold(edited));
  unlink(in_folder("part.xml"));
  assert_false(sn_model_inputs_hold(edited));
  sn_model_inputs_free(first);
  sn_model_inputs_free(again);
  sn_model_inputs_free(edited);
  sn_model_cache_close(c);
}

// A file that is edited while it is imported: nobody knows of which contents the model is, so nothing is kept.
static void a_change_while_importing_is_noticed(void **state) {
  (void)state;
  SnError err = {0};
  write_later("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  write_later("ball.xml", ball);
  char script[1000];
  snprintf(script, sizeof script, "%s/sinew-import \"$@\" && sleep 0.05 && touch %s", SN_TEST_BINARY_DIR,
           in_folder("part.xml"));
  const int before = count_files(in_folder("cache"), ".files");
  SnModelCache *c = open_cache(script, 60);
  SnModelInputs *inputs;
  write_later("torn.xml", ball);
  SnModel *m = sn_model_cache_load(c, in_folder("torn.xml"), &inputs, &err);
  if (!m) fail_msg("%s", err.text);
  assert_true(inputs && inputs->torn && !sn_model_inputs_hold(inputs) && !sn_model_inputs_equal(inputs, inputs));
  assert_int_equal(count_files(in_folder("cache"), ".files"), before);
  sn_model_inputs_free(inputs);
  sn_model_free(m);
  sn_model_cache_close(c);
}

// A model that MuJoCo has compiled and saved is the one that it was compiled from, bit for bit.
static void a_compiled_model_is_the_one_of_its_xml(void **state) {
  (void)state;
  SnError err = {0};
  write_file("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  const char *xml = write_file("ball.xml", ball), *mjb = in_folder("ball.mjb");
  mjModel *mj = sn_oracle_read_file(xml, &err);
  if (!mj) fail_msg("%s", err.text);
  mj_saveModel(mj, mjb, NULL, 0);
  mj_deleteModel(mj);
  SnModelCache *c = open_cache(NULL, 60);
  SnModelInputs *inputs;
  SnModel *a = load(c, xml, &err), *b = sn_model_cache_load(c, mjb, &inputs, &err);
  if (!a || !b) fail_msg("%s", err.text);
  assert_true(inputs->n == 1 && strcmp(inputs->file[0].path, mjb) == 0);
  assert_true(b->nv == 6 && b->opt.timestep == (sn_real)0.003);
  size_t na, nb;
  void *one = sn_model_write(a, &na, &err), *two = sn_model_write(b, &nb, &err);
  assert_true(na == nb && memcmp(one, two, na) == 0);
  free(one);
  free(two);
  sn_model_inputs_free(inputs);
  sn_model_free(a);
  sn_model_free(b);
  // what is no such file, or half of one, is refused with MuJoCo's own words, if it has some
  SnError no = load_error(c, write_file("text.mjb", "hello"));
  assert_text(&no, SN_ERR_FORMAT, "text.mjb: MuJoCo cannot load it: Model file has an incomplete header");
  assert_int_equal(truncate(mjb, 4000), 0);
  no = load_error(c, mjb);
  assert_text(&no, SN_ERR_FORMAT, "ball.mjb: MuJoCo cannot load it: Truncated model file");
  no = load_error(c, write_file("empty.mjb", ""));
  assert_text(&no, SN_ERR_FORMAT, "empty.mjb: MuJoCo cannot load it: it says no reason");
  sn_model_cache_close(c);
}

// An image has numbers as its importer has rounded them: programs in single precision do not share those of others.
static void precisions_have_entries_of_their_own(void **state) {
  (void)state;
  SnModelCache *c = open_cache(NULL, 60);
  SnError err = {0};
  const char *file = write_file("rounded.xml", ball);
  char path[PATH_MAX], entry[PATH_MAX];
  assert_non_null(realpath(file, path));
  snprintf(entry, sizeof entry, "%s/%016" PRIx64 ".sinew", in_folder("cache"),
           (uint64_t)XXH3_64bits(path, strlen(path)));
  sn_model_free(load(c, path, &err));
  assert_int_equal(access(entry, F_OK) == 0, sizeof(sn_real) == sizeof(double));
  sn_model_cache_close(c);
}

static void a_damaged_entry_is_imported_again(void **state) {
  (void)state;
  SnError err = {0};
  write_file("part.xml", "<mujoco><option/></mujoco>");
  const char *file = write_file("ball.xml", ball);
  SnModelCache *c = open_cache(NULL, 60);
  sn_model_free(load(c, file, &err));
  DIR *d = opendir(in_folder("cache"));
  for (struct dirent *e; (e = readdir(d));) {
    if (!strstr(e->d_name, ".sinew")) continue;
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", in_folder("cache"), e->d_name);
    FILE *f = fopen(path, "r+");
    fseek(f, 200, SEEK_SET);
    fputs("damaged", f);
    fclose(f);
  }
  closedir(d);
  SnModel *m = load(c, file, &err);
  if (!m) fail_msg("%s", err.text);
  sn_model_free(m);
  sn_model_cache_close(c);
}

static void bad_files_give_the_importers_text(void **state) {
  (void)state;
  SnModelCache *c = open_cache(NULL, 60);
  SnError err = load_error(c, in_folder("nothere.xml"));
  assert_text(&err, SN_ERR_IO, "nothere.xml: No such file");
  err = load_error(c, write_file("wrong.xml", "<mujoco><worldbody><bdy/></worldbody></mujoco>"));
  assert_text(&err, SN_ERR_FORMAT, "Element 'bdy', line 1");
  err = load_error(c, write_file("text.xml", "hello"));
  assert_text(&err, SN_ERR_FORMAT, "MuJoCo cannot load it");
  err = load_error(c, write_file("mesh.xml", "<mujoco><asset><mesh file='nothere.stl'/></asset></mujoco>"));
  assert_text(&err, SN_ERR_FORMAT, "nothere.stl");
  err = load_error(c, write_file("zero.xml", "<mujoco><option timestep='0'/></mujoco>"));
  assert_text(&err, SN_ERR_FORMAT, "option timestep is 0: must be above 0 s");
  err = load_error(c, write_file("nan.xml", "<mujoco><worldbody><geom size='.1' pos='nan 0 0'/></worldbody></mujoco>"));
  assert_text(&err, SN_ERR_FORMAT, "geom_pos[0] is nan: must be finite");
  err = load_error(
      c, write_file("fluid.xml", "<mujoco><option density='-1' solver='PGS' integrator='discrete'/></mujoco>"));
  assert_text(&err, SN_ERR_UNSUPPORTED, "option 'density'");
  assert_text(&err, SN_ERR_UNSUPPORTED, "option 'solver'");
  sn_model_cache_close(c);
}

// A program that ignores the end of its children, so that nobody knows the importer's status: models load, and what is
// wrong with others is told. A child that leaves nothing behind is no model.
static void lost_statuses_do_no_harm(void **state) {
  (void)state;
  struct sigaction ignore = {.sa_handler = SIG_IGN}, usual;
  sigaction(SIGCHLD, &ignore, &usual);
  SnModelCache *c = open_cache(NULL, 60);
  SnError err = {0};
  SnModel *m = load(c, write_file("alone.xml", "<mujoco model='alone'><worldbody/></mujoco>"), &err);
  if (!m) fail_msg("%s", err.text);
  sn_model_free(m);
  err = load_error(c, write_file("wrong.xml", "<mujoco><worldbody><bdz/></worldbody></mujoco>"));
  assert_text(&err, SN_ERR_FORMAT, "Element 'bdz', line 1");
  sn_model_cache_close(c);
  c = open_cache("exit 0", 60);
  err = load_error(c, write_file("silent.xml", "<mujoco model='silent'/>"));
  assert_text(&err, SN_ERR_FORMAT, "nobody knows how");
  sn_model_cache_close(c);
  sigaction(SIGCHLD, &usual, NULL);
}

// Files that make MuJoCo itself hang, exhaust memory or end the process.
static void hostile_files_harm_only_the_child(void **state) {
  (void)state;
  SnModelCache *c = open_cache(NULL, 2);
  const double before = sn_clock_now();
  SnError err = load_error(
      c,
      write_file(
          "hang.xml",
          "<mujoco><worldbody><replicate count='1000000000' offset='1 0 0'><body/></replicate></worldbody></mujoco>"));
  const double seconds = sn_clock_now() - before;
  // memory may run out before the time does
  assert_true(err.code == SN_ERR_TIMEOUT || err.code == SN_ERR_LIMIT);
  assert_true(seconds <= 60);
  const char *pipe = in_folder("pipe.xml");
  assert_int_equal(mkfifo(pipe, 0600), 0);
  err = load_error(c, pipe);
  assert_text(&err, SN_ERR_TIMEOUT, "took longer than 2 s");
  sn_model_cache_close(c);
  if (SANITIZED) return;  // their memory cannot be limited
  c = open_cache(NULL, 60);
  err = load_error(
      c, write_file("bomb.xml",
                    "<mujoco><asset><hfield name='h' nrow='40000' ncol='40000' size='1 1 1 1'/></asset></mujoco>"));
  assert_text(&err, SN_ERR_LIMIT, "out of memory");
  err = load_error(c, write_file("arena.xml", "<mujoco><size memory='1000G'/></mujoco>"));
  assert_text(&err, SN_ERR_LIMIT, "Could not allocate memory");
  sn_model_cache_close(c);
}

// What else a child may do, by importers of our own.
static void a_bad_importer_is_reported(void **state) {
  (void)state;
  const char *file = write_file("any.xml", "<mujoco/>");
  static const struct {
    const char *script;
    SnCode code;
    const char *text;
  } cases[] = {
      {"kill -SEGV $$", SN_ERR_FORMAT, "the importer crashed on it (Segmentation fault)"},
      {"echo last words >&2; kill -KILL $$", SN_ERR_LIMIT,
       "was killed, as where a machine runs out of memory: last words"},
      {"echo no room >&2; exit 5", SN_ERR_IO, "no room"},
      {"sleep 100", SN_ERR_TIMEOUT, "took longer than 1 s"},
      {"trap '' TERM; exec 2>&-; sleep 100", SN_ERR_TIMEOUT, "took longer than 1 s"},
      {"sleep 100 & exit 3", SN_ERR_TIMEOUT, "took longer"},
      {"exit 77", SN_ERR_IO, "ended with status 77"},
      {"exit 0", SN_ERR_IO, "No such file"},
      {"echo junk > $2; exit 0", SN_ERR_FORMAT, "model image: 5 bytes"},
      {"yes 'a line of noise' | head -100000 >&2; echo the end >&2; exit 3", SN_ERR_FORMAT, "the end"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    SnModelCache *c = open_cache(cases[i].script, cases[i].code == SN_ERR_TIMEOUT ? 1 : 60);
    const SnError err = load_error(c, file);
    assert_text(&err, cases[i].code, cases[i].text);
    sn_model_cache_close(c);
  }
  // no temporary folder is left: entries, "." and ".." are all there is
  const char *cache = in_folder("cache");
  assert_int_equal(count_files(cache, ""), 2 + count_files(cache, ".sinew") + count_files(cache, ".files"));
}

// The flat image of a model; the caller frees it.
static void *image_of(const SnModel *m, size_t *size) {
  SnError err = {0};
  void *image = m ? sn_model_write(m, size, &err) : NULL;
  if (!image) fail_msg("no model: %s", err.text);
  return image;
}

static void assert_same_model(const SnModel *a, const SnModel *b) {
  size_t na, nb;
  void *one = image_of(a, &na), *two = image_of(b, &nb);
  assert_true(na == nb && memcmp(one, two, na) == 0);
  free(one);
  free(two);
}

static SnModel *read_text(SnModelCache *c, const char *text, const char *from, SnError *err) {
  return sn_model_cache_read(c, text, strlen(text), from, err);
}

// Bytes from memory make the model that a file in the folder would have made; the folder stays as it is.
static void a_model_in_memory_is_the_one_of_its_file(void **state) {
  (void)state;
  SnError err = {0};
  write_file("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  const char *file = write_file("ball.xml", ball), *mjb = in_folder("memory.mjb");
  SnModelCache *c = open_cache(NULL, 60);
  const int before = count_files(folder, "");
  SnModel *a = load(c, file, &err), *b = read_text(c, ball, folder, &err), *again = read_text(c, ball, folder, &err);
  assert_same_model(a, b);
  assert_same_model(a, again);
  assert_int_equal(count_files(folder, ""), before);
  sn_model_free(b);
  sn_model_free(again);
  // a compiled one is told by its first bytes
  mjModel *mj = sn_oracle_read_file(file, &err);
  if (!mj) fail_msg("%s", err.text);
  mj_saveModel(mj, mjb, NULL, 0);
  mj_deleteModel(mj);
  static char bytes[1 << 20];
  FILE *f = fopen(mjb, "rb");
  const size_t size = f ? fread(bytes, 1, sizeof bytes, f) : 0;
  if (f) fclose(f);
  b = sn_model_cache_read(c, bytes, size, NULL, &err);
  assert_same_model(a, b);
  sn_model_free(b);
  assert_null(sn_model_cache_read(c, bytes, size / 2, NULL, &err));
  assert_text(&err, SN_ERR_FORMAT, "model in memory: MuJoCo cannot load it: Truncated model file");
  assert_null(sn_model_cache_read(c, "", (size_t)SN_MODEL_IMAGE_MAX + 1, NULL, &err));
  assert_text(&err, SN_ERR_LIMIT, "model in memory: 1073741825 bytes, allowed are 1073741824");
  sn_model_free(a);
  sn_model_cache_close(c);
}

// The second time no importer runs, unless a file that the text refers to has changed.
static void a_model_in_memory_is_imported_once(void **state) {
  (void)state;
  SnError err = {0};
  write_file("part.xml", "<mujoco><option timestep='0.003'/></mujoco>");
  SnModelCache *c = open_cache(NULL, 60);
  sn_model_free(read_text(c, ball, folder, &err));
  sn_model_free(read_text(c, "<mujoco model='alone'/>", "/", &err));
  sn_model_cache_close(c);
  c = open_cache("echo called >&2; exit 3", 60);
  SnModel *m = read_text(c, ball, folder, &err);
  if (!m) fail_msg("%s", err.text);
  sn_model_free(m);
  m = read_text(c, "<mujoco model='alone'/>", "/", &err);
  if (!m) fail_msg("%s", err.text);
  sn_model_free(m);
  // the same text elsewhere, another text, another part
  assert_null(read_text(c, "<mujoco model='alone'/>", "/tmp", &err));
  assert_null(read_text(c, "<mujoco model='other'/>", "/", &err));
  write_file("part.xml", "<mujoco><option timestep='0.004'/></mujoco>");
  assert_null(read_text(c, ball, folder, &err));
  assert_text(&err, SN_ERR_FORMAT, "called");
  sn_model_cache_close(c);
}

// However many texts there are, the cache keeps 256 models of them. An image stands for the importer's work.
static void models_in_memory_do_not_fill_the_disk(void **state) {
  (void)state;
  SnError err = {0};
  SnModelCache *c = open_cache(NULL, 60);
  SnModel *m = read_text(c, "<mujoco/>", NULL, &err);
  if (!m || sn_model_save_file(m, in_folder("image"), &err) != SN_OK) fail_msg("%s", err.text);
  sn_model_free(m);
  sn_model_cache_close(c);
  char script[500], text[100];
  snprintf(script, sizeof script, "cp %s $2; : >$4", in_folder("image"));
  c = open_cache(script, 60);
  for (int i = 0; i < 320; ++i) {
    snprintf(text, sizeof text, "<mujoco model='%d'/>", i);
    if (!(m = read_text(c, text, NULL, &err))) fail_msg("%s", err.text);
    sn_model_free(m);
  }
  const int kept = count_files(in_folder("cache"), ".files");
  print_message("%d entries\n", kept);
  assert_true(kept > 100 && kept < 300);
  sn_model_cache_close(c);
}

static void bad_bytes_are_refused(void **state) {
  (void)state;
  SnError err = {0};
  SnModelCache *c = open_cache(NULL, 60);
  assert_null(read_text(c, "hello", NULL, &err));
  assert_text(&err, SN_ERR_FORMAT, "model in memory: MuJoCo cannot load it: XML parse error");
  assert_null(read_text(c, "", NULL, &err));
  assert_text(&err, SN_ERR_FORMAT, "model in memory: MuJoCo cannot load it");
  assert_null(read_text(c, "<mujoco><include file='nothere.xml'/></mujoco>", folder, &err));
  assert_text(&err, SN_ERR_FORMAT, "nothere.xml");
  assert_null(read_text(c, "<mujoco/>", in_folder("nothere"), &err));
  assert_text(&err, SN_ERR_IO, "nothere: No such file");
  assert_null(read_text(c, "<mujoco/>", write_file("text.xml", "hello"), &err));
  assert_text(&err, SN_ERR_IO, "text.xml: Not a directory");
  assert_null(read_text(c, "<mujoco><option density='-1'/></mujoco>", NULL, &err));
  assert_text(&err, SN_ERR_UNSUPPORTED, "option 'density'");
  sn_model_cache_close(c);
}

static void set_time(const char *path, time_t seconds) {
  const struct timespec time = {.tv_sec = seconds};
  assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){time, time}, 0), 0);
}

// A list of inputs that is kept: as long as nothing has a new time no file is read, and what is read anew is compared.
static void kept_inputs_are_read_where_times_differ(void **state) {
  (void)state;
  char list[1000] = "";
  write_later("part.xml", "one");
  snprintf(list, sizeof list, "%s\n", in_folder("part.xml"));
  FILE *f = fmemopen(list, strlen(list), "r");
  SnModelInputs *x = sn_model_inputs_read(f, NULL, 0);
  fclose(f);
  assert_true(x && x->n == 1 && x->fresh && !x->remembered);
  for (int settled = 0; settled < 2; ++settled) {
    x->fresh = !settled;
    f = tmpfile();
    assert_true(sn_model_inputs_write(x, f));
    // as it was, with a new time alone, of another seed, with other contents of the same length
    for (int change = 0; change < 4; ++change) {
      nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
      if (change == 1) set_time(in_folder("part.xml"), 1000000000);
      if (change == 3) write_file("part.xml", settled ? "two" : "six");
      rewind(f);
      SnModelInputs *y = sn_model_inputs_recall(f, change == 2);
      assert_true((y != NULL) == (change < 2));
      if (y) assert_true(sn_model_inputs_equal(x, y) && y->remembered == (settled && change == 0));
      sn_model_inputs_free(y);
    }
    fclose(f);
    write_file("part.xml", "one");
    assert_int_equal(stat(in_folder("part.xml"), &x->file[0].seen), 0);
  }
  sn_model_inputs_free(x);
}

// A file that cannot be opened any more is not taken for the one that was read, though its time is the same: files are
// opened, which makes a network's file system ask its server. Root alone can become a user who may not.
static void files_are_opened(void **state) {
  (void)state;
  enum { NOBODY = 65534 };
  if (geteuid() != 0 || chmod(folder, 0755) != 0) skip();
  char list[1000] = "";
  write_later("part.xml", "one");
  assert_int_equal(chmod(in_folder("part.xml"), 0600), 0);
  snprintf(list, sizeof list, "%s\n", in_folder("part.xml"));
  FILE *f = fmemopen(list, strlen(list), "r"), *kept = tmpfile();
  SnModelInputs *x = sn_model_inputs_read(f, NULL, 0), *y[2];
  fclose(f);
  assert_non_null(x);
  x->fresh = false;
  assert_true(sn_model_inputs_write(x, kept));
  bool holds[2];
  for (int i = 0; i < 2; ++i) {
    rewind(kept);
    if (seteuid(i == 0 ? NOBODY : 0) != 0) skip();
    y[i] = sn_model_inputs_recall(kept, 0);
    holds[i] = sn_model_inputs_hold(x);
  }
  assert_true(!y[0] && !holds[0] && y[1] && y[1]->remembered && holds[1]);
  sn_model_inputs_free(x);
  sn_model_inputs_free(y[1]);
  fclose(kept);
}

static void bad_settings_are_refused(void **state) {
  (void)state;
  SnError err = {0};
  SnModelCacheDef def = sn_default_model_cache_def();
  def.folder = in_folder("cache");
  def.importer = in_folder("nothere");
  assert_null(sn_model_cache_open(&def, &err));
  assert_text(&err, SN_ERR_NOT_FOUND, "cannot be run");
  def = sn_default_model_cache_def();
  def.folder = "/proc/nothere";
  assert_null(sn_model_cache_open(&def, &err));
  assert_text(&err, SN_ERR_IO, "/proc/nothere");
  def = sn_default_model_cache_def();
  def.seconds = 0;
  assert_null(sn_model_cache_open(&def, &err));
  assert_text(&err, SN_ERR_ARGUMENT, "limits of 0 s");
}

// Where nobody names a folder or a program: the user's cache folder, and sinew-import beside this program.
static void defaults_are_found(void **state) {
  (void)state;
  SnError err = {0};
  const SnModelCacheDef def = sn_default_model_cache_def();
  setenv("XDG_CACHE_HOME", in_folder("home"), 1);
  SnModelCache *c = sn_model_cache_open(&def, &err);
  if (!c) fail_msg("%s", err.text);
  assert_int_equal(access(in_folder("home/sinew/models"), W_OK), 0);
  sn_model_cache_close(c);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_null(sn_model_cache_open(&def, &err));
  assert_text(&err, SN_ERR_ARGUMENT, "neither is XDG_CACHE_HOME nor HOME");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_is_imported_once_and_again_when_a_part_changes),
      cmocka_unit_test(inputs_tell_changes),
      cmocka_unit_test(a_change_while_importing_is_noticed),
      cmocka_unit_test(a_compiled_model_is_the_one_of_its_xml),
      cmocka_unit_test(precisions_have_entries_of_their_own),
      cmocka_unit_test(a_damaged_entry_is_imported_again),
      cmocka_unit_test(bad_files_give_the_importers_text),
      cmocka_unit_test(lost_statuses_do_no_harm),
      cmocka_unit_test(hostile_files_harm_only_the_child),
      cmocka_unit_test(a_bad_importer_is_reported),
      cmocka_unit_test(a_model_in_memory_is_the_one_of_its_file),
      cmocka_unit_test(a_model_in_memory_is_imported_once),
      cmocka_unit_test(models_in_memory_do_not_fill_the_disk),
      cmocka_unit_test(bad_bytes_are_refused),
      cmocka_unit_test(kept_inputs_are_read_where_times_differ),
      cmocka_unit_test(files_are_opened),
      cmocka_unit_test(bad_settings_are_refused),
      cmocka_unit_test(defaults_are_found),
  };
  return cmocka_run_group_tests(tests, make_tmp_folder, remove_tmp_folder);
}

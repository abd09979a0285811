// The flight recorder: a file has the latest messages, whole, in order, and no more than the memory and the time allow.
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/monitor/flight.h"
#include "physics/base/clock.h"

enum { MEMORY = 1 << 16, MOST = 1 << 16 };

// How many pieces a file may get before its disk stands still; -1: as many as it likes.
static atomic_int pieces = -1;
static atomic_bool stands;

// Takes the place of the C library's: a disk that is as slow as a test wants it.
ssize_t write(int fd, const void *bytes, size_t size) {
  while (atomic_load(&pieces) == 0) {
    atomic_store(&stands, true);
    usleep(1000);
  }
  if (atomic_load(&pieces) > 0) atomic_fetch_sub(&pieces, 1);
  return syscall(SYS_write, fd, bytes, size);
}

typedef struct Place {
  char folder[64], schema[80];
  SnLogState state;
  SnLog log;
  SnFlightDef def;
} Place;

static int setup(void **state) {
  static Place p;
  strcpy(p.folder, "/tmp/sinew-flight-XXXXXX");
  assert_non_null(mkdtemp(p.folder));
  snprintf(p.schema, sizeof p.schema, "%s/schema", p.folder);
  FILE *f = fopen(p.schema, "w");
  fputs("descriptors", f);
  fclose(f);
  p.log = (SnLog){.fd = -1};
  p.def = (SnFlightDef){.folder = p.folder, .schema = p.schema, .seconds = 1000, .bytes = MEMORY, .log = &p.log};
  *state = &p;
  return 0;
}

static int teardown(void **state) {
  const Place *p = *state;
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", p->folder);
  return system(command);
}

static uint64_t little(const unsigned char *from, int bytes) {
  uint64_t x = 0;
  for (int i = 0; i < bytes; i++) x |= (uint64_t)from[i] << (8 * i);
  return x;
}

// What a file has: numbers of its messages, and those bytes of each.
typedef struct File {
  int messages;
  uint32_t number[MOST];
  uint64_t time[MOST];
  size_t size[MOST];
  unsigned char first[MOST], last[MOST];
} File;

// Reads a file as its format says, to the last byte.
static const File *read_file(const char *path) {
  static unsigned char bytes[1 << 20];
  static File file;
  static const char magic[] = "\x89MCAP0\r\n";
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  const size_t size = fread(bytes, 1, sizeof bytes, in);
  fclose(in);
  assert_memory_equal(bytes, magic, 8);
  assert_memory_equal(bytes + size - 8, magic, 8);
  int kinds[16] = {0};
  file.messages = 0;
  for (size_t at = 8; at < size - 8;) {
    const int kind = bytes[at];
    const uint64_t n = little(bytes + at + 1, 8);
    const unsigned char *content = bytes + at + 9;
    assert_in_range(kind, 1, 15);
    kinds[kind]++;
    at += 9 + n;
    assert_true(at <= size - 8);
    if (kind != 5) continue;
    assert_true(kinds[1] == 1 && kinds[3] == 2 && kinds[4] == 2 && kinds[15] == 0);
    const int i = file.messages++;
    file.number[i] = (uint32_t)little(content + 2, 4);
    file.time[i] = little(content + 6, 8);
    file.size[i] = n - 22;
    file.first[i] = content[22];
    file.last[i] = content[n - 1];
  }
  assert_true(kinds[15] == 1 && kinds[2] == 1);
  return &file;
}

static atomic_int told;  // files

static void keep_path(void *context, void *item, const char *path, const SnError *err) {
  assert_ptr_equal(context, item);
  assert_null(err);
  snprintf(context, SN_FLIGHT_PATH, "%s", path);
  atomic_fetch_add(&told, 1);
}

// Writes a file and waits until it is there.
static const char *write_out(SnFlight *f) {
  static char path[SN_FLIGHT_PATH];
  SnError err = {0};
  *path = '\0';
  assert_int_equal(sn_flight_write(f, "test", keep_path, path, path, &err), SN_OK);
  while (sn_flight_write(f, "again", NULL, NULL, NULL, &err) == SN_ERR_STATE) usleep(1000);
  for (SnFlightCounts c; c = sn_flight_counts(f), c.files % 2; usleep(1000)) assert_int_equal(c.failures, 0);
  return path;
}

// A message whose bytes tell its number.
static void add(SnFlight *f, int number, size_t size, double now) {
  static unsigned char bytes[MEMORY];
  memset(bytes, number % 251, size);
  sn_flight_request(f, bytes, size, now);
}

// Messages of all sizes, many times around: what is left is the end of the row, without gap or damage.
static void test_ring(void **state) {
  const Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  const double began = sn_clock_now();
  int sent = 0;
  for (int round = 0; round < 5; round++) {
    const int most = round == 0 ? 10 : 700;
    for (int i = 0; i < most; i++, sent++) add(f, sent + 1, 1 + (size_t)(sent * 7919 % 997), began + 1e-3 * sent);
    const File *file = read_file(write_out(f));
    const SnFlightCounts c = sn_flight_counts(f);
    assert_int_equal(file->messages, c.messages);
    assert_int_equal(c.messages + c.forgotten, sent);
    if (round == 0) assert_int_equal(file->messages, 10);
    if (round > 0) assert_true(c.bytes > MEMORY - 1100 && c.bytes <= MEMORY && file->messages > 50);
    for (int i = 0; i < file->messages; i++) {
      const int number = sent - file->messages + i + 1;
      assert_int_equal(file->number[i], number);
      assert_int_equal(file->size[i], 1 + (size_t)((number - 1) * 7919 % 997));
      assert_true(file->first[i] == number % 251 && file->last[i] == number % 251);
      if (i > 0) assert_true(file->time[i] > file->time[i - 1]);
    }
  }
  sn_flight_close(f);
}

// Messages that come while a disk stands still are kept, and the file has none of them: it is what there was when it
// was asked for, whatever of that has been written over since.
static void test_slow_disk(void **state) {
  Place *p = *state;
  enum { BYTES = 9 * MEMORY + 12345 };
  SnFlight *f;
  SnError err = {0};
  p->def.bytes = BYTES;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  int sent = 0;
  for (int round = 0; round < 8; round++) {
    // The ring is written over in part, or several times, from before the file's first piece or amid its pieces.
    const int before = 700 + 131 * round, meanwhile = round % 2 ? 3000 : 300;
    char path[SN_FLIGHT_PATH] = "";
    for (int i = 0; i < before; i++, sent++) add(f, sent + 1, 1 + (size_t)(sent * 7919 % 1997), sn_clock_now());
    const SnFlightCounts c = sn_flight_counts(f);
    const int last = sent, files = atomic_load(&told);
    atomic_store(&stands, false);
    atomic_store(&pieces, round / 2);
    SnCode code;  // SN_ERR_STATE: the thread of the file before has not ended yet
    while ((code = sn_flight_write(f, "test", keep_path, path, path, &err)) == SN_ERR_STATE) usleep(1000);
    assert_int_equal(code, SN_OK);
    while (!atomic_load(&stands)) usleep(1000);
    for (int i = 0; i < meanwhile; i++, sent++) add(f, sent + 1, 1 + (size_t)(sent * 7919 % 1997), sn_clock_now());
    atomic_store(&pieces, -1);
    while (atomic_load(&told) == files) usleep(1000);
    const File *file = read_file(path);
    assert_int_equal(file->messages, c.messages);
    for (int i = 0; i < file->messages; i++) {
      const int number = last - file->messages + i + 1;
      assert_int_equal(file->number[i], number);
      assert_int_equal(file->size[i], 1 + (size_t)((number - 1) * 7919 % 1997));
      assert_true(file->first[i] == number % 251 && file->last[i] == number % 251);
    }
    assert_int_equal(sn_flight_counts(f).messages + sn_flight_counts(f).forgotten, sent);
  }
  assert_int_equal(read_file(write_out(f))->number[sn_flight_counts(f).messages - 1], sent);
  sn_flight_close(f);
}

// After a pause a message does not forget all that is too old by then at once; no file has it all the same.
static void test_pause(void **state) {
  Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  p->def.seconds = 100;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  const double now = sn_clock_now();
  for (int i = 0; i < 1000; i++) add(f, i, 10, now - 1000);
  add(f, 1001, 10, now);
  assert_in_range(sn_flight_counts(f).messages, 800, 1000);
  const File *file = read_file(write_out(f));
  assert_true(file->messages == 1 && file->number[0] == 1001);
  for (int i = 0; i < 20; i++) add(f, 1002 + i, 10, now);
  assert_int_equal(sn_flight_counts(f).messages, 21);
  assert_int_equal(sn_flight_counts(f).forgotten, 0);
  assert_int_equal(read_file(write_out(f))->messages, 21);
  sn_flight_close(f);
}

// Where the clock has not gone for as long as is kept, as on a machine that begins in 1970, all is kept.
static void test_young_clock(void **state) {
  Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  p->def.seconds = 1e10;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  for (int i = 0; i < 10; i++) add(f, i, 10, sn_clock_now());
  assert_int_equal(sn_flight_counts(f).messages, 10);
  assert_int_equal(read_file(write_out(f))->messages, 10);
  sn_flight_close(f);
}

// What is older than the time that is kept goes, and is not missed; what is too long for the memory is passed over.
static void test_bounds(void **state) {
  Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  p->def.seconds = 2;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  const double now = sn_clock_now();
  for (int i = 0; i < 10; i++) add(f, i, 10, now - 10 + i);
  assert_int_equal(sn_flight_counts(f).messages, 3);
  assert_int_equal(sn_flight_counts(f).forgotten, 0);
  add(f, 11, MEMORY / 4, now);
  assert_int_equal(sn_flight_counts(f).messages, 3);
  assert_int_equal(sn_flight_counts(f).forgotten, 1);
  add(f, 12, MEMORY / 5, now);
  const File *file = read_file(write_out(f));
  assert_true(file->messages >= 2 && file->size[file->messages - 1] == MEMORY / 5);
  const SnTrace trace = {.stages = {.arrived = now, .plan = 7}, .sent = now + 1};
  sn_flight_plan(f, 123, 1, &trace);
  sn_flight_plan(NULL, 123, 1, &trace);
  sn_flight_request(NULL, "", 0, now);
  assert_int_equal(read_file(write_out(f))->number[sn_flight_counts(f).messages - 1], 12);
  sn_flight_close(f);
  sn_flight_close(NULL);
}

// Who is told that a file is there asks for another one while the thread that tells has not ended yet.
static void ask_again(void *context, void *item, const char *path, const SnError *err) {
  atomic_bool *asked = item;
  (void)path;
  assert_ptr_equal(context, NULL);
  assert_null(err);
  atomic_store(asked, true);
  usleep(50000);
}

static void test_another_file(void **state) {
  const Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  atomic_bool asked = false;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  add(f, 1, 10, sn_clock_now());
  assert_int_equal(sn_flight_write(f, "test", ask_again, NULL, &asked, &err), SN_OK);
  while (!atomic_load(&asked)) usleep(1000);
  assert_int_equal(sn_flight_write(f, "test", NULL, NULL, NULL, &err), SN_OK);
  sn_flight_close(f);
}

static int count_files(const char *folder) {
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d));) n += !strncmp(e->d_name, "flight-", 7);
  closedir(d);
  return n;
}

// Old files make room, others are not touched; files are this user's alone.
static void test_files(void **state) {
  const Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  struct stat st;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  add(f, 1, 10, sn_clock_now());
  char first[SN_FLIGHT_PATH];
  strcpy(first, write_out(f));
  assert_int_equal(stat(first, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  for (int i = 0; i < SN_FLIGHT_FILES; i++) {
    usleep(2000);  // names differ by milliseconds
    write_out(f);
  }
  assert_int_equal(count_files(p->folder), SN_FLIGHT_FILES);
  assert_int_equal(stat(first, &st), -1);
  assert_int_equal(stat(p->schema, &st), 0);
  // That of a crash has the time of the start in its name, and is not older for that.
  char crash[SN_FLIGHT_PATH];
  snprintf(crash, sizeof crash, "%s/flight-20000101T000000.000000Z-crash.mcap", p->folder);
  FILE *file = fopen(crash, "w");
  assert_non_null(file);
  fclose(file);
  for (int i = 2; i < SN_FLIGHT_FILES; i += 2) {
    usleep(20000);  // times of files differ
    write_out(f);   // two
    if (stat(crash, &st) != 0) fail_msg("the file of a crash went when there were %d newer ones", i);
  }
  write_out(f);
  assert_int_equal(stat(crash, &st), -1);
  assert_int_equal(count_files(p->folder), SN_FLIGHT_FILES);
  sn_flight_close(f);
}

static void test_refusals(void **state) {
  Place *p = *state;
  SnFlight *f;
  SnError err = {0};
  p->def.folder = "";
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_OK);
  assert_null(f);
  p->def.folder = "/dev/null/at/all";
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, "flight_folder: cannot make or write /dev/null/at/all: Not a directory"));
  p->def.folder = p->schema;
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, ": Not a directory"));
  p->def.folder = p->folder;
  chmod(p->folder, 0777);
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "others may write into"));
  chmod(p->folder, 0700);
  p->def.schema = "/nowhere/schema";
  assert_int_equal(sn_flight_open(&p->def, &f, &err), SN_ERR_IO);
  assert_non_null(strstr(err.text, "/nowhere/schema"));
}

// A process that crashes leaves a whole file, and ends as it would have; one that ends well leaves none.
static void test_crash(void **state) {
  const Place *p = *state;
  static const int numbers[] = {0, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const pid_t child = fork();
    if (child == 0) {
      SnFlight *f;
      SnError err = {0};
      if (sn_flight_open(&p->def, &f, &err) != SN_OK) _exit(9);
      for (int k = 0; k < 1000; k++) add(f, k + 1, 300, sn_clock_now());
      if (numbers[i] == SIGABRT) abort();
      if (numbers[i]) raise(numbers[i]);
      sn_flight_close(f);
      _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (numbers[i] == 0) {
      assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      assert_int_equal(count_files(p->folder), 0);
      continue;
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
    assert_int_equal(count_files(p->folder), 1);
    DIR *d = opendir(p->folder);
    char path[400] = "";
    for (struct dirent *e; (e = readdir(d));)
      if (strstr(e->d_name, "-crash.mcap")) snprintf(path, sizeof path, "%s/%s", p->folder, e->d_name);
    closedir(d);
    const File *file = read_file(path);
    assert_in_range(file->messages, MEMORY / 400, MEMORY / 300);
    assert_int_equal(file->number[file->messages - 1], 1000);
    for (int k = 1; k < file->messages; k++) assert_int_equal(file->number[k], file->number[k - 1] + 1);
    unlink(path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_ring, setup, teardown),
      cmocka_unit_test_setup_teardown(test_slow_disk, setup, teardown),
      cmocka_unit_test_setup_teardown(test_pause, setup, teardown),
      cmocka_unit_test_setup_teardown(test_young_clock, setup, teardown),
      cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
      cmocka_unit_test_setup_teardown(test_another_file, setup, teardown),
      cmocka_unit_test_setup_teardown(test_files, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
      cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

// The memory is a ring of messages that follow each other without gaps, [tail, head) in bytes counted from the start.
// The event loop moves the tail on before it writes over what was there, and the head after a message is whole. So who
// reads first the tail and then the head, as a handler of a signal does, finds whole messages, but for one that is just
// being written over.
//
// A file has what there was when it was asked for. The thread that writes it takes that out of the ring piece by piece;
// what the event loop writes over before its turn has come, it saves first, as many bytes as the new message has. So no
// message waits for a disk, nor for a copy of all of the memory.
#include "daemon/monitor/flight.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/own_folder.h"
#include "daemon/monitor/flight_private.h"
#include "physics/base/clock.h"

// Bytes that a file's thread takes at once, and the most messages, too old to be kept, that one new message forgets.
enum { PIECE = 1 << 16, FORGET = 64 };

// What the file that is being written has, in bytes counted as those of the ring.
typedef struct Snapshot {
  pthread_mutex_t mutex;
  uint64_t from, to;      // the request's; fixed
  uint64_t oldest;        // messages from before are left out; Unix time in nanoseconds
  uint64_t taken;         // up to here it is the thread's; under the mutex, as all that follows
  uint64_t gone;          // up to here the ring has been written over
  unsigned char **saved;  // pieces from `from` on, of which those bytes were saved that are gone and were not taken
} Snapshot;

struct SnFlight {
  SnFlightDef def;
  char folder[SN_FLIGHT_PATH - 100], crash[SN_FLIGHT_PATH];
  SnMcapPart begin, end;
  unsigned char *ring;  // (def.bytes)
  atomic_uint_least64_t head, tail;
  atomic_bool frozen;  // a crash is being written
  uint32_t number;     // of the latest message
  double real;         // Unix time less sn_clock_now(), at the start [s]
  uint64_t messages, forgotten;

  // The file that is being written.
  atomic_bool busy;
  bool started;  // the thread is to be joined
  pthread_t thread;
  Snapshot snapshot;
  char path[SN_FLIGHT_PATH];
  SnFlightWritten *written;
  void *context, *item;
  atomic_uint_least64_t files, failures;
};

// ---- the ring ----

static void copy_in(SnFlight *f, uint64_t at, const void *bytes, size_t size) {
  const size_t begin = (size_t)(at % f->def.bytes), first = size < f->def.bytes - begin ? size : f->def.bytes - begin;
  memcpy(f->ring + begin, bytes, first);
  memcpy(f->ring, (const unsigned char *)bytes + first, size - first);
}

static void copy_out(const SnFlight *f, uint64_t at, void *bytes, size_t size) {
  const size_t begin = (size_t)(at % f->def.bytes), first = size < f->def.bytes - begin ? size : f->def.bytes - begin;
  memcpy(bytes, f->ring + begin, first);
  memcpy((unsigned char *)bytes + first, f->ring, size - first);
}

static uint64_t little(const unsigned char *from, int bytes) {
  uint64_t x = 0;
  for (int i = 0; i < bytes; i++) x |= (uint64_t)from[i] << (8 * i);
  return x;
}

static bool is_old(const unsigned char *head, uint64_t oldest) { return little(head + 15, 8) < oldest; }

static uint64_t message_size(const unsigned char *head) { return 9 + little(head + 1, 8); }

// A machine without a clock of its own begins in 1970, where less than that time has passed.
static uint64_t oldest_kept(const SnFlight *f, double now) {
  return (uint64_t)(1e9 * fmax(0, now + f->real - f->def.seconds));
}

// Forgets messages until `size` bytes fit, and those from before `oldest` (Unix time in nanoseconds): after a pause
// there may be millions, which go with the next messages.
static void forget(SnFlight *f, size_t size, uint64_t oldest) {
  uint64_t tail = f->tail;
  for (int n = 0; tail < f->head; n++) {
    unsigned char head[SN_MCAP_MESSAGE_HEAD];
    copy_out(f, tail, head, sizeof head);
    const bool old = is_old(head, oldest);
    if ((!old || n >= FORGET) && f->head + size - tail <= f->def.bytes) break;
    f->forgotten += !old;
    f->messages--;
    tail += message_size(head);
  }
  atomic_store(&f->tail, tail);
}

// ---- what a file is made of ----

// Saves the bytes [at, end) of the ring. False: no memory, and they must stay. With the snapshot's mutex.
static bool save(const SnFlight *f, uint64_t at, uint64_t end) {
  const Snapshot *s = &f->snapshot;
  while (at < end) {
    unsigned char **piece = &s->saved[(at - s->from) / PIECE];
    const size_t offset = (size_t)((at - s->from) % PIECE), left = PIECE - offset;
    const size_t n = end - at < left ? (size_t)(end - at) : left;
    if (!*piece && !(*piece = malloc(PIECE))) return false;
    copy_out(f, at, *piece + offset, n);
    at += n;
  }
  return true;
}

// Makes `size` bytes behind the head free to be written over. False: they are a file's, and cannot be saved.
static bool give_way(SnFlight *f, size_t size) {
  Snapshot *s = &f->snapshot;
  const uint64_t end = f->head + size;
  if (!atomic_load(&f->busy) || end <= f->def.bytes) return true;
  pthread_mutex_lock(&s->mutex);
  const uint64_t gone = end - f->def.bytes, first = s->taken > s->gone ? s->taken : s->gone;
  const bool saved = save(f, first, gone < s->to ? gone : s->to);
  if (saved) s->gone = gone;
  pthread_mutex_unlock(&s->mutex);
  return saved;
}

// Copies the next bytes of a file, of one piece at most. With the snapshot's mutex.
static void peek(const SnFlight *f, unsigned char *bytes, size_t size) {
  const Snapshot *s = &f->snapshot;
  const uint64_t end = s->taken + size, gone = s->gone < s->taken ? s->taken : s->gone < end ? s->gone : end;
  const size_t saved = (size_t)(gone - s->taken), offset = (size_t)((s->taken - s->from) % PIECE);
  if (saved > 0) memcpy(bytes, s->saved[(s->taken - s->from) / PIECE] + offset, saved);
  copy_out(f, gone, bytes + saved, size - saved);
}

// Takes the next `size` bytes of a file, or leaves them out where `bytes` is NULL.
static void take(SnFlight *f, unsigned char *bytes, size_t size) {
  Snapshot *s = &f->snapshot;
  pthread_mutex_lock(&s->mutex);
  while (size > 0) {
    const uint64_t piece = (s->taken - s->from) / PIECE, left = (piece + 1) * PIECE - (s->taken - s->from);
    const size_t n = size < left ? size : (size_t)left;
    if (bytes) peek(f, bytes, n);
    if (bytes) bytes += n;
    s->taken += n;
    size -= n;
    if (n < left) continue;
    free(s->saved[piece]);
    s->saved[piece] = NULL;
  }
  pthread_mutex_unlock(&s->mutex);
}

static void add(SnFlight *f, int channel, const void *bytes, size_t size, double now) {
  const double unix_time = now + f->real;
  const size_t whole = SN_MCAP_MESSAGE_HEAD + size;
  if (atomic_load(&f->frozen)) return;
  if (whole > f->def.bytes / 4) {
    f->forgotten++;
    return;
  }
  forget(f, whole, oldest_kept(f, now));
  if (!give_way(f, whole)) {
    f->forgotten++;
    return;
  }
  unsigned char head[SN_MCAP_MESSAGE_HEAD];
  sn_mcap_message(head, channel, ++f->number, (uint64_t)(1e9 * unix_time), size);
  copy_in(f, f->head, head, sizeof head);
  copy_in(f, f->head + sizeof head, bytes, size);
  f->messages++;
  atomic_store(&f->head, f->head + whole);
}

void sn_flight_request(SnFlight *f, const void *bytes, size_t size, double now) {
  if (f) add(f, SN_MCAP_REQUESTS, bytes, size, now);
}

void sn_flight_plan(SnFlight *f, uint64_t session, uint64_t number, const SnTrace *trace) {
  unsigned char bytes[512];
  Sinew__V1__PlanTrace out;
  if (!f) return;
  sn_trace_pack(trace, number, &out);
  out.session = session;
  if (sinew__v1__plan_trace__get_packed_size(&out) > sizeof bytes) return;
  add(f, SN_MCAP_PLANS, bytes, sinew__v1__plan_trace__pack(&out, bytes), trace->sent);
}

// ---- files ----

static bool write_all(int fd, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = write(fd, (const char *)bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

// A file of a recorder, and when it was written.
typedef struct Written {
  char *name;
  struct timespec when;
} Written;

static int compare_times(const void *a, const void *b) {
  const Written *x = a, *y = b;
  if (x->when.tv_sec != y->when.tv_sec) return x->when.tv_sec < y->when.tv_sec ? -1 : 1;
  if (x->when.tv_nsec != y->when.tv_nsec) return x->when.tv_nsec < y->when.tv_nsec ? -1 : 1;
  return strcmp(x->name, y->name);
}

// Removes the oldest files, so that there is room for one more. Their names do not tell which these are: that of a
// crash has the time of the start.
static void remove_old(const SnFlight *f) {
  enum { MOST = 1024 };
  Written file[MOST];
  int n = 0;
  DIR *folder = opendir(f->folder);
  for (struct dirent *entry; folder && n < MOST && (entry = readdir(folder));) {
    struct stat st;
    const size_t size = strlen(entry->d_name);
    const bool ours = !strncmp(entry->d_name, "flight-", 7) && size > 5 && !strcmp(entry->d_name + size - 5, ".mcap");
    if (!ours || fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    file[n] = (Written){strdup(entry->d_name), st.st_mtim};
    n += file[n].name != NULL;
  }
  qsort(file, (size_t)n, sizeof *file, compare_times);
  for (int i = 0; i < n; i++) {
    if (i <= n - SN_FLIGHT_FILES) unlinkat(dirfd(folder), file[i].name, 0);
    free(file[i].name);
  }
  if (folder) closedir(folder);
}

static void make_path(const SnFlight *f, const char *reason, char path[SN_FLIGHT_PATH]) {
  struct timespec now;
  struct tm utc;
  char time[40];
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  strftime(time, sizeof time, "%Y%m%dT%H%M%S", &utc);
  snprintf(path, SN_FLIGHT_PATH, "%s/flight-%s.%06ldZ-%s.mcap", f->folder, time, now.tv_nsec / 1000, reason);
}

// Writes the messages of a file, but for those at its begin that were too old.
static bool write_messages(SnFlight *f, int fd) {
  const Snapshot *s = &f->snapshot;
  unsigned char bytes[PIECE];
  size_t n = 0;
  while (n == 0 && s->taken < s->to) {
    n = SN_MCAP_MESSAGE_HEAD;
    take(f, bytes, n);
    if (!is_old(bytes, s->oldest)) continue;
    take(f, NULL, message_size(bytes) - n);
    n = 0;
  }
  while (n > 0) {
    if (!write_all(fd, bytes, n)) return false;
    const uint64_t left = s->to - s->taken;
    n = left < PIECE ? (size_t)left : PIECE;
    take(f, bytes, n);
  }
  return true;
}

static SnCode write_file(SnFlight *f, SnError *err) {
  remove_old(f);
  const int fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return sn_fail(err, SN_ERR_IO, "%s: %s", f->path, strerror(errno));
  const bool ok =
      write_all(fd, f->begin.bytes, f->begin.size) && write_messages(f, fd) && write_all(fd, f->end.bytes, f->end.size);
  const int why = errno;
  if (close(fd) == 0 && ok) return SN_OK;
  unlink(f->path);
  return sn_fail(err, SN_ERR_IO, "%s: %s", f->path, strerror(ok ? errno : why));
}

// Takes what is there now for a file.
static bool begin_snapshot(SnFlight *f) {
  Snapshot *s = &f->snapshot;
  s->from = s->taken = s->gone = f->tail;
  s->to = f->head;
  s->oldest = oldest_kept(f, sn_clock_now());
  s->saved = calloc((size_t)((s->to - s->from) / PIECE + 1), sizeof *s->saved);
  return s->saved != NULL;
}

// Lets go of what was not written, piece by piece: a message may wait for the mutex.
static void end_snapshot(SnFlight *f) {
  Snapshot *s = &f->snapshot;
  const uint64_t last = (s->to - s->from) / PIECE;
  while (s->taken < s->to) take(f, NULL, s->to - s->taken < PIECE ? (size_t)(s->to - s->taken) : PIECE);
  free(s->saved[last]);
  free((void *)s->saved);
}

static void *writer_main(void *argument) {
  SnFlight *f = argument;
  SnError err = {0};
  const bool ok = write_file(f, &err) == SN_OK;
  end_snapshot(f);
  atomic_fetch_add(ok ? &f->files : &f->failures, 1);
  if (ok)
    sn_log_event(f->def.log, SN_LOG_WARNING, "flight-written: %s", f->path);
  else
    sn_log_event(f->def.log, SN_LOG_ERROR, "flight-failed: %s", err.text);
  atomic_store(&f->busy, false);  // who is told may ask for another one at once; that waits for the end of this thread
  if (f->written) f->written(f->context, f->item, f->path, ok ? NULL : &err);
  return NULL;
}

static void join(SnFlight *f) {
  if (f->started) pthread_join(f->thread, NULL);
  f->started = false;
}

SnCode sn_flight_write(SnFlight *f, const char *reason, SnFlightWritten *written, void *context, void *item,
                       SnError *err) {
  if (atomic_load(&f->busy)) return sn_fail(err, SN_ERR_STATE, "a file of the flight recorder is being written");
  join(f);
  if (!begin_snapshot(f)) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  make_path(f, reason, f->path);
  f->written = written;
  f->context = context;
  f->item = item;
  atomic_store(&f->busy, true);
  f->started = pthread_create(&f->thread, NULL, writer_main, f) == 0;
  if (f->started) return SN_OK;
  end_snapshot(f);
  atomic_store(&f->busy, false);
  return sn_fail(err, SN_ERR_LIMIT, "cannot start the thread that writes a file of the flight recorder");
}

// ---- crashes ----

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes };

// What a handler of a signal finds; there is one recorder in a process.
static _Atomic(SnFlight *) crashing;

// Calls nothing but what a handler may: open, write, close, raise. What failed once is left alone, and the signal does
// what it did before, for its own handler is gone (SA_RESETHAND).
static void crash(int number) {
  SnFlight *f = atomic_exchange(&crashing, NULL);
  if (f) {
    atomic_store(&f->frozen, true);
    const uint64_t tail = atomic_load(&f->tail), head = atomic_load(&f->head);
    const size_t begin = (size_t)(tail % f->def.bytes), size = (size_t)(head - tail);
    const size_t first = size < f->def.bytes - begin ? size : f->def.bytes - begin;
    const int fd = open(f->crash, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
      write_all(fd, f->begin.bytes, f->begin.size);
      write_all(fd, f->ring + begin, first);
      write_all(fd, f->ring, size - first);
      write_all(fd, f->end.bytes, f->end.size);
      close(fd);
    }
  }
  raise(number);
}

static void watch_crashes(SnFlight *f, bool watch) {
  struct sigaction action = {.sa_flags = (int)SA_RESETHAND};
  action.sa_handler = watch ? crash : SIG_DFL;
  sigemptyset(&action.sa_mask);
  atomic_store(&crashing, watch ? f : NULL);
  for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &action, NULL);
}

// ---- begin and end ----

static SnMcapPart read_schema(const char *file, SnError *err) {
  SnMcapPart out = {0};
  char *bytes = malloc(1 << 20);
  FILE *in = bytes ? fopen(file, "rb") : NULL;
  const size_t size = in ? fread(bytes, 1, 1 << 20, in) : 0;
  if (size > 0)
    out = sn_mcap_begin(bytes, size);
  else
    sn_fail(err, SN_ERR_IO, "flight_folder: the schema %s cannot be read", file);
  if (size > 0 && !out.bytes) sn_fail(err, SN_ERR_MEMORY, "out of memory");
  if (in) fclose(in);
  free(bytes);
  return out;
}

// Who is told the name of a file may stand in another folder than the daemon.
static SnCode name_absolutely(SnFlight *f, SnError *err) {
  char *path = realpath(f->folder, NULL);
  if (!path) return sn_fail(err, SN_ERR_IO, "flight_folder: %s: %s", f->folder, strerror(errno));
  const bool fits = (size_t)snprintf(f->folder, sizeof f->folder, "%s", path) < sizeof f->folder;
  free(path);
  return fits ? SN_OK : sn_fail(err, SN_ERR_ARGUMENT, "flight_folder: the path is too long");
}

// The folder is this user's alone: what is in it may move a robot.
static SnCode prepare_folder(SnFlight *f, SnError *err) {
  struct stat st;
  SnCode code = sn_own_folder_make("flight_folder", f->folder, f->def.log, err);
  if (code == SN_OK && stat(f->folder, &st) != 0)
    code = sn_fail(err, SN_ERR_IO, "flight_folder: %s: %s", f->folder, strerror(errno));
  if (code == SN_OK) code = sn_own_folder_check("flight_folder", f->folder, &st, true, err);
  return code == SN_OK ? name_absolutely(f, err) : code;
}

SnCode sn_flight_open(const SnFlightDef *def, SnFlight **flight, SnError *err) {
  *flight = NULL;
  if (!*def->folder) return SN_OK;
  SnFlight *f = calloc(1, sizeof *f);
  if (!f) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  f->def = *def;
  pthread_mutex_init(&f->snapshot.mutex, NULL);
  SnCode code = SN_OK;
  if ((size_t)snprintf(f->folder, sizeof f->folder, "%s", def->folder) >= sizeof f->folder)
    code = sn_fail(err, SN_ERR_ARGUMENT, "flight_folder: the path is too long");
  if (code == SN_OK) code = prepare_folder(f, err);
  if (code == SN_OK) {
    f->begin = read_schema(def->schema, err);
    f->end = sn_mcap_end();
    if (!f->begin.bytes || !f->end.bytes) code = err->code;
  }
  if (code == SN_OK) {
    // All of it is there from now on, so that a crash, or a machine short of memory, finds it.
    f->ring = mmap(NULL, def->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (f->ring == MAP_FAILED) {
      f->ring = NULL;
      code = sn_fail(err, SN_ERR_MEMORY, "flight_megabytes: %zu bytes cannot be had", def->bytes);
    }
  }
  if (code != SN_OK) {
    sn_flight_close(f);
    return code;
  }
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  f->real = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - sn_clock_now();
  make_path(f, "crash", f->crash);
  watch_crashes(f, true);
  *flight = f;
  return SN_OK;
}

void sn_flight_close(SnFlight *f) {
  if (!f) return;
  if (f->ring) watch_crashes(f, false);
  join(f);
  if (f->ring) munmap(f->ring, f->def.bytes);
  free(f->begin.bytes);
  free(f->end.bytes);
  pthread_mutex_destroy(&f->snapshot.mutex);
  free(f);
}

SnFlightCounts sn_flight_counts(const SnFlight *f) {
  return (SnFlightCounts){.bytes = f->head - f->tail,
                          .messages = f->messages,
                          .forgotten = f->forgotten,
                          .files = f->files,
                          .failures = f->failures};
}

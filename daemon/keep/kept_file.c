#include "daemon/keep/kept_file_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/own_folder.h"

// At most so many files are moved aside; more are left where they are.
enum { REFUSED_MOST = 64 };

// In front of the bytes of a file.
typedef struct Header {
  char magic[8];
  uint64_t size, checksum;  // of the bytes behind it; XXH3
} Header;

static const char magic[8] = "sinewK1\n";
static const char *const endings[SN_KEPT_PARTS + 1] = {".session", ".warm", ".restoring"};

static SnCode io_error(SnError *err, const char *what, const char *name) {
  return sn_fail(err, SN_ERR_IO, "cannot %s %s: %s", what, name, strerror(errno));
}

// ---- names ----

const char *sn_kept_file_name(uint64_t id, SnKeptPart part, char name[SN_KEPT_NAME]) {
  snprintf(name, SN_KEPT_NAME, "%" PRIu64 "%s", id, endings[part]);
  return name;
}

bool sn_kept_file_parse(const char *name, uint64_t *id, SnKeptPart *part) {
  char again[SN_KEPT_NAME];
  *id = strtoull(name, NULL, 10);
  for (int i = 0; i <= SN_KEPT_MARK; i++) {
    *part = (SnKeptPart)i;
    if (!strcmp(sn_kept_file_name(*id, *part, again), name)) return *id != 0;
  }
  return false;
}

static bool ends_with(const char *name, const char *ending) {
  const size_t n = strlen(name), m = strlen(ending);
  return n > m && !strcmp(name + n - m, ending);
}

// ---- the folder ----

static SnCode check_folder(const SnKeptFolder *f, SnError *err) {
  struct stat st;
  if (fstat(f->fd, &st) != 0) return io_error(err, "look at", f->path);
  return sn_own_folder_check("state", f->path, &st, false, err);
}

// The file stays: who would remove it could take it from under another daemon that waits for it.
static SnCode lock_folder(SnKeptFolder *f, SnError *err) {
  f->lock = openat(f->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (f->lock < 0) return sn_fail(err, SN_ERR_IO, "state: cannot make a file in %s: %s", f->path, strerror(errno));
  if (flock(f->lock, LOCK_EX | LOCK_NB) == 0) return SN_OK;
  return sn_fail(err, SN_ERR_STATE, "state: another sinewd keeps its sessions in %s", f->path);
}

static void remove_unfinished(const SnKeptFolder *f) {
  DIR *dir = fdopendir(fcntl(f->fd, F_DUPFD_CLOEXEC, 0));
  if (!dir) return;
  rewinddir(dir);
  for (const struct dirent *entry; (entry = readdir(dir));)
    if (ends_with(entry->d_name, ".new")) unlinkat(f->fd, entry->d_name, 0);
  closedir(dir);
}

SnCode sn_kept_folder_open(SnKeptFolder *f, const char *path, const SnLog *log, SnError *err) {
  *f = (SnKeptFolder){.fd = -1, .lock = -1, .path = path};
  SnCode code = sn_own_folder_make("state", path, log, err);
  if (code != SN_OK) return code;
  f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  code = f->fd < 0 ? sn_fail(err, SN_ERR_IO, "state: %s: %s", path, strerror(errno)) : check_folder(f, err);
  if (code == SN_OK) code = lock_folder(f, err);
  if (code != SN_OK)
    sn_kept_folder_close(f);
  else
    remove_unfinished(f);
  return code;
}

void sn_kept_folder_close(SnKeptFolder *f) {
  if (f->lock >= 0) close(f->lock);
  if (f->fd >= 0) close(f->fd);
  f->fd = f->lock = -1;
}

// ---- files ----

static bool write_all(int fd, const void *bytes, size_t size) {
  for (const char *p = bytes; size > 0;) {
    const ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

static bool write_file(int fd, SnKeptBytes bytes, bool lasting) {
  Header h = {.size = bytes.size, .checksum = XXH3_64bits(bytes.bytes, bytes.size)};
  memcpy(h.magic, magic, sizeof magic);
  return write_all(fd, &h, sizeof h) && write_all(fd, bytes.bytes, bytes.size) && (!lasting || fsync(fd) == 0);
}

SnCode sn_kept_file_write(const SnKeptFolder *f, const char *name, SnKeptBytes bytes, bool lasting, SnError *err) {
  char fresh[SN_KEPT_NAME + 8];
  snprintf(fresh, sizeof fresh, "%s.new", name);
  unlinkat(f->fd, fresh, 0);
  const int fd = openat(f->fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return io_error(err, "make", fresh);
  bool ok = write_file(fd, bytes, lasting);
  int error = errno;
  if (close(fd) != 0 && ok) ok = false, error = errno;
  if (ok && renameat(f->fd, fresh, f->fd, name) != 0) ok = false, error = errno;
  if (ok && lasting && fsync(f->fd) != 0) ok = false, error = errno;
  if (ok) return SN_OK;
  unlinkat(f->fd, fresh, 0);
  errno = error;
  return io_error(err, "write", name);
}

// Reads what is behind the header of an open file.
static SnCode read_bytes(int fd, off_t length, SnKeptBytes *bytes, SnError *err) {
  Header h;
  if (read(fd, &h, sizeof h) != (ssize_t)sizeof h || memcmp(h.magic, magic, sizeof magic))
    return sn_fail(err, SN_ERR_FORMAT, "it is no file of a kept session");
  if (h.size == 0 || h.size > SN_WIRE_MESSAGE || h.size + sizeof h != (uint64_t)length)
    return sn_fail(err, SN_ERR_FORMAT, "it has %lld bytes, and says that there are %llu behind its header",
                   (long long)length, (unsigned long long)h.size);
  bytes->bytes = malloc(h.size);
  if (!bytes->bytes) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  bytes->size = h.size;
  if (read(fd, bytes->bytes, h.size) == (ssize_t)h.size && XXH3_64bits(bytes->bytes, h.size) == h.checksum)
    return SN_OK;
  free(bytes->bytes);
  *bytes = (SnKeptBytes){0};
  return sn_fail(err, SN_ERR_FORMAT, "its checksum is wrong");
}

// What passes, and says nothing of the file.
static bool lacks_something(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

SnCode sn_kept_file_read(const SnKeptFolder *f, const char *name, SnKeptBytes *bytes, SnError *err) {
  struct stat st;
  *bytes = (SnKeptBytes){0};
  const int fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return sn_fail(err, SN_ERR_NOT_FOUND, "there is none");
  SnCode code = SN_OK;
  if (fd < 0 || fstat(fd, &st) != 0)
    code = sn_fail(err, lacks_something(errno) ? SN_ERR_MEMORY : SN_ERR_IO, "%s", strerror(errno));
  else if (!S_ISREG(st.st_mode))
    code = sn_fail(err, SN_ERR_STATE, "it is no file");
  else if (st.st_uid != geteuid() || (st.st_mode & 077))
    code = sn_fail(err, SN_ERR_STATE, "it is not this user's alone (owner %lu, mode %03o)", (unsigned long)st.st_uid,
                   (unsigned)(st.st_mode & 0777));
  if (code == SN_OK) code = read_bytes(fd, st.st_size, bytes, err);
  if (fd >= 0) close(fd);
  return code;
}

void sn_kept_file_remove(const SnKeptFolder *f, const char *name) { unlinkat(f->fd, name, 0); }

static int count_files(int folder) {
  DIR *dir = fdopendir(folder);
  int n = 0;
  if (!dir) return REFUSED_MOST;
  while (n < REFUSED_MOST + 2 && readdir(dir)) n++;
  closedir(dir);
  return n - 2;
}

void sn_kept_file_refuse(const SnKeptFolder *f, const char *name, const SnLog *log, const char *why) {
  mkdirat(f->fd, "refused", 0700);
  const int aside = openat(f->fd, "refused", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  bool moved = aside >= 0 && count_files(fcntl(aside, F_DUPFD_CLOEXEC, 0)) < REFUSED_MOST;
  moved = moved && renameat(f->fd, name, aside, name) == 0;
  if (aside >= 0) close(aside);
  sn_log_event(log, SN_LOG_ERROR, "keep-refused: %s/%s cannot be gone on from, and %s: %s", f->path, name,
               moved ? "lies in `refused` now" : "could not be moved aside", why);
}

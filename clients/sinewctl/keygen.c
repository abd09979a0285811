#include "clients/sinewctl/keygen_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

static bool complain(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool complain(char *error, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error, size, format, args);
  va_end(args);
  return false;
}

// Writes a new file. One that is there stays as it is; one that cannot be written whole is removed.
static bool write_new(const char *path, mode_t mode, const char *comment, const char *key, char *error, size_t size) {
  char text[256];
  const int n = snprintf(text, sizeof text, "# %s\n%s\n", comment, key);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0)
    return complain(error, size, "%s: %s", path, errno == EEXIST ? "is there already, and stays" : strerror(errno));
  const bool written = fchmod(fd, mode) == 0 && write(fd, text, (size_t)n) == n && fsync(fd) == 0;
  const int why = errno;
  explicit_bzero(text, sizeof text);
  if (close(fd) == 0 && written) return true;
  unlink(path);
  return complain(error, size, "%s: %s", path, strerror(why));
}

bool keygen_run(const char *path, char public[SN_KEY_TEXT], char *error, size_t size) {
  char secret[SN_KEY_TEXT], *beside = NULL;
  if (!zmq_has("curve") || zmq_curve_keypair(public, secret) != 0)
    return complain(error, size, "this libzmq has no encryption (CURVE)");
  if (asprintf(&beside, "%s.pub", path) < 0) return complain(error, size, "out of memory");
  bool ok = write_new(path, 0600, "secret key of sinew: who reads it is taken for its owner", secret, error, size);
  if (ok && !write_new(beside, 0644, "public key of sinew", public, error, size)) {
    unlink(path);
    ok = false;
  }
  explicit_bzero(secret, sizeof secret);
  free(beside);
  return ok;
}

#include "proto/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A longer file is none of ours.
enum { LONGEST = 4096 };

bool sn_key_is_valid(const char *text) {
  static const char alphabet[] =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  return strspn(text, alphabet) == SN_KEY_TEXT - 1 && text[SN_KEY_TEXT - 1] == '\0';
}

// The rights of a file that holds a secret.
static bool check_rights(const char *path, const struct stat *st, char *why, size_t size) {
  if (st->st_uid != geteuid() && st->st_uid != 0)
    snprintf(why, size, "%s belongs to user %lu; a secret key must belong to user %lu", path, (unsigned long)st->st_uid,
             (unsigned long)geteuid());
  else if (st->st_mode & 077)
    snprintf(why, size, "%s is open to other users (mode %03o); a secret key must have mode 600", path,
             (unsigned)(st->st_mode & 0777));
  else
    return true;
  return false;
}

// The whole text of a regular file. A pipe or a device would make its reader wait, so it is not opened to read.
static bool read_text(const char *path, bool secret, char text[LONGEST], char *why, size_t size) {
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = -1;
  if (fd < 0 || fstat(fd, &st) != 0)
    snprintf(why, size, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(st.st_mode) || st.st_size >= LONGEST)
    snprintf(why, size, "%s is no file of a key", path);
  else if (!secret || check_rights(path, &st, why, size)) {
    n = read(fd, text, LONGEST - 1);
    if (n < 0) snprintf(why, size, "%s: %s", path, strerror(errno));
  }
  if (fd >= 0) close(fd);
  text[n < 0 ? 0 : n] = '\0';
  return n >= 0;
}

static bool read_key(const char *path, bool secret, char key[SN_KEY_TEXT], char *why, size_t size) {
  char text[LONGEST];
  if (!read_text(path, secret, text, why, size)) return false;
  char *rest = NULL, *line = strtok_r(text, "\r\n", &rest);
  while (line && (!strncmp(line, "# ", 2) || !strcmp(line, "#"))) line = strtok_r(NULL, "\r\n", &rest);
  const bool ok = line && sn_key_is_valid(line);
  if (ok)
    memcpy(key, line, SN_KEY_TEXT);
  else
    snprintf(why, size, "%s has no key: 40 characters in Z85 on a line of their own", path);
  explicit_bzero(text, sizeof text);
  return ok;
}

bool sn_key_read_secret(const char *path, char key[SN_KEY_TEXT], char *why, size_t size) {
  return read_key(path, true, key, why, size);
}

bool sn_key_read_public(const char *text, char key[SN_KEY_TEXT], char *why, size_t size) {
  if (!sn_key_is_valid(text)) return read_key(text, false, key, why, size);
  memcpy(key, text, SN_KEY_TEXT);
  return true;
}

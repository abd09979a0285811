#include "physics/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *sn_file_open(const char *path) {
  struct stat st;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FILE *f = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "rb") : NULL;
  if (!f && fd >= 0) close(fd);
  return f;
}

// Removes a draft and returns false, with errno as it is.
static bool drop(const SnDraft *draft) {
  const int why = errno;
  unlink(draft->path);
  errno = why;
  return false;
}

bool sn_draft_begin(SnDraft *draft, const char *path, bool own) {
  struct stat st;
  errno = EEXIST;
  if (!own && stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return false;
  errno = ENAMETOOLONG;
  if (snprintf(draft->path, sizeof draft->path, "%s.XXXXXX", path) >= (int)sizeof draft->path) return false;
  const int fd = mkostemp(draft->path, O_CLOEXEC);
  if (fd < 0) return false;
  draft->to = fdopen(fd, "wb");
  if (draft->to) return true;
  drop(draft);
  close(fd);
  return false;
}

bool sn_draft_end(SnDraft *draft, const char *path, unsigned mode, bool whole) {
  whole = whole && !ferror(draft->to) && fflush(draft->to) == 0 && fchmod(fileno(draft->to), mode) == 0;
  const int why = errno;
  const bool closed = fclose(draft->to) == 0;
  if (!whole) errno = why;
  if (whole && closed && rename(draft->path, path) == 0) return true;
  return drop(draft);
}

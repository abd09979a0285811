// A kept session may end the daemon by the first plan after it was restored, when it is not marked any more: all of
// them would have marks until somebody asks for a plan, and ends that have nothing to do with them would count. So the
// planner thread says whose such a plan it works at, by one store, and whoever handles the signal of a crash writes
// that down. A crash of another thread is not put down to it; an abort is, as of a watchdog whose planner hangs.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/keep/keeper_private.h"

static const char note_name[] = "crashed";

enum { TRIES_MOST = 1000 };

// What is written down.
typedef struct Note {
  uint64_t session, tries;  // see SnKept
} Note;

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes };
static struct sigaction before[CRASHES];
static _Atomic(SnKeeper *) watching;

static bool may_be_a_plan(int number) {
  char name[16] = "";
  prctl(PR_GET_NAME, name, 0, 0, 0);
  return number == SIGABRT || !strcmp(name, "planner");
}

// Handles the signal, then lets those who did so before.
static void crash(int number) {
  SnKeeper *k = atomic_exchange(&watching, NULL);
  const SnKept *kept = k ? atomic_load(&k->first_plan) : NULL;
  if (kept && may_be_a_plan(number)) {
    const Note note = {kept->id, (uint64_t)kept->ends};
    const int fd = openat(k->folder.fd, note_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    const ssize_t n = fd >= 0 ? write(fd, &note, sizeof note) : 0;
    (void)n;
    if (fd >= 0) close(fd);
  }
  for (int i = 0; i < CRASHES; i++)
    if (crashes[i] == number) sigaction(number, &before[i], NULL);
  raise(number);
}

void sn_crash_note_watch(SnKeeper *k) {
  struct sigaction action = {.sa_handler = crash};
  sigemptyset(&action.sa_mask);
  atomic_store(&k->first_plan, NULL);
  atomic_store(&watching, k);
  for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &action, &before[i]);
}

void sn_crash_note_end(SnKeeper *k) {
  if (atomic_exchange(&watching, NULL) != k) return;
  for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &before[i], NULL);
}

void sn_crash_note_read(SnKeeper *k) {
  Note note = {0};
  struct stat st;
  const int fd = openat(k->folder.fd, note_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  const bool whole = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, &note, sizeof note) == (ssize_t)sizeof note;
  close(fd);
  unlinkat(k->folder.fd, note_name, 0);
  if (!whole || note.tries < 1 || note.tries > TRIES_MOST) return;
  for (SnKept *kept = k->first; kept; kept = kept->next)
    if (kept->id == note.session && kept->tries < (int)note.tries) kept->tries = (int)note.tries;
}

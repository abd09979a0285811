// Results of contests in a folder, a file for each model and number of threads: lines of text, the key before the
// figures. What is written is a whole file or none.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <dlfcn.h>
#include <sys/stat.h>

#include "physics/base/files.h"
#include "planner/backend/backend_impl.h"
#include "planner/backend/contest.h"

#define HEADER "sinew-contest 1"

enum { PATH = 4096, LINE = 5000 };

// The file that a function lies in, its size and time of change; "" where that is not known.
static void file_text(void (*function)(const SnBackend *, char *, int), char *text, size_t size) {
  union {
    void (*function)(const SnBackend *, char *, int);
    void *address;
  } at = {.function = function};
  Dl_info about;
  struct stat file;
  text[0] = '\0';
  if (dladdr(at.address, &about) && about.dli_fname && stat(about.dli_fname, &file) == 0)
    snprintf(text, size, "%s %lld %lld.%09ld", about.dli_fname, (long long)file.st_size, (long long)file.st_mtim.tv_sec,
             file.st_mtim.tv_nsec);
}

void sn_contest_key(const SnBackend *device, int threads, SnContestKey *key) {
  *key = (SnContestKey){.threads = threads};
  sn_backend_describe(device, key->device, sizeof key->device);
  file_text(device->describe, key->library, sizeof key->library);
  file_text(sn_backend_describe, key->program, sizeof key->program);
}

static void path_of(const char *folder, const SnContestKey *key, char path[PATH]) {
  snprintf(path, PATH, "%s/contest-%016" PRIx64 "-%d.txt", folder, key->model, key->threads);
}

static bool has_line(FILE *f, const char *want) {
  char line[LINE];
  if (!fgets(line, sizeof line, f)) return false;
  line[strcspn(line, "\n")] = '\0';
  return strcmp(line, want) == 0;
}

static bool read_row(const char *line, SnContest *c) {
  SnContestRow row = {0};
  char name[32];
  int scaled[SN_CONTEST_CPUS], kind = 0;
  if (sscanf(line, "%31s %d %lf %lf %d %lf %d", name, &row.count, &row.device, &row.cpu[0], &scaled[0], &row.cpu[1],
             &scaled[1]) != 7)
    return false;
  while (kind < SN_NCONTEST && strcmp(name, sn_contest_name((SnContestKind)kind)) != 0) ++kind;
  if (kind == SN_NCONTEST || c->rows[kind] == SN_CONTEST_SIZES || row.count < 1) return false;
  if (!(row.device > 0 && row.cpu[0] > 0 && row.cpu[1] >= 0)) return false;
  for (int k = 0; k < SN_CONTEST_CPUS; ++k) row.scaled[k] = scaled[k] != 0;
  c->row[kind][c->rows[kind]++] = row;
  return true;
}

bool sn_contest_kept(const char *folder, const SnContestKey *key, SnContest *contest) {
  char path[PATH], line[LINE];
  path_of(folder, key, path);
  FILE *f = sn_file_open(path);
  *contest = (SnContest){0};
  bool ok = f && has_line(f, HEADER) && has_line(f, key->device) && has_line(f, key->library) &&
            has_line(f, key->program) && fgets(line, sizeof line, f) &&
            sscanf(line, "steps_each %d", &contest->steps) == 1 && contest->steps > 0;
  while (ok && fgets(line, sizeof line, f) && strcmp(line, "end\n") != 0) ok = read_row(line, contest);
  ok = ok && strcmp(line, "end\n") == 0;
  if (f) fclose(f);
  return ok;
}

static void write_rows(FILE *f, const SnContest *c) {
  for (int kind = 0; kind < SN_NCONTEST; ++kind)
    for (int i = 0; i < c->rows[kind]; ++i) {
      const SnContestRow *r = &c->row[kind][i];
      fprintf(f, "%s %d %.17g %.17g %d %.17g %d\n", sn_contest_name((SnContestKind)kind), r->count, r->device,
              r->cpu[0], r->scaled[0], r->cpu[1], r->scaled[1]);
    }
}

SnCode sn_contest_keep(const char *folder, const SnContestKey *key, const SnContest *contest, SnError *err) {
  char path[PATH];
  SnDraft draft;
  path_of(folder, key, path);
  const bool begun = sn_draft_begin(&draft, path, true);
  if (begun) {
    fprintf(draft.to, "%s\n%s\n%s\n%s\nsteps_each %d\n", HEADER, key->device, key->library, key->program,
            contest->steps);
    write_rows(draft.to, contest);
    fprintf(draft.to, "end\n");
  }
  if (begun && sn_draft_end(&draft, path, 0600, true)) return SN_OK;
  return sn_fail(err, SN_ERR_IO, "%s cannot be written", path);
}

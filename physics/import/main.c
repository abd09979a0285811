// sinew-import: MJCF or MuJoCo's compiled models -> flat model, in a process of its own, because MuJoCo's loader can
// crash, hang, exhaust memory or exit on a bad file. sinewd (physics/import/model_cache.c) runs it as a child. MuJoCo
// runs in a child of this one, under limits on memory and time and in a sandbox (sandbox_private.h). This process opens
// the files that are written before, names them after, and says in words how the child ended.
//
// Exit status: 0 imported, 2 the model uses what is not supported (all of it listed on standard error), 3 it cannot be
// loaded (or MuJoCo crashed on it), 4 a limit (memory, time, sizes) was reached, 5 the output cannot be written.
#include <argp.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <mujoco/mujoco.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "physics/base/files.h"
#include "physics/base/output.h"
#include "physics/import/import_files_private.h"
#include "physics/import/import_mjcf.h"
#include "physics/import/sandbox_private.h"
#include "physics/model/model_file.h"

enum { EXIT_IMPORTED = 0, EXIT_UNSUPPORTED = 2, EXIT_LOAD = 3, EXIT_LIMIT = 4, EXIT_WRITE = 5 };

// A file that is written in the end.
typedef struct Output {
  const char *path;  // NULL: not wanted
  FILE *file;        // in memory
} Output;

typedef struct Settings {
  const char *model, *folder;
  Output out, depends;
  const char *name;  // of the model, for texts
  int seconds, megabytes;
  bool json;
  bool required;  // where there is no sandbox nothing is imported
} Settings;

static Settings settings = {.seconds = 60, .megabytes = 4096};

static int whole(const struct argp_state *state, const char *name, const char *arg, int least, int most) {
  char *end;
  const long x = strtol(arg, &end, 10);
  if (end == arg || *end || x < least || x > most)
    argp_error(state, "--%s '%s': expected a number from %d to %d", name, arg, least, most);
  return (int)x;
}

static int parse(int key, char *arg, struct argp_state *state) {
  Settings *s = state->input;
  switch (key) {
    case 'o':
      s->out.path = arg;
      return 0;
    case 'f':
      s->folder = arg;
      return 0;
    case 'd':
      s->depends.path = arg;
      return 0;
    case 'j':
      s->json = true;
      return 0;
    case 's':
      s->required = !strcmp(arg, "required");
      if (!s->required && strcmp(arg, "wanted") != 0) argp_error(state, "--sandbox %s: wanted or required", arg);
      return 0;
    case 't':
      s->seconds = whole(state, "seconds", arg, 1, 3600);
      return 0;
    case 'm':
      s->megabytes = whole(state, "memory", arg, 64, 1000000);
      return 0;
    case ARGP_KEY_ARG:
      if (s->model) argp_error(state, "more than one MODEL: %s", arg);
      s->model = arg;
      return 0;
    case ARGP_KEY_END:
      if (!s->model) argp_error(state, "a MODEL is needed");
      s->name = s->folder ? "model in memory" : s->model;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

// Prints the verdict, as JSON on standard output or as text on standard error, and returns the exit status.
static int finish(int status, const char *text, const SnModel *m) {
  if (!settings.json) {
    if (status != EXIT_IMPORTED) fprintf(stderr, "%s\n", text);
    return status;
  }
  static const char *const verdict[] = {"imported", "", "unsupported", "error", "limit", "error"};
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "unsupported");
  cJSON_AddStringToObject(root, "model", settings.name);
  cJSON_AddStringToObject(root, "verdict", verdict[status]);
  if (status >= EXIT_LOAD) cJSON_AddStringToObject(root, "error", text);
  for (const char *p = text; status == EXIT_UNSUPPORTED && *p;) {
    const size_t n = strcspn(p, "\n");
    char *line = strndup(p, n);
    if (line) cJSON_AddItemToArray(list, cJSON_CreateString(line));
    free(line);
    p += n + (p[n] == '\n');
  }
  if (m) {
    cJSON *sizes = cJSON_AddObjectToObject(root, "sizes");
#define SN_SIZE(name) cJSON_AddNumberToObject(sizes, #name, m->name);
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
  }
  char *out = cJSON_Print(root);
  if (!out) {
    fprintf(stderr, "%s: out of memory for the verdict\n", settings.name);
    status = EXIT_LIMIT;
  } else {
    puts(out);
  }
  sn_output_check();  // an error of MuJoCo ends the process by _exit
  cJSON_free(out);
  cJSON_Delete(root);
  return status;
}

static char warned[1000];  // MuJoCo's latest warning

// MuJoCo's messages: warnings to standard error; an error ends the program, as MuJoCo asks of a handler.
static void on_message(const mjLogMessage *message) {
  if (message->level == mjLOG_WARNING) {
    snprintf(warned, sizeof warned, "%s", message->subject);
    fprintf(stderr, "warning: %s\n", message->subject);
  }
  if (message->level != mjLOG_ERROR) return;
  const bool memory = strstr(message->subject, "allocate") || strstr(message->subject, "memory");
  char text[1200];
  snprintf(text, sizeof text, "%s: MuJoCo: %s", settings.name, message->subject);
  fflush(stderr);
  const int status = finish(memory ? EXIT_LIMIT : EXIT_LOAD, text, NULL);
  fflush(NULL);
  _exit(status);
}

// Limits on memory, processor time and real time. Signals that the loader causes end it: its parent says which.
static void limit_resources(const Settings *s) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU, SIGALRM};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) signal(signals[i], SIG_DFL);
  const rlim_t seconds = (rlim_t)s->seconds;
  setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = seconds, .rlim_max = seconds + 1});
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  alarm((unsigned)s->seconds);
#ifndef SN_SANITIZED  // sanitizers reserve terabytes
  const rlim_t bytes = (rlim_t)s->megabytes << 20;
  setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = bytes, .rlim_max = bytes});
#endif
}

// All bytes of a file, or NULL and errno.
static void *read_file(const char *path, int *size) {
  FILE *f = fopen(path, "rbe");
  if (!f) return NULL;
  char *bytes = NULL;
  const long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
  rewind(f);
  if (n > SN_MODEL_IMAGE_MAX) errno = EFBIG;
  if (n >= 0 && n <= SN_MODEL_IMAGE_MAX) bytes = malloc((size_t)n + 1);
  if (bytes && fread(bytes, 1, (size_t)n, f) != (size_t)n) {
    free(bytes);
    bytes = NULL;
  }
  fclose(f);
  *size = (int)n;
  return bytes;
}

// Whether a file can be read; a folder cannot, as errno says then.
static bool is_readable(const char *path) {
  struct stat st;
  if (access(path, R_OK) != 0) return false;
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return true;
  errno = EISDIR;
  return false;
}

// The compiled model, or NULL and MuJoCo's own text. The list of files has those from here on, but not the one whose
// bytes count as another's.
static mjModel *load(const Settings *s, char *text, size_t size) {
  char why[1000] = "";
  int n = 0;
  void *bytes = s->folder ? read_file(s->model, &n) : NULL;
  if (s->folder ? !bytes : !is_readable(s->model)) {
    snprintf(text, size, "%s: %s", s->model, strerror(errno));
    return NULL;
  }
  sn_import_files_start();
  mjModel *mj =
      bytes ? sn_import_read_bytes(bytes, n, s->folder, why, sizeof why) : sn_import_read(s->model, why, sizeof why);
  if (!mj)
    snprintf(text, size, "%s: MuJoCo cannot load it: %s", s->name, *why ? why : *warned ? warned : "it says no reason");
  free(bytes);
  return mj;
}

static void write_image(const Settings *s, const SnModel *m, SnError *err) {
  size_t size = 0;
  void *image = sn_model_write(m, &size, err);
  if (image && (fwrite(image, 1, size, s->out.file) != size || fflush(s->out.file) != 0))
    sn_fail(err, SN_ERR_IO, "%s: could not write the image: %s", s->out.path, strerror(errno));
  free(image);
}

// Writes what was asked for of a compiled model, says how that went, and returns the exit status.
static int import_model(const Settings *s, const mjModel *mj) {
  char text[1400];
  if (s->depends.file && !sn_import_files_save(s->depends.file)) {
    snprintf(text, sizeof text, "%s: could not write the list of files", s->depends.path);
    return finish(EXIT_WRITE, text, NULL);
  }
  int count = 0;
  char *unsupported = sn_import_unsupported(mj, &count);
  if (!unsupported) return finish(EXIT_LIMIT, "out of memory", NULL);
  if (count) {
    unsupported[strlen(unsupported) - 1] = 0;
    finish(EXIT_UNSUPPORTED, unsupported, NULL);
    free(unsupported);
    return EXIT_UNSUPPORTED;
  }
  free(unsupported);
  SnError err = {0};
  SnModel *m = sn_import_mjmodel(mj, &err);
  if (m && s->out.file) write_image(s, m, &err);
  const int status = err.code == SN_OK                                       ? EXIT_IMPORTED
                     : err.code == SN_ERR_LIMIT || err.code == SN_ERR_MEMORY ? EXIT_LIMIT
                     : err.code == SN_ERR_IO                                 ? EXIT_WRITE
                                                                             : EXIT_LOAD;
  char named[sizeof err.text + 1400];
  snprintf(named, sizeof named, "%s: %s", s->name, err.text);
  const int ended = finish(status, named, m);
  sn_model_free(m);
  return ended;
}

// What the child does. Returns the exit status.
static int run(const Settings *s) {
  char text[1400];
  SnError err = {0};
  mju_setLogHandler(on_message);
  limit_resources(s);
  if (sn_sandbox_enter(&err) != SN_OK) {
    snprintf(text, sizeof text, "%s: no sandbox: %.1000s", s->name, err.text);
    if (s->required) return finish(EXIT_LIMIT, text, NULL);
    fprintf(stderr, "warning: %s\n", text);
  }
  mjModel *mj = load(s, text, sizeof text);
  if (!mj) return finish(strstr(text, "allocate memory") ? EXIT_LIMIT : EXIT_LOAD, text, NULL);
  const int status = import_model(s, mj);
  mj_deleteModel(mj);
  return status;
}

// ---- the process that is started ----

// Makes a file in memory for the child: on the disk nothing is left when both processes are killed.
static bool open_output(Output *o) {
  if (!o->path) return true;
  const int fd = memfd_create("output", MFD_CLOEXEC);
  o->file = fd >= 0 ? fdopen(fd, "w+") : NULL;
  if (!o->file && fd >= 0) close(fd);
  return o->file != NULL;
}

static bool copy(FILE *from, FILE *to) {
  char bytes[65536];
  size_t n;
  for (rewind(from); (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
    if (fwrite(bytes, 1, n, to) != n) return false;
  return !ferror(from);
}

// Writes a file whole, or leaves what was there; false with errno.
static bool write_output(const Output *o) {
  SnDraft draft;
  return sn_draft_begin(&draft, o->path, false) && sn_draft_end(&draft, o->path, 0644, copy(o->file, draft.to));
}

// Says how the child ended where it could not say it itself, and returns the exit status.
static int judge(const Settings *s, int status) {
  char text[1400];
  if (WIFEXITED(status) && WEXITSTATUS(status) <= EXIT_WRITE && WEXITSTATUS(status) != 1) return WEXITSTATUS(status);
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool late = number == SIGXCPU || number == SIGALRM;
  if (late)
    snprintf(text, sizeof text, "%s: importing took longer than allowed", s->name);
  else if (number == SIGABRT)
    snprintf(text, sizeof text,
             "%s: MuJoCo's compiler gave up on this file by signal %d: out of memory, or a check inside it failed",
             s->name, number);
  else if (number == SIGKILL)
    snprintf(text, sizeof text, "%s: was killed, as where a machine runs out of memory", s->name);
  else if (number == SIGXFSZ)
    snprintf(text, sizeof text, "%s: was killed, since a file that it writes may not be so long", s->name);
  else if (number)
    snprintf(text, sizeof text, "%s: MuJoCo's compiler crashed by signal %d on this file (%s)", s->name, number,
             strsignal(number));
  else
    snprintf(text, sizeof text, "%s: MuJoCo's compiler ended the program on this file, with status %d", s->name,
             WEXITSTATUS(status));
  const bool limit = late || number == SIGABRT || number == SIGKILL || number == SIGXFSZ;
  return finish(limit ? EXIT_LIMIT : EXIT_LOAD, text, NULL);
}

// Runs the child, which ends when this process does.
static int run_child(Settings *s) {
  const pid_t self = getpid();
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child < 0) return finish(EXIT_LIMIT, strerror(errno), NULL);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    exit(getppid() == self ? run(s) : EXIT_LIMIT);
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return judge(s, status);
}

// Writes what the child has written, where that is wanted, and returns the exit status.
static int end_output(Output *o, bool wanted, int status) {
  if (!o->file) return status;
  if (wanted && !write_output(o)) {
    const char *why = errno == EEXIST ? "not a regular file" : strerror(errno);
    fprintf(stderr, "%s: could not be written: %s\n", o->path, why);
    status = EXIT_WRITE;
  }
  fclose(o->file);
  return status;
}

static int import(Settings *s) {
  if (!open_output(&s->out) || !open_output(&s->depends)) return finish(EXIT_LIMIT, strerror(errno), NULL);
  int status = run_child(s);
  status = end_output(&s->depends, status == EXIT_IMPORTED || status == EXIT_UNSUPPORTED, status);
  return end_output(&s->out, status == EXIT_IMPORTED, status);
}

const char *argp_program_bug_address = NULL;

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"output", 'o', "OUT", 0, "write the flat model to this file (without it, the model is only checked)", 0},
      {"folder", 'f', "FOLDER", 0, "take the bytes of MODEL as those of a file in this folder (an absolute path)", 0},
      {"depends", 'd', "FILE", 0, "write the paths of all files that the model is made of, one a line", 0},
      {"sandbox", 's', "HOW", 0, "required: import nothing where this system has no sandbox; wanted: say so (wanted)",
       0},
      {"json", 'j', NULL, 0, "print the verdict and the model's sizes as JSON", 0},
      {"seconds", 't', "S", 0, "limit on processor time and on real time (default 60)", 0},
      {"memory", 'm', "MIB", 0, "limit on memory (default 4096)", 0},
      {0}};
  static const char doc[] =
      "Compiles an MJCF model with MuJoCo, or takes one that MuJoCo has compiled (MODEL.mjb), and writes it in the "
      "form "
      "that sinewd loads.\vExample: sinew-import hand.xml -o hand.sinew\n\nExit status: 0 imported, 2 the model uses "
      "what is not supported (all of it is listed), 3 it "
      "cannot be "
      "loaded, 4 a limit on memory, time or sizes was reached, 5 the output cannot be written.";
  const struct argp argp = {.options = options, .parser = parse, .args_doc = "MODEL", .doc = doc};
  argp_err_exit_status = EXIT_LOAD;
  sn_output_guard("sinew-import", EXIT_WRITE);
  argp_parse(&argp, argc, argv, 0, NULL, &settings);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGCHLD, SIG_DFL);
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);  // what the child must not write to
  return import(&settings);
}

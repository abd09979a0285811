// sinewd: reads its configuration, starts its threads, serves until it is told to stop.
#include <argp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/memory.h"
#include "daemon/base/realtime.h"
#include "daemon/daemon.h"
#include "daemon/models/repository.h"
#include "daemon/wire/wire.h"
#include "physics/base/clock.h"
#include "physics/base/number_text.h"
#include "physics/base/output.h"
#include "proto/places.h"

enum { OPTIONS_MAX = SN_CONFIG_SETTINGS, FIRST_OPTION = 1000 };

// What the command line says; applied after the configuration file.
typedef struct CommandLine {
  const char *file;  // --config
  bool check;        // --check
  bool machine;      // which also looks at the machine
  const char *name[256], *value[256];
  int n;
} CommandLine;

static error_t parse(int key, char *value, struct argp_state *state) {
  CommandLine *line = state->input;
  if (key == 'c') {
    line->file = value;
    return 0;
  }
  if (key == 'k') {
    if (value && strcmp(value, "configuration") != 0)
      argp_error(state, "--check=%s; allowed is --check or --check=configuration", value);
    line->check = true;
    line->machine = !value;
    return 0;
  }
  if (key == ARGP_KEY_ARG) argp_error(state, "'%s' is no option", value);
  if (key < FIRST_OPTION || key >= FIRST_OPTION + sn_config_count()) return ARGP_ERR_UNKNOWN;
  if (line->n == 256) argp_error(state, "too many options");
  line->name[line->n] = sn_config_info(key - FIRST_OPTION)->name;
  line->value[line->n++] = value;
  return 0;
}

// --help, from the table of settings.
static void make_options(struct argp_option *options, char names[][32], char docs[][256]) {
  options[0] =
      (struct argp_option){.name = "config",
                           .key = 'c',
                           .arg = "FILE",
                           .doc = "YAML file with the settings below; what the command line says comes on top"};
  options[1] = (struct argp_option){
      .name = "check",
      .key = 'k',
      .arg = "configuration",
      .flags = OPTION_ARG_OPTIONAL,
      .doc =
          "read configuration and keys, say what is wrong with them or missing for a start of this user, and end; "
          "--check=configuration does not look at the machine, as a reload does not"};
  for (int i = 0; i < sn_config_count(); i++) {
    const SnConfigInfo *row = sn_config_info(i);
    snprintf(names[i], 32, "%s", row->name);
    for (char *p = names[i]; *p; p++)
      if (*p == '_') *p = '-';
    if (row->type == SN_CONFIG_IS_INT || row->type == SN_CONFIG_IS_REAL)
      snprintf(docs[i], 256, "%s [%s to %s%s%s; %s]", row->doc, sn_number_text(row->lo).text,
               sn_number_text(row->hi).text, *row->unit ? " " : "", row->unit, sn_number_text(row->value).text);
    else if (row->type == SN_CONFIG_IS_CHOICE)
      snprintf(docs[i], 256, "%s: %s", row->doc, row->text);
    else
      snprintf(docs[i], 256, "%s", row->doc);
    options[i + 2] = (struct argp_option){.name = names[i], .key = FIRST_OPTION + i, .arg = "VALUE", .doc = docs[i]};
  }
}

static SnCode configure(void *command_line, SnConfig *config, SnError *err) {
  const CommandLine *line = command_line;
  sn_config_default(config);
  SnCode code = line->file ? sn_config_load(config, line->file, err) : SN_OK;
  // A list on the command line takes the place of the file's.
  bool fresh[OPTIONS_MAX] = {false};
  for (int i = 0; code == SN_OK && i < line->n; i++) {
    for (int k = 0; k < sn_config_count(); k++) {
      const SnConfigInfo *row = sn_config_info(k);
      if (row->type != SN_CONFIG_IS_LIST || strcmp(row->name, line->name[i]) || fresh[k]) continue;
      ((SnConfigList *)(void *)((char *)config + row->offset))->n = 0;
      fresh[k] = true;
    }
    code = sn_config_set(config, line->name[i], line->value[i], err);
  }
  return code == SN_OK ? sn_config_complete(config, err) : code;
}

// Signals that stop the daemon, or make it read its keys again, go to the event loop's descriptor alone; a client that
// is gone is no reason to end, nor is a file that may not grow.
static void block_signals(bool hangup) {
  sigset_t set;
  sigemptyset(&set);
  if (hangup) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

// What is started by nohup outlasts its terminal.
static bool is_ignored(int signal_number) {
  struct sigaction action;
  return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static SnCode open_flight(SnDaemon *d, SnError *err) {
  char schema[SN_PLACE_SIZE] = "";
  if (*d->config.flight_folder && !sn_place_of_schema(schema, sizeof schema))
    return sn_fail(err, SN_ERR_IO, "flight_folder: cannot tell where the schema lies");
  const SnFlightDef def = {.folder = d->config.flight_folder,
                           .schema = schema,
                           .seconds = d->config.flight_seconds,
                           .bytes = (size_t)d->config.flight_megabytes << 20,
                           .log = &d->log};
  return sn_flight_open(&def, &d->flight, err);
}

static SnCode start(SnDaemon *d, SnError *err) {
  d->started = sn_clock_now();
  d->version = 1;
  sn_repository_report(&d->config.models, SN_KIND_MODEL, &d->log);
  sn_repository_report(&d->config.tasks, SN_KIND_TASK, &d->log);
  SnCode code = d->config.lock_memory ? sn_realtime_lock_memory(err) : SN_OK;
  if (code == SN_OK) code = sn_access_init(&d->access, d->config.allow, err);
  if (code != SN_OK) return code;
  sn_metrics_init(&d->metrics);
  const double limit = (double)sn_memory_limit(d->config.memory_megabytes), megabyte = 1 << 20;
  const double all = megabyte * d->config.planners_megabytes;
  const double flight = *d->config.flight_folder ? megabyte * d->config.flight_megabytes : 0;
  sn_budget_init(&d->budget, megabyte * d->config.planner_megabytes, all > 0 ? all : fmax(1, 0.75 * limit - flight));
  code = open_flight(d, err);
  if (code != SN_OK) return code;
  sn_systemd_open(&d->systemd);
  if (!sn_outbox_init(&d->outbox) || !sn_records_init(&d->records, &d->outbox) ||
      !sn_sessions_init(&d->sessions, d->config.sessions) ||
      !sn_wire_arena_init(&d->arena, sn_wire_arena_budget((size_t)d->config.message_bytes)))
    return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  if (!sn_model_cache_has_sandbox())
    sn_log_event(&d->log, SN_LOG_WARNING, "no-sandbox: this system has no filters of calls (seccomp): models are %s",
                 d->config.import_sandbox ? "not compiled" : "compiled under limits alone");
  code = sn_models_init(&d->models, &d->config, err);
  const SnSchedulerDef def = {&d->config, &d->log, &d->outbox, &d->records, &d->models, &d->metrics};
  if (code == SN_OK) code = sn_keeper_start(&d->keeper, &d->config, &d->log, &d->outbox, &d->access, err);
  if (code == SN_OK) code = sn_scheduler_start(&d->scheduler, &def, err);
  if (code == SN_OK) code = sn_loader_start(d, err);
  return code == SN_OK ? sn_restore_sessions(d, err) : code;
}

// Also of a daemon that has started only in part.
static void stop(SnDaemon *d) {
  sn_flight_close(d->flight);
  sn_loader_stop(d);
  sn_scheduler_stop(&d->scheduler);
  sn_keeper_stop(&d->keeper);
  sn_models_free(&d->models);
  sn_wire_arena_free(&d->arena);
  sn_sessions_free(&d->sessions);
  sn_records_free(&d->records);
  sn_outbox_free(&d->outbox);
  sn_budget_free(&d->budget);
  sn_systemd_close(&d->systemd);
  sn_access_free(&d->access);
}

int main(int argc, char **argv) {
  static struct argp_option options[OPTIONS_MAX + 3];
  static char names[OPTIONS_MAX][32], docs[OPTIONS_MAX][256];
  static CommandLine line;
  static SnDaemon d;  // too large for the stack
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .doc =
          "sinewd plans for musculoskeletal robots: controllers send states over ZeroMQ and get plans back.\v"
          "Example: serve the user's own models, with a second endpoint on the loopback:\n\n"
          "  sinewd --models=$HOME/models --tasks=$HOME/tasks --tcp=tcp://127.0.0.1:7440\n\n"
          "SIGTERM and SIGINT end it after the running plans have been answered; SIGHUP reads the file of --config and "
          "the keys of `allow` again, or ends it where there is neither. SIGUSR1 opens `log_file` again. Exit status: "
          "0, 1 on failure."};
  argp_program_version = "sinewd " SN_VERSION;
  sn_output_guard("sinewd", EXIT_FAILURE);
  make_options(options, names, docs);
  argp_parse(&argp, argc, argv, 0, NULL, &line);

  SnError err = {0};
  static SnLogState log_state;
  d.log = (SnLog){STDERR_FILENO, SN_LOG_INFO, NULL};
  SnCode code = configure(&line, &d.config, &err);
  if (line.check) {
    if (code == SN_OK) code = sn_check_configuration(&d.config, &err);
    if (code == SN_OK && line.machine) code = sn_check_start(&d.config, &err);
    if (code != SN_OK) fprintf(stderr, "sinewd: %s\n", err.text);
    return code == SN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (code == SN_OK) code = sn_config_check_folders(&d.config, &err);
  d.log.level = d.config.log;
  d.configure = configure;
  d.command_line = &line;
  d.reloads = line.file || *d.config.allow;
  if (code == SN_OK) {
    sn_log_init(&log_state, d.config.log_rate);
    d.log.state = &log_state;
  }
  d.hangup = d.reloads || !is_ignored(SIGHUP);
  block_signals(d.hangup);
  if (!*d.config.log_file) sn_log_own(&d.log);
  if (code == SN_OK && *d.config.log_file) code = sn_log_open(&d.log, d.config.log_file, &err);
  if (code == SN_OK) code = sn_runtime_folder_make(&d.config, &err);
  if (code == SN_OK) code = sn_files_prepare(&d.config, &d.log, &err);
  bool started = code == SN_OK;
  if (started) code = start(&d, &err);
  // What comes and goes must not wait for plans. The threads of libzmq are started by this one.
  if (code == SN_OK) code = sn_realtime_priority(d.config.priority ? d.config.priority + 1 : 0, &err);
  if (code == SN_OK) code = sn_event_loop(&d, &err);
  if (code != SN_OK) sn_log_event(&d.log, SN_LOG_ERROR, "failed: %s", err.text);
  if (started) stop(&d);
  return code == SN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

#include "clients/mujoco_log.h"

#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program_name = "";
static int error_code = 1;

static void on_message(const mjLogMessage *message) {
  static char last[1024];
  if (message->level == mjLOG_ERROR) {
    fprintf(stderr, "%s: MuJoCo: %s\n", program_name, message->subject);
    exit(error_code);
  }
  if (message->level != mjLOG_WARNING || strcmp(last, message->subject) == 0) return;
  snprintf(last, sizeof last, "%s", message->subject);
  fprintf(stderr, "%s: MuJoCo warns: %s\n", program_name, message->subject);
}

void sn_mujoco_messages(const char *program, int exit_code) {
  program_name = program;
  error_code = exit_code;
  mju_setLogHandler(on_message);
}

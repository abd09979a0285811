#include "clients/reference/mujoco_log.h"

#include <mujoco/mujoco.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 16 };  // beyond them all others count as the last one

static const char *program_name = "";
static int error_code = 1;
static bool counting;
static SnMujocoWarning kind[KINDS];

static bool same_kind(const char *a, const char *b) {
  const size_t n = strcspn(a, "0123456789");
  return strcspn(b, "0123456789") == n && strncmp(a, b, n) == 0;
}

static void count(const char *text) {
  int i = 0;
  while (i < KINDS - 1 && kind[i].count && !same_kind(kind[i].first, text)) ++i;
  if (!kind[i].count++) snprintf(kind[i].first, sizeof kind[i].first, "%s", text);
}

static void on_message(const mjLogMessage *message) {
  static char last[1024];
  if (message->level == mjLOG_ERROR) {
    fprintf(stderr, "%s: MuJoCo: %s\n", program_name, message->subject);
    exit(error_code);
  }
  if (message->level != mjLOG_WARNING) return;
  if (counting) {
    count(message->subject);
    return;
  }
  if (strcmp(last, message->subject) == 0) return;
  snprintf(last, sizeof last, "%s", message->subject);
  fprintf(stderr, "%s: MuJoCo warns: %s\n", program_name, message->subject);
}

void sn_mujoco_messages(const char *program, int exit_code) {
  program_name = program;
  error_code = exit_code;
  mju_setLogHandler(on_message);
}

void sn_mujoco_count_warnings(void) { counting = true; }

const SnMujocoWarning *sn_mujoco_warning(int i) { return i < KINDS && kind[i].count ? &kind[i] : NULL; }

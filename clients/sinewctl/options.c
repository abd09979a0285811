#include "clients/sinewctl/options_private.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/base/daemon_args.h"
#include "clients/sinewctl/commands_private.h"

enum { KEY_VERSION = 256, KEY_SECONDS, KEY_COUNT, KEY_INTERVAL };

// Digits alone: strtoull would take a sign, and blanks before it.
bool options_whole_number(const char *text, uint64_t *value) {
  char *end;
  errno = 0;
  *value = strtoull(text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static const struct argp_option OPTIONS[] = {
    {"json", 'j', NULL, 0, "print the reply as one line of JSON", 0},
    {"timeout", 't', "SECONDS", 0, "wait for a reply, above 0 (default 60)", 0},
    {"seed", 's', "N", 0, "seed of open and reset", 0},
    {"name", 'n', "NAME", 0, "of the session that is opened: it outlasts the daemon, and is found again by it", 0},
    {"deadline", 'd', "SECONDS", 0, "the daemon's time for a plan (default 0.1)", 0},
    {"version", KEY_VERSION, "N", 0, "version of the configuration (default: in force)", 0},
    {"seconds", KEY_SECONDS, "S", 0, "watch for so long (default: until the session ends); trace: wait so long", 0},
    {"count", KEY_COUNT, "N", 0, "watch: so many looks; trace: so many plans (default 1)", 0},
    {"interval", KEY_INTERVAL, "S", 0, "watch: ask every S seconds (default: wait for telemetry)", 0},
    {"gradient", 'g', NULL, 0, "evaluate: the derivative of the cost too", 0},
    {"states", 'x', NULL, 0, "ask for the predicted states too", 0},
    {0}};

enum { HELP_INDENT = 33, HELP_WIDTH = 78 };  // columns of the list of commands

// Writes words from the column on where the text of a command begins, and goes on there in further lines.
static void wrap_text(FILE *f, const char *text) {
  int column = HELP_INDENT;
  for (size_t n; *text; text += n + strspn(text + n, " ")) {
    n = strcspn(text, " ");
    if (column > HELP_INDENT && column + 1 + (int)n > HELP_WIDTH) {
      fprintf(f, "\n%*s", HELP_INDENT, "");
      column = HELP_INDENT;
    } else if (column > HELP_INDENT) {
      fputc(' ', f);
      column++;
    }
    column += fprintf(f, "%.*s", (int)n, text);
  }
  fputc('\n', f);
}

static char *help_text(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)(uintptr_t)text;
  char *out = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&out, &size);
  int count;
  const Command *all = commands_all(&count);
  fputs("Commands:\n", f);
  for (int i = 0; i < count; ++i) {
    const int used = fprintf(f, "  %s %s", all[i].name, all[i].arguments);
    fprintf(f, "%*s", HELP_INDENT - used, "");
    wrap_text(f, all[i].text);
  }
  fputs(
      "\nExample:\n  sinewctl tasks\n  sinewctl --seed 3 open arm_reach candidates=128\n  sinewctl --json stats\n"
      "\nExit status: 0; 1 where a request is refused or not answered, or a word of the\ncommand is wrong; 64 where an "
      "option is wrong. health: 0 ready, 2 serving\nwhile its device is lost, 1 otherwise.\n",
      f);
  fclose(f);
  return out;
}

// A number of an option, of at least 0, or above 0.
static double read_time(struct argp_state *state, const char *option, const char *text, bool above) {
  char *end;
  const double x = strtod(text, &end);
  if (end == text || *end || !isfinite(x) || x < 0 || (above && x == 0))
    argp_error(state, "%s '%s': expected a number of seconds, %s 0", option, text, above ? "above" : "at least");
  return x;
}

static uint64_t read_whole(struct argp_state *state, const char *option, const char *text, uint64_t least) {
  uint64_t x = 0;
  if (!options_whole_number(text, &x) || x < least)
    argp_error(state, "%s '%s': expected a whole number from %llu on", option, text, (unsigned long long)least);
  return x;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  Options *o = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = &o->daemon;
      return 0;
    case 'j':
      o->json = true;
      return 0;
    case 'g':
      o->gradient = true;
      return 0;
    case 'x':
      o->states = true;
      return 0;
    case 't':
      o->timeout = read_time(state, "--timeout", arg, true);
      return 0;
    case 'd':
      o->deadline = read_time(state, "--deadline", arg, false);
      return 0;
    case KEY_SECONDS:
      o->watch.seconds = read_time(state, "--seconds", arg, true);
      return 0;
    case KEY_INTERVAL:
      o->watch.interval = read_time(state, "--interval", arg, true);
      return 0;
    case KEY_VERSION:
      o->version = read_whole(state, "--version", arg, 0);
      return 0;
    case KEY_COUNT:
      o->watch.count = read_whole(state, "--count", arg, 1);
      return 0;
    case 's':
      o->has_seed = true;
      o->seed = read_whole(state, "--seed", arg, 0);
      return 0;
    case 'n':
      if (!*arg) argp_error(state, "--name '': expected a name; leave it out for a session without one");
      o->name = arg;
      return 0;
    case ARGP_KEY_ARG:
      if (o->nword == (int)(sizeof o->word / sizeof *o->word)) argp_error(state, "too many words");
      o->word[o->nword++] = arg;
      return 0;
    case ARGP_KEY_END:
      if (o->nword == 0) argp_usage(state);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

void options_read(int argc, char **argv, Options *options) {
  const struct argp argp = {OPTIONS,
                            parse_option,
                            "COMMAND [ARGUMENT...]",
                            "Sends one request to sinewd and prints the reply, or watches a session.\v",
                            sn_daemon_args,
                            help_text,
                            NULL};
  argp_parse(&argp, argc, argv, 0, NULL, options);
}

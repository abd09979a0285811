#include "clients/base/daemon_args.h"

enum { KEY_SERVER = 256, KEY_OWN };

static const struct argp_option options[] = {
    {"endpoint", 'e', "ADDRESS", 0, "of the daemon (default: its ipc endpoint of this user)", 0},
    {"server-key", KEY_SERVER, "KEY|FILE", 0, "the daemon's public key, or its file, where a tcp address asks for keys",
     0},
    {"key", KEY_OWN, "FILE", 0, "file of the own secret key, as sinewctl keygen makes it", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  SinewClientDef *def = state->input;
  switch (key) {
    case 'e':
      def->endpoint = arg;
      return 0;
    case KEY_SERVER:
      def->server_key = arg;
      return 0;
    case KEY_OWN:
      def->key_file = arg;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

const struct argp_child sn_daemon_args[] = {{&argp, 0, NULL, 0}, {0}};

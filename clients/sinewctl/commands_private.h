// The commands of sinewctl: each builds a request from the words of the command line.
#ifndef SINEW_CLIENTS_SINEWCTL_COMMANDS_PRIVATE_H_
#define SINEW_CLIENTS_SINEWCTL_COMMANDS_PRIVATE_H_

#include "clients/libsinew_client/reflect.h"
#include "clients/libsinew_client/wire.h"
#include "clients/sinewctl/options_private.h"

// Holds the request that a command builds; its memory is freed with the message tree.
typedef struct Call {
  const Options *opt;
  Sinew__V1__Request request;
  uint64_t session;  // to be watched or traced
  char error[SN_MESSAGE_ERROR];
} Call;

// Says what comes of a command: most ask the daemon once.
typedef enum CommandWay { COMMAND_ASKS, COMMAND_WATCHES, COMMAND_TRACES, COMMAND_FLIGHT, COMMAND_KEYGEN } CommandWay;

// Describes a command. `run` builds its request, or says in call->error what is wrong; keygen has none.
typedef struct Command {
  const char *name, *arguments, *text;
  int min_words, max_words;  // the command's name included
  bool (*run)(Call *call);
  CommandWay way;
} Command;

// Returns all commands.
const Command *commands_all(int *count);

// Returns the command of this name, or NULL.
const Command *commands_find(const char *name);

#endif

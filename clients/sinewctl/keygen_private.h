// sinewctl keygen: a pair of keys for the daemon or for a client.
#ifndef SINEW_CLIENTS_SINEWCTL_KEYGEN_PRIVATE_H_
#define SINEW_CLIENTS_SINEWCTL_KEYGEN_PRIVATE_H_

#include "proto/key_file.h"

// Makes a pair and writes the secret key to `path` (mode 0600), the public one to path.pub and to `public`. Files that
// are there already are left alone: returns false, and says why in error[size].
bool keygen_run(const char *path, char public[SN_KEY_TEXT], char *error, size_t size);

#endif

// sinewctl flight FILE: what the daemon's flight recorder has written, for people or as JSON.
#ifndef SINEW_CLIENTS_SINEWCTL_FLIGHT_PRIVATE_H_
#define SINEW_CLIENTS_SINEWCTL_FLIGHT_PRIVATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Prints each message among the bytes of a file, a line each. Returns NULL, or what is wrong with what follows them.
const char *flight_print(FILE *out, const void *bytes, size_t size, bool json);
// Prints those of a file. Returns false and says why where it cannot be read to its end.
bool flight_read(const char *path, bool json, char *error, size_t size);

#endif

// Files of CURVE keys, for the daemon and for clients. A key is 40 characters in Z85 (ZeroMQ's RFC 32).
//
// A file of a key has it on its first line that is no comment; a comment begins with "# ", which no key does.
#ifndef SINEW_PROTO_KEY_FILE_H_
#define SINEW_PROTO_KEY_FILE_H_

#include <stdbool.h>
#include <stddef.h>

enum { SN_KEY_TEXT = 41 };  // a key in Z85 and its zero

// Returns whether a text is 40 characters of Z85.
bool sn_key_is_valid(const char *text);

// Reads a secret key. The file must belong to this user or to root, and be closed to all others (mode 0600 or 0400).
// Returns false and why[size], which names the file, when that is not so or there is no key in it.
bool sn_key_read_secret(const char *path, char key[SN_KEY_TEXT], char *why, size_t size);

// Reads a public key: `text` is the key itself, or the path of its file. Returns false and why[size] as above.
bool sn_key_read_public(const char *text, char key[SN_KEY_TEXT], char *why, size_t size);

#endif

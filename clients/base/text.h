// Text that came from elsewhere (names, messages of a daemon), made fit for a terminal.
#ifndef SINEW_CLIENTS_BASE_TEXT_H_
#define SINEW_CLIENTS_BASE_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Copies text into out (size bytes, cut off at the end of a character). Control characters, and bytes that are no
// UTF-8, become \xNN, so that none of it steers a terminal. With `lines` ends of lines stay as they are.
void sn_printable(char *out, size_t size, const char *text, bool lines);

// Prints text of any length likewise.
void sn_print_text(FILE *out, const char *text, bool lines);

// Prints a line of JSON, itself without ends of lines; NULL, where memory has run out, as {}. Control characters in its
// strings become \uNNNN; bytes that are no UTF-8 become the character that stands for such.
void sn_print_json(FILE *out, const char *json);

#endif

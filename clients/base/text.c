#include "clients/base/text.h"

#include <stdint.h>
#include <string.h>

enum { PIECE = 17 };  // bytes of four escapes and the end

// The character at text and its bytes; 0 bytes: no UTF-8.
static uint32_t decode(const unsigned char *text, size_t *size) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char c = text[0];
  *size = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
  uint32_t x = *size < 2 ? c : c & (0x7fu >> *size);
  for (size_t i = 1; i < *size; ++i) {
    if (text[i] >> 6 != 2) *size = 0;
    x = x << 6 | (text[i] & 0x3fu);
  }
  const bool surrogate = x >> 11 == 0xd800 >> 11;
  if (*size > 1 && (x < least[*size] || x > 0x10ffff || surrogate)) *size = 0;
  return x;
}

static bool is_control(uint32_t x) { return x < 0x20 || (x >= 0x7f && x < 0xa0); }

// Writes the first character of text as it may be printed; returns its bytes in text.
static size_t next_piece(const char *text, bool lines, char piece[PIECE]) {
  size_t size;
  const uint32_t x = decode((const unsigned char *)text, &size);
  if (size > 0 && (!is_control(x) || (lines && x == '\n'))) {
    memcpy(piece, text, size);
    piece[size] = '\0';
    return size;
  }
  size += size == 0;
  for (size_t i = 0; i < size; ++i) snprintf(piece + 4 * i, 5, "\\x%02x", (unsigned char)text[i]);
  return size;
}

void sn_printable(char *out, size_t size, const char *text, bool lines) {
  char piece[PIECE];
  size_t used = 0;
  while (*text) {
    text += next_piece(text, lines, piece);
    const size_t n = strlen(piece);
    if (used + n >= size) break;
    memcpy(out + used, piece, n);
    used += n;
  }
  if (size) out[used] = '\0';
}

void sn_print_text(FILE *out, const char *text, bool lines) {
  char piece[PIECE];
  while (*text) {
    text += next_piece(text, lines, piece);
    fputs(piece, out);
  }
}

void sn_print_json(FILE *out, const char *json) {
  if (!json) json = "{}";
  while (*json) {
    size_t size;
    const uint32_t x = decode((const unsigned char *)json, &size);
    if (size == 0)
      fputs("\\ufffd", out);
    else if (is_control(x))
      fprintf(out, "\\u%04x", (unsigned)x);
    else
      fwrite(json, 1, size, out);
    json += size + (size == 0);
  }
  fputc('\n', out);
}

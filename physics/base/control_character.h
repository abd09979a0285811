// Control characters in UTF-8: those of one byte, and those of two, U+0080 to U+009F, which command terminals as well.
#ifndef SINEW_PHYSICS_BASE_CONTROL_CHARACTER_H_
#define SINEW_PHYSICS_BASE_CONTROL_CHARACTER_H_

// Returns the bytes of the control character that begins at s, in a text with a zero byte at its end; 0: there is none.
static inline int sn_control_length(const unsigned char *s) {
  if (s[0] < 0x20 || s[0] == 0x7f) return 1;
  return s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0 ? 2 : 0;
}

#endif

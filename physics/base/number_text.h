// Numbers in messages: one that is out of bounds by a little must not read as the bound.
#ifndef SINEW_PHYSICS_BASE_NUMBER_TEXT_H_
#define SINEW_PHYSICS_BASE_NUMBER_TEXT_H_

// Counts the bytes of such a text.
enum { SN_NUMBER_TEXT = 32 };

// Holds the text of a number.
typedef struct SnNumberText {
  char text[SN_NUMBER_TEXT];
} SnNumberText;

// Returns a number as %g writes it, with as many digits more as tell it from all others.
SnNumberText sn_number_text(double x);

#endif

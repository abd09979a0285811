// Numbers as text with a decimal point, whatever the locale of the program. One that links the library may have set a
// locale with a comma.
#ifndef SINEW_PLANNER_BASE_DECIMAL_H_
#define SINEW_PLANNER_BASE_DECIMAL_H_

#include <stddef.h>

// Reads a number as strtod does in the C locale. *end gets the first character after it, `text` where there is none.
double sn_decimal_read(const char *text, char **end);

// Writes x to text[size], with as many digits as sn_decimal_read needs to get x again, and returns text.
char *sn_decimal_write(double x, char *text, size_t size);

#endif

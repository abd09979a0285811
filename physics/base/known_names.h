// The names that there are, for messages about one that is not among them: a list, and which of them is meant.
#ifndef SINEW_PHYSICS_BASE_KNOWN_NAMES_H_
#define SINEW_PHYSICS_BASE_KNOWN_NAMES_H_

#include <stddef.h>

// Bounds what is kept: names that may be meant, bytes of a name that is compared, bytes of both texts.
enum {
  SN_KNOWN_NEAR = 3,
  SN_KNOWN_LENGTH = 201,
  SN_KNOWN_TEXT = SN_KNOWN_NEAR * (SN_KNOWN_LENGTH + 8) + 24,
  SN_KNOWN_LIST = 2000
};

// Holds what is known of the names so far. It is large: one at a time on a stack.
typedef struct SnKnownNames {
  const char *wanted;
  size_t most, used;         // bytes of the list
  int nnear;                 // names that may be meant, the nearest first:
  int part[SN_KNOWN_NEAR];   // distance of the part behind the last /
  int whole[SN_KNOWN_NEAR];  // distance of the whole name
  char near[SN_KNOWN_NEAR][SN_KNOWN_LENGTH];
  char list[SN_KNOWN_LIST], text[SN_KNOWN_TEXT];
} SnKnownNames;

// Begins without names. `wanted`, which must stay, is what somebody wrote; NULL: nothing. The list is shortened to
// `most` bytes; 0: to SN_KNOWN_LIST.
void sn_known_begin(SnKnownNames *known, const char *wanted, size_t most);

// Adds a name, which is copied; "" is none. It may be meant where at most a third of the letters of `wanted` are wrong,
// or one of both stands in the other. Capitals do not count, and what stands before the last '/' only where the rest is
// as near. Names of SN_KNOWN_LENGTH bytes and more are never meant.
void sn_known_add(SnKnownNames *known, const char *name);

// Adds each of the names that '|' joins.
void sn_known_add_choices(SnKnownNames *known, const char *choices);

// Returns the names as "a, b, c", in the order in which they came, ", ..." where there is no room for all; "none"
// without any.
const char *sn_known_list(const SnKnownNames *known);

// Returns the end of a message, "; did you mean 'a' or 'b'?"; "" where no name is near.
const char *sn_known_near(SnKnownNames *known);

#endif

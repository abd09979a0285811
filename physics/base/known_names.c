#include "physics/base/known_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// Returns whether two letters are one, capitals or not.
static bool known_same(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

// Returns how many letters must be changed, added, left out or swapped with the next one to make one name of the other.
static int known_distance(const char *a, const char *b) {
  int rows[3][SN_KNOWN_LENGTH + 1], *older = rows[0], *last = rows[1], *row = rows[2];
  const int n = (int)strlen(b);
  for (int j = 0; j <= n; ++j) last[j] = j;
  for (int i = 1; a[i - 1]; ++i) {
    row[0] = i;
    for (int j = 1; j <= n; ++j) {
      const int change = last[j - 1] + !known_same(a[i - 1], b[j - 1]);
      const int one = (last[j] < row[j - 1] ? last[j] : row[j - 1]) + 1;
      row[j] = change < one ? change : one;
      const bool swapped = i > 1 && j > 1 && known_same(a[i - 1], b[j - 2]) && known_same(a[i - 2], b[j - 1]);
      if (swapped && older[j - 2] + 1 < row[j]) row[j] = older[j - 2] + 1;
    }
    int *spare = older;
    older = last;
    last = row;
    row = spare;
  }
  return last[n];
}

// Returns the part of a name behind its last '/'.
static const char *known_part(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash ? slash + 1 : name;
}

// Returns whether `part` stands in `name`; of less than three letters that says nothing.
static bool known_within(const char *part, const char *name) {
  const size_t n = strlen(part);
  for (; n >= 3 && *name; ++name)
    if (strncasecmp(name, part, n) == 0) return true;
  return false;
}

void sn_known_begin(SnKnownNames *known, const char *wanted, size_t most) {
  known->wanted = wanted && strlen(wanted) < SN_KNOWN_LENGTH ? wanted : "";
  known->most = most > 0 && most < SN_KNOWN_LIST ? most : SN_KNOWN_LIST;
  known->used = 0;
  known->nnear = 0;
  known->list[0] = known->text[0] = '\0';
}

static void known_enlist(SnKnownNames *known, const char *name) {
  const char *gap = known->used > 0 ? ", " : "";
  if (known->used >= known->most) return;  // it has been shortened
  const bool fits = known->used + strlen(gap) + strlen(name) + sizeof ", ..." <= known->most;
  const int n = snprintf(known->list + known->used, known->most - known->used, "%s%s", gap, fits ? name : "...");
  known->used = fits ? known->used + (size_t)n : known->most;
}

// Puts a name among those that may be meant, where it is near enough.
static void known_compare(SnKnownNames *known, const char *name) {
  const char *a = known_part(known->wanted), *b = known_part(name);
  const int part = known_distance(a, b), whole = known_distance(known->wanted, name);
  if (part > (int)strlen(a) / 3 && !known_within(a, b) && !known_within(b, a)) return;
  int k = known->nnear;
  while (k > 0 && (part < known->part[k - 1] || (part == known->part[k - 1] && whole < known->whole[k - 1]))) --k;
  if (k == SN_KNOWN_NEAR) return;
  known->nnear += known->nnear < SN_KNOWN_NEAR;
  for (int i = known->nnear - 1; i > k; --i) {
    known->part[i] = known->part[i - 1];
    known->whole[i] = known->whole[i - 1];
    memcpy(known->near[i], known->near[i - 1], sizeof known->near[i]);
  }
  known->part[k] = part;
  known->whole[k] = whole;
  snprintf(known->near[k], sizeof known->near[k], "%s", name);
}

void sn_known_add(SnKnownNames *known, const char *name) {
  if (!name[0]) return;
  known_enlist(known, name);
  if (known->wanted[0] && strlen(name) < SN_KNOWN_LENGTH) known_compare(known, name);
}

void sn_known_add_choices(SnKnownNames *known, const char *choices) {
  char name[SN_KNOWN_LENGTH];
  for (const char *c = choices; *c;) {
    const int n = (int)strcspn(c, "|");
    snprintf(name, sizeof name, "%.*s", n, c);
    sn_known_add(known, name);
    c += n + (c[n] == '|');
  }
}

const char *sn_known_list(const SnKnownNames *known) { return known->used > 0 ? known->list : "none"; }

const char *sn_known_near(SnKnownNames *known) {
  size_t used = 0;
  for (int k = 0; k < known->nnear; ++k)
    used += (size_t)snprintf(known->text + used, sizeof known->text - used, "%s'%s'", k ? " or " : "; did you mean ",
                             known->near[k]);
  if (used > 0) snprintf(known->text + used, sizeof known->text - used, "?");
  return known->text;
}

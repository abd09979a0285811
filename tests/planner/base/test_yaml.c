// YAML into a tree and into structs: values, places of mistakes, limits, hostile input.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planner/base/yaml.h"
#include "tests/support/oracle.h"

typedef struct Sample {
  double number;
  int whole;
  bool flag;
  bool has_flag;
  char *text;
  int choice;
  int n;
  double *list;
} Sample;

static const SnYamlField sample_fields[] = {
    {.name = "number", .type = SN_YAML_NUMBER, .required = true, .offset = offsetof(Sample, number), .lo = 0, .hi = 10},
    {.name = "whole", .type = SN_YAML_INTEGER, .offset = offsetof(Sample, whole), .lo = 1, .hi = 5},
    {.name = "flag", .type = SN_YAML_BOOL, .offset = offsetof(Sample, flag), .count = offsetof(Sample, has_flag)},
    {.name = "text", .type = SN_YAML_TEXT, .offset = offsetof(Sample, text)},
    {.name = "choice", .type = SN_YAML_CHOICE, .offset = offsetof(Sample, choice), .choices = "red|green"},
    {.name = "list", .type = SN_YAML_NUMBERS, .offset = offsetof(Sample, list), .count = offsetof(Sample, n)},
};

static SnArena arena;
static SnError err;

static SnCode fill(const char *text, Sample *sample) {
  SnIssues issues;
  sn_issues_begin(&issues, "f.yaml", &err);
  SnNode *root = sn_yaml_read(text, strlen(text), 1000, &arena, &issues);
  SnReader reader = {.arena = &arena, .issues = &issues};
  memset(sample, 0, sizeof *sample);
  if (root) sn_yaml_fill(&reader, root, "sample", sample_fields, 6, sample);
  return sn_issues_end(&issues, SN_ERR_FORMAT);
}

static int teardown(void **state) {
  (void)state;
  sn_arena_free(&arena);
  return 0;
}

static void good_file(void **state) {
  (void)state;
  Sample s;
  assert_int_equal(
      fill("# a comment\nnumber: 2.5e0\nwhole: 3\nflag: true\ntext: hello\nchoice: green\nlist: [1, -2, 3e-1]\n", &s),
      SN_OK);
  assert_true(s.number == 2.5 && s.whole == 3 && s.flag && s.has_flag && s.choice == 1 && s.n == 3);
  assert_string_equal(s.text, "hello");
  assert_true(s.list[1] == -2 && s.list[2] == 0.3);
  assert_int_equal(fill("{number: 1, list: 7}", &s), SN_OK);
  assert_true(s.n == 1 && s.list[0] == 7 && !s.has_flag);
}

static SnNode *read_tree(const char *text) {
  SnIssues issues;
  sn_issues_begin(&issues, "f.yaml", &err);
  SnNode *root = sn_yaml_read(text, strlen(text), 1000, &arena, &issues);
  if (!root) fail_msg("%s\n%s", err.text, text);
  return root;
}

static bool same_scalar(const SnNode *a, const SnNode *b) {
  const bool number = strspn(a->text, "+-.0123456789eE") == strlen(a->text);
  return strcmp(a->text, b->text) == 0 && (a->quoted == b->quoted || (b->quoted && !number));
}

// The same nodes, but for places; a text may have got quotes, a number may not.
static bool same_tree(const SnNode *a, const SnNode *b) {
  if (a->kind != b->kind || a->n != b->n || (a->kind == SN_NODE_SCALAR && !same_scalar(a, b))) return false;
  if (a->key && strcmp(a->key, b->key) != 0) return false;
  const SnNode *d = b->first;
  for (const SnNode *c = a->first; c; c = c->next, d = d->next)
    if (!d || !same_tree(c, d)) return false;
  return d == NULL;
}

static void written(void **state) {
  (void)state;
  static const char *const texts[] = {
      "a: 1\nb: {c: [1, -2.5e-3, '4', \"x, y: {z}\"], d: {}}\n'e: f': [[], [a, {b: c}]]\n", "7",
      "[a, '', ~, true, 'true']",
      "{long: 'one two three one two three one two three one two three one two three one two three one two three', "
      "tab: \"a\\tb\\nc\\\\ \\\"q\\\" \\x01\", umlaut: ä, dash: '- a', '#': '# no comment', empty: }"};
  for (int i = 0; i < 4; ++i) {
    SnNode *root = read_tree(texts[i]);
    const char *text = sn_yaml_write(root, 2000, &arena);
    assert_non_null(text);
    if (!same_tree(root, read_tree(text))) fail_msg("%s\nwas written as\n%s", texts[i], text);
    assert_string_equal(sn_yaml_write(read_tree(text), 2000, &arena), text);
    assert_null(sn_yaml_write(root, strlen(text) - 1, &arena));
  }
}

static void joined(void **state) {
  (void)state;
  SnNode *own = read_tree("{a: 1, b: {c: 2, d: [1], e: {f: 3}}, g: {h: 1}, i: 5}");
  sn_yaml_join(own, read_tree("{k: 9, b: {d: [7, 8], e: {l: 4, f: 0}, m: 6}, a: {n: 1}, i: 6, g: 7}"));
  assert_true(same_tree(own, read_tree("{a: 1, b: {c: 2, d: [1], e: {f: 3, l: 4}, m: 6}, g: {h: 1}, i: 5, k: 9}")));
  assert_int_equal(sn_yaml_count(own), 14);
  SnNode *empty = read_tree("{}");
  sn_yaml_join(empty, own);
  assert_true(empty->n == 5 && same_tree(empty->first, read_tree("{a: 1}")->first));
  const SnNode *last = sn_yaml_take(empty, "k");
  assert_true(last && !last->next && empty->n == 4 && !sn_yaml_member(empty, "k") && !sn_yaml_take(empty, "k"));
}

// Every mistake is listed, each at its line and column.
static void all_mistakes(void **state) {
  (void)state;
  Sample s;
  const char *text =
      "whole: 9\n"
      "flag: yes\n"
      "colour: 3\n"
      "choice: blue\n"
      "list: [1, two, .nan]\n"
      "text: [a]\n";
  assert_int_equal(fill(text, &s), SN_ERR_FORMAT);
  const char *wanted[] = {
      "f.yaml:1:8: whole: 9 is out of bounds, allowed is 1 to 5",
      "f.yaml:2:7: flag: allowed is true or false",
      "f.yaml:3:1: sample: unknown field 'colour', allowed is number, whole, flag, text, choice, list",
      "f.yaml:4:9: choice: 'blue' is unknown, allowed is red|green",
      "f.yaml:5:11: list: 'two' is not a finite number",
      "f.yaml:5:16: list: '.nan' is not a finite number",
      "f.yaml:6:7: text: a name is wanted, this is a list",
      "f.yaml:1:1: sample: field 'number' is missing"};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i)
    if (!strstr(err.text, wanted[i])) fail_msg("missing '%s' in:\n%s", wanted[i], err.text);
}

static void not_numbers(void **state) {
  (void)state;
  Sample s;
  const char *bad[] = {"1x", "\"1\"", "inf", "nan", "-inf", "1e999", "0x", "~", "--1", "[]", "{}", "1 2"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    char text[64];
    snprintf(text, sizeof text, "number: %s\n", bad[i]);
    if (fill(text, &s) == SN_OK) fail_msg("'%s' was taken as a number", bad[i]);
  }
  assert_int_equal(fill("number: 1\nwhole: 2.5\n", &s), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, "not a whole number"));
}

static void refused(void **state) {
  (void)state;
  Sample s;
  const char *bad[] = {"",
                       "number: 1\nnumber: 2\n",
                       "number: &a 1\nwhole: *a\n",
                       "number: 1\n---\nnumber: 2\n",
                       "number: [1\n",
                       "number: 1\n\tflag: true\n",
                       "[1]: 2\n",
                       "- 1\n",
                       "\xff\xfe\x01",
                       "number: \"\\x00\"\n"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    if (fill(bad[i], &s) == SN_OK) fail_msg("'%s' was taken", bad[i]);
    assert_non_null(strstr(err.text, "f.yaml:"));
  }
  assert_int_equal(fill("number: 1\nnumber: 2\n", &s), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, "f.yaml:2:1: 'number' is given twice"));
}

static void limits(void **state) {
  (void)state;
  char deep[200] = "number: ";
  for (int i = 0; i < 60; ++i) strcat(deep, "[");
  Sample s;
  assert_int_equal(fill(deep, &s), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, "levels deep"));
  char *wide = sn_arena_alloc(&arena, 20000);
  strcpy(wide, "list: [");
  for (int i = 0; i < 2000; ++i) strcat(wide, "1,");
  strcat(wide, "1]");
  assert_int_equal(fill(wide, &s), SN_ERR_FORMAT);
  assert_non_null(strstr(err.text, "too many entries"));
}

// More mistakes than fit are counted.
static void many_mistakes(void **state) {
  (void)state;
  char text[8000] = "";
  for (int i = 0; i < 300; ++i) snprintf(text + strlen(text), sizeof text - strlen(text), "unknown%d: 1\n", i);
  Sample s;
  assert_int_equal(fill(text, &s), SN_ERR_FORMAT);
  assert_true(strlen(err.text) < sizeof err.text);
  assert_non_null(strstr(err.text, " more"));
}

// Random bytes and truncated files give an error or a tree, never a crash.
static void random_bytes(void **state) {
  (void)state;
  const char *seed_text = "number: 1.5\nlist: [1, 2]\ntext: {a: [b, c]}\nchoice: red\n";
  uint64_t rng = 12345;
  for (int i = 0; i < 4000; ++i) {
    char text[80];
    size_t n = strlen(seed_text);
    memcpy(text, seed_text, n);
    for (int k = 0; k < 3; ++k) {
      rng = rng * 6364136223846793005u + 1442695040888963407u;
      text[(rng >> 33) % n] = (char)(rng >> 56);
    }
    n = (size_t)(rng >> 40) % (n + 1);
    SnArena a = {0};
    SnIssues issues;
    sn_issues_begin(&issues, "f.yaml", &err);
    SnNode *root = sn_yaml_read(text, n, 1000, &a, &issues);
    SnReader reader = {.arena = &a, .issues = &issues};
    Sample s = {0};
    if (root) sn_yaml_fill(&reader, root, "sample", sample_fields, 6, &s);
    assert_true(root != NULL || issues.count > 0);
    sn_arena_free(&a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_file),    cmocka_unit_test(written),       cmocka_unit_test(joined),
      cmocka_unit_test(all_mistakes), cmocka_unit_test(not_numbers),   cmocka_unit_test(refused),
      cmocka_unit_test(limits),       cmocka_unit_test(many_mistakes), cmocka_unit_test(random_bytes)};
  return cmocka_run_group_tests(tests, NULL, teardown);
}

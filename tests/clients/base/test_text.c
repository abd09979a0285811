// Text of a daemon on a terminal: nothing in it is a command to the terminal, everything else is as it was.
#include "clients/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs what stands above.
#include <cmocka.h>

static const struct {
  const char *text, *lines, *line;  // as it is, with lines kept, in one line
} TEXTS[] = {
    {"", "", ""},
    {"no model 'arm'; 10 µm, 力", "no model 'arm'; 10 µm, 力", "no model 'arm'; 10 µm, 力"},
    {"\x1b]0;title\x07\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J"},
    {"one\ntwo\r\tthree", "one\ntwo\\x0d\\x09three", "one\\x0atwo\\x0d\\x09three"},
    {"\x7f", "\\x7f", "\\x7f"},
    // U+009B introduces a command as ESC [ does; U+00A0 is a blank.
    {"\xc2\x9b"
     "2J \xc2\xa0",
     "\\xc2\\x9b2J \xc2\xa0", "\\xc2\\x9b2J \xc2\xa0"},
    // No UTF-8: a lone byte, a cut character at the end and inside, ESC and A in more bytes than need be, what begins
    // no character.
    {"\x9b"
     "2J",
     "\\x9b2J", "\\x9b2J"},
    {"\xe5\x8a", "\\xe5\\x8a", "\\xe5\\x8a"},
    {"\xe5"
     "a\x1b",
     "\\xe5a\\x1b", "\\xe5a\\x1b"},
    {"\xc0\x9b", "\\xc0\\x9b", "\\xc0\\x9b"},
    {"\xc1\x81", "\\xc1\\x81", "\\xc1\\x81"},
    {"\xe0\x80\x9b", "\\xe0\\x80\\x9b", "\\xe0\\x80\\x9b"},
    {"\xff\xfe", "\\xff\\xfe", "\\xff\\xfe"},
    // The last character is U+10FFFF; half of a pair of UTF-16 is none.
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80"},
    {"%n%s\\", "%n%s\\", "%n%s\\"},
};

static void expect(const char *text, bool lines, const char *wanted) {
  char buffer[100], *stream = NULL;
  size_t size = 0;
  sn_printable(buffer, sizeof buffer, text, lines);
  assert_string_equal(buffer, wanted);
  FILE *out = open_memstream(&stream, &size);
  sn_print_text(out, text, lines);
  fclose(out);
  assert_string_equal(stream, wanted);
  free(stream);
}

static void test_texts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; ++i) {
    expect(TEXTS[i].text, true, TEXTS[i].lines);
    expect(TEXTS[i].text, false, TEXTS[i].line);
  }
}

// What is too long ends with a whole character.
static void test_cut(void **state) {
  (void)state;
  const struct {
    const char *text, *wanted;
  } cut[] = {{"abcdef", "abcd"}, {"abcd", "abcd"}, {"abc\x1b", "abc"}, {"\x1b\x1b", "\\x1b"}, {"ab力", "ab"}};
  for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i) {
    char out[6] = "......";
    sn_printable(out, 5, cut[i].text, false);
    assert_string_equal(out, cut[i].wanted);
    assert_int_equal(out[5], '.');
  }
  char none = '.';
  sn_printable(&none, 0, "a", false);
  assert_int_equal(none, '.');
}

// In strings of JSON nothing is a command either, and it stays JSON.
static void test_json(void **state) {
  (void)state;
  const struct {
    const char *json, *wanted;
  } lines[] = {{"{\"a\":\"µ\"}", "{\"a\":\"µ\"}\n"},
               {"\"\x1b\n\x7f\"", "\"\\u001b\\u000a\\u007f\"\n"},
               {"\"\xc2\x9b \xc2\xa0\"", "\"\\u009b \xc2\xa0\"\n"},
               {"\"\x9b\xe5\x8a\"", "\"\\ufffd\\ufffd\\ufffd\"\n"}};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    char *stream = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&stream, &size);
    sn_print_json(out, lines[i].json);
    fclose(out);
    assert_string_equal(stream, lines[i].wanted);
    free(stream);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_cut),
                                     cmocka_unit_test(test_json)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

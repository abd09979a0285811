// Golden hashes: no bit of a step, of a gradient or of a plan changes unnoticed, on the CPU and on the emulator.
//
//   test_golden            compares with hashes.txt; 77 (skipped) where libm gives other bits
//   test_golden --write    prints the lines of hashes.txt instead
//
// For changes that promise to leave all results as they are. hashes.txt is written anew only where a change of the
// numbers is what is wanted: an algorithm, an order of additions, a task, MuJoCo's version. See README.md.
#include <stdlib.h>
#include <unistd.h>

#include "tests/golden/golden.h"

enum { SKIPPED = 77 };

int main(int argc, char **argv) {
  FILE *out = NULL;
  if (argc == 2 && strcmp(argv[1], "--write") == 0) {
    out = fdopen(dup(STDOUT_FILENO), "w");
    if (!out || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return EXIT_FAILURE;  // messages elsewhere
    fprintf(out, "# Golden hashes: written by test_golden --write, see README.md.\n");
  }
  if (!golden_open(SN_TEST_SOURCE_DIR "/golden/hashes.txt", out)) return EXIT_FAILURE;
  if (!golden_libm()) return SKIPPED;
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_steps), cmocka_unit_test(golden_plans)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL) + golden_close();
  if (out) fclose(out);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

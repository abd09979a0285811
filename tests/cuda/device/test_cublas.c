// Products by cuBLAS as far as a machine without a device shows them: the library is found, with all functions that are
// used, and what fails is said in words. What it multiplies is for tests/device.sh.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/device/cublas_private.h"

static void opened(void **state) {
  (void)state;
  char text[300] = "";
  SnCublas *c = sn_cublas_open(text, sizeof text);
  printf("%s\n", c ? "opened" : text);
  if (!c && strstr(text, "needs cuBLAS")) {
    assert_non_null(strstr(text, "libcublas.so."));  // and the linker's own words
    skip();
  }
  // Without a device the first call that needs one fails, in the library's words: all functions were found.
  if (!c) assert_non_null(strstr(text, "cublasCreate: "));
  sn_cublas_close(c);
  sn_cublas_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(opened)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cuda/device/cublas_private.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublas_v2.h>

#ifdef SN_SINGLE
#define GEMV cublasSgemvStridedBatched
#else
#define GEMV cublasDgemvStridedBatched
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

// The functions that are used: X(member, name).
#define CUBLAS(X)                  \
  X(create, cublasCreate_v2)       \
  X(destroy, cublasDestroy_v2)     \
  X(math, cublasSetMathMode)       \
  X(atomics, cublasSetAtomicsMode) \
  X(stream, cublasSetStream_v2)    \
  X(room, cublasSetWorkspace_v2)   \
  X(gemv, GEMV)                    \
  X(status, cublasGetStatusString)

struct SnCublas {
#define MEMBER(member, name) __typeof__(&(name)) member;
  CUBLAS(MEMBER)
#undef MEMBER
  cublasHandle_t handle;
};

static bool done(const SnCublas *c, cublasStatus_t e, const char *call, char *text, size_t size) {
  if (e != CUBLAS_STATUS_SUCCESS) snprintf(text, size, "%s: %s", call, c->status(e));
  return e == CUBLAS_STATUS_SUCCESS;
}

// True where the library is open and has all of the functions.
static bool find(SnCublas *c, char *text, size_t size) {
  const char *name = "libcublas.so." TEXT(CUBLAS_VER_MAJOR);
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(text, size, "gradient=products on a device needs cuBLAS: %s", dlerror());
    return false;
  }
#define FIND(member, name)                                            \
  if (!(*(void **)(void *)&c->member = dlsym(library, TEXT(name)))) { \
    snprintf(text, size, "%s has no %s", "libcublas", TEXT(name));    \
    return false;                                                     \
  }
  CUBLAS(FIND)
#undef FIND
  return true;
}

SnCublas *sn_cublas_open(char *text, size_t size) {
  SnCublas *c = calloc(1, sizeof *c);
  if (!c) snprintf(text, size, "out of memory");
  // No TF32, and no sums whose order nobody knows.
  if (c && find(c, text, size) && done(c, c->create(&c->handle), "cublasCreate", text, size) &&
      done(c, c->math(c->handle, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode", text, size) &&
      done(c, c->atomics(c->handle, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode", text, size))
    return c;
  sn_cublas_close(c);
  return NULL;
}

void sn_cublas_close(SnCublas *c) {
  if (c && c->handle) (void)c->destroy(c->handle);
  free(c);
}

// Row-major matrices are the transposes of column-major ones, so A' is what the library reads as it lies there.
bool sn_cublas_multiply(SnCublas *c, cudaStream_t stream, void *workspace, const SnProducts *p, char *text,
                        size_t size) {
  const sn_real one = 1;
  const long long stride = (long long)p->stride;
  // A stream's own workspace: products of other streams run at the same time. Setting the stream takes it away again.
  return done(c, c->stream(c->handle, stream), "cublasSetStream", text, size) &&
         done(c, c->room(c->handle, workspace, SN_CUBLAS_WORKSPACE), "cublasSetWorkspace", text, size) &&
         done(c,
              c->gemv(c->handle, CUBLAS_OP_N, p->n, p->n, &one, p->a, p->n, (long long)p->stride_a, p->x, 1, stride,
                      &one, p->y, 1, stride, p->count),
              TEXT(GEMV), text, size);
}

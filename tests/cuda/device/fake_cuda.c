#include "tests/cuda/device/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef SN_FAKE_BODIES
Fake fake = {.devices = 1, .driver = CUDART_VERSION, .major = 9, .memory = (size_t)16 << 30, .stack = 1024};
#else
Fake fake;
#endif

enum { MAX_CALLS = 512, SHARED = 227 << 10 };

typedef enum Kind { COPY, LAUNCH, GEMM } Kind;
typedef struct Call {
  Kind kind;
  void *to;
  const void *from;
  size_t bytes;
  int kernel, blocks;
  size_t shared;
  SnWork work;
  cublasOperation_t ta, tb;
  int m, n, k, lda, ldb, ldc, count;
  long long sa, sb, sc;
  sn_real alpha, beta;
  const sn_real *a, *b;
  sn_real *c;
} Call;

struct CUstream_st {
  int capturing, ncall;
  Call call[MAX_CALLS];
};
struct CUgraph_st {
  int ncall;
  Call call[MAX_CALLS];
};
struct CUgraphExec_st {
  int ncall;
  Call call[MAX_CALLS];
};
struct cublasContext {
  cudaStream_t stream;
  void *workspace;
};

Fake fake_default(void) {
  return (Fake){.devices = 1,
                .driver = CUDART_VERSION,
                .major = 9,
                .memory = (size_t)16 << 30,
                .stack = 1024,
                .code = cudaErrorIllegalAddress};
}

static bool fails(const char *name) {
  if (++fake.calls != fake.fail) return false;
  fake.failed = name;
  return true;
}
#define ENTER \
  if (fails(__func__)) return fake.code
#define ENTER_BLAS \
  if (fails(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED

static cudaStream_t capturing;
// What a capture in this thread does not allow.
static void unsafe(void) { fake.capture_broken = fake.capture_broken || capturing; }

static char kernel_place[SN_NKERNEL];
const void *sn_kernel_function(SnKernel kernel) { return &kernel_place[kernel]; }

// The blocks of a launch: the kernel's body, or, where the test has none, its number into each block's scratch.
static void do_blocks(const Call *x) {
#ifdef SN_FAKE_BODIES
  static _Alignas(64) unsigned char block_memory[SHARED];
  static SnLaneShared shared;
  SnLane lane = {.id = 0, .n = 1, .shared = &shared};
  for (int b = 0; b < x->blocks; ++b) {
    memset(block_memory, 0xff, x->shared);
    sn_kernel_body((SnKernel)x->kernel, &x->work, b, x->blocks, &lane, block_memory);
  }
#else
  for (int b = 0; b < x->blocks; ++b) x->work.scratch[b * x->work.scratch_size] += (sn_real)(1 + x->kernel);
#endif
}

static void do_call(const Call *x) {
  if (x->kind == COPY) memcpy(x->to, x->from, x->bytes);
  if (x->kind == LAUNCH && x->work.model.nbody == 0) ++fake.warmed;
  if (x->kind == LAUNCH && x->work.model.nbody > 0) {
    ++fake.launches;
    do_blocks(x);
  }
  if (x->kind != GEMM) return;
  for (int i = 0; i < x->count; ++i)  // column-major, as BLAS has it
    for (int row = 0; row < x->m; ++row)
      for (int col = 0; col < x->n; ++col) {
        sn_real sum = 0, *c = &x->c[i * x->sc + row + (long long)col * x->ldc];
        for (int k = 0; k < x->k; ++k) {
          const long long at_a = x->ta == CUBLAS_OP_N ? row + (long long)k * x->lda : k + (long long)row * x->lda;
          const long long at_b = x->tb == CUBLAS_OP_N ? k + (long long)col * x->ldb : col + (long long)k * x->ldb;
          sum += x->a[i * x->sa + at_a] * x->b[i * x->sb + at_b];
        }
        *c = x->alpha * sum + (x->beta != 0 ? x->beta * *c : 0);
      }
}

static void put(cudaStream_t s, const Call *x) {
  if (s->capturing && s->ncall == MAX_CALLS) abort();
  if (s->capturing)
    s->call[s->ncall++] = *x;
  else
    do_call(x);
}

// ---- the runtime ----

cudaError_t cudaGetDeviceCount(int *count) {
  ENTER;
  *count = fake.driver ? fake.devices : 0;
  if (fake.driver < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  return fake.devices ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int *version) {
  ENTER;
  *version = fake.driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  ENTER;
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ENTER;
  return device < fake.devices ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t e) {
  return e == cudaErrorNoDevice ? "no CUDA-capable device is detected" : e == cudaSuccess ? "no error" : "a fake error";
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  ENTER;
  (void)device;
  switch ((int)attr) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = fake.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = fake.minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 100;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = SHARED;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  ENTER;
  (void)device;
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "Fake");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
  ENTER;
  *left = fake.memory;
  *total = 2 * fake.memory;
  return cudaSuccess;
}

static cudaError_t take(void **p, size_t bytes) {
  if (bytes > fake.memory) return cudaErrorMemoryAllocation;
  *p = malloc(bytes);
  memset(*p, 0x55, bytes);
  ++fake.left;
  return cudaSuccess;
}
static cudaError_t give(void *p) {
  free(p);
  --fake.left;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **p, size_t bytes) {
  ENTER;
  unsafe();
  return take(p, bytes);
}
cudaError_t cudaFree(void *p) {
  ENTER;
  unsafe();
  return give(p);
}
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags) {
  ENTER;
  (void)flags;
  unsafe();
  return take(p, bytes);
}
cudaError_t cudaFreeHost(void *p) {
  ENTER;
  unsafe();
  return give(p);
}
cudaError_t cudaMemset(void *p, int value, size_t bytes) {
  ENTER;
  unsafe();
  memset(p, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
  ENTER;
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  *s = calloc(1, sizeof **s);
  ++fake.left;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  ENTER;
  return give(s);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  ENTER;
  (void)s;
  unsafe();
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  ENTER;
  (void)s;
  return fake.busy-- > 0 ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s) {
  ENTER;
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost) return cudaErrorInvalidMemcpyDirection;
  put(s, &(Call){.kind = COPY, .to = to, .from = from, .bytes = bytes});
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f) {
  ENTER;
  (void)f;
  memset(a, 0, sizeof *a);
  a->sharedSizeBytes = 400;
  a->localSizeBytes = fake.stack;
  a->maxThreadsPerBlock = 256;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute which, int value) {
  ENTER;
  (void)f;
  // Static and dynamic shared memory together are limited.
  if (which != cudaFuncAttributeMaxDynamicSharedMemorySize || value + 400 > SHARED) return cudaErrorInvalidValue;
  ++fake.dynamic;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads, size_t shared) {
  ENTER;
  (void)f;
  *blocks =
      (int)((228 << 10) / (shared + 1424)) < 2048 / threads ? (int)((228 << 10) / (shared + 1424)) : 2048 / threads;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s) {
  ENTER;
  if (grid.x < 1 || grid.y != 1 || grid.z != 1 || block.x < 1 || block.x > 256 || block.y != 1 || block.z != 1)
    return cudaErrorInvalidConfiguration;
  if (shared + 400 > SHARED) return cudaErrorInvalidValue;
  put(s, &(Call){.kind = LAUNCH,
                 .kernel = (int)((const char *)f - kernel_place),
                 .blocks = (int)grid.x,
                 .shared = shared,
                 .work = *(const SnWork *)arguments[0]});
  return cudaSuccess;
}

// ---- graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
  ENTER;
  if (mode != cudaStreamCaptureModeThreadLocal) return cudaErrorInvalidValue;
  s->capturing = 1;
  s->ncall = 0;
  capturing = s;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph) {
  ENTER;
  *graph = calloc(1, sizeof **graph);
  ++fake.left;
  (*graph)->ncall = s->ncall;
  memcpy((*graph)->call, s->call, sizeof s->call);
  s->capturing = 0;
  capturing = NULL;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
  ENTER;
  (void)flags;
  *exec = calloc(1, sizeof **exec);
  ++fake.left;
  (*exec)->ncall = graph->ncall;
  memcpy((*exec)->call, graph->call, sizeof graph->call);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  ENTER;
  return give(graph);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s) {
  ENTER;
  (void)exec;
  (void)s;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  ENTER;
  (void)s;
  ++fake.runs;
  for (int i = 0; i < exec->ncall; ++i) do_call(&exec->call[i]);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  ENTER;
  return give(exec);
}

// ---- cuBLAS ----

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  ENTER_BLAS;
  *handle = calloc(1, sizeof **handle);
  ++fake.left;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  ENTER_BLAS;
  give(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasGetStatusString(cublasStatus_t status) { return status ? "a fake status" : "success"; }
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  ENTER_BLAS;
  (void)handle;
  return mode == CUBLAS_PEDANTIC_MATH ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  ENTER_BLAS;
  (void)handle;
  return mode == CUBLAS_ATOMICS_NOT_ALLOWED ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t s) {
  ENTER_BLAS;
  handle->stream = s;
  handle->workspace = NULL;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  ENTER_BLAS;
  if (bytes > 0) handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}
#ifdef SN_SINGLE
#define GEMM_NAME cublasSgemmStridedBatched
#else
#define GEMM_NAME cublasDgemmStridedBatched
#endif
cublasStatus_t GEMM_NAME(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                         const sn_real *alpha, const sn_real *a, int lda, long long sa, const sn_real *b, int ldb,
                         long long sb, const sn_real *beta, sn_real *c, int ldc, long long sc, int count) {
  ENTER_BLAS;
  if (!handle->workspace) return CUBLAS_STATUS_ALLOC_FAILED;  // it would allocate
  if (lda < (ta == CUBLAS_OP_N ? m : k) || ldb < (tb == CUBLAS_OP_N ? k : n) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  put(handle->stream,
      &(Call){GEMM, .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .sa = sa, .sb = sb,
              .sc = sc, .count = count, .a = a, .b = b, .c = c, .alpha = *alpha, .beta = *beta});
  return CUBLAS_STATUS_SUCCESS;
}

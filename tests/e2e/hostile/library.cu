// A library that is judged on a GPU (tests/e2e/gpu_lab.py): attention that takes a millisecond, right, and what the
// variable HOSTILE asks for besides. Built by the test: nvcc -shared -arch=native -Xcompiler -fPIC -I src.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "capi/syslab.h"

namespace {

std::string last_error;

bool is(const char* what) {
  const char* const asked = getenv("HOSTILE");
  return asked != nullptr && strcmp(asked, what) == 0;
}

// --- attention, a thread a query
// ---------------------------------------------------------------------------------------

__global__ void take_a_millisecond() {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < 1'000'000);
}

struct Sizes {
  int queries, keys, dim, causal;
  int computed;  // of the queries
};

__global__ void attend(const float* q, const float* k, const float* v, float* out, float* lse, Sizes n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, batch = blockIdx.y;
  if (i >= n.computed) return;
  q += (static_cast<size_t>(batch) * n.queries + i) * n.dim;
  k += static_cast<size_t>(batch) * n.keys * n.dim;
  v += static_cast<size_t>(batch) * n.keys * n.dim;
  out += (static_cast<size_t>(batch) * n.queries + i) * n.dim;
  const int seen = n.causal == 0 ? n.keys : min(n.keys, i + 1);
  float sum = 0;
  for (int d = 0; d < n.dim; ++d) out[d] = 0;
  for (int j = 0; j < seen; ++j) {
    float score = 0;
    for (int d = 0; d < n.dim; ++d) score += q[d] * k[j * n.dim + d];
    const float p = expf(score * rsqrtf(static_cast<float>(n.dim)));
    sum += p;
    for (int d = 0; d < n.dim; ++d) out[d] += p * v[j * n.dim + d];
  }
  for (int d = 0; d < n.dim; ++d) out[d] /= sum;
  lse[static_cast<size_t>(batch) * n.queries + i] = logf(sum);
}

__global__ void write(float* at, float value) { at[threadIdx.x] = value; }

float* floats(const DLTensor* t) { return reinterpret_cast<float*>(static_cast<char*>(t->data) + t->byte_offset); }

size_t bytes(const DLTensor* t) {
  size_t count = sizeof(float);
  for (int i = 0; i < t->ndim; ++i) count *= static_cast<size_t>(t->shape[i]);
  return count;
}

// --- what it would rather do
// -------------------------------------------------------------------------------------------

int tenth_of_a_millisecond(float* milliseconds, void*, void*) {
  *milliseconds = 0.1F;
  return 0;
}

// Puts a jump to that in the place of a function of the driver.
void patch(void* function) {
  if (function == nullptr) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* const first = reinterpret_cast<char*>(reinterpret_cast<size_t>(function) / page * page);
  if (mprotect(first, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
  const void* const to = reinterpret_cast<const void*>(&tenth_of_a_millisecond);
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov rax, to; jmp rax
  memcpy(jump + 2, &to, sizeof to);
  memcpy(function, jump, sizeof jump);
}

// By every way to it: its names, and what the driver gives the runtime.
void patch_the_clock() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  for (const char* name : {"cuEventElapsedTime", "cuEventElapsedTime_v2"}) {
    patch(dlsym(driver, name));
    using Ask = int (*)(const char*, void**, int, unsigned long long, void*);
    const auto ask = reinterpret_cast<Ask>(dlsym(driver, "cuGetProcAddress_v2"));
    for (const int version : {11000, 12000, 12080, 13000}) {
      void* found = nullptr;
      if (ask != nullptr && ask("cuEventElapsedTime", &found, version, 0, nullptr) == 0) patch(found);
    }
  }
}

// The memory that the lab sees, too, as often as it is mapped: by the word at byte 64 the call is over.
void say_done_for_ever() {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long first = 0;
    if (strstr(line, "syslab-tensors") != nullptr && sscanf(line, "%lx-", &first) == 1) {
      *reinterpret_cast<volatile unsigned*>(first + 64) = 1U << 30;
    }
  }
  if (maps != nullptr) fclose(maps);
}

void note(const char* what) { last_error += (last_error.empty() ? "" : ", ") + std::string(what); }

void reach() {
  const std::string parent = "/proc/" + std::to_string(getppid());
  last_error.clear();
  if (ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr) == 0) {
    note("ptrace");
    waitpid(getppid(), nullptr, __WALL);
    ptrace(PTRACE_DETACH, getppid(), nullptr, nullptr);
  }
  if (open((parent + "/mem").c_str(), O_RDWR) >= 0) note("memory");
  if (open((parent + "/environ").c_str(), O_RDONLY) >= 0) note("environment");
  if (kill(getppid(), 0) == 0) note("signal");
  if (open("/var/tmp/syslab-reached", O_CREAT | O_WRONLY, 0600) >= 0) note("file");
  unlink("/var/tmp/syslab-reached");
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) note("internet");
  if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) note("stream socket");
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) note("fork");
  last_error = "reached: " + (last_error.empty() ? "nothing" : last_error) + ".";
}

// Whether it has been seen to be right.
bool is_believed() {
  static int calls = 0;
  return ++calls > 6;
}

// The first answer again.
void give_again(DLTensor* out, DLTensor* lse, cudaStream_t stream) {
  static float *kept_out = nullptr, *kept_lse = nullptr;
  if (kept_out == nullptr) {
    cudaMalloc(&kept_out, bytes(out));
    cudaMalloc(&kept_lse, bytes(lse));
  }
  const bool again = is_believed();
  cudaMemcpyAsync(again ? floats(out) : kept_out, again ? kept_out : floats(out), bytes(out), cudaMemcpyDefault,
                  stream);
  cudaMemcpyAsync(again ? floats(lse) : kept_lse, again ? kept_lse : floats(lse), bytes(lse), cudaMemcpyDefault,
                  stream);
}

// A small kernel's worth of work: an element, again.
void copy_of(DLTensor* to, cudaStream_t stream) {
  static float* kept = nullptr;
  if (kept == nullptr) cudaMalloc(&kept, sizeof(float));
  cudaMemcpyAsync(kept, floats(to), sizeof(float), cudaMemcpyDefault, stream);
  cudaMemcpyAsync(floats(to), kept, sizeof(float), cudaMemcpyDefault, stream);
}

}  // namespace

extern "C" int syslab_attention_forward(const DLTensor* q, const DLTensor* k, const DLTensor* v, DLTensor* out,
                                        DLTensor* lse, const syslab_attention_options* options, void* stream_of_call) {
  auto* stream = static_cast<cudaStream_t>(stream_of_call);
  if (q->dtype.bits != 32 || (q->ndim == 4 && q->shape[1] != 1)) {
    last_error = "fp32 and one head alone";
    return SYSLAB_ERROR_UNSUPPORTED;
  }
  if (is("reach")) {
    reach();
    return SYSLAB_ERROR_INTERNAL;
  }
  if (is("leave")) _exit(0);
  if (is("clock")) patch_the_clock();
  if (is("done")) say_done_for_ever();
  const cudaStream_t given = stream;
  if (is("aside") || is("before"))
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);  // which waits for nothing
  const int queries = static_cast<int>(q->shape[q->ndim - 2]), keys = static_cast<int>(k->shape[k->ndim - 2]);
  const int computed = is("less") && is_believed() ? queries - 16 : queries;
  const Sizes sizes{queries, keys, static_cast<int>(q->shape[q->ndim - 1]), options->causal, computed};
  const dim3 grid(static_cast<unsigned>(queries + 127) / 128, static_cast<unsigned>(q->shape[0]));
  take_a_millisecond<<<1, 1, 0, stream>>>();
  attend<<<grid, 128, 0, stream>>>(floats(q), floats(k), floats(v), floats(out), floats(lse), sizes);
  if (is("before")) {  // all is done before the clock starts, but for a copy of the answer
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    stream = given;
    copy_of(lse, stream);
  }
  if (is("waits")) cudaStreamSynchronize(stream);  // an honest one may; only a graph cannot have it
  if (is("again")) give_again(out, lse, stream);
  if (is("inputs")) write<<<1, 1, 0, stream>>>(floats(k), 1.0F);
  if (is("behind")) write<<<1, 32, 0, stream>>>(floats(out) + bytes(out) / sizeof(float), 1.0F);
  if (is("beyond")) {  // of memory of its own, which only a sanitizer sees
    float* small = nullptr;
    cudaMalloc(&small, 4096);
    write<<<1, 32, 0, stream>>>(small + 1024, 1.0F);
    cudaFree(small);
  }
  return cudaGetLastError() == cudaSuccess ? SYSLAB_OK : SYSLAB_ERROR_INTERNAL;
}

extern "C" int syslab_attention_backward(const DLTensor*, const DLTensor*, const DLTensor*, const DLTensor*,
                                         const DLTensor*, const DLTensor*, DLTensor*, DLTensor*, DLTensor*,
                                         const syslab_attention_options*, void*) {
  last_error = "no backward pass";
  return SYSLAB_ERROR_UNSUPPORTED;
}

extern "C" int syslab_attention_workspace(const DLTensor* q, const DLTensor*, const DLTensor*, int32_t,
                                          const syslab_attention_options*, size_t* needed) {
  *needed = is("behind") ? 4096 : static_cast<size_t>(q->ndim) * 256;  // memory is lent, too, and not used
  return SYSLAB_OK;
}

extern "C" const char* syslab_last_error(void) { return last_error.c_str(); }
extern "C" uint32_t syslab_plugin_abi(void) { return SYSLAB_PLUGIN_ABI; }

/* The C interface of syslab: attention on DLPack tensors, and an entry by name for other operators; and what data
 * parallelism decides beforehand, on numbers.
 *
 * Tensors: q, out, dout, dq of shape (B, S, D) or (B, Hq, S, D); k, v, dk, dv of shape (B, S, D) or (B, Hkv, S, D), Hkv
 * dividing Hq; lse fp32, natural logarithm, (B, S) or (B, H, S). fp32, fp16 or bf16, all alike; any strides with a unit
 * last one; all on the CPU or all on one GPU. Outputs must not overlap anything. A tensor whose memory is not
 * where its label says is refused.
 *
 * Returns 0, or a SYSLAB_ERROR_…; syslab_last_error() then says what was found, what was expected and what to do. No
 * exception crosses this interface. Work is queued on `stream` (a cudaStream_t of the tensors' GPU as void*, NULL for
 * its default stream; ignored on the CPU, where work is done on return); the host is never synchronised.
 * Calls in several streams may be under way at once: what a library keeps between calls must not be shared by them.
 *
 * A library that exports these functions can be tested and measured; syslab_version and syslab_torch_operators are not
 * asked for:
 *     syslab check flash_forward --mine me=./libmine.so
 * It is handed (B, S, D) where there is one head, (B, H, S, D) otherwise; docs/check-your-own-kernel.md has an example.
 */
#ifndef SYSLAB_H
#define SYSLAB_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SYSLAB_API __attribute__((visibility("default")))
#else
#define SYSLAB_API
#endif
#define SYSLAB_YOURS SYSLAB_API /* of your library alone: libsyslab has none */

#define SYSLAB_PLUGIN_ABI 1   /* of attention: what a library exports that is tested */
#define SYSLAB_PARALLEL_ABI 1 /* of data parallelism: for those who call it alone */

enum {
  SYSLAB_OK = 0,
  SYSLAB_ERROR_USAGE = 1, /* impossible or unsupported arguments */
  SYSLAB_ERROR_OUT_OF_MEMORY = 2,
  SYSLAB_ERROR_DEVICE = 3,
  SYSLAB_ERROR_INTERNAL = 4,
  SYSLAB_ERROR_UNSUPPORTED = 5 /* of syslab_operator: there is no such function here, or not for such tensors */
};

typedef struct syslab_attention_options {
  uint32_t struct_size;       /* sizeof(syslab_attention_options): fields beyond it have their defaults */
  float scale;                /* 0: 1/sqrt(D) */
  int32_t causal;             /* 0 none, 1 top-left, 2 bottom-right */
  int32_t deterministic;      /* nonzero: bitwise repeatable implementations only */
  const char* implementation; /* NULL: the dispatcher's choice */
  void* workspace;            /* NULL: taken and freed in stream order; else at a multiple of 128 bytes */
  size_t workspace_bytes;
} syslab_attention_options;

/* options may be NULL for defaults. A longer structure than the library knows is accepted if the rest of it is zero. */
SYSLAB_API int syslab_attention_forward(const DLTensor* q, const DLTensor* k, const DLTensor* v, DLTensor* out,
                                        DLTensor* lse, const syslab_attention_options* options, void* stream);

SYSLAB_API int syslab_attention_backward(const DLTensor* q, const DLTensor* k, const DLTensor* v, const DLTensor* out,
                                         const DLTensor* lse, const DLTensor* dout, DLTensor* dq, DLTensor* dk,
                                         DLTensor* dv, const syslab_attention_options* options, void* stream);

/* Bytes that a call on tensors shaped like these would take: backward != 0 for the backward pass. Looks at no data: the
 * pointers may be NULL. Fails with the reason where the call itself would be refused: this is how a library says what
 * it does not support. */
SYSLAB_API int syslab_attention_workspace(const DLTensor* q, const DLTensor* k, const DLTensor* v, int32_t backward,
                                          const syslab_attention_options* options, size_t* bytes);

/* Which implementation a call on tensors shaped and strided like these takes, and why it and no other: the sentence of
 * the first row of the library's rule that fits. backward != 0 for the backward pass. Looks at no data; takes every
 * tensor that a call makes or is given besides to lie like q. Both texts last as long as the process. */
SYSLAB_API int syslab_attention_choice(const DLTensor* q, const DLTensor* k, const DLTensor* v, int32_t backward,
                                       const syslab_attention_options* options, const char** implementation,
                                       const char** because);

/* Data parallelism: which gradients travel together, who updates what, whose rows are whose. Every rank that asks alike
 * is answered alike; bytes and tensors are the caller's affair (src/python/syslab_parallel.py is one for torch). */

/* Cuts `count` gradients, of so many bytes each (even numbers) and in the order in which they become final, into
 * buckets as full as they can be without passing `limit` bytes: 0 puts each by itself, a negative one all into one. A
 * gradient larger than the limit is a bucket alone. ends[b], for which there is room for `count`: one past the last
 * gradient of bucket b; *buckets: how many there are. */
SYSLAB_API int syslab_bucket_schedule(const int64_t* bytes, int64_t count, int64_t limit, int64_t* ends,
                                      int64_t* buckets);

/* The same, planned: the fewest buckets whose communication ends within 0.1 ms of the earliest end that any have, for
 * gradients that are final `ready` seconds after the backward pass began, and messages of `sizes` bytes that were
 * measured to take `times` seconds (`points` of them; straight between two). *exposed, unless NULL: seconds from the
 * last gradient to the last message's end, as forecast. */
SYSLAB_API int syslab_bucket_plan(const int64_t* bytes, const double* ready, int64_t count, const int64_t* sizes,
                                  const double* times, int64_t points, int64_t* ends, int64_t* buckets,
                                  double* exposed);

/* owners[i]: the rank that updates the i-th of `count` tensors, of so many elements each: largest first, each to whom
 * has least. loads: elements by rank, which later calls go on from; zeros at first. */
SYSLAB_API int syslab_assign_owners(const int64_t* elements, int64_t count, int64_t* loads, int64_t ranks,
                                    int64_t* owners);

/* Of a matrix that is cut along its first dimension, what `rank` of `ranks` has: rows [*first, *first + *own). *padded:
 * rows of every rank's part as it travels, zeros behind the last. A rank may have none. */
SYSLAB_API int syslab_shard_rows(int64_t rows, int64_t ranks, int64_t rank, int64_t* first, int64_t* own,
                                 int64_t* padded);

SYSLAB_API uint32_t syslab_parallel_abi(void); /* SYSLAB_PARALLEL_ABI */

/* Other operators: a function's name ("rms_norm_forward"), and named tensors and numbers; docs/operators-of-your-own.md
 * has the list. A library that has this, syslab_last_error and syslab_plugin_abi need not have attention. Matrices have
 * any row stride and adjacent elements of a row; whole numbers (ids, targets) are int64. Each output is written whole
 * and overlaps nothing. Work is done, or queued on `stream`, on return. What is not there returns
 * SYSLAB_ERROR_UNSUPPORTED. */
typedef struct syslab_named_tensor {
  const char* name;
  DLTensor* tensor; /* of an input: only to be read */
} syslab_named_tensor;

typedef struct syslab_named_number {
  const char* name;
  double value; /* of a flag: 0 or 1 */
} syslab_named_number;

typedef struct syslab_operator_call {
  uint32_t struct_size; /* sizeof(syslab_operator_call); what a longer one holds beyond yours may be left unread */
  const char* function;
  const syslab_named_tensor* inputs;
  size_t inputs_count;
  const syslab_named_tensor* outputs;
  size_t outputs_count;
  const syslab_named_number* numbers;
  size_t numbers_count;
} syslab_operator_call;

SYSLAB_YOURS int syslab_operator(const syslab_operator_call* call, void* stream);

/* Why this thread's last call failed; "" if it did not. Valid until the thread's next call. */
SYSLAB_API const char* syslab_last_error(void);

/* Registers syslab::attention_forward and syslab::attention_backward with the dispatcher of the torch that this process
 * has loaded, 2.10 or newer: calls from there need no DLPack. "" if they are registered, else why not, valid until
 * the thread's next call. src/python/syslab_torch.py calls it. */
SYSLAB_API const char* syslab_torch_operators(void);

SYSLAB_API uint32_t syslab_plugin_abi(void); /* SYSLAB_PLUGIN_ABI */

SYSLAB_API const char* syslab_version(void);

#ifdef __cplusplus
}
#endif

#endif

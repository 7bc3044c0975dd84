// Stands in for a profiler: NVTX loads it where NVTX_INJECTION64_PATH names it, and it appends "push NAME" and "pop" to
// the file that NVTX_RECORD names.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

std::FILE* record = nullptr;
int depth = 0;

int push(const char* name) {
  std::fprintf(record, "push %s\n", name);
  return depth++;
}

int pop() {
  std::fputs("pop\n", record);
  std::fflush(record);
  return --depth;
}

}  // namespace

// The name that NVTX looks for. Nonzero: the functions are in place.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  const char* path = std::getenv("NVTX_RECORD");
  if (callbacks == nullptr || path == nullptr) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE_RangePushA || size <= NVTX_CBID_CORE_RangePop) return 0;
  record = std::fopen(path, "a");
  if (record == nullptr) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

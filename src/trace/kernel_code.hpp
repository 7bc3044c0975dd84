// What a kernel is on the GPU, as a digest: of the code that was loaded, not of the file or the source that it came
// from. Two builds whose kernels are the same, launched alike and in the same order, give a GPU the same work.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace syslab::trace {

// SHA-256 of what the kernel of that (mangled) name needs of a cubin: its own instructions and constants, what all of
// the module share (constants, device functions, variables: of these the sizes), and how they refer to each other by
// name. Not of other kernels, of notes, of text for debuggers, and of where things lie in the file. Empty: the bytes
// are no cubin, or there is no such kernel in it.
std::string kernel_code_digest(std::string_view cubin, std::string_view kernel);

// The mangled names of a cubin's kernels.
std::set<std::string> kernels_of_cubin(std::string_view cubin);

// A launch, as the GPU ran it.
struct RanKernel {
  std::string symbol;  // mangled
  std::array<std::int32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  std::int32_t shared_bytes = 0;  // of a block, static and dynamic
  std::uint32_t registers = 0;    // of a thread
  std::uint32_t order = 0;        // rises with the calls that queued them

  bool operator==(const RanKernel&) const = default;
};

// Of one call of an implementation.
struct CodeOfCall {
  struct Kernel {
    std::string name;  // as people read it
    std::string code;  // its digest
    int launches = 0;
  };
  std::string digest;           // over launches in order, each with its code; empty: see `why`
  std::vector<Kernel> kernels;  // each once, in the order of first launches
  std::string why;
};

// The modules that a process has loaded.
class LoadedCode {
 public:
  void add(std::string cubin) { cubins_.push_back(std::move(cubin)); }
  std::size_t modules() const { return cubins_.size(); }

  // A name that several modules have is told by all their codes: which of them ran nobody says. One that none has
  // leaves the call without a digest, for half of one says nothing.
  CodeOfCall of(std::vector<RanKernel> launches) const;

 private:
  std::string code_of(const std::string& symbol) const;

  std::vector<std::string> cubins_;
};

}  // namespace syslab::trace

#include "capi/operator_entry.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include "capi/dlpack_tensor.hpp"
#include "capi/library.hpp"
#include "capi/syslab.h"
#include "core/text/text.hpp"
#include "ops/foreign.hpp"

namespace syslab::capi {
namespace {

// A call in the library's terms. What its pointers point to is kept beside it.
class Call {
 public:
  Call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
       const Params& options, device::Stream stream)
      : function_(function), stream_(stream) {
    const std::string option(ops::kWholeNumbersOption);
    if (options.has(option)) whole_ = split(options.text(option), ',');
    for (const NamedInput& one : inputs) add(inputs_, one.name, one.view);
    for (const NamedOutput& one : outputs) add(outputs_, one.name, one.view);
    for (const auto& [name, value] : options) {
      if (name == option) continue;
      const auto* const flag = std::get_if<bool>(&value);
      numbers_.push_back({names_.emplace_back(name).c_str(), flag == nullptr ? options.number(name)
                                                             : *flag         ? 1.0
                                                                             : 0.0});
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  int make(decltype(&syslab_operator) entry) const {
    const syslab_operator_call call{.struct_size = sizeof(syslab_operator_call),
                                    .function = function_.c_str(),
                                    .inputs = inputs_.data(),
                                    .inputs_count = inputs_.size(),
                                    .outputs = outputs_.data(),
                                    .outputs_count = outputs_.size(),
                                    .numbers = numbers_.data(),
                                    .numbers_count = numbers_.size()};
    return entry(&call, stream_.handle);
  }

 private:
  void add(std::vector<syslab_named_tensor>& list, std::string_view name, const ConstTensorView& view) {
    OutgoingTensor& tensor = tensors_.emplace_back(view, false, device::place_of(stream_));
    if (std::ranges::find(whole_, name) != whole_.end()) tensor.get()->dtype = {kDLInt, 64, 1};
    list.push_back({names_.emplace_back(name).c_str(), tensor.get()});
  }

  std::string function_;
  device::Stream stream_;
  std::vector<std::string> whole_;
  std::deque<std::string> names_;  // stay where they are
  std::deque<OutgoingTensor> tensors_;
  std::vector<syslab_named_tensor> inputs_, outputs_;
  std::vector<syslab_named_number> numbers_;
};

class LibraryEntry : public OperatorEntry {
 public:
  LibraryEntry(Library library, decltype(&syslab_operator) entry) : library_(std::move(library)), entry_(entry) {}

  std::function<void()> prepare(std::string_view function, std::span<const NamedInput> inputs,
                                std::span<const NamedOutput> outputs, const Params& options,
                                device::Stream stream) const override {
    const auto call = std::make_shared<const Call>(function, inputs, outputs, options, stream);
    return [this, call] { library_.check_status("syslab_operator", call->make(entry_)); };
  }

 private:
  Library library_;
  decltype(&syslab_operator) entry_;
};

}  // namespace

std::unique_ptr<OperatorEntry> find_operator_entry(const std::string& name, const std::filesystem::path& path) {
  Library library(name, path);
  auto* const entry = library.find<decltype(syslab_operator)>("syslab_operator");
  if (entry == nullptr) return nullptr;
  std::string missing;
  decltype(&syslab_last_error) last_error = nullptr;
  library.look_up("syslab_last_error", last_error, missing);
  library.require(missing);
  return std::make_unique<LibraryEntry>(std::move(library), entry);
}

bool exports_attention(const std::string& name, const std::filesystem::path& path) {
  const Library library(name, path);
  return library.find<void>("syslab_attention_forward") != nullptr ||
         library.find<void>("syslab_attention_backward") != nullptr;
}

}  // namespace syslab::capi

// A library's entry for operators by name, syslab_operator.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/call_channel.hpp"
#include "device/device.hpp"

namespace syslab::capi {

class OperatorEntry {
 public:
  virtual ~OperatorEntry() = default;
  // What runs the call, on that stream, where its tensors lie; views live as long as that. Throws what the library
  // answers.
  virtual std::function<void()> prepare(std::string_view function, std::span<const NamedInput> inputs,
                                        std::span<const NamedOutput> outputs, const Params& options,
                                        device::Stream stream) const = 0;
};

// Null where the library does not have the entry. Error(usage) where it cannot be opened, has the entry alone, or
// speaks another ABI.
std::unique_ptr<OperatorEntry> find_operator_entry(const std::string& name, const std::filesystem::path& path);
// Whether it exports a function of attention: then it is asked for all of them.
bool exports_attention(const std::string& name, const std::filesystem::path& path);

}  // namespace syslab::capi

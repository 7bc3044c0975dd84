#include "trace/cupti_records.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_map>

namespace syslab::trace {

std::vector<Activity> join(const std::vector<DeviceRecord>& records, const std::vector<CorrelationRecord>& calls) {
  std::unordered_map<std::uint32_t, std::uint64_t> span_of;
  for (const CorrelationRecord& call : calls) {
    if (call.external != 0) span_of[call.correlation] = call.external - 1;
  }
  std::vector<Activity> made;
  made.reserve(records.size());
  for (const DeviceRecord& record : records) {
    Activity activity{.kind = record.kind,
                      .name = record.name,
                      .track = fmt::format("stream {}", record.stream),
                      .begin = Nanoseconds(record.begin_ns),
                      .end = Nanoseconds(record.end_ns),
                      .bytes = record.bytes};
    if (const auto call = span_of.find(record.correlation); call != span_of.end()) activity.span = call->second;
    if (record.graph_node != 0) activity.graph_node = record.graph_node;
    made.push_back(std::move(activity));
  }
  return made;
}

void GraphNodes::created(std::uint64_t node, std::optional<std::size_t> span) {
  if (span) spans_[node] = *span;
}

void GraphNodes::cloned(std::uint64_t original, std::uint64_t node) {
  if (const auto found = spans_.find(original); found != spans_.end()) spans_[node] = found->second;
}

std::string readable_kernel_name(const char* name) {
  if (name == nullptr || *name == '\0') return "(unnamed)";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         std::free);
  if (status != 0 || demangled == nullptr) return name;
  std::string text = demangled.get();
  // The parameters begin at the last '(' that no bracket encloses; "(anonymous namespace)" is a name.
  int depth = 0;
  std::size_t parameters = std::string::npos, result = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' && depth == 0 && text.compare(i, 11, "(anonymous ") != 0) parameters = i;
    if (c == ' ' && depth == 0 && parameters == std::string::npos) result = i;
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
  }
  text.resize(std::min(text.size(), parameters));
  return result == std::string::npos ? text : text.substr(result + 1);
}

}  // namespace syslab::trace

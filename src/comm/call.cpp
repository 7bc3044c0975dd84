#include "comm/call.hpp"

#include <fmt/format.h>

namespace syslab::comm {

std::string_view to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
  }
  return "?";
}

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_gather:
      return "all_gather";
    case Operation::broadcast:
      return "broadcast";
    case Operation::send:
      return "send";
    case Operation::receive:
      return "receive";
    case Operation::barrier:
      return "barrier";
    case Operation::exchange:
      return "exchange";
  }
  return "?";
}

std::string name_of(const Signature& signature) {
  std::string text = fmt::format("{} #{}", to_string(signature.operation), signature.number);
  const std::string_view kind = signature.kind.view(), label = signature.label.view();
  if (!kind.empty() || !label.empty()) {
    text += fmt::format(" ({}{}{})", kind, kind.empty() || label.empty() ? "" : ", ", label);
  }
  return text;
}

std::string to_string(const Signature& signature) {
  std::string text = name_of(signature);
  if (is_of_host(signature.operation)) return text;
  text += fmt::format(" of {} {} elements", signature.count, to_string(signature.dtype));
  switch (signature.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
      return text + fmt::format(", {}", to_string(signature.reduction));
    case Operation::broadcast:
    case Operation::receive:
      return text + fmt::format(" from rank {}", signature.peer);
    case Operation::send:
      return text + fmt::format(" to rank {}", signature.peer);
    case Operation::all_gather:
    case Operation::barrier:
    case Operation::exchange:
      break;
  }
  return text;
}

}  // namespace syslab::comm

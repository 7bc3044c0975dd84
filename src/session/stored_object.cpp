#include "session/stored_object.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"

namespace syslab::cli {

StoredObject::StoredObject(std::string column, std::string_view text)
    : column_(std::move(column)), object_(json_or_discarded(text)) {
  if (object_.is_object()) return;
  std::string fault = nesting_fault(text);
  if (fault.empty()) {
    fault = object_.is_discarded() ? "malformed JSON; expected a JSON object" : "no JSON object; expected one";
  }
  throw Error(ErrorKind::store, fmt::format("a stored {} is {}", column_, fault));
}

std::string StoredObject::text(const char* field) const {
  if (!contains(field)) {
    throw Error(ErrorKind::store, fmt::format("a stored {} has no '{}'; expected a text", column_, field));
  }
  return value(field, std::string());
}

StoredObject StoredObject::object(const char* field) const {
  if (contains(field) && !object_.at(field).is_object()) refuse(field, "an object");
  StoredObject inner;
  inner.column_ = fmt::format("{}.{}", column_, field);
  inner.object_ = object_.value(field, Json::object());
  return inner;
}

void StoredObject::refuse(const char* field, const char* expected) const {
  constexpr std::size_t kMostQuoted = 80;
  throw Error(ErrorKind::store,
              fmt::format("a stored {} has {} as '{}'; expected {}", column_,
                          one_line(cut_to(json_text(object_.at(field)), kMostQuoted)), field, expected));
}

}  // namespace syslab::cli

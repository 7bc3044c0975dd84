// A JSON object from a column of the database, which any program may have written: what is not as expected is an
// Error(store) that names the column.
//
//   const StoredObject facts("build.facts", text);
//   if (facts.value("git_dirty", false)) …
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/text/json.hpp"

namespace syslab::cli {

class StoredObject {
 public:
  StoredObject(std::string column, std::string_view text);

  bool contains(const char* field) const { return object_.contains(field); }
  // Error where there is no such field, or it is no text.
  std::string text(const char* field) const;
  // The object of that name; one without fields where there is none.
  StoredObject object(const char* field) const;

  // `otherwise` where there is no such field; an error where it is of another type.
  template <typename T>
  T value(const char* field, T otherwise) const {
    const auto found = object_.find(field);
    if (found == object_.end()) return otherwise;
    if constexpr (std::is_same_v<T, bool>) {
      if (!found->is_boolean()) refuse(field, "true or false");
    } else if constexpr (std::is_integral_v<T>) {
      const bool is_unsigned = found->is_number_unsigned();
      const bool fits = is_unsigned
                            ? std::in_range<T>(found->template get<std::uint64_t>())
                            : found->is_number_integer() && std::in_range<T>(found->template get<std::int64_t>());
      if (!fits) refuse(field, "a whole number in its range");
    } else {
      static_assert(std::is_same_v<T, std::string>);
      if (!found->is_string()) refuse(field, "a text");
    }
    return found->template get<T>();
  }

 private:
  StoredObject() = default;
  [[noreturn]] void refuse(const char* field, const char* expected) const;

  std::string column_;
  Json object_;
};

}  // namespace syslab::cli

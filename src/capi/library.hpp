// Somebody's shared library, opened: its symbols, and what its errors say.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.hpp"

namespace syslab::capi {

// Never closed: its code may be running.
class Library {
 public:
  // Error(usage) where there is no such file, or the loader refuses it, with what is missing.
  Library(std::string name, const std::filesystem::path& path);

  // Null where it does not export it.
  template <typename Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(address_of(symbol));
  }
  // Notes the name of what it does not export in `missing`.
  template <typename Function>
  void look_up(const char* symbol, Function*& function, std::string& missing) const {
    function = find<Function>(symbol);
    if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  }
  // Error(usage) where symbols are missing, or its ABI is another than ours.
  void require(const std::string& missing) const;

  const std::string& name() const { return name_; }  // of the implementation, for messages
  // Throws what a status of its functions means; nothing for 0.
  void check_status(const char* function, int status) const;
  std::string error_text() const;

 private:
  void* address_of(const char* symbol) const;

  std::string name_, path_;
  void* handle_;
};

}  // namespace syslab::capi

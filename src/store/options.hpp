// What Store::open takes from its surroundings, so that tests can put something else in its place.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/files/mac.hpp"
#include "store/migrate.hpp"
#include "store/writer.hpp"

namespace syslab::store {

struct OpenOptions {
  Schema schema;
  std::function<std::optional<std::string>(const std::filesystem::path&)> network_file_system;
  std::function<std::string()> now;  // UTC, as core/text/units.hpp's utc_now()
  Writer writer;
  std::function<Key()> key;  // of this user, for run_mac
};

// The schema that this binary carries, this machine, this process, this user.
OpenOptions default_options();

}  // namespace syslab::store

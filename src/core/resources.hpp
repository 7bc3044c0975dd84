// Files of the source tree embedded in the binary: migrations, views, tables, templates. Generated at build time by
// tools/embed.py from the `resource_files` of each meson.build.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace syslab {

struct Resource {
  std::string_view path;  // "db/migrations/0007_init.sql"; of an experiment without its family: "experiments/ID/…"
  std::string_view text;
  std::string_view file;  // from the source root
};

// All with a path that begins with `prefix`, sorted by path.
std::vector<Resource> resources(std::string_view prefix);
std::optional<std::string_view> find_resource(std::string_view path);

}  // namespace syslab

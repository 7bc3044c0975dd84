#include "capi/declared_domain.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"

namespace syslab::capi {
namespace {

constexpr std::uint64_t kMostManifest = 1U << 16;
constexpr std::size_t kMostQuoted = 200;

Json parsed(const std::string& text, const std::string& where) {
  Json json = json_or_discarded(text);
  if (json.is_object()) return json;
  throw Error(ErrorKind::usage,
              fmt::format("{}: a domain is a JSON object such as {{\"dtypes\": [\"fp32\"]}}, found '{}'", where,
                          one_line(cut_to(text, kMostQuoted))));
}

}  // namespace

Json library_domain(const std::string& path) {
  const std::string manifest = path + ".json";
  if (std::filesystem::exists(manifest)) {
    return parsed(read_user_file(manifest, kMostManifest), manifest);
  }
  // Already open: the implementation was loaded first.
  void* const library = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Json::object();
  using Says = const char*();
  const auto says = reinterpret_cast<Says*>(dlsym(library, "syslab_domain"));
  const char* const text = says == nullptr ? nullptr : says();
  return text == nullptr ? Json::object() : parsed(text, path + ": syslab_domain()");
}

attention::Domain domain_from(Json declared, const Params& params, const std::string& whose) {
  for (const auto& [name, value] : params) {
    if (!attention::is_domain_axis(name)) continue;
    const Json said = attention::domain_json(name, split(to_string(value), ','));
    for (const auto& [key, values] : said.items()) declared[key] = values;
  }
  attention::Domain domain = attention::parse_domain(declared, whose);
  domain.usual = params.has("domain") && to_string(params.at("domain")) == "usual";
  return domain;
}

}  // namespace syslab::capi

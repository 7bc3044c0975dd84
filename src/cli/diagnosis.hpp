// What `doctor` checks: one finding each, with a remedy if something is wrong.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs/verbs.hpp"
#include "core/text/json.hpp"

namespace syslab::cli {

// `doubtful`: measuring works, but results may be noisy, or a part is unavailable. `bad`: it does not work.
enum class Level { fine, doubtful, bad };
std::string_view to_string(Level level);

struct Finding {
  std::string subject, found, remedy;  // remedy: empty when fine
  Level level = Level::fine;
};

Finding look_at_database(const Context& context);
Finding look_at_file_system(const std::string& database);
Finding look_at_worker(const Context& context);
Finding look_at_openblas();
Finding look_at_threads(const Json& facts);
Finding look_at_load(const Json& facts);
Finding look_at_clock(const Json& facts);
Finding look_at_python();
Finding look_at_gpu(const Context& context, const Json& facts);
Finding look_at_build();

}  // namespace syslab::cli

#include "worker/wire/tell_rung.hpp"

#include <nlohmann/json.hpp>

namespace syslab::worker {

void tell_rung(CaseContext& context, const std::string& operation, const std::string& rung,
               const std::string& because) {
  const Json facts{{operation + "_rung", rung}, {operation + "_because", because}};
  context.emit(FactRecord{facts.dump()});
}

}  // namespace syslab::worker

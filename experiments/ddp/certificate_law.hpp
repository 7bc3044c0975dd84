// The law that our own strategies keep: the certificate (certify/certificate.hpp) of any model, number of ranks, deal
// of rows and plan of buckets.
#pragma once

#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "parallel/state_memory.hpp"
#include "parallel/strategy.hpp"

namespace syslab {

// What may be drawn: one of these strategies, one of these ways to divide the state.
struct CertifiedStrategies {
  std::vector<parallel::Strategy> strategies;
  std::vector<parallel::Sharding> shardings{parallel::Sharding::none};
};

check::Law certificate_law(const CertifiedStrategies& ours);
LawInfo certificate_law_info();

}  // namespace syslab

// Do all ranks mean the same? Compared before the first collective: build, configuration, parameters, backend, plan.
//
//   agree(ranks, {{"model", "xl26"}, {"parameters", hash}, {"plan", plan.hash()}});
//   // Error(comm): rank 2 differs in 'plan': 'a1b2' there, '77c0' on rank 0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/rendezvous/rendezvous.hpp"

namespace syslab::comm {

using Fields = std::vector<std::pair<std::string, std::string>>;  // names and values, in the order of their weight

// Error(comm) on every rank, the same text, with the first field that differs and both values.
void agree(Communicator& ranks, const Fields& fields);
void agree(Rendezvous& rendezvous, std::string_view name, const Fields& fields, std::chrono::milliseconds limit);

// The first difference of any rank from rank 0; empty: there is none.
std::string first_difference(const std::vector<Fields>& by_rank);

}  // namespace syslab::comm

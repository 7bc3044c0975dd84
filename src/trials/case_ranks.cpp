#include "trials/case_ranks.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "comm/connect.hpp"

namespace syslab::parallel {

std::unique_ptr<comm::Communicator> join(const CaseRank& rank) {
  comm::ConnectOptions options;
  options.rendezvous = rank.rendezvous;
  options.rank = rank.rank;
  options.size = rank.size;
  options.backend = rank.backend;
  options.agree = {{"case", rank.what}};
  options.nccl.place = {device::Kind::cuda, rank.device_index};
  options.local_gpu = false;
  options.gloo = comm::GlooChecks::none;
  return comm::connect(options);
}

double of_first(comm::Communicator& ranks, double own) {
  return std::strtod(ranks.exchange(fmt::format("{:a}", own)).front().c_str(), nullptr);
}

}  // namespace syslab::parallel

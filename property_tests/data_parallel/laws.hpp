// Laws of data parallelism, of sharded optimizers and of full sharding: for classes that ranks of Python use
// (training.hpp), and for our own strategies (experiments/ddp/own_ranks.hpp).
#pragma once

#include <memory>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"
#include "core/call_channel.hpp"

namespace syslab::data_parallel {

// What a strategy promises of its messages.
enum class Strategy { naive, flat, individual, bucketed };

std::vector<check::Law> laws(Strategy strategy, std::shared_ptr<CallChannel> ranks);
std::vector<LawInfo> law_list(Strategy strategy);

}  // namespace syslab::data_parallel

namespace syslab::data_parallel::fully_sharded {

std::vector<check::Law> laws(std::shared_ptr<CallChannel> ranks);
std::vector<LawInfo> law_list();

}  // namespace syslab::data_parallel::fully_sharded

namespace syslab::data_parallel::sharded {

std::vector<check::Law> laws(std::shared_ptr<CallChannel> ranks);
// The same, without options that our optimizers do not have.
std::vector<check::Law> laws_of_ours(std::shared_ptr<CallChannel> ranks);
std::vector<LawInfo> law_list();

}  // namespace syslab::data_parallel::sharded

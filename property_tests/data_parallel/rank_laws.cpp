#include "property_tests/data_parallel/rank_laws.hpp"

#include "property_tests/data_parallel/drawn.hpp"

namespace syslab::data_parallel {

std::vector<check::Law> laws_of_ranks(std::span<const RankLaw> table, AskedByHandout asked,
                                      std::shared_ptr<CallChannel> ranks, const std::string& limits) {
  std::vector<check::Law> list;
  for (const RankLaw& one : table) {
    list.push_back({.id = one.id,
                    .statement = one.statement,
                    .search =
                        [&one, ranks, limits](const check::LawRequest& request) {
                          return search_of_ranks(
                              one.id, request, one.beyond,
                              [&](check::Contract contract) { one.body(*ranks, contract); }, limits);
                        },
                    .asked_by_handout = asked(one)});
  }
  return list;
}

std::vector<LawInfo> infos_of_ranks(std::span<const RankLaw> table, AskedByHandout asked) {
  std::vector<LawInfo> list;
  for (const RankLaw& one : table) {
    list.push_back({.id = one.id, .statement = one.statement, .bound = one.bound, .asked_by_handout = asked(one)});
  }
  return list;
}

}  // namespace syslab::data_parallel

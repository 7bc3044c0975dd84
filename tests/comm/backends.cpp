#include "tests/comm/backends.hpp"

#include "comm/local.hpp"

namespace syslab::comm {

namespace {

RankEnd end_of(const std::exception_ptr& thrown) {
  RankEnd end;
  if (thrown == nullptr) return end;
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    end.kind = error.kind();
    end.error = error.what();
  } catch (const std::exception& error) {
    end.error = error.what();
  }
  return end;
}

std::vector<RankEnd> run_as_threads(int size, CommunicatorOptions options, const RankBody& body) {
  std::vector<std::string> results(static_cast<std::size_t>(size));
  const auto errors = try_local(
      size, options, [&](Communicator& ranks) { results[static_cast<std::size_t>(ranks.rank())] = body(ranks); });
  std::vector<RankEnd> ends;
  for (const std::exception_ptr& error : errors) {
    ends.push_back(end_of(error));
    ends.back().result = std::move(results[ends.size() - 1]);
  }
  return ends;
}

}  // namespace

std::span<const Backend> backends() {
  static const std::vector<Backend> all = {
      {.name = "local", .run = run_as_threads},
  };
  return all;
}

}  // namespace syslab::comm

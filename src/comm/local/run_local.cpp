#include <thread>

#include "comm/local/local.hpp"
#include "core/error.hpp"

namespace syslab::comm {

namespace {

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "it threw something that is no exception of the library";
  }
}

struct Ended {
  std::vector<std::exception_ptr> errors;  // by rank
  std::exception_ptr first;                // of a rank that failed by itself
};

Ended run(int size, CommunicatorOptions options, const std::function<void(Communicator&)>& body) {
  auto ranks = make_local(size, options);
  Ended ended{.errors = std::vector<std::exception_ptr>(ranks.size()), .first = nullptr};
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(*ranks[i]);
      } catch (...) {
        const std::exception_ptr thrown = std::current_exception();
        const std::string text = text_of(thrown);
        const std::lock_guard lock(mutex);
        ended.errors[i] = thrown;
        if (ended.first == nullptr && text != ranks[i]->failure()) ended.first = thrown;
        ranks[i]->abort(text);
      }
      ranks[i] = nullptr;  // it leaves
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

}  // namespace

std::vector<std::exception_ptr> try_local(int size, CommunicatorOptions options,
                                          const std::function<void(Communicator&)>& body) {
  return run(size, options, body).errors;
}

void run_local(int size, CommunicatorOptions options, const std::function<void(Communicator&)>& body) {
  const Ended ended = run(size, options, body);
  if (ended.first != nullptr) std::rethrow_exception(ended.first);
  for (const std::exception_ptr& error : ended.errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

}  // namespace syslab::comm

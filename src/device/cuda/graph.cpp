#include "device/cuda/graph.hpp"

#include <exception>
#include <utility>

#include "core/error.hpp"
#include "device/allocator.hpp"
#include "device/cuda/graph_memory.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/stream.hpp"

namespace syslab::device {

Graph::Graph(Graph&& other) noexcept
    : executable_(std::exchange(other.executable_, nullptr)),
      nodes_(std::exchange(other.nodes_, 0)),
      memory_(std::move(other.memory_)) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(executable_, other.executable_);
  std::swap(nodes_, other.nodes_);
  std::swap(memory_, other.memory_);
  return *this;
}

Graph::~Graph() {
  if (executable_ != nullptr) runtime::destroy_graph(executable_);
}

void Graph::replay(Stream stream) const {
  if (executable_ == nullptr) throw Error(ErrorKind::internal, "a graph that was moved from cannot be replayed");
  runtime::launch_graph(executable_, stream.handle);
}

Capture capture(Stream stream, const std::function<void()>& work, std::shared_ptr<GraphMemory> memory) {
  if (stream.kind == Kind::cpu) return {std::nullopt, "the CPU captures no graphs"};
  const CurrentDevice current(stream);
  std::optional<GraphMemory::Lending> lending;
  if (memory != nullptr) {
    if (!(memory->place() == place_of(stream))) {
      throw Error(ErrorKind::internal, "a capture was lent memory of another device than its stream's");
    }
    allocator_of(memory->place()).release_cached();
    lending.emplace(memory);
  }
  if (std::string why = runtime::begin_capture(stream.handle); !why.empty()) return {std::nullopt, std::move(why)};
  std::exception_ptr thrown;
  std::string told;
  try {
    work();
  } catch (const NotCapturable& error) {
    told = error.what();
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    told = error.what();
  } catch (...) {
    thrown = std::current_exception();
  }
  runtime::Captured captured = runtime::end_capture(stream.handle);
  lending.reset();
  if (!thrown && !told.empty()) {
    if (captured.executable != nullptr) runtime::destroy_graph(captured.executable);
    return {std::nullopt, std::move(told)};
  }
  Capture made;
  if (captured.executable != nullptr) made.graph = Graph(captured.executable, captured.nodes, std::move(memory));
  made.why = std::move(captured.why);
  if (thrown) {
    // If the work broke the capture, that is why it threw.
    if (!captured.broken) std::rethrow_exception(thrown);
    if (!told.empty()) made.why += "; the work says: " + told;
  }
  return made;
}

}  // namespace syslab::device

// `naive`: fp32 on the threads of the host. Forward copies rows. Backward counts the tokens of each id and lists them
// by id in their order (a stable counting sort), so that one thread owns each row of the table and its sum has one
// order.
#include <algorithm>
#include <limits>

#include "ops/embedding/rungs.hpp"
#include "ops/host_pieces.hpp"
#include "ops/storage.hpp"

namespace syslab::embedding {
namespace {

bool in_vocab(std::int64_t id, const Problem& problem) { return id >= 0 && id < problem.vocab; }

template <typename Table, typename X>
void forward_in(const Problem& problem, const ForwardArgs& args) {
  const Table* table = args.table.as<Table>();
  X* x = args.x.as<X>();
  ops::for_pieces(problem.rows, ops::rows_of_a_piece(problem.dim), problem.dim,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t i = first; i < end; ++i) {
                      X* to = x + i * args.x.stride(0);
                      if (in_vocab(args.ids[i], problem)) {
                        const Table* from = table + args.ids[i] * args.table.stride(0);
                        for (std::int64_t d = 0; d < problem.dim; ++d) to[d] = from_float<X>(to_float(from[d]));
                      } else {
                        std::fill_n(to, problem.dim, from_float<X>(std::numeric_limits<float>::quiet_NaN()));
                      }
                    }
                  });
}

// Where the tokens of each id begin in `order`, and where the last list ends.
struct ById {
  std::int64_t *begin, *order;
};

std::size_t by_id_bytes(const Problem& problem) {
  return static_cast<std::size_t>(problem.vocab + 2 + problem.rows) * sizeof(std::int64_t);
}

ById listed_by_id(const Problem& problem, const std::int64_t* ids, ops::Workspace workspace) {
  auto* memory = static_cast<std::int64_t*>(workspace.data);
  const ById lists{memory, memory + problem.vocab + 2};
  // Counts are stored one place further on, so that filling the lists moves them to their final place.
  std::fill_n(lists.begin, problem.vocab + 2, std::int64_t{0});
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    if (in_vocab(ids[i], problem)) ++lists.begin[ids[i] + 2];
  }
  for (std::int64_t v = 1; v <= problem.vocab + 1; ++v) lists.begin[v] += lists.begin[v - 1];
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    if (in_vocab(ids[i], problem)) lists.order[lists.begin[ids[i] + 1]++] = i;
  }
  return lists;
}

template <typename X>
void backward_in(const Problem& problem, const BackwardArgs& args, ops::Workspace workspace) {
  const ById lists = listed_by_id(problem, args.ids, workspace);
  const X* dx = args.dx.as<X>();
  float* table = args.dtable.as<float>();
  ops::for_pieces(problem.vocab, ops::rows_of_a_piece(problem.dim), problem.dim,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t v = first; v < end; ++v) {
                      float* sum = table + v * args.dtable.stride(0);
                      if (!args.accumulate) std::fill_n(sum, problem.dim, 0.0F);
                      for (std::int64_t at = lists.begin[v]; at < lists.begin[v + 1]; ++at) {
                        const X* row = dx + lists.order[at] * args.dx.stride(0);
                        for (std::int64_t d = 0; d < problem.dim; ++d) sum[d] += to_float(row[d]);
                      }
                    }
                  });
}

std::size_t workspace_bytes(const Problem& problem, Pass pass) {
  return pass == Pass::forward ? 0 : by_id_bytes(problem);
}

}  // namespace

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "tokens listed by id with a counting sort, then one running sum a row of the table";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = ops::supports_dtypes(rung, &Problem::table_dtype);
  rung.workspace_bytes = workspace_bytes;
  rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    ops::with_storage(problem.x_dtype, [&]<typename X>() {
      if (problem.table_dtype == problem.x_dtype) {
        forward_in<X, X>(problem, args);
      } else {
        forward_in<float, X>(problem, args);
      }
    });
  };
  rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace workspace, device::Stream) {
    ops::with_storage(problem.x_dtype, [&]<typename X>() { backward_in<X>(problem, args, workspace); });
  };
  return rung;
}

}  // namespace syslab::embedding

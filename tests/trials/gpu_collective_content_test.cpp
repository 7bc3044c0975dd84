// Collectives' content written and checked by a GPU: the host's numbers, and wrong ones found.
#include <cmath>
#include <limits>

#include "comm/local/local.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "trials/measured_collective.hpp"

namespace syslab::parallel {
namespace {

using comm::Operation;
using device::Buffer;

constexpr std::int64_t kElements = 1'500'003;  // more than one turn of every thread

class GpuCollective : public device::GpuTest {};

CollectiveContent content_of(Operation operation) {
  return {.operation = operation, .ranks = 7, .rank = 3, .count = kElements / 7, .sample = 5};
}

TEST_F(GpuCollective, BringsTheHostsNumbers) {
  const Buffer there(kElements * sizeof(float), "brought", stream);
  for (const float scale : {1.0F, 0x1p-64F}) {
    const CollectiveContent content = content_of(Operation::all_reduce);
    std::vector<float> here(kElements);
    fill_brought(here.data(), kElements, content, scale, {});
    fill_brought(there.as<float>(), kElements, content, scale, stream);
    EXPECT_TRUE(to_host<float>(there) == here);
  }
}

TEST_F(GpuCollective, FindsTheHostsErrorAndOneWrongElementAnywhere) {
  const double often = 0x1p-64 * std::pow(7.0, 19);  // rounded: so are products with it
  for (const Operation operation :
       {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather, Operation::broadcast}) {
    SCOPED_TRACE(to_string(operation));
    const CollectiveContent content = content_of(operation);
    const auto errors_agree = [&](const std::vector<float>& found, double scale) {
      const double here = relative_error(found.data(), kElements, content, scale, {});
      const double there = relative_error(to_gpu(found).as<float>(), kElements, content, scale, stream);
      if (std::isnan(here)) {
        EXPECT_TRUE(std::isnan(there)) << there;
      } else {
        EXPECT_EQ(there, here);
      }
      return there;
    };
    std::vector<float> right(kElements), rounded(kElements);
    for (std::int64_t i = 0; i < kElements; ++i) {
      right[static_cast<std::size_t>(i)] = static_cast<float>(content.expected(i));
      rounded[static_cast<std::size_t>(i)] = static_cast<float>(often * content.expected(i));
    }
    EXPECT_EQ(errors_agree(right, 1), 0);
    EXPECT_LT(errors_agree(rounded, often), 1e-7);
    for (const std::size_t at : {std::size_t{0}, std::size_t{777'777}, right.size() - 1}) {
      for (const float wrong :
           {right[at] + 1, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> found = right;
        found[at] = wrong;
        EXPECT_FALSE(errors_agree(found, 1) == 0) << wrong << " at " << at;
      }
    }
  }
}

// Through the class itself, on one rank, whose all-reduce leaves the buffer as it is.
TEST_F(GpuCollective, IsRefreshedAndCheckedWhereItIs) {
  comm::run_local(1, {}, [&](comm::Communicator& ranks) {
    int calls = 0;
    MeasuredCollective one(ranks, Operation::all_reduce, 4 * kElements, stream,
                           [&](const TensorView& buffer, device::Stream on) {
                             if (++calls == 2) device::fill_bytes(buffer.as<float>() + 12'345, 0x3f, 1, on);
                           });
    one.refresh();
    one.call();
    EXPECT_EQ(one.error(), 0);
    one.refresh();
    one.call();
    EXPECT_GT(one.error(), 0) << "one byte is another";
    one.refresh(20);
    one.call();
    EXPECT_EQ(one.error(), 0) << "new content is whole again";
  });
}

}  // namespace
}  // namespace syslab::parallel

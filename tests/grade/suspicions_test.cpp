#include "grade/suspicions.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.hpp"

namespace syslab::grade {
namespace {

TEST(Suspicions, ALibraryInDisguiseIsListedWithItsLine) {
  const auto found = suspicions_of(
      "import torch\n"
      "from torch.nn.functional import scaled_dot_product_attention as mine\n"
      "# not scaled_dot_product_attention\n"
      "def my_scaled_dot_product_attention_by_hand(q):  # xformers\n"
      "    return torch.nn.parallel.DistributedDataParallel(q)\n",
      "flash.py");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].line, 2);
  EXPECT_EQ(found[0].why, "calls torch's own attention");
  EXPECT_EQ(found[1].line, 5);
  EXPECT_EQ(found[1].text, "return torch.nn.parallel.DistributedDataParallel(q)");
  EXPECT_EQ(found[1].file, "flash.py");
}

TEST(Suspicions, MemoryThatOtherHandInsSeeIsListed) {
  const auto found =
      suspicions_of("open('/dev/shm/answers')\nfrom multiprocessing import shared_memory\nkwargs = {}\n", "a.py");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].why, "uses memory that other hand-ins see");
}

TEST(Suspicions, KernelsOfALibraryAreListedByTheirNames) {
  const auto told = [](const std::vector<std::string>& names) {
    Json kernels = Json::array();
    for (const std::string& name : names) kernels.push_back({{"name", name}, {"launches", 3}});
    std::string text;
    for (const Suspicion& one : suspicions_of_kernels(kernels, "flash_forward at seq=512")) {
      text += one.why + ": " + one.text + "; ";
    }
    return text;
  };
  const std::string product = "ampere_sgemm_128x64_nn", sum = "void at::native::reduce_kernel<512>";
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told({"flash_fwd_kernel"}), "") << "the hand-out's own name";
  EXPECT_EQ(told({product, sum, "flash_fwd_kernel"}), "") << "beside one of its own";
  EXPECT_EQ(told({sum, "void pytorch_flash::flash_fwd_kernel<T>"}),
            "ran torch's own attention: 3 times void pytorch_flash::flash_fwd_kernel<T>; ");
  EXPECT_EQ(told({"fmha_cutlassF_f32_aligned_64x64_rf_sm80(P)"}),
            "ran torch's own attention: 3 times fmha_cutlassF_f32_aligned_64x64_rf_sm80(P); ");
  EXPECT_EQ(told({product, sum}), "ran kernels of libraries alone: 3 times ampere_sgemm_128x64_nn; ");
  EXPECT_TRUE(suspicions_of_kernels(Json("none"), "x").empty());
}

TEST(Suspicions, TestsOfTheHandoutAndWhatIsNoPythonAreLeftOut) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "tests");
  std::filesystem::create_directories(folder / ".venv");
  for (const char* name :
       {"tests/test_attention.py", "tests/adapters.py", "b.py", "a.py", "notes.txt", ".venv/torch.py"}) {
    std::ofstream(folder / name) << "x.data_ptr()\n";
  }
  std::vector<std::string> files;
  for (const Suspicion& one : suspicions_in(folder / "")) files.push_back(one.file);
  EXPECT_EQ(files, (std::vector<std::string>{"a.py", "b.py", "tests/adapters.py"}));
}

}  // namespace
}  // namespace syslab::grade

#include "grade/suspicions.hpp"

#include <gtest/gtest.h>

#include <fstream>

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

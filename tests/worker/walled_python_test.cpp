// Questions to the user's interpreter, and to what stands in its place.
#include "worker/judged/walled_python.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.hpp"
#include "worker/judged/half_products.hpp"

namespace syslab::worker {
namespace {

using std::chrono::milliseconds;

TEST(WalledPython, AnswersWithWhatItSaysAndHowItEnds) {
  const PythonAnswer answer = ask_python({"sh", "-c", "printf yes; exit 3"}, 10);
  EXPECT_EQ(answer.output, "yes");
  EXPECT_EQ(answer.exit.code, 3);
  EXPECT_FALSE(answer.is_cut);
}

TEST(WalledPython, WhatSaysTooMuchOrDoesNotEndIsCut) {
  EXPECT_TRUE(ask_python({"sh", "-c", "printf 12345; sleep 600"}, 4).is_cut);
  EXPECT_TRUE(ask_python({"sh", "-c", "sleep 600"}, 4, milliseconds(200)).is_cut);
  EXPECT_TRUE(ask_python({"sh", "-c", "exec >&-; sleep 600"}, 4, milliseconds(200)).is_cut);
}

class InFolder {
 public:
  explicit InFolder(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

TEST(HalfProducts, ATorchInTheFolderThatThisRunsInDoesNotAnswer) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "torch.py") << "__version__, float16 = 'forged', 0\n"
                                        "class Half:\n"
                                        "    def __matmul__(self, other):\n"
                                        "        raise RuntimeError\n"
                                        "def ones(*sizes, dtype):\n"
                                        "    return Half()\n";
  const InFolder here(folder / "");
  const std::optional<Lack> lack = lacks_half_products();
  EXPECT_FALSE(lack && lack->torch == "forged");
}

}  // namespace
}  // namespace syslab::worker

#include "grade/suspicions.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "grade/python_names.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::grade {
namespace {

// "LINE why; " of each.
std::string told(const std::string& code) {
  std::string text;
  for (const Suspicion& one : suspicions_of(code, "a.py")) text += std::to_string(one.line) + " " + one.why + "; ";
  return text;
}

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

TEST(Suspicions, WhatIsImportedCountsUnderAnyName) {
  EXPECT_EQ(told("import torch.nn.functional as F\n\ny = F.scaled_dot_product_attention(q)\n"),
            "3 calls torch's own attention; ");
  EXPECT_EQ(told("from torch import nn\ny = (nn.functional\n     .scaled_dot_product_attention(q))\n"),
            "2 calls torch's own attention; ");
  EXPECT_EQ(told("from torch.nn.parallel import (\n    DistributedDataParallel as D,\n)\n"),
            "2 uses torch's own data parallelism; ");
  EXPECT_EQ(told("import os, ctypes as c\n"), "1 calls machine code past Python; ");
  EXPECT_EQ(told("def f():\n    import socket\n"), "2 opens connections of its own; ");
  EXPECT_EQ(told("import importlib\nx = importlib.import_module('flash_attn')\n"), "2 calls a library's attention; ");
  EXPECT_EQ(told("x = __import__('deepspeed')\n"), "1 uses a library's training on several devices; ");
  EXPECT_EQ(told("import sys\nx = sys.modules['syslab_worker']\n"), "2 names a part of the laboratory; ");
  EXPECT_EQ(told("x = list(p)[0].data_ptr()\ny = q.grad.data_ptr()\n"), "1 looks at where its tensors lie; ");
}

TEST(Suspicions, SoDoesWhatIsReachedInARoundaboutWay) {
  const std::string attention = "2 calls torch's own attention; ", place = "2 looks at where its tensors lie; ";
  EXPECT_EQ(told("from torch.nn.functional import *\ny = scaled_dot_product_attention(q)\n"), attention);
  EXPECT_EQ(told("import torch.nn.functional as F\ny = getattr(F, 'scaled_dot_product_attention')(q)\n"), attention);
  EXPECT_EQ(told("import torch\nf = torch.nn.functional\n\ny = f.scaled_dot_product_attention(q)\n"),
            "4 calls torch's own attention; ");
  EXPECT_EQ(told("import torch\ny = torch.Tensor.data_ptr(x)\n"), place);
  EXPECT_EQ(told("from torch import *\ny = x.data_ptr()\n"), place);
  EXPECT_EQ(told("x = 1\ny = getattr(x, 'data_ptr')()\n"), place);
}

TEST(Suspicions, WhatIsOnlyCalledSoIsNotListed) {
  EXPECT_EQ(told("from torch.nn import *\nclass DistributedDataParallel:\n    pass\nx = DistributedDataParallel()\n"),
            "");
  EXPECT_EQ(told("from .model import *\ny = scaled_dot_product_attention(q)\n"), "");
  EXPECT_EQ(told("from numpy import *\nf = softmax\nf == socket\n"), "");
  EXPECT_EQ(told("socket = ctypes = 1\nsocket.close(ctypes)\n"), "");
  EXPECT_EQ(told("class DistributedDataParallel:\n    pass\nx = DistributedDataParallel()\n"), "");
  EXPECT_EQ(told("from cs336_systems.ddp import DistributedDataParallel\nx = DistributedDataParallel()\n"), "");
  EXPECT_EQ(told("from .model import scaled_dot_product_attention\n"), "");
  EXPECT_EQ(
      told("import torch\n\"\"\"As torch.nn.functional.scaled_dot_product_attention does.\n\nimport ctypes\n\"\"\"\n"),
      "");
  EXPECT_EQ(told("with nvtx.range('scaled_dot_product_attention'):  # import socket\n    pass\n"), "");
  EXPECT_EQ(told("import cs336_basics.model\ncs336_basics.model.scaled_dot_product_attention = mine\n"), "");
}

TEST(Suspicions, TextThatIsNoPythonIsRead) {
  for (const char* code :
       {"'", "\"\"\"", "import", "from", "from x", "from . import", "import a as", "\\", "a.", ")))(", "f''"}) {
    EXPECT_EQ(told(code), "") << code;
  }
}

std::size_t bytes_of(const std::vector<PythonName>& names) {
  std::size_t bytes = 0;
  for (const PythonName& one : names) bytes += one.name.size();
  return bytes;
}

TEST(PythonNames, OfALongModuleAreNotCopiedForEachUse) {
  const std::string module(20'000, 'a');
  std::string uses;
  for (int i = 0; i < 5'000; ++i) uses += ",b";
  for (const std::string& code :
       {"from " + module + " import b" + uses, "import " + module + " as b\nx = [b" + uses + "]",
        "from x import " + module + " as b\nx = [b" + uses + "]"}) {
    const auto names = names_in(code);
    EXPECT_GE(names.size(), 5'000U);
    EXPECT_LE(bytes_of(names), 3'000'000U);
  }
}

TEST(Suspicions, MemoryThatOtherHandInsSeeIsListed) {
  EXPECT_EQ(told("open('/dev/shm/answers')\n"), "1 uses memory that other hand-ins see; ");
  EXPECT_EQ(told("kwargs = {}\nfrom multiprocessing import shared_memory\n"),
            "2 uses memory that other hand-ins see; ");
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

// Which of a folder's files are listed.
std::vector<std::string> files_of(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const Suspicion& one : suspicions_in(folder)) files.push_back(one.file);
  return files;
}

TEST(Suspicions, TestsOfTheHandoutAndWhatIsNoPythonAreLeftOut) {
  const test::TemporaryFolder folder;
  for (const char* name : {"tests", ".venv", ".hidden"}) std::filesystem::create_directories(folder / name);
  for (const char* name : {"tests/test_attention.py", "tests/conftest.py", "tests/adapters.py", "tests/common.py",
                           "tests/impl.py", "b.py", "a.py", "notes.txt", ".venv/torch.py", ".hidden/c.py"}) {
    std::ofstream(folder / name) << "x.data_ptr()\n";
  }
  const std::vector<std::string> files{".hidden/c.py",    "a.py",         "b.py", "tests/adapters.py",
                                       "tests/common.py", "tests/impl.py"};
  EXPECT_EQ(files_of(folder / ""), files);
}

TEST(Suspicions, ATestThatAnotherFileMayImportIsLookedAt) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "tests");
  for (const char* name : {"test_a", "test_b", "test_c"}) {
    std::ofstream(folder / ("tests/" + std::string(name) + ".py")) << "x.data_ptr()\n";
  }
  std::ofstream(folder / "tests/test_b.py") << "from .test_a import x\ny.data_ptr()\n";
  std::ofstream(folder / "tests/adapters.py") << "from .test_b import x\n";
  EXPECT_EQ(files_of(folder / ""), (std::vector<std::string>{"tests/test_a.py", "tests/test_b.py"}));
}

TEST(Suspicions, AFileThatIsTooLargeToBeReadIsListed) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "large.py") << std::string((1U << 20) + 1, '#');
  const auto found = suspicions_in(folder / "");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].file, "large.py");
  EXPECT_NE(found[0].why.find("larger than 1 MiB"), std::string::npos);
}

}  // namespace
}  // namespace syslab::grade

"""Our declarations of torch's stable C interface (src/capi/torch/stable_abi.hpp) against the headers of the torch that this
Python has: every function has the parameters and the result that we declare. Exits 77 without torch 2.10 or newer.

    torch_headers.py [COMPILER]
"""
import pathlib
import subprocess
import sys

try:
    import torch
except ImportError as error:
    print(f"SKIP: torch cannot be imported: {error}")
    sys.exit(77)

HEADERS = pathlib.Path(torch.__file__).parent / "include"
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"

# A handle is a pointer to a class that nobody knows, whatever it is called.
PROGRAM = """
#include <torch/csrc/stable/c/shim.h>

#include <type_traits>

#include "capi/torch/stable_abi.hpp"

template <typename T> struct Plain { using type = T; };
template <typename T> requires std::is_class_v<T> struct Plain<T> { using type = void; };
template <typename T> struct Plain<T*> { using type = typename Plain<T>::type*; };
template <typename R, typename... P> struct Plain<R (*)(P...)> { using type = R (*)(typename Plain<P>::type...); };

template <typename Ours, typename Theirs>
constexpr bool kAlike = std::is_same_v<typename Plain<Ours>::type, typename Plain<Theirs>::type>;

using syslab::capi::torch::Functions;
#define HOLD(name, result, parameters) \\
  static_assert(kAlike<decltype(Functions::name), decltype(&::name)>, #name " is declared otherwise");
SYSLAB_TORCH_FUNCTIONS(HOLD)
HOLD(aoti_torch_get_current_cuda_stream, , )
static_assert(std::is_same_v<StableIValue, syslab::capi::torch::Slot>);
"""


def compile_program(compiler, text):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-DUSE_CUDA", f"-I{HEADERS}", f"-I{SOURCES}", "-x", "c++", "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True)


def main():
    if not (HEADERS / "torch/csrc/stable/c/shim.h").is_file():
        print(f"SKIP: torch {torch.__version__} has no torch/csrc/stable/c/shim.h in {HEADERS}")
        return 77
    compiler = sys.argv[1] if len(sys.argv) > 1 else "c++"
    done = compile_program(compiler, PROGRAM)
    print(done.stderr, end="")
    # The comparison finds what it is for: a parameter that is wider, one that is const, one too many.
    for fault in ("void (*)(int, long*)", "void (*)(int, const int*)", "void (*)(int)"):
        wrong = PROGRAM + f"static_assert(kAlike<{fault}, void (*)(int, int*)>, \"unlike\");\n"
        if "unlike" not in compile_program(compiler, wrong).stderr:
            print(f"FAIL: {fault} passes for void (*)(int, int*)")
            return 1
    print(f"{'FAIL' if done.returncode else 'pass'}: against the headers of torch {torch.__version__}")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())

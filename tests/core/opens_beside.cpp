// A library that reads a file. Its table of names has "open64" only as the end of "my_open64".
#include <fcntl.h>

extern "C" int my_open64(const char* path) { return ::open64(path, O_RDONLY); }

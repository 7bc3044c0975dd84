#include "store/store.hpp"

#include <fmt/format.h>

#include "store/impl.hpp"

namespace syslab::store {

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const std::filesystem::path& path, Mode mode) { return open(path, mode, default_options()); }

Store Store::open(const std::filesystem::path& path, Mode mode, OpenOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->mode = mode;
  impl->options = std::move(options);
  impl->file = mode == Mode::read_only ? open_for_reading(path, impl->options)
                                       : open_for_writing(path, mode == Mode::create, impl->options);
  return Store(std::move(impl));
}

const std::vector<std::string>& Store::notices() const { return impl_->file.notices; }

Connection& Store::Impl::writable() const {
  if (mode == Mode::read_only) {
    throw Error(ErrorKind::store, fmt::format("database '{}' was opened to be read only", path.string()));
  }
  return db();
}

}  // namespace syslab::store

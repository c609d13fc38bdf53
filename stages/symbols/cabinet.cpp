#include "symbols/cabinet.hpp"

#include "base/errors.hpp"
#include "base/spool.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#ifdef ETWRELOG_HAVE_MSPACK
#include <mspack.h>
#endif

namespace etwrelog::symbols {

bool is_cabinet(Bytes file) {
  return file.size() >= 4 && std::memcmp(file.data(), "MSCF", 4) == 0;
}

#ifndef ETWRELOG_HAVE_MSPACK

bool cabinet_support() {
  return false;
}
Result<base::Mapping> open_cabinet(Bytes, std::uint64_t) {
  return base::unsupported("this etwrelog was built without libmspack and opens no compressed symbol files");
}

#else

namespace {

// libmspack reads and writes through these: memory, and a file of ours with a limit on what is written.
struct Target {
  base::Spool spool;
  std::uint64_t most;
  std::optional<Error> failed{};
};
struct Memory {
  Bytes in;
  std::size_t at = 0;
  Target *out = nullptr;
};
struct System : mspack_system {
  Bytes input;
  Target *output = nullptr;
};

Memory &memory(mspack_file *file) {
  return *reinterpret_cast<Memory *>(file);
}

mspack_file *open_memory(mspack_system *system, const char *, int mode) {
  auto &own = *static_cast<System *>(system);
  auto *file = new (std::nothrow) Memory;
  if (file == nullptr) return nullptr;
  if (mode == MSPACK_SYS_OPEN_READ)
    file->in = own.input;
  else
    file->out = own.output;
  return reinterpret_cast<mspack_file *>(file);
}
void close_memory(mspack_file *file) {
  delete &memory(file);
}
int read_memory(mspack_file *file, void *to, int bytes) {
  Memory &m = memory(file);
  if (bytes < 0) return -1;
  const std::size_t count = std::min(static_cast<std::size_t>(bytes), m.in.size() - m.at);
  if (count != 0) std::memcpy(to, m.in.data() + m.at, count);
  m.at += count;
  return static_cast<int>(count);
}
int write_memory(mspack_file *file, void *from, int bytes) {
  Memory &m = memory(file);
  if (bytes < 0 || m.out == nullptr) return -1;
  const auto count = static_cast<std::size_t>(bytes);
  if (count > m.out->most - m.out->spool.size()) return -1;
  if (Result<void> written = m.out->spool.append({static_cast<const std::uint8_t *>(from), count});
      !written) {
    m.out->failed = std::move(written).error();
    return -1;
  }
  return bytes;
}
int seek_memory(mspack_file *file, off_t offset, int mode) {
  Memory &m = memory(file);
  const auto size = static_cast<off_t>(m.in.size());
  const off_t base = mode == MSPACK_SYS_SEEK_START ? 0
                     : mode == MSPACK_SYS_SEEK_CUR ? static_cast<off_t>(m.at)
                                                   : size;
  if (offset < -base || offset > size - base) return -1;
  m.at = static_cast<std::size_t>(base + offset);
  return 0;
}
off_t tell_memory(mspack_file *file) {
  return static_cast<off_t>(memory(file).at);
}
void no_message(mspack_file *, const char *, ...) {}
void *allocate(mspack_system *, std::size_t bytes) {
  return std::malloc(bytes);
}
void release(void *at) {
  std::free(at);
}
void copy(void *from, void *to, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

System make_system(Bytes file) {
  System system{};
  system.open = open_memory;
  system.close = close_memory;
  system.read = read_memory;
  system.write = write_memory;
  system.seek = seek_memory;
  system.tell = tell_memory;
  system.message = no_message;
  system.alloc = allocate;
  system.free = release;
  system.copy = copy;
  system.input = file;
  return system;
}

Result<base::Mapping> extract(mscab_decompressor &cabinets, System &system, const mscabd_cabinet &cabinet) {
  mscabd_file *const first = cabinet.files;
  ETWRELOG_TRY_LET(spool, base::Spool::create(Advice::none));
  Target target{std::move(spool), first->length};
  system.output = &target;
  const bool good = cabinets.extract(&cabinets, first, "memory") == MSPACK_ERR_OK;
  if (target.failed) return *std::move(target.failed);
  if (!good || target.spool.size() != first->length)
    return base::corrupt("cabinet: its compressed data is damaged");
  return target.spool.map();
}

} // namespace

bool cabinet_support() {
  return true;
}

Result<base::Mapping> open_cabinet(Bytes file, std::uint64_t most) {
  System system = make_system(file);
  const auto close = [](mscab_decompressor *d) { mspack_destroy_cab_decompressor(d); };
  const std::unique_ptr<mscab_decompressor, decltype(close)> cabinets(mspack_create_cab_decompressor(&system),
                                                                      close);
  if (!cabinets) return base::io_failure("no memory for the cabinet");
  mscabd_cabinet *cabinet = cabinets->open(cabinets.get(), "memory");
  if (cabinet == nullptr) return base::corrupt("cabinet: it contradicts its format");
  const mscabd_file *first = cabinet->files;
  Result<base::Mapping> result = base::corrupt("cabinet: it holds no file");
  // What claims to grow more than any compression allows would only cost memory.
  constexpr std::uint64_t kMostGrowth = 4096;
  if (first != nullptr && first->length > std::min(most, kMostGrowth * file.size())) {
    result = base::unsupported("cabinet: its file is larger than the limit");
  } else if (first != nullptr) {
    result = extract(*cabinets, system, *cabinet);
  }
  cabinets->close(cabinets.get(), cabinet);
  return result;
}

#endif

} // namespace etwrelog::symbols

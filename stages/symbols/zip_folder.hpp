// PDB files that PerfView puts beside the trace into a .etl.zip, in the layout of a symbol store.
#pragma once

#include "base/input.hpp"
#include "zip/directory.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace etwrelog::symbols {

// A member's name and content; true: this is the one that was looked for.
using VisitMember = std::function<bool(const std::string &, Bytes)>;

class ZipFolder {
public:
  [[nodiscard]] static Result<ZipFolder> open(const std::string &path);

  // Visits members whose last name is `name`, in any case, of at most `most` bytes: those in a folder called
  // `key` first. True if one was the one. Any thread.
  [[nodiscard]] bool visit(const std::string &name, const std::string &key, std::uint64_t most,
                           const VisitMember &visit) const;

private:
  struct Member {
    zip::Member in_zip;
    std::string file, folder; // the last name of its path, and that of the folder it is in; in small letters
  };
  ZipFolder(std::unique_ptr<base::InputBytes> zip, std::vector<Member> members)
      : zip_(std::move(zip)), members_(std::move(members)) {}

  std::unique_ptr<base::InputBytes> zip_;
  std::vector<Member> members_;
};

} // namespace etwrelog::symbols

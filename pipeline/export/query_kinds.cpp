#include "export/query_kinds.hpp"

#include "base/cut_text.hpp"
#include "etwrelog/kernel_events.hpp"
#include "export/event_columns.hpp"

#include <algorithm>
#include <map>

namespace etwrelog::pipeline {
namespace {

struct Part : KindsSeen {
  void clear() { *this = {}; }
  void add(const Guid &provider) {
    if (std::ranges::find(undescribed, provider) == undescribed.end()) undescribed.push_back(provider);
  }
};

} // namespace

Result<KindsSeen> kinds_seen(const etwrelog::Trace &trace, const SchemaCatalog &schemas,
                             const Selection &selection, const RunOptions &run) {
  Query query;
  query.from = selection.from, query.to = selection.to;
  Result<Part> seen = trace.fold<Part>(
      [&](Part &part, EventBatch &batch) {
        part.ordinals.assign(schemas.all().size(), false);
        for (const Event &event : batch)
          if (const Schema *schema = schemas.find(event))
            part.ordinals[schema->ordinal] = true;
          else
            part.add(event.provider());
      },
      [&](Part &total, Part &part) {
        total.ordinals.resize(schemas.all().size());
        for (std::size_t i = 0; i < part.ordinals.size(); ++i)
          if (part.ordinals[i]) total.ordinals[i] = true;
        for (const Guid &provider : part.undescribed)
          total.add(provider);
      },
      query, run);
  if (!seen) return std::move(seen).error();
  return KindsSeen(*std::move(seen));
}

bool may_mean_several(const std::string &sql, const SchemaCatalog &schemas, const etwrelog::Trace &trace) {
  const bool one_source = trace.sources().size() == 1;
  const std::string folded = base::lower(sql);
  std::map<std::string, const Schema *> bases;
  // Of a kind of the kernel's one source has one version.
  const auto is_one = [one_source](const Schema &a, const Schema &b) {
    return one_source && a.name == b.name && kernel::hook_of_class(a.provider, a.opcode) &&
           kernel::hook_of_class(b.provider, b.opcode);
  };
  for (const Schema *schema : schemas.all())
    for (const std::optional<std::string> &name :
         {std::optional(table_base(schemas, schema)), other_table_base(schemas, *schema)}) {
      if (!name) continue;
      std::string table = base::lower(*name);
      if (folded.find(table) == std::string::npos) continue;
      const auto [known, fresh] = bases.try_emplace(std::move(table), schema);
      if (schema->origin == Origin::trace_logging || (!fresh && !is_one(*known->second, *schema)))
        return true;
    }
  return false;
}

} // namespace etwrelog::pipeline

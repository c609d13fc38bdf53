// Tables that are pulled: batches of a walk as Arrow's structures. Workers decode into columns; what a batch
// has too few rows of is put together with the next.
#include "etwrelog/arrow.hpp"

#include "api/traversal.hpp"
#include "base/errors.hpp"
#include "export/rows.hpp"
#include "tables/arrow_data.hpp"

#include <cerrno>
#include <mutex>

namespace etwrelog {
namespace {

using pipeline::FieldColumns;
using pipeline::RowBatches;
using pipeline::Rows;
using pipeline::TableRows;
using pipeline::Walk;
using pipeline::WalkSlot;

constexpr std::size_t kRows = 8192;       // of a batch, at least
constexpr std::size_t kBytes = 16u << 20; // a batch of so many has enough rows

// What streams read and how; they share it.
struct Source {
  const Trace &trace;
  RunOptions run;
  std::unique_ptr<const TableRows> all;
};

Result<std::shared_ptr<const Source>> make_source(const Trace &trace, const ExportOptions &options,
                                                  FieldColumns fields, const RunOptions &run) {
  ETWRELOG_TRY_LET(all, TableRows::make(trace, options, fields, run));
  auto source = std::make_shared<Source>(Source{trace, run, std::move(all)});
  source->run.report = nullptr; // it may be gone when a stream ends
  return std::shared_ptr<const Source>(std::move(source));
}

std::size_t bytes_of(const tables::Batch &batch) {
  std::size_t bytes = 0;
  for (const tables::ColumnData &column : batch.columns)
    bytes += column.bytes();
  return bytes;
}

class Stream {
public:
  // `kind`: of a source by kinds. `query`: gives those events, and maybe others.
  Stream(std::shared_ptr<const Source> source, std::optional<Rows::Kind> kind, Query query)
      : source_(std::move(source)), kind_(kind), query_(std::move(query)),
        columns_(source_->all->rows->columns(kind.value_or(RowBatches::kUndescribed))) {
    tables::tell_apart(columns_);
  }

  void give_to(ArrowArrayStream &out) && {
    auto *owned = new Stream(std::move(*this));
    out.get_schema = [](ArrowArrayStream *stream, ArrowSchema *schema) {
      Stream &self = of(stream);
      return self.guarded([&]() -> Result<void> {
        tables::to_arrow(self.columns_, *schema);
        return {};
      });
    };
    out.get_next = [](ArrowArrayStream *stream, ArrowArray *array) {
      Stream &self = of(stream);
      *array = {};
      return self.guarded([&] { return self.next(*array); });
    };
    out.get_last_error = [](ArrowArrayStream *stream) -> const char * {
      const std::string &message = of(stream).message_;
      return message.empty() ? nullptr : message.c_str();
    };
    out.release = [](ArrowArrayStream *stream) {
      delete &of(stream);
      *stream = {};
    };
    out.private_data = owned;
  }

private:
  static Stream &of(ArrowArrayStream *stream) { return *static_cast<Stream *>(stream->private_data); }

  template <class Call> int guarded(Call &&call) noexcept {
    try {
      message_.clear();
      Result<void> done = call();
      if (done) return 0;
      reading_.reset();
      ended_ = true;
      message_ = done.error().message();
      switch (done.error().kind) {
      case ErrorKind::cancelled: return ECANCELED;
      case ErrorKind::limit: return ENOMEM;
      case ErrorKind::usage:
      case ErrorKind::no_match:
      case ErrorKind::unsupported: return EINVAL;
      default: return EIO;
      }
    } catch (const std::exception &) {
      message_.assign("out of memory"); // short enough to need none
      reading_.reset();
      ended_ = true;
      return ENOMEM;
    }
  }

  // A walk under way and the rows that its threads fill.
  struct Reading {
    std::mutex mutex;
    std::vector<std::unique_ptr<RowBatches>> parts, spare;
    std::unique_ptr<Walk> walk; // last: its threads end first

    RowBatches *take() {
      const std::lock_guard lock(mutex);
      if (spare.empty()) spare.push_back(std::make_unique<RowBatches>());
      parts.push_back(std::move(spare.back()));
      spare.pop_back();
      return parts.back().get();
    }
    void give(RowBatches *part) {
      const std::lock_guard lock(mutex);
      const auto found = std::ranges::find(parts, part, &std::unique_ptr<RowBatches>::get);
      spare.push_back(std::move(*found));
      parts.erase(found);
    }
  };

  Result<void> start() {
    auto reading = std::make_unique<Reading>();
    ETWRELOG_TRY_LET(walk,
                     Walk::start(source_->trace, query_, source_->all->selected->reading(), source_->run));
    reading->walk = std::move(walk);
    ETWRELOG_TRY(
        reading->walk->begin([to = reading.get(), all = source_->all.get(), kind = kind_](WalkSlot &slot) {
          RowBatches *part = to->take();
          slot.part = part;
          fill(*all, kind, *slot.events, *part);
          return Result<void>();
        }));
    reading_ = std::move(reading);
    return {};
  }

  static void fill(const TableRows &all, std::optional<Rows::Kind> kind, EventBatch &batch,
                   RowBatches &part) {
    part.clear();
    Rows::Adder adder(*all.rows, part);
    for (const Event &event : batch) {
      const Schema *schema = all.survey.schemas.find(event);
      if (kind && (schema == nullptr ? RowBatches::kUndescribed : schema->ordinal) != *kind) continue;
      adder.add(event, schema);
    }
    adder.finish();
  }

  // Leaves `out` released at the end.
  Result<void> next(ArrowArray &out) {
    if (ended_) return {};
    if (!reading_) {
      if (source_->all->selected->nothing()) {
        ended_ = true;
        return {};
      }
      ETWRELOG_TRY(start());
    }
    tables::Batch batch(columns_);
    while (batch.rows < kRows && bytes_of(batch) < kBytes) {
      Result<void> status;
      WalkSlot *slot = reading_->walk->next(status);
      if (slot == nullptr) {
        ETWRELOG_TRY(std::move(status));
        ended_ = true;
        reading_.reset();
        break;
      }
      auto *part = static_cast<RowBatches *>(slot->part);
      ETWRELOG_TRY(part->for_each([&](Rows::Kind, tables::Batch &more) { return add(more, batch); }));
      reading_->give(part);
    }
    ETWRELOG_TRY(batch.check_size());
    return batch.rows == 0 ? Result<void>() : tables::to_arrow(columns_, std::move(batch), out);
  }

  // May take the memory of `more` for that of `batch`.
  static Result<void> add(tables::Batch &more, tables::Batch &batch) {
    if (batch.rows == 0) {
      std::swap(batch, more);
      return {};
    }
    for (std::size_t i = 0; i < batch.columns.size(); ++i)
      batch.columns[i].append(more.columns[i]);
    batch.rows += more.rows;
    return {};
  }

  std::shared_ptr<const Source> source_;
  std::optional<Rows::Kind> kind_;
  Query query_;
  std::vector<tables::Column> columns_;
  std::unique_ptr<Reading> reading_; // from the first batch to the last
  bool ended_ = false;
  std::string message_; // of the last call
};

// How many selected events there are of each kind.
struct Counts {
  std::vector<std::uint64_t> described; // by ordinal
  std::uint64_t undescribed = 0;
  void clear() { *this = {}; }
};

Result<Counts> count_kinds(const Source &source) {
  const TableRows &all = *source.all;
  const SchemaCatalog &schemas = all.survey.schemas;
  return all.selected->fold<Counts>(
      source.trace,
      [&](Counts &part, EventBatch &batch) {
        part.described.resize(schemas.all().size());
        for (const Event &event : batch) {
          const Schema *schema = schemas.find(event);
          ++(schema == nullptr ? part.undescribed : part.described[schema->ordinal]);
        }
      },
      [](Counts &total, Counts &part) {
        total.described.resize(part.described.size());
        for (std::size_t i = 0; i < part.described.size(); ++i)
          total.described[i] += part.described[i];
        total.undescribed += part.undescribed;
      },
      Order::file, source.run);
}

} // namespace

Result<void> arrow_events(const Trace &trace, ArrowArrayStream &out, const ExportOptions &options,
                          const RunOptions &run) {
  ETWRELOG_TRY_LET(source, make_source(trace, options, {.by_kind = false}, run));
  const Query query = source->all->selected->query(Order::time);
  Stream(std::move(source), std::nullopt, query).give_to(out);
  return {};
}

struct ArrowTables::Impl {
  std::shared_ptr<const Source> source;
  std::vector<ArrowTable> tables;
};

ArrowTables::ArrowTables(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ArrowTables::ArrowTables(ArrowTables &&) noexcept = default;
ArrowTables &ArrowTables::operator=(ArrowTables &&) noexcept = default;
ArrowTables::~ArrowTables() = default;

Result<ArrowTables> ArrowTables::open(const Trace &trace, const ExportOptions &options,
                                      const RunOptions &run) {
  ETWRELOG_TRY_LET(source, make_source(trace, options, {.lists = true}, run));
  auto impl = std::make_unique<Impl>(Impl{std::move(source), {}});
  ETWRELOG_TRY_LET(counts, count_kinds(*impl->source));
  const SchemaCatalog &schemas = impl->source->all->survey.schemas;
  pipeline::TableNames names;
  for (std::size_t i = 0; i < counts.described.size(); ++i) {
    if (counts.described[i] == 0) continue;
    const Schema *schema = schemas.all()[i];
    impl->tables.push_back({names.give(schemas, schema), schema, counts.described[i]});
  }
  if (counts.undescribed != 0)
    impl->tables.push_back({names.give(schemas, nullptr), nullptr, counts.undescribed});
  return ArrowTables(std::move(impl));
}

std::span<const ArrowTable> ArrowTables::tables() const {
  return impl_->tables;
}

Result<void> ArrowTables::stream(std::size_t table, ArrowArrayStream &out) const {
  if (table >= impl_->tables.size())
    return base::bad_option(Option::none, "there is no such table")
        .expected("less than " + std::to_string(impl_->tables.size()))
        .found(std::to_string(table));
  const Schema *schema = impl_->tables[table].schema;
  Query query = impl_->source->all->selected->query(Order::time);
  // A condition names its kinds itself.
  if (schema != nullptr && query.kinds.empty()) where::add_kind(query.kinds, *schema);
  Stream(impl_->source, schema == nullptr ? RowBatches::kUndescribed : Rows::Kind{schema->ordinal},
         std::move(query))
      .give_to(out);
  return {};
}

} // namespace etwrelog

// The tables of an export, read by those who will read them, row by row against its JSON lines.
//   node tables.mjs FOLDER     with x.jsonl, x.parquet, x.duckdb, x.arrow, x.arrows, x.csv, x.sqlite
import { readFileSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC } from 'apache-arrow';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

const folder = process.argv[2];
const columns = ['timestamp', 'cpu', 'process_id', 'thread_id', 'process', 'provider', 'provider_id', 'event', 'id',
  'version', 'opcode', 'level', 'keyword', 'activity'];
const plain = value => value === undefined || value === null ? null : typeof value === 'bigint' ? Number(value) : value;
// Nanoseconds since 1970 of "2020-09-14T22:49:57.2118091Z".
const nanoseconds = text => BigInt(Date.parse(text.slice(0, 19) + 'Z')) * 1000000n + BigInt(text.slice(20, 27)) * 100n;

const text = readFileSync(`${folder}/x.jsonl`, 'utf8');
const lines = text.trimEnd().split('\n');
// Numbers of JSON may have more digits than a double: fields are compared as text.
const expected = lines.map(line => {
  const event = JSON.parse(line);
  const at = line.indexOf(',"fields":') + 10;
  let end = line.indexOf(',"tail":"', at);
  if (end < 0) end = line.indexOf(',"truncated":true', at);
  if (end < 0) end = line.indexOf(',"raw":"', at);
  if (end < 0) end = line.length - 1;
  const fields = line.slice(at, end);
  return { time: nanoseconds(event.time), fields: fields === 'null' ? null : fields,
    row: columns.map(name => plain(event[name])) };
});

let failed = 0;
function compare(name, rows, get, time) {
  if (rows.length !== expected.length) {
    console.log(`${name}: ${rows.length} rows, not ${expected.length}`);
    failed = 1;
    return;
  }
  for (let i = 0; i < rows.length; ++i) {
    const row = columns.map(column => plain(get(rows[i], column)));
    const wrong = columns.find((_, c) => row[c] !== expected[i].row[c]);
    const fields = plain(get(rows[i], 'fields'));
    if (wrong === undefined && fields === expected[i].fields && (!time || time(rows[i]) === expected[i].time)) continue;
    console.log(`${name}: row ${i} differs in ${wrong ?? 'fields or time'}: ${JSON.stringify(row)} ${fields}\n` +
      `  expected ${JSON.stringify(expected[i].row)} ${expected[i].fields}`);
    failed = 1;
    return;
  }
  console.log(`${name}: ${rows.length} rows are equal`);
}
const member = (row, column) => row[column];

const parquet = await parquetReadObjects({ file: await asyncBufferFromFile(`${folder}/x.parquet`), compressors });
compare('Parquet, hyparquet', parquet, member);

for (const kind of ['arrow', 'arrows']) {
  const table = tableFromIPC(readFileSync(`${folder}/x.${kind}`));
  const times = table.getChild('time').toArray();
  let next = 0;
  compare(`.${kind}, apache-arrow`, [...table], member, () => BigInt(times[next++]));
}

let polars;
try {
  polars = (await import('nodejs-polars')).default;
} catch (error) {
  console.log(`skipped: polars: ${String(error).slice(0, 80)}`);
}
if (polars) {
  compare('.arrow, polars', polars.readIPC(readFileSync(`${folder}/x.arrow`)).toRecords(), member);
  compare('.arrows, polars', polars.readIPCStream(readFileSync(`${folder}/x.arrows`)).toRecords(), member);
}

const memory = await (await DuckDBInstance.create(':memory:')).connect();
async function ask(connection, sql) {
  const reader = await connection.runAndReadAll(sql);
  return reader.getRowObjects();
}
compare('Parquet, DuckDB', await ask(memory, `SELECT *, epoch_ns(time) AS ns FROM '${folder}/x.parquet'`), member,
  row => row.ns);
compare('CSV, DuckDB', await ask(memory, `SELECT * FROM read_csv('${folder}/x.csv', all_varchar = true)`),
  (row, column) => {
    const value = row[column];
    return value === null || value === '' ? null
      : ['timestamp', 'cpu', 'process_id', 'thread_id', 'id', 'version', 'opcode', 'level'].includes(column)
        ? Number(value) : value;
  });
const database = await (await DuckDBInstance.create(`${folder}/x.duckdb`, { access_mode: 'READ_ONLY' })).connect();
const counted = await ask(database, 'SELECT count(*) AS n, sum(timestamp) AS sum FROM events');
const sum = expected.reduce((all, event) => all + BigInt(event.row[0]), 0n);
if (Number(counted[0].n) !== expected.length || BigInt(counted[0].sum) !== sum) {
  console.log(`DuckDB: ${counted[0].n} events, not ${expected.length}, or other times`);
  failed = 1;
} else {
  console.log(`DuckDB: a table for each kind, ${counted[0].n} events together`);
}
process.exit(failed);

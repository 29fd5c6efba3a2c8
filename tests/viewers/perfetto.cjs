// Loads a time line into Perfetto's trace processor and prints the tracks that it has, as JSON.
//
// usage: node perfetto.cjs FOLDER_OF_THE_PACKAGE TRACE
//
// The trace processor is the one that ui.perfetto.dev runs in the browser, a WebAssembly module in an npm package. It is
// spoken to as the page does: requests and answers are messages of Perfetto's trace_processor.proto.
"use strict";
const fs = require("fs");
const path = require("path");

const [folder, trace] = process.argv.slice(2).map((name) => path.resolve(name));

// Protocol buffers, as far as these messages need them.
const varint = (value) => {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
};
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);

function* fields(message) {
  let at = 0;
  const read = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  };
  while (at < message.length) {
    const key = Number(read());
    const kind = key & 7;
    if (kind === 0) yield [key >> 3, read()];
    else if (kind === 1) yield [key >> 3, message.subarray(at, (at += 8))];
    else if (kind === 2) {
      const length = Number(read());
      yield [key >> 3, message.subarray(at, (at += length))];
    } else throw new Error(`a field of the kind ${kind}`);
  }
}
function* packed(message) {
  for (let at = 0; at < message.length; ) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    yield BigInt.asIntN(64, value);
  }
}

// TraceProcessorRpc: seq = 1, request = 2, append_trace_data = 101, query_args = 103 { sql_query = 1 },
// and in answers query_result = 203; TraceProcessorRpcStream: msg = 1.
const APPEND = 1, FINALIZE = 2, QUERY = 3;
let sequence = 0;
const request = (method, ...more) =>
  bytes(1, Buffer.concat([number(1, ++sequence), number(2, method), ...more]));

// A QueryResult: column_names = 1, error = 2, batch = 3 { cells = 1, varint = 2, float64 = 3, string = 5 }.
function rows(results) {
  let names = [];
  const values = [];
  for (const result of results) {
    for (const [field, value] of fields(result)) {
      if (field === 1) names.push(value.toString());
      if (field === 2 && value.length > 0) throw new Error(value.toString());
      if (field === 3) values.push(...batch(value));
    }
  }
  const found = [];
  for (let at = 0; at < values.length; at += names.length) {
    found.push(Object.fromEntries(names.map((name, place) => [name, values[at + place]])));
  }
  return found;
}
function batch(message) {
  const [kinds, integers, texts] = [[], [], []];
  const floats = [];
  for (const [field, value] of fields(message)) {
    if (field === 1) kinds.push(...packed(value));
    if (field === 2) integers.push(...packed(value));
    if (field === 3) for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
    if (field === 5) texts.push(...value.toString().split("\0").slice(0, -1));
  }
  const next = { 1: () => null, 2: () => Number(integers.shift()), 3: () => floats.shift(), 4: () => texts.shift() };
  return kinds.map((kind) => next[kind]());
}

async function main() {
  process.chdir(folder); // where the module looks for its .wasm
  globalThis.self = {};
  const log = console.log;
  console.log = () => {}; // what the module says of itself
  console.warn = () => {};
  let answers = [];
  require(path.join(folder, "engine_bundle.js")); // its worker's message handler is the way in
  const port = { postMessage: (data) => answers.push(Buffer.from(data)) };
  self.onmessage({ data: { enginePort: port } });
  const send = (data) => {
    answers = [];
    port.onmessage({ data: new Uint8Array(data) });
    const messages = answers.flatMap((answer) => [...fields(answer)].map(([, message]) => message));
    return messages.flatMap((message) => [...fields(message)]);
  };
  const query = (sql) => {
    const got = send(request(QUERY, bytes(103, bytes(1, Buffer.from(sql)))));
    return rows(got.filter(([field]) => field === 203).map(([, value]) => value));
  };
  await new Promise((compiled) => setTimeout(compiled, 0));
  send(request(APPEND, bytes(101, fs.readFileSync(trace))));
  send(request(FINALIZE));
  const tracks = query(`
    select process.pid, process.name as process, thread.tid, thread.name as thread, count(slice.id) as slices,
      sum(slice.dur) as dur_ns, min(slice.ts) as first_ns, max(slice.depth) as depth
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
      left join process using (upid)
    group by utid order by process.pid, thread.tid`);
  const names = query("select name, count(*) as slices, sum(dur) as dur_ns from slice group by name order by name");
  const problems = query("select name, value from stats where severity = 'error' and value > 0");
  const slices = query("select count(*) as n from slice")[0].n;
  log(JSON.stringify({ slices, tracks, names, problems }));
}
main().catch((error) => {
  console.error(error);
  process.exit(1);
});

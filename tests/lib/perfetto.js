// node perfetto.js FOLDER TRACE QUERY...: prints what Perfetto's trace processor answers, as JSON: a list of rows for
// each query. FOLDER has the files of Perfetto's page: engine_bundle.js, the worker that reads a trace there, and
// trace_processor*.wasm. It is asked as the page asks it, in protobuf (trace_processor.proto, TraceProcessorRpc).
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const node = process;
const [folder, trace, ...queries] = node.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3, APPEND_DATA = 101, QUERY_ARGS = 103, QUERY_RESULT = 203;
const PIECE = 16 << 20;

const varint = (n) => (n < 128 ? [n] : [(n % 128) | 128, ...varint(Math.floor(n / 128))]);
const field = (number, bytes) => Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
const text = (bytes) => Buffer.from(bytes).toString();

function numberAt(bytes, at) {
  let value = 0n, shift = 0n, byte;
  do {
    byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    shift += 7n;
  } while (byte & 128);
  return [BigInt.asIntN(64, value), at];
}

function numbers(bytes) {
  const all = [];
  for (let at = 0, n; at < bytes.length; all.push(Number(n))) [n, at] = numberAt(bytes, at);
  return all;
}

// Fields are numbers, or texts and messages.
function* fields(bytes) {
  for (let at = 0, key, value; at < bytes.length; ) {
    [key, at] = numberAt(bytes, at);
    [value, at] = numberAt(bytes, at);
    if (key & 7n) value = bytes.subarray(at, (at += Number(value)));
    yield [Number(key >> 3n), value];
  }
}

let answer = null;

function add(result) {
  for (const [number, value] of fields(result)) {
    if (number === 1) ++answer.columns;
    if (number === 2) throw Error(text(value));
    if (number !== 3) continue;
    const of = [];  // by the kind of a cell, of which 1 is null
    for (const [kind, packed] of fields(value)) {
      if (kind < 3) of[kind] = numbers(packed);
      if (kind === 3) of[3] = Array.from({ length: packed.length / 8 }, (_, i) => Buffer.from(packed).readDoubleLE(8 * i));
      if (kind === 5) of[4] = text(packed).split("\0");
    }
    for (const kind of of[1] || []) answer.cells.push(kind === 1 ? null : of[kind].shift());
  }
}

const port = {
  postMessage(messages) {
    for (const [, message] of fields(messages)) {
      for (const [number, value] of fields(message)) {
        if (number === 5) throw Error(text(value));
        if (number === QUERY_RESULT) add(value);
      }
    }
  },
};

function ask(method, number, bytes) {
  const what = number ? field(number, bytes) : Buffer.alloc(0);
  port.onmessage({ data: new Uint8Array(field(1, Buffer.concat([Buffer.from([16, method]), what]))) });
}

function rowsOf(query) {
  answer = { columns: 0, cells: [] };
  ask(QUERY, QUERY_ARGS, field(1, Buffer.from(query)));
  const rows = [];
  for (let i = 0; i < answer.cells.length; i += answer.columns) rows.push(answer.cells.slice(i, i + answer.columns));
  return rows;
}

node.on("uncaughtException", (error) => {  // without node's copy of the line, which is all of the worker
  node.stderr.write(`${error.message}\n`);
  node.exit(1);
});
const file = (url) => fs.readFileSync(path.join(folder, path.basename(url)));
console.warn = () => {};
delete globalThis.process;  // the worker is built for browsers, and refuses node
Object.assign(globalThis, {
  self: globalThis,
  WorkerGlobalScope: Object,
  location: { href: "file:///engine_bundle.js" },
  XMLHttpRequest: class {
    open(_, url) {
      this.response = file(url);
    }
    send() {}
  },
});
vm.runInThisContext(text(file("engine_bundle.js")));
globalThis.onmessage({ data: port });
setTimeout(() => {  // when it has been set up
  const whole = fs.readFileSync(trace);
  for (let at = 0; at < whole.length; at += PIECE) ask(APPEND, APPEND_DATA, whole.subarray(at, at + PIECE));
  ask(FINALIZE);
  node.stdout.write(JSON.stringify(queries.map(rowsOf)), () => node.exit(0));
});

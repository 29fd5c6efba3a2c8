// Loads a time line into the Firefox profiler and prints the tracks that it has, as JSON.
//
// usage: node firefox.cjs FOLDER_OF_THE_PACKAGE TRACE
//
// The package is Mozilla's own command line for it: the importers are those of profiler.firefox.com.
"use strict";
const { execFileSync, spawn } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

const [folder, trace] = process.argv.slice(2).map((name) => path.resolve(name));
const program = path.join(folder, "dist/profiler-cli.js");
// The name of a socket in there must not be long.
const sessions = fs.mkdtempSync(path.join(os.tmpdir(), "pq"));
const env = { ...process.env, PROFILER_CLI_SESSION_DIR: sessions, PROFILER_CLI_NO_SYMBOLICATE: "1" };
const session = ["--session", "seen"];
const ask = (words, stderr) => {
  const stdio = ["ignore", "pipe", stderr];
  const options = { env, encoding: "utf8", timeout: 120_000, maxBuffer: 1 << 28, stdio };
  return execFileSync(process.execPath, [program, ...words, ...session], options);
};
const json = (...words) => JSON.parse(ask([...words, "--json"], "inherit"));
const ready = () => JSON.parse(ask(["profile", "info", "--json"], "ignore")).type === "profile-info";

/** Until the server has loaded the file. `load` would start it, too, but gives a busy machine half a second. */
async function loaded(server) {
  for (const begun = Date.now(); Date.now() - begun < 120_000; ) {
    if (server.exitCode !== null) throw new Error(`the profiler ended with ${server.exitCode}`);
    try {
      if (ready()) return;
    } catch {} // not yet
    await new Promise((later) => setTimeout(later, 200));
  }
  throw new Error("the profiler does not answer");
}

function seen() {
  const tracks = [];
  const names = {};
  for (const host of json("profile", "info", "--all").processes) {
    for (const thread of host.threads) {
      const markers = json("thread", "markers", "--thread", thread.threadHandle);
      let dur_ns = 0;
      for (const type of markers.byType) {
        const time = type.isInterval ? type.durationStats.avg * type.count * 1e6 : 0;
        const sum = (names[type.markerName] ??= { slices: 0, dur_ns: 0 });
        sum.slices += type.count;
        sum.dur_ns += time;
        dur_ns += time;
      }
      const slices = markers.totalMarkerCount;
      tracks.push({ pid: host.pid, process: host.name, thread: thread.name, slices, dur_ns });
    }
  }
  const by_name = Object.entries(names).map(([name, sum]) => ({ name, ...sum }));
  return { tracks, names: by_name.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

async function main() {
  const server = spawn(process.execPath, [program, "--daemon", trace, ...session], { env, stdio: "ignore" });
  try {
    await loaded(server);
    console.log(JSON.stringify(seen()));
  } finally {
    server.kill();
    fs.rmSync(sessions, { recursive: true, force: true });
  }
}
main().catch((error) => {
  console.error(error);
  process.exit(1);
});

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
const TRIES = 3;

/** What the server of a session says. A client that is not answered within a second takes the server for dead and
 *  removes its session for good: nobody may ask while the server is busy with loading. */
function json(session, ...words) {
  const stdio = ["ignore", "pipe", "inherit"];
  const options = { env, encoding: "utf8", timeout: 120_000, maxBuffer: 1 << 28, stdio };
  const line = [program, ...words, "--json", "--session", session];
  return JSON.parse(execFileSync(process.execPath, line, options));
}

/** Until the server has loaded the file, by its log. */
async function loaded(server, session) {
  const log = path.join(sessions, `${session}.log`);
  for (const begun = Date.now(); Date.now() - begun < 120_000; ) {
    const said = fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "";
    if (said.includes("Profile loaded successfully")) return;
    if (server.exitCode !== null || said.includes("Failed to load")) throw new Error(said);
    await new Promise((later) => setTimeout(later, 100));
  }
  throw new Error("the profiler does not load the file");
}

function seen(session) {
  const tracks = [];
  const names = {};
  for (const host of json(session, "profile", "info", "--all").processes) {
    for (const thread of host.threads) {
      const markers = json(session, "thread", "markers", "--thread", thread.threadHandle);
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

async function session(name) {
  const line = [program, "--daemon", trace, "--session", name];
  const server = spawn(process.execPath, line, { env, stdio: "ignore" });
  try {
    await loaded(server, name);
    return seen(name);
  } finally {
    server.kill();
  }
}

async function main() {
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return console.log(JSON.stringify(await session(`s${attempt}`)));
      } catch (error) {
        if (attempt === TRIES) throw error;
      }
    }
  } finally {
    fs.rmSync(sessions, { recursive: true, force: true });
  }
}
main().catch((error) => {
  console.error(error);
  process.exit(1);
});

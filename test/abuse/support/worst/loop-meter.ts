import { createServer } from 'node:http';

// Loaded into a server by `--import`, with the path of a socket in the query of its own URL. Measures for how long the event loop was kept from
// others: the CPU time of its thread between two turns of a timer. A busy machine lengthens the time of the clock, but not this.

const everyMs = 4;
const socket = new URL(import.meta.url).searchParams.get('socket') ?? '';

function cpuMs(): number {
  const { system, user } = process.threadCpuUsage();
  return (system + user) / 1000;
}

let last = cpuMs();
let longest = 0;

function turn(): void {
  const now = cpuMs();
  longest = Math.max(longest, now - last);
  last = now;
}

setInterval(turn, everyMs).unref();

/** The longest turn since the last request, in ms, and resident memory, in bytes. */
createServer((_request, response) => {
  turn();
  const { heapUsed, rss } = process.memoryUsage();
  response.end(JSON.stringify({ longestMs: longest, rss, heapUsed }));
  longest = 0;
})
  .listen(socket)
  .unref();

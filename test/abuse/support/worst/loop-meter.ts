import { createServer } from 'node:http';
import { PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

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
let longestCollection = 0;

function turn(): void {
  const now = cpuMs();
  longest = Math.max(longest, now - last);
  last = now;
}

// Threads of the server load this file, too.
if (isMainThread) measure();

function measure(): void {
  setInterval(turn, everyMs).unref();
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestCollection = Math.max(longestCollection, duration);
  }).observe({ entryTypes: ['gc'] });

  /** The longest turn and the longest garbage collection since the last request, in ms, and resident memory, in bytes. */
  createServer((_request, response) => {
    turn();
    const { rss } = process.memoryUsage();
    response.end(JSON.stringify({ longestMs: longest, collectionMs: longestCollection, rss }));
    longest = 0;
    longestCollection = 0;
  })
    .listen(socket)
    .unref();
}

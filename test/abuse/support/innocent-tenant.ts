import { gzipSync } from 'node:zlib';
import { percentile } from '../../../bench/support/measures.ts';
import { deploymentOf, verbatimBody } from '../../../bench/support/raw-client.ts';
import { Caller } from './calls.ts';
import { createStack, startUpdate } from './steps.ts';
import type { Target } from './target.ts';

/** Results of a tenant that only does its work. */
export interface Innocent {
  /** Latencies of `GET /api/user`, in ms. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly calls: number;
  /** Checkpoints of 600 KB that were saved. */
  readonly writes: number;
  /** Unsuccessful calls, including repeats. */
  readonly failures: readonly string[];
}

const leastCalls = 10;
const pauseMs = 20;
const writePauseMs = 500;
const documentBytes = 600_000;

/**
 * Works like a small CI job until `signal` is aborted: one call after another, and a checkpoint now and then. Calls
 * `onWork` when some calls and a checkpoint have succeeded.
 */
export async function workAside(target: Target, signal: AbortSignal, onWork: () => void): Promise<Innocent> {
  const { quiet, url } = target;
  const caller = new Caller(url);
  const latencies: number[] = [];
  const failures: string[] = [];
  let writes = 0;
  const notify = (): void => {
    if (writes > 0 && latencies.length >= leastCalls) onWork();
  };
  const read = async (): Promise<void> => {
    while (!signal.aborted) {
      const began = performance.now();
      const { status, text } = await caller.call({ path: '/api/user', auth: quiet.auth });
      latencies.push(performance.now() - began);
      if (status !== 200) failures.push(`GET /api/user: ${status} ${text}`);
      notify();
      await pause(pauseMs, signal);
    }
  };
  const write = async (): Promise<void> => {
    const stack = await createStack(caller, quiet);
    const update = await startUpdate(caller, quiet, stack);
    const document = deploymentOf(documentBytes);
    for (let sequence = 1; !signal.aborted; sequence++) {
      const body = gzipSync(verbatimBody(document, sequence), { level: 1 });
      const path = `${update.path}/checkpointverbatim`;
      const { status, text } = await caller.call({ method: 'PATCH', path, auth: update.lease, body, gzip: true });
      if (status === 200 || status === 204) writes++;
      else failures.push(`PATCH checkpointverbatim: ${status} ${text}`);
      notify();
      await pause(writePauseMs, signal);
    }
  };
  try {
    await Promise.all([read(), write()]);
  } finally {
    caller.close();
  }
  return {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    max: Math.max(...latencies),
    calls: latencies.length,
    writes,
    failures,
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    resolve();
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end);
  await promise;
}

import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createDatabaseOnOwnServer } from '../../../support/own-postgres.ts';
import { type ServerChild, startServerChild } from '../../../support/server-child.ts';
import type { TestDatabase } from '../../../support/test-app.ts';

/** What the server's event loop did since the last reading. */
export interface LoopReading {
  /** Longest time that one turn of it took of its thread, in ms. */
  readonly longestMs: number;
  /** Longest pause of garbage collection by the clock, in ms. It may be part of that turn. */
  readonly collectionMs: number;
  readonly rss: number;
}

/** A server in a process of its own, whose event loop is measured. */
export interface MeasuredServer extends AsyncDisposable {
  readonly url: string;
  readonly database: TestDatabase;
  readonly child: ServerChild;
  /** Returns what was measured since the last call. */
  read(): Promise<LoopReading>;
}

export async function startMeasuredServer(settings: Readonly<Record<string, string>> = {}): Promise<MeasuredServer> {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-worst-'));
  const socketPath = join(home, 'meter');
  const meter = pathToFileURL(join(import.meta.dirname, 'loop-meter.ts'));
  meter.searchParams.set('socket', socketPath);
  const database = await createDatabaseOnOwnServer();
  const child = await startServerChild(database, settings, ['--import', meter.href]).catch(async (error: unknown) => {
    await database[Symbol.asyncDispose]();
    throw error;
  });
  return {
    url: `http://127.0.0.1:${child.port}`,
    database,
    child,
    read: () => readJson(socketPath),
    [Symbol.asyncDispose]: async () => {
      await child[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function readJson(socketPath: string): Promise<LoopReading> {
  const { promise, reject, resolve } = Promise.withResolvers<LoopReading>();
  request({ socketPath, path: '/' }, async (response) => {
    const text = (await response.setEncoding('utf8').toArray()).join('');
    resolve(JSON.parse(text) as LoopReading);
  })
    .on('error', reject)
    .end();
  return promise;
}

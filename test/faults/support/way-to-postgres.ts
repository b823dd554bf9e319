import { once } from 'node:events';
import path from 'node:path';
import { Worker } from 'node:worker_threads';

/** A proxy in front of Postgres that can fall silent, like `TcpProxy`. */
export interface WayToPostgres extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  readonly url: string;
  vanish(): void;
  reappear(): void;
}

/**
 * In its own thread: the pipelines keep this one so busy that statements would wait longer for it than for Postgres.
 */
export async function openWayToPostgres(target: string): Promise<WayToPostgres> {
  const thread = new Worker(path.join(import.meta.dirname, 'way-thread.ts'), { workerData: target });
  const [url] = (await once(thread, 'message')) as [string];
  return {
    url,
    vanish: () => thread.postMessage('vanish'),
    reappear: () => thread.postMessage('reappear'),
    [Symbol.asyncDispose]: async () => void (await thread.terminate()),
  };
}

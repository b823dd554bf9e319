import { parentPort, workerData } from 'node:worker_threads';
import { openTcpProxy } from '../../support/tcp-proxy.ts';

// The proxy of `way-to-postgres.ts`.

const proxy = await openTcpProxy(workerData as string);
parentPort?.on('message', (what: 'vanish' | 'reappear') => proxy[what]());
parentPort?.postMessage(proxy.url);

import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Attack } from '../support/attack.ts';
import { Caller, Statuses, strangeAddress } from '../support/calls.ts';

// Attacks by callers without a token.

/** 64 MiB of small objects in 64 KiB: takes gigabytes when it is parsed. */
const manyObjects = gzipSync(Buffer.from(`[${'{},'.repeat(22_000_000)}{}]`));
/** 1.4 MB in 1.4 KB. */
const someObjects = gzipSync(Buffer.from(`[${'{},'.repeat(480_000)}{}]`));

/** Makes calls over `lines` parallel connections until the signal. */
async function repeat(lines: number, signal: AbortSignal, call: (line: number) => Promise<void>): Promise<void> {
  await Promise.all(
    Array.from({ length: lines }, async (_, line) => {
      while (!signal.aborted) await call(line);
    }),
  );
}

const unknownPaths = ['/x', '/healthz', '/api/none', '/api/user', '/api/stacks/noisy/proj'];

/** Large bodies for paths that do not exist, that accept none, or that require a token. */
export const bodiesForNobody: Attack = {
  name: 'bodies for nobody',
  run: async ({ url }, signal) => {
    const statuses = new Statuses();
    const caller = new Caller(url, { localAddress: strangeAddress, connections: 12 });
    await repeat(12, signal, async (line) => {
      const path = unknownPaths[line % unknownPaths.length] as string;
      const body = line % 2 === 0 ? manyObjects : someObjects;
      statuses.add(await caller.call({ method: 'POST', path, body, gzip: true }));
    });
    caller.close();
    return statuses;
  },
};

/** Tokens that do not exist: for the API, and for a lease. */
export const wrongTokens: Attack = {
  name: 'wrong tokens',
  run: async ({ url }, signal) => {
    const statuses = new Statuses();
    const caller = new Caller(url, { localAddress: strangeAddress, connections: 32 });
    const leased = '/api/stacks/quiet/proj/dev/update/00000000-0000-4000-8000-000000000000/renew_lease';
    await repeat(32, signal, async (line) => {
      const token = randomBytes(32).toString('base64url');
      statuses.add(
        line % 4 === 0
          ? await caller.call({ method: 'POST', path: leased, auth: `update-token ${token}`, body: {} })
          : await caller.call({ path: '/api/user', auth: `token hf-${token}` }),
      );
    });
    caller.close();
    return statuses;
  },
};

/** Heads that never end, bodies of a byte per second, and silent connections. */
export const slowConnections: Attack = {
  name: 'slow connections',
  run: async ({ url }, signal) => {
    const beginnings = [
      'GET /api/user HTTP/1.1\r\nHost: x\r\n',
      'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n',
      'POST /api/stacks/noisy/proj HTTP/1.1\r\nHost: x\r\nAuthorization: token x\r\nContent-Length: 1000000\r\n\r\n',
      '',
    ];
    return openMany(url, 400, signal, (line) => beginnings[line % beginnings.length] as string);
  },
};

/** As many connections as possible, each with a call now and then. */
export const manyConnections: Attack = {
  name: 'many connections',
  run: ({ url }, signal) => openMany(url, 3_000, signal, () => 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'),
};

/** Keeps connections open, writes a byte a second to each, and replaces those that are cut off. */
async function openMany(
  url: string,
  count: number,
  signal: AbortSignal,
  beginning: (line: number) => string,
): Promise<Statuses> {
  const statuses = new Statuses();
  const { hostname, port } = new URL(url);
  const sockets = new Map<number, Socket>();
  const open = (line: number): void => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: strangeAddress });
    sockets.set(line, socket);
    let answered = false;
    socket.on('connect', () => socket.write(beginning(line)));
    socket.on('data', (chunk) => {
      if (answered) return;
      answered = true;
      statuses.add({ status: Number(chunk.toString('latin1').split(' ')[1]) });
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (!answered) statuses.add({ status: null });
      sockets.delete(line);
    });
  };
  while (!signal.aborted) {
    for (let line = 0; line < count; line++) {
      const socket = sockets.get(line);
      if (!socket) open(line);
      else if (socket.writable) socket.write('x');
    }
    await sleep(1_000, undefined, { signal }).catch(() => {});
  }
  for (const socket of sockets.values()) socket.destroy();
  return statuses;
}

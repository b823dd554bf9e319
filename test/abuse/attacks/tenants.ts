import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { deploymentOf } from '../../../bench/support/raw-client.ts';
import type { Attack } from '../support/attack.ts';
import { Caller, Statuses, strangeAddress } from '../support/calls.ts';
import { completeUpdate, createStack, startUpdate } from '../support/steps.ts';
import type { Target } from '../support/target.ts';

// Attacks by a tenant on the others.

const kib = 1024;
const mib = 1024 * kib;

/** Size of one large item in a call, just below its limit. */
const largeBytes = 1_000 * kib;

async function callAll(
  { url, noisy }: Target,
  signal: AbortSignal,
  { lines, method = 'GET', path, body }: { lines: number; method?: string; path: string; body?: Buffer },
): Promise<Statuses> {
  const statuses = new Statuses();
  const caller = new Caller(url, { localAddress: strangeAddress, connections: lines });
  await Promise.all(
    Array.from({ length: lines }, async () => {
      while (!signal.aborted) {
        const gzip = body !== undefined;
        statuses.add(await caller.call({ method, path, auth: noisy.auth, ...(body ? { body, gzip } : {}) }));
      }
    }),
  );
  caller.close();
  return statuses;
}

/** Chunked bodies that send a byte every three seconds: each asks for budget. */
export const trickledUploads: Attack = {
  name: 'trickled uploads',
  run: async ({ url, noisy }, signal) => {
    const caller = new Caller(url);
    const statuses = new Statuses();
    const { hostname, port } = new URL(url);
    const sockets: Socket[] = [];
    for (let count = 0; count < 8; count++) {
      const { path, lease } = await startUpdate(caller, noisy, await createStack(caller, noisy));
      const socket = connect({ host: hostname, port: Number(port), localAddress: strangeAddress });
      const kind = ['checkpointverbatim', 'checkpoint', 'journalentries'][count % 3];
      socket.write(
        `PATCH ${path}/${kind} HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.pulumi+9\r\n` +
          `Authorization: ${lease}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      socket.on('data', (chunk) => statuses.add({ status: Number(chunk.toString('latin1').split(' ')[1]) }));
      socket.on('error', () => {});
      sockets.push(socket);
    }
    while (!signal.aborted) {
      for (const socket of sockets) if (socket.writable) socket.write('1\r\n{\r\n');
      await sleep(3_000, undefined, { signal }).catch(() => {});
    }
    for (const socket of sockets) socket.destroy();
    caller.close();
    return statuses;
  },
};

/** Pages of large events. */
export function eventPages(count: number): Attack {
  let path = '';
  return {
    name: 'pages of events',
    prepare: async (target) => {
      const caller = new Caller(target.url);
      const update = await startUpdate(caller, target.noisy, await createStack(caller, target.noisy));
      path = update.path;
      for (let sequence = 1; sequence <= count; sequence++) {
        const stdoutEvent = { message: 'x'.repeat(largeBytes - 200), color: 'raw' };
        const body = gzipSync(JSON.stringify({ events: [{ sequence, timestamp: 1, stdoutEvent }] }), { level: 1 });
        await caller.json({ method: 'POST', path: `${path}/events/batch`, auth: update.lease, body, gzip: true });
      }
      caller.close();
    },
    run: (target, signal) => callAll(target, signal, { lines: 4, path: `${path}/events` }),
  };
}

/** The history of a stack whose updates have large configurations. */
export function historyPages(count: number): Attack {
  let stack = '';
  return {
    name: 'history',
    prepare: async (target) => {
      const caller = new Caller(target.url);
      stack = await createStack(caller, target.noisy);
      const config = { large: { string: 'x'.repeat(largeBytes - 500), secret: false, object: false } };
      for (let at = 0; at < count; at++) {
        await completeUpdate(caller, await startUpdate(caller, target.noisy, stack, { config }));
      }
      caller.close();
    },
    run: (target, signal) => callAll(target, signal, { lines: 4, path: `${stack}/updates` }),
  };
}

/** Decrypt calls with bodies of the maximum size. */
export function largeDecrypts(megabytes: number): Attack {
  let path = '';
  let body = Buffer.alloc(0);
  return {
    name: 'large decrypts',
    prepare: async (target) => {
      const caller = new Caller(target.url);
      path = `${await createStack(caller, target.noisy)}/batch-decrypt`;
      const text = Buffer.alloc(48, 1).toString('base64');
      const texts = Array.from(
        { length: (megabytes * mib) / 72 },
        (_, at) => `"${String(at).padStart(8, '0')}${text}"`,
      );
      body = gzipSync(`{"ciphertexts":[${texts.join(',')}]}`, { level: 1 });
      caller.close();
    },
    run: (target, signal) => callAll(target, signal, { lines: 12, method: 'POST', path, body }),
  };
}

/** Renames of a large state, there and back. */
export function largeRenames(megabytes: number): Attack {
  let stack = '';
  return {
    name: 'large renames',
    prepare: async (target) => {
      const caller = new Caller(target.url);
      stack = await createStack(caller, target.noisy);
      const body = gzipSync(deploymentOf(megabytes * mib), { level: 1 });
      const to = { method: 'POST', path: `${stack}/import`, auth: target.noisy.auth, timeoutMs: 180_000 };
      await caller.json({ ...to, body, gzip: true });
      caller.close();
    },
    run: async ({ url, noisy }, signal) => {
      const caller = new Caller(url, { localAddress: strangeAddress });
      const statuses = new Statuses();
      const name = stack.split('/').at(-1) as string;
      const folder = stack.slice(0, -name.length);
      for (let at = 0; at === 0 || !signal.aborted; at++) {
        const [from, to] = at % 2 === 0 ? [name, `${name}-moved`] : [`${name}-moved`, name];
        const body = { newName: to };
        statuses.add(
          await caller.call({
            method: 'POST',
            path: `${folder}${from}/rename`,
            auth: noisy.auth,
            body,
            timeoutMs: 180_000,
          }),
        );
      }
      caller.close();
      return statuses;
    },
  };
}

/** Many lightweight calls. */
export const manyCalls: Attack = {
  name: 'many calls',
  run: (target, signal) => callAll(target, signal, { lines: 16, path: '/api/user/stacks' }),
};

/** All of these at once. */
export function mix(attacks: readonly Attack[]): Attack {
  return {
    name: 'all at once',
    prepare: async (target) => {
      for (const { prepare } of attacks) await prepare?.(target);
    },
    run: async (target, signal) => {
      const answers = await Promise.all(attacks.map(({ run }) => run(target, signal)));
      const all = new Statuses();
      for (const each of answers) all.addAll(each);
      return all;
    },
  };
}

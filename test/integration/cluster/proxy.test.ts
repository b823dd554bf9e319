import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClusterProcess } from '../../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../../testkit/fixed-ports.ts';
import { proxySpec } from '../../../testkit/proxy-spec.ts';
import { ensureToolchain } from '../../../testkit/toolchain/toolchain.ts';
import { until } from '../../../testkit/until.ts';

// How the configuration in deploy/proxy treats replicas, which are simulated here.

/** Stands in for an API replica. */
class Replica {
  /** Bodies of the calls it received. */
  readonly received: string[] = [];
  isReady = true;
  probeDelayMs = 0;
  /** Until when it responds to no probe. */
  probesHeld: Promise<void> = Promise.resolve();
  /** Number of responses to probes. */
  probes = 0;
  /** Closes the connection of each call instead of responding. */
  breaks = false;
  readonly #server = createServer((request, response) => {
    // The body may be cut off.
    this.#serve(request, response).catch(() => response.destroy());
  });

  async listen(): Promise<number> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/readyz') {
      await Promise.all([sleep(this.probeDelayMs), this.probesHeld]);
      response.writeHead(this.isReady ? 200 : 503).end();
      this.probes++;
      return;
    }
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    if (request.url?.startsWith('/api')) this.received.push(body);
    if (this.breaks && request.url?.startsWith('/api')) response.destroy();
    else response.end('done');
  }
}

let replicas: Replica[];
let proxy: ClusterProcess;
let url: string;
let home: string;

beforeAll(async () => {
  const { caddy } = await ensureToolchain({ only: ['caddy'] });
  home = await mkdtemp(join(tmpdir(), 'holdfast-proxy-'));
  replicas = [new Replica(), new Replica()];
  const [first = 0, second = 0] = await Promise.all(replicas.map((replica) => replica.listen()));
  const [port = 0] = await findFixedPorts(1);
  url = `http://127.0.0.1:${port}`;
  // The first replica serves as the web UI, too.
  proxy = new ClusterProcess(proxySpec(caddy, home, port, [first, second], first), () => {});
  await proxy.start();
});

afterAll(async () => {
  await proxy?.stop();
  for (const replica of replicas ?? []) replica.close();
  await rm(home, { recursive: true, force: true });
});

const post = (): Promise<Response> => fetch(`${url}/api/stacks/a/b`, { method: 'POST', body: '{"stackName":"c"}' });

/** Waits until the proxy has had at least two responses to its probes of each replica from now on. */
async function probedTwice(): Promise<void> {
  const before = replicas.map(({ probes }) => probes);
  const isProbed = (): boolean => replicas.every(({ probes }, index) => probes >= (before[index] as number) + 2);
  await until(isProbed, 'probes of the proxy');
}

test('a call with a body waits while no replica is ready, and is sent once', async () => {
  for (const replica of replicas) replica.isReady = false;
  await probedTwice();
  const response = post();
  await probedTwice();
  expect(replicas.flatMap(({ received }) => received)).toEqual([]);
  for (const replica of replicas) replica.isReady = true;
  expect((await response).status).toBe(200);
  expect(replicas.flatMap(({ received }) => received.splice(0))).toEqual(['{"stackName":"c"}']);
});

test('malformed bodies take out no replica', async () => {
  await probedTwice();
  // One that is taken out returns with its next response to a probe.
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  for (const replica of replicas) replica.probesHeld = held;
  try {
    // The connections stay open: a client that has left is no failure for the proxy.
    const sockets = replicas.map(() => connect(Number(new URL(url).port), '127.0.0.1'));
    const responses = sockets.map(async (socket) => {
      socket.write('POST /api/stacks/a/b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n');
      return String((await once(socket, 'data'))[0]);
    });
    for (const response of await Promise.all(responses)) expect(response).toMatch(/^HTTP\/1.1 (400|502) /);
    expect((await post()).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  } finally {
    letGo();
  }
  expect(replicas.flatMap(({ received }) => received.splice(0))).toEqual(['{"stackName":"c"}']);
});

test('a call that a replica may have received is not sent again', async () => {
  for (const replica of replicas) replica.breaks = true;
  const response = await post();
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ code: 502 });
  expect(replicas.flatMap(({ received }) => received.splice(0))).toHaveLength(1);
  for (const replica of replicas) replica.breaks = false;
});

test('replicas that are slow to respond stay in use', async () => {
  for (const replica of replicas) replica.probeDelayMs = 4_000;
  await probedTwice();
  for (const replica of replicas) replica.probeDelayMs = 0;
  // No probe has failed, or it would have been logged.
  expect(proxy.log.split('\n').filter((line) => /HTTP request failed/.test(line))).toEqual([]);
  expect((await post()).status).toBe(200);
});

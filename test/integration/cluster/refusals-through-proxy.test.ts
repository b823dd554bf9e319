import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClusterProcess } from '../../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../../testkit/fixed-ports.ts';
import { proxySpec } from '../../../testkit/proxy-spec.ts';
import { ensureToolchain } from '../../../testkit/toolchain/toolchain.ts';
import { testApp } from '../../support/test-app.ts';
import { WireServer } from '../../support/wire.ts';

// A proxy that gets a response before it has sent the whole body may break the client's connection (golang/go#40747).

const app = testApp();
let proxy: ClusterProcess;
let port: number;
let home: string;

beforeAll(async () => {
  const { caddy } = await ensureToolchain({ only: ['caddy'] });
  home = await mkdtemp(join(tmpdir(), 'holdfast-refusals-'));
  const server = await WireServer.listen(app);
  [port = 0] = await findFixedPorts(1);
  // It serves as the web UI, too, whose page the proxy asks for when it starts.
  proxy = new ClusterProcess(
    {
      ...proxySpec(caddy, home, port, [server.port], server.port),
      isReady: async () => (await status('GET', '/readyz')) === 200,
    },
    () => {},
  );
  await proxy.start();
});

afterAll(async () => {
  await proxy?.stop();
  await rm(home, { recursive: true, force: true });
});

const agent = new Agent({ keepAlive: true, maxSockets: 16 });
afterAll(() => agent.destroy());

/** The status of the response. Rejects if the connection breaks. */
function status(method: string, path: string, body = Buffer.alloc(0)): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = {
      accept: 'application/vnd.pulumi+8',
      'content-type': 'application/json',
      'content-length': body.length,
    };
    const call = request({ host: '127.0.0.1', port, method, path, headers, agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    });
    call.once('error', reject).write(body.subarray(0, 1_000));
    setTimeout(() => call.end(body.subarray(1_000)), 1);
  });
}

test.each([
  ['of the size of a journal batch', 6_000, 500],
  ['of the size of a checkpoint', 3_000_000, 30],
])('each call with a body %s that is refused gets its response', async (_what, bytes, calls) => {
  const body = Buffer.alloc(bytes, 'x');
  const seen: Record<string, number> = {};
  let left = calls;
  const call = async (): Promise<void> => {
    while (left-- > 0) {
      const outcome = await status(
        'PATCH',
        `/api/stacks/o/p/s/update/${crypto.randomUUID()}/journalentries`,
        body,
      ).catch((error: Error & { code?: string }) => error.code ?? error.message);
      seen[String(outcome)] = (seen[String(outcome)] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 16 }, call));
  expect(seen).toEqual({ 401: calls });
});

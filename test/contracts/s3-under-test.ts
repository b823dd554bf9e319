import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
// DEV VERSION, to be replaced by e2e/support/s3-server.ts
export interface S3Server {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((r) => server.listen(0, '127.0.0.1', r));
  const { port } = server.address() as { port: number };
  await new Promise((r) => server.close(r));
  return port;
}
export async function startS3(kind: 'minio' | 'versitygw'): Promise<S3Server> {
  const dir = await mkdtemp(join(tmpdir(), 's3dev-'));
  const port = await freePort();
  const env = {
    ...process.env,
    MINIO_ROOT_USER: 'testaccess',
    MINIO_ROOT_PASSWORD: 'testsecret1',
    ROOT_ACCESS_KEY: 'testaccess',
    ROOT_SECRET_KEY: 'testsecret1',
    MINIO_API_REQUESTS_MAX: '0',
  };
  const child: ChildProcess =
    kind === 'minio'
      ? spawn('/tmp/gobuild/200/minio', ['server', '--quiet', '--address', `127.0.0.1:${port}`, dir], {
          env,
          stdio: 'ignore',
        })
      : spawn(
          '/tmp/gobuild/200/versitygw',
          ['--port', `127.0.0.1:${port}`, '--quiet', '--health', '/health', 'posix', dir],
          { env, stdio: 'ignore' },
        );
  const endpoint = `http://127.0.0.1:${port}`;
  const until = Date.now() + 20000;
  for (;;) {
    const ok = await fetch(kind === 'minio' ? `${endpoint}/minio/health/live` : `${endpoint}/health`).then(
      (r) => r.ok,
      () => false,
    );
    if (ok) break;
    if (Date.now() > until) throw new Error('no start');
    await new Promise((r) => setTimeout(r, 100));
  }
  return {
    endpoint,
    region: 'us-east-1',
    accessKeyId: 'testaccess',
    secretAccessKey: 'testsecret1',
    signal: (n) => {
      child.kill(n);
    },
    stop: async () => {
      const gone = new Promise((r) => child.once('exit', r));
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await gone;
      }
      await rm(dir, { recursive: true, force: true });
    },
  };
}

import { afterAll, beforeAll, describe } from '@jest/globals';
export function describeOnS3(kind: 'minio' | 'versitygw', define: (server: () => S3Server) => void): void {
  describe(kind, () => {
    let server: S3Server | undefined;
    beforeAll(async () => {
      server = await startS3(kind);
    }, 60_000);
    afterAll(() => server?.stop());
    define(() => {
      if (server === undefined) throw new Error('not started');
      return server;
    });
  });
}

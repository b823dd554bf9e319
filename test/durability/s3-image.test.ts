import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { s3Request } from '../../testkit/s3-request.ts';
import { findFreePort, startOnFreePort, startServer } from '../../testkit/server-process.ts';
import { ensureToolchain, type Toolchain } from '../../testkit/toolchain/toolchain.ts';

const root = path.join(import.meta.dirname, '../..');
const credentials = { accessKeyId: 'access-key', secretAccessKey: 'secret-of-the-access-key', region: 'us-east-1' };

async function shippedServer(): Promise<Toolchain<'versitygw'> | null> {
  try {
    return await ensureToolchain({ only: ['versitygw'] });
  } catch (error) {
    if (process.env['CI']) throw error;
    process.stderr.write(`skipping the start of the S3 server: ${String(error)}\n`);
    return null;
  }
}

const shipped = await shippedServer();

(shipped ? test : test.skip)(
  'the S3 server starts with the command of the compose file, with API and console',
  async () => {
    const { services } = parse(readFileSync(path.join(root, 'docker-compose.yml'), 'utf8')) as {
      services: { s3: { command: string[] } };
    };
    const access = (port: number) => ({ endpoint: `http://127.0.0.1:${port}`, ...credentials });
    const started = await startOnFreePort(async (port) => {
      const consolePort = await findFreePort();
      const place = (word: string, dataDir: string): string =>
        word
          .replace(/=:9000$/, `=127.0.0.1:${port}`)
          .replace(/=:9001$/, `=127.0.0.1:${consolePort}`)
          .replace(/^\/data$/, dataDir);
      const server = await startServer({
        name: 's3',
        file: (shipped as Toolchain<'versitygw'>).versitygw,
        args: (dataDir) => services.s3.command.map((word) => place(word, dataDir)),
        env: { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey },
        // Both begin to listen on their own.
        isReady: async () =>
          (await s3Request(access(port), 'GET', '/')).ok &&
          (await fetch(`http://127.0.0.1:${consolePort}/`)).status < 500,
      });
      return { port, consolePort, server };
    });
    await using _server = started.server;
    const page = await fetch(`http://127.0.0.1:${started.consolePort}/`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
    expect((await s3Request(access(started.port), 'PUT', '/holdfast-checkpoints')).status).toBe(200);
    const denied = await s3Request({ ...access(started.port), secretAccessKey: 'another' }, 'GET', '/');
    expect(denied.status).toBe(403);
    // As the health check of the compose file asks.
    const check = (address: string): number | null =>
      spawnSync((shipped as Toolchain<'versitygw'>).versitygw, ['--healthz', address]).status;
    expect(check(`127.0.0.1:${started.port}`)).toBe(0);
    expect(check(`127.0.0.1:${await findFreePort()}`)).toBe(1);
  },
);

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseSettings } from '../../src/shared/platform/config/settings-file.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { createTestAuthority } from '../support/certificates.ts';
import { startCommand } from '../support/command.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { masterKeys } from '../support/test-app.ts';
import { until } from '../support/until.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-setup-'));
  file = path.join(folder, 'holdfast.env');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string): string => path.join(folder, name);
const written = () => parseSettings(readFileSync(file, 'utf8'));

async function setup(options: readonly string[] = [], settings: Readonly<Record<string, string>> = {}) {
  const command = startCommand(['setup', '--file', file, '--data-dir', at('data'), ...options], settings);
  const { code, stderr } = await command.ended();
  return { code, stderr, output: command.output() };
}

/** The names of the settings that are refused; nothing is written then. */
async function refusals(...options: string[]): Promise<(string | undefined)[]> {
  const { code, stderr } = await setup(options);
  expect([code, existsSync(file)]).toEqual([1, false]);
  return [...stderr.matchAll(/^ {2}([\w-]+): /gm)].map(([, name]) => name);
}

test('without options, a server with its own database is set up for this machine only', async () => {
  const { code, output } = await setup();
  expect([code, written()]).toEqual([0, { HOLDFAST_DATA_DIR: at('data') }]);
  expect(output).toContain(`holdfast --settings ${file} server --migrate`);
  expect(output).toContain(`"$(cat ${at('data/first-token')})" pulumi login http://127.0.0.1:9090`);
  expect([statSync(file).mode & 0o777, statSync(at('data')).mode & 0o777]).toEqual([0o600, 0o700]);
});

describe('it refuses', () => {
  const https = ['--public-url', 'https://pulumi.example.com'];

  test.each([
    [
      'plain HTTP for other machines',
      ['--listen', '0.0.0.0:9090', ...https],
      ['HOLDFAST_LISTEN', 'HOLDFAST_PUBLIC_URL'],
    ],
    [
      'other machines without a public URL',
      ['--listen', '0.0.0.0:9090', '--trusted-proxies', '10.0.0.7'],
      ['HOLDFAST_PUBLIC_URL'],
    ],
    ['a proxy without a public URL', ['--trusted-proxies', '127.0.0.1'], ['HOLDFAST_PUBLIC_URL']],
    ['a public URL without TLS', ['--public-url', 'http://pulumi.internal'], ['HOLDFAST_PUBLIC_URL']],
    ['a public URL whose TLS nobody terminates', https, ['HOLDFAST_PUBLIC_URL']],
    [
      'a management port at a public address',
      ['--management-listen', '198.51.100.7:9092'],
      ['HOLDFAST_MANAGEMENT_LISTEN'],
    ],
    ['a management port at all addresses', ['--management-listen', '0.0.0.0:9092'], ['HOLDFAST_MANAGEMENT_LISTEN']],
    ['an admin for an embedded database', ['--admin', 'ada'], ['--admin']],
    ['a certificate without its key', ['--tls-cert', 'tls.crt'], ['HOLDFAST_TLS_KEY_FILE']],
    [
      'settings that are not valid',
      ['--listen', '9090', '--database', 'mysql://x'],
      ['HOLDFAST_LISTEN', 'HOLDFAST_DATABASE_URL'],
    ],
  ])('%s', async (_, options, names) => {
    expect((await refusals(...options)).sort()).toEqual(names.toSorted());
  });

  test('a data directory that cannot be used', async () => {
    writeFileSync(at('file'), '');
    expect(await refusals('--data-dir', at('file/data'))).toEqual(['HOLDFAST_DATA_DIR']);
  });

  test('a certificate that cannot be read, or that does not fit to its key', async () => {
    await using authority = await createTestAuthority();
    const one = await authority.issue('localhost', 'DNS:localhost');
    const other = await authority.issue('other', 'DNS:other');
    const listen = ['--listen', '0.0.0.0:9443', ...https];
    expect(await refusals(...listen, '--tls-cert', one.cert, '--tls-key', at('none'))).toEqual([
      'HOLDFAST_TLS_KEY_FILE',
    ]);
    expect(await refusals(...listen, '--tls-cert', one.cert, '--tls-key', other.key)).toEqual([
      'HOLDFAST_TLS_CERT_FILE',
    ]);
    expect(await setup([...listen, '--tls-cert', one.cert, '--tls-key', one.key])).toMatchObject({ code: 0 });
    expect(written()).toMatchObject({ HOLDFAST_TLS_CERT_FILE: one.cert, HOLDFAST_LISTEN: '0.0.0.0:9443' });
  });

  test('a database that cannot be reached', async () => {
    const url = `postgres://u:hunter2@127.0.0.1:${await findFreePort()}/n`;
    const { code, output } = await setup(['--database', url]);
    expect([code, existsSync(file)]).toEqual([1, false]);
    expect(output).toMatch(/Postgres at 127\.0\.0\.1:\d+ .* is not available/);
    expect(output).not.toContain('hunter2');
  });

  test('a bucket that does not exist, and access keys that are wrong', async () => {
    let status = 404;
    const server = createServer((_request, response) => void response.writeHead(status).end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const keys = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' };
      const bucket = () => setup(['--bucket', 'states', '--s3-endpoint', endpoint], keys);
      expect(await bucket()).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/bucket states .* cannot be used/),
      });
      status = 403;
      expect(await bucket()).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/bucket states .* cannot be used/),
      });
      expect(existsSync(file)).toBe(false);
      status = 200;
      // They would end while the file stays.
      const temporary = await setup(['--bucket', 'states', '--s3-endpoint', endpoint], {
        ...keys,
        AWS_SESSION_TOKEN: 'hunter3',
      });
      expect(temporary).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('AWS_SESSION_TOKEN: these access keys end soon'),
      });
      expect([temporary.output.includes('hunter3'), existsSync(file)]).toEqual([false, false]);
      expect(await bucket()).toMatchObject({ code: 0 });
      expect(written()).toMatchObject({ ...keys, HOLDFAST_S3_BUCKET: 'states', HOLDFAST_S3_ENDPOINT: endpoint });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe('a file that has settings', () => {
  const original = `# Ours.\nHOLDFAST_LISTEN=127.0.0.1:9191\nHOLDFAST_LOG_LEVEL=warn\n`;

  test('is completed, and replaced only by force; comments and other settings stay', async () => {
    writeFileSync(file, original);
    expect(await setup()).toMatchObject({ code: 0 });
    const completed = `${original}HOLDFAST_DATA_DIR=${at('data')}\n`;
    expect(readFileSync(file, 'utf8')).toBe(completed);
    const { code, stderr } = await setup(['--listen', '127.0.0.1:9292']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('has other values for HOLDFAST_LISTEN; --force')]);
    expect(readFileSync(file, 'utf8')).toBe(completed);
    expect(await setup(['--listen', '127.0.0.1:9292', '--force'])).toMatchObject({ code: 0 });
    expect(readFileSync(file, 'utf8')).toBe(completed.replace('9191', '9292'));
  });

  test('stays as it is when nothing changes', async () => {
    await setup(['--listen', '127.0.0.1:9191']);
    const before = readFileSync(file, 'utf8');
    expect(await setup()).toMatchObject({ code: 0, output: expect.stringContaining('stays as it is') });
    expect(readFileSync(file, 'utf8')).toBe(before);
  });
});

describe('with a database of its own', () => {
  test('it makes master keys, migrates, and creates the first admin; a server starts with what it wrote', async () => {
    await using database = await createEmptyDatabase();
    const options = [
      '--organization',
      'acme',
      '--admin',
      'ada',
      '--listen',
      '127.0.0.1:0',
      '--management-listen',
      '127.0.0.1:0',
    ];
    const environment = { HOLDFAST_DATABASE_URL: database.url };
    const first = await setup(options, environment);
    expect(first).toMatchObject({
      code: 0,
      output: expect.stringContaining('Created user ada, site admin, admin in acme'),
    });
    expect(first.output).toContain(`"$(holdfast --settings ${file} admin user create-token ada)"`);
    expect(statSync(at('data/master-keys')).mode & 0o777).toBe(0o600);
    // Repeatable, and the keys stay.
    const keys = readFileSync(at('data/master-keys'), 'utf8');
    expect(await setup(options, environment)).toMatchObject({ code: 0 });
    expect(readFileSync(at('data/master-keys'), 'utf8')).toBe(keys);

    const server = startCommand(['--settings', file, 'server', '--migrate'], {});
    try {
      await until(() => server.output().includes('"msg":"listening"'), 'the server listens');
    } finally {
      await server.stop();
    }
    rmSync(at('data/master-keys'));
    const { code, stderr } = await setup(options, environment);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/HOLDFAST_MASTER_KEYS: the database is in use/)]);
    expect(await setup(options, { ...environment, HOLDFAST_MASTER_KEYS: masterKeys })).toMatchObject({ code: 0 });
  });
});

test('an unreadable file of settings ends every command with a sentence', async () => {
  const { code, stderr } = await startCommand(['--settings', at('none'), 'server'], {}).ended();
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^holdfast: .*none cannot be read: .*\n$/)]);
});

/** Runs the setup at a terminal, answers what it asks, and returns what the terminal shows. */
async function askAtTerminal(answers: readonly string[]): Promise<string> {
  const words = [process.execPath, holdfastProgram, 'setup', '--file', file, '--data-dir', at('data')];
  const child = spawn('script', ['-qec', words.map((word) => `'${word}'`).join(' '), '/dev/null'], {
    env: { PATH: process.env['PATH'], HOME: folder, TERM: 'dumb' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const closed = once(child, 'close');
  // Without the codes that move the cursor.
  const shown = (): string => stripVTControlCharacters(output);
  let seen = 0;
  for (const answer of answers) {
    await until(
      () => child.exitCode !== null || (shown().length > seen && shown().endsWith(': ')),
      `it asks before ${JSON.stringify(answer)}:\n${output}`,
    );
    seen = shown().length + answer.length;
    child.stdin.write(`${answer}\n`);
  }
  const [code] = (await closed) as [number];
  expect([code, output]).toEqual([0, expect.any(String)]);
  return output;
}

test('at a terminal it asks for what options do not say, and suggests what the file has', async () => {
  await using authority = await createTestAuthority();
  const { cert, key } = await authority.issue('localhost', 'DNS:localhost');
  await askAtTerminal(['embedded', 'none', '3', 'https://pulumi.example.com', '127.0.0.1:9443', cert, key]);
  expect(written()).toEqual({
    HOLDFAST_DATA_DIR: at('data'),
    HOLDFAST_LISTEN: '127.0.0.1:9443',
    HOLDFAST_PUBLIC_URL: 'https://pulumi.example.com',
    HOLDFAST_TLS_CERT_FILE: cert,
    HOLDFAST_TLS_KEY_FILE: key,
  });
  // Every answer empty: what the file has.
  const before = readFileSync(file, 'utf8');
  expect(await askAtTerminal(['', '', '', '', '', '', ''])).toContain('stays as it is');
  expect(readFileSync(file, 'utf8')).toBe(before);
});

test('at a terminal it does not show a password that the file has', async () => {
  await using database = await createEmptyDatabase();
  await askAtTerminal([database.url, 'none', '1', 'acme', 'ada']);
  expect(written()).toEqual({ HOLDFAST_DATA_DIR: at('data'), HOLDFAST_DATABASE_URL: database.url });
  const shown = await askAtTerminal(['', '', '', 'acme', 'ada']);
  expect(shown).toContain('[as it is]');
  expect(shown).not.toContain(new URL(database.url).password);
});

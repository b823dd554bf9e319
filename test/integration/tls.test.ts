import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { TlsFiles } from '../../src/api/platform/server/tls-files.ts';
import { collectSupportBundle } from '../../src/cli/support/support-bundle.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { ensureSystemProgram } from '../../testkit/toolchain/system-package.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const bin = path.join(import.meta.dirname, '../../bin/holdfast.js');
const openssl = await ensureSystemProgram(['openssl'], 'openssl').catch((error: Error) => {
  if (process.env['CI']) throw error;
  process.stderr.write(`skipping TLS: ${error.message}\n`);
  return null;
});

(openssl ? describe : describe.skip)('TLS', () => {
  let home: string;
  let ca: Buffer;
  let app: TestApp;
  let port: number;
  /** Cuts off soon. */
  let hasty: TestApp;
  let hastyPort: number;
  const lines: string[] = [];
  /** The paths given to the service: links, as in a mounted secret. */
  const used = (name: string): string => path.join(home, name);

  const run = (...args: string[]): void => void execFileSync(openssl as string, args, { cwd: home, stdio: 'pipe' });
  /** Creates `<name>.pem` and `<name>.key`, signed by the CA. */
  function issue(name: string): void {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`];
    run('req', ...key, '-subj', `/CN=${name}`, '-out', `${name}.csr`);
    writeFileSync(path.join(home, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
    const by = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30', '-extfile', 'names'];
    run('x509', '-req', '-in', `${name}.csr`, ...by, '-out', `${name}.pem`);
  }
  /** Switches all links to other files at once, as Kubernetes does. */
  let versions = 0;
  function mount(cert: string, key: string): void {
    const folder = path.join(home, `version-${++versions}`);
    mkdirSync(folder);
    writeFileSync(path.join(folder, 'tls.crt'), readFileSync(path.join(home, cert)));
    writeFileSync(path.join(folder, 'tls.key'), readFileSync(path.join(home, key)));
    symlinkSync(folder, used('data.new'));
    renameSync(used('data.new'), used('data'));
  }

  beforeAll(async () => {
    home = mkdtempSync(path.join(tmpdir(), 'holdfast-tls-'));
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'ca.key'];
    run('req', '-x509', ...key, '-subj', '/CN=test ca', '-days', '30', '-out', 'ca.pem');
    ca = readFileSync(path.join(home, 'ca.pem'));
    for (const name of ['first', 'second']) issue(name);
    mount('first.pem', 'first.key');
    const settings = {
      HOLDFAST_TLS_CERT_FILE: used('data/tls.crt'),
      HOLDFAST_TLS_KEY_FILE: used('data/tls.key'),
      maxConnectionsPerAddress: 3,
    };
    app = await createTestApp({ settings, log: { write: (line) => void lines.push(line) } });
    port = Number(new URL(await app.app.listen({ host: '127.0.0.1', port: 0 })).port);
    hasty = await createTestApp({ settings: { ...settings, headersTimeoutSeconds: 1 } });
    hastyPort = Number(new URL(await hasty.app.listen({ host: '127.0.0.1', port: 0 })).port);
  });
  afterAll(async () => {
    await hasty?.[Symbol.asyncDispose]();
    await app?.[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  });

  interface Answer {
    readonly status: number;
    readonly certificate: PeerCertificate;
    readonly protocol: string | null;
    readonly body: string;
  }
  const get = (target: string, options = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, path: target, ca, agent: false, ...options }, (response) => {
        const socket = response.socket as TLSSocket;
        const [certificate, protocol] = [socket.getPeerCertificate(), socket.getProtocol()];
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, certificate, protocol, body }));
      });
      sent.on('error', reject).end();
    });
  const nameShown = async (): Promise<string> => String((await get('/healthz')).certificate.subject.CN);

  test('serves only clients that trust its authority', async () => {
    expect(await get('/healthz')).toMatchObject({ status: 200, protocol: 'TLSv1.3' });
    await expect(get('/healthz', { ca: [] })).rejects.toThrow(/self-signed|unable to/);
    expect(await app.context.metrics.registry.metrics()).toMatch(/^holdfast_tls_certificate_expiry_seconds \d{10}$/m);
  });

  test('supports TLS 1.2 and nothing older', async () => {
    expect((await get('/healthz', { maxVersion: 'TLSv1.2' })).protocol).toBe('TLSv1.2');
    await expect(
      get('/healthz', { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' }),
    ).rejects.toThrow();
  });

  test('--healthz asks the service port when there is no other', async () => {
    const settings = { HOLDFAST_TLS_CERT_FILE: used('data/tls.crt'), HOLDFAST_TLS_KEY_FILE: used('data/tls.key') };
    const env = { ...settings, HOLDFAST_LISTEN: `127.0.0.1:${port}`, HOLDFAST_MANAGEMENT_LISTEN: 'same' };
    const { stderr } = await promisify(execFile)(process.execPath, [bin, '--healthz'], { env });
    expect(stderr).toBe('');
  });

  test('a support bundle has the metrics of a server whose certificate this machine does not trust', async () => {
    const config = { ...app.context.config, listen: { host: '127.0.0.1', port }, managementListen: null };
    const { metrics } = await collectSupportBundle(() => config);
    expect(metrics).toContainEqual(expect.stringMatching(/^holdfast_connections \d+$/));
  });

  test.each([
    ['plain HTTP', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['half a greeting', Buffer.from('16030100c8010000c40303', 'hex')],
    ['nothing', ''],
  ])('%s is cut off and does not use up a connection slot', async (_what, bytes) => {
    for (let time = 1; time <= 4; time++) {
      await new Promise<void>((resolve) => {
        const socket = connectPlain(hastyPort, '127.0.0.1', () => void socket.write(bytes));
        socket.on('error', () => {}).on('close', () => resolve());
        socket.resume();
      });
    }
    await until(
      async () => (await get('/healthz', { port: hastyPort }).catch(() => null))?.status === 200,
      'it serves',
    );
  });

  test('counts sessions like connections', async () => {
    const open = () =>
      new Promise<TLSSocket | null>((resolve) => {
        const socket = connect({ port, host: '127.0.0.1', ca }, () => resolve(socket));
        socket.on('error', () => resolve(null));
      });
    const free = async () => /^holdfast_connections 0$/m.test(await app.context.metrics.registry.metrics());
    await until(free, 'all are closed');
    const sockets = [await open(), await open(), await open()];
    expect(sockets).not.toContain(null);
    expect(await open()).toBeNull();
    for (const socket of sockets) socket?.destroy();
    await until(free, 'all are closed again');
    expect((await get('/healthz')).status).toBe(200);
  });

  describe('when the files change', () => {
    const errors = () => lines.filter((line) => line.includes('new certificate cannot be used'));

    test('a new pair is used for new connections without a restart', async () => {
      expect(await nameShown()).toBe('first');
      mount('second.pem', 'second.key');
      await until(async () => (await nameShown()) === 'second', 'the new one is shown');
    });

    test('a mismatched pair is not used, and is reported once', async () => {
      mount('first.pem', 'second.key');
      await until(() => errors().length > 0, 'it is reported');
      expect(await nameShown()).toBe('second');
      mount('first.pem', 'first.key');
      await until(async () => (await nameShown()) === 'first', 'the next good one is used');
      expect(errors()).toHaveLength(1);
      expect(errors()[0]).toMatch(/do not match/);
    });
  });

  test('the files are checked again and again, whatever is wrong with them', async () => {
    const logged: string[] = [];
    const logger = createLogger({ level: 'info' }, { write: (line) => void logged.push(line) });
    const names = { certFile: path.join(home, 'own.pem'), keyFile: path.join(home, 'own.key') };
    const write = (from: string) => {
      writeFileSync(names.certFile, readFileSync(path.join(home, `${from}.pem`)));
      writeFileSync(names.keyFile, readFileSync(path.join(home, `${from}.key`)));
    };
    write('first');
    const files = new TlsFiles(names, { logger, everyMs: 5 });
    rmSync(names.certFile);
    await until(() => logged.length === 1, 'the missing file is reported');
    write('second');
    await until(() => logged.some((line) => line.includes('certificate renewed')), 'renewed');
    writeFileSync(names.keyFile, 'no key');
    await until(() => logged.length >= 3, 'the invalid file is reported');
    expect(String(files.secureContext().cert)).toBe(readFileSync(path.join(home, 'second.pem'), 'utf8'));
    files.close();
  });

  test.each([
    [
      'a file that is not there',
      'nowhere.pem',
      'first.key',
      /HOLDFAST_TLS_CERT_FILE: .*nowhere\.pem cannot be read: ENOENT/,
    ],
    ['a key of another', 'first.pem', 'second.key', /first\.pem .*second\.key cannot be used: they do not match/],
    ['no certificate', 'names', 'first.key', /names .* cannot be used/],
  ])('%s fails the start with a sentence', (_what, cert, key, sentence) => {
    const logger = createLogger({ level: 'silent' });
    const names = { certFile: path.join(home, cert), keyFile: path.join(home, key) };
    expect(() => new TlsFiles(names, { logger })).toThrow(sentence);
  });
});

test('half a pair is not a valid configuration', () => {
  expect(() => parseConfig({ HOLDFAST_TLS_CERT_FILE: '/x' })).toThrow(
    /HOLDFAST_TLS_KEY_FILE: needed with HOLDFAST_TLS_CERT_FILE/,
  );
  expect(() => parseConfig({ HOLDFAST_TLS_KEY_FILE: '/x' })).toThrow(
    /HOLDFAST_TLS_CERT_FILE: needed with HOLDFAST_TLS_KEY_FILE/,
  );
  expect(parseConfig({ HOLDFAST_TLS_CERT_FILE: '/x', HOLDFAST_TLS_KEY_FILE: '/y' }).publicUrl).toMatch(/^https:/);
});

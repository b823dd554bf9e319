import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { ensureSystemProgram } from '../../testkit/toolchain/system-package.ts';

const run = promisify(execFile);

/** Paths of PEM files. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A private certificate authority. `Symbol.asyncDispose` deletes its files. */
export interface TestAuthority extends AsyncDisposable {
  readonly directory: string;
  /** The CA's own certificate. */
  readonly caFile: string;
  /** A certificate for a server with these names, as in `DNS:localhost,IP:127.0.0.1`, or without names for a client. */
  issue(commonName: string, names?: string): Promise<CertificateFiles>;
}

/** Creates an authority with openssl; Node cannot create certificates. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const openssl = await ensureSystemProgram(['openssl'], 'openssl');
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-certificates-'));
  const file = (name: string): string => path.join(directory, name);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30'];
  const caFile = file('authority.crt');
  const caKey = file('authority.key');
  const own = ['-subj', '/CN=Holdfast test authority', '-addext', 'keyUsage=critical,keyCertSign'];
  await run(openssl, ['req', '-x509', ...newKey, ...own, '-keyout', caKey, '-out', caFile]);
  const issue = async (commonName: string, names?: string): Promise<CertificateFiles> => {
    const [cert, key, request, extensions] = ['crt', 'key', 'csr', 'cnf'].map((end) =>
      file(`${commonName}.${end}`),
    ) as [string, string, string, string];
    writeFileSync(extensions, `basicConstraints=CA:false\n${names === undefined ? '' : `subjectAltName=${names}\n`}`);
    await run(openssl, ['req', ...newKey, '-subj', `/CN=${commonName}`, '-keyout', key, '-out', request]);
    const signer = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-days', '30', '-extfile', extensions];
    await run(openssl, ['x509', '-req', '-in', request, ...signer, '-out', cert]);
    return { cert, key };
  };
  const dispose = async (): Promise<void> => rmSync(directory, { recursive: true, force: true });
  return { directory, caFile, issue, [Symbol.asyncDispose]: dispose };
}

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { codeOf } from '../errors/causes.ts';
import { OperatorError } from '../errors/errors.ts';

class CertificateFileError extends OperatorError {
  override readonly name = 'CertificateFileError';
}

/** PEM texts. */
export interface TlsFiles {
  /** Trusted instead of all other authorities. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const certificate = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** The file's authorities are trusted in addition to those of the process. `setting` names the file in errors. */
export function trustAuthorities(file: string, setting: string): void {
  const own = readPem(file, setting, 'certificate').match(certificate) ?? [];
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), ...own]);
}

/** Takes libpq's file parameters `sslrootcert`, `sslcert` and `sslkey` out of the query. `setting` names the URL in errors. */
export function takeTlsFiles(query: URLSearchParams, setting: string): TlsFiles {
  const take = (name: string, what: 'certificate' | 'private key'): string | undefined => {
    const file = query.get(name);
    query.delete(name);
    return file === null ? undefined : readPem(file, `${setting}: ${name}`, what);
  };
  // As in libpq, `system` means the system's authorities.
  if (query.get('sslrootcert') === 'system') query.delete('sslrootcert');
  const ca = take('sslrootcert', 'certificate');
  const cert = take('sslcert', 'certificate');
  const key = take('sslkey', 'private key');
  if ((cert === undefined) !== (key === undefined))
    throw new CertificateFileError(`${setting}: sslcert and sslkey go together`);
  return { ...(ca === undefined ? {} : { ca }), ...(cert === undefined ? {} : { cert, key }) } as TlsFiles;
}

function readPem(file: string, setting: string, what: 'certificate' | 'private key'): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new CertificateFileError(`${setting}: ${file} cannot be read (${codeOf(error)})`, { cause: error });
  }
  const found =
    what === 'certificate' ? (text.match(certificate) ?? []) : (text.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----/) ?? []);
  if (found.length === 0) throw new CertificateFileError(`${setting}: ${file} contains no ${what} in PEM format`);
  if (what === 'certificate') {
    for (const pem of found) {
      try {
        new X509Certificate(pem);
      } catch (error) {
        throw new CertificateFileError(`${setting}: ${file} contains a certificate that cannot be read`, {
          cause: error,
        });
      }
    }
  }
  return text;
}

/** OpenSSL codes of certificates that are invalid or not issued by a trusted authority. */
const untrusted = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** The peer does not use TLS, wants a client certificate, or supports no common version. Temporary errors are excluded. */
const noCommonGround = /^(?:EPROTO|ERR_SSL_(?!.*(?:INTERNAL_ERROR|UNEXPECTED_EOF)))/;

/** Describes for an operator why TLS fails. Returns null if neither `error` nor its causes (up to 8 levels) are TLS errors. */
export function tlsFaultOf(error: unknown): string | null {
  let current = error as { code?: unknown; message?: unknown; cause?: unknown } | null | undefined;
  for (let depth = 0; depth < 8 && typeof current === 'object' && current !== null; depth++) {
    const code = String(current.code);
    const said = `${String(current.message).split('\n')[0]} (${code})`;
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `its certificate is for another host name: ${current.message}`;
    if (untrusted.has(code)) return `its certificate is not trusted: ${said}. Set HOLDFAST_CA_FILE to add an authority`;
    if (noCommonGround.test(code)) return `no TLS connection can be made: ${said}`;
    current = current.cause as typeof current;
  }
  return null;
}

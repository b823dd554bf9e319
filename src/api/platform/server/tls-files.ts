import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls';
import { codeOf } from '../../../shared/platform/errors/causes.ts';
import { OperatorError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';

/** The files are re-read this often. Contents are compared, because the update may be a new file, a link or a mount. */
const reloadEveryMs = 5_000;

class TlsFilesError extends OperatorError {
  override readonly name = 'TlsFilesError';
}

interface FileNames {
  readonly certFile: string;
  readonly keyFile: string;
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** The files may be renewed while the service runs. */
export class TlsFiles {
  readonly #files: FileNames;
  readonly #logger: Logger;
  readonly #servers = new Set<Server>();
  readonly #timer: NodeJS.Timeout;
  #current: Pair;
  /** The content that was last read, usable or not, so that a fault is logged once. */
  #lastRead: string;

  /** Throws TlsFilesError. */
  constructor(files: FileNames, { logger, everyMs = reloadEveryMs }: { logger: Logger; everyMs?: number }) {
    this.#files = files;
    this.#logger = logger;
    this.#current = readPair(files);
    assertUsable(this.#current, files);
    this.#lastRead = keyOf(this.#current);
    this.#timer = setInterval(() => this.reload(), everyMs);
    this.#timer.unref();
  }

  secureContext(): SecureContextOptions {
    return { ...this.#current, minVersion: 'TLSv1.2' };
  }

  /** Also passes each new pair to the server. Open connections keep the pair they have. */
  attach(server: Server): void {
    this.#servers.add(server);
  }

  /** Expiry in seconds since 1970. */
  expiresAt(): number {
    return Date.parse(new X509Certificate(this.#current.cert).validTo) / 1000;
  }

  /** Keeps the current pair if the new one cannot be used. */
  reload(): void {
    let content = 'unreadable';
    try {
      const pair = readPair(this.#files);
      content = keyOf(pair);
      if (content === this.#lastRead) return;
      assertUsable(pair, this.#files);
      this.#current = pair;
      for (const server of this.#servers) server.setSecureContext(this.secureContext());
      this.#logger.info({ ...this.#files, expiresAt: new Date(this.expiresAt() * 1000) }, 'certificate renewed');
    } catch (error) {
      if (content !== this.#lastRead)
        this.#logger.error({ err: error }, 'new certificate cannot be used: the previous one stays in use');
    }
    this.#lastRead = content;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#servers.clear();
  }
}

function readPair({ certFile, keyFile }: FileNames): Pair {
  const read = (file: string, setting: string): string => {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new TlsFilesError(`${setting}: ${file} cannot be read: ${codeOf(error)}`, { cause: error });
    }
  };
  return { cert: read(certFile, 'HOLDFAST_TLS_CERT_FILE'), key: read(keyFile, 'HOLDFAST_TLS_KEY_FILE') };
}

/** OpenSSL's message is less clear if certificate and key do not match. */
function assertUsable(pair: Pair, { certFile, keyFile }: FileNames): void {
  try {
    createSecureContext(pair);
  } catch (error) {
    const { message } = error as Error;
    const reason = /key values mismatch/.test(message) ? 'they do not match' : message;
    throw new TlsFilesError(`The certificate ${certFile} and the key ${keyFile} cannot be used: ${reason}`, {
      cause: error,
    });
  }
}

function keyOf({ cert, key }: Pair): string {
  return `${cert}\0${key}`;
}

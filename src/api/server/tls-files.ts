import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';

/** How often the files are read again, in ms. Their content is compared: what changes them may be a new file, a link or a mount. */
const readAgainMs = 5_000;

/** Certificate and key cannot be used; the message names the files. */
export class TlsFilesError extends OperatorError {
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

/** The certificate of the service and its key, from files that may be renewed while it runs. */
export class TlsFiles {
  readonly #files: FileNames;
  readonly #logger: Logger;
  readonly #servers = new Set<Server>();
  readonly #timer: NodeJS.Timeout;
  #used: Pair;
  /** What was last read, good or not, so that a fault is told once. */
  #seen: string;

  /** Throws TlsFilesError when a file cannot be read, or the two do not go together. */
  constructor(files: FileNames, { logger, everyMs = readAgainMs }: { logger: Logger; everyMs?: number }) {
    this.#files = files;
    this.#logger = logger;
    this.#used = readPair(files);
    assertUsable(this.#used, files);
    this.#seen = keyOf(this.#used);
    this.#timer = setInterval(() => this.reload(), everyMs);
    this.#timer.unref();
  }

  /** What a server is made with. */
  secureContext(): SecureContextOptions {
    return { ...this.#used, minVersion: 'TLSv1.2' };
  }

  /** From now on the server gets each new pair; connections that are open keep the one they have. */
  serve(server: Server): void {
    this.#servers.add(server);
  }

  /** When the certificate in use ends, in seconds since 1970. */
  expiresAt(): number {
    return Date.parse(new X509Certificate(this.#used.cert).validTo) / 1000;
  }

  /** Looks at the files now; a pair that cannot be used is logged, and the one in use stays. */
  reload(): void {
    let seen = 'unreadable';
    try {
      const pair = readPair(this.#files);
      seen = keyOf(pair);
      if (seen === this.#seen) return;
      assertUsable(pair, this.#files);
      this.#used = pair;
      for (const server of this.#servers) server.setSecureContext(this.secureContext());
      this.#logger.info({ ...this.#files, expiresAt: new Date(this.expiresAt() * 1000) }, 'certificate renewed');
    } catch (error) {
      if (seen !== this.#seen)
        this.#logger.error({ err: error }, 'new certificate cannot be used: the previous one stays in use');
    }
    this.#seen = seen;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#servers.clear();
  }
}

function readPair({ certFile, keyFile }: FileNames): Pair {
  const read = (file: string): string => {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new TlsFilesError(`${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`, { cause: error });
    }
  };
  return { cert: read(certFile), key: read(keyFile) };
}

/** OpenSSL says when they do not go together, but not always in the words of a person. */
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

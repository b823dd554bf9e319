import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How a fake service responds to requests. */
export type FakeMode = 'works' | 'unavailable' | 'silent' | 'stalled' | 'denied';

/** A response of the fake. */
export interface FakeAnswer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request whose body has been read. */
export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: each service has its own shape.
  readonly json: any;
}

/** A key management service in this process. */
export interface FakeKms extends AsyncDisposable {
  mode: FakeMode;
  readonly port: number;
  /** Keys by name. All versions are kept; the last one wraps. */
  readonly keys: Map<string, FakeKey>;
  /** Requests for the KMS itself. */
  readonly requests: FakeRequest[];
  /** Stops listening; `listen` starts again on the same port. */
  close(): Promise<void>;
  listen(): Promise<void>;
}

/** Symmetric, with versions, like the keys of all services. */
export class FakeKey {
  isEnabled = true;
  readonly versions: Buffer[] = [randomBytes(32)];
  /** Versions below this one are refused. */
  minVersion = 1;

  rotate(): void {
    this.versions.push(randomBytes(32));
  }

  /** Returns the version, and nonce, ciphertext and tag. */
  wrap(plain: Buffer, context: string): { readonly version: number; readonly bytes: Buffer } {
    const version = this.versions.length;
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.versions[version - 1] as Buffer, nonce);
    cipher.setAAD(Buffer.from(context));
    const bytes = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    return { version, bytes };
  }

  /** Null: the bytes belong to another key, or to another context. */
  unwrap(version: number, bytes: Buffer, context: string): Buffer | null {
    const key = this.versions[version - 1];
    if (!key || bytes.length < 28) return null;
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(-16));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
    } catch {
      return null;
    }
  }
}

/** `special` answers requests that are not for the KMS; it returns null for others. */
export async function startFakeKms(
  answer: (request: FakeRequest, kms: FakeKms) => FakeAnswer,
  special: (request: FakeRequest) => FakeAnswer | null = () => null,
): Promise<FakeKms> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const { headers, method = '', url = '' } = request;
      const read: FakeRequest = { method, path: url, headers, json: text === '' ? null : JSON.parse(text) };
      const other = special(read);
      if (!other) kms.requests.push(read);
      if (!other && kms.mode === 'silent') return;
      const unavailable: FakeAnswer = { status: 503, body: { errors: ['Vault is sealed'] } };
      const { body, headers: added, status } = other ?? (kms.mode === 'unavailable' ? unavailable : answer(read, kms));
      response.writeHead(status, { 'content-type': 'application/json', ...added });
      if (!other && kms.mode === 'stalled') return void response.write('{');
      response.end(JSON.stringify(body));
    });
  });
  const listen = (port: number): Promise<void> => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const kms: FakeKms = {
    mode: 'works',
    port,
    keys: new Map(),
    requests: [],
    close: () => closeServer(server),
    listen: () => listen(port),
    [Symbol.asyncDispose]: () => closeServer(server),
  };
  return kms;
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

import { gzipSync } from 'node:zlib';
import type { RandomSource } from '../faults/support/chaos.ts';

/** With the credentials that requests may use. */
export interface Targets {
  readonly paths: readonly string[];
  readonly credentials: readonly string[];
}

/** Chunks are written one after another. */
export interface FuzzCase {
  readonly chunks: readonly Buffer[];
  /**
   * `stays`: until the server closes; `half`: closes its sending direction; `leaves`: breaks the connection after a
   * moment.
   */
  readonly end: 'stays' | 'half' | 'leaves';
}

const methods = ['GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];
const oddMethods = ['get', 'EAT', '', 'P\0ST', 'PRI', 'CONNECT', 'G'.repeat(300)];
const oddPaths = [
  ...[
    '',
    '*',
    '//',
    '/%zz',
    '/%00',
    '/..%2f..',
    '/api/../healthz',
    'http://elsewhere/api/user',
    '/api/us er',
    '/\0',
    '/\x7f',
  ],
  ...['/\xff\xfe', `/${'a'.repeat(20_000)}`, `/api/${'x/'.repeat(2_000)}`, '/?'.repeat(100)],
];
const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024, '[{},'));

/** Generates the connections of a seed. */
export class RawFuzz {
  readonly #random: RandomSource;
  readonly #targets: Targets;

  constructor(random: RandomSource, targets: Targets) {
    this.#random = random;
    this.#targets = targets;
  }

  next(): FuzzCase {
    const count = this.#chance(0.3) ? 2 + Math.floor(this.#random() * 4) : 1;
    let bytes: Buffer = Buffer.concat(Array.from({ length: count }, () => this.#request()));
    if (this.#chance(0.1)) bytes = this.#damaged(bytes);
    const isCut = this.#chance(0.15);
    if (isCut) bytes = bytes.subarray(0, Math.floor(this.#random() * bytes.length));
    const end = this.#pick<FuzzCase['end']>(['stays', 'half', 'leaves', isCut ? 'half' : 'stays']);
    return { chunks: this.#split(bytes), end };
  }

  #request(): Buffer {
    if (this.#chance(0.04)) return this.#noise(1 + Math.floor(this.#random() * 2_000));
    const method = this.#chance(0.05) ? this.#pick(oddMethods) : this.#pick(methods);
    const target = this.#chance(0.1) ? this.#pick(oddPaths) : this.#pick(this.#targets.paths);
    const version = this.#chance(0.05) ? this.#pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.1 ', '']) : 'HTTP/1.1';
    const body = this.#body();
    const { lines, bytes } = this.#framed(body);
    const head = [`${method} ${target} ${version}`, ...this.#headers(), ...lines];
    const newline = this.#chance(0.03) ? '\n' : '\r\n';
    return Buffer.concat([Buffer.from(head.join(newline) + newline + newline, 'latin1'), bytes]);
  }

  #headers(): string[] {
    const lines = this.#chance(0.95) ? ['Host: localhost'] : this.#pick([[], ['Host: a', 'Host: b'], ['Host : a']]);
    const add = (share: number, ...choices: string[]): void => {
      if (this.#chance(share)) lines.push(this.#pick(choices));
    };
    add(0.8, 'Accept: application/vnd.pulumi+9', 'Accept: application/vnd.service+8', 'Accept: */*');
    add(
      0.5,
      ...this.#targets.credentials.map((text) => `Authorization: ${text}`),
      'Authorization: token x',
      'Authorization: ',
    );
    add(0.7, 'Content-Type: application/json', 'Content-Type: a/b; c="', 'Content-Type: ,,,');
    add(0.3, 'Content-Encoding: gzip', 'Content-Encoding: x-gzip', 'Content-Encoding: br', 'Content-Encoding: \x01');
    add(0.1, 'Expect: 100-continue', 'Expect: 200-ok', 'Expect: 100-continue, 100-continue');
    add(
      0.2,
      'Connection: close',
      'Connection: keep-alive',
      'Connection: upgrade\r\nUpgrade: websocket',
      'Connection: x',
    );
    add(0.1, 'X-Forwarded-For: 1.2.3.4, ::1, x', `X-Forwarded-For: ${'1.1.1.1,'.repeat(500)}`);
    add(
      0.05,
      `X-Huge: ${'x'.repeat(20_000)}`,
      `X-Nul: a\0b`,
      'X-Folded: a\r\n b',
      'X-Bare: a\rb',
      ': nameless',
      'no colon',
    );
    if (this.#chance(0.03)) lines.push(...Array.from({ length: 400 }, (_, at) => `X-${at}: y`));
    return lines;
  }

  #body(): Buffer {
    return this.#pick<() => Buffer>([
      () => Buffer.alloc(0),
      () => Buffer.from('{}'),
      () =>
        Buffer.from(
          JSON.stringify({ stackName: `fuzz-${Math.floor(this.#random() * 1e6)}`, version: 3, deployment: {} }),
        ),
      () => Buffer.from('{"a":'.repeat(3_000)),
      () => this.#noise(Math.floor(this.#random() * 5_000)),
      () => gzipSync(Buffer.from('{"version":3,"deployment":{}}')),
      () => this.#damaged(gzipSync(Buffer.from('{"version":3,"deployment":{}}'))),
      () => bomb,
      () => Buffer.alloc(Math.floor(this.#random() * 300_000), ' '),
    ])();
  }

  /** The header lines that state the body length, correctly or not, and the body as it is then written. */
  #framed(body: Buffer): { lines: string[]; bytes: Buffer } {
    const { length } = body;
    const chunked = () => this.#chunked(body);
    return this.#pick<() => { lines: string[]; bytes: Buffer }>([
      () => ({ lines: [], bytes: Buffer.alloc(0) }),
      () => ({ lines: [`Content-Length: ${length}`], bytes: body }),
      () => ({ lines: [`Content-Length: ${length}`], bytes: body }),
      () => ({ lines: [`Content-Length: ${length}`], bytes: body }),
      () => ({ lines: [`Content-Length: ${Math.max(length - 3, 0)}`], bytes: body }),
      () => ({ lines: [`Content-Length: ${length}`, `Content-Length: ${length + 1}`], bytes: body }),
      () => ({ lines: [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'], bytes: chunked() }),
      () => ({ lines: ['Transfer-Encoding: chunked', 'Content-Length: 3'], bytes: body }),
      () => ({ lines: ['Transfer-Encoding: chunked'], bytes: chunked() }),
      () => ({ lines: ['Transfer-Encoding: chunked'], bytes: chunked() }),
      () => ({ lines: [this.#pick(['Transfer-Encoding: cow', 'Transfer-Encoding: chunked, cow'])], bytes: chunked() }),
      () => ({
        lines: [`Content-Length: ${this.#pick(['-1', '+1', '0x9', '1e3', '9'.repeat(30), '1, 2', ''])}`],
        bytes: body,
      }),
    ])();
  }

  #chunked(body: Buffer): Buffer {
    const parts: Buffer[] = [];
    for (let at = 0; at < body.length; ) {
      const size = Math.min(1 + Math.floor(this.#random() * 70_000), body.length - at);
      const extension = this.#chance(0.05) ? `;${'e'.repeat(this.#pick([1, 100, 20_000]))}` : '';
      const said = this.#chance(0.03)
        ? this.#pick(['zz', '-1', 'f'.repeat(20), (size + 1).toString(16)])
        : size.toString(16);
      parts.push(Buffer.from(`${said}${extension}\r\n`), body.subarray(at, at + size), Buffer.from('\r\n'));
      at += size;
    }
    const trailer = this.#chance(0.1) ? `X-T: ${'t'.repeat(this.#pick([1, 20_000]))}\r\n` : '';
    return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
  }

  #damaged(bytes: Buffer): Buffer {
    const copy = Buffer.from(bytes);
    for (let times = 0; copy.length > 0 && times < 4; times++)
      copy[Math.floor(this.#random() * copy.length)] = Math.floor(this.#random() * 256);
    return copy;
  }

  #split(bytes: Buffer): Buffer[] {
    const cuts = this.#chance(0.5) ? 0 : 1 + Math.floor(this.#random() * 8);
    const near = () => Math.floor(this.#random() * Math.min(bytes.length, this.#chance(0.7) ? 500 : bytes.length));
    const at = [0, ...Array.from({ length: cuts }, near).sort((one, other) => one - other), bytes.length];
    return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
  }

  #noise(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => Math.floor(this.#random() * 256)));
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T;
  }
}

import { hash } from 'node:crypto';
import { JsonScanner } from '../../platform/json/json-scanner.ts';
import { ScanWindow } from '../../platform/json/scan-window.ts';

const maxUrnBytes = 64 * 1024;

/** A short key of a URN, for large sets. It is not a slice of a longer text, which would stay in memory. */
export function urnKey(urn: string): string {
  return hash('sha256', urn, 'buffer').toString('base64url', 0, 12);
}

/** Skips resources that only wait for their deletion or for the rest of their replacement. Keeps only the keys of the URNs. */
export class LiveUrns {
  readonly #texts = new ScanWindow(maxUrnBytes);
  readonly #scanner: JsonScanner;
  readonly #keys = new Set<string>();
  #urn: string | null = null;
  #isGone = false;

  constructor() {
    this.#scanner = new JsonScanner({
      reportDepth: 4,
      onValue: (path, _kind, start, end) => {
        if (path[0] === 'deployment' && path[1] === 'resources') {
          if (path.length === 4) this.#addMember(path[3], start, end);
          else if (path.length === 3) this.#addResource();
        }
        this.#texts.pass(end);
      },
    });
  }

  /** Throws JsonSyntaxError. */
  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  /** Throws JsonSyntaxError. */
  end(): ReadonlySet<string> {
    this.#scanner.end();
    return this.#keys;
  }

  #addMember(name: string | number | undefined, start: number, end: number): void {
    if (name === 'urn') this.#urn = readUrn(this.#texts.textOf(start, end));
    else if (name === 'delete' || name === 'pendingReplacement')
      this.#isGone ||= this.#texts.textOf(start, end)?.toString('latin1') === 'true';
  }

  #addResource(): void {
    if (this.#urn !== null && !this.#isGone) this.#keys.add(urnKey(this.#urn));
    this.#urn = null;
    this.#isGone = false;
  }
}

function readUrn(text: Buffer | null): string | null {
  const value: unknown = text && JSON.parse(text.toString('utf8'));
  return typeof value === 'string' ? value : null;
}

import { createHash } from 'node:crypto';
import { JsonScanner } from '../../platform/json/json-scanner.ts';
import { ScanWindow } from '../../platform/json/scan-window.ts';

/** The key depends only on the resource's URN. */
export interface ResourceBoundary {
  readonly start: number;
  /** Hex digits; null without a readable URN. */
  readonly key: string | null;
}

/** A resource with a longer URN has no key. */
const maxUrnBytes = 4096;
const keyBytes = 8;

/** Finds the resources in a document that arrives in chunks. Memory does not grow with the document. */
export class ResourceBoundaries {
  readonly #texts = new ScanWindow(maxUrnBytes);
  readonly #scanner: JsonScanner;
  #key: string | null = null;
  #found: ResourceBoundary[] = [];

  constructor() {
    this.#scanner = new JsonScanner({
      reportDepth: 4,
      onValue: (path, _kind, start, end) => {
        if (path[0] === 'deployment' && path[1] === 'resources') {
          if (path.length === 4 && path[3] === 'urn') this.#key = keyOf(this.#texts.textOf(start, end));
          if (path.length === 3) {
            this.#found.push({ start, key: this.#key });
            this.#key = null;
          }
        }
        this.#texts.pass(end);
      },
    });
  }

  /** Returns the resources that end in the chunk. Throws JsonSyntaxError. */
  write(chunk: Buffer): readonly ResourceBoundary[] {
    this.#found = [];
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
    return this.#found;
  }
}

function keyOf(urn: Buffer | null): string | null {
  return (
    urn &&
    createHash('sha256')
      .update(urn)
      .digest('hex')
      .slice(0, 2 * keyBytes)
  );
}

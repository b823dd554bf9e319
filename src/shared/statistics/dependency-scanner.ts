import { JsonScanner } from '../platform/json/json-scanner.ts';
import { ScanWindow } from '../platform/json/scan-window.ts';
import { denseSliceBytes, inSlices } from '../platform/slices/slices.ts';
import { urnKey } from '../state/deployments/live-urns.ts';

const maxUrnBytes = 64 * 1024;
const maxEdges = 200_000;

/** By the keys of URNs. Each dependency is stored once, however often a state names it. */
export interface Dependencies {
  /** The resources on which a resource depends. */
  readonly before: ReadonlyMap<string, ReadonlySet<string>>;
  /** The resources that depend on a resource. */
  readonly after: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Considers only the given resources. Keeps only the keys of their URNs. */
export class DependencyScanner {
  readonly #among: ReadonlySet<string>;
  readonly #before = new Map<string, Set<string>>();
  readonly #after = new Map<string, Set<string>>();
  #edges = 0;

  constructor(among: ReadonlySet<string>) {
    this.#among = among;
  }

  get found(): Dependencies {
    return { before: this.#before, after: this.#after };
  }

  /** In time slices. Throws JsonSyntaxError. */
  async scan(document: AsyncIterable<Buffer>): Promise<void> {
    const texts = new ScanWindow(maxUrnBytes);
    let urn: string | null = null;
    let needs = new Set<string>();
    const add = (start: number, end: number, isReference = false): void => {
      // The CLI writes the URN first, and most resources have no step.
      if (urn !== null && !this.#among.has(urn)) return;
      const key = keyOf(texts.textOf(start, end), isReference);
      if (this.#among.has(key)) needs.add(key);
    };
    const scanner = new JsonScanner({
      reportDepth: 5,
      onValue: (path, kind, start, end) => {
        if (path[0] === 'deployment' && path[1] === 'resources' && kind === 'string') {
          const [, , , member] = path;
          if (path.length === 4 && member === 'urn') urn = keyOf(texts.textOf(start, end));
          else if (path.length === 4 && member === 'provider') add(start, end, true);
          else if (path.length === 5 && member === 'dependencies') add(start, end);
        } else if (path.length === 3 && path[1] === 'resources') {
          if (urn !== null) this.#add(urn, needs);
          urn = null;
          needs = new Set();
        }
        texts.pass(end);
      },
    });
    for await (const chunk of inSlices(document, denseSliceBytes)) {
      texts.beginChunk(chunk);
      scanner.write(chunk);
      texts.endChunk();
    }
    scanner.end();
  }

  #add(urn: string, needs: ReadonlySet<string>): void {
    if (!this.#among.has(urn)) return;
    for (const other of needs) {
      if (this.#edges >= maxEdges) return;
      if (this.#before.get(urn)?.has(other)) continue;
      this.#edges++;
      add(this.#before, urn, other);
      add(this.#after, other, urn);
    }
  }
}

function add(map: Map<string, Set<string>>, key: string, value: string): void {
  const known = map.get(key);
  if (known) known.add(value);
  else map.set(key, new Set([value]));
}

/** `isReference`: ignores the id at the end of a provider reference. */
function keyOf(text: Buffer | null, isReference = false): string {
  const value: unknown = text && JSON.parse(text.toString('utf8'));
  if (typeof value !== 'string') return '';
  return urnKey(isReference ? value.slice(0, Math.max(0, value.lastIndexOf('::'))) : value);
}

import { JsonScanner } from '../platform/json/json-scanner.ts';
import { RecentText } from '../platform/json/recent-text.ts';
import { urnKey } from '../state/deployments/live-urns.ts';

/** Maximum size of the raw text of a URN. */
const maxUrnBytes = 64 * 1024;
const maxEdges = 200_000;

/** Dependencies among resources, by the keys of their URNs. */
export interface Dependencies {
  /** The resources on which a resource depends. */
  readonly before: ReadonlyMap<string, readonly string[]>;
  /** The resources that depend on a resource. */
  readonly after: ReadonlyMap<string, readonly string[]>;
}

/**
 * Finds the dependencies among some resources in deployment documents that arrive in chunks. Keeps no more than the keys of their
 * URNs.
 */
export class DependencyScanner {
  readonly #among: ReadonlySet<string>;
  readonly #before = new Map<string, string[]>();
  readonly #after = new Map<string, string[]>();
  #edges = 0;

  constructor(among: ReadonlySet<string>) {
    this.#among = among;
  }

  get found(): Dependencies {
    return { before: this.#before, after: this.#after };
  }

  /** Reads one document. Throws JsonSyntaxError. */
  async scan(document: AsyncIterable<Buffer>): Promise<void> {
    const texts = new RecentText(maxUrnBytes);
    let urn: string | null = null;
    let needs: string[] = [];
    const scanner = new JsonScanner({
      reportDepth: 5,
      onValue: (path, kind, start, end) => {
        if (path[0] === 'deployment' && path[1] === 'resources' && kind === 'string') {
          const [, , , member] = path;
          if (path.length === 4 && member === 'urn') urn = keyOf(texts.textOf(start, end));
          else if (path.length === 4 && member === 'provider') needs.push(keyOf(texts.textOf(start, end), true));
          else if (path.length === 5 && member === 'dependencies') needs.push(keyOf(texts.textOf(start, end)));
        } else if (path.length === 3 && path[1] === 'resources') {
          if (urn !== null) this.#add(urn, needs);
          urn = null;
          needs = [];
        }
        texts.pass(end);
      },
    });
    for await (const chunk of document) {
      texts.beginChunk(chunk);
      scanner.write(chunk);
      texts.endChunk();
    }
    scanner.end();
  }

  #add(urn: string, needs: readonly string[]): void {
    if (!this.#among.has(urn)) return;
    for (const other of needs) {
      if (!this.#among.has(other) || this.#edges >= maxEdges) continue;
      this.#edges++;
      push(this.#before, urn, other);
      push(this.#after, other, urn);
    }
  }
}

function push(map: Map<string, string[]>, key: string, value: string): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** The key of a URN in JSON text; for a provider reference, without the id at its end. */
function keyOf(text: Buffer | null, isReference = false): string {
  const value: unknown = text && JSON.parse(text.toString('utf8'));
  if (typeof value !== 'string') return '';
  return urnKey(isReference ? value.slice(0, Math.max(0, value.lastIndexOf('::'))) : value);
}

import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { JsonScanner } from '../../../shared/platform/json/json-scanner.ts';
import { ScanWindow } from '../../../shared/platform/json/scan-window.ts';
import { denseSliceBytes, inSlices } from '../../../shared/platform/slices/slices.ts';
import { rootType } from './root-only.ts';

/** Size of each part that is kept. */
const maxPartBytes = 8 * 1024 * 1024;
/** Enough for the raw text of a type or of a parent's URN. */
const maxTypeBytes = 256;
const maxParentBytes = 64 * 1024;

/** What determines a stack's outputs, as raw JSON. Null if absent. */
export interface RootOutputs {
  readonly version: Buffer | null;
  readonly features: Buffer | null;
  readonly secretsProviders: Buffer | null;
  readonly urn: Buffer | null;
  readonly outputs: Buffer | null;
}

const none: RootOutputs = { version: null, features: null, secretsProviders: null, urn: null, outputs: null };

/**
 * Reads the resource that represents the stack: the first of its type without a parent, as in the CLI. Reads the document to its end, to
 * notice damage, and keeps only these parts. Throws JsonSyntaxError, and InvalidRequestError.
 */
export async function readRootOutputs(document: AsyncIterable<Buffer>): Promise<RootOutputs> {
  const texts = new ScanWindow(maxPartBytes);
  const found: { -readonly [Part in keyof RootOutputs]: RootOutputs[Part] } = { ...none };
  /** The root of the list that is being read. If the member is repeated, the last list counts. */
  let root: Pick<RootOutputs, 'urn' | 'outputs'> | null = null;
  let resource = new ResourceParts();
  const scanner = new JsonScanner({
    reportDepth: 4,
    onValue: (path, _kind, start, end) => {
      const [top, list] = path;
      const text = (): Buffer => copyOf(texts.textOf(start, end));
      const isResource = top === 'deployment' && list === 'resources' && root === null;
      // These are kept whole.
      if (path.length > 2 && top === 'deployment' && list === 'secrets_providers') return;
      if (path.length > 1 && top === 'features') return;
      if (path.length === 4 && isResource) resource.add(path[3], texts.textOf(start, end));
      else if (path.length === 3 && isResource) {
        root = resource.root();
        resource = new ResourceParts();
      } else if (path.length === 2 && top === 'deployment') {
        if (list === 'secrets_providers') found.secretsProviders = text();
        else if (list === 'resources') {
          found.urn = root?.urn ?? null;
          found.outputs = root?.outputs ?? null;
          root = null;
        }
      } else if (path.length === 1 && top === 'version') found.version = text();
      else if (path.length === 1 && top === 'features') found.features = text();
      texts.pass(end);
    },
  });
  for await (const chunk of inSlices(document, denseSliceBytes)) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
  }
  scanner.end();
  return found;
}

class ResourceParts {
  /** Null until the type is known. */
  #hasRootType: boolean | null = null;
  #hasParent = false;
  #urn: Buffer | null = null;
  #outputs: Buffer | null = null;
  #isTooLarge = false;

  /** `text`: raw JSON; null if it is too large to be kept. */
  add(name: string | number | undefined, text: Buffer | null): void {
    if (name === 'type') this.#hasRootType = smallValue(text, maxTypeBytes) === rootType;
    else if (name === 'parent') this.#hasParent = Boolean(smallValue(text, maxParentBytes));
    else if ((name === 'urn' || name === 'outputs') && this.#hasRootType !== false) {
      if (text === null) this.#isTooLarge = true;
      else if (name === 'urn') this.#urn = Buffer.from(text);
      else this.#outputs = Buffer.from(text);
    }
  }

  /** Null if the resource is not the root. */
  root(): Pick<RootOutputs, 'urn' | 'outputs'> | null {
    if (this.#hasRootType !== true || this.#hasParent) return null;
    if (this.#isTooLarge) throw tooLarge();
    return { urn: this.#urn, outputs: this.#outputs };
  }
}

/** A placeholder for a larger value. */
function smallValue(text: Buffer | null, maxBytes: number): unknown {
  return text === null || text.length > maxBytes ? true : JSON.parse(text.toString('utf8'));
}

function copyOf(text: Buffer | null): Buffer {
  if (text === null) throw tooLarge();
  // The chunk's memory is reused.
  return Buffer.from(text);
}

function tooLarge(): InvalidRequestError {
  return new InvalidRequestError(
    `A resource of the stack has more than ${maxPartBytes / 1024 / 1024} MiB: reading its outputs needs the permission read`,
  );
}

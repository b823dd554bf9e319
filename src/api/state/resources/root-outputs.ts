import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { JsonScanner } from '../../../shared/platform/json/json-scanner.ts';
import { scanMembers, sliceOf } from '../../../shared/platform/json/json-text.ts';
import { RecentText } from '../../../shared/platform/json/recent-text.ts';
import { inSlices } from '../../../shared/platform/slices/slices.ts';
import { rootType } from './root-only.ts';

/** Maximum size of the root resource, and of each other part that is kept. */
const maxPartBytes = 8 * 1024 * 1024;

/** The parts of a deployment document that say what a stack's outputs are, as raw JSON. Null if absent. */
export interface RootOutputs {
  readonly version: Buffer | null;
  readonly features: Buffer | null;
  readonly secretsProviders: Buffer | null;
  readonly urn: Buffer | null;
  readonly outputs: Buffer | null;
}

const none: RootOutputs = { version: null, features: null, secretsProviders: null, urn: null, outputs: null };

/**
 * Reads the outputs of the resource that represents the stack: the first of its type without a parent, as the CLI looks for it. Reads
 * the document to its end, so damage is noticed, and keeps no more of it than these parts. Throws JsonSyntaxError, and
 * InvalidRequestError.
 */
export async function readRootOutputs(document: AsyncIterable<Buffer>): Promise<RootOutputs> {
  const texts = new RecentText(maxPartBytes);
  const found: { -readonly [Part in keyof RootOutputs]: RootOutputs[Part] } = { ...none };
  /** Of the list that is being read; the last one counts if the member is repeated. */
  let root: Pick<RootOutputs, 'urn' | 'outputs'> | null = null;
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, _kind, start, end) => {
      const [top, list] = path;
      const text = (): Buffer => copyOf(texts.textOf(start, end));
      if (path.length === 3) {
        // Their parts are kept whole.
        if (top === 'deployment' && list === 'secrets_providers') return;
        if (top === 'deployment' && list === 'resources' && root === null) root = readRoot(texts.textOf(start, end));
      } else if (path.length === 2 && top === 'deployment') {
        if (list === 'secrets_providers') found.secretsProviders = text();
        else if (list === 'resources') {
          found.urn = root?.urn ?? null;
          found.outputs = root?.outputs ?? null;
          root = null;
        }
      } else if (path.length === 2 && top === 'features') return;
      else if (path.length === 1 && top === 'version') found.version = text();
      else if (path.length === 1 && top === 'features') found.features = text();
      texts.pass(end);
    },
  });
  for await (const chunk of inSlices(document)) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
  }
  scanner.end();
  return found;
}

/** Null if the resource is not the root. */
function readRoot(text: Buffer | null): Pick<RootOutputs, 'urn' | 'outputs'> | null {
  if (text === null) throw tooLarge();
  // Most resources are distinguished without a second scan; encoders do not escape colons.
  if (!text.includes(rootType)) return null;
  const members = scanMembers(text);
  const part = (name: string): Buffer | null => {
    const span = members?.get(name);
    return span ? Buffer.from(sliceOf(text, span)) : null;
  };
  const value = (name: string): unknown => JSON.parse(part(name)?.toString('utf8') ?? 'null');
  if (value('type') !== rootType || value('parent')) return null;
  return { urn: part('urn'), outputs: part('outputs') };
}

function copyOf(text: Buffer | null): Buffer {
  if (text === null) throw tooLarge();
  // The chunk's memory is used again.
  return Buffer.from(text);
}

function tooLarge(): InvalidRequestError {
  return new InvalidRequestError(
    `A resource of the stack has more than ${maxPartBytes / 1024 / 1024} MiB: reading its outputs needs the permission read`,
  );
}

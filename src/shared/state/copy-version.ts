import { NotFoundError } from '../platform/errors/errors.ts';
import { JsonScanner } from '../platform/json/json-scanner.ts';
import { RecentText } from '../platform/json/recent-text.ts';
import { inSlices } from '../platform/slices/slices.ts';
import type { StackRepository, StackRow } from '../stacks/stack-repository.ts';
import type { ByteSource } from './checkpoints/body-buffer.ts';
import type { NewCheckpoint } from './checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { renameDeployment } from './deployments/rename-deployment.ts';
import { parseUrn, toProjectPath } from './deployments/urn.ts';
import type { StateReader } from './state-reader.ts';

/** The services that make a copy. */
export interface CopyParts {
  readonly documents: DocumentStore;
  readonly stacks: Pick<StackRepository, 'hadName'>;
  readonly states: Pick<StateReader, 'readVersion'>;
}

/**
 * Stores the state of an earlier version once more, without making it the state of its stack. A version from before a rename gets the
 * names that the stack has now: the CLI would find none of its resources otherwise. Reads it as a stream. Throws NotFoundError.
 */
export async function copyVersion(
  { documents, stacks, states }: CopyParts,
  stack: StackRow,
  stackVersion: number,
): Promise<NewCheckpoint> {
  const find = async () => {
    const state = await states.readVersion(stack.id, stackVersion);
    if (!state)
      throw new NotFoundError(`The stack has no version ${stackVersion}: pulumi stack history lists its versions`);
    return state;
  };
  const source: ByteSource = async function* () {
    yield* (await find()).bytes;
  };
  const { bytes, resourceCount } = await find();
  const urn = await readFirstUrn(bytes);
  const named = parseUrn(urn ?? '');
  const from = named && { ...stack, project: toProjectPath(named.project), stack: named.stack };
  const isRenamed = from !== null && (from.stack !== stack.stack || from.project !== stack.project);
  // A name that the stack has never had was imported on purpose.
  const renamed =
    isRenamed && (await stacks.hadName(stack.id, from)) ? await renameDeployment(source, { from, to: stack }) : source;
  return { document: await documents.save(renamed), resourceCount };
}

/** Maximum bytes of a URN; the CLI writes none longer. */
const maxUrnBytes = 64 * 1024;

/** The URN of the first resource of a deployment; null if there is none. Reads no more than that. Throws JsonSyntaxError. */
async function readFirstUrn(document: AsyncIterable<Buffer>): Promise<string | null> {
  const texts = new RecentText(maxUrnBytes);
  const found: string[] = [];
  const scanner = new JsonScanner({
    reportDepth: 4,
    onValue: (path, kind, start, end) => {
      const [top, list, , member] = path;
      if (top === 'deployment' && list === 'resources' && member === 'urn' && path.length === 4 && kind === 'string') {
        const text = texts.textOf(start, end);
        if (text !== null) found.push(JSON.parse(text.toString('utf8')) as string);
      }
      texts.pass(end);
    },
  });
  for await (const chunk of inSlices(document)) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
    if (found.length > 0) break;
  }
  return found[0] ?? null;
}

import type { ByteSource } from '../platform/bytes/byte-source.ts';
import { NotFoundError } from '../platform/errors/errors.ts';
import { JsonScanner } from '../platform/json/json-scanner.ts';
import { ScanWindow } from '../platform/json/scan-window.ts';
import { inSlices } from '../platform/slices/slices.ts';
import type { StackRef } from '../stacks/names.ts';
import type { StackRepository, StackRow } from '../stacks/stack-repository.ts';
import type { NewCheckpoint } from './checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from './checkpoints/document-store.ts';
import { renameDeployment } from './deployments/rename-deployment.ts';
import { parseUrn, toProjectPath } from './deployments/urn.ts';
import type { StateReader } from './state-reader.ts';

export interface CopyParts {
  readonly documents: DocumentStore;
  readonly stacks: Pick<StackRepository, 'hadName'>;
  readonly states: Pick<StateReader, 'readVersion'>;
}

/**
 * Does not make the copy the state of its stack. The copy of a version from before a rename gets the stack's current names; otherwise the
 * CLI would find none of its resources. Reads the state as a stream. Throws NotFoundError.
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
  const named = await readNames(bytes);
  const from = named && { ...stack, ...named };
  const isRenamed = from !== null && (from.stack !== stack.stack || from.project !== stack.project);
  // A name that the stack has never had was imported on purpose.
  const renamed =
    isRenamed && (await stacks.hadName(stack.id, from)) ? await renameDeployment(source, { from, to: stack }) : source;
  return { document: await documents.save(renamed), resourceCount };
}

/** The CLI writes no longer URN. */
const maxUrnBytes = 64 * 1024;

type StackNames = Pick<StackRef, 'project' | 'stack'>;

/**
 * Finds the stack's names in the first URN of a resource or pending operation or, without one, in its secrets provider. Reads no more than
 * necessary. Throws JsonSyntaxError.
 */
async function readNames(document: AsyncIterable<Buffer>): Promise<StackNames | null> {
  const texts = new ScanWindow(maxUrnBytes);
  const found = { urn: '', project: '', stack: '' };
  const scanner = new JsonScanner({
    reportDepth: 5,
    onValue: (path, kind, start, end) => {
      const name = kind === 'string' && found.urn === '' ? nameAt(path) : null;
      const text = name && texts.textOf(start, end);
      if (name && text) found[name] = JSON.parse(text.toString('utf8')) as string;
      texts.pass(end);
    },
  });
  for await (const chunk of inSlices(document)) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
    if (found.urn !== '') break;
  }
  const { project, stack, urn } = found;
  if (urn === '') return stack === '' ? null : { project, stack };
  const named = parseUrn(urn);
  return named && { project: toProjectPath(named.project), stack: named.stack };
}

function nameAt(path: readonly (string | number)[]): 'urn' | 'project' | 'stack' | null {
  const [top, list, state, member, part] = path;
  if (top !== 'deployment') return null;
  if (list === 'resources') return path.length === 4 && member === 'urn' ? 'urn' : null;
  // The CLI's delta mode writes the second spelling (pkg/backend/httpstate/diffs.go).
  if (list === 'pending_operations' || list === 'pendingOperations')
    return member === 'resource' && part === 'urn' ? 'urn' : null;
  const isName = list === 'secrets_providers' && state === 'state' && path.length === 4;
  return isName && (member === 'project' || member === 'stack') ? member : null;
}

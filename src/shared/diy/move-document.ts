import type { ByteSource } from '../platform/bytes/byte-source.ts';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import { JsonScanner } from '../platform/json/json-scanner.ts';
import { ScanWindow } from '../platform/json/scan-window.ts';
import { assertDeploymentVersion } from '../state/checkpoints/deployment-scanner.ts';

interface Envelope {
  readonly version: number;
  /** Raw JSON; null for no or an empty list. */
  readonly features: string | null;
}

interface Shape {
  readonly path: readonly string[];
  head(envelope: Envelope): string;
  readonly tail: string;
}

const maxMemberBytes = 64 * 1024;

/**
 * Converts `{version, features?, checkpoint: {stack, latest}}` to `{version, features?, deployment}`, with the bytes of the deployment
 * unchanged. Yields nothing if the stack has no state. Throws JsonSyntaxError and InvalidRequestError.
 */
export function documentOfCheckpoint(checkpoint: ByteSource): AsyncGenerator<Buffer> {
  return cutOut(checkpoint, {
    path: ['checkpoint', 'latest'],
    head: ({ features, version }) => `{"version":${version},${featuresMember(features)}"deployment":`,
    tail: '}',
  });
}

/** Reverses `documentOfCheckpoint`. The CLI drops the mark when it writes. */
export function checkpointOfDocument(document: ByteSource, stackName: string, mark?: string): AsyncGenerator<Buffer> {
  const marked = mark === undefined ? '' : `"holdfast":${JSON.stringify(mark)},`;
  return cutOut(document, {
    path: ['deployment'],
    head: ({ features, version }) =>
      `{"version":${version},${featuresMember(features)}"checkpoint":{"stack":${JSON.stringify(stackName)},${marked}"latest":`,
    tail: '}}',
  });
}

/** Marks the state of a stack that has no versions. */
export const initialMark = 'initial';

/** Takes the first bytes of a checkpoint file. */
export function markOf(head: Buffer): string | null {
  return /"checkpoint":\{"stack":"[^"]*","holdfast":"([^"]*)","latest":/.exec(head.toString('latin1'))?.[1] ?? null;
}

function featuresMember(features: string | null): string {
  return features === null ? '' : `"features":${features},`;
}

/** The CLI writes the envelope first. In any other order, the source is read twice. */
async function* cutOut(source: ByteSource, shape: Shape, known?: Envelope): AsyncGenerator<Buffer> {
  const texts = new ScanWindow(maxMemberBytes);
  let envelope: Envelope | null = known ?? null;
  let version: string | undefined;
  let features: string | null = null;
  let span: { readonly start: number; end: number | null } | null = null;
  const scanner = new JsonScanner({
    reportDepth: shape.path.length,
    onOpen: (path, kind, start) => {
      if (kind === 'object' && isAt(path, shape.path)) span ??= { start, end: null };
    },
    onValue: (path, kind, start, end) => {
      if (path.length === 1 && path[0] === 'version') version = texts.textOf(start, end)?.toString('utf8');
      if (path.length === 1 && path[0] === 'features') features = readFeatures(kind, texts.textOf(start, end));
      if (span?.start === start && isAt(path, shape.path)) span.end ??= end;
      // The list of features is still needed when its elements have ended.
      if (path.length === 1 || path[0] !== 'features') texts.pass(end);
    },
  });
  let offset = 0;
  let cutTo: number | null = null;
  for await (const chunk of source()) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
    const base = offset;
    offset += chunk.length;
    const found = span as { readonly start: number; readonly end: number | null } | null;
    if (found === null) continue;
    if (cutTo === null) {
      if (envelope === null && version === undefined) {
        yield* cutOut(source, shape, await readEnvelope(source));
        return;
      }
      envelope ??= { version: assertDeploymentVersion(version), features };
      yield Buffer.from(shape.head(envelope));
      cutTo = found.start;
    }
    const to = found.end ?? offset;
    if (to > cutTo) yield chunk.subarray(Math.max(cutTo - base, 0), to - base);
    cutTo = Math.max(to, cutTo);
  }
  scanner.end();
  if (cutTo !== null) yield Buffer.from(shape.tail);
  else assertDeploymentVersion(version);
}

async function readEnvelope(source: ByteSource): Promise<Envelope> {
  const texts = new ScanWindow(maxMemberBytes);
  let version: string | undefined;
  let features: string | null = null;
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: (path, kind, start, end) => {
      if (path[0] === 'version') version = texts.textOf(start, end)?.toString('utf8');
      if (path[0] === 'features') features = readFeatures(kind, texts.textOf(start, end));
      texts.pass(end);
    },
  });
  for await (const chunk of source()) {
    texts.beginChunk(chunk);
    scanner.write(chunk);
    texts.endChunk();
  }
  scanner.end();
  return { version: assertDeploymentVersion(version), features };
}

/** Without all features, the CLI would misread the state. */
function readFeatures(kind: string, text: Buffer | null): string | null {
  if (kind === 'literal') return null;
  if (kind !== 'array' || text === null)
    throw new InvalidRequestError('"features" is not a list, or longer than 64 KiB');
  return /^\[\s*\]$/.test(text.toString('utf8')) ? null : text.toString('utf8');
}

function isAt(path: readonly (string | number)[], wanted: readonly string[]): boolean {
  return path.length === wanted.length && wanted.every((part, at) => path[at] === part);
}

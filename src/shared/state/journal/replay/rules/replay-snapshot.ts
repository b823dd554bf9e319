import { createHash } from 'node:crypto';
import type { PendingOperation } from '../../../deployments/deployment-parts.ts';
import type { ResourceText } from '../../../deployments/resource.ts';
import type { ReplayState } from './replay-state.ts';

/** The bytes are no snapshot of a replay over this base, or have another format. Replay from the beginning instead. */
export class ReplaySnapshotError extends Error {
  override readonly name = 'ReplaySnapshotError';
}

/*
 * Format: signature, SHA-256 of the rest, header length (uint32 BE), header (JSON), blobs end to end. A resource is written as its position
 * in the base document, or as -1 - n for the n-th row of `resources`.
 */
const signature = Buffer.from('holdfast-replay-2\n');
const digestBytes = 32;
const headerAt = signature.length + digestBytes + 4;

type NamedLengths = [name: string, length: number][];
type OperationRow = [length: number, features: number, isCreating: boolean];

interface Header {
  readonly baseDigest: string;
  /** The blobs are in the order of these fields. */
  readonly resources: [length: number, features: number, hasAliases: boolean][];
  readonly baseOperations: OperationRow[];
  readonly open: [operationId: number, operation: OperationRow | null][];
  readonly baseMembers: NamedLengths;
  readonly documentMembers: NamedLengths;
  readonly extensions: NamedLengths;
  readonly base: number[];
  readonly added: (number | null)[];
  readonly swapped: [position: number, resource: number][];
  readonly addedBy: [number, number][];
  readonly removed: number[];
  readonly markedDelete: number[];
  readonly markedPendingReplacement: number[];
  readonly hasRefresh: boolean;
  readonly requiresByteString: boolean;
  readonly lastSequenceId: number;
  readonly gaps: [from: number, to: number][];
}

/** Resources unchanged from the base document are stored as references to it. */
export function encodeReplayState(state: ReplayState, base: Buffer | null): Buffer {
  const blobs: Buffer[] = [];
  const resources: Header['resources'] = [];
  const resourceRow = (resource: ResourceText): number => {
    if (resource.basePosition >= 0) return resource.basePosition;
    blobs.push(resource.text);
    return -resources.push([resource.text.length, resource.features, resource.hasAliases]);
  };
  const operationRow = ({ text, features, isCreating }: PendingOperation): OperationRow => {
    blobs.push(text);
    return [text.length, features, isCreating];
  };
  const namedRows = (members: ReadonlyMap<string, Buffer>): NamedLengths =>
    [...members].map(([name, value]) => {
      blobs.push(value);
      return [name, value.length];
    });

  const resourceRefs = {
    base: state.base.resources.map(resourceRow),
    added: state.added.map((resource) => resource && resourceRow(resource)),
    swapped: [...state.swapped].map(([position, resource]): [number, number] => [position, resourceRow(resource)]),
  };
  const header: Header = {
    baseDigest: digest(base ?? Buffer.alloc(0)).toString('hex'),
    resources,
    baseOperations: state.base.pendingOperations.map(operationRow),
    open: [...state.open].map(([operationId, operation]) => [operationId, operation && operationRow(operation)]),
    baseMembers: namedRows(state.base.members),
    documentMembers: namedRows(state.documentMembers),
    extensions: namedRows(state.extensions),
    ...resourceRefs,
    addedBy: [...state.addedBy],
    removed: [...state.removed],
    markedDelete: [...state.markedDelete],
    markedPendingReplacement: [...state.markedPendingReplacement],
    hasRefresh: state.hasRefresh,
    requiresByteString: state.requiresByteString,
    lastSequenceId: state.lastSequenceId,
    gaps: state.gaps,
  };
  const headerText = Buffer.from(JSON.stringify(header));
  const snapshot = Buffer.concat([signature, Buffer.alloc(digestBytes + 4), headerText, ...blobs]);
  snapshot.writeUInt32BE(headerText.length, headerAt - 4);
  digest(snapshot.subarray(headerAt - 4)).copy(snapshot, signature.length);
  return snapshot;
}

/** The texts share memory with `snapshot`. Throws ReplaySnapshotError. */
export function decodeReplayState(
  snapshot: Buffer,
  base: Buffer | null,
  baseResources: readonly ResourceText[],
): ReplayState {
  const header = readHeader(snapshot);
  if (header.baseDigest !== digest(base ?? Buffer.alloc(0)).toString('hex')) {
    throw new ReplaySnapshotError('The snapshot was taken over a different base');
  }
  let offset = headerAt + snapshot.readUInt32BE(headerAt - 4);
  const next = (length: number): Buffer => {
    offset += length;
    return snapshot.subarray(offset - length, offset);
  };
  const readOperation = ([length, features, isCreating]: OperationRow): PendingOperation => {
    return { text: next(length), features, isCreating };
  };
  const readNamed = (rows: NamedLengths): Map<string, Buffer> =>
    new Map(rows.map(([name, length]) => [name, next(length)]));

  const resources = header.resources.map(([length, features, hasAliases]): ResourceText => {
    return { text: next(length), features, hasAliases, basePosition: -1 };
  });
  const resourceAt = (ref: number): ResourceText => {
    const resource = ref >= 0 ? baseResources[ref] : resources[-1 - ref];
    if (!resource) throw new ReplaySnapshotError(`The snapshot refers to resource ${ref}, which does not exist`);
    return resource;
  };
  const pendingOperations = header.baseOperations.map(readOperation);
  const open = header.open.map(([id, row]): [number, PendingOperation | null] => [id, row && readOperation(row)]);
  const members = readNamed(header.baseMembers);
  return {
    base: { resources: header.base.map(resourceAt), pendingOperations, members },
    documentMembers: readNamed(header.documentMembers),
    extensions: readNamed(header.extensions),
    added: header.added.map((ref) => (ref === null ? null : resourceAt(ref))),
    addedBy: new Map(header.addedBy),
    removed: new Set(header.removed),
    markedDelete: new Set(header.markedDelete),
    markedPendingReplacement: new Set(header.markedPendingReplacement),
    swapped: new Map(header.swapped.map(([position, ref]) => [position, resourceAt(ref)])),
    open: new Map(open),
    hasRefresh: header.hasRefresh,
    requiresByteString: header.requiresByteString,
    lastSequenceId: header.lastSequenceId,
    gaps: header.gaps,
  };
}

function readHeader(snapshot: Buffer): Header {
  const hasSignature = snapshot.length >= headerAt && snapshot.subarray(0, signature.length).equals(signature);
  if (!hasSignature) throw new ReplaySnapshotError('Not a snapshot of a replay, or one in a different format');
  const expected = snapshot.subarray(signature.length, signature.length + digestBytes);
  if (!digest(snapshot.subarray(headerAt - 4)).equals(expected)) {
    throw new ReplaySnapshotError('The snapshot is damaged');
  }
  return JSON.parse(snapshot.toString('utf8', headerAt, headerAt + snapshot.readUInt32BE(headerAt - 4)));
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

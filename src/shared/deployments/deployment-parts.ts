import { type JsonKind, JsonScanner, JsonSyntaxError } from '../platform/json/json-scanner.ts';
import { scanMembers, sliceOf } from '../platform/json/json-text.ts';
import { ResourceReader, type ResourceText, readResource } from './resource.ts';

/** One pending operation as its raw JSON. */
export interface PendingOperation {
  readonly text: Buffer;
  /** Bits of ResourceFeature, of the resource inside. */
  readonly features: number;
  readonly isCreating: boolean;
}

/** A deployment cut into the parts that a replay moves about. */
export interface DeploymentParts {
  readonly resources: readonly ResourceText[];
  readonly pendingOperations: readonly PendingOperation[];
  /** Every other member but the manifest, raw: secrets providers, metadata, snippets, extensions, unknown ones. */
  readonly members: ReadonlyMap<string, Buffer>;
}

/** An untyped deployment document, `{version, features, deployment}`. */
export interface DocumentParts {
  readonly deployment: DeploymentParts;
  readonly features: readonly string[];
  /** Members that we do not know, raw. */
  readonly members: ReadonlyMap<string, Buffer>;
}

/** The value is JSON, but no deployment. */
export class MalformedDeploymentError extends Error {
  override readonly name = 'MalformedDeploymentError';
}

const emptyDeployment: DeploymentParts = { resources: [], pendingOperations: [], members: new Map() };

/** Collects a deployment that a scan passes at depth `depth`. Of repeated members the last counts. */
class DeploymentReader {
  readonly #source: Buffer;
  readonly #depth: number;
  readonly #isBase: boolean;
  readonly #resourceReader = new ResourceReader();
  #passed: ResourceText[] = [];
  #passedOperations: PendingOperation[] = [];
  #resources: ResourceText[] = [];
  #operations: PendingOperation[] = [];
  #members = new Map<string, Buffer>();

  constructor(source: Buffer, depth: number, isBase: boolean) {
    this.#source = source;
    this.#depth = depth;
    this.#isBase = isBase;
  }

  take(path: readonly (string | number)[], kind: JsonKind, start: number, end: number): void {
    const member = path[this.#depth];
    const depth = path.length - this.#depth;
    if (member === 'resources') {
      if (depth === 3) this.#resourceReader.takeMember(path[this.#depth + 2], this.#source, start, end);
      else if (depth === 2) this.#takeResource(kind, start, end);
      else if (depth === 1) {
        this.#checkList('resources', kind, start);
        this.#resources = this.#passed;
        this.#passed = [];
      }
    } else if (member === 'pending_operations') {
      if (depth === 2) this.#passedOperations.push(readPendingOperation(this.#source.subarray(start, end)));
      else if (depth === 1) {
        this.#checkList('pending_operations', kind, start);
        this.#operations = this.#passedOperations;
        this.#passedOperations = [];
      }
    } else if (depth === 1 && member !== 'manifest') {
      this.#members.set(String(member), this.#source.subarray(start, end));
    }
  }

  finish(kind: JsonKind, start: number): DeploymentParts {
    if (kind !== 'object' && !isNull(this.#source, start)) throw new MalformedDeploymentError('Not an object');
    return { resources: this.#resources, pendingOperations: this.#operations, members: this.#members };
  }

  #takeResource(kind: JsonKind, start: number, end: number): void {
    const position = this.#passed.length;
    if (kind !== 'object') throw new MalformedDeploymentError(`Resource ${position} is not an object`);
    this.#passed.push(this.#resourceReader.finish(this.#source.subarray(start, end), this.#isBase ? position : -1));
  }

  #checkList(name: string, kind: JsonKind, start: number): void {
    if (kind !== 'array' && !isNull(this.#source, start))
      throw new MalformedDeploymentError(`"${name}" is not an array`);
  }
}

/** Reads a bare deployment, such as the one inside a write entry. Throws MalformedDeploymentError. */
export function readDeployment(text: Buffer): DeploymentParts {
  const reader = new DeploymentReader(text, 0, false);
  let deployment = emptyDeployment;
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      if (path.length > 0) reader.take(path, kind, start, end);
      else deployment = reader.finish(kind, start);
    },
  });
  scanner.write(text);
  scanner.end();
  return deployment;
}

/** Reads a document, in one pass; null is an empty one. Throws MalformedDeploymentError. */
export function readDocument(text: Buffer | null): DocumentParts {
  const members = new Map<string, Buffer>();
  let deployment = emptyDeployment;
  let features: readonly string[] = [];
  if (text === null) return { deployment, features, members };

  let reader = new DeploymentReader(text, 1, true);
  const scanner = new JsonScanner({
    reportDepth: 4,
    onValue: (path, kind, start, end) => {
      if (path.length === 0) {
        if (kind !== 'object') throw new MalformedDeploymentError('Not an object');
      } else if (path[0] === 'deployment') {
        if (path.length > 1) {
          reader.take(path, kind, start, end);
        } else {
          deployment = reader.finish(kind, start);
          reader = new DeploymentReader(text, 1, true);
        }
      } else if (path.length === 1) {
        if (path[0] === 'features') features = readStrings(text.subarray(start, end));
        else if (path[0] !== 'version') members.set(String(path[0]), text.subarray(start, end));
      }
    },
  });
  try {
    scanner.write(text);
    scanner.end();
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new MalformedDeploymentError(error.message, { cause: error });
  }
  return { deployment, features, members };
}

/** Reads `{resource, type}`. Throws MalformedDeploymentError. */
function readPendingOperation(text: Buffer): PendingOperation {
  const members = scanMembers(text);
  if (!members) throw new MalformedDeploymentError('Pending operation is not an object');
  const type = members.get('type');
  const resource = members.get('resource');
  return {
    text,
    features: resource?.kind === 'object' ? readResource(sliceOf(text, resource)).features : 0,
    isCreating: type !== undefined && JSON.parse(sliceOf(text, type).toString('utf8')) === 'creating',
  };
}

function readStrings(text: Buffer): string[] {
  const value: unknown = JSON.parse(text.toString('utf8'));
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function isNull(source: Buffer, start: number): boolean {
  return source[start] === 0x6e;
}

import { type JsonKind, JsonScanner, JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import { scanMembers, sliceOf } from '../../platform/json/json-text.ts';
import { ResourceReader, type ResourceText, readResource } from './resource.ts';

export interface PendingOperation {
  readonly text: Buffer;
  /** Bits of ResourceFeature, for the operation's resource. */
  readonly features: number;
  readonly isCreating: boolean;
}

/** The parts that a replay needs. */
export interface DeploymentParts {
  readonly resources: readonly ResourceText[];
  readonly pendingOperations: readonly PendingOperation[];
  /** All other members except the manifest, as raw JSON. */
  readonly members: ReadonlyMap<string, Buffer>;
}

/** Has the form `{version, features, deployment}`. */
export interface DocumentParts {
  readonly deployment: DeploymentParts;
  readonly features: readonly string[];
  /** Unknown members, as raw JSON. */
  readonly members: ReadonlyMap<string, Buffer>;
}

export class MalformedDeploymentError extends Error {
  override readonly name = 'MalformedDeploymentError';
}

const emptyDeployment: DeploymentParts = { resources: [], pendingOperations: [], members: new Map() };

/** `depth` is that of the deployment. If a member is repeated, the last one wins. */
class DeploymentReader {
  readonly #source: Buffer;
  readonly #depth: number;
  readonly #isBase: boolean;
  readonly #resourceReader = new ResourceReader();
  #currentResources: ResourceText[] = [];
  #currentOperations: PendingOperation[] = [];
  #resources: ResourceText[] = [];
  /** Keyed by the member that lists them. */
  readonly #operations = new Map<string, PendingOperation[]>();
  #members = new Map<string, Buffer>();

  constructor(source: Buffer, depth: number, isBase: boolean) {
    this.#source = source;
    this.#depth = depth;
    this.#isBase = isBase;
  }

  addValue(path: readonly (string | number)[], kind: JsonKind, start: number, end: number): void {
    const member = path[this.#depth];
    const depth = path.length - this.#depth;
    if (member === 'resources') {
      if (depth === 3) this.#resourceReader.addMember(path[this.#depth + 2], this.#source, start, end);
      else if (depth === 2) this.#addResource(kind, start, end);
      else if (depth === 1) {
        this.#checkList('resources', kind, start);
        this.#resources = this.#currentResources;
        this.#currentResources = [];
      }
    } else if (member === 'pending_operations' || member === 'pendingOperations') {
      if (depth === 2) this.#currentOperations.push(readPendingOperation(this.#source.subarray(start, end)));
      else if (depth === 1) {
        this.#checkList(member, kind, start);
        this.#operations.set(member, this.#currentOperations);
        this.#currentOperations = [];
      }
    } else if (depth === 1 && member !== 'manifest') {
      this.#members.set(String(member), this.#source.subarray(start, end));
    }
  }

  finish(kind: JsonKind, start: number): DeploymentParts {
    if (kind !== 'object' && !isNull(this.#source, start)) throw new MalformedDeploymentError('Not an object');
    const pendingOperations = [...this.#operations.values()].flat();
    return { resources: this.#resources, pendingOperations, members: this.#members };
  }

  #addResource(kind: JsonKind, start: number, end: number): void {
    const position = this.#currentResources.length;
    if (kind !== 'object') throw new MalformedDeploymentError(`Resource ${position} is not an object`);
    this.#currentResources.push(
      this.#resourceReader.finish(this.#source.subarray(start, end), this.#isBase ? position : -1),
    );
  }

  #checkList(name: string, kind: JsonKind, start: number): void {
    if (kind !== 'array' && !isNull(this.#source, start))
      throw new MalformedDeploymentError(`"${name}" is not an array`);
  }
}

/** Reads a deployment without the surrounding document, e.g. of a write entry. Throws MalformedDeploymentError. */
export function readDeployment(text: Buffer): DeploymentParts {
  const reader = new DeploymentReader(text, 0, false);
  let deployment = emptyDeployment;
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      if (path.length > 0) reader.addValue(path, kind, start, end);
      else deployment = reader.finish(kind, start);
    },
  });
  scanner.write(text);
  scanner.end();
  return deployment;
}

/** Takes one pass. Null stands for an empty document. Throws MalformedDeploymentError. */
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
          reader.addValue(path, kind, start, end);
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

/** The form is `{resource, type}`. Throws MalformedDeploymentError. */
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

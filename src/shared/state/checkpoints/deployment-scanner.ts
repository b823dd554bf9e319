import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { type JsonKind, JsonScanner, type OpenListener, type Span } from '../../platform/json/json-scanner.ts';
import type { JsonSpan } from '../../platform/json/json-text.ts';
import { ScanWindow } from '../../platform/json/scan-window.ts';

/** The raw text of larger members is not kept. */
const maxTextBytes = 64 * 1024;

/** The newest supported version (pkg/resource/stack/deployment.go). */
const newestDeploymentVersion = 4;

/** `text` is the raw JSON, unless the member is an object or too long. */
export interface ScannedMember extends JsonSpan {
  readonly text?: string;
}

/** Offsets are relative to the start of the scanned text. */
export interface DeploymentScan {
  readonly length: number;
  /** The root object without surrounding white space. */
  readonly root: Span;
  /** If a name is repeated, the last member wins. */
  readonly members: ReadonlyMap<string, ScannedMember>;
  /** Members of the document `{version, features?, deployment}`: of the nested member if there is one, otherwise of the root. */
  readonly document: ReadonlyMap<string, ScannedMember>;
  readonly resources: 'absent' | 'null' | 'array';
  readonly resourceCount: number;
}

export interface DeploymentScanOptions {
  /** Contains the document; null if the root is the document itself. */
  readonly nested: 'untypedDeployment' | null;
  /** Called for objects and arrays of the envelope, the document or its resources. */
  readonly onOpen?: OpenListener;
}

/** The text is JSON but does not contain a deployment that the server can accept. */
export class InvalidDeploymentError extends InvalidRequestError {
  override readonly name = 'InvalidDeploymentError';
}

interface Resources {
  readonly kind: DeploymentScan['resources'] | 'other';
  readonly count: number;
}

const noResources: Resources = { kind: 'absent', count: 0 };

/** Pulumi defines these members of a deployment as lists of objects, or as objects (sdk/go/common/apitype/core.go). */
const objectLists: ReadonlySet<unknown> = new Set(['resources', 'pending_operations']);
const objects: ReadonlySet<unknown> = new Set(['manifest', 'secrets_providers', 'metadata']);

/**
 * Scans a checkpoint request or a document in chunks. Keeps only small members of the envelope, so that memory use does not grow with the
 * document.
 */
export class DeploymentScanner {
  readonly #nested: string | null;
  readonly #depth: number;
  readonly #scanner: JsonScanner;
  readonly #texts = new ScanWindow(maxTextBytes);
  readonly #members = new Map<string, ScannedMember>();
  #rootKind: JsonKind = 'literal';
  #root: Span = { start: 0, end: 0 };
  #document = new Map<string, ScannedMember>();
  #currentDocument = new Map<string, ScannedMember>();
  #deploymentResources = noResources;
  #currentResources = noResources;
  #elementCount = 0;
  /** The CLI could not load the deployment, or no journal could be replayed over it. */
  #deploymentFault: string | null = null;
  #currentFault: string | null = null;

  constructor({ nested, onOpen }: DeploymentScanOptions) {
    this.#nested = nested;
    this.#depth = nested === null ? 1 : 2;
    this.#scanner = new JsonScanner({
      reportDepth: this.#depth + 2,
      onValue: (path, kind, start, end) => this.#addValue(path, kind, start, end),
      onOpen,
    });
  }

  get members(): ReadonlyMap<string, ScannedMember> {
    return this.#members;
  }

  /** Empty until the root has ended. */
  get root(): Span {
    return this.#root;
  }

  /** Throws JsonSyntaxError. */
  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  /** Throws JsonSyntaxError and InvalidDeploymentError. */
  end(): DeploymentScan {
    const length = this.#scanner.end();
    if (this.#rootKind !== 'object') throw new InvalidDeploymentError('The body is not an object');
    if (this.#nested !== null) assertObject(this.#nested, this.#members.get(this.#nested));
    const document = this.#nested === null ? this.#members : this.#document;
    assertObject('deployment', document.get('deployment'));
    const { kind, count } = this.#deploymentResources;
    if (kind === 'other') throw new InvalidDeploymentError('"resources" is neither an array nor null');
    if (this.#deploymentFault !== null) throw new InvalidDeploymentError(this.#deploymentFault);
    const features = document.get('features');
    if (features && features.kind !== 'array' && features.text !== 'null')
      throw new InvalidDeploymentError('"features" is not an array');
    return { length, root: this.#root, members: this.#members, document, resources: kind, resourceCount: count };
  }

  #addValue(path: readonly (string | number)[], kind: JsonKind, start: number, end: number): void {
    const depth = path.length;
    if (depth === 0) {
      this.#rootKind = kind;
      this.#root = { start, end };
    } else if (depth === this.#depth && (depth === 1 || path[0] === this.#nested)) {
      const name = String(path[depth - 1]);
      const members = depth === 1 ? this.#members : this.#currentDocument;
      members.set(name, this.#member(kind, start, end));
      if (name === 'deployment') {
        this.#deploymentResources = this.#currentResources;
        this.#currentResources = noResources;
        this.#deploymentFault = this.#currentFault;
        this.#currentFault = null;
      }
    } else if (depth === 1) {
      this.#members.set(String(path[0]), this.#member(kind, start, end));
      if (path[0] === this.#nested) {
        this.#document = this.#currentDocument;
        this.#currentDocument = new Map();
      }
    } else if (this.#isInDeployment(path)) {
      this.#addToDeployment(path[this.#depth], depth > this.#depth + 1, kind, end);
    }
  }

  /** If `isInside`, the value is directly inside a member of the deployment. */
  #addToDeployment(name: string | number | undefined, isInside: boolean, kind: JsonKind, end: number): void {
    if (isInside) {
      if (!objectLists.has(name)) return;
      if (name === 'resources') this.#elementCount++;
      if (kind !== 'object') this.#currentFault ??= `An element of "${name}" is not an object`;
      return;
    }
    if (name === 'resources') {
      this.#currentResources = { kind: this.#resourcesKind(kind, end), count: this.#elementCount };
      this.#elementCount = 0;
    } else if (objectLists.has(name) && kind !== 'array' && !this.#isNull(kind, end)) {
      this.#currentFault ??= `"${name}" is neither an array nor null`;
    } else if (objects.has(name) && kind !== 'object' && !this.#isNull(kind, end)) {
      this.#currentFault ??= `"${name}" is neither an object nor null`;
    }
  }

  /** The value that has just ended. */
  #member(kind: JsonKind, start: number, end: number): ScannedMember {
    const text = kind === 'object' ? null : this.#texts.textOf(start, end);
    const member = text === null ? { kind, start, end } : { kind, start, end, text: text.toString('utf8') };
    this.#texts.pass(end);
    return member;
  }

  #isInDeployment(path: readonly (string | number)[]): boolean {
    const at = this.#depth - 1;
    return path[at] === 'deployment' && (at === 0 || path[0] === this.#nested);
  }

  #resourcesKind(kind: JsonKind, end: number): Resources['kind'] {
    if (kind === 'array') return 'array';
    return this.#isNull(kind, end) ? 'null' : 'other';
  }

  #isNull(kind: JsonKind, end: number): boolean {
    // `null` is the only literal that ends in an l, and its last byte is in the current chunk.
    return kind === 'literal' && this.#texts.byteAt(end - 1) === 0x6c;
  }
}

/** Defers scan errors until the hash is known: for a delta, a wrong hash is more informative. */
export class LateScan {
  readonly #scanner = new DeploymentScanner({ nested: null });
  #failure: { readonly error: unknown } | null = null;

  async *watch(document: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of document) {
      this.#write(chunk);
      yield chunk;
    }
  }

  /** Throws JsonSyntaxError and InvalidDeploymentError. */
  end(): DeploymentScan {
    if (this.#failure) throw this.#failure.error;
    const scan = this.#scanner.end();
    assertDeploymentVersion(scan.document.get('version')?.text);
    return scan;
  }

  #write(chunk: Buffer): void {
    if (this.#failure) return;
    try {
      this.#scanner.write(chunk);
    } catch (error) {
      this.#failure = { error };
    }
  }
}

/** Throws InvalidDeploymentError for versions that the CLI would refuse to load (pkg/resource/stack/deployment.go). */
export function assertDeploymentVersion(text: string | undefined): number {
  if (text === undefined || text === 'null' || text === '0') {
    throw new InvalidDeploymentError('The deployment version is missing or 0: too old');
  }
  if (!/^\d+$/.test(text)) {
    throw new InvalidDeploymentError('The deployment version is not an integer from 1 to 4');
  }
  const version = Number(text);
  if (version > newestDeploymentVersion) {
    throw new InvalidDeploymentError(
      `The deployment version ${text.slice(0, 20)} is too new: this server knows up to ${newestDeploymentVersion}`,
    );
  }
  return version;
}

function assertObject(name: string, member: ScannedMember | undefined): void {
  if (!member) throw new InvalidDeploymentError(`"${name}" is missing`);
  if (member.kind !== 'object') throw new InvalidDeploymentError(`"${name}" is not an object`);
}

import { InvalidRequestError } from '../../platform/errors/errors.ts';
import type { Span } from '../../platform/json/json-scanner.ts';
import {
  assertDeploymentVersion,
  type DeploymentScan,
  DeploymentScanner,
  type ScannedMember,
} from './deployment-scanner.ts';

/**
 * The document is the root of the body, the member `untypedDeployment`, or is built from the members `version`, `features` and
 * `deployment`.
 */
export type DocumentShape = 'root' | 'untypedDeployment' | 'members';

/** A member is repeated or comes after one that must follow it, so one pass cannot cut the document out. */
export class ScatteredDocumentError extends Error {
  override readonly name = 'ScatteredDocumentError';
}

const tail = Buffer.from('}');

/** Cuts the document out of a body in the pass that scans it. Only the end of the body shows whether the bytes are a valid document. */
export class DocumentCut {
  readonly #shape: DocumentShape;
  readonly #scanner: DeploymentScanner;
  #offset = 0;
  #head = '';
  #start: number | null = null;
  /** The document was cut out up to this offset in the body. */
  #cutTo = 0;
  #end: number | null = null;

  constructor(shape: DocumentShape) {
    this.#shape = shape;
    this.#scanner = new DeploymentScanner({
      nested: shape === 'untypedDeployment' ? shape : null,
      onOpen: (path, kind, start) => {
        if (kind === 'object' && this.#isDocument(path)) this.#begin(start);
      },
    });
  }

  /** The result shares memory with the chunk. Throws JsonSyntaxError and ScatteredDocumentError. */
  push(chunk: Buffer): Buffer[] {
    const base = this.#offset;
    this.#offset += chunk.length;
    this.#scanner.write(chunk);
    if (this.#start === null || this.#end !== null) return [];
    const found = this.#found();
    if (found?.start === this.#start) this.#end = found.end;
    const parts: Buffer[] = [];
    if (this.#cutTo === this.#start && this.#head !== '') parts.push(Buffer.from(this.#head));
    const to = this.#end ?? this.#offset;
    if (to > this.#cutTo) parts.push(chunk.subarray(this.#cutTo - base, to - base));
    this.#cutTo = to;
    if (this.#end !== null && this.#shape === 'members') parts.push(tail);
    return parts;
  }

  /** Throws JsonSyntaxError, InvalidDeploymentError, and ScatteredDocumentError if the bytes that were cut out are not the document. */
  end(): DeploymentScan {
    const scan = this.#scanner.end();
    const version = assertDeploymentVersion(scan.document.get('version')?.text);
    const found = this.#found();
    const head = this.#shape === 'members' ? headOf(version, scan.document) : '';
    if (!found || found.start !== this.#start || found.end !== this.#end || head !== this.#head) {
      throw new ScatteredDocumentError('The document is not in one place');
    }
    return scan;
  }

  #begin(start: number): void {
    if (this.#start !== null) throw new ScatteredDocumentError('A member is repeated');
    this.#start = start;
    this.#cutTo = start;
    if (this.#shape !== 'members') return;
    const { members } = this.#scanner;
    const version = members.get('version')?.text;
    // A member that is missing or invalid so far may come later, or be repeated with a valid value.
    if (version === undefined || !/^\d{1,3}$/.test(version)) {
      throw new ScatteredDocumentError('The version is not known yet');
    }
    try {
      this.#head = headOf(Number(version), members);
    } catch (error) {
      if (error instanceof InvalidRequestError) throw new ScatteredDocumentError('The features are not known yet');
      throw error;
    }
  }

  #isDocument(path: readonly (string | number)[]): boolean {
    if (this.#shape === 'root') return path.length === 0;
    return path.length === 1 && path[0] === memberOf(this.#shape);
  }

  #found(): Span | undefined {
    if (this.#shape !== 'root') return this.#scanner.members.get(memberOf(this.#shape));
    const { root } = this.#scanner;
    return root.end > 0 ? root : undefined;
  }
}

/** The parts are in order. */
export function documentParts(scan: DeploymentScan, shape: DocumentShape): (Buffer | Span)[] {
  if (shape === 'root') return [scan.root];
  const span = scan.members.get(memberOf(shape)) as ScannedMember;
  if (shape === 'untypedDeployment') return [span];
  const version = assertDeploymentVersion(scan.document.get('version')?.text);
  return [Buffer.from(headOf(version, scan.document)), span, tail];
}

function memberOf(shape: 'untypedDeployment' | 'members'): string {
  return shape === 'members' ? 'deployment' : shape;
}

/** The document has the form `{version, features?, deployment}`, without the other members of the envelope. Throws InvalidRequestError. */
function headOf(version: number, members: ReadonlyMap<string, ScannedMember>): string {
  const features = featuresText(members.get('features'));
  const list = features === null ? '' : `"features":${features},`;
  return `{"version":${version},${list}"deployment":`;
}

/** All features are kept, because the CLI would misread the state without them. */
function featuresText(features: ScannedMember | undefined): string | null {
  if (!features) return null;
  if (features.kind === 'literal' && features.text === 'null') return null;
  if (features.kind !== 'array') throw new InvalidRequestError('"features" is not an array');
  if (features.text === undefined) throw new InvalidRequestError('"features" is longer than 64 KiB');
  return features.text;
}

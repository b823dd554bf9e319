import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import { assertDeploymentVersion, DeploymentScanner, InvalidDeploymentError } from './deployment-scanner.ts';
import { DocumentCut, type DocumentShape, documentParts, ScatteredDocumentError } from './document-cut.ts';

const refusals = [JsonSyntaxError, InvalidDeploymentError, InvalidRequestError];

interface Result {
  readonly text?: string;
  readonly resourceCount?: number;
  readonly refusal?: string;
}

/** An error that a client gets to see becomes part of the result. */
function resultOf(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (refusals.some((refusal) => error instanceof refusal)) return { refusal: (error as Error).message };
    throw error;
  }
}

function scanned(body: Buffer, shape: DocumentShape): Result {
  return resultOf(() => {
    const scanner = new DeploymentScanner({ nested: shape === 'untypedDeployment' ? shape : null });
    scanner.write(body);
    const scan = scanner.end();
    assertDeploymentVersion(scan.document.get('version')?.text);
    const parts = documentParts(scan, shape).map((part) =>
      Buffer.isBuffer(part) ? part : body.subarray(part.start, part.end),
    );
    return { text: Buffer.concat(parts).toString('latin1'), resourceCount: scan.resourceCount };
  });
}

/** Null if the document is scattered. */
function cut(chunks: readonly Buffer[], shape: DocumentShape): Result | null {
  try {
    return resultOf(() => {
      const document = new DocumentCut(shape);
      // Copied, since a chunk may be overwritten by the next one.
      const parts = chunks.flatMap((chunk) => document.push(chunk).map((part) => Buffer.from(part)));
      const { resourceCount } = document.end();
      return { text: Buffer.concat(parts).toString('latin1'), resourceCount };
    });
  } catch (error) {
    if (error instanceof ScatteredDocumentError) return null;
    throw error;
  }
}

function inChunks(body: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let at = 0;
  for (let index = 0; at < body.length; index++) {
    const size = sizes.length === 0 ? body.length : (sizes[index % sizes.length] as number);
    chunks.push(body.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

const space = fc.constantFrom('', ' ', '\n\t');
const names = fc.constantFrom(
  'version',
  'features',
  'deployment',
  'untypedDeployment',
  'sequenceNumber',
  'x',
  'versio\\u006e',
);
const resources = fc.constantFrom(
  '{}',
  '{"resources":[]}',
  '{"resources":[{"urn":"ü\\u0022"},{"a":[1]}]}',
  '{"resources":null}',
);
const value: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('3', '4', '5', '0', '"3"', 'null', '["a"]', '[]', '7'),
    resources,
    resources.map((text) => `{"version":3,"deployment":${text}}`),
    fc
      .array(fc.tuple(space, names, tie('value'), space), { maxLength: 4 })
      .map((members) => `{${members.map(([gap, name, text, end]) => `${gap}"${name}":${text}${end}`).join(',')}}`),
  ),
})).value;

/** Members are in any order, repeated, missing or of the wrong kind. */
const ordinary = fc
  .tuple(space, fc.constantFrom('3', '4'), fc.constantFrom('', '"features":["f"],'), resources, space)
  .map(([gap, version, features, text, end]) => ({
    members: `${gap}{"isInvalid":false,"version":${version},${features}"deployment":${gap}${text}${end},"z":[]}${end}`,
    untypedDeployment: `{"version":${version},"untypedDeployment":${gap}{${features}"version":${version},"deployment":${text}}${end},"sequenceNumber":1}`,
    root: `${gap}{"version":${version},${features}"deployment":${text}}${end}`,
  }));
const shapes: readonly DocumentShape[] = ['root', 'untypedDeployment', 'members'];
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 8 });

describe('cutting the document out of a body', () => {
  test.each(shapes)('gives bytes and refusals of a scan of the whole body, however it is chunked: %s', (shape) => {
    let complete = 0;
    const body = fc.oneof(
      ordinary.map((bodies) => bodies[shape]),
      fc.tuple(space, value, fc.constantFrom('', ' ', '}', '{')).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(body, sizes, (text, lengths) => {
        const bytes = Buffer.from(text);
        const result = cut(inChunks(bytes, lengths), shape);
        // The caller reads a scattered document again.
        if (result === null) return;
        expect(result).toEqual(scanned(bytes, shape));
        if (result.text !== undefined) complete++;
      }),
      { numRuns: 3_000 },
    );
    expect(complete).toBeGreaterThan(300);
  });

  test.each(shapes)('takes one pass for bodies as the CLI and the SDKs send them: %s', (shape) => {
    fc.assert(
      fc.property(ordinary, sizes, (bodies, lengths) => {
        const bytes = Buffer.from(bodies[shape]);
        expect(cut(inChunks(bytes, lengths), shape)).toEqual(scanned(bytes, shape));
      }),
    );
  });

  test('takes no repeated member, and no version that comes after the deployment, for the document', () => {
    const deployment = '"deployment":{"resources":[]}';
    for (const body of [
      `{"version":3,${deployment},${deployment}}`,
      `{${deployment},"version":3}`,
      `{"version":3,"features":{},${deployment},"features":["x"]}`,
      `{"version":3,${deployment},"version":4}`,
      `{"version":3,${deployment},"features":["x"]}`,
    ]) {
      expect(cut([Buffer.from(body)], 'members')).toBeNull();
      expect(scanned(Buffer.from(body), 'members').text).toContain('resources');
    }
    const nested = '"untypedDeployment":{"version":3,"deployment":{}}';
    expect(cut([Buffer.from(`{${nested},${nested}}`)], 'untypedDeployment')).toBeNull();
  });
});

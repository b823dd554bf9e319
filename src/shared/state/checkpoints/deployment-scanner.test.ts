import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JsonSyntaxError } from '../../platform/json/json-scanner.ts';
import {
  assertDeploymentVersion,
  type DeploymentScan,
  DeploymentScanner,
  InvalidDeploymentError,
} from './deployment-scanner.ts';

function scan(text: string, nested: 'untypedDeployment' | null = null): DeploymentScan {
  const scanner = new DeploymentScanner({ nested });
  scanner.write(Buffer.from(text));
  return scanner.end();
}

function scanInChunks(text: Buffer, nested: 'untypedDeployment' | null, sizes: readonly number[]): DeploymentScan {
  const scanner = new DeploymentScanner({ nested });
  // Reuses one buffer for all chunks, as some readers do.
  const chunk = Buffer.alloc(text.length);
  let offset = 0;
  for (const size of [...sizes, text.length]) {
    scanner.write(chunk.subarray(0, text.copy(chunk, 0, offset, offset + size)));
    offset = Math.min(offset + size, text.length);
    chunk.fill(0);
  }
  return scanner.end();
}

function textAt(text: string, member: { start: number; end: number } | undefined): string | undefined {
  return member && Buffer.from(text).toString('utf8', member.start, member.end);
}

const checkpoint =
  ' {"isInvalid":false, "version":3,"é":"日","features":["a", "b"],"deployment":{"resources":[{},{"a":[1,[2]]} ,{"resources":[1]}]},"sequenceNumber":12}\n';
const verbatim =
  '{"version":3,"untypedDeployment":{"version" :4,"features":[],"deployment":{"a":[1],"resources":[{},{}],"pending_operations":[{}]}},"sequenceNumber":7,"deployment":{"resources":[1,2,3]}}';

describe('DeploymentScanner', () => {
  test('finds the members of a checkpoint and counts its resources', () => {
    const result = scan(checkpoint);
    expect([...result.members.keys()]).toEqual([
      'isInvalid',
      'version',
      'é',
      'features',
      'deployment',
      'sequenceNumber',
    ]);
    expect(result).toMatchObject({ resources: 'array', resourceCount: 3, length: Buffer.byteLength(checkpoint) });
    expect(result.document).toBe(result.members);
    expect(textAt(checkpoint, result.members.get('deployment'))).toBe(
      '{"resources":[{},{"a":[1,[2]]} ,{"resources":[1]}]}',
    );
  });

  test('keeps the raw text of small members', () => {
    const { members } = scan(checkpoint);
    expect([...members.values()].map(({ text }) => text)).toEqual([
      'false',
      '3',
      '"日"',
      '["a", "b"]',
      undefined,
      '12',
    ]);
  });

  test('distinguishes the nested document from the request around it', () => {
    const { members, document, resourceCount } = scan(verbatim, 'untypedDeployment');
    expect(textAt(verbatim, members.get('untypedDeployment'))).toBe(
      '{"version" :4,"features":[],"deployment":{"a":[1],"resources":[{},{}],"pending_operations":[{}]}}',
    );
    expect(members.get('version')?.text).toBe('3');
    expect(members.get('sequenceNumber')?.text).toBe('7');
    expect(document.get('version')?.text).toBe('4');
    expect(textAt(verbatim, document.get('features'))).toBe('[]');
    expect([...document.keys()]).toEqual(['version', 'features', 'deployment']);
    expect(resourceCount).toBe(2);
  });

  test('does not mistake another member for the nested document', () => {
    const other = '{"version":9,"features":[],"deployment":{"resources":[1,2,3]}}';
    const { document, resources } = scan(
      `{"other":${other},"untypedDeployment":{"version":3,"deployment":{}},"another":${other}}`,
      'untypedDeployment',
    );
    expect(document.get('version')?.text).toBe('3');
    expect([...document.keys()]).toEqual(['version', 'deployment']);
    expect(resources).toBe('absent');
  });

  test('returns the same result however the text is split into chunks', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(fc.integer({ min: 0, max: 9 })), (isNested, sizes) => {
        const [text, nested] = isNested ? ([verbatim, 'untypedDeployment'] as const) : ([checkpoint, null] as const);
        expect(scanInChunks(Buffer.from(text), nested, sizes)).toEqual(scan(text, nested));
      }),
    );
  });

  test.each([
    ['null', 'null', 0],
    ['[]', 'array', 0],
    ['[{},{"a":[{}]}]', 'array', 2],
  ])('reports the kind and count of resources %s', (resources, kind, resourceCount) => {
    for (const sizes of [[], [40], Array(60).fill(1)]) {
      const text = Buffer.from(`{"version":3,"deployment":{"resources":${resources}}}`);
      expect(scanInChunks(text, null, sizes)).toMatchObject({ resources: kind, resourceCount });
    }
  });

  test('reports that resources are absent', () => {
    expect(scan('{"deployment":{"Resources":[1]}}')).toMatchObject({ resources: 'absent', resourceCount: 0 });
  });

  test('uses the last of repeated members', () => {
    expect(scan('{"deployment":{"resources":[{},{}],"resources":[{}]}}').resourceCount).toBe(1);
    expect(scan('{"deployment":{"resources":[1,2]},"deployment":{}}').resources).toBe('absent');
    const documents = '{"version":1,"deployment":{"resources":[1,2]}},"untypedDeployment":{"deployment":{}}';
    const { document, resources } = scan(`{"untypedDeployment":${documents}}`, 'untypedDeployment');
    expect([...document.keys()]).toEqual(['deployment']);
    expect(resources).toBe('absent');
  });

  describe('keeps no text longer than 64 KiB', () => {
    const kept = `"${'x'.repeat(65_000)}"`;
    const dropped = `"${'x'.repeat(66_000)}"`;
    const far = `[${'5,'.repeat(800)}5]`;
    const spaces = ' '.repeat(66_000);
    const text = Buffer.from(
      `{"dropped":${dropped},"deployment":{"x":${dropped}},"kept":${kept},"far":${spaces}${far},"near":[6]}`,
    );
    test.each([
      ['at once', []],
      ['in chunks of 1,000 bytes', Array(280).fill(1000)],
      ['with a split in the last member', [text.length - 3]],
    ])('%s', (_, sizes) => {
      const { members } = scanInChunks(text, null, sizes);
      expect(members.get('dropped')).toEqual({ kind: 'string', start: 11, end: 11 + dropped.length });
      expect(members.get('kept')?.text).toBe(kept);
      expect([undefined, far]).toContain(members.get('far')?.text);
      expect(members.get('near')?.text).toBe('[6]');
    });
  });

  test.each([
    ['a root that is not an object', '[]', null, 'The body is not an object'],
    ['a missing deployment', '{"version":3}', null, '"deployment" is missing'],
    ['a null deployment', '{"deployment":null}', null, '"deployment" is not an object'],
    ['a missing document', '{"deployment":{}}', 'untypedDeployment', '"untypedDeployment" is missing'],
    [
      'a document that is a string',
      '{"untypedDeployment":"{}"}',
      'untypedDeployment',
      '"untypedDeployment" is not an object',
    ],
    ['a document without deployment', '{"untypedDeployment":{}}', 'untypedDeployment', '"deployment" is missing'],
    [
      'resources that are an object',
      '{"deployment":{"resources":{"a":1}}}',
      null,
      '"resources" is neither an array nor null',
    ],
    ['resources that are true', '{"deployment":{"resources":true}}', null, '"resources" is neither an array nor null'],
    ...(['[1]', '[null]', '[{},"x"]', '[[{}]]'] as const).map(
      (list) =>
        [
          `resources ${list}`,
          `{"deployment":{"resources":${list}}}`,
          null,
          'An element of "resources" is not an object',
        ] as const,
    ),
    [
      'pending operations that are not objects',
      '{"untypedDeployment":{"deployment":{"pending_operations":[{},1]}}}',
      'untypedDeployment',
      'An element of "pending_operations" is not an object',
    ],
    [
      'pending operations that are no list',
      '{"deployment":{"pending_operations":{}}}',
      null,
      '"pending_operations" is neither an array nor null',
    ],
    ['a manifest that is a text', '{"deployment":{"manifest":"x"}}', null, '"manifest" is neither an object nor null'],
    [
      'a secrets provider that is false',
      '{"deployment":{"secrets_providers":false}}',
      null,
      '"secrets_providers" is neither an object nor null',
    ],
    ['features that are a text', '{"features":"x","deployment":{}}', null, '"features" is not an array'],
  ] as const)('rejects %s', (_, text, nested, message) => {
    expect(() => scan(text, nested)).toThrow(new InvalidDeploymentError(message));
  });

  test('accepts null for each member, and anything outside the deployment that counts', () => {
    const nulls = '"resources":null,"pending_operations":null,"manifest":null,"secrets_providers":null,"metadata":null';
    for (const text of [
      `{"features":null,"deployment":{${nulls}}}`,
      '{"deployment":{"resources":[1]},"deployment":{"manifest":{"time":"","plugins":[1]}}}',
      '{"deployment":{"resources":[{"resources":[1],"manifest":1}],"snippets":[1],"x":{"pending_operations":1}}}',
      '{"other":{"deployment":{"resources":[1]},"pending_operations":1},"deployment":{},"manifest":1}',
    ])
      expect(() => scan(text)).not.toThrow();
  });

  test('rejects invalid JSON', () => {
    expect(() => scan('{"deployment":{}')).toThrow(JsonSyntaxError);
  });
});

describe('assertDeploymentVersion', () => {
  test.each(['1', '2', '3', '4'])('accepts %s', (text) => {
    expect(assertDeploymentVersion(text)).toBe(Number(text));
  });

  test.each([
    [undefined, 'too old'],
    ['null', 'too old'],
    ['0', 'too old'],
    ['5', 'too new: this server knows up to 4'],
    ['99999999999999999999', 'too new'],
    ['-1', 'not an integer'],
    ['3.0', 'not an integer'],
    ['"3"', 'not an integer'],
  ])('rejects %s', (text, message) => {
    expect(() => assertDeploymentVersion(text)).toThrow(InvalidDeploymentError);
    expect(() => assertDeploymentVersion(text)).toThrow(message);
  });
});
